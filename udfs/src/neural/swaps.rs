//! Swaps at the end of a selection. Features that say the same share the attention, so that all of them may lose to one that says less. A swap brings one of
//! them in, if models trained on the set alone predict held-out rows better with it.

use crate::Result;
use crate::judging::exchange::{Limits, exchange};
use crate::judging::trials::{ROWS_MAX, Trials};
use crate::network::mlp::Gate;
use crate::network::samples::Samples;
use crate::neural::workbench::Workbench;
use crate::predictors::panel;

/// Larger sets have room for features that say the same, and every one of their features would have to be judged.
const SET_MAX: usize = 16;
/// Of wider tables the judges' trees would take longer than the selection.
const UNITS_MAX: usize = 1000;
/// Least weight of rows that can judge.
const ROWS_MIN: f64 = 100.0;
/// Chosen features that others are tried in the place of, the least missed first, until one helps.
const WEAK: usize = 2;
/// Features that are tried in such a place: those that the network misses most, and those that trees gain most from, in turn.
const TRIED: usize = 4;
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
    let (problem, run) = (bench.problem, bench.run);
    // The rows that the selection holds out judge here, too, if there are some.
    let trials = match bench.split.valid.is_empty() {
        true => Trials::of(problem, run)?,
        false => Trials::of_split(problem, &bench.split, run)?,
    };
    let Some(Trials { problems, .. }) = &trials else { return Ok(()) };
    let sample = bench.trainer.samples.some(ROWS_MAX, &mut run.random("swap rows", 0), run)?;
    let mut set: Vec<usize> = order.iter().map(|(candidate, _)| *candidate).collect();
    let fixed: Vec<usize> = (0..size).filter(|at| bench.forced.contains(&set[*at])).collect();
    let units = bench.candidates.units.clone();
    let skill = |set: &[usize]| {
        let units: Vec<usize> = set.iter().map(|candidate| units[*candidate]).collect();
        panel::mean_skill(problems, &units, run)
    };
    let limits = Limits { fixed: &fixed, weak: WEAK, tried: TRIED, worth: WORTH, exchanges: size };
    let mut done = Vec::new();
    let by_trees = by_trees(&panel::gains(&problems[0], run)?, &units);
    let open = |kept: &[usize]| {
        let of_trees = by_trees.iter().copied().filter(|candidate| !kept.contains(candidate));
        let mut both: Vec<usize> = Vec::new();
        for candidate in missing(bench, kept, &sample, steps)?.into_iter().zip(of_trees).flat_map(|(a, b)| [a, b]) {
            if !both.contains(&candidate) {
                both.push(candidate);
            }
        }
        Ok(both)
    };
    exchange(&mut set, &limits, skill, open, &mut done)?;
    // Those that came in stand last, in the order in which they came, with the scores of those that went.
    for swap in done {
        let at = order.iter().position(|(candidate, _)| *candidate == swap.out).unwrap_or(size - 1);
        let (_, score) = order.remove(at);
        order.push((swap.into, score));
    }
    Ok(())
}

/// Candidates by what their units gain in trees, the most first.
fn by_trees(gains: &[f64], units: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|a, b| gains[units[*b]].total_cmp(&gains[units[*a]]).then(a.cmp(b)));
    order
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
