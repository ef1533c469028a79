//! Swaps at the end of a selection. Features that say the same share the attention, so that all of them may lose to one that says less. A swap brings one of
//! them in, if models trained on the set alone predict held-out rows better with it.

use rayon::prelude::*;

use crate::judging::folds::{alike, deviations};
use crate::network::mlp::Gate;
use crate::network::samples::Samples;
use crate::neural::workbench::Workbench;
use crate::predictors::panel;
use crate::{Problem, Result, Split};

/// Larger sets have room for features that say the same, and every one of their features would have to be judged.
const SET_MAX: usize = 16;
/// Of wider tables the judges' trees would take longer than the selection.
const UNITS_MAX: usize = 1000;
/// Least weight of rows that can judge, and rows by which they do at most.
const ROWS_MIN: f64 = 100.0;
const ROWS_MAX: usize = 1 << 15;
/// Features that are tried in the place of the least missed.
const TRIED: usize = 3;
/// Share of the rows that judge.
const JUDGES: f64 = 0.3;
/// A swap must save this share of the loss that there is without features.
const WORTH: f64 = 0.002;

/// Exchanges chosen candidates for others as long as that helps. What is missing shows in the bench's network after `steps` more steps on the kept ones.
pub(crate) fn swap(bench: &mut Workbench<'_>, order: &mut Vec<(usize, f64)>, steps: usize) -> Result<()> {
    let size = order.len();
    let is_open = size < bench.candidates.len() && size > bench.forced.len();
    // With one feature out of one there is nothing that shows what is missing.
    let is_small = (2..=SET_MAX).contains(&size) && bench.problem.units.len() <= UNITS_MAX;
    if !is_small || !is_open || bench.rows.weight() < ROWS_MIN {
        return Ok(());
    }
    let _places = bench.run.reserve(bench.rows.rows() * 6 * size_of::<usize>())?;
    let split = judges(bench)?;
    if split.valid.is_empty() || split.train.is_empty() {
        return Ok(());
    }
    let kept = (split.train.len() + 2 * split.valid.len()) * (bench.rows.columns.len() + bench.rows.labels.len() + 2);
    let _memory = bench.run.reserve(kept * size_of::<f64>())?;
    let Some(piece) = bench.problem.on(&split.train, &split.valid) else { return Ok(()) };
    let sample = bench.trainer.samples.some(ROWS_MAX, &mut bench.run.random("swap rows", 0), bench.run)?;
    let mut left: Vec<usize> = Vec::new();
    let mut best = loss(bench, &piece, &chosen(order, None))?;
    for _ in 0..size {
        let free: Vec<usize> = (0..size).filter(|at| !bench.forced.contains(&order[*at].0)).collect();
        let without = free.par_iter().map(|at| loss(bench, &piece, &chosen(order, Some(*at)))).collect::<Result<Vec<f64>>>()?;
        let Some(weakest) = least(&without) else { break };
        let weakest = free[weakest];
        let kept = chosen(order, Some(weakest));
        let missing = missing(bench, &kept, &sample, steps)?;
        let tried: Vec<usize> =
            missing.into_iter().filter(|at| *at != order[weakest].0 && !left.contains(at)).take(TRIED).collect();
        let with = |candidate: &usize| loss(bench, &piece, &[&kept[..], &[*candidate]].concat());
        let losses = tried.par_iter().map(with).collect::<Result<Vec<f64>>>()?;
        let Some(at) = least(&losses) else { break };
        if losses[at] >= best - WORTH {
            break;
        }
        best = losses[at];
        let (out, score) = order.remove(weakest);
        left.push(out);
        order.push((tried[at], score));
    }
    Ok(())
}

/// The place of the smallest.
fn least(losses: &[f64]) -> Option<usize> {
    (0..losses.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b]))
}

fn chosen(order: &[(usize, f64)], but: Option<usize>) -> Vec<usize> {
    order.iter().enumerate().filter(|(at, _)| Some(*at) != but).map(|(_, (candidate, _))| *candidate).collect()
}

/// Rows to learn from and to judge by: those of the selection, or some of those that it learns from. Equal rows stay together, so that a weight of 2 is a row
/// seen twice here, too.
fn judges(bench: &Workbench<'_>) -> Result<Split> {
    let mut split = bench.split.clone();
    if split.valid.is_empty() {
        let keys = alike(bench.problem, bench.rows, &deviations(bench.rows), bench.run)?;
        let is_judge = |row: &usize| bench.run.random("swap judges", keys[*row]).uniform() < JUDGES;
        (split.valid, split.train) = split.train.into_iter().partition(is_judge);
    }
    let thinned = |rows: Vec<usize>| {
        let every = rows.len().div_ceil(ROWS_MAX).max(1);
        rows.into_iter().step_by(every).collect()
    };
    Ok(Split { train: thinned(split.train), valid: thinned(split.valid) })
}

/// The share of the loss that is left, on the rows that judge, to models that see only these candidates.
fn loss(bench: &Workbench<'_>, piece: &Problem, chosen: &[usize]) -> Result<f64> {
    let units: Vec<usize> = chosen.iter().map(|candidate| bench.candidates.units[*candidate]).collect();
    Ok(1.0 - panel::judge(piece, &units, bench.run)?.skill)
}

/// The other candidates, by the gradient that their weights have in a network trained on the kept ones: the most missed first.
fn missing(bench: &mut Workbench<'_>, kept: &[usize], sample: &Samples, steps: usize) -> Result<Vec<usize>> {
    let mut mask = vec![0.0; bench.candidates.len()];
    kept.iter().for_each(|candidate| mask[*candidate] = 1.0);
    let mut of_inputs = vec![0.0; bench.candidates.columns.len()];
    bench.candidates.spread(&mask, &mut of_inputs);
    for _ in 0..steps {
        bench.trainer.step(Gate { mask: Some(&of_inputs), decay: None }, bench.training.learning_rate)?;
    }
    let trainer = &mut bench.trainer;
    let slopes = trainer.mlp.input_slopes(sample, &of_inputs, &mut trainer.batch, bench.run)?;
    let length = |candidate: &usize| slopes[bench.candidates.inputs[*candidate].clone()].iter().map(|s| s * s).sum::<f64>();
    let mut others: Vec<usize> = (0..mask.len()).filter(|candidate| mask[*candidate] == 0.0).collect();
    others.sort_by(|a, b| length(b).total_cmp(&length(a)).then(a.cmp(b)));
    Ok(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::network::training::Training;
    use crate::neural::workbench;
    use crate::testing::Table;

    /// What becomes of an order of units, of 8 columns of which the label is made of 5 and 6.
    fn swapped(order: &[usize], must_include: &[&str]) -> Vec<usize> {
        let mut table = Table::random(400, 8, 3).k(order.len());
        table.common.must_include = must_include.iter().map(|name| name.to_string()).collect();
        let label: Vec<f64> = (0..400).map(|row| table.column(5)[row] + table.column(6)[row].abs()).collect();
        let problem = table.problem_of_rows(&label);
        let order: Vec<(usize, f64)> = order.iter().map(|unit| (*unit, 0.5)).collect();
        let ranking = workbench::select(&problem, &Training::default(), &Run::new(0), |bench, _| {
            let mut order = order.clone();
            swap(bench, &mut order, 200)?;
            Ok(order)
        });
        ranking.unwrap().units()
    }

    #[test]
    fn what_helps_comes_in_and_what_is_good_stays() {
        assert_eq!(swapped(&[1, 5], &[]), [5, 6]);
        assert_eq!(swapped(&[6, 5], &[]), [6, 5]);
        let mut both = swapped(&[0, 1], &[]);
        both.sort_unstable();
        assert_eq!(both, [5, 6]);
    }

    #[test]
    fn what_must_be_included_is_not_exchanged() {
        assert_eq!(swapped(&[1, 0], &["x1"])[0], 1);
        assert_eq!(swapped(&[1], &["x1"]), [1]);
    }
}
