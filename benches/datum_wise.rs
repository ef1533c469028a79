//! Datum-wise classification on tables of one's own: trains on the rows that a split marks, decides the others, and prints
//! a line of JSON for each setting and split. `datum_wise.py` feeds it and draws the curves.
//!
//!     datum_wise TABLE.csv SPLITS.txt SETTINGS.json
//!
//! The table has a header, the label last; a split is a line of 0 (decide), 1 (learn) and - (leave out) for each row; settings are a
//! list of options as in SQL.

use std::collections::BTreeMap;
use std::time::Instant;

use pursuit_udfs::datum_wise::{Asking, Detail, Policy};
use pursuit_udfs::testing::{Column, Table};
use pursuit_udfs::{Block, Run, Settings, Task, Value, options};
use serde_json::json;

struct Csv {
    names: Vec<String>,
    columns: Vec<Column>,
    label: Vec<f64>,
}

fn read(path: &str) -> Csv {
    let text = std::fs::read_to_string(path).expect("the table can be read");
    let mut lines = text.lines();
    let mut names: Vec<String> = lines.next().expect("a header").split(',').map(str::to_string).collect();
    let mut cells: Vec<Vec<&str>> = vec![Vec::new(); names.len()];
    for line in lines {
        line.split(',').enumerate().for_each(|(at, cell)| cells[at].push(cell));
    }
    let number = |cell: &&str| if cell.is_empty() { Some(f64::NAN) } else { cell.parse().ok() };
    let label = cells.pop().expect("a label").iter().map(|cell| number(cell).expect("classes are numbers")).collect();
    names.pop();
    let column = |cells: &Vec<&str>| match cells.iter().map(number).collect::<Option<Vec<f64>>>() {
        Some(numbers) => Column::Numbers(numbers),
        None => Column::Text(cells.iter().map(|cell| (!cell.is_empty()).then(|| cell.to_string())).collect()),
    };
    Csv { columns: cells.iter().map(column).collect(), names, label }
}

impl Csv {
    fn table(&self, rows: &[usize]) -> Table {
        let take = |column: &Column| match column {
            Column::Numbers(values) => Column::Numbers(rows.iter().map(|row| values[*row]).collect()),
            Column::Text(values) => Column::Text(rows.iter().map(|row| values[*row].clone()).collect()),
        };
        let columns = self.names.iter().cloned().zip(self.columns.iter().map(take)).collect();
        Table { columns, task: Some(Task::Classification), ..Table::default() }
    }
}

/// Decides rows of a table with a policy: prediction, units and cost of each.
fn decide(policy: &Policy, table: &Table) -> Vec<(usize, Vec<usize>, f64)> {
    let features = policy.features();
    let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
    let classify = |rows: usize, blocks: &[Block<'_>]| policy.classify(rows, blocks, Detail::Units, &Run::default());
    let decided = table.raw(&names, classify).expect("nobody cancels");
    decided.rows().map(|decision| (decision.class, decision.units, decision.cost)).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let csv = read(&arguments[1]);
    let splits: Vec<String> = std::fs::read_to_string(&arguments[2]).expect("splits").lines().map(str::to_string).collect();
    let settings: Vec<Settings> =
        serde_json::from_str(&std::fs::read_to_string(&arguments[3]).expect("settings")).expect("a list of options");
    for setting in &settings {
        let mut own = setting.clone();
        let groups = own.remove("groups");
        let lambda = own.remove("lambda").and_then(|lambda| lambda.as_f64()).expect("a price");
        let asking: Asking = options::read(&own).expect("options of datum_wise");
        for (at, split) in splits.iter().enumerate() {
            let part = |mark: u8| -> Vec<usize> {
                split.bytes().enumerate().filter(|(_, byte)| *byte == mark).map(|(row, _)| row).collect()
            };
            let (train, test) = (part(b'1'), part(b'0'));
            let label = |rows: &[usize]| -> Vec<f64> { rows.iter().map(|row| csv.label[*row]).collect() };
            let mut table = csv.table(&train);
            if let Some(groups) = &groups {
                table.common.groups = serde_json::from_value(groups.clone()).expect("a map of lists");
            }
            let problem = table.problem_of_rows(&label(&train));
            let units = problem.units.len() as f64;
            let start = Instant::now();
            let policy = asking.learn(lambda, &problem, &Run::new(at as u64)).expect("a policy");
            let train_seconds = start.elapsed().as_secs_f64();
            let test_table = csv.table(&test);
            let truth = label(&test);
            let start = Instant::now();
            let decided = decide(&policy, &test_table);
            let test_seconds = start.elapsed().as_secs_f64();
            let n = truth.len() as f64;
            let said = |class: usize| policy.classes[class].parse::<f64>().expect("classes are numbers");
            let at_class = |truth: f64| policy.classes.iter().position(|class| class.parse() == Ok(truth));
            let accuracy = decided.iter().zip(&truth).filter(|((class, ..), truth)| said(*class) == **truth).count() as f64 / n;
            let features = decided.iter().map(|(_, units, _)| units.len() as f64).sum::<f64>() / n;
            let cost = decided.iter().map(|(.., cost)| cost).sum::<f64>() / n;
            let mistakes = decided
                .iter()
                .zip(&truth)
                .map(|((class, ..), truth)| at_class(*truth).map_or(0.0, |truth| policy.rewards.mistake(*class, truth)))
                .sum::<f64>()
                / n;
            let few = decided.iter().filter(|(_, units, _)| units.len() <= 3).count() as f64 / n;
            let mut usage: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
            let mut counts: BTreeMap<String, f64> = BTreeMap::new();
            for ((_, units, _), truth) in decided.iter().zip(&truth) {
                let of_class = usage.entry(truth.to_string()).or_default();
                *counts.entry(truth.to_string()).or_default() += 1.0;
                for unit in units {
                    *of_class.entry(policy.units[*unit].name.clone()).or_default() += 1.0;
                }
            }
            for (class, used) in &mut usage {
                used.values_mut().for_each(|share| *share /= counts[class]);
            }
            let line: Value = json!({
                "setting": setting.iter().filter(|(name, _)| *name != "groups").map(|(n, v)| (n.clone(), v.clone())).collect::<Settings>(),
                "split": at, "accuracy": accuracy, "features": features, "sparsity": 1.0 - features / units, "cost": cost,
                "total_cost": cost + mistakes, "at_most_3": few, "train_seconds": train_seconds, "test_seconds": test_seconds,
                "usage": usage,
            });
            println!("{line}");
        }
    }
}
