//! The regularised linear form, solved by alternation.

use crate::kernels::cholesky::Cholesky;
use crate::linear::products::Products;
use crate::linear::pursuit::{Pursuit, pursue};
use crate::{Problem, Ranking, Result, Run};

pub(super) fn select(closeness: f64, problem: &Problem, run: &Run) -> Result<Ranking> {
    let products = Products::new(problem, run)?;
    pursue(
        problem,
        &products,
        run,
        |pursuit, unit| pursuit.correlation(unit),
        |pursuit, open| attend(pursuit, open, closeness, run),
    )
}

/// One round: the unit with the largest attention weight. Its score is `w² ‖x‖² / closeness`, with `x` off the span of the chosen
/// features: for a single feature that is exactly its correlation with the residual, so that scores of different rounds compare.
///
/// The chosen features are projected out first, which solves for their coefficients exactly. Of the others only those
/// whose correlation is nearly the largest can have a weight that is not zero (the strong rule), so the alternation
/// runs on these alone; afterwards the rule is verified on the rest, and whoever breaks it joins.
fn attend(pursuit: &Pursuit<'_>, open: &[usize], closeness: f64, run: &Run) -> Result<Option<(usize, f64)>> {
    let largest = open.iter().map(|unit| pursuit.correlation(*unit)).fold(0.0, f64::max);
    if largest <= 0.0 {
        return Ok(None);
    }
    // The loss has no ½, so that weights vanish from λ = 2 max |x · r| on.
    let lambda = (1.0 - closeness) * 2.0 * largest;
    let near = (1.0 - 2.0 * closeness) * largest;
    let mut attended: Vec<usize> = open.iter().copied().filter(|unit| pursuit.correlation(*unit) >= near).collect();
    loop {
        let round = Round::new(pursuit, &attended);
        let (weights, coefficients) = round.alternate(lambda, run)?;
        let left_out = open.iter().copied().filter(|unit| !attended.contains(unit));
        let joining: Vec<usize> =
            left_out.filter(|unit| round.slope(*unit, &weights, &coefficients) > lambda / 2.0 * (1.0 + 1e-9)).collect();
        if joining.is_empty() {
            // Weights that differ by no more than the alternation leaves open are equal: the lower unit wins.
            let top = weights.iter().copied().fold(0.0, f64::max);
            let best = weights.iter().position(|weight| *weight >= top * (1.0 - 1e-6)).expect("there is a largest weight");
            return Ok(Some((attended[best], weights[best].powi(2) * round.energy(best) / closeness)));
        }
        attended.extend(joining);
        attended.sort_unstable();
    }
}

/// The attended units' part of the problem, off the span of the chosen features.
struct Round<'a> {
    pursuit: &'a Pursuit<'a>,
    columns: Vec<usize>,
    /// For each column its position among the attended units.
    unit: Vec<usize>,
    units: usize,
    /// What each column is multiplied by, so that a wider unit is as long as its stand-in.
    factors: Vec<f64>,
    /// Inner products of the columns.
    h: Vec<f64>,
}

/// Alternations before giving up on the last digits; they converge at a rate of about `1 − closeness`.
const ALTERNATIONS_MAX: usize = 200_000;

impl<'a> Round<'a> {
    fn new(pursuit: &'a Pursuit<'a>, attended: &[usize]) -> Self {
        let (mut columns, mut unit) = (Vec::new(), Vec::new());
        for (at, attended) in attended.iter().enumerate() {
            let open = pursuit.products.units[*attended].clone().filter(|column| pursuit.is_open(*column));
            columns.extend(open);
            unit.resize(columns.len(), at);
        }
        let of_units: Vec<f64> = attended.iter().map(|unit| factor(pursuit, *unit)).collect();
        let factors: Vec<f64> = unit.iter().map(|at| of_units[*at]).collect();
        let scaled = || columns.iter().zip(&factors);
        let h = scaled().flat_map(|(i, f)| scaled().map(move |(j, g)| f * g * pursuit.residual_inner(*i, *j))).collect();
        Self { pursuit, columns, unit, units: attended.len(), factors, h }
    }

    /// Minimises over `θ` for given `w` and the other way round, in turn. Returns `|w|` of each unit and `θ` of each column
    /// and label.
    fn alternate(&self, lambda: f64, run: &Run) -> Result<(Vec<f64>, Vec<f64>)> {
        let (m, q) = (self.columns.len(), self.pursuit.products.labels);
        let mut weights = vec![1.0; self.units];
        let mut theta = vec![0.0; m * q];
        for step in 0..ALTERNATIONS_MAX {
            if step % 64 == 0 {
                run.check()?;
            }
            // θ = (W H W + λ/2)⁻¹ W c, one right-hand side for each column of the label.
            let system = |i: usize, j: usize| weights[self.unit[i]] * self.h[i * m + j] * weights[self.unit[j]];
            let right = |i: usize, label: usize| weights[self.unit[i]] * self.correlation(i, label);
            solve_ridge(m, q, lambda / 2.0, system, right, &mut theta);
            // The same for w, with Θ in the place of W: one weight for all columns of a unit and all labels.
            let before = weights.clone();
            let (mut normal, mut target) = (vec![0.0; self.units * self.units], vec![0.0; self.units]);
            for i in 0..m {
                for label in 0..q {
                    target[self.unit[i]] += theta[i * q + label] * self.correlation(i, label);
                    for j in 0..m {
                        normal[self.unit[i] * self.units + self.unit[j]] +=
                            theta[i * q + label] * self.h[i * m + j] * theta[j * q + label];
                    }
                }
            }
            solve_ridge(self.units, 1, lambda / 2.0, |i, j| normal[i * self.units + j], |i, _| target[i], &mut weights);
            let moved = weights.iter().zip(&before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            if moved <= 1e-12 * weights.iter().copied().fold(0.0, f64::max) {
                break;
            }
        }
        weights.iter_mut().for_each(|weight| *weight = weight.abs());
        Ok((weights, theta))
    }

    /// Mean energy of an attended unit's columns.
    fn energy(&self, at: usize) -> f64 {
        let columns = (0..self.columns.len()).filter(|column| self.unit[*column] == at);
        let energies: Vec<f64> = columns.map(|column| self.h[column * self.columns.len() + column]).collect();
        energies.iter().sum::<f64>() / energies.len() as f64
    }

    fn correlation(&self, i: usize, label: usize) -> f64 {
        self.factors[i] * self.pursuit.correlations[self.columns[i] * self.pursuit.products.labels + label]
    }

    /// Length of the correlations of a unit that is not attended with what this round leaves unexplained.
    fn slope(&self, unit: usize, weights: &[f64], theta: &[f64]) -> f64 {
        let q = self.pursuit.products.labels;
        let mut sum = 0.0;
        for column in self.pursuit.products.units[unit].clone() {
            let others = self.columns.iter().zip(&self.factors);
            let inner: Vec<f64> = others.map(|(other, factor)| factor * self.pursuit.residual_inner(column, *other)).collect();
            for label in 0..q {
                let fitted: f64 = inner.iter().enumerate().map(|(i, h)| h * weights[self.unit[i]] * theta[i * q + label]).sum();
                sum += (self.pursuit.correlations[column * q + label] - fitted).powi(2);
            }
        }
        factor(self.pursuit, unit) * sum.sqrt()
    }
}

/// What the columns of a unit are multiplied by: nothing of a single column, and of a wider unit what it owes to chance is taken away.
fn factor(pursuit: &Pursuit<'_>, unit: usize) -> f64 {
    let length = pursuit.length(unit);
    if length > 0.0 { pursuit.correlation(unit) / length } else { 1.0 }
}

/// Solves `(A + ridge I) X = B` for a symmetric positive semidefinite `A`, into `x[i * sides + side]`.
fn solve_ridge(
    n: usize,
    sides: usize,
    ridge: f64,
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
    x: &mut [f64],
) {
    let factor = Cholesky::of(n, |i, j| a(i, j) + if i == j { ridge } else { 0.0 });
    let factor = factor.expect("a ridge of the size of the correlations keeps the matrix far from singular");
    let mut column = vec![0.0; n];
    for side in 0..sides {
        column.iter_mut().enumerate().for_each(|(i, value)| *value = b(i, side));
        factor.solve(&mut column);
        column.iter().enumerate().for_each(|(i, value)| x[i * sides + side] = *value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// For one orthonormal feature the weights solve w² = c · closeness / h in closed form.
    #[test]
    fn weight_of_a_single_feature_has_a_closed_form() {
        let table = Table::random(50, 1, 9);
        let label: Vec<f64> = table.column(0).iter().enumerate().map(|(row, x)| x + (row as f64).cos()).collect();
        let problem = table.problem(&label);
        let products = Products::new(&problem, &Run::default()).unwrap();
        let pursuit = Pursuit::new(&products);
        let (unit, score) = attend(&pursuit, &[0], 1e-3, &Run::default()).unwrap().unwrap();
        assert_eq!(unit, 0);
        assert!((score - pursuit.correlation(0)).abs() < 1e-6, "{score} {}", pursuit.correlation(0));
    }

    /// F at the solution of the alternation is the optimum that the equivalent LASSO has: |w| = |θ| = √|β|.
    #[test]
    fn weights_and_coefficients_balance() {
        let table = Table::random(60, 4, 21);
        let label: Vec<f64> = (0..60).map(|row| table.column(2)[row] + 0.9 * table.column(1)[row]).collect();
        let problem = table.problem(&label);
        let products = Products::new(&problem, &Run::default()).unwrap();
        let pursuit = Pursuit::new(&products);
        let round = Round::new(&pursuit, &[0, 1, 2, 3]);
        let largest = (0..4).map(|unit| pursuit.correlation(unit)).fold(0.0, f64::max);
        let (weights, theta) = round.alternate(0.5 * 2.0 * largest, &Run::default()).unwrap();
        assert!(weights.iter().any(|w| *w > 0.1));
        for (w, t) in weights.iter().zip(&theta) {
            assert!((w - t.abs()).abs() < 1e-5, "{w} {t}");
        }
    }
}
