//! How much of the label's variance has to do with a unit, and whether that could be chance.

use crate::kernels::tails::ln_beta_tail;
use crate::linear::products::Products;
use crate::{Problem, Result, Run};

/// A unit of `p` columns beside a label of `q` dimensions (numbers one, classes one less than there are).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variance {
    /// Pillai's trace: the sum of the squared canonical correlations of unit and label. Of one column it is the R² of a regression, or the share of the column's variance that is
    /// between classes.
    pub trace: f64,
    pub columns: f64,
    dimensions: f64,
    rows: f64,
}

/// What is left at least of a share that is explained to the last digit.
const REST: f64 = f64::EPSILON;

impl Variance {
    /// Of every unit that has columns.
    pub fn of_units(problem: &Problem, run: &Run) -> Result<Vec<Option<Self>>> {
        let products = Products::new(problem, run)?;
        Ok(Self::of(problem, &products))
    }

    pub fn of(problem: &Problem, products: &Products) -> Vec<Option<Self>> {
        let weights = problem.class_weights();
        let dimensions =
            weights.as_ref().map_or(1.0, |weights| weights.iter().filter(|weight| **weight > 0.0).count() as f64 - 1.0);
        let squares: Vec<f64> = (0..products.columns()).map(|column| square(products, weights.as_deref(), column)).collect();
        let of_unit = |columns: &std::ops::Range<usize>| {
            (!columns.is_empty()).then(|| {
                let most = dimensions.min(columns.len() as f64);
                let trace = squares[columns.clone()].iter().sum::<f64>().clamp(0.0, most);
                Self { trace, columns: columns.len() as f64, dimensions, rows: products.rows }
            })
        };
        products.units.iter().map(of_unit).collect()
    }

    fn canonical(&self) -> f64 {
        self.columns.min(self.dimensions).max(1.0)
    }

    /// The share of what could be explained that is, and the rest.
    fn shares(&self) -> (f64, f64) {
        let share = self.trace / self.canonical();
        (share, 1.0 - share)
    }

    fn freedom(&self) -> (f64, f64) {
        let (p, q, s) = (self.columns, self.dimensions, self.canonical());
        (s * p.max(q), s * (self.rows - 1.0 - q - p + s))
    }

    /// Of one column the F of a regression or an analysis of variance; of more that of Pillai's trace.
    pub fn f(&self) -> f64 {
        let ((share, rest), (explained, left)) = (self.shares(), self.freedom());
        share / rest.max(REST) * left.max(1.0) / explained
    }

    /// The logarithm of its p-value; `None` where there are too few rows to test anything.
    pub fn ln_p(&self) -> Option<f64> {
        let ((share, rest), (explained, left)) = (self.shares(), self.freedom());
        (left > 0.0).then(|| ln_beta_tail(left / 2.0, explained / 2.0, rest.max(REST), share))
    }

    /// Variance between classes by variance within them.
    pub fn fisher(&self) -> f64 {
        self.trace / (self.columns - self.trace).max(REST * self.columns)
    }
}

/// The squared length of a column's projection on what the label spans.
fn square(products: &Products, weights: Option<&[f64]>, column: usize) -> f64 {
    let q = products.labels;
    let correlations = &products.correlations[column * q..(column + 1) * q];
    let squares = match weights {
        None => correlations.iter().map(|c| c * c).sum::<f64>(),
        Some(weights) => {
            // Each class's column times x is its weight times how far its mean is from that of all.
            let all: f64 = weights.iter().sum();
            let energy: f64 = weights.iter().map(|weight| weight * (1.0 - weight / all)).sum();
            correlations.iter().zip(weights).filter(|(_, weight)| **weight > 0.0).map(|(c, weight)| c * c * energy / weight).sum()
        }
    };
    squares / products.energies[column]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::Table;

    /// Between and within classes as a textbook has it, from moments and from rows; and a text against its own levels.
    #[test]
    fn one_way_analysis_of_variance() {
        let x = [6.0, 8.0, 4.0, 5.0, 3.0, 4.0, 8.0, 12.0, 9.0, 11.0, 6.0, 8.0, 13.0, 9.0, 11.0, 8.0, 7.0, 12.0];
        let classes: Vec<f64> = (0..18).map(|row| f64::from(row / 6)).collect();
        let names: Vec<&str> = (0..18).map(|row| ["a", "b", "c"][row as usize / 6]).collect();
        let table = Table { task: Some(Task::Classification), ..Table::new().numbers("x", &x).text("t", &names) };
        for problem in [table.problem(&classes), table.problem_of_rows(&classes)] {
            let all = Variance::of_units(&problem, &Run::default()).unwrap();
            let number = all[0].unwrap();
            assert!((number.f() - 9.264_705_882_352_942).abs() < 1e-10, "{}", number.f());
            assert!((number.ln_p().unwrap().exp() - 0.002_398_777_329_392_9).abs() < 1e-10);
            assert!((number.fisher() - number.f() * 2.0 / 15.0).abs() < 1e-12);
            assert!((all[1].unwrap().trace - 2.0).abs() < 1e-9);
        }
        let text = Table::new().text("t", &names);
        let turned = Variance::of_units(&text.problem(&x), &Run::default()).unwrap()[0].unwrap();
        assert!((turned.f() - 9.264_705_882_352_942).abs() < 1e-10, "the number by the levels is the same question");
    }
}
