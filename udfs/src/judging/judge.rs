//! How good a set of columns is: a network trained on them alone, and judged on rows that it has not seen.

use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::judging::measures::{self, Predicted};
use crate::network::mlp::Gate;
use crate::network::samples::{Inputs, Loss, Samples};
use crate::network::training::{Trainer, Training};
use crate::{Error, Problem, Result, Run, Split};

/// What a network's outputs are worth on some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Mean loss: cross-entropy of classes, squared error of a label of variance 1.
    pub loss: f64,
    /// The standard error of the loss.
    pub loss_error: f64,
    /// For classes accuracy, log_loss, auc, balanced_accuracy, f1 and calibration_error; for numbers r2, rmse and mae. None where the rows cannot tell: r2
    /// of a label that does not vary in them, auc of one class.
    #[serde(deserialize_with = "named")]
    pub metrics: Vec<(&'static str, Option<f64>)>,
    /// Standard errors of those whose rows tell them: accuracy, and auc of two classes.
    #[serde(deserialize_with = "named")]
    pub errors: Vec<(&'static str, f64)>,
    /// For classes the rows of each, by the class that was predicted, one class after the other.
    pub confusion: Vec<f64>,
}

/// Every metric.
const METRICS: [&str; 9] = ["accuracy", "log_loss", "auc", "balanced_accuracy", "f1", "calibration_error", "r2", "rmse", "mae"];

fn named<'de, D: Deserializer<'de>, T: DeserializeOwned>(values: D) -> Result<Vec<(&'static str, T)>, D::Error> {
    let known = |(name, value): (String, T)| {
        let metric = METRICS.into_iter().find(|metric| *metric == name);
        metric.map(|metric| (metric, value)).ok_or_else(|| D::Error::custom("unknown metric"))
    };
    Vec::<(String, T)>::deserialize(values)?.into_iter().map(known).collect()
}

impl Verdict {
    /// The first metric: accuracy or R², higher is better.
    pub fn score(&self) -> Option<f64> {
        self.metrics[0].1
    }
}

/// The share of steps after which the learning rate falls to a fifth, for the last digits of the fit.
const COOLING: f64 = 0.75;

/// Some rows of samples, which may be shared with others.
pub(crate) type Part<'a> = (&'a Arc<Samples>, &'a Arc<[u32]>);

/// Passes over the rows, unless there is a reason for others: as many as the paper's judges take.
const EPOCHS: usize = 80;
const STEPS_MIN: usize = 2000;
const STEPS_MAX: usize = 40_000;

/// Steps of a training that is to judge.
pub(crate) fn steps(training: &Training, pass_rows: usize) -> usize {
    let a_pass = (pass_rows / training.batch_rows(pass_rows)).max(1);
    match training.epochs {
        Some(epochs) => epochs * a_pass,
        None => (EPOCHS * a_pass).clamp(STEPS_MIN, STEPS_MAX),
    }
}

/// Trains on some rows.
pub(crate) fn train<'a>(
    inputs: &Inputs,
    (train, learnt): Part<'_>,
    training: &Training,
    steps: usize,
    run: &'a Run,
) -> Result<Trainer<'a>> {
    let mut trainer = Trainer::on(Arc::clone(train), Some(Arc::clone(learnt)), inputs, training, run)?;
    for step in 0..steps {
        if step % (steps / 100).max(1) == 0 {
            run.step(step, steps)?;
        }
        let cooled = if (step as f64) < COOLING * steps as f64 { 1.0 } else { 0.2 };
        trainer.step(Gate::default(), cooled * training.learning_rate)?;
    }
    Ok(trainer)
}

/// Trains on some rows, and answers for others.
pub(crate) fn fit(
    inputs: &Inputs,
    learnt: Part<'_>,
    test: &[Part<'_>],
    training: &Training,
    steps: usize,
    run: &Run,
) -> Result<Vec<Verdict>> {
    // How far one of many has come is nobody's concern.
    let quiet = run.quiet();
    let trainer = train(inputs, learnt, training, steps, &quiet)?;
    let verdict = |(samples, rows): &Part<'_>| {
        let _memory = run.reserve(rows.len() * (4 * inputs.loss.outputs() + 8 * size_of::<f64>()))?;
        Ok(judge(inputs, &trainer.mlp.outputs(samples, rows, run)?, (samples, rows)))
    };
    test.iter().map(verdict).collect()
}

/// What a network that sees only these units is worth on rows that it has not seen: `validation` of the rows, a fifth if `training` says nothing.
pub fn judge_units(problem: &Problem, units: &[usize], training: &Training, run: &Run) -> Result<Verdict> {
    let rows = problem.rows();
    let split = training.split(rows, true, run);
    if split.valid.is_empty() {
        return Err(Error::data(format!("{} rows are too few to hold some out", rows.rows())));
    }
    let varies = |column: &usize| rows.columns[*column].iter().any(|x| *x != 0.0);
    let columns = units.iter().flat_map(|unit| &problem.units[*unit].columns).copied().filter(varies).collect();
    held_out(problem, columns, &split, training, run)
}

/// A judge trains as long as that many rounds of a selection.
pub(crate) const ROUNDS: usize = 16;

/// What a network on these columns of the design is worth on the rows held out.
pub(crate) fn held_out(problem: &Problem, columns: Vec<usize>, split: &Split, training: &Training, run: &Run) -> Result<Verdict> {
    let rows = problem.rows();
    let inputs = Inputs::new(problem, rows, columns);
    let samples = |part: &[usize]| inputs.samples(rows, part, run).map(Arc::new);
    let (train, valid) = (samples(&split.train)?, samples(&split.valid)?);
    let (learnt, asked) = (train.all(), valid.all());
    let steps = training.steps(train.pass_rows(&learnt), ROUNDS);
    let verdicts = fit(&inputs, (&train, &learnt), &[(&valid, &asked)], training, steps, run)?;
    Ok(verdicts.into_iter().next().expect("one verdict for one set of rows"))
}

/// What outputs are worth, of which there are those of one row after the other.
pub(crate) fn judge(inputs: &Inputs, outputs: &[f32], (samples, asked): (&Samples, &[u32])) -> Verdict {
    let rows = asked.len();
    let weight = |row: usize| samples.weight(asked[row] as usize);
    let target = |row: usize| samples.targets[asked[row] as usize];
    let total: f64 = (0..rows).map(weight).sum();
    let mean = |of: &dyn Fn(usize) -> f64| (0..rows).map(|row| weight(row) * of(row)).sum::<f64>() / total;
    let count = inputs.loss.outputs();
    let output = |row: usize| outputs[row * count..(row + 1) * count].iter().map(|x| f64::from(*x));
    let losses: Vec<f64> = (0..rows).map(|row| loss_of(inputs.loss, output(row), f64::from(target(row)))).collect();
    let loss = mean(&|row| losses[row]);
    let spread = mean(&|row| (losses[row] - loss).powi(2));
    let (mut errors, mut confusion) = (Vec::new(), Vec::new());
    let metrics = match inputs.loss {
        Loss::Squared => {
            let miss = |row: usize| f64::from(outputs[row]) - f64::from(target(row));
            let centre = mean(&|row| f64::from(target(row)));
            let variance = mean(&|row| (f64::from(target(row)) - centre).powi(2));
            let unit = inputs.target.1;
            // Of a label that does not vary there is no share to explain.
            let r2 = (variance > 0.0).then(|| 1.0 - loss / variance);
            vec![("r2", r2), ("rmse", Some(unit * loss.sqrt())), ("mae", Some(unit * mean(&|row| miss(row).abs())))]
        }
        _ => {
            let class = |row: usize| match inputs.loss {
                Loss::Softmax(_) => first_largest(output(row)),
                _ => usize::from(outputs[row] > 0.0),
            };
            let predicted: Vec<usize> = (0..rows).map(class).collect();
            let actual: Vec<usize> = (0..rows).map(|row| target(row) as usize).collect();
            let weights: Vec<f64> = (0..rows).map(weight).collect();
            let is_right = |row: usize| predicted[row] == actual[row];
            let classes = count.max(2);
            confusion = Predicted { actual: &actual, predicted: &predicted, weights: &weights, classes }.confusion();
            let area = auc(inputs.loss, outputs, &target, &weights);
            let accuracy = mean(&|row| f64::from(is_right(row)));
            errors.push(("accuracy", (accuracy * (1.0 - accuracy) / rows.max(1) as f64).sqrt()));
            errors.extend(area.and_then(|(_, error)| error).map(|error| ("auc", error)));
            // The probability of the class that was predicted: its loss, if it were the label.
            let confidences: Vec<f64> =
                (0..rows).map(|row| (-loss_of(inputs.loss, output(row), predicted[row] as f64)).exp()).collect();
            vec![
                ("accuracy", Some(accuracy)),
                ("log_loss", Some(loss)),
                ("auc", area.map(|(area, _)| area)),
                ("balanced_accuracy", measures::balanced_accuracy(&confusion, classes)),
                ("f1", measures::f1(&confusion, classes)),
                ("calibration_error", Some(measures::calibration_error(&confidences, is_right, &weights))),
            ]
        }
    };
    if total > 0.0 {
        return Verdict { loss, loss_error: (spread / rows.max(1) as f64).sqrt(), metrics, errors, confusion };
    }
    // No row can be judged: none is of a class that was learnt. Nothing is known, which is not a number of any kind.
    let metrics = metrics.into_iter().map(|(name, _)| (name, None)).collect();
    Verdict { loss, loss_error: 0.0, metrics, errors: Vec::new(), confusion }
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

/// Area under the curve of true against false positives, and of two classes its standard error. With many classes, the mean over each against all others.
/// None if all rows are of one class.
fn auc(loss: Loss, outputs: &[f32], target: &impl Fn(usize) -> f32, weights: &[f64]) -> Option<(f64, Option<f64>)> {
    let Loss::Softmax(classes) = loss else {
        let scores: Vec<f64> = outputs.iter().map(|x| f64::from(*x)).collect();
        return measures::auc(&scores, |row| target(row) > 0.5, weights).map(|(area, error)| (area, Some(error)));
    };
    let odds = |row: usize, class: usize| {
        let row = &outputs[row * classes..(row + 1) * classes];
        let others = row.iter().enumerate().filter(|(other, _)| *other != class).map(|(_, x)| f64::from(*x));
        let largest = others.clone().fold(f64::NEG_INFINITY, f64::max);
        f64::from(row[class]) - largest - others.map(|x| (x - largest).exp()).sum::<f64>().ln()
    };
    let of_class = |class: usize| {
        let scores: Vec<f64> = (0..weights.len()).map(|row| odds(row, class)).collect();
        Some(measures::auc(&scores, |row| target(row) as usize == class, weights)?.0)
    };
    let areas: Vec<f64> = (0..classes).filter_map(of_class).collect();
    (!areas.is_empty()).then(|| (areas.iter().sum::<f64>() / areas.len() as f64, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(targets: &[f32]) -> Samples {
        Samples { targets: targets.to_vec(), ..Samples::default() }
    }

    fn judged(inputs: &Inputs, outputs: &[f32], samples: &Samples) -> Verdict {
        judge(inputs, outputs, (samples, &samples.all()))
    }

    fn metric(verdict: &Verdict, name: &str) -> f64 {
        verdict.metrics.iter().find(|(metric, _)| *metric == name).unwrap().1.unwrap()
    }

    /// Log odds of four rows, and `ln(1 + e^±odds)` worked out for each.
    #[test]
    fn two_classes() {
        let inputs = Inputs::plain(vec![0], Loss::Logistic);
        let verdict = judged(&inputs, &[-1.0, 2.0, 0.5, -0.2], &samples(&[0.0, 1.0, 0.0, 0.0]));
        assert_eq!(metric(&verdict, "accuracy"), 0.75);
        let expected = (0.313_261_687 + 0.126_928_011 + 0.974_076_984 + 0.598_138_869) / 4.0;
        assert!((metric(&verdict, "log_loss") - expected).abs() < 1e-6);
        assert_eq!(metric(&verdict, "auc"), 1.0);
        let tied = judged(&inputs, &[1.0, 1.0, 0.0, 2.0], &samples(&[0.0, 1.0, 0.0, 1.0]));
        assert_eq!(metric(&tied, "auc"), 0.875);
    }

    /// What rows of one class, or of one value, cannot tell is left open; what they can tell is not.
    #[test]
    fn nothing_is_said_of_what_rows_cannot_tell() {
        let one_class = samples(&[1.0, 1.0]);
        for (loss, outputs) in [(Loss::Logistic, vec![0.3, -0.2]), (Loss::Softmax(3), vec![0.0, 1.0, 0.0, 0.0, 0.0, 1.0])] {
            let verdict = judge(&Inputs::plain(vec![0], loss), &outputs, (&one_class, &one_class.all()));
            assert_eq!((verdict.score(), verdict.metrics[2]), (Some(0.5), ("auc", None)));
        }
        let verdict = judge(&Inputs::plain(vec![0], Loss::Squared), &[0.0, 0.0], (&one_class, &one_class.all()));
        assert_eq!((verdict.score(), verdict.metrics[1].1), (None, Some(1.0)));
    }

    #[test]
    fn numbers() {
        let inputs = Inputs { target: (10.0, 2.0), ..Inputs::plain(vec![0], Loss::Squared) };
        let verdict = judged(&inputs, &[0.0, 1.0], &samples(&[1.0, 1.5]));
        assert!((metric(&verdict, "rmse") - 2.0 * (0.625f64).sqrt()).abs() < 1e-6);
        assert!((metric(&verdict, "mae") - 1.5).abs() < 1e-6);
        assert!((metric(&verdict, "r2") - (1.0 - 0.625 / 0.0625)).abs() < 1e-6);
    }

    #[test]
    fn weights_count_rows_more_than_once() {
        let inputs = Inputs::plain(vec![0], Loss::Softmax(3));
        let outputs = [1.0, 0.0, 0.0, 0.0, 2.0, 1.0];
        let weighted = Samples { weights: vec![3.0, 1.0], ..samples(&[0.0, 2.0]) };
        assert_eq!(metric(&judged(&inputs, &outputs, &weighted), "accuracy"), 0.75);
    }
}
