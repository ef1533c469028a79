//! Multinomial logistic regression in double precision.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernels::cholesky::Cholesky;
use crate::kernels::gemm::vectorized;
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
    /// Penalty `½ ridge ‖β‖²`, for each unit of weight of the rows. Some of it keeps separable classes finite.
    pub ridge: f64,
}

/// Just enough of a penalty.
pub(crate) const SLIGHT: f64 = 1e-6;
const STEPS_MAX: usize = 500;
/// Rows whose sums are taken together, in an order that does not depend on threads.
const BAND: usize = 1024;

impl Examples<'_> {
    fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// The coefficients `[input * classes + class]`, from a start, to a relative accuracy.
    ///
    /// One bound on all curvatures serves every step (Böhning, 1992): ½ XᵀWX for each class, so that the steps of a gradient descent
    /// in its metric cannot overshoot. Nesterov's momentum, begun anew whenever it points uphill, makes them few.
    pub(crate) fn fit(&self, start: &[f64], accuracy: f64, run: &Run) -> Result<Vec<f64>> {
        let (p, c) = (self.inputs, self.classes);
        let total: f64 = (0..self.targets.len()).map(|row| self.weight(row)).sum();
        let ridge = self.ridge * total;
        let products = self.in_bands(p * p, run, |rows, sums| multiply_band(self, rows, sums))?;
        // Rounding may leave equal columns without a positive pivot; a larger ridge bounds the curvature as well.
        let factor = [1.0, 1e3, 1e6].iter().find_map(|more| {
            Cholesky::of(p, |i, j| 0.5 * products[i.max(j) * p + i.min(j)] + if i == j { more * ridge } else { 0.0 })
        });
        let Some(factor) = factor else { return Ok(start.to_vec()) };
        let mut beta = start.to_vec();
        let mut ahead = beta.clone();
        let mut momentum: f64 = 1.0;
        let mut column = vec![0.0; p];
        for _ in 0..STEPS_MAX {
            run.check()?;
            let mut step = self.in_bands(p * c, run, |rows, sums| differentiate_band(self, &ahead, rows, sums))?;
            step.iter_mut().zip(&ahead).for_each(|(g, b)| *g += ridge * b);
            let uphill: f64 = step.iter().zip(ahead.iter().zip(&beta)).map(|(g, (a, b))| g * (a - b)).sum();
            for class in 0..c {
                column.iter_mut().zip(step[class..].iter().step_by(c)).for_each(|(to, from)| *to = *from);
                factor.solve(&mut column);
                step[class..].iter_mut().step_by(c).zip(&column).for_each(|(to, from)| *to = *from);
            }
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
            if moved <= accuracy * size {
                break;
            }
        }
        Ok(beta)
    }

    /// The sums over all rows, taken band by band and added up in order.
    fn in_bands(&self, size: usize, run: &Run, add: impl Fn(Range<usize>, &mut [f64]) + Sync + Send) -> Result<Vec<f64>> {
        let rows = self.targets.len();
        let of_band = |band: usize| {
            let mut sums = vec![0.0; size];
            add(band * BAND..((band + 1) * BAND).min(rows), &mut sums);
            sums
        };
        let mut total = vec![0.0; size];
        let (bands, at_once) = (rows.div_ceil(BAND), 4 * rayon::current_num_threads());
        // A few bands at a time, so that long tables do not take more space.
        let _memory = run.reserve((at_once.min(bands) + 1) * size * size_of::<f64>())?;
        for first in (0..bands).step_by(at_once) {
            run.check()?;
            let sums: Vec<Vec<f64>> = (first..bands.min(first + at_once)).into_par_iter().map(of_band).collect();
            for sums in sums {
                total.iter_mut().zip(sums).for_each(|(sum, part)| *sum += part);
            }
        }
        Ok(total)
    }

    /// Writes the probability of each class for a row of inputs.
    #[inline(always)]
    pub(crate) fn probabilities(&self, beta: &[f64], x: &[f64], probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        for (x, beta) in x.iter().zip(beta.chunks_exact(self.classes)) {
            probabilities.iter_mut().zip(beta).for_each(|(odds, beta)| *odds += x * beta);
        }
        let largest = probabilities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        probabilities.iter_mut().for_each(|odds| *odds = (*odds - largest).exp());
        let total: f64 = probabilities.iter().sum();
        probabilities.iter_mut().for_each(|power| *power /= total);
    }
}

vectorized! {
    fn multiply_band(examples: &Examples<'_>, rows: Range<usize>, sums: &mut [f64]) = multiply;
}
vectorized! {
    fn differentiate_band(examples: &Examples<'_>, beta: &[f64], rows: Range<usize>, sums: &mut [f64]) = differentiate;
}

/// The lower half of XᵀWX.
#[inline(always)]
fn multiply<const FMA: bool>(examples: &Examples<'_>, rows: Range<usize>, sums: &mut [f64]) {
    let p = examples.inputs;
    for row in rows {
        let (x, weight) = (&examples.design[row * p..(row + 1) * p], examples.weight(row));
        for i in 0..p {
            let factor = weight * x[i];
            sums[i * p..i * p + i + 1].iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
        }
    }
}

/// Derivative of the loss by the coefficients.
#[inline(always)]
fn differentiate<const FMA: bool>(examples: &Examples<'_>, beta: &[f64], rows: Range<usize>, sums: &mut [f64]) {
    let (p, c) = (examples.inputs, examples.classes);
    let mut errors = vec![0.0; c];
    for row in rows {
        let x = &examples.design[row * p..(row + 1) * p];
        examples.probabilities(beta, x, &mut errors);
        errors[examples.targets[row] as usize] -= 1.0;
        let weight = examples.weight(row);
        errors.iter_mut().for_each(|error| *error *= weight);
        for (x, sums) in x.iter().zip(sums.chunks_exact_mut(c)) {
            sums.iter_mut().zip(&errors).for_each(|(sum, error)| *sum += x * error);
        }
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
        let examples = Examples { design: &design, inputs, classes, targets: &targets, weights: &weights, ridge: SLIGHT };
        let beta = examples.fit(&[0.0; 12], 1e-7, &Run::default()).unwrap();
        let gradient =
            examples.in_bands(12, &Run::default(), |rows, sums| differentiate_band(&examples, &beta, rows, sums)).unwrap();
        let total: f64 = weights.iter().sum();
        for (g, b) in gradient.iter().zip(&beta) {
            assert!((g + SLIGHT * total * b).abs() < 1e-4 * total, "{gradient:?}");
        }
        assert!(beta.iter().any(|b| b.abs() > 0.5));
    }

    #[test]
    fn separable_classes_stay_finite() {
        let design: Vec<f64> = (0..40).flat_map(|row| [1.0, f64::from(row) - 19.5]).collect();
        let targets: Vec<f64> = (0..40).map(|row| f64::from(row >= 20)).collect();
        let examples = Examples { design: &design, inputs: 2, classes: 2, targets: &targets, weights: &[], ridge: SLIGHT };
        let beta = examples.fit(&[0.0; 4], 1e-7, &Run::default()).unwrap();
        assert!(beta.iter().all(|b| b.is_finite() && b.abs() < 1e3));
        let mut probabilities = [0.0; 2];
        examples.probabilities(&beta, &[1.0, 0.5], &mut probabilities);
        assert!(probabilities[1] > 0.9);
    }
}
