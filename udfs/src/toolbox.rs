//! What our selectors are built from, for selectors of your own: inner products of columns and the least squares that grow on them, a network
//! over all features, and a judge on rows that were held out. Binned columns come from [`Problem::bins`](crate::Problem::bins).
//!
//! A greedy selector is a rule for the next unit. This one takes whatever lowers the residual most:
//!
//! ```
//! use pursuit_udfs::toolbox::{Products, Pursuit, pursue};
//! use pursuit_udfs::{Run, testing};
//!
//! let table = testing::Table::random(50, 4, 0).k(2);
//! let label: Vec<f64> = table.column(3).iter().zip(table.column(1)).map(|(a, b)| 3.0 * a + b).collect();
//! let (problem, run) = (table.problem(&label), Run::default());
//! let products = Products::new(&problem, &run)?;
//! let rule = |pursuit: &Pursuit<'_>, unit: usize| pursuit.projection(unit);
//! let ranking = pursue(&problem, &products, &run, rule, |pursuit, open| {
//!     Ok(open.iter().map(|unit| (*unit, rule(pursuit, *unit))).max_by(|a, b| a.1.total_cmp(&b.1)))
//! })?;
//! assert_eq!(ranking.units(), [3, 1]);
//! # Ok::<(), pursuit_udfs::Error>(())
//! ```
//!
//! A neural one trains the workbench's network and says which candidates it would take. This one looks at the weights, and asks the judge what its choice is
//! worth:
//!
//! ```
//! use pursuit_udfs::toolbox::{Training, judge_units, train_and_rank};
//! use pursuit_udfs::{Run, testing};
//!
//! let table = testing::Table::random(200, 4, 0).k(1);
//! let label: Vec<f64> = table.column(2).iter().map(|x| x.abs()).collect();
//! let (problem, run, training) = (table.problem_of_rows(&label), Run::default(), Training::default());
//! let ranking = train_and_rank(&problem, &training, &run, |bench, most| {
//!     bench.train(most, |bench| bench.step(None).map(|_| ()))?;
//!     Ok(bench.ranked(&bench.lengths(), most))
//! })?;
//! assert_eq!(ranking.units(), [2]);
//! let (good, bad) = (judge_units(&problem, &[2], &training, &run)?, judge_units(&problem, &[0], &training, &run)?);
//! assert!(good.score() > Some(0.9) && bad.score() < Some(0.5), "{good:?} {bad:?}");
//! # Ok::<(), pursuit_udfs::Error>(())
//! ```

pub use crate::judging::judge::{Verdict, judge_units};
pub use crate::linear::products::Products;
pub use crate::linear::pursuit::{Pursuit, explain, pursue};
pub use crate::network::training::Training;
pub use crate::neural::workbench::{Workbench, select as train_and_rank};
