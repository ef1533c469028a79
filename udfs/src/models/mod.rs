//! What `fit` makes and `predict` applies: models that are tables.
//!
//! One file a kind of model. Each makes rows of one table ([`table`]), reads them back whatever their order, and scores rows by them; linear models and trees also
//! say what they do as SQL ([`sql`]). What scores become, a number or a class with its probabilities, is in [`fitted`].

pub(crate) mod additive;
pub(crate) mod design;
pub(crate) mod fitted;
pub(crate) mod linear;
pub(crate) mod logistic;
pub(crate) mod network;
pub(crate) mod sql;
pub(crate) mod table;
pub(crate) mod trees;
