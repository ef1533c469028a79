//! The group penalty `λ Σ ‖w‖` on the weights that leave a feature.

use crate::Result;
use crate::models::ground::{Ground, lengths};
use crate::models::mlp::Gate;

/// Weights of inputs start this small, so that the penalty and not the random start decides who is used.
const START: f64 = 1e-3;

/// Trains under the penalty. The penalty is part of the gradient that Adam sees, as in the authors' program: as a shrinking step
/// after Adam's it would do almost nothing, because Adam normalises the gradient and not the step.
pub(crate) struct Penalized {
    penalty: f64,
    all: Vec<usize>,
    /// For each input the factor of its weights in the gradient.
    decay: Vec<f32>,
    factors: Vec<f32>,
    pub is_free: Vec<bool>,
}

impl Penalized {
    pub(crate) fn new(ground: &mut Ground<'_>, penalty: f64) -> Self {
        ground.trainer.mlp.spread_input_weights(START);
        let candidates = ground.candidates.len();
        let mut is_free = vec![false; candidates];
        ground.forced.iter().for_each(|candidate| is_free[*candidate] = true);
        let inputs = ground.candidates.columns.len();
        Self { penalty, all: (0..candidates).collect(), decay: vec![0.0; inputs], factors: vec![0.0; candidates], is_free }
    }

    pub(crate) fn step(&mut self, ground: &mut Ground<'_>) -> Result<()> {
        let lengths = self.lengths(ground);
        for ((factor, length), is_free) in self.factors.iter_mut().zip(lengths).zip(&self.is_free) {
            *factor = if *is_free || length <= 0.0 { 0.0 } else { (self.penalty / length) as f32 };
        }
        ground.candidates.spread(&self.factors, &mut self.decay);
        ground.trainer.step(Gate { mask: None, decay: Some(&self.decay) }, ground.training.learning_rate)
    }

    /// The length of every candidate's weights.
    pub(crate) fn lengths(&self, ground: &Ground<'_>) -> Vec<f64> {
        lengths(&ground.trainer.mlp, &self.all, &ground.candidates)
    }
}
