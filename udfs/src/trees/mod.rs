//! Trees on binned columns: forests, and trees that correct each other.
//!
//! All sums are of whole numbers: labels, gradients and weights are rounded to multiples of a small unit before they are added. So a sum depends
//! neither on the order of the rows nor on threads, a sibling's histogram is exactly parent minus child, and a row of weight 2 is exactly the row twice.

pub(crate) mod boosted;
pub(crate) mod boosting;
pub(crate) mod columns;
pub(crate) mod forest;
pub(crate) mod histogram;
pub(crate) mod importance;
pub(crate) mod pruning;
pub(crate) mod sample;
pub(crate) mod target;
pub(crate) mod tree;
