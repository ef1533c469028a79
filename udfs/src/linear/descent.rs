//! Least squares under a penalty on the length of each unit's coefficients, by coordinate descent on inner products.
//!
//! The columns of a unit are orthonormal, or one, so that a unit moves to its best place in one step, whatever the number of its columns and of the label's.

use std::collections::BTreeMap;

use crate::linear::path::Penalized;
use crate::linear::products::Products;
use crate::{Lease, Result, Run};

/// `½ ‖Y − XB‖² + penalty · Σ_u weight_u (mix ‖B_u‖ + ½ (1 − mix) ‖B_u‖²)`
pub(crate) struct Descent<'a> {
    products: &'a Products,
    /// 0: not penalised. Infinite: never in.
    weights: Vec<f64>,
    mix: f64,
    /// `[column * labels + q]`
    pub coefficients: Vec<f64>,
    /// XᵀR of the residual R.
    correlations: Vec<f64>,
    crosses: BTreeMap<usize, Vec<f64>>,
    memory: Lease,
}

/// Sweeps over the units in use that end an iteration at most.
const SWEEPS: usize = 10_000;
/// How far coefficients may be from their best places, where the label has length 1.
const ACCURACY: f64 = 1e-9;

impl<'a> Descent<'a> {
    pub fn new(products: &'a Products, weights: Vec<f64>, mix: f64, run: &Run) -> Result<Self> {
        let size = products.columns() * products.labels;
        let memory = run.reserve(3 * size * size_of::<f64>())?;
        let correlations = products.correlations.clone();
        Ok(Self { products, weights, mix, coefficients: vec![0.0; size], correlations, crosses: BTreeMap::new(), memory })
    }

    fn length(&self, values: &[f64], unit: usize) -> f64 {
        let (columns, q) = (&self.products.units[unit], self.products.labels);
        values[columns.start * q..columns.end * q].iter().map(|value| value * value).sum::<f64>().sqrt()
    }

    fn is_active(&self, unit: usize) -> bool {
        let (columns, q) = (&self.products.units[unit], self.products.labels);
        self.coefficients[columns.start * q..columns.end * q].iter().any(|value| *value != 0.0)
    }

    fn candidates(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.weights.len()).filter(|unit| self.weights[*unit].is_finite() && !self.products.units[*unit].is_empty())
    }

    /// Moves a unit to its best place; returns how far.
    fn settle(&mut self, unit: usize, penalty: f64) -> Result<f64> {
        let (columns, q) = (self.products.units[unit].clone(), self.products.labels);
        let energy = self.products.energies[columns.start];
        let penalty = penalty * self.weights[unit];
        let range = columns.start * q..columns.end * q;
        let wanted: Vec<f64> = range.clone().map(|at| self.correlations[at] + energy * self.coefficients[at]).collect();
        let length = wanted.iter().map(|value| value * value).sum::<f64>().sqrt();
        let shrunk = (length - penalty * self.mix).max(0.0) / (energy + penalty * (1.0 - self.mix));
        let factor = if length > 0.0 { shrunk / length } else { 0.0 };
        let mut moved: f64 = 0.0;
        for (column, place) in columns.zip(range.step_by(q)) {
            let changes: Vec<f64> = (0..q)
                .map(|at| wanted[place + at - self.products.units[unit].start * q] * factor - self.coefficients[place + at])
                .collect();
            if changes.iter().all(|change| *change == 0.0) {
                continue;
            }
            if !self.crosses.contains_key(&column) {
                self.memory.grow(self.products.columns() * size_of::<f64>())?;
                self.crosses.insert(column, self.products.cross(column));
            }
            let cross = &self.crosses[&column];
            for (at, change) in changes.iter().enumerate() {
                self.coefficients[place + at] += change;
                moved = moved.max(change.abs());
            }
            if let [change] = changes[..] {
                self.correlations.iter_mut().zip(cross).for_each(|(c, cross)| *c -= cross * change);
            } else {
                for (c, cross) in self.correlations.chunks_exact_mut(q).zip(cross) {
                    c.iter_mut().zip(&changes).for_each(|(c, change)| *c -= cross * change);
                }
            }
        }
        Ok(moved)
    }

    /// To the optimum at a penalty, from wherever it is.
    pub fn solve(&mut self, penalty: f64, accuracy: f64, run: &Run) -> Result<()> {
        loop {
            for _ in 0..SWEEPS {
                run.check()?;
                let mut moved: f64 = 0.0;
                for unit in
                    self.candidates().filter(|unit| self.is_active(*unit) || self.weights[*unit] == 0.0).collect::<Vec<_>>()
                {
                    moved = moved.max(self.settle(unit, penalty)?);
                }
                if moved <= accuracy {
                    break;
                }
            }
            // Who is out and should be in.
            let wrong: Vec<usize> = self
                .candidates()
                .filter(|unit| {
                    let most = penalty * self.weights[*unit] * self.mix;
                    !self.is_active(*unit) && self.length(&self.correlations, *unit) > most * (1.0 + 1e-12) + accuracy
                })
                .collect();
            if wrong.is_empty() {
                return Ok(());
            }
            let mut moved: f64 = 0.0;
            for unit in wrong {
                run.check()?;
                moved = moved.max(self.settle(unit, penalty)?);
            }
            if moved <= accuracy {
                return Ok(());
            }
        }
    }
}

impl Penalized for Descent<'_> {
    fn first(&mut self, run: &Run) -> Result<f64> {
        // What is not penalised is in from the start.
        self.solve(f64::MAX / 1e10, ACCURACY, run)?;
        let penalty = |unit: usize| self.length(&self.correlations, unit) / (self.weights[unit] * self.mix);
        Ok(self.candidates().filter(|unit| self.weights[*unit] > 0.0).map(penalty).fold(0.0, f64::max))
    }

    fn descend(&mut self, penalty: f64, run: &Run) -> Result<()> {
        self.solve(penalty, ACCURACY, run)
    }

    fn lengths(&self) -> Vec<f64> {
        (0..self.products.units.len()).map(|unit| self.length(&self.coefficients, unit)).collect()
    }

    fn coefficients(&self) -> Vec<f64> {
        self.coefficients.clone()
    }

    fn go_to(&mut self, coefficients: &[f64], run: &Run) -> Result<()> {
        let q = self.products.labels;
        for (at, wanted) in coefficients.iter().enumerate() {
            let change = wanted - self.coefficients[at];
            if change != 0.0 {
                run.check()?;
                let cross = &self.crosses[&(at / q)];
                self.correlations.chunks_exact_mut(q).zip(cross).for_each(|(c, cross)| c[at % q] -= cross * change);
                self.coefficients[at] = *wanted;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::lars;
    use crate::linear::path::path;
    use crate::linear::pursuit::Pursuit;
    use crate::testing::planted;

    /// Without a share of squares it walks the path of least angles.
    #[test]
    fn the_path_of_the_lasso() {
        let (table, label) = planted(120, 12, &[0, 3, 5, 7], 2.0, 3);
        let problem = table.problem(&label);
        let products = Products::new(&problem, &Run::default()).unwrap();
        let mut entered = Vec::new();
        lars::path(&Pursuit::new(&products), &Run::default(), |knot| {
            if let Some(lars::Change::Enters(column)) = knot.change {
                entered.push((column, knot.lambda));
            }
            entered.len() == 6
        })
        .unwrap();
        let mut descent = Descent::new(&products, vec![1.0; 12], 1.0, &Run::default()).unwrap();
        let (order, last) = path(&mut descent, &[true; 12], 5, &Run::default()).unwrap();
        assert_eq!(
            order.iter().map(|(unit, _)| *unit).collect::<Vec<_>>(),
            entered[..5].iter().map(|(unit, _)| *unit).collect::<Vec<_>>()
        );
        let active = last.lengths.iter().filter(|length| **length > 0.0).count();
        assert!(last.penalty >= entered[5].1 * (1.0 - 1e-6) && active == 5);
    }

    /// At the optimum the correlations of those in use are balanced by the penalty, and no other exceeds it.
    #[test]
    fn the_conditions_of_the_optimum_hold() {
        let (table, label) = planted(80, 9, &[1, 4], 1.0, 6);
        let table = table.text("t", &["a", "b", "c", "d"].repeat(20));
        let problem = table.problem(&label);
        let products = Products::new(&problem, &Run::default()).unwrap();
        let mut descent = Descent::new(&products, vec![1.0; 10], 0.7, &Run::default()).unwrap();
        descent.solve(0.05, 1e-12, &Run::default()).unwrap();
        for unit in 0..10 {
            let gradient = descent.length(&descent.correlations, unit);
            let own = descent.length(&descent.coefficients, unit);
            if own > 0.0 {
                assert!((gradient - 0.05 * (0.7 + 0.3 * own)).abs() < 1e-9, "{unit}: {gradient} {own}");
            } else {
                assert!(gradient <= 0.05 * 0.7 + 1e-9);
            }
        }
        assert!(descent.lengths().iter().any(|length| *length > 0.0));
    }
}
