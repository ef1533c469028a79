//! What neural selectors share: a network over all candidates, and a report on the order that was found.

use rayon::prelude::*;

use crate::math::products::Products;
use crate::math::pursuit::explain;
use crate::models::candidates::Candidates;
use crate::models::judge;
use crate::models::samples::Inputs;
use crate::models::training::{Trainer, Training};
use crate::{Data, Problem, Ranking, Result, Rows, Run, Split};

/// Where a neural selector works.
pub(crate) struct Ground<'a> {
    pub problem: &'a Problem,
    pub rows: &'a Rows,
    pub candidates: Candidates,
    pub inputs: Inputs,
    pub split: Split,
    pub trainer: Trainer<'a>,
    pub training: &'a Training,
    /// Candidates that must be included.
    pub forced: Vec<usize>,
    pub run: &'a Run,
}

/// Candidates that `k => 'auto'` looks at.
const AUTO_MAX: usize = 64;
/// Sizes of a selection that are judged on held-out rows.
const SIZES_MAX: usize = 16;

/// Lets `order` find an order of candidates with scores, of the asked length, and reports on it.
pub(crate) fn select(
    problem: &Problem,
    training: &Training,
    run: &Run,
    order: impl FnOnce(&mut Ground<'_>, usize) -> Result<Vec<(usize, f64)>>,
) -> Result<Ranking> {
    run.check()?;
    let Data::Rows(rows) = &problem.data else { unreachable!("neural selectors read rows") };
    let candidates = Candidates::new(problem, rows);
    let split = training.split(rows, problem.k.is_none(), run);
    let inputs = Inputs::new(problem, rows, candidates.columns.clone());
    let trainer = Trainer::new(inputs.samples(rows, &split.train), &inputs, training, run);
    let forced = candidates.forced(problem);
    let mut ground = Ground { problem, rows, candidates, inputs, split, trainer, training, forced, run };
    let most = problem.k.unwrap_or(AUTO_MAX.max(ground.forced.len())).min(ground.candidates.len());
    let order = order(&mut ground, most)?;
    report(&ground, &order)
}

fn report(ground: &Ground<'_>, order: &[(usize, f64)]) -> Result<Ranking> {
    let Ground { problem, candidates, run, .. } = ground;
    let judged = judge_sizes(ground, order)?;
    let keep = if problem.k.is_some() { order.len() } else { smallest_good(&judged).max(ground.forced.len()) };
    let units: Vec<(usize, f64)> = order[..keep].iter().map(|(at, score)| (candidates.units[*at], *score)).collect();
    let products = Products::of_units(problem, |unit| units.iter().any(|(chosen, _)| *chosen == unit));
    let mut ranking = explain(problem, &products, run, &units, Some(units.len()))?;
    for (size, verdict) in &judged {
        if let Some(choice) = ranking.choices.get_mut(size - 1) {
            choice.valid_score = Some(verdict.score());
        }
    }
    ranking.passed_over.extend(candidates.repeated.iter().cloned());
    Ok(ranking)
}

/// For selections of several sizes a network of their own, trained on their features alone and judged on the held-out rows.
fn judge_sizes(ground: &Ground<'_>, order: &[(usize, f64)]) -> Result<Vec<(usize, judge::Verdict)>> {
    if ground.split.valid.is_empty() {
        return Ok(Vec::new());
    }
    let verdict = |size: usize| {
        let chosen: Vec<usize> = order[..size].iter().map(|(candidate, _)| *candidate).collect();
        let columns = ground.candidates.inputs_of(&chosen).iter().map(|input| ground.candidates.columns[*input]).collect();
        let inputs = Inputs::new(ground.problem, ground.rows, columns);
        let (train, valid) = (inputs.samples(ground.rows, &ground.split.train), inputs.samples(ground.rows, &ground.split.valid));
        let steps = ground.training.steps(train.rows(), SIZES_MAX);
        let verdicts = judge::fit(&inputs, &train, &[&valid], ground.training, steps, ground.run)?;
        Ok((size, verdicts.into_iter().next().expect("one verdict for one set of rows")))
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
