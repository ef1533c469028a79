use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::contract::report::{Kind, Report, Values};
use crate::judging::judge::{self, Verdict};
use crate::network::samples::Inputs;
use crate::network::training::Training;
use crate::predictors::linear;
use crate::predictors::trees::{Others, Trees};
use crate::trees::boosting::Boosting;
use crate::{Check, Error, Label, Problem, Result, Rows, Run, Split, choice, report};

choice! {
    /// What predicts the label.
    pub enum Model {
        Mlp = "mlp",
        Linear = "linear",
        Logistic = "logistic",
        Forest = "forest",
        Boosting = "boosting",
    }
}

report! {
    /// How well features predict a label.
    ///
    /// Trains a model on the given features (all, if none are given) and tells how good its predictions are: for classes accuracy, log loss and the area
    /// under the ROC curve (with many classes the mean over each against all others), for numbers R², RMSE and MAE.
    ///
    /// Judged on the table given as `test`, which is filled and scaled as the training rows are; without one, on a
    /// held-out share of the rows (`validation`, by default a fifth). The row `train` tells the same for the rows learnt from.
    /// Trained anew for each of the `seeds`; `value` is the mean, `deviation` the standard deviation. `value` is NULL where the rows cannot tell: R² of a label
    /// that does not vary in them, the area under the curve of one class. `seeds` counts those that could be judged.
    ///
    /// The model is a network, least squares (which has no log loss, because fitted values are no probabilities), logistic regression, a random forest of 100 trees, or
    /// boosted trees, of which there are 100 (of three classes and more for each class).
    #[report(name = "evaluate", aliases = [], table = ("test", "The rows to judge by, with the same columns."))]
    pub struct Evaluate {
        /// What predicts the label.
        model: Model = Model::Mlp;
        /// How many times to train, each time from another random start.
        seeds: usize = 1, Check::Between(1.0, 1000.0);
        ..training: Training;
    }
}

/// Passes over the rows, unless there is a reason for others: as many as the paper's judges take.
const EPOCHS: usize = 80;
const STEPS_MIN: usize = 2000;
const STEPS_MAX: usize = 40_000;

/// Trees of a forest, rounds of boosting.
const TREES: usize = 100;

impl Report for Evaluate {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        vec![
            ("split", Kind::Text),
            ("metric", Kind::Text),
            ("value", Kind::Number),
            ("deviation", Kind::Number),
            ("seeds", Kind::Whole),
        ]
    }

    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let verdicts = self.verdicts(problem, run)?;
        let (mut splits, mut metrics, mut seeds) = (Vec::new(), Vec::new(), Vec::new());
        let (mut values, mut deviations): (Vec<Option<f64>>, Vec<Option<f64>>) = (Vec::new(), Vec::new());
        for (at, split) in ["test", "train"].into_iter().enumerate() {
            for (which, (metric, _)) in verdicts[0][at].metrics.iter().enumerate() {
                let of_seeds: Vec<f64> = verdicts.iter().filter_map(|seed| seed[at].metrics[which].1).collect();
                let mean = of_seeds.iter().sum::<f64>() / of_seeds.len() as f64;
                let squares: f64 = of_seeds.iter().map(|value| (value - mean).powi(2)).sum();
                splits.push(split);
                metrics.push(*metric);
                values.push((!of_seeds.is_empty()).then_some(mean));
                deviations.push((of_seeds.len() > 1).then(|| (squares / (of_seeds.len() - 1) as f64).sqrt()));
                seeds.push(of_seeds.len());
            }
        }
        Ok(vec![
            Values::texts(splits),
            Values::texts(metrics),
            Values::Number(values),
            Values::Number(deviations),
            Values::wholes(seeds),
        ])
    }
}

impl Evaluate {
    /// For each seed the verdicts on the rows judged by and on those learnt from.
    fn verdicts(&self, problem: &Problem, run: &Run) -> Result<Vec<Vec<Verdict>>> {
        let rows = problem.rows();
        if self.model == Model::Logistic && problem.label == Label::Numbers {
            return Err(Error::data(
                "model => 'logistic' predicts classes, and the label is a number; use model => 'linear', 'forest', 'boosting' or 'mlp'",
            ));
        }
        if let Some(test) = &problem.held_out
            && test.rows() == 0
        {
            return Err(Error::data("the table given as `test` has no rows with a label"));
        }
        if problem.held_out.is_none() && rows.rows() < 10 {
            return Err(Error::data(format!("{} rows are too few to hold some out; give a table as `test`", rows.rows())));
        }
        let columns: Vec<usize> = (0..rows.columns.len()).filter(|at| rows.columns[*at].iter().any(|x| *x != 0.0)).collect();
        let inputs = Inputs::new(problem, rows, columns);
        // The rows lie in memory once, whatever the seeds make of them; trees have bins of their own.
        let samples = |rows: &Rows| inputs.samples(rows, &Split::none(rows.rows()).train, run).map(Arc::new);
        let samples = match self.model {
            Model::Forest | Model::Boosting => None,
            _ => Some((samples(rows)?, problem.held_out.as_ref().map(|test| samples(test)).transpose()?)),
        };
        let begun = AtomicUsize::new(0);
        let one = |seed: usize| {
            run.step(begun.fetch_add(1, Ordering::Relaxed), self.seeds)?;
            let run = run.with_seed(seed as u64);
            let split = if problem.held_out.is_some() { Split::none(rows.rows()) } else { self.training.split(rows, true, &run) };
            let by_trees = |trees: Trees| {
                let others = problem.held_out.as_ref().map_or(Others::Rows(&split.valid), |test| Others::Table(test));
                trees.verdicts(problem, &inputs, &split.train, others, &run)
            };
            let Some((own, others)) = &samples else {
                return by_trees(match self.model {
                    Model::Boosting => Trees::Boosting(Boosting { rounds: TREES, ..Boosting::default() }),
                    _ => Trees::forest(TREES),
                });
            };
            let part = |rows: &[usize]| -> Arc<[u32]> { rows.iter().map(|row| *row as u32).collect() };
            let (learnt, valid) = (part(&split.train), part(&split.valid));
            let all = others.as_ref().map(|others| others.all());
            let train = (own, &learnt);
            let test = others.as_ref().zip(all.as_ref()).unwrap_or((own, &valid));
            let pass_rows = own.pass_rows(&learnt);
            let a_pass = (pass_rows / self.training.batch_rows(pass_rows)).max(1);
            let steps = match self.training.epochs {
                Some(epochs) => epochs * a_pass,
                None => (EPOCHS * a_pass).clamp(STEPS_MIN, STEPS_MAX),
            };
            match self.model {
                Model::Linear => linear::least_squares(&inputs, train, &[test, train], &run),
                Model::Logistic => linear::logistic(&inputs, train, &[test, train], &run),
                _ => judge::fit(&inputs, train, &[test, train], &self.training, steps, &run),
            }
        };
        (0..self.seeds).into_par_iter().map(one).collect()
    }
}
