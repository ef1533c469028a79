//! Algorithm 1 of the paper: attention round by round.

use super::SequentialAttention;
use super::attention::Attention;
use crate::Result;
use crate::network::mlp::Gate;
use crate::network::training::Schedule;
use crate::neural::swaps::swap;
use crate::neural::workbench::Workbench;

/// The first `most` candidates in the order in which attention chooses them, with the attention that each had.
pub(super) fn order(options: &SequentialAttention, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
    let Workbench { candidates, trainer, training, forced, run, .. } = bench;
    let attention_rate = options.attention_rate(candidates.len());
    let mut order: Vec<(usize, f64)> = forced.iter().map(|candidate| (*candidate, 1.0)).collect();
    let mut attention = Attention::new(options.mask, candidates.len());
    forced.iter().for_each(|candidate| attention.choose(*candidate));
    let open = most.saturating_sub(forced.len());
    let rounds = open.div_ceil(options.per_round);
    let schedule = Schedule::new(training, trainer.pass_rows(), rounds, options.warmup);
    run.step(0, rounds.max(1))?;
    trainer.together(|trainer| (0..schedule.warm).try_for_each(|_| trainer.step(Gate::default(), training.learning_rate)))?;
    let mut of_inputs = vec![1.0; candidates.columns.len()];
    let mut slopes = vec![0.0; candidates.len()];
    for round in 0..rounds {
        run.step_with(round, rounds, || trainer.note())?;
        attention.begin_round();
        trainer.together(|trainer| {
            (0..schedule.round(round)).try_for_each(|_| {
                candidates.spread(&attention.mask, &mut of_inputs);
                trainer.step(Gate { mask: Some(&of_inputs), decay: None }, training.learning_rate)?;
                candidates.gather(trainer.batch.slopes(), &mut slopes);
                attention.step(&slopes, attention_rate);
                Ok(())
            })
        })?;
        let wanted = options.per_round.min(most - order.len());
        for candidate in attention.ranked().into_iter().take(wanted) {
            order.push((candidate, f64::from(attention.mask[candidate])));
            attention.choose(candidate);
        }
    }
    if options.swaps {
        swap(bench, &mut order, schedule.round(0))?;
    }
    Ok(order)
}
