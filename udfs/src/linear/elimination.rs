//! Least squares on all columns, from which units are taken away one after the other.

use rayon::prelude::*;

use crate::kernels::cholesky::Cholesky;
use crate::kernels::dot;
use crate::linear::products::Products;
use crate::{Error, Lease, Problem, Result, Run};

/// Keeps columns that depend on each other from making the system singular; a share of a column's square.
const RIDGE: f64 = 1e-9;
/// Rounding of coefficients that columns which depend on each other leave behind.
const ROUNDING: f64 = 1e-6;

/// A fit on the units that are left.
pub(crate) struct Elimination<'a> {
    products: &'a Products,
    /// The inverse of the columns' products, row by row; what has gone is 0.
    inverse: Vec<f64>,
    /// For each column its coefficients, one for each column of the label.
    pub coefficients: Vec<f64>,
    _memory: Lease,
}

impl<'a> Elimination<'a> {
    pub fn new(products: &'a Products, run: &Run) -> Result<Self> {
        let (n, q) = (products.columns(), products.labels);
        let memory = run.reserve(5 * n * n * size_of::<f64>() / 2)?;
        let crosses = (0..n).into_par_iter().map(|j| run.check().map(|()| products.cross(j))).collect::<Result<Vec<_>>>()?;
        let element = |i: usize, j: usize| crosses[i][j] + if i == j { RIDGE * products.energies[i] } else { 0.0 };
        let mut factor = Cholesky::default();
        for i in 0..n {
            run.check()?;
            if !factor.push(|j| element(i, j)) {
                return Err(Error::data(
                    "the columns depend on each other beyond what can be told apart; leave some of them out",
                ));
            }
        }
        drop(crosses);
        let column = |at: usize| -> Result<Vec<f64>> {
            run.check()?;
            let mut unit = vec![0.0; n];
            unit[at] = 1.0;
            factor.solve(&mut unit);
            Ok(unit)
        };
        let inverse = (0..n).into_par_iter().map(column).collect::<Result<Vec<_>>>()?.concat();
        let coefficient = |j: usize, label: usize| -> f64 {
            let row = &inverse[j * n..(j + 1) * n];
            row.iter().zip(products.correlations[label..].iter().step_by(q)).map(|(a, c)| a * c).sum()
        };
        let coefficients = (0..n).flat_map(|j| (0..q).map(move |label| (j, label))).map(|(j, l)| coefficient(j, l)).collect();
        Ok(Self { products, inverse, coefficients, _memory: memory })
    }

    /// The length of a unit's coefficients.
    pub fn length(&self, unit: usize) -> f64 {
        let (columns, q) = (self.products.units[unit].clone(), self.products.labels);
        let own = &self.coefficients[columns.start * q..columns.end * q];
        dot(own, own).sqrt()
    }

    /// The share of the label's variance that is explained no longer without a unit.
    pub fn loss(&self, unit: usize) -> f64 {
        let (columns, q) = (self.products.units[unit].clone(), self.products.labels);
        let solved = self.solved(unit);
        let own = &self.coefficients[columns.start * q..columns.end * q];
        dot(own, &solved)
    }

    /// The coefficients of a unit, times the inverse of its block of the inverse.
    fn solved(&self, unit: usize) -> Vec<f64> {
        let (columns, q, n) = (self.products.units[unit].clone(), self.products.labels, self.products.columns());
        let start = columns.start;
        let block = |i: usize, j: usize| self.inverse[(start + i) * n + start + j];
        let mut solved = vec![0.0; columns.len() * q];
        if let Some(factor) = Cholesky::of(columns.len(), block) {
            for label in 0..q {
                let mut side: Vec<f64> = columns.clone().map(|j| self.coefficients[j * q + label]).collect();
                factor.solve(&mut side);
                side.iter().enumerate().for_each(|(at, x)| solved[at * q + label] = *x);
            }
        }
        solved
    }

    /// Takes a unit away.
    pub fn drop_unit(&mut self, unit: usize) {
        let (n, q) = (self.products.columns(), self.products.labels);
        // Column by column: each is one step of a sweep.
        for at in self.products.units[unit].clone() {
            let pivot = self.inverse[at * n + at];
            if pivot <= 0.0 {
                continue;
            }
            let row: Vec<f64> = self.inverse[at * n..(at + 1) * n].to_vec();
            let own: Vec<f64> = self.coefficients[at * q..(at + 1) * q].to_vec();
            for (j, other) in self.inverse.chunks_mut(n).enumerate().filter(|(j, _)| row[*j] != 0.0) {
                let factor = row[j] / pivot;
                other.iter_mut().zip(&row).for_each(|(a, b)| *a -= factor * b);
                self.coefficients[j * q..(j + 1) * q].iter_mut().zip(&own).for_each(|(a, b)| *a -= factor * b);
            }
            self.inverse[at * n..(at + 1) * n].fill(0.0);
            self.inverse[at..].iter_mut().step_by(n).for_each(|a| *a = 0.0);
            self.coefficients[at * q..(at + 1) * q].fill(0.0);
        }
    }
}

/// What is taken away in a round: below 1 a share of what is left, from 1 on so many.
pub(crate) fn in_a_round(step: f64, left: usize) -> usize {
    let count = if step < 1.0 { step * left as f64 } else { step };
    (count as usize).clamp(1, left.max(1))
}

/// Takes units away until none is left, those of the least worth first, and returns all that can be chosen in the order of their worth: those that must be included,
/// then the last to go before the first. Of equal ones the later goes first.
pub(crate) fn eliminate(
    problem: &Problem,
    units: impl Iterator<Item = usize>,
    step: f64,
    run: &Run,
    mut worth: impl FnMut(&[usize], &[usize]) -> Result<Vec<f64>>,
) -> Result<Vec<(usize, f64)>> {
    let (forced, mut left): (Vec<usize>, Vec<usize>) = units.partition(|unit| problem.must_include.contains(unit));
    let forced: Vec<usize> = problem.must_include.iter().copied().filter(|unit| forced.contains(unit)).collect();
    let (all, mut gone) = (left.len(), Vec::new());
    let mut last: Vec<usize> = Vec::new();
    let mut of_forced = vec![0.0; forced.len()];
    while !left.is_empty() {
        run.step(all - left.len(), all)?;
        let asked = [&forced[..], &left].concat();
        let scores = worth(&asked, &last)?;
        of_forced.copy_from_slice(&scores[..forced.len()]);
        let mut scored: Vec<(usize, f64)> = left.iter().copied().zip(scores[forced.len()..].iter().copied()).collect();
        let most = scored.iter().fold(0.0, |most: f64, (_, score)| most.max(score.abs()));
        let digit = (most * ROUNDING).max(f64::MIN_POSITIVE);
        let rounded = |score: f64| (score / digit).round();
        scored.sort_by(|a, b| rounded(b.1).total_cmp(&rounded(a.1)).then(a.0.cmp(&b.0)));
        last.clear();
        for _ in 0..in_a_round(step, left.len()) {
            let (unit, score) = scored.pop().expect("there are as many as are left");
            last.push(unit);
            gone.push((unit, score));
        }
        left.retain(|unit| !last.contains(unit));
    }
    gone.reverse();
    Ok(forced.into_iter().zip(of_forced).chain(gone).collect())
}

/// The same for least squares, judged by `worth` of the fit on what is left.
pub(crate) fn eliminate_linear(
    problem: &Problem,
    products: &Products,
    step: f64,
    run: &Run,
    worth: impl Fn(&Elimination<'_>, usize) -> f64,
) -> Result<Vec<(usize, f64)>> {
    let mut fit = Elimination::new(products, run)?;
    let can_be = |unit: &usize| !products.units[*unit].is_empty();
    eliminate(problem, (0..problem.units.len()).filter(can_be), step, run, |asked, gone| {
        gone.iter().for_each(|unit| fit.drop_unit(*unit));
        Ok(asked.iter().map(|unit| worth(&fit, *unit)).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Table, least_squares};

    /// Coefficients and what each feature is worth, before and after another has gone, against a dense fit of its own.
    #[test]
    fn agrees_with_fits_from_the_beginning() {
        let table = Table::random(40, 5, 3);
        let label: Vec<f64> = (0..40).map(|row| table.column(1)[row] - 0.3 * table.column(4)[row] + (row as f64).sin()).collect();
        let problem = table.problem(&label);
        let products = Products::new(&problem, &Run::default()).unwrap();
        let mut fit = Elimination::new(&products, &Run::default()).unwrap();
        let mut left = vec![0, 1, 2, 3, 4];
        for gone in [None, Some(2), Some(0)] {
            if let Some(gone) = gone {
                fit.drop_unit(gone);
                left.retain(|unit| *unit != gone);
            }
            let columns = |units: &[usize]| -> Vec<&[f64]> { units.iter().map(|unit| table.column(*unit)).collect() };
            let (beta, r2) = least_squares(&columns(&left), &label);
            for (unit, beta) in left.iter().zip(beta) {
                let found = products.in_input_units(*unit, fit.coefficients[*unit]);
                assert!((found - beta).abs() < 1e-7, "{unit}: {found} {beta}");
                let others: Vec<usize> = left.iter().copied().filter(|other| other != unit).collect();
                let lost = r2 - least_squares(&columns(&others), &label).1;
                assert!((fit.loss(*unit) - lost).abs() < 1e-7, "{unit}: {} {lost}", fit.loss(*unit));
            }
        }
    }
}
