//! One binary for all tests that need DataFusion: it is linked once.
//!
//! - `slt`: what a user sees, query by query (tests/slt). A new selector's test goes there.
//! - `documents`: every example and every query in the documents runs.
//! - `reference`: agreement with scikit-learn.
//! - `behaviour`: cancellation, memory, threads, files: what a query and its answer cannot show.
//! - `doors`: sessions, catalogs and what the engine's sources may name.
//! - `filters`: agreement of filters and penalties with scikit-learn, statsmodels, scipy, mrmr_selection and abess.
//! - `generated`: calls made up at random, on odd tables.
//! - `models`: what is fitted, kept, applied and written as SQL; what a table is said to hold.
//! - `page`: the page of `pursuit ui`, without a browser.
//! - `partitions`: the answer does not depend on how rows are cut and read.
//! - `shell`: what people type at the prompt, scripts, pictures and Ctrl-C.
//! - `threads`: many selections at once, nested ones, and what is at work after a cancellation.
//! - `random`: random tables against a plain dense reference.
//! - `rivals`: agreement of additive models, group LASSO, knockoffs, BART and LassoNet with pyGAM, skglm, knockpy, bartz and lassonet.
//! - `wrappers`: agreement with scikit-learn's wrappers and BorutaPy.

mod behaviour;
mod documents;
mod doors;
mod filters;
mod generated;
mod models;
mod page;
mod partitions;
mod random;
mod reference;
mod rivals;
mod session;
mod shell;
mod slt;
mod threads;
mod wrappers;
