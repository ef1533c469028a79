use serde::{Deserialize, Serialize};

use crate::contract::report::{Kind, Repeats, Report, Values};
use crate::contract::selector::{Reads, Selector};
use crate::judging::answer::once;
use crate::judging::least_squares::beginnings;
use crate::judging::resample::{HeldOut, Pieces};
use crate::judging::size::{mean_and_error, most};
use crate::settings::repeated::Repeated;
use crate::{Error, Problem, Result, Run, report};

report! {
    /// Step by step: features, coefficients, how they predict.
    ///
    /// One row for each step and each feature that is in by then. `coefficient` is that of least squares on the features of the step, in the
    /// input's units; `train_score` the share of the label's variance that it explains where it was learnt, `valid_score` the share that it explains of rows held out. With `folds` the
    /// selection is repeated without each fold of the rows: where `fold` is NULL the path is that of all rows, and its `valid_score` the mean over the folds' paths.
    ///
    /// The score of a step in which a fold found nothing more worth choosing is that of its last one.
    ///
    /// Cost: `folds` + 1 selections; a selector that reads moments reads the table once all the same.
    #[report(name = "selection_path", aliases = [])]
    pub struct SelectionPath {
        ..repeated: Repeated;
    }
}

/// The path of one selection.
#[derive(Serialize, Deserialize)]
struct Path {
    fold: Option<usize>,
    order: Vec<usize>,
    coefficients: Vec<Vec<Option<f64>>>,
    train_scores: Vec<f64>,
    valid_scores: Vec<f64>,
}

impl Report for SelectionPath {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        vec![
            ("step", Kind::Whole),
            ("fold", Kind::Whole),
            ("feature", Kind::Text),
            ("coefficient", Kind::Number),
            ("train_score", Kind::Number),
            ("valid_score", Kind::Number),
        ]
    }

    fn repeats(&self) -> Option<Repeats> {
        Some(self.repeated.repeats())
    }

    fn reads(&self, selector: Option<&dyn Selector>) -> Reads {
        selector.map_or(Reads::Rows, Selector::reads)
    }

    fn repetitions(&self, folds: Option<usize>, _: usize) -> usize {
        1 + folds.unwrap_or(0)
    }

    fn report(&self, _: &Problem, _: &Run) -> Result<Vec<Values>> {
        Err(Error::call("needs a selector to repeat"))
    }

    fn report_on(&self, selector: Option<&dyn Selector>, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let Some(selector) = selector else { return self.report(problem, run) };
        let variance = problem.label_variance();
        let k = problem.folds.map_or(problem.k, |_| Some(most(problem)));
        let asked = Problem { k, folds: None, ..problem.clone() };
        let path = |fold: Option<usize>, problem: &Problem, held_out: &HeldOut, run: &Run| {
            let order = once(selector, problem, run)?.units();
            let judged = beginnings(problem, held_out, &order, run)?;
            let valid_scores = match held_out {
                HeldOut::Nothing => Vec::new(),
                _ => judged.errors.iter().map(|error| 1.0 - error / variance).collect(),
            };
            Ok(Path { fold, order, coefficients: judged.coefficients, train_scores: judged.explained, valid_scores })
        };
        let mut paths: Vec<Path> = run.repeat(
            || problem.fingerprint(),
            self.repetitions(problem.folds, 0),
            |mine, run| {
                let mut paths = Vec::new();
                if mine.contains(&0) {
                    paths.push(path(None, &asked, &HeldOut::Nothing, run)?);
                }
                let Some(folds) = problem.folds.filter(|_| mine != [0]) else { return Ok(paths) };
                let pieces = Pieces::new(&asked, run)?;
                let parts = pieces.folds(folds)?;
                for fold in mine.iter().filter(|at| **at > 0).map(|at| at - 1) {
                    run.step_with(fold, folds, || "folds".to_string())?;
                    let piece = pieces.without(&parts, fold, run)?;
                    paths.push(path(Some(fold), &piece.problem, &piece.held_out, run)?);
                }
                Ok(paths)
            },
        )?;
        if problem.folds.is_some() {
            let mean = |step: usize| {
                let scores: Vec<f64> =
                    paths[1..].iter().map(|path| path.valid_scores[step.min(path.valid_scores.len() - 1)]).collect();
                mean_and_error(&scores).0
            };
            paths[0].valid_scores = (0..=paths[0].order.len()).map(mean).collect();
        }
        Ok(values(&paths, problem))
    }
}

fn values(paths: &[Path], problem: &Problem) -> Vec<Values> {
    let rows = || {
        let steps =
            |path: &'_ Path| (1..=path.order.len()).flat_map(|step| (0..step).map(move |at| (step, at))).collect::<Vec<_>>();
        paths.iter().flat_map(move |path| steps(path).into_iter().map(move |(step, at)| (path, step, at)))
    };
    vec![
        Values::wholes(rows().map(|(_, step, _)| step)),
        Values::Whole(rows().map(|(path, ..)| path.fold.map(|fold| fold as i64 + 1)).collect()),
        Values::texts(rows().map(|(path, _, at)| problem.units[path.order[at]].name.as_str())),
        Values::Number(rows().map(|(path, step, at)| path.coefficients[step][at]).collect()),
        Values::numbers(rows().map(|(path, step, _)| path.train_scores[step])),
        Values::Number(rows().map(|(path, step, _)| path.valid_scores.get(step).copied()).collect()),
    ]
}
