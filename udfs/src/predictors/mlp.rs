//! A network with trained layers, as a predictor: every candidate trains one from the beginning.

use std::sync::Arc;

use crate::judging::folds::Folds;
use crate::kernels::aligned::Aligned;
use crate::network::mlp::Gate;
use crate::network::samples::{Inputs, Loss, Samples, stride_for};
use crate::network::training::{Trainer, Training};
use crate::predictors::refit::Learner;
use crate::{Result, Run};

/// A hidden layer of so many neurons, trained for so many passes in batches of 32 rows: the paper's choice but for the width.
#[derive(Debug, Clone)]
pub(crate) struct MlpLearner {
    pub training: Training,
}

impl MlpLearner {
    pub fn new(hidden: Vec<usize>, epochs: usize) -> Self {
        Self { training: Training { hidden, epochs: Some(epochs), batch_rows: Some(32), ..Training::default() } }
    }
}

impl Learner for MlpLearner {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let loss = match folds.classes {
            None => Loss::Squared,
            Some(2) => Loss::Logistic,
            Some(classes) => Loss::Softmax(classes),
        };
        let weight: f64 = learn.iter().map(|row| folds.weights[*row]).sum();
        let mean_of = |of: &dyn Fn(usize) -> f64| learn.iter().map(|row| folds.weights[*row] * of(*row)).sum::<f64>() / weight;
        let target = match loss {
            Loss::Squared => {
                let mean = mean_of(&|row| folds.targets[row]);
                let spread = mean_of(&|row| (folds.targets[row] - mean).powi(2)).sqrt();
                (mean, if spread > 0.0 { spread } else { 1.0 })
            }
            _ => (0.0, 1.0),
        };
        // The random start goes with the place in the order of choices: candidates of a step all begin alike.
        let keys = (0..columns.len() as u64).collect();
        let inputs = Inputs { columns: columns.to_vec(), keys, factors: vec![1.0; columns.len()], loss, target };
        let _memory = run.reserve(Samples::bytes_for(columns.len(), learn.len() + rows.len()))?;
        let train = samples(folds, columns, learn, target);
        let mut trainer = Trainer::new(Arc::new(train), &inputs, &self.training, run)?;
        for _ in 0..self.training.steps(trainer.pass_rows(), 1) {
            trainer.step(Gate::default(), self.training.learning_rate)?;
        }
        let asked = samples(folds, columns, rows, target);
        let outputs = trainer.mlp.outputs(&asked, &asked.all(), run)?;
        let as_labels = |output: &[f32]| -> Vec<f64> {
            let plain = match loss {
                Loss::Squared => vec![f64::from(output[0]) * target.1 + target.0],
                Loss::Logistic => vec![1.0 / (1.0 + f64::from(-output[0]).exp())],
                Loss::Softmax(_) => softmax(output),
            };
            plain.iter().zip(&folds.offsets).map(|(value, offset)| value - offset).collect()
        };
        Ok(outputs.chunks_exact(loss.outputs()).map(as_labels).collect())
    }
}

fn softmax(output: &[f32]) -> Vec<f64> {
    let largest = output.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = output.iter().map(|x| f64::from(x - largest).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

/// Rows as a network reads them.
fn samples(folds: &Folds, columns: &[usize], rows: &[usize], target: (f64, f64)) -> Samples {
    let stride = stride_for(columns.len());
    let mut values = Aligned::zeros(rows.len() * stride);
    for (out, row) in values.chunks_exact_mut(stride).zip(rows) {
        out.iter_mut().zip(columns).for_each(|(value, column)| *value = folds.columns[*column][*row] as f32);
    }
    Samples {
        columns: columns.len(),
        stride,
        values,
        sparse: None,
        targets: rows.iter().map(|row| ((folds.targets[*row] - target.0) / target.1) as f32).collect(),
        weights: if folds.is_weighted { rows.iter().map(|row| folds.weights[*row]).collect() } else { Vec::new() },
        memory: None,
    }
}
