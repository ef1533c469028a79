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
#[doc(hidden)]
pub mod contract;
pub mod datum_wise;
mod error;
mod filters;
mod judging;
mod kernels;
mod linear;
mod models;
mod network;
mod neural;
mod predictors;
mod profile;
mod reading;
mod registry;
mod reports;
mod run;
mod sample_problem;
mod selectors;
mod settings;
pub mod testing;
pub mod toolbox;
mod trees;
mod which;

pub use contract::model::{Applied, Apply, Made, Model, ModelTable, Output, ReportOnModel};
pub use contract::pass::Pass;
pub use contract::ranking::{Choice, Ranking};
pub use contract::report::{Compared, Kind as ColumnKind, Repeats, Report, Values};
pub use contract::selector::{Asks, Choosing, Declared, KEY, Reads, SELECTOR, SELECTORS, Selector, Spec, Streaming, Work};
pub use contract::summary::{Summarize, Summary, Types};
pub use error::{Error, Kind, Result, did_you_mean, name_list, name_list_near, shown};
pub use judging::answer::answer;
#[doc(hidden)]
pub use judging::metric::Metric;
pub use judging::notes::annotate;
pub use judging::resample::{HeldOut, Piece, Pieces};
pub use kernels::tiles::Tiles;
pub use reading::bins::{BINS_MAX, Binned, Bins, Codes};
pub use reading::block::{Block, NO_LEVEL, Numbers};
pub use reading::coding::{Coding, Origin};
pub use reading::flags::Flags;
pub use reading::groups::GroupedMoments;
pub use reading::levels::TextSeen;
pub use reading::moments::{Gram, Moments};
pub use reading::parts::{PartedMoments, Parting};
pub use reading::plan::{Class, Feature, LabelKind, LeftOut, Plan};
pub use reading::problem::{Labels, Parts, Problem, Unit};
pub use reading::rows::{Rows, RowsBuilder};
pub use reading::sample::{Draw, Sampled};
pub use reading::split::Split;
pub use reading::table::{Data, DesignColumn, Label, Seen, Table};
pub use registry::{reports, selectors};
pub use run::shares::Share;
pub use run::{Budget, Lease, Random, Run};
pub use sample_problem::{SAMPLE_PROBLEMS, SampleOptions, SampleProblem};
#[doc(hidden)]
pub use selectors::neural_greedy_pursuit::ssfn_on_other_rows;
#[doc(hidden)]
pub use serde;
pub use serde_json::Value;
pub use settings::common::{Common, Levels, Nulls, OF_SESSIONS, Reading, Shown, Task};
pub use settings::json::parse as parse_options;
pub use settings::options;
pub use settings::options::{Check, Count, OptionSpec, OptionType, Options, Settings, TableShape};
pub use settings::repeated::Repeated;
pub use settings::spending::Spending;
pub use which::{Advice, WHICH};
