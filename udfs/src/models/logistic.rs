//! Multinomial logistic regression.
//!
//! Every step solves with one bound on all curvatures (Böhning, 1992), ½ (I − 11ᵀ/C) ⊗ XᵀWX, so that one small factor serves all steps and
//! none can overshoot. A slight ridge keeps the coefficients of separable classes finite.

use super::refit::Learner;
use super::sample::Sample;
use crate::math::cholesky::Cholesky;
use crate::{Result, Run};

const STEPS: usize = 100;
/// As a share of the rows' weight; inputs have unit variance.
const RIDGE: f64 = 1e-3;
/// A step that changes no coefficient by more is the last.
const STILL: f64 = 1e-6;

pub(crate) struct Logistic;

impl Learner for Logistic {
    fn predict(&self, sample: &Sample, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let classes = sample.classes.expect("only asked for classes");
        let input = |row: usize, at: usize| if at == 0 { 1.0 } else { sample.columns[columns[at - 1]][row] };
        let inputs = columns.len() + 1;
        let design: Vec<f64> = learn.iter().flat_map(|row| (0..inputs).map(move |at| input(*row, at))).collect();
        let weight: f64 = learn.iter().map(|row| sample.weights[*row]).sum();
        let mut products = vec![0.0; inputs * inputs];
        for (x, row) in design.chunks_exact(inputs).zip(learn) {
            for i in 0..inputs {
                (0..=i).for_each(|j| products[i * inputs + j] += sample.weights[*row] * x[i] * x[j]);
            }
        }
        let ridge = RIDGE * weight;
        let bound = |i: usize, j: usize| 0.5 * products[i * inputs + j] + if i == j { ridge } else { 0.0 };
        let factor = Cholesky::of(inputs, bound).unwrap_or_default();
        let mut coefficients = vec![vec![0.0; inputs]; classes];
        for _ in 0..STEPS {
            run.check()?;
            let mut gradients = vec![vec![0.0; inputs]; classes];
            for (x, row) in design.chunks_exact(inputs).zip(learn) {
                let probabilities = softmax(&coefficients, x);
                for (class, gradient) in gradients.iter_mut().enumerate() {
                    let error = f64::from(sample.targets[*row] as usize == class) - probabilities[class];
                    gradient.iter_mut().zip(x).for_each(|(g, x)| *g += sample.weights[*row] * error * x);
                }
            }
            let mut largest: f64 = 0.0;
            for (coefficients, mut step) in coefficients.iter_mut().zip(gradients) {
                step.iter_mut().zip(&*coefficients).for_each(|(g, c)| *g -= ridge * c);
                factor.solve(&mut step);
                coefficients.iter_mut().zip(&step).for_each(|(c, s)| *c += s);
                largest = step.iter().fold(largest, |largest, s| largest.max(s.abs()));
            }
            if largest < STILL {
                break;
            }
        }
        let first = usize::from(classes == 2);
        let predict = |row: &usize| {
            let x: Vec<f64> = (0..inputs).map(|at| input(*row, at)).collect();
            let probabilities = softmax(&coefficients, &x);
            probabilities[first..].iter().zip(&sample.offsets).map(|(probability, offset)| probability - offset).collect()
        };
        Ok(rows.iter().map(predict).collect())
    }
}

fn softmax(coefficients: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let scores: Vec<f64> = coefficients.iter().map(|c| c.iter().zip(x).map(|(c, x)| c * x).sum()).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::models::sample::Holding;
    use crate::testing::Table;

    /// At the optimum the gradient vanishes: errors are orthogonal to the inputs, but for the ridge.
    #[test]
    fn the_gradient_vanishes() {
        let table = Table::random(300, 2, 5);
        let noise = Table::random(300, 1, 6);
        let label: Vec<f64> = (0..300).map(|row| f64::from(table.column(0)[row] - 0.5 + noise.column(0)[row] > 0.0)).collect();
        let table = Table { task: Some(Task::Classification), ..table };
        let sample = Sample::new(&table.problem_of_rows(&label), Holding::Share(0.1), &Run::new(0)).unwrap();
        let rows: Vec<usize> = sample.learnt_rows(0);
        let predictions = Logistic.predict(&sample, &[0, 1], &rows, &rows, &Run::new(0)).unwrap();
        let error = |row: usize, at: usize| sample.labels[0][row] - predictions[at][0];
        let intercept: f64 = rows.iter().enumerate().map(|(at, row)| error(*row, at)).sum::<f64>() / rows.len() as f64;
        let first: f64 =
            rows.iter().enumerate().map(|(at, row)| error(*row, at) * sample.columns[0][*row]).sum::<f64>() / rows.len() as f64;
        assert!(intercept.abs() < 2e-3 && first.abs() < 5e-3, "{intercept} {first}");
    }
}
