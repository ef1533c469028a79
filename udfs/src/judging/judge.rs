//! How good a set of columns is: a network trained on them alone, and judged on rows that it has not seen.

use crate::network::mlp::Gate;
use crate::network::samples::{Inputs, Loss, Samples};
use crate::network::training::{Trainer, Training};
use crate::{Result, Run};

/// What a network's outputs are worth on some rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// Mean loss, and its standard error.
    pub loss: f64,
    pub loss_error: f64,
    /// For classes accuracy, log_loss and auc; for numbers r2, rmse and mae.
    pub metrics: Vec<(&'static str, f64)>,
}

impl Verdict {
    /// The first metric: accuracy or R², higher is better.
    pub(crate) fn score(&self) -> f64 {
        self.metrics[0].1
    }
}

/// The share of steps after which the learning rate falls to a fifth, for the last digits of the fit.
const COOLING: f64 = 0.75;

/// Trains on `train`, and answers for `test`.
pub(crate) fn fit(
    inputs: &Inputs,
    train: &Samples,
    test: &[&Samples],
    training: &Training,
    steps: usize,
    run: &Run,
) -> Result<Vec<Verdict>> {
    let mut trainer = Trainer::new(train.clone(), inputs, training, run);
    for step in 0..steps {
        let cooled = if (step as f64) < COOLING * steps as f64 { 1.0 } else { 0.2 };
        trainer.step(Gate::default(), cooled * training.learning_rate)?;
    }
    Ok(test.iter().map(|test| judge(inputs, &trainer.mlp.outputs(test, None), test)).collect())
}

pub(crate) fn judge(inputs: &Inputs, outputs: &[f32], samples: &Samples) -> Verdict {
    let rows = samples.rows();
    let total: f64 = (0..rows).map(|row| samples.weight(row)).sum();
    let mean = |of: &dyn Fn(usize) -> f64| (0..rows).map(|row| samples.weight(row) * of(row)).sum::<f64>() / total;
    let count = inputs.loss.outputs();
    let output = |row: usize| outputs[row * count..(row + 1) * count].iter().map(|x| f64::from(*x));
    let losses: Vec<f64> = (0..rows).map(|row| loss_of(inputs.loss, output(row), f64::from(samples.targets[row]))).collect();
    let loss = mean(&|row| losses[row]);
    let spread = mean(&|row| (losses[row] - loss).powi(2));
    let metrics = match inputs.loss {
        Loss::Squared => {
            let miss = |row: usize| f64::from(outputs[row]) - f64::from(samples.targets[row]);
            let centre = mean(&|row| f64::from(samples.targets[row]));
            let variance = mean(&|row| (f64::from(samples.targets[row]) - centre).powi(2));
            let unit = inputs.target.1;
            let r2 = if variance > 0.0 { 1.0 - loss / variance } else { 0.0 };
            vec![("r2", r2), ("rmse", unit * loss.sqrt()), ("mae", unit * mean(&|row| miss(row).abs()))]
        }
        _ => {
            let right = |row: usize| {
                let class = match inputs.loss {
                    Loss::Softmax(_) => first_largest(output(row)),
                    _ => usize::from(outputs[row] > 0.0),
                };
                f64::from(class == samples.targets[row] as usize)
            };
            vec![("accuracy", mean(&right)), ("log_loss", loss), ("auc", auc(inputs.loss, outputs, samples))]
        }
    };
    Verdict { loss, loss_error: (spread / rows.max(1) as f64).sqrt(), metrics }
}

fn loss_of(loss: Loss, mut output: impl Iterator<Item = f64> + Clone, target: f64) -> f64 {
    match loss {
        Loss::Squared => (output.next().unwrap_or(0.0) - target).powi(2),
        Loss::Logistic => {
            let odds = output.next().unwrap_or(0.0);
            odds.max(0.0) - odds * target + (-odds.abs()).exp().ln_1p()
        }
        Loss::Softmax(_) => {
            let largest = output.clone().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = output.clone().map(|x| (x - largest).exp()).sum();
            total.ln() + largest - output.nth(target as usize).unwrap_or(largest)
        }
    }
}

fn first_largest(values: impl Iterator<Item = f64>) -> usize {
    values.enumerate().fold((0, f64::NEG_INFINITY), |best, (at, x)| if x > best.1 { (at, x) } else { best }).0
}

/// Area under the curve of true against false positives. With many classes, the mean over each against all others.
fn auc(loss: Loss, outputs: &[f32], samples: &Samples) -> f64 {
    let rows = samples.rows();
    let Loss::Softmax(classes) = loss else {
        let scores: Vec<f64> = outputs.iter().map(|x| f64::from(*x)).collect();
        return auc_of(&scores, |row| samples.targets[row] > 0.5, samples).unwrap_or(0.5);
    };
    let odds = |row: usize, class: usize| {
        let row = &outputs[row * classes..(row + 1) * classes];
        let others = row.iter().enumerate().filter(|(other, _)| *other != class).map(|(_, x)| f64::from(*x));
        let largest = others.clone().fold(f64::NEG_INFINITY, f64::max);
        f64::from(row[class]) - largest - others.map(|x| (x - largest).exp()).sum::<f64>().ln()
    };
    let of_class = |class: usize| {
        let scores: Vec<f64> = (0..rows).map(|row| odds(row, class)).collect();
        auc_of(&scores, |row| samples.targets[row] as usize == class, samples)
    };
    let areas: Vec<f64> = (0..classes).filter_map(of_class).collect();
    if areas.is_empty() { 0.5 } else { areas.iter().sum::<f64>() / areas.len() as f64 }
}

/// Of two classes; `None` when there is only one. Equal scores count half.
fn auc_of(scores: &[f64], is_positive: impl Fn(usize) -> bool, samples: &Samples) -> Option<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    let (mut negatives, mut positives, mut area) = (0.0, 0.0, 0.0);
    for tied in order.chunk_by(|a, b| scores[*a] == scores[*b]) {
        let of = |positive: bool| {
            tied.iter().filter(|row| is_positive(**row) == positive).map(|row| samples.weight(*row)).sum::<f64>()
        };
        let (up, down) = (of(true), of(false));
        area += up * (negatives + 0.5 * down);
        positives += up;
        negatives += down;
    }
    (positives > 0.0 && negatives > 0.0).then(|| area / (positives * negatives))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(targets: &[f32]) -> Samples {
        Samples { targets: targets.to_vec(), ..Samples::default() }
    }

    fn metric(verdict: &Verdict, name: &str) -> f64 {
        verdict.metrics.iter().find(|(metric, _)| *metric == name).unwrap().1
    }

    /// Log odds of four rows, and `ln(1 + e^±odds)` worked out for each.
    #[test]
    fn two_classes() {
        let inputs = Inputs::plain(vec![0], Loss::Logistic);
        let verdict = judge(&inputs, &[-1.0, 2.0, 0.5, -0.2], &samples(&[0.0, 1.0, 0.0, 0.0]));
        assert_eq!(metric(&verdict, "accuracy"), 0.75);
        let expected = (0.313_261_687 + 0.126_928_011 + 0.974_076_984 + 0.598_138_869) / 4.0;
        assert!((metric(&verdict, "log_loss") - expected).abs() < 1e-6);
        assert_eq!(metric(&verdict, "auc"), 1.0);
        let tied = judge(&inputs, &[1.0, 1.0, 0.0, 2.0], &samples(&[0.0, 1.0, 0.0, 1.0]));
        assert_eq!(metric(&tied, "auc"), 0.875);
    }

    #[test]
    fn numbers() {
        let inputs = Inputs { target: (10.0, 2.0), ..Inputs::plain(vec![0], Loss::Squared) };
        let verdict = judge(&inputs, &[0.0, 1.0], &samples(&[1.0, 1.5]));
        assert!((metric(&verdict, "rmse") - 2.0 * (0.625f64).sqrt()).abs() < 1e-6);
        assert!((metric(&verdict, "mae") - 1.5).abs() < 1e-6);
        assert!((metric(&verdict, "r2") - (1.0 - 0.625 / 0.0625)).abs() < 1e-6);
    }

    #[test]
    fn weights_count_rows_more_than_once() {
        let inputs = Inputs::plain(vec![0], Loss::Softmax(3));
        let outputs = [1.0, 0.0, 0.0, 0.0, 2.0, 1.0];
        let weighted = Samples { weights: vec![3.0, 1.0], ..samples(&[0.0, 2.0]) };
        assert_eq!(metric(&judge(&inputs, &outputs, &weighted), "accuracy"), 0.75);
    }
}
