//! Least squares and what grows out of it: products of columns, pursuits, paths, logistic regression.

pub(crate) mod chance;
pub(crate) mod classifier;
pub(crate) mod descent;
pub(crate) mod elimination;
pub(crate) mod lars;
pub(crate) mod logistic;
pub(crate) mod nnls;
pub(crate) mod path;
pub(crate) mod penalized;
pub(crate) mod products;
pub(crate) mod pursuit;
pub(crate) mod splicing;
pub(crate) mod spline;
