//! A selector in a crate of its own, registered beside ours: features by how much they vary.
//!
//! `cargo run -p pursuit-plugin-example` prints its ranking.

use datafusion::prelude::SessionContext;
use pursuit::Engine;
use pursuit_udfs::{Choice, Error, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Spread: the features that vary most, whatever the label.
    ///
    /// Ranks by variance per row, from the second moments. A baseline that any method which looks at the label should beat.
    ///
    /// Cost: one pass over the table.
    #[selector(name = "spread", aliases = [], labels = Any, score = "variance, summed over the feature's columns")]
    pub struct Spread {
        /// Rank the features that vary least first.
        least_first: bool = false;
    }
}

impl Selector for Spread {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        run.step(0, 1)?;
        let Some(gram) = problem.gram() else { return Err(Error::call("set reads => 'moments'")) };
        let d = gram.design.len();
        let spread = |unit: usize| problem.units[unit].columns.iter().map(|j| gram.matrix[j * d + j]).sum::<f64>() / gram.weight;
        let mut units: Vec<(usize, f64)> = (0..problem.units.len()).map(|unit| (unit, spread(unit))).collect();
        units.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if self.least_first {
            units.reverse();
        }
        units.truncate(problem.k.unwrap_or(units.len()));
        let choices = units.iter().enumerate().map(|(at, (unit, spread))| Choice::new(at + 1, *unit, *spread)).collect();
        Ok(Ranking { choices, ..Ranking::default() })
    }
}

#[tokio::main]
async fn main() -> datafusion::error::Result<()> {
    let ctx = SessionContext::new();
    Engine::default().with::<Spread>().with_samples().register(&ctx)?;
    ctx.sql("SELECT rank, feature, round(score, 2) AS score FROM spread('sample.wine', 'label', 3)").await?.show().await?;
    ctx.sql("SELECT option, description FROM selector_options('spread') WHERE scope = 'own'").await?.show().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use pursuit_udfs::testing::Table;

    /// One that looks at the label would go through `pursuit_udfs::testing::check_selector` here.
    #[test]
    fn ranks_by_variance() {
        let table = Table::new().numbers("small", &[1.0, 2.0, 3.0]).numbers("large", &[10.0, 30.0, 20.0]).k(2);
        let ranking = Spread::default().select(&table.problem(&[1.0, 2.0, 4.0]), &Run::default()).unwrap();
        assert_eq!(ranking.units(), [1, 0]);
        assert!((ranking.choices[1].score - 2.0 / 3.0).abs() < 1e-12);
    }
}
