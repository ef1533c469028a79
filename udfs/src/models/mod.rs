//! Networks: what the neural selectors train, and what judges a selection.

pub(crate) mod candidates;
pub(crate) mod judge;
pub(crate) mod mlp;
pub(crate) mod samples;
pub(crate) mod training;
