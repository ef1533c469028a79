use super::*;
use crate::Task;
use crate::registry::selectors;
use crate::testing::{Table, planted};

fn selector(name: &str) -> Arc<dyn Selector> {
    selectors().into_iter().find(|spec| spec.name == name).unwrap().selector(&Settings::new()).unwrap()
}

/// The means over folds of each metric on the rows judged by.
fn tested(evaluate: &Evaluate, problem: &Problem, by: &dyn Selector, seed: u64) -> Vec<(String, f64)> {
    let values = evaluate.report_on(Some(by), problem, &Run::new(seed)).unwrap();
    let is_mean = |row: &usize| values[0].text(*row) == Some("test") && values[1].whole(*row).is_none();
    let of = |row: usize| Some((values[2].text(row)?.to_string(), values[3].number(row)?));
    (0..values[0].rows()).filter(is_mean).filter_map(of).collect()
}

fn noise(rows: usize, columns: usize, seed: u64, is_class: bool) -> Problem {
    let table = Table::random(rows, columns, seed).k(10).folds(5);
    let label: Vec<f64> = planted(rows, 1, &[0], 1.0, 1000 + seed).1;
    let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    let task = if is_class { Task::Classification } else { Task::Regression };
    Table { task: Some(task), ..table }.problem_of_rows(if is_class { &classes } else { &label })
}

/// A selection that sees the rows that judge it reaches 0.9 here.
#[test]
fn noise_is_at_chance() {
    let seeds = 20;
    let evaluate = Evaluate { model: Model::Logistic, selector: Some("omp".into()), ..Evaluate::default() };
    let omp = selector("omp");
    let mut means: std::collections::BTreeMap<String, f64> = Default::default();
    for seed in 0..seeds {
        for (metric, value) in tested(&evaluate, &noise(62, 2000, seed, true), &*omp, seed) {
            *means.entry(metric).or_default() += value / seeds as f64;
        }
    }
    // Of 20 × 62 rows the standard error of a share is 0.014.
    for metric in ["accuracy", "auc", "balanced_accuracy", "f1"] {
        assert!((means[metric] - 0.5).abs() < 0.05, "{metric}: {means:?}");
    }
    // No better than saying nothing, ln 2.
    assert!(means["log_loss"] > 0.69, "{means:?}");
    let evaluate = Evaluate { model: Model::Linear, ..evaluate };
    let r2: f64 = (0..seeds).map(|seed| tested(&evaluate, &noise(62, 500, seed, false), &*omp, seed)[0].1 / seeds as f64).sum();
    assert!(r2 < 0.0, "{r2}");
}

#[test]
fn each_fold_is_told_and_their_mean_is_the_mean() {
    let (table, label) = planted(120, 5, &[1, 3], 0.5, 71);
    let problem = table.k(2).folds(4).problem_of_rows(&label);
    let evaluate = Evaluate { model: Model::Linear, selector: Some("omp".into()), ..Evaluate::default() };
    let values = evaluate.report_on(Some(&*selector("omp")), &problem, &Run::new(1)).unwrap();
    let r2 = |fold: Option<i64>| {
        let is = |row: &usize| {
            values[0].text(*row) == Some("test") && values[2].text(*row) == Some("r2") && values[1].whole(*row) == fold
        };
        (0..values[0].rows()).find(is).unwrap()
    };
    let folds: Vec<f64> = (1..=4).map(|fold| values[3].number(r2(Some(fold))).unwrap()).collect();
    let (mean, error) = crate::judging::size::mean_and_error(&folds);
    assert!((values[3].number(r2(None)).unwrap() - mean).abs() < 1e-12 && mean > 0.9);
    assert!((values[5].number(r2(None)).unwrap() - error).abs() < 1e-12);
}

#[test]
fn confusion_counts_every_row_once() {
    let problem = noise(62, 20, 3, true);
    let evaluate = Evaluate { model: Model::Logistic, confusion: true, ..Evaluate::default() };
    let values = evaluate.report(&problem, &Run::new(1)).unwrap();
    let is = |row: &usize| values[0].text(*row) == Some("test") && values[2].text(*row) == Some("confusion");
    let counts: Vec<f64> = (0..values[0].rows()).filter(is).filter_map(|row| values[3].number(row)).collect();
    assert_eq!((counts.len(), counts.iter().sum::<f64>()), (4, 62.0));
}

#[test]
fn nothing_chosen_is_judged_by_the_mean() {
    let (table, label) = planted(60, 3, &[1], 0.5, 7);
    let mut table = table.folds(3);
    table.common.k = crate::Count::OneSe;
    let noise: Vec<f64> = planted(60, 1, &[0], 1.0, 99).1;
    let evaluate = Evaluate { model: Model::Forest, selector: Some("omp".into()), ..Evaluate::default() };
    let of_noise = tested(&evaluate, &table.problem_of_rows(&noise), &*selector("omp"), 1);
    assert!(of_noise[0].1 < 0.2, "{of_noise:?}");
    let of_signal = tested(&evaluate, &table.problem_of_rows(&label), &*selector("omp"), 1);
    assert!(of_signal[0].1 > 0.6, "{of_signal:?}");
}
