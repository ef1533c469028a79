//! A network with trained layers, as a predictor: every candidate trains one from the beginning.

use std::sync::Arc;

use crate::judging::folds::Folds;
use crate::kernels::aligned::Aligned;
use crate::network::kept::KeptLayer;
use crate::network::mlp::Gate;
use crate::network::samples::{Inputs, Loss, Samples, stride_for};
use crate::network::training::{Trainer, Training};
use crate::predictors::model::{Affine, Learnt, Model, softmax};
use crate::predictors::refit::Learner;
use crate::{Result, Run};

/// A hidden layer of so many neurons, trained for so many passes in batches of 32 rows: the paper's choice but for the width.
#[derive(Debug, Clone)]
pub(crate) struct MlpLearner {
    pub training: Training,
    /// It trains as long as so many rounds of a selection.
    pub rounds: usize,
    /// What the loss pays for the length of the weights that leave each input.
    pub penalty: f64,
}

impl MlpLearner {
    pub fn new(hidden: Vec<usize>, epochs: usize) -> Self {
        Self {
            training: Training { hidden, epochs: Some(epochs), batch_rows: Some(32), ..Training::default() },
            rounds: 1,
            penalty: 0.0,
        }
    }

    /// Trains, and says how the label was scaled.
    fn train<'a>(
        &self,
        folds: &Folds,
        columns: &[usize],
        learn: &[usize],
        run: &'a Run,
    ) -> Result<(Trainer<'a>, Loss, (f64, f64))> {
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
        let memory = run.reserve(Samples::bytes_for(columns.len(), learn.len()))?;
        let train = Samples { memory: Some(memory), ..samples(folds, columns, learn, target) };
        let mut trainer = Trainer::new(Arc::new(train), &inputs, &self.training, run)?;
        let mut decay = vec![0.0; columns.len()];
        for _ in 0..self.training.steps(trainer.pass_rows(), self.rounds) {
            if self.penalty > 0.0 {
                decay.iter_mut().enumerate().for_each(|(input, factor)| *factor = self.decay(trainer.mlp.input_weights(input)));
            }
            let decay = (self.penalty > 0.0).then_some(&decay[..]);
            trainer.step(Gate { mask: None, decay }, self.training.learning_rate)?;
        }
        Ok((trainer, loss, target))
    }

    /// The factor of an input's weights in the gradient of the penalty.
    fn decay(&self, weights: &[f32]) -> f32 {
        let length = weights.iter().map(|weight| weight * weight).sum::<f32>().sqrt();
        if length > 0.0 { self.penalty as f32 / length } else { 0.0 }
    }
}

/// A network's outputs as the label's columns, centred.
fn as_labels(output: &[f64], loss: Loss, target: (f64, f64), offsets: &[f64]) -> Vec<f64> {
    let plain = match loss {
        Loss::Squared => vec![output[0] * target.1 + target.0],
        Loss::Logistic => vec![1.0 / (1.0 + (-output[0]).exp())],
        Loss::Softmax(_) => softmax(output),
    };
    plain.iter().zip(offsets).map(|(value, offset)| value - offset).collect()
}

impl Model for MlpLearner {
    fn learn<'a>(&'a self, folds: &'a Folds, columns: &[usize], learn: &[usize], run: &Run) -> Result<Box<dyn Learnt + 'a>> {
        let (trainer, loss, target) = self.train(folds, columns, learn, run)?;
        let mut layers = trainer.mlp.kept();
        let first = layers.remove(0);
        let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let rest = move |sums: &[f64]| {
            let mut values = sums.to_vec();
            layers.iter().for_each(|layer| values = behind(layer, &values));
            as_labels(&values, loss, target, &folds.offsets)
        };
        let (weights, start) = (wide(&first.weights), wide(&first.bias));
        Ok(Box::new(Affine { folds, columns: columns.to_vec(), weights, start, rest: Box::new(rest) }))
    }
}

/// What a layer gives on, of values before their ReLU.
fn behind(layer: &KeptLayer, values: &[f64]) -> Vec<f64> {
    let mut sums: Vec<f64> = layer.bias.iter().map(|bias| f64::from(*bias)).collect();
    for (value, weights) in values.iter().zip(layer.weights.chunks(sums.len())).filter(|(value, _)| **value > 0.0) {
        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * f64::from(*weight));
    }
    sums
}

impl Learner for MlpLearner {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let (trainer, loss, target) = self.train(folds, columns, learn, run)?;
        let _memory = run.reserve(Samples::bytes_for(columns.len(), rows.len()))?;
        let asked = samples(folds, columns, rows, target);
        let outputs = trainer.mlp.outputs(&asked, &asked.all(), run)?;
        let wide = |output: &[f32]| output.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let outputs = outputs.chunks_exact(loss.outputs());
        Ok(outputs.map(|output| as_labels(&wide(output), loss, target, &folds.offsets)).collect())
    }
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
