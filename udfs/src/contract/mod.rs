//! What a function is: a selector that ranks, a report with columns of its own, and how each is declared.

pub(crate) mod pass;
pub(crate) mod ranking;
pub(crate) mod report;
#[doc(hidden)]
pub mod selector;
