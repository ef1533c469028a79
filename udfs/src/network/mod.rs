//! A multilayer perceptron, its batches, losses, optimiser, and the threads that train it.

pub(crate) mod adam;
pub(crate) mod batch;
pub(crate) mod input_penalty;
pub(crate) mod kept;
pub(crate) mod losses;
pub(crate) mod mlp;
pub(crate) mod samples;
pub(crate) mod skip;
pub(crate) mod sparse;
pub(crate) mod threads;
pub(crate) mod training;
