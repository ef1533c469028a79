//! Predictors that are asked, again and again, how well they would do with one feature more.

pub(crate) mod cnn;
pub(crate) mod convolution;
pub(crate) mod greedy;
pub(crate) mod knn;
pub(crate) mod linear;
pub(crate) mod logistic;
pub(crate) mod mlp;
pub(crate) mod model;
pub(crate) mod panel;
pub(crate) mod probing;
pub(crate) mod readout;
pub(crate) mod refit;
pub(crate) mod ssfn;
pub(crate) mod ssfn_paper;
pub(crate) mod svm;
pub(crate) mod trees;
pub(crate) mod wrapped;

use crate::judging::folds::Folds;
use crate::judging::metric::Tally;
use crate::{Result, Run};

/// A predictor with the features that it has been given so far.
pub(crate) trait Predictor<'a>: Send + Sync {
    /// Makes ready to judge units of so many columns.
    fn stage(&self, width: usize, run: &Run) -> Result<Box<dyn Stage + '_>>;

    /// A smaller predictor that tells promising units from the others for less, if there is one.
    fn sketch(&self) -> Option<Box<dyn Predictor<'a> + 'a>> {
        None
    }

    /// The same without any features and with other random numbers, if its luck in them shows; judged by these rows.
    fn redrawn(&self, _folds: &'a Folds, _draw: u64) -> Option<Box<dyn Predictor<'a> + 'a>> {
        None
    }

    /// Fits with one unit more, tunes itself to that, and says how well it does. The unit is not kept.
    fn fit(&mut self, unit: &[usize], run: &Run) -> Result<Fitted>;

    /// Keeps a unit.
    fn keep(&mut self, unit: &[usize]);

    /// A copy, for looking ahead.
    fn copy(&self) -> Box<dyn Predictor<'a> + 'a>;
}

/// A predictor ready to judge the candidates of one step. Shared by threads.
pub(crate) trait Stage: Sync {
    /// The error on the rows held out, had the predictor this unit too.
    fn loss(&self, unit: &[usize], run: &Run) -> Result<f64>;
}

/// How well a predictor does, on the rows that it learnt from and on those held out.
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    pub train: Tally,
    pub valid: Tally,
}
