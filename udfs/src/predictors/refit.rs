//! Predictors that know no shortcut: every candidate is a fit from the beginning.

use crate::judging::folds::Folds;
use crate::judging::metric::Tally;
use crate::predictors::{Fitted, Predictor, Stage};
use crate::{Result, Run};

/// Learns from some rows and predicts others: the label's columns, centred as the folds's are.
pub(crate) trait Learner: Send + Sync {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>>;
}

impl Learner for Box<dyn Learner> {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        (**self).predict(folds, columns, learn, rows, run)
    }
}

#[derive(Clone)]
pub(crate) struct Refit<'a> {
    folds: &'a Folds,
    learner: std::sync::Arc<dyn Learner + 'a>,
    chosen: Vec<usize>,
}

impl<'a> Refit<'a> {
    pub fn new(folds: &'a Folds, learner: impl Learner + 'a) -> Self {
        Self { folds, learner: std::sync::Arc::new(learner), chosen: Vec::new() }
    }

    /// What a fit takes beside the learner's own: which rows it is about, and its predictions.
    fn bytes(&self) -> usize {
        self.folds.rows() * (3 * size_of::<usize>() + size_of::<Vec<f64>>() + (self.folds.labels.len() + 2) * size_of::<f64>())
    }

    fn with(&self, unit: &[usize]) -> Vec<usize> {
        [&self.chosen, unit].concat()
    }
}

impl<'a> Predictor<'a> for Refit<'a> {
    fn stage(&self, _: usize, _: &Run) -> Result<Box<dyn Stage + '_>> {
        Ok(Box::new(self.clone()))
    }

    fn fit(&mut self, unit: &[usize], run: &Run) -> Result<Fitted> {
        let (mut train, mut valid) = (Tally::default(), Tally::default());
        for fit in 0..self.folds.held_out.len() {
            run.check()?;
            let _memory = run.reserve(self.bytes())?;
            let learn = self.folds.learnt_rows(fit);
            let all: Vec<usize> = learn.iter().copied().chain(self.folds.held_out_rows(fit)).collect();
            let predictions = self.learner.predict(self.folds, &self.with(unit), &learn, &all, run)?;
            for (at, (row, prediction)) in all.iter().zip(&predictions).enumerate() {
                let tally = if at < learn.len() { &mut train } else { &mut valid };
                tally.add(self.folds, *row, prediction);
            }
        }
        Ok(Fitted { train, valid })
    }

    fn keep(&mut self, unit: &[usize]) {
        self.chosen.extend(unit);
    }

    fn copy(&self) -> Box<dyn Predictor<'a> + 'a> {
        Box::new(self.clone())
    }
}

impl Stage for Refit<'_> {
    fn loss(&self, unit: &[usize], run: &Run) -> Result<f64> {
        let mut judged = Tally::default();
        for fit in 0..self.folds.held_out.len() {
            run.check()?;
            let _memory = run.reserve(self.bytes())?;
            let rows: Vec<usize> = self.folds.held_out_rows(fit).collect();
            let learn = self.folds.learnt_rows(fit);
            let predictions = self.learner.predict(self.folds, &self.with(unit), &learn, &rows, run)?;
            for (row, prediction) in rows.iter().zip(&predictions) {
                judged.add(self.folds, *row, prediction);
            }
        }
        Ok(judged.criterion(self.folds.is_absolute))
    }
}
