//! Networks: what the neural selectors train, and what judges a selection.

pub(crate) mod attender;
pub(crate) mod candidates;
pub(crate) mod ground;
pub(crate) mod judge;
pub(crate) mod linear;
pub(crate) mod mlp;
pub(crate) mod penalty;
pub(crate) mod samples;
pub(crate) mod training;
