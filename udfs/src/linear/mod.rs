//! Least squares and what grows out of it: products of columns, pursuits, paths, logistic regression.

pub(crate) mod chance;
pub(crate) mod lars;
pub(crate) mod logistic;
pub(crate) mod nnls;
pub(crate) mod products;
pub(crate) mod pursuit;
