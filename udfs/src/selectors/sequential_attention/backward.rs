//! Backward elimination: the direction that SequentialAttention++ takes.

use crate::Result;
use crate::network::mlp::Gate;
use crate::network::training::Schedule;
use crate::neural::workbench::{Workbench, lengths};

/// Share of the training before the first features go.
const START: f64 = 0.2;
/// Share of the features that goes in a round.
const SHARE: f64 = 0.1;
/// Rounds of a forward selection that a round takes as long as.
const LENGTH: f64 = 1.5;
/// A slight group penalty on all weights, which lets those that nothing needs fade. With it 50 features of MNIST and ISOLET
/// were worth 0.2 points of accuracy more than without.
const PENALTY: f64 = 0.003;
/// How much of the past stays in the running mean of squared slopes.
const MEMORY: f64 = 0.99;

/// The `most` candidates that a network cannot do without, the most important first, with their shares of the importance.
///
/// The importance of a feature is the length of its weights times the root of its slope, the derivative of the loss by its mask, in the
/// root mean square of the last batches: weights may be long and matter little. On MNIST that is 0.4 points better than the length alone.
/// Two to four networks that decide together were no better, nor was the loss that leaving a feature out costs as its importance.
pub(super) fn order(bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
    let Workbench { candidates, trainer, training, forced, run, .. } = bench;
    let sizes = sizes(candidates.len(), most);
    let rounds = sizes.len() + 1;
    let steps = training.steps(trainer.pass_rows(), (LENGTH * rounds as f64) as usize);
    let schedule = Schedule::of_steps(steps, rounds, START);
    let mut alive: Vec<usize> = (0..candidates.len()).collect();
    let mut squared_slopes = vec![0.0; candidates.len()];
    let (mut slopes, mut decay) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        run.step_with(round, rounds, || trainer.note())?;
        let warm = if round == 0 { schedule.warm } else { 0 };
        let widths: Vec<usize> = alive.iter().map(|candidate| candidates.inputs[*candidate].len()).collect();
        trainer.together(|trainer| {
            (0..warm + schedule.round(round)).try_for_each(|_| {
                decay.clear();
                for (length, width) in lengths(&trainer.mlp, &alive, candidates).iter().zip(&widths) {
                    let factor = if *length > 0.0 { (PENALTY / length) as f32 } else { 0.0 };
                    decay.extend(std::iter::repeat_n(factor, *width));
                }
                trainer.step(Gate { mask: None, decay: Some(&decay) }, training.learning_rate)?;
                slopes.clear();
                let mut rest = trainer.batch.slopes();
                for width in &widths {
                    let (own, others) = rest.split_at(*width);
                    slopes.push(own.iter().map(|slope| f64::from(*slope)).sum::<f64>());
                    rest = others;
                }
                for (mean, slope) in squared_slopes.iter_mut().zip(&slopes) {
                    *mean = MEMORY * *mean + (1.0 - MEMORY) * slope * slope;
                }
                Ok(())
            })
        })?;
        let lengths = lengths(&trainer.mlp, &alive, candidates);
        let importances: Vec<f64> = lengths.iter().zip(&squared_slopes).map(|(length, mean)| length * mean.powf(0.25)).collect();
        let mut ranked: Vec<usize> = (0..alive.len()).collect();
        let place = |at: &usize| forced.iter().position(|candidate| *candidate == alive[*at]).unwrap_or(usize::MAX);
        ranked.sort_by(|a, b| place(a).cmp(&place(b)).then(importances[*b].total_cmp(&importances[*a])).then(a.cmp(b)));
        let Some(left) = sizes.get(round) else {
            let total: f64 = importances.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            return Ok(ranked.iter().take(most).map(|at| (alive[*at], importances[*at] / total)).collect());
        };
        let mut kept = ranked[..*left].to_vec();
        kept.sort_unstable();
        // The network goes on with what is left of it: smaller, and so faster.
        trainer.keep_inputs(&inputs_of(&kept, &widths))?;
        squared_slopes = kept.iter().map(|at| squared_slopes[*at]).collect();
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

/// The inputs of those that are kept, where each has so many.
fn inputs_of(kept: &[usize], widths: &[usize]) -> Vec<usize> {
    let starts: Vec<usize> = widths
        .iter()
        .scan(0, |next, width| {
            *next += width;
            Some(*next - width)
        })
        .collect();
    kept.iter().flat_map(|at| starts[*at]..starts[*at] + widths[*at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_goes_in_each_round() {
        assert_eq!(sizes(20, 14), [18, 16, 14]);
        assert!(sizes(3, 3).is_empty());
        assert_eq!(sizes(3, 1), [2, 1]);
    }

    #[test]
    fn wide_features_keep_all_their_inputs() {
        assert_eq!(inputs_of(&[0, 2], &[2, 1, 3]), [0, 1, 3, 4, 5]);
    }
}
