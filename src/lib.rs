//! Feature selection in SQL: ask which columns of a table predict another one, and get a ranked table back.
//!
//! Register the selectors on the session that you already have, and they are table functions:
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use pursuit::Engine;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let ctx = SessionContext::new();
//! Engine::default().with_samples().register(&ctx)?;
//!
//! let ranking = ctx.sql("SELECT rank, feature FROM omp('sample.diabetes', 'label', 3)").await?;
//! assert_eq!(ranking.count().await?, 3);
//! # Ok(())
//! # }
//! ```
//!
//! [`SelectFeatures`] does the same for a DataFrame. The selectors themselves, and how to write one, are in [`pursuit_udfs`].

mod answer;
mod call;
mod catalog;
mod classify;
mod columns;
mod dataframe;
mod engine;
mod error;
mod exec;
mod expand;
mod function;
mod gram;
mod gram_groups;
mod lanes;
mod memory;
mod operator;
mod option_table;
mod panics;
mod pass;
mod planner;
mod progress;
mod question;
mod sample_problem;
mod samples;
mod select_from;
pub mod shell;
mod table;

pub use dataframe::SelectFeatures;
pub use engine::Engine;
pub use progress::Progress;
