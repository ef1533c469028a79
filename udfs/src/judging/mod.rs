//! How good a set of features is: which rows are held out, what is fitted on the others, and by what it is measured.

pub(crate) mod answer;
pub(crate) mod apart;
pub(crate) mod exchange;
pub(crate) mod folds;
pub(crate) mod judge;
pub(crate) mod knockoffs;
pub(crate) mod least_squares;
mod measures;
pub(crate) mod metric;
pub(crate) mod notes;
pub(crate) mod resample;
pub(crate) mod size;
mod spending;
pub(crate) mod trials;
