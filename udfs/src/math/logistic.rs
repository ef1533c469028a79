//! Multinomial logistic regression in double precision.

use rayon::prelude::*;

use crate::math::cholesky::Cholesky;
use crate::{Result, Run};

/// Rows of inputs with the class of each.
pub(crate) struct Examples<'a> {
    /// Row after row, `inputs` values each; an intercept is a column of ones.
    pub design: &'a [f64],
    pub inputs: usize,
    pub classes: usize,
    /// The class of each row.
    pub targets: &'a [f64],
    /// One for each row; empty when all are 1.
    pub weights: &'a [f64],
}

/// Penalty `½ ridge ‖β‖²` as a share of the weight of all rows: just enough to keep separable classes finite.
const RIDGE: f64 = 1e-6;
const STEPS_MAX: usize = 500;
/// Relative change of the coefficients below which they stand still.
const STILL: f64 = 1e-7;
/// Rows whose sums are taken together, in an order that does not depend on threads.
const BAND: usize = 1024;

impl Examples<'_> {
    fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// The coefficients `[class * inputs + input]`, from a start.
    ///
    /// One bound on all curvatures serves every step (Böhning, 1992): ½ XᵀWX for each class, so that the steps of a gradient descent
    /// in its metric cannot overshoot. Nesterov's momentum, begun anew whenever it points uphill, makes them few.
    pub(crate) fn fit(&self, start: &[f64], run: &Run) -> Result<Vec<f64>> {
        let (p, c) = (self.inputs, self.classes);
        let total: f64 = (0..self.targets.len()).map(|row| self.weight(row)).sum();
        let ridge = RIDGE * total;
        let products = self.products();
        // Rounding may leave equal columns without a positive pivot; a larger ridge bounds the curvature as well.
        let factor = [1.0, 1e3, 1e6]
            .iter()
            .find_map(|more| Cholesky::of(p, |i, j| 0.5 * products[i * p + j] + if i == j { more * ridge } else { 0.0 }));
        let Some(factor) = factor else { return Ok(start.to_vec()) };
        let mut beta = start.to_vec();
        let mut ahead = beta.clone();
        let mut momentum: f64 = 1.0;
        for _ in 0..STEPS_MAX {
            run.check()?;
            let mut step = self.gradient(&ahead);
            step.iter_mut().zip(&ahead).for_each(|(g, b)| *g += ridge * b);
            let uphill: f64 = step.iter().zip(ahead.iter().zip(&beta)).map(|(g, (a, b))| g * (a - b)).sum();
            step.chunks_mut(p).for_each(|of_class| factor.solve(of_class));
            let next: Vec<f64> = ahead.iter().zip(&step).map(|(a, s)| a - s).collect();
            let moved = next.iter().zip(&beta).map(|(n, b)| (n - b).abs()).fold(0.0, f64::max);
            let size = next.iter().fold(1.0f64, |size, b| size.max(b.abs()));
            if uphill > 0.0 {
                momentum = 1.0;
            }
            let following = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            let share = (momentum - 1.0) / following;
            ahead = next.iter().zip(&beta).map(|(n, b)| n + share * (n - b)).collect();
            (beta, momentum) = (next, following);
            if moved <= STILL * size {
                break;
            }
        }
        debug_assert_eq!(beta.len(), p * c);
        Ok(beta)
    }

    /// XᵀWX
    fn products(&self) -> Vec<f64> {
        let p = self.inputs;
        let band = |band: usize| {
            let mut sums = vec![0.0; p * p];
            for row in band * BAND..((band + 1) * BAND).min(self.targets.len()) {
                let (x, weight) = (&self.design[row * p..(row + 1) * p], self.weight(row));
                for i in 0..p {
                    let factor = weight * x[i];
                    sums[i * p..i * p + i + 1].iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
                }
            }
            sums
        };
        self.in_bands(p * p, band)
    }

    /// Derivative of the loss by the coefficients.
    fn gradient(&self, beta: &[f64]) -> Vec<f64> {
        let (p, c) = (self.inputs, self.classes);
        let band = |band: usize| {
            let mut sums = vec![0.0; p * c];
            for row in band * BAND..((band + 1) * BAND).min(self.targets.len()) {
                let x = &self.design[row * p..(row + 1) * p];
                let mut probabilities = self.probabilities(beta, x);
                probabilities[self.targets[row] as usize] -= 1.0;
                for (error, sums) in probabilities.iter().zip(sums.chunks_mut(p)) {
                    let factor = self.weight(row) * error;
                    sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
                }
            }
            sums
        };
        self.in_bands(p * c, band)
    }

    /// The sums of all bands, added up in order.
    fn in_bands(&self, size: usize, of: impl Fn(usize) -> Vec<f64> + Sync + Send) -> Vec<f64> {
        let bands: Vec<Vec<f64>> = (0..self.targets.len().div_ceil(BAND)).into_par_iter().map(of).collect();
        let mut total = vec![0.0; size];
        for band in bands {
            total.iter_mut().zip(band).for_each(|(sum, part)| *sum += part);
        }
        total
    }

    /// The probability of each class for a row of inputs.
    pub(crate) fn probabilities(&self, beta: &[f64], x: &[f64]) -> Vec<f64> {
        let mut odds: Vec<f64> = beta.chunks(self.inputs).map(|beta| beta.iter().zip(x).map(|(b, x)| b * x).sum()).collect();
        let largest = odds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        odds.iter_mut().for_each(|odds| *odds = (*odds - largest).exp());
        let total: f64 = odds.iter().sum();
        odds.iter_mut().for_each(|power| *power /= total);
        odds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the optimum errors are orthogonal to the inputs, but for the ridge.
    #[test]
    fn the_gradient_vanishes() {
        let mut random = Run::new(4).random("logistic", 0);
        let (rows, inputs, classes) = (500, 4, 3);
        let design: Vec<f64> = (0..rows * inputs).map(|at| if at % inputs == 0 { 1.0 } else { random.normal() }).collect();
        let targets: Vec<f64> = (0..rows)
            .map(|row| {
                let score = design[row * inputs + 1] + random.normal();
                if score < -0.5 {
                    0.0
                } else if score < 0.7 {
                    1.0
                } else {
                    2.0
                }
            })
            .collect();
        let weights: Vec<f64> = (0..rows).map(|row| 1.0 + (row % 3) as f64).collect();
        let examples = Examples { design: &design, inputs, classes, targets: &targets, weights: &weights };
        let beta = examples.fit(&[0.0; 12], &Run::default()).unwrap();
        let gradient = examples.gradient(&beta);
        let total: f64 = weights.iter().sum();
        for (g, b) in gradient.iter().zip(&beta) {
            assert!((g + RIDGE * total * b).abs() < 1e-4 * total, "{gradient:?}");
        }
        assert!(beta.iter().any(|b| b.abs() > 0.5));
    }

    #[test]
    fn separable_classes_stay_finite() {
        let design: Vec<f64> = (0..40).flat_map(|row| [1.0, f64::from(row) - 19.5]).collect();
        let targets: Vec<f64> = (0..40).map(|row| f64::from(row >= 20)).collect();
        let examples = Examples { design: &design, inputs: 2, classes: 2, targets: &targets, weights: &[] };
        let beta = examples.fit(&[0.0; 4], &Run::default()).unwrap();
        assert!(beta.iter().all(|b| b.is_finite() && b.abs() < 1e3));
        assert!(examples.probabilities(&beta, &[1.0, 0.5])[1] > 0.9);
    }
}
