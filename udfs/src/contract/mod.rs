//! What a function is: a selector that ranks, a report with columns of its own, a model that is applied to rows, a summary that is gathered while they stream by, and
//! how each is declared.

pub(crate) mod model;
pub(crate) mod pass;
pub(crate) mod ranking;
pub(crate) mod report;
#[doc(hidden)]
pub mod selector;
pub(crate) mod summary;
