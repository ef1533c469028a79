//! Verdicts as the table that `evaluate` answers with.

use super::Verdicts;
use crate::contract::report::{Kind, Values};
use crate::judging::judge::Verdict;
use crate::judging::size::mean_and_error;
use crate::{Label, Problem};

pub(super) fn columns() -> Vec<(&'static str, Kind)> {
    vec![
        ("split", Kind::Text),
        ("fold", Kind::Whole),
        ("metric", Kind::Text),
        ("value", Kind::Number),
        ("deviation", Kind::Number),
        ("standard_error", Kind::Number),
        ("seeds", Kind::Whole),
        ("actual", Kind::Text),
        ("predicted", Kind::Text),
        ("note", Kind::Text),
    ]
}

#[derive(Default)]
struct Rows {
    splits: Vec<&'static str>,
    folds: Vec<Option<i64>>,
    metrics: Vec<&'static str>,
    values: Vec<Option<f64>>,
    deviations: Vec<Option<f64>>,
    errors: Vec<Option<f64>>,
    seeds: Vec<usize>,
    classes: Vec<Option<(String, String)>>,
}

const SPLITS: [&str; 2] = ["test", "train"];

/// For each seed the verdicts of its folds, of which there may be one.
pub(super) fn values(seeds: &[Verdicts], problem: &Problem, confusion: bool) -> Vec<Values> {
    let (mut rows, folds) = (Rows::default(), seeds[0].len());
    for (at, split) in SPLITS.into_iter().enumerate() {
        for (which, (metric, _)) in seeds[0][0][at].metrics.iter().enumerate() {
            // Of each seed the mean over folds, and of each fold the mean over seeds.
            let value = |seed: &Verdicts, fold: usize| seed[fold][at].metrics[which].1;
            let of_seeds: Vec<f64> = seeds
                .iter()
                .filter_map(|seed| mean(&(0..folds).filter_map(|fold| value(seed, fold)).collect::<Vec<_>>()))
                .collect();
            let of_folds: Vec<f64> = (0..folds)
                .filter_map(|fold| mean(&seeds.iter().filter_map(|seed| value(seed, fold)).collect::<Vec<_>>()))
                .collect();
            let known = |verdict: &Verdict| verdict.errors.iter().find(|(name, _)| name == metric).map(|(_, error)| *error);
            let error = match folds {
                1 => mean(&seeds.iter().filter_map(|seed| known(&seed[0][at])).collect::<Vec<_>>()),
                _ => (of_folds.len() > 1).then(|| mean_and_error(&of_folds).1),
            };
            rows.push(split, None, metric, &of_seeds, error, None);
        }
    }
    for fold in (0..folds).filter(|_| folds > 1) {
        for (at, split) in SPLITS.into_iter().enumerate() {
            for (which, (metric, _)) in seeds[0][0][at].metrics.iter().enumerate() {
                let of_seeds: Vec<f64> = seeds.iter().filter_map(|seed| seed[fold][at].metrics[which].1).collect();
                rows.push(split, Some(fold), metric, &of_seeds, None, None);
            }
        }
    }
    if let (true, Label::Classes(classes)) = (confusion, &problem.label) {
        for (at, split) in SPLITS.into_iter().enumerate() {
            for pair in 0..classes.len() * classes.len() {
                // Over all folds every row is judged once.
                let of_seeds: Vec<f64> =
                    seeds.iter().map(|seed| seed.iter().map(|fold| fold[at].confusion[pair]).sum()).collect();
                let names = (classes[pair / classes.len()].clone(), classes[pair % classes.len()].clone());
                rows.push(split, None, "confusion", &of_seeds, None, Some(names));
            }
        }
    }
    let note = vec![problem.caution.clone(); rows.splits.len()];
    vec![
        Values::texts(rows.splits),
        Values::Whole(rows.folds),
        Values::texts(rows.metrics),
        Values::Number(rows.values),
        Values::Number(rows.deviations),
        Values::Number(rows.errors),
        Values::wholes(rows.seeds),
        Values::Text(rows.classes.iter().map(|names| names.as_ref().map(|(actual, _)| actual.clone())).collect()),
        Values::Text(rows.classes.iter().map(|names| names.as_ref().map(|(_, predicted)| predicted.clone())).collect()),
        Values::Text(note),
    ]
}

impl Rows {
    fn push(
        &mut self,
        split: &'static str,
        fold: Option<usize>,
        metric: &'static str,
        of_seeds: &[f64],
        error: Option<f64>,
        classes: Option<(String, String)>,
    ) {
        self.splits.push(split);
        self.folds.push(fold.map(|fold| fold as i64 + 1));
        self.metrics.push(metric);
        self.values.push(mean(of_seeds));
        let deviation = mean_and_error(of_seeds).1 * (of_seeds.len() as f64).sqrt();
        self.deviations.push((of_seeds.len() > 1).then_some(deviation));
        self.errors.push(error);
        self.seeds.push(of_seeds.len());
        self.classes.push(classes);
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| mean_and_error(values).0)
}
