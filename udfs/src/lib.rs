//! The selectors of Pursuit: plain Rust on plain numbers, no SQL, no Arrow, no runtime.
//!
//! **The contract on one page.** A table is read into [`Moments`] (one pass, mergeable) or [`Rows`], according to a [`Plan`]
//! that was fixed before the first row. A [`Problem`] puts a question to it: these [`Unit`]s, this [`Label`], so many choices. A
//! [`Selector`] answers with a [`Ranking`]. It reports progress to a [`Run`] and gets cancellation and random numbers from
//! it. Its options are its struct, declared once with [`selector!`]:
//!
//! ```
//! use pursuit_udfs::{Choice, Problem, Ranking, Reads, Result, Run, Selector, selector, testing};
//!
//! selector! {
//!     /// The first columns, in order.
//!     ///
//!     /// A selector that looks at nothing.
//!     #[selector(name = "first", aliases = [], labels = Any, score = "none")]
//!     pub struct First {}
//! }
//!
//! impl Selector for First {
//!     fn reads(&self) -> Reads {
//!         Reads::Moments
//!     }
//!
//!     fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
//!         run.step(0, 1)?;
//!         let k = problem.k.unwrap_or(1);
//!         let choices = (0..k).map(|unit| Choice::new(unit + 1, unit, 0.0)).collect();
//!         Ok(Ranking { choices, ..Ranking::default() })
//!     }
//! }
//!
//! let table = testing::Table::random(20, 3, 0).k(2);
//! let ranking = First::default().select(&table.problem(table.column(2)), &Run::default())?;
//! assert_eq!(ranking.units(), [0, 1]);
//! # Ok::<(), pursuit_udfs::Error>(())
//! ```
//!
//! [`testing::check_selector`] judges a selector, ours and yours alike; [`selectors`] lists ours.

// So that what the macros write means the same here as in other crates.
extern crate self as pursuit_udfs;

mod baselines;
mod common;
pub mod datum_wise;
mod error;
mod math;
mod models;
mod moments;
pub mod options;
mod pass;
mod problem;
mod ranking;
mod registry;
mod report;
mod reports;
mod rows;
mod run;
mod sample_problem;
#[doc(hidden)]
pub mod selector;
mod selectors;
mod split;
pub mod testing;
mod windows;

pub use common::{Common, Nulls, Reading, Shown, Task};
pub use error::{Error, Kind, Result, did_you_mean, name_list};
pub use math::tiles::Tiles;
#[doc(hidden)]
pub use models::metric::Metric;
pub use moments::{Gram, Moments};
pub use options::{Check, Count, OptionSpec, OptionType, Options, Settings, TableShape};
pub use pass::Pass;
pub use problem::{
    Block, Class, Data, DesignColumn, Feature, Label, LabelKind, LeftOut, NO_LEVEL, Numbers, Plan, Problem, Seen, Unit,
};
pub use ranking::{Choice, Ranking};
pub use registry::{reports, selectors};
pub use report::{Kind as ColumnKind, Report, Values};
pub use rows::{Coding, Origin, Rows, RowsBuilder};
pub use run::{Random, Run};
pub use sample_problem::{SAMPLE_PROBLEMS, SampleOptions, SampleProblem};
pub use selector::{Decides, Declared, Labels, Reads, Selector, Spec, Work};
#[doc(hidden)]
pub use selectors::neural_greedy_pursuit::ssfn_on_other_rows;
#[doc(hidden)]
pub use serde;
pub use serde_json::Value;
pub use split::Split;
