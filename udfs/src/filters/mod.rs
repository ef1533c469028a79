//! What filters share: scores of units as a ranking, p-values and false discoveries, and what scores are made of.

pub(crate) mod counts;
pub(crate) mod discovery;
pub(crate) mod greedy;
pub(crate) mod neighbours;
pub(crate) mod one_by_one;
pub(crate) mod variance;
