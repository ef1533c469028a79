//! Least squares and logistic regression as judges of a set of columns.

use crate::judging::judge::{Verdict, judge};
use crate::kernels::cholesky::Cholesky;
use crate::linear::logistic::{Examples, SLIGHT};
use crate::network::samples::{Inputs, Loss, Samples};
use crate::{Result, Run};

/// Relative accuracy of logistic coefficients.
const ACCURACY: f64 = 1e-6;
/// Keeps columns that depend on each other from making the system singular.
const RIDGE: f64 = 1e-9;

/// Least squares; classes are predicted as one column of zeros and ones each.
pub(crate) fn least_squares(inputs: &Inputs, train: &Samples, test: &[&Samples]) -> Vec<Verdict> {
    let (outputs, inputs_count) = (inputs.loss.outputs(), inputs.columns.len() + 1);
    let design = design(train, inputs_count);
    let total: f64 = (0..train.rows()).map(|row| train.weight(row)).sum();
    let mut products = vec![0.0; inputs_count * inputs_count];
    let mut sides = vec![vec![0.0; inputs_count]; outputs];
    for (row, x) in design.chunks(inputs_count).enumerate() {
        let weight = train.weight(row);
        for i in 0..inputs_count {
            products[i * inputs_count..i * inputs_count + i + 1].iter_mut().zip(x).for_each(|(p, y)| *p += weight * x[i] * y);
        }
        for (output, side) in sides.iter_mut().enumerate() {
            let y = weight * target(inputs.loss, train.targets[row], output);
            side.iter_mut().zip(x).for_each(|(s, x)| *s += y * x);
        }
    }
    let ridge = RIDGE * total;
    let system = |i: usize, j: usize| products[i.max(j) * inputs_count + i.min(j)] + if i == j { ridge } else { 0.0 };
    if let Some(factor) = Cholesky::of(inputs_count, system) {
        sides.iter_mut().for_each(|side| factor.solve(side));
    }
    let answer = |samples: &&Samples| {
        let dot = |x: &[f64], beta: &Vec<f64>| x.iter().zip(beta).map(|(x, b)| x * b).sum::<f64>() as f32;
        let outputs: Vec<f32> = self::design(samples, inputs_count)
            .chunks(inputs_count)
            .flat_map(|x| sides.iter().map(|beta| dot(x, beta)).collect::<Vec<_>>())
            .collect();
        let mut verdict = judge(inputs, &outputs, samples);
        // Fitted values are no probabilities.
        verdict.metrics.retain(|(metric, _)| *metric != "log_loss");
        verdict
    };
    test.iter().map(answer).collect()
}

/// Multinomial logistic regression.
pub(crate) fn logistic(inputs: &Inputs, train: &Samples, test: &[&Samples], run: &Run) -> Result<Vec<Verdict>> {
    let (classes, count) = (inputs.loss.outputs().max(2), inputs.columns.len() + 1);
    let design = design(train, count);
    let targets: Vec<f64> = train.targets.iter().map(|class| f64::from(*class)).collect();
    let examples =
        Examples { design: &design, inputs: count, classes, targets: &targets, weights: &train.weights, ridge: SLIGHT };
    let beta = examples.fit(&vec![0.0; count * classes], ACCURACY, run)?;
    let answer = |samples: &&Samples| {
        let mut odds = vec![0.0; classes];
        let mut outputs: Vec<f32> = Vec::new();
        for x in self::design(samples, count).chunks(count) {
            examples.probabilities(&beta, x, &mut odds);
            odds.iter_mut().for_each(|p| *p = p.max(1e-30).ln());
            match inputs.loss {
                Loss::Softmax(_) => outputs.extend(odds.iter().map(|odds| *odds as f32)),
                _ => outputs.push((odds[1] - odds[0]) as f32),
            }
        }
        judge(inputs, &outputs, samples)
    };
    Ok(test.iter().map(answer).collect())
}

/// Rows with an intercept.
fn design(samples: &Samples, inputs: usize) -> Vec<f64> {
    let mut design = Vec::with_capacity(samples.rows() * inputs);
    for row in 0..samples.rows() {
        design.push(1.0);
        design.extend(samples.row(row).iter().map(|x| f64::from(*x)));
    }
    design
}

/// What an output should be for a row. For two classes it is ±1, so that 0 parts them.
fn target(loss: Loss, target: f32, output: usize) -> f64 {
    match loss {
        Loss::Squared => f64::from(target),
        Loss::Logistic => f64::from(2.0 * target - 1.0),
        Loss::Softmax(_) => f64::from(target as usize == output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;
    use crate::{Split, testing};

    /// R² of the training rows against the dense reference.
    #[test]
    fn least_squares_is_least_squares() {
        let table = Table::random(50, 3, 4);
        let label: Vec<f64> = (0..50).map(|row| table.column(0)[row] + (row as f64).sin()).collect();
        let problem = table.problem_of_rows(&label);
        let rows = problem.rows();
        let inputs = Inputs::new(&problem, rows, vec![0, 1, 2]);
        let samples = inputs.samples(rows, &Split::none(50).train);
        let verdict = &least_squares(&inputs, &samples, &[&samples])[0];
        let (_, r2) = testing::least_squares(&[table.column(0), table.column(1), table.column(2)], &label);
        assert!((verdict.score() - r2).abs() < 1e-6, "{} {r2}", verdict.score());
    }
}
