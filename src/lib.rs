//! Feature selection in SQL: ask which columns of a table predict another one, and get a ranked table back.
//!
//! Register the selectors on the session that you already have, and they are table functions:
//!
//! ```
//! use datafusion::prelude::SessionContext;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let ctx = SessionContext::new();
//! pursuit::register(&ctx)?;
//!
//! ctx.sql("CREATE TABLE t AS SELECT * FROM sample_problem('linear', 100, 1)").await?.collect().await?;
//! let ranking = ctx.sql("SELECT rank, feature FROM omp(t, label => label, k => 3)").await?;
//! assert_eq!(ranking.count().await?, 3);
//! # Ok(())
//! # }
//! ```
//!
//! [`Engine`] can do more: selectors of your own, sample tables, sessions that are still being built. [`SelectFeatures`] selects from
//! a DataFrame. With `default-features = false` the library is built without the shell and what that brings along. The selectors themselves, and how to write one, are in [`pursuit_udfs`].

mod answer;
mod applier;
mod apply;
mod apply_exec;
mod call;
mod catalog;
mod chosen;
mod classes;
mod columns;
mod dataframe;
mod defaults;
mod engine;
mod error;
mod exec;
mod expand;
mod function;
mod gathered;
mod gram;
mod gram_groups;
mod in_order;
mod inputs;
mod lanes;
mod manual;
#[cfg(feature = "shell")]
mod measured;
mod memory;
mod on_model;
mod operator;
mod operator_table;
mod option_table;
mod panics;
mod pass;
mod planner;
pub mod plot;
mod predicted;
mod progress;
mod question;
mod same_rows;
mod sample_problem;
mod samples;
mod select_from;
mod shares;
#[cfg(feature = "shell")]
pub mod shell;
mod summarize;
mod table;
mod travel;
#[cfg(feature = "shell")]
pub mod ui;
mod wait;
mod wanted;
mod which;

pub use dataframe::SelectFeatures;
pub use engine::Engine;
pub use progress::Progress;
pub use travel::Travel;
pub use wanted::{Wanted, Wish};

/// Marks a session in which a path is a table, by `SessionConfig::with_extension`: what is wrong with a path is then said by what is on the disk. Without it nobody learns from a mistake which files there are.
#[derive(Debug)]
pub struct ReadsFiles;

/// Makes every selector and report that ships with Pursuit a table function of the session.
pub fn register(ctx: &datafusion::prelude::SessionContext) -> datafusion::error::Result<()> {
    Engine::default().register(ctx)
}
