//! Least squares and logistic regression as judges of a set of columns.

use crate::judging::judge::{Part, Verdict, judge};
use crate::kernels::cholesky::Cholesky;
use crate::linear::logistic::{Examples, SLIGHT};
use crate::network::samples::{Inputs, Loss, Samples};
use crate::{Result, Run};

/// Relative accuracy of logistic coefficients.
const ACCURACY: f64 = 1e-6;
/// Keeps columns that depend on each other from making the system singular.
const RIDGE: f64 = 1e-9;

/// Least squares; classes are predicted as one column of zeros and ones each.
pub(crate) fn least_squares(inputs: &Inputs, (train, learnt): Part<'_>, test: &[Part<'_>], run: &Run) -> Result<Vec<Verdict>> {
    let (outputs, count) = (inputs.loss.outputs(), inputs.columns.len() + 1);
    let _memory = run.reserve((3 * count * count + 2 * outputs * count) * size_of::<f64>())?;
    let total: f64 = learnt.iter().map(|row| train.weight(*row as usize)).sum();
    let mut products = vec![0.0; count * count];
    let mut sides = vec![vec![0.0; count]; outputs];
    each_row(train, learnt, run, |row, x| {
        let weight = train.weight(row);
        for i in 0..count {
            products[i * count..i * count + i + 1].iter_mut().zip(x).for_each(|(p, y)| *p += weight * x[i] * y);
        }
        for (output, side) in sides.iter_mut().enumerate() {
            let y = weight * target(inputs.loss, train.targets[row], output);
            side.iter_mut().zip(x).for_each(|(s, x)| *s += y * x);
        }
    })?;
    let ridge = RIDGE * total;
    let system = |i: usize, j: usize| products[i.max(j) * count + i.min(j)] + if i == j { ridge } else { 0.0 };
    if let Some(factor) = Cholesky::of(count, system) {
        sides.iter_mut().for_each(|side| factor.solve(side));
    }
    let dot = |x: &[f64], beta: &[f64]| x.iter().zip(beta).map(|(x, b)| x * b).sum::<f64>() as f32;
    let answer = |(samples, rows): &Part<'_>| {
        let mut outputs: Vec<f32> = Vec::new();
        let _memory = run.reserve(rows.len() * sides.len() * 2 * size_of::<f32>())?;
        each_row(samples, rows, run, |_, x| outputs.extend(sides.iter().map(|beta| dot(x, beta))))?;
        let mut verdict = judge(inputs, &outputs, (samples, rows));
        // Fitted values are no probabilities.
        verdict.metrics.retain(|(metric, _)| !matches!(*metric, "log_loss" | "calibration_error"));
        Ok(verdict)
    };
    test.iter().map(answer).collect()
}

/// Multinomial logistic regression.
pub(crate) fn logistic(inputs: &Inputs, (train, learnt): Part<'_>, test: &[Part<'_>], run: &Run) -> Result<Vec<Verdict>> {
    let (classes, count) = (inputs.loss.outputs().max(2), inputs.columns.len() + 1);
    let _memory = run.reserve(learnt.len() * (count + 2) * size_of::<f64>())?;
    let mut design = Vec::with_capacity(learnt.len() * count);
    each_row(train, learnt, run, |_, x| design.extend_from_slice(x))?;
    let targets: Vec<f64> = learnt.iter().map(|row| f64::from(train.targets[*row as usize])).collect();
    let weights: Vec<f64> =
        if train.weights.is_empty() { Vec::new() } else { learnt.iter().map(|row| train.weights[*row as usize]).collect() };
    let examples = Examples { design: &design, inputs: count, classes, targets: &targets, weights: &weights, ridge: SLIGHT };
    let beta = examples.fit(&vec![0.0; count * classes], ACCURACY, run)?;
    let answer = |(samples, rows): &Part<'_>| {
        let mut odds = vec![0.0; classes];
        let mut outputs: Vec<f32> = Vec::new();
        let _memory = run.reserve(rows.len() * classes * 2 * size_of::<f32>())?;
        each_row(samples, rows, run, |_, x| {
            examples.probabilities(&beta, x, &mut odds);
            odds.iter_mut().for_each(|p| *p = p.max(1e-30).ln());
            match inputs.loss {
                Loss::Softmax(_) => outputs.extend(odds.iter().map(|odds| *odds as f32)),
                _ => outputs.push((odds[1] - odds[0]) as f32),
            }
        })?;
        Ok(judge(inputs, &outputs, (samples, rows)))
    };
    test.iter().map(answer).collect()
}

/// Rows, one after the other, with an intercept.
fn each_row(samples: &Samples, rows: &[u32], run: &Run, mut receive: impl FnMut(usize, &[f64])) -> Result<()> {
    let mut x = vec![1.0];
    for (at, row) in rows.iter().enumerate() {
        if at % 256 == 0 {
            run.check()?;
        }
        x.truncate(1);
        x.extend(samples.row(*row as usize).iter().map(|x| f64::from(*x)));
        receive(*row as usize, &x);
    }
    Ok(())
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
        let samples = std::sync::Arc::new(inputs.samples(rows, &Split::none(50).train, &Run::new(0)).unwrap());
        let part = (&samples, &samples.all());
        let verdict = &least_squares(&inputs, part, &[part], &Run::new(0)).unwrap()[0];
        let (_, r2) = testing::least_squares(&[table.column(0), table.column(1), table.column(2)], &label);
        assert!((verdict.score().unwrap() - r2).abs() < 1e-6, "{verdict:?} {r2}");
    }
}
