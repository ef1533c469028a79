//! How many features: a selection is repeated without each fold of the rows, and its beginnings are judged by the rows left out.

use serde::{Deserialize, Serialize};

use crate::judging::answer::{complete, is_path, once};
use crate::judging::least_squares::beginnings;
use crate::judging::resample::Pieces;
use crate::{Error, Problem, Ranking, Reads, Result, Run, Selector};

/// Features that are looked at when folds are to say how many there should be.
const SIZES_MAX: usize = 64;

/// Means and standard errors over folds, for each number of features from 0 on.
pub(crate) struct Curve(Vec<(f64, f64)>);

/// A ranking that folds have judged.
pub(crate) struct Sized {
    pub ranking: Ranking,
    pub curve: Curve,
    /// What choosing by all rows took, if there is a clock.
    pub seconds: f64,
}

/// One of the selections that folds need.
#[derive(Serialize, Deserialize)]
enum Selected {
    /// By all rows, and the seconds that it took.
    All(Ranking, f64),
    /// Without a fold: what the beginnings are worth on it.
    Fold(Vec<f64>),
}

/// How many features are looked at.
pub(crate) fn most(problem: &Problem) -> usize {
    problem.k.unwrap_or(problem.units.len().min(SIZES_MAX.max(problem.must_include.len())))
}

/// The ranking with `valid_score` and `valid_error` of every beginning; without `k` cut where these say.
pub(super) fn in_folds(selector: &dyn Selector, problem: &Problem, folds: usize, run: &Run) -> Result<Ranking> {
    let Sized { mut ranking, curve, .. } = sized(selector, problem, folds, run)?;
    for choice in &mut ranking.choices {
        let (score, error) = curve.at(choice.rank);
        (choice.valid_score, choice.valid_error) = (Some(score), Some(error));
    }
    Ok(ranking)
}

/// The ranking, without `k` cut where the folds say, and what they think of its beginnings.
pub(crate) fn sized(selector: &dyn Selector, problem: &Problem, folds: usize, run: &Run) -> Result<Sized> {
    if problem.held_out.is_some() {
        return Err(Error::call("`folds` cannot be used beside a table of rows that judge; leave one of them out"));
    }
    let asked = Problem { k: Some(most(problem)), folds: None, ..problem.clone() };
    let repeated = run.repeat(
        || problem.fingerprint(),
        1 + folds,
        |mine, run| {
            let mut selected = Vec::new();
            if mine.contains(&0) {
                let begun = run.seconds();
                let ranking = once(selector, &asked, run)?;
                if is_path(&ranking) {
                    return Err(Error::call("`folds` judges a ranking, and this is a path; leave one of them out"));
                }
                selected.push(Selected::All(ranking, run.seconds() - begun));
            }
            let without: Vec<usize> = mine.iter().filter(|at| **at > 0).map(|at| at - 1).collect();
            let scores = scores(selector, &asked, folds, &without, run)?;
            selected.extend(scores.into_iter().map(Selected::Fold));
            Ok(selected)
        },
    )?;
    let (mut all, mut scores) = (None, Vec::new());
    for selected in repeated {
        match selected {
            Selected::All(ranking, seconds) => all = Some((ranking, seconds)),
            Selected::Fold(of_fold) => scores.push(of_fold),
        }
    }
    let (mut ranking, seconds) = all.ok_or_else(|| Error::data("the selection by all rows was lost"))?;
    let curve = Curve::of(&scores);
    if problem.k.is_none() {
        let size = curve.size(problem.one_se).clamp(problem.must_include.len().min(ranking.choices.len()), ranking.choices.len());
        if size < ranking.choices.len() {
            cut(selector, &asked, size, &mut ranking, run)?;
        }
    }
    Ok(Sized { ranking, curve, seconds })
}

/// Leaves the first choices. What they explain together is asked again, of the selector itself where that takes no time.
fn cut(selector: &dyn Selector, problem: &Problem, size: usize, ranking: &mut Ranking, run: &Run) -> Result<()> {
    if size > 0 && selector.reads() == Reads::Moments && selector.is_prefix() {
        let fewer = Problem { k: Some(size), ..problem.clone() };
        *ranking = once(selector, &fewer, run)?;
        return Ok(());
    }
    ranking.choices.truncate(size);
    ranking.choices.iter_mut().for_each(|choice| choice.coefficient = None);
    complete(ranking, problem, run)
}

/// What the beginnings are worth of the selections without some of the folds, each on the rows left out.
fn scores(selector: &dyn Selector, problem: &Problem, folds: usize, without: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
    if without.is_empty() {
        return Ok(Vec::new());
    }
    let pieces = Pieces::new(problem, run)?;
    let parts = pieces.folds(folds)?;
    let variance = problem.label_variance();
    let score = |(done, fold): (usize, &usize)| {
        run.step_with(done, without.len(), || "folds".to_string())?;
        let piece = pieces.without(&parts, *fold, run)?;
        let order = once(selector, &piece.problem, run)?.units();
        let errors = beginnings(&piece.problem, &piece.held_out, &order, run)?.errors;
        Ok(errors.iter().map(|error| 1.0 - error / variance).collect())
    };
    without.iter().enumerate().map(score).collect()
}

impl Curve {
    fn of(scores: &[Vec<f64>]) -> Self {
        let longest = scores.iter().map(Vec::len).max().unwrap_or(0);
        // A fold in which nothing more was worth choosing stays where it is.
        let at = |size: usize| {
            let of_folds: Vec<f64> = scores.iter().map(|scores| scores[size.min(scores.len() - 1)]).collect();
            mean_and_error(&of_folds)
        };
        Self((0..longest).map(at).collect())
    }

    /// What the first so many features are worth.
    pub fn at(&self, size: usize) -> (f64, f64) {
        self.0[size.min(self.0.len() - 1)]
    }

    /// The best number of features, or the smallest that is no worse by more than a standard error.
    fn size(&self, one_se: bool) -> usize {
        let best = self.0.iter().fold(f64::NEG_INFINITY, |best, (score, _)| best.max(*score));
        // Of equal ones the smallest, whatever the last bit says.
        let is_best = |(score, _): &(f64, f64)| *score >= best - 1e-12;
        let at = self.0.iter().position(is_best).unwrap_or(0);
        if !one_se {
            return at;
        }
        let enough = best - self.0[at].1;
        self.0.iter().position(|(score, _)| *score >= enough).unwrap_or(at)
    }
}

/// The mean of some numbers, and its standard error.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (squares / (n - 1.0) / n).sqrt() } else { 0.0 })
}

#[cfg(test)]
mod tests;
