//! Backward elimination: the direction that SequentialAttention++ takes.

use super::SequentialAttention;
use super::neural::Ground;
use crate::Result;
use crate::models::mlp::Gate;

/// Share of the training before the first features go.
const START: f64 = 0.2;
/// Share of the features that goes in a round.
const SHARE: f64 = 0.1;

/// The `most` candidates that a network cannot do without, the most important first, with their shares of the importance.
pub(super) fn order(_options: &SequentialAttention, ground: &mut Ground<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
    let Ground { candidates, trainer, training, forced, run, .. } = ground;
    let sizes = sizes(candidates.len(), most);
    let rounds = sizes.len();
    let steps = training.steps(trainer.pass_rows(), rounds + 1);
    let start = (START * steps as f64) as usize;
    let mut alive: Vec<usize> = (0..candidates.len()).collect();
    for round in 0..=rounds {
        run.step_with(round, rounds + 1, || trainer.note())?;
        let end = |round: usize| start + round * (steps - start) / (rounds + 1);
        let from = if round == 0 { 0 } else { end(round) };
        for _ in from..end(round + 1) {
            trainer.step(Gate::default(), training.learning_rate)?;
        }
        let importances = importances(&trainer.mlp, &alive, candidates);
        let mut ranked: Vec<usize> = (0..alive.len()).collect();
        let is_forced = |at: &usize| forced.contains(&alive[*at]);
        ranked.sort_by(|a, b| is_forced(b).cmp(&is_forced(a)).then(importances[*b].total_cmp(&importances[*a])).then(a.cmp(b)));
        if round == rounds {
            let total: f64 = importances.iter().sum();
            ranked[..forced.len()].sort_by_key(|at| forced.iter().position(|candidate| *candidate == alive[*at]));
            return Ok(ranked.iter().take(most).map(|at| (alive[*at], importances[*at] / total)).collect());
        }
        let mut kept = ranked[..sizes[round]].to_vec();
        kept.sort_unstable();
        let mut inputs = Vec::new();
        let mut at = 0;
        for (position, candidate) in alive.iter().enumerate() {
            let width = candidates.inputs[*candidate].len();
            if kept.binary_search(&position).is_ok() {
                inputs.extend(at..at + width);
            }
            at += width;
        }
        // The network goes on with what is left of it: smaller, and so faster.
        trainer.keep_inputs(&inputs);
        alive = kept.iter().map(|at| alive[*at]).collect();
    }
    unreachable!("the last round returns")
}

/// How many are left after each round: a share fewer, and in the end `most`.
fn sizes(all: usize, most: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut left = all;
    while left > most {
        left = ((left as f64 * (1.0 - SHARE)) as usize).max(most);
        sizes.push(left);
    }
    sizes
}

/// The length of each candidate's weights.
fn importances(mlp: &crate::models::mlp::Mlp, alive: &[usize], candidates: &crate::models::candidates::Candidates) -> Vec<f64> {
    let mut input = 0;
    alive
        .iter()
        .map(|candidate| {
            let width = candidates.inputs[*candidate].len();
            let energy: f64 = (input..input + width).flat_map(|i| mlp.input_weights(i)).map(|w| f64::from(*w).powi(2)).sum();
            input += width;
            energy.sqrt()
        })
        .collect()
}
