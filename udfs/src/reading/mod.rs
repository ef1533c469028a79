//! From rows to a question: how a table is read, the forms it is kept in, and the checked problem that a selector gets.

pub(crate) mod bins;
pub(crate) mod block;
pub(crate) mod coding;
pub(crate) mod flags;
pub(crate) mod groups;
pub(crate) mod intake;
pub(crate) mod levels;
pub(crate) mod moments;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod parts;
pub(crate) mod pieces;
pub(crate) mod plan;
pub(crate) mod problem;
pub(crate) mod rows;
pub(crate) mod sample;
pub(crate) mod split;
pub(crate) mod table;
pub(crate) mod windows;
