//! The group penalty `λ Σ ‖w‖` on the weights that leave a feature.

use crate::Result;
use crate::network::mlp::Gate;
use crate::neural::workbench::Workbench;

/// Weights of inputs start this small, so that the penalty and not the random start decides who is used.
const START: f64 = 1e-3;

/// Trains under the penalty. The penalty is part of the gradient that Adam sees, as in the authors' program: as a shrinking step
/// after Adam's it would do almost nothing, because Adam normalises the gradient and not the step.
pub(crate) struct Penalized {
    penalty: f64,
    /// For each input the factor of its weights in the gradient.
    decay: Vec<f32>,
    factors: Vec<f32>,
    pub is_free: Vec<bool>,
}

impl Penalized {
    pub(crate) fn new(bench: &mut Workbench<'_>, penalty: f64) -> Self {
        bench.trainer.mlp.spread_input_weights(START);
        let candidates = bench.candidates.len();
        let mut is_free = vec![false; candidates];
        bench.forced.iter().for_each(|candidate| is_free[*candidate] = true);
        let inputs = bench.candidates.columns.len();
        Self { penalty, decay: vec![0.0; inputs], factors: vec![0.0; candidates], is_free }
    }

    pub(crate) fn step(&mut self, bench: &mut Workbench<'_>) -> Result<()> {
        let lengths = bench.lengths();
        for ((factor, length), is_free) in self.factors.iter_mut().zip(lengths).zip(&self.is_free) {
            *factor = if *is_free || length <= 0.0 { 0.0 } else { (self.penalty / length) as f32 };
        }
        bench.candidates.spread(&self.factors, &mut self.decay);
        bench.trainer.step(Gate { mask: None, decay: Some(&self.decay) }, bench.training.learning_rate)
    }
}
