//! What is in the columns of a table, gathered in one pass: [`table`] for all of them, [`values`] for one. Whatever is gathered is the same in any order of the rows
//! and however they are dealt out, so that partitions can be gathered apart and merged.

pub(crate) mod association;
pub(crate) mod distinct;
pub(crate) mod likeness;
pub(crate) mod table;
pub(crate) mod values;
