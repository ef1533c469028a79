//! What the neural selectors share: units as inputs of one network, and what is reported of the order that they find.

pub(crate) mod candidates;
pub(crate) mod contributions;
pub(crate) mod group_penalty;
pub(crate) mod one_pass;
pub(crate) mod row_attention;
pub(crate) mod swaps;
pub(crate) mod workbench;
