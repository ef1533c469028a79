//! What neural selectors share: a network over all candidates, and what is reported of the order that was found.

use std::sync::Arc;

use rayon::prelude::*;

use crate::judging::judge;
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::network::mlp::{Gate, Mlp};
use crate::network::samples::Inputs;
use crate::network::training::{Trainer, Training};
use crate::neural::candidates::Candidates;
use crate::neural::group_penalty::Penalized;
use crate::{Problem, Ranking, Result, Rows, Run, Split};

/// Where a neural selector works: a network over all candidates, ready to be trained.
pub struct Workbench<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) rows: &'a Rows,
    pub(crate) candidates: Candidates,
    pub(crate) split: Split,
    pub(crate) trainer: Trainer<'a>,
    pub(crate) training: &'a Training,
    /// Candidates that must be included.
    pub(crate) forced: Vec<usize>,
    pub(crate) run: &'a Run,
}

/// Candidates that `k => 'auto'` looks at.
const AUTO_MAX: usize = 64;
/// Sizes of a selection that are judged on held-out rows.
const SIZES_MAX: usize = 16;

/// Lets `order` find an order of candidates with scores, of the asked length, and reports on it: what each adds to a linear fit, and
/// how good a network of its own is with the first few on held-out rows, where some are held out.
pub fn select(
    problem: &Problem,
    training: &Training,
    run: &Run,
    order: impl FnOnce(&mut Workbench<'_>, usize) -> Result<Vec<(usize, f64)>>,
) -> Result<Ranking> {
    run.check()?;
    let rows = problem.rows();
    let candidates = Candidates::new(problem, rows, run)?;
    let split = training.split(rows, problem.k.is_none(), run);
    let inputs = Inputs::new(problem, rows, candidates.columns.clone());
    let trainer = Trainer::new(Arc::new(inputs.samples(rows, &split.train, run)?), &inputs, training, run)?;
    let forced = candidates.forced(problem);
    let mut bench = Workbench { problem, rows, candidates, split, trainer, training, forced, run };
    let most = problem.k.unwrap_or(AUTO_MAX.max(bench.forced.len())).min(bench.candidates.len());
    let order = order(&mut bench, most)?;
    report(&bench, &order)
}

/// As long as that many rounds of a sequential selector, whatever k.
const ROUNDS_MIN: usize = 20;
/// Steps between two reports of progress.
const REPORT: usize = 100;

impl<'a> Workbench<'a> {
    /// How many candidates there are: units that vary and repeat no other.
    pub fn candidates(&self) -> usize {
        self.candidates.len()
    }

    /// One training from beginning to end, for selectors that look at the network only afterwards: calls `step` as often as a
    /// selection of `most` features trains.
    pub fn train(&mut self, most: usize, mut step: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let steps = self.training.steps(self.trainer.pass_rows(), most.max(ROUNDS_MIN));
        for at in 0..steps {
            if at % REPORT == 0 {
                self.run.step_with(at, steps, || self.trainer.note())?;
            }
            step(self)?;
        }
        Ok(())
    }

    /// One step of the training, with every candidate multiplied by its value of `mask` (`None`: by 1). Answers with the derivative
    /// of the batch's loss by the mask.
    pub fn step(&mut self, mask: Option<&[f32]>) -> Result<Vec<f32>> {
        let mut of_inputs = vec![1.0; self.candidates.columns.len()];
        if let Some(mask) = mask {
            self.candidates.spread(mask, &mut of_inputs);
        }
        self.trainer.step(Gate { mask: Some(&of_inputs), decay: None }, self.training.learning_rate)?;
        let mut slopes = vec![0.0; self.candidates.len()];
        self.candidates.gather(self.trainer.batch.slopes(), &mut slopes);
        Ok(slopes)
    }

    /// One step under a penalty on the lengths of weights.
    pub(crate) fn penalized_step(&mut self, penalized: &mut Penalized) -> Result<()> {
        let Self { trainer, candidates, training, .. } = self;
        trainer.draw();
        trainer
            .train_by(|mlp, samples, rows, batch| penalized.step(mlp, candidates, (samples, rows), training.learning_rate, batch))
    }

    /// The length of the weights with which each candidate enters the network.
    pub fn lengths(&self) -> Vec<f64> {
        lengths_of_all(&self.trainer.mlp, &self.candidates)
    }

    /// Candidates by a score, the largest first, those that must be included before all others; with their shares of the total.
    pub fn ranked(&self, scores: &[f64], most: usize) -> Vec<(usize, f64)> {
        ranked(&self.forced, scores, most)
    }
}

/// Candidates by a score, the largest first, those that are forced before all others; with their shares of the total.
pub(crate) fn ranked(forced: &[usize], scores: &[f64], most: usize) -> Vec<(usize, f64)> {
    let total: f64 = scores.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut free: Vec<usize> = (0..scores.len()).filter(|candidate| !forced.contains(candidate)).collect();
    free.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let order = forced.iter().copied().chain(free);
    order.take(most).map(|candidate| (candidate, scores[candidate] / total)).collect()
}

/// The length of the weights with which each candidate enters a network of all.
pub(crate) fn lengths_of_all(mlp: &Mlp, candidates: &Candidates) -> Vec<f64> {
    let all: Vec<usize> = (0..candidates.len()).collect();
    lengths(mlp, &all, candidates)
}

/// The length of the weights of each of the candidates that are still inputs of the network.
pub(crate) fn lengths(mlp: &Mlp, alive: &[usize], candidates: &Candidates) -> Vec<f64> {
    let mut input = 0;
    let mut length = |candidate: &usize| {
        let width = candidates.inputs[*candidate].len();
        let energy: f64 = (input..input + width).flat_map(|i| mlp.input_weights(i)).map(|w| f64::from(*w).powi(2)).sum();
        input += width;
        energy.sqrt()
    };
    alive.iter().map(&mut length).collect()
}

fn report(bench: &Workbench<'_>, order: &[(usize, f64)]) -> Result<Ranking> {
    let Workbench { problem, candidates, run, .. } = bench;
    let judged = judge_sizes(bench, order)?;
    let keep = if problem.k.is_some() { order.len() } else { smallest_good(&judged).max(bench.forced.len()) };
    let mut ranking = explain_order(problem, candidates, &order[..keep], run)?;
    for (size, verdict) in &judged {
        if let Some(choice) = ranking.choices.get_mut(size - 1) {
            choice.valid_score = verdict.score();
        }
    }
    Ok(ranking)
}

/// The ranking for an order of candidates, with what each adds to a linear fit.
pub(crate) fn explain_order(problem: &Problem, candidates: &Candidates, order: &[(usize, f64)], run: &Run) -> Result<Ranking> {
    let units: Vec<(usize, f64)> = order.iter().map(|(at, score)| (candidates.units[*at], *score)).collect();
    let products = Products::of_units(problem, |unit| units.iter().any(|(chosen, _)| *chosen == unit), run)?;
    let mut ranking = explain(problem, &products, run, &units, Some(units.len()))?;
    ranking.passed_over.extend(candidates.repeated.iter().cloned());
    Ok(ranking)
}

/// For selections of several sizes a network of their own, trained on their features alone and judged on the held-out rows.
fn judge_sizes(bench: &Workbench<'_>, order: &[(usize, f64)]) -> Result<Vec<(usize, judge::Verdict)>> {
    if bench.split.valid.is_empty() {
        return Ok(Vec::new());
    }
    let verdict = |size: usize| {
        let chosen: Vec<usize> = order[..size].iter().map(|(candidate, _)| *candidate).collect();
        let columns = bench.candidates.inputs_of(&chosen).iter().map(|input| bench.candidates.columns[*input]).collect();
        let verdict = judge::held_out(bench.problem, columns, &bench.split, bench.training, bench.run)?;
        Ok((size, verdict))
    };
    sizes(order.len()).into_par_iter().map(verdict).collect()
}

/// All sizes, or so many of them that the next is always a fixed share larger.
fn sizes(most: usize) -> Vec<usize> {
    if most <= SIZES_MAX {
        return (1..=most).collect();
    }
    let ratio = (most as f64).powf(1.0 / (SIZES_MAX - 1) as f64);
    let mut sizes = vec![1];
    while sizes.last().is_some_and(|last| *last < most) {
        let last = sizes[sizes.len() - 1];
        sizes.push(((last as f64 * ratio).round() as usize).clamp(last + 1, most));
    }
    sizes
}

/// The smallest size whose loss is no more than a standard error above the smallest loss.
fn smallest_good(judged: &[(usize, judge::Verdict)]) -> usize {
    let best = judged.iter().map(|(_, verdict)| verdict).min_by(|a, b| a.loss.total_cmp(&b.loss));
    let Some(best) = best else { return 1 };
    judged.iter().find(|(_, verdict)| verdict.loss <= best.loss + best.loss_error).map_or(1, |(size, _)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_a_share_and_end_at_the_last() {
        assert_eq!(sizes(3), [1, 2, 3]);
        let many = sizes(64);
        assert!(many.len() <= 20 && many[0] == 1 && *many.last().unwrap() == 64 && many.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
