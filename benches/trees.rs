//! Times selectors, and judges them by `evaluate`, on a table that `trees.py` has written: a line of JSON that describes it, then its columns
//! one after the other, the label last. Prints a line of JSON.
//!
//!     trees TABLE SELECTOR SETTINGS      seconds of the fastest of three, and the ranking
//!     trees TABLE evaluate SETTINGS      what the model reaches on the rows after the first `own`

use std::io::Read;
use std::time::Instant;

use pursuit_udfs::testing::{Column, Table};
use pursuit_udfs::{Run, Settings, Task, Value, Values, Work, reports, selectors};
use serde_json::json;

/// The table, its label, and how many of its rows are to be learnt from.
fn read(path: &str) -> (Table, Vec<f64>, usize) {
    let mut bytes = Vec::new();
    std::fs::File::open(path).expect("the table can be read").read_to_end(&mut bytes).expect("the table can be read");
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a first line");
    let head: Value = serde_json::from_slice(&bytes[..end]).expect("a line of JSON");
    let count = |key: &str| head[key].as_u64().expect("a number") as usize;
    let (rows, own) = (count("rows"), count("own"));
    let mut rest = &bytes[end + 1..];
    let mut numbers = || -> Vec<f64> {
        let (column, others) = rest.split_at(8 * rows);
        rest = others;
        column.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
    };
    let task = if head["is_class"] == true { Task::Classification } else { Task::Regression };
    let mut table = Table { task: Some(task), ..Table::default() };
    for column in head["columns"].as_array().expect("a list") {
        let name = column["name"].as_str().expect("a name").to_string();
        let values = numbers();
        let column = match column["levels"].as_array() {
            None => Column::Numbers(values),
            // A text is written as the places of its levels.
            Some(levels) => {
                let level = |at: &f64| levels.get(*at as usize).filter(|_| *at >= 0.0)?.as_str().map(str::to_string);
                Column::Text(values.iter().map(level).collect())
            }
        };
        table.columns.push((name, column));
    }
    (table, numbers(), own)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, settings] = &arguments[..] else { panic!("give a table, a function and its settings as JSON") };
    let settings: Settings = serde_json::from_str(settings).expect("settings are JSON");
    let (mut table, label, own) = read(path);
    table.common.max_levels = 1000;
    if name == "evaluate" {
        let spec = reports().into_iter().find(|spec| spec.name == "evaluate").expect("it is registered");
        let Ok(Work::Report(report)) = (spec.build)(&settings) else { panic!("settings are refused") };
        let answer = report.report(&table.problem_with_held_out(&label, own), &Run::new(0)).expect("an answer");
        let (Values::Text(splits), Values::Text(metrics), Values::Number(values)) = (&answer[0], &answer[2], &answer[3]) else {
            panic!("split, metric and value")
        };
        let all = splits.iter().zip(metrics).zip(values);
        let judged: serde_json::Map<String, Value> = all
            .filter(|((split, _), _)| split.as_deref() == Some("test"))
            .map(|((_, metric), value)| (metric.clone().unwrap_or_default(), json!(value)))
            .collect();
        println!("{}", Value::Object(judged));
        return;
    }
    let spec = selectors().into_iter().find(|spec| spec.name == name).expect("a selector");
    let selector = spec.selector(&settings).expect("settings are in order");
    let (mut best, mut ranking) = (f64::INFINITY, Vec::new());
    for _ in 0..3 {
        // A problem of its own each time, because a table is cut into bins once.
        let (problem, _) = table.problem_and_others(&label, own);
        let start = Instant::now();
        let found = selector.select(&problem, &Run::new(0)).expect("a ranking");
        best = best.min(start.elapsed().as_secs_f64());
        ranking = found.units().iter().map(|unit| problem.units[*unit].name.clone()).collect();
    }
    println!("{}", json!({ "seconds": best, "ranking": ranking }));
}
