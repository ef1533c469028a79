//! The group penalty `λ Σ ‖w‖` on the weights that leave a feature.

use crate::Result;
use crate::kernels::argmax;
use crate::network::batch::Batch;
use crate::network::mlp::{Gate, Mlp};
use crate::network::samples::Samples;
use crate::neural::candidates::Candidates;
use crate::neural::workbench::lengths_of_all;

/// Weights of inputs start this small, so that the penalty and not the random start decides who is used.
const START: f64 = 1e-3;

/// Trains under the penalty. The penalty is part of the gradient that Adam sees, as in the authors' program: as a shrinking step
/// after Adam's it would do almost nothing, because Adam normalises the gradient and not the step.
pub(crate) struct Penalized {
    penalty: f64,
    /// For each input the factor of its weights in the gradient.
    decay: Vec<f32>,
    factors: Vec<f32>,
    is_free: Vec<bool>,
}

impl Penalized {
    /// Those that are forced are free of the penalty.
    pub(crate) fn new(mlp: &mut Mlp, candidates: &Candidates, forced: &[usize], penalty: f64) -> Self {
        mlp.spread_input_weights(START);
        let mut is_free = vec![false; candidates.len()];
        forced.iter().for_each(|candidate| is_free[*candidate] = true);
        Self { penalty, decay: vec![0.0; candidates.columns.len()], factors: vec![0.0; candidates.len()], is_free }
    }

    /// One update; answers with the loss.
    pub(crate) fn step(
        &mut self,
        mlp: &mut Mlp,
        candidates: &Candidates,
        (samples, rows): (&Samples, &[u32]),
        learning_rate: f64,
        batch: &mut Batch,
    ) -> Result<f64> {
        let lengths = lengths_of_all(mlp, candidates);
        for ((factor, length), is_free) in self.factors.iter_mut().zip(lengths).zip(&self.is_free) {
            *factor = if *is_free || length <= 0.0 { 0.0 } else { (self.penalty / length) as f32 };
        }
        candidates.spread(&self.factors, &mut self.decay);
        mlp.train(samples, rows, Gate { mask: None, decay: Some(&self.decay) }, learning_rate, batch)
    }

    /// The candidate with the longest weights of those that are penalised, with its share of all lengths. It is free from now on.
    pub(crate) fn choose(&mut self, mlp: &Mlp, candidates: &Candidates) -> Option<(usize, f64)> {
        let lengths = lengths_of_all(mlp, candidates);
        let open = lengths.iter().zip(&self.is_free).map(|(length, is_free)| (!is_free).then_some(*length));
        let total: f64 = lengths.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let (candidate, length) = argmax(open)?;
        self.is_free[candidate] = true;
        Some((candidate, length / total))
    }
}
