//! A selector: features by how much they vary.

use pursuit_udfs::{Choice, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Spread: the features that vary most, whatever the label.
    ///
    /// Ranks by variance per row, from the second moments or, of a table too wide for them, from the rows. A baseline that any method which looks at the
    /// label should beat.
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
        let spread = |unit: usize| problem.units[unit].columns.iter().map(|column| variance(problem, *column)).sum::<f64>();
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

/// Who reads moments must take rows, too: that is how tables of more than 1,000 columns come.
fn variance(problem: &Problem, column: usize) -> f64 {
    match problem.gram() {
        Some(gram) => gram.matrix[column * gram.design.len() + column] / gram.weight,
        None => {
            let rows = problem.rows();
            let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
            let squares = rows.columns[column].iter().enumerate().map(|(row, x)| weight(row) * x * x);
            squares.sum::<f64>() / rows.weight()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pursuit_udfs::testing::Table;

    /// One that looks at the label would go through `pursuit_udfs::testing::check_selector` here.
    #[test]
    fn ranks_by_variance_from_moments_and_from_rows() {
        let table = Table::new().numbers("small", &[1.0, 2.0, 3.0]).numbers("large", &[10.0, 30.0, 20.0]).k(2);
        for problem in [table.problem(&[1.0, 2.0, 4.0]), table.problem_of_rows(&[1.0, 2.0, 4.0])] {
            let ranking = Spread::default().select(&problem, &Run::default()).unwrap();
            assert_eq!(ranking.units(), [1, 0]);
            assert!((ranking.choices[1].score - 2.0 / 3.0).abs() < 1e-12);
        }
    }
}
