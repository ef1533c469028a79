//! Neural greedy pursuit: how fast, and what other options find. `benches/ngp.sh` runs it with its rival; what the defaults find is in benches/papers.
//!
//!     ngp found NAME ROWS RUNS SEED OPTIONS   one of them, by eta alone, with options in JSON: what is false and missed, in which runs
//!     ngp missed NAME ROWS RUNS SEED OPTIONS  the same with k known
//!     ngp speed PYTHON SCRIPT            against numpy in the same run

use std::process::Command;
use std::time::Instant;

use pursuit_udfs::testing::Table;
use pursuit_udfs::{Count, Problem, Ranking, Run, SampleProblem, Settings, selectors};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [known @ ("missed" | "found"), name, rows, runs, seed, options] => {
            let number = |text: &str| text.parse().expect("a number");
            missed(name, number(rows), number(runs) as u64, number(seed) as u64, options, known == "missed");
        }
        ["speed", python, script] => speed(python, script),
        _ => println!("ngp: run benches/ngp.sh, which knows the arguments"),
    }
}

fn settings(json: &str) -> Settings {
    serde_json::from_str(json).expect("options are JSON")
}

fn select(problem: &Problem, options: &str, seed: u64) -> Ranking {
    let spec = selectors().into_iter().find(|spec| spec.name == "neural_greedy_pursuit").expect("it is registered");
    let selector = spec.selector(&settings(options)).expect("options are right");
    selector.select(problem, &Run::new(seed)).expect("the problem is sound")
}

fn made_up(name: &str, rows: usize, seed: u64, k: Count) -> Problem {
    let problem = SampleProblem::new(name, rows, seed, &Settings::new()).expect("there is such a problem");
    let columns = problem.table(0);
    let (label, features) = columns.split_last().expect("there is a label");
    let mut table = problem.names.iter().zip(features).fold(Table::new(), |table, (name, values)| table.numbers(name, values));
    table.common.k = k;
    table.problem_of_rows(label)
}

fn is_noise(name: &str) -> bool {
    name.starts_with("noise")
}

/// Shares of false and of missed features.
fn rates(problem: &Problem, ranking: &Ranking) -> (f64, f64) {
    let there = problem.units.iter().filter(|unit| !is_noise(&unit.name)).count() as f64;
    let found = ranking.choices.len() as f64;
    let wrong = ranking.choices.iter().filter(|choice| is_noise(&problem.units[choice.unit].name)).count() as f64;
    (wrong / found, (there - (found - wrong)) / there)
}

/// The defaults of `ngp` were chosen on the tables from 1000, 5000 and 9000 on.
fn missed(name: &str, rows: usize, runs: u64, seed: u64, options: &str, is_known: bool) {
    let (mut wrong, mut missed, mut exact, mut seconds) = (0.0, 0.0, 0, 0.0);
    for run in seed..seed + runs {
        let mut problem = made_up(name, rows, run, Count::Auto);
        if is_known {
            let features = problem.units.iter().filter(|unit| !is_noise(&unit.name)).count();
            problem = made_up(name, rows, run, Count::Exactly(features));
        }
        let start = Instant::now();
        let ranking = select(&problem, options, run);
        seconds += start.elapsed().as_secs_f64();
        let rates = rates(&problem, &ranking);
        wrong += rates.0 / runs as f64;
        missed += rates.1 / runs as f64;
        if rates == (0.0, 0.0) {
            exact += 1;
        } else {
            let names: Vec<&str> = ranking.units().iter().map(|unit| &problem.units[*unit].name[..]).collect();
            println!("run {run}: {}", names.join(", "));
        }
    }
    let seconds = seconds / runs as f64;
    println!("{name}, {rows} rows, {options}: false {wrong:.4}, missed {missed:.4}, exact {exact}/{runs}, {seconds:.3} s a run");
}

fn speed(python: &str, script: &str) {
    let path = std::env::temp_dir().join("pursuit_ngp.bin");
    let write = |columns: usize| {
        let settings = settings(&format!(r#"{{"columns": {columns}}}"#));
        let problem = SampleProblem::new("artificial", 1000, 1, &settings).expect("there is such a problem");
        let columns = problem.table(0);
        let bytes: Vec<u8> = columns.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(&path, bytes).expect("there is room");
        let (label, features) = columns.split_last().expect("there is a label");
        let named = problem.names.iter().zip(features);
        named.fold(Table::new(), |table, (name, values)| table.numbers(name, values)).k(5).problem_of_rows(label)
    };
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
    let (one, two) = (pool(1), pool(2));
    let ours = |problem: &Problem, options: &str, pool: &rayon::ThreadPool| {
        let start = Instant::now();
        let ranking = pool.install(|| select(problem, options, 0));
        let mut units = ranking.units();
        units.sort_unstable();
        assert_eq!(units, [0, 1, 2, 3, 4], "it finds the five");
        start.elapsed().as_secs_f64()
    };
    let theirs = |columns: usize, folds: usize, shortlist: &str, threads: usize| {
        let (columns, folds) = (columns.to_string(), folds.to_string());
        let arguments = [script, path.to_str().expect("a path"), "1000", &columns, "5", "100", &folds, shortlist];
        let output =
            Command::new(python).args(arguments).env("OPENBLAS_NUM_THREADS", threads.to_string()).output().expect("python");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).to_string();
        let (chosen, seconds) = text.trim().split_once(' ').expect("features and seconds");
        let mut units: Vec<&str> = chosen.split(',').collect();
        units.sort_unstable();
        assert_eq!(units, ["0", "1", "2", "3", "4"], "it finds the five");
        seconds.parse::<f64>().expect("seconds")
    };
    let best = |measure: &dyn Fn() -> f64| (0..3).map(|_| measure()).fold(f64::INFINITY, f64::min);
    let problem = write(500);
    println!("artificial, 1000 × 500, five features, 100 neurons; seconds, the best of three");
    for (what, folds, options) in [("a tenth held out", 0, r#"{"validation": 0.1"#), ("five folds", 5, r#"{"folds": 5"#)] {
        for (judged, shortlist) in [("every candidate by all neurons", "1"), ("a twentieth of them", "0.05")] {
            let numpy = [1, 2].map(|threads| best(&|| theirs(500, folds, shortlist, threads)));
            let options = format!(r#"{options}, "shortlist": {shortlist}}}"#);
            let ours = [&one, &two].map(|pool| best(&|| ours(&problem, &options, pool)));
            for at in 0..2 {
                let (threads, theirs, ours) = (["one thread", "two threads"][at], numpy[at], ours[at]);
                println!("{what}, {judged}, {threads}: numpy {theirs:.3}, ours {ours:.3}, {:.1} times as fast", theirs / ours);
            }
            println!("    from one thread to two: numpy {:.2}, ours {:.2} times as fast", numpy[0] / numpy[1], ours[0] / ours[1]);
        }
    }
    for columns in [250, 500, 1000, 2000] {
        let problem = write(columns);
        println!("{columns:>5} columns: {:.3} s", best(&|| ours(&problem, "{}", &two)));
    }
}
