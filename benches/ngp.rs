//! Neural greedy pursuit: what it finds, and how fast. `benches/ngp.sh` runs it with its data and its rival.
//!
//!     ngp recovery                       made-up problems: false and missed features, errors, thresholds
//!     ngp found NAME ROWS RUNS SEED OPTIONS   one of them, by eta alone, with options in JSON: what is false and missed, in which runs
//!     ngp missed NAME ROWS RUNS SEED OPTIONS  the same with k known
//!     ngp boston TABLE                   with 100 noise columns: false features, error on rows of its own
//!     ngp mnist TRAIN TEST               windows of pixels: test accuracy
//!     ngp cnn TRAIN TEST                 the same with a network of filters, which takes minutes
//!     ngp speed PYTHON SCRIPT            against numpy in the same run
//!
//! A table is a file of float64: rows, columns, then the columns one after the other, the label last.

use std::process::Command;
use std::time::Instant;

use pursuit_udfs::testing::Table;
use pursuit_udfs::{Count, Metric, Problem, Ranking, Run, SampleProblem, Settings, Task, selectors, ssfn_on_other_rows};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["recovery"] => recovery(),
        [known @ ("missed" | "found"), name, rows, runs, seed, options] => {
            let number = |text: &str| text.parse().expect("a number");
            missed(name, number(rows), number(runs) as u64, number(seed) as u64, options, known == "missed");
        }
        ["boston", table] => boston(&read(table)),
        ["mnist", train, test] => mnist(&read(train), &read(test)),
        ["cnn", train, test] => cnn(&read(train), &read(test)),
        ["speed", python, script] => speed(python, script),
        _ => println!("ngp: run benches/ngp.sh, which knows the arguments"),
    }
}

/// Of tables and of runs. The defaults of `ngp` were chosen on the tables from 1000, 5000 and 9000 on.
const SEED: u64 = 12000;

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

struct Mean(f64, f64, usize, f64);

fn runs(name: &str, rows: usize, runs: u64, k: Count, features: usize) -> Mean {
    let mut sum = Mean(0.0, 0.0, 0, 0.0);
    for run in 0..runs {
        let problem = made_up(name, rows, SEED + run, k);
        let ranking = select(&problem, r#"{"metric": "nme"}"#, SEED + run);
        let (wrong, missed) = rates(&problem, &ranking);
        sum.0 += wrong / runs as f64;
        sum.1 += missed / runs as f64;
        sum.2 += usize::from(wrong == 0.0 && missed == 0.0);
        let at = ranking.choices.len().min(features) - 1;
        sum.3 += ranking.choices[at].valid_score.unwrap_or(0.0) / runs as f64;
    }
    sum
}

fn recovery() {
    println!("eta alone, 10 runs            rows   false  missed  exact  NME dB, rows held out");
    for (name, rows, features) in
        [("artificial", 1000, 5), ("artificial", 300, 5), ("ohm", 1000, 2), ("planck", 1000, 2), ("gravitation", 1000, 3)]
    {
        let mean = runs(name, rows, 10, Count::Auto, features);
        println!("{name:<28} {rows:>5}  {:>6.3}  {:>6.3}  {:>2}/10  {:>7.2}", mean.0, mean.1, mean.2, mean.3);
    }
    println!("k known, 100 runs: rows of the paper's threshold, and fewer; missed, of which 0.005 is the threshold");
    for (name, features, sizes) in [
        ("planck", 2, [50, 80, 130]),
        ("ohm", 2, [60, 100, 220]),
        ("artificial", 5, [200, 225, 250]),
        ("gravitation", 3, [100, 200, 330]),
    ] {
        for rows in sizes {
            let mean = runs(name, rows, 100, Count::Exactly(features), features);
            println!("{name:<28} {rows:>5}          {:>6.4}  {:>3}/100", mean.1, mean.2);
        }
    }
}

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

/// Columns, the label last.
fn read(path: &str) -> Vec<Vec<f64>> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number)).collect();
    numbers[2..].chunks_exact(numbers[0] as usize).map(<[f64]>::to_vec).collect()
}

/// 506 rows in thirds, of which two are learnt from, five times; 13 features and 100 of noise.
fn boston(table: &[Vec<f64>]) {
    let (mut wrong, mut train, mut test, mut found) = (0.0, 0.0, 0.0, 0.0);
    let runs = 10;
    for run in 0..runs {
        let rows = table[0].len();
        let mut random = Run::new(run).random("boston", 0);
        let mut order: Vec<usize> = (0..rows).collect();
        random.shuffle(&mut order);
        let pick = |column: &[f64]| order.iter().map(|row| column[*row]).collect::<Vec<f64>>();
        let (label, features) = table.split_last().expect("there is a label");
        let mut both = Table::new();
        for (at, column) in features.iter().enumerate() {
            both = both.numbers(&format!("x{at}"), &pick(column));
        }
        for at in 0..100 {
            let noise: Vec<f64> = (0..rows).map(|_| 10.0 + 10.0 * random.uniform()).collect();
            both = both.numbers(&format!("noise_{at}"), &noise);
        }
        both.common.k = Count::Auto;
        let label = pick(label);
        let learn = rows * 2 / 3 + 2;
        let (problem, others) = both.problem_and_others(&label, learn);
        let ranking = select(&problem, "{}", run);
        wrong += rates(&problem, &ranking).0 / runs as f64;
        found += ranking.choices.len() as f64 / runs as f64;
        let scores = ssfn_on_other_rows(&problem, &ranking.units(), &others, 100, Metric::Nme).expect("it was fitted before");
        train += scores.0 / runs as f64;
        test += scores.1 / runs as f64;
    }
    println!(
        "boston, 339 of 506 rows, {runs} splits: {found:.1} features, false {wrong:.3}, NME train {train:.2} dB, test {test:.2} dB"
    );
}

/// Images to learn from above those to judge by, in windows of 4 × 4, 19 of 49 of which are wanted; and the label.
fn images(train: &[Vec<f64>], test: &[Vec<f64>]) -> (Table, Vec<f64>) {
    let joined = |at: usize| [&train[at][..], &test[at]].concat();
    let mut table = Table { task: Some(Task::Classification), ..Table::new() };
    for at in 0..784 {
        table = table.numbers(&format!("pixel_{at:03}"), &joined(at));
        let window = format!("window_{}_{}", at / 28 / 4, at % 28 / 4);
        table.common.groups.entry(window).or_default().push(format!("pixel_{at:03}"));
    }
    table.common.standardize = false;
    (table.k(19), joined(784))
}

/// Windows chosen by ssfn and by cnn, with one pass over the rows for a candidate, and what a cnn of ten passes makes of either. Two thousand test rows.
fn cnn(train: &[Vec<f64>], test: &[Vec<f64>]) {
    let own = train[0].len();
    let test: Vec<Vec<f64>> = test.iter().map(|column| column[..2000.min(column.len())].to_vec()).collect();
    let (table, label) = images(train, &test);
    let (problem, _) = table.problem_and_others(&label, own);
    let one_pass = r#"{"predictor": ["cnn"], "image": [28, 28], "epochs": 1, "validation": 0.2}"#;
    for (who, options) in [("ssfn", "{}"), ("cnn", one_pass)] {
        let start = Instant::now();
        let ranking = select(&problem, options, 0);
        let seconds = start.elapsed().as_secs_f64();
        // All chosen windows are one unit, the others another: one fit with the first, judged by the test rows.
        let names: Vec<&str> = ranking.units().iter().map(|unit| &problem.units[*unit].name[..]).collect();
        let mut both = table.clone().k(1);
        let (chosen, others): (Vec<_>, Vec<_>) =
            table.common.groups.clone().into_iter().partition(|(window, _)| names.contains(&window.as_str()));
        let pixels = |windows: Vec<(String, Vec<String>)>| windows.into_iter().flat_map(|(_, pixels)| pixels).collect();
        both.common.groups = [("chosen".to_string(), pixels(chosen)), ("others".to_string(), pixels(others))].into();
        both.common.must_include = vec!["chosen".to_string()];
        let judged = both.problem_with_held_out(&label, own);
        let start = Instant::now();
        let fitted = select(&judged, r#"{"predictor": ["cnn"], "image": [28, 28], "epochs": 10}"#, 0);
        let fit = start.elapsed().as_secs_f64();
        let score = |score: Option<f64>| score.expect("ngp scores");
        let (learnt, held_out) = (score(fitted.choices[0].train_score), score(fitted.choices[0].valid_score));
        println!(
            "mnist, {own} rows, 19 of 49 windows by {who} ({seconds:.0} s), then cnn: accuracy train {learnt:.4}, test {held_out:.4} ({fit:.1} s)"
        );
    }
}

/// A thousand rows to learn from.
fn mnist(train: &[Vec<f64>], test: &[Vec<f64>]) {
    let own = train[0].len();
    let (mut table, label) = images(train, test);
    for standardize in [false, true] {
        table.common.standardize = standardize;
        let (problem, others) = table.problem_and_others(&label, own);
        for neurons in [100, 1000] {
            let start = Instant::now();
            let ranking = select(&problem, &format!(r#"{{"neurons": {}}}"#, neurons.min(100)), 0);
            let seconds = start.elapsed().as_secs_f64();
            let scores =
                ssfn_on_other_rows(&problem, &ranking.units(), &others, neurons, Metric::Accuracy).expect("it was fitted before");
            println!(
                "mnist, {own} rows, 19 of 49 windows, standardize {standardize}, {neurons} neurons at the end: accuracy train {:.4}, test {:.4} ({seconds:.1} s)",
                scores.0, scores.1
            );
        }
    }
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
