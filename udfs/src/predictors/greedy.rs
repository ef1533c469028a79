//! Greedy pursuit: the candidate with which a predictor does best on the rows held out, again and again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::judging::folds::Folds;
use crate::judging::metric::{Metric, Tally, decibel};
use crate::kernels::TIE;
use crate::predictors::{Fitted, Predictor};
use crate::{Choice, Problem, Result, Run};

/// Candidates that are always judged by the whole predictor.
const SHORTLIST_MIN: usize = 16;
/// The share of them is a twentieth of the candidates for a thousand rows. The sketch, which chooses them, errs the more the fewer rows it has; and four times as many
/// candidates with a quarter of the rows cost the same.
const SHORTLIST_SHARE: f64 = 0.05;
const SHORTLIST_ROWS: f64 = 1000.0;

/// Draws of random numbers that are asked before a pursuit ends.
const REDRAWN: u64 = 4;
/// Errors within this share of the least are nearly equal; so many candidates at most.
const NEAR: f64 = 0.05;
const NEAR_MAX: usize = 5;

/// A pursuit under way.
pub(crate) struct Pursuit<'a> {
    problem: &'a Problem,
    folds: &'a Folds,
    /// The same rows with others of them set apart, for decisions that are close.
    others: &'a [Folds],
    run: &'a Run,
    /// How many units there are to be at most.
    limit: usize,
    metric: Metric,
    /// The share of the candidates that the whole predictor judges.
    shortlist: f64,
    /// What is trained, by name.
    predictors: Vec<Named<'a>>,
    choices: Vec<Choice>,
    /// How well the best predictor does with what has been chosen; at first, how well the mean does.
    now: Fitted,
    /// The error of the mean on the rows held out.
    without: f64,
    done: AtomicUsize,
}

pub(crate) type Named<'a> = (String, Box<dyn Predictor<'a> + 'a>);

/// A unit tried, with the predictor that did best.
pub(crate) struct Step {
    fitted: Fitted,
    predictor: usize,
}

impl<'a> Pursuit<'a> {
    pub fn new(problem: &'a Problem, folds: &'a Folds, predictors: Vec<Named<'a>>, limit: usize, run: &'a Run) -> Self {
        let (mut train, mut valid) = (Tally::default(), Tally::default());
        let mean = vec![0.0; folds.labels.len()];
        for fit in 0..folds.held_out.len() {
            folds.learnt_rows(fit).into_iter().for_each(|row| train.add(folds, row, &mean));
            folds.held_out_rows(fit).for_each(|row| valid.add(folds, row, &mean));
        }
        Self {
            problem,
            folds,
            others: &[],
            run,
            limit,
            metric: Metric::Auto,
            shortlist: SHORTLIST_SHARE * f64::max(1.0, SHORTLIST_ROWS / folds.rows() as f64),
            predictors,
            choices: Vec::new(),
            without: valid.criterion(folds.is_absolute).max(f64::MIN_POSITIVE),
            now: Fitted { train, valid },
            done: AtomicUsize::new(0),
        }
    }

    pub fn with_metric(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    pub fn with_others(self, others: &'a [Folds]) -> Self {
        Self { others, ..self }
    }

    /// With the whole predictor for this share of the candidates, if it is given.
    pub fn with_shortlist(self, share: Option<f64>) -> Self {
        Self { shortlist: share.unwrap_or(self.shortlist), ..self }
    }

    /// What has been chosen.
    pub fn choices(self) -> Vec<Choice> {
        self.choices
    }

    pub fn is_full(&self) -> bool {
        self.choices.len() >= self.limit
    }

    /// What is to become small.
    fn error(&self, fitted: &Fitted) -> f64 {
        fitted.valid.criterion(self.folds.is_absolute)
    }

    fn score(&self, tally: &Tally) -> f64 {
        tally.score(self.metric, self.folds.classes.is_some())
    }

    /// Reports how far it is, in candidates judged.
    pub fn tell(&self) -> Result<()> {
        let total = self.limit * self.problem.units.len();
        let valid = || format!("{:.4} with {} features", self.score(&self.now.valid), self.choices.len());
        self.run.step_with(self.done.load(Ordering::Relaxed).min(total), total, valid)
    }

    fn candidates(&self, besides: Option<usize>) -> Vec<usize> {
        let is_chosen = |unit: usize| besides == Some(unit) || self.choices.iter().any(|choice| choice.unit == unit);
        let can_be = |unit: &usize| !is_chosen(*unit) && self.problem.why_never(*unit).is_none();
        (0..self.problem.units.len()).filter(can_be).collect()
    }

    /// For each candidate, the least error on the rows held out that a predictor reaches with it; infinite if it did not reach the shortlist.
    fn losses(&self, predictors: &[Named<'a>], candidates: &[usize]) -> Result<Vec<f64>> {
        let mut losses = vec![f64::INFINITY; candidates.len()];
        for (_, predictor) in predictors {
            let listed = self.shortlist(&**predictor, candidates)?;
            let units: Vec<usize> = listed.iter().map(|at| candidates[*at]).collect();
            let found = self.judge(&**predictor, &units)?;
            listed.iter().zip(found).for_each(|(at, loss)| losses[*at] = losses[*at].min(loss));
        }
        Ok(losses)
    }

    /// The candidates, by position, that are worth the whole predictor.
    fn shortlist(&self, predictor: &(dyn Predictor<'a> + 'a), candidates: &[usize]) -> Result<Vec<usize>> {
        let mut listed: Vec<usize> = (0..candidates.len()).collect();
        let length = SHORTLIST_MIN.max((self.shortlist * candidates.len() as f64).ceil() as usize);
        // Judging twice pays only if most are judged once.
        if 2 * length < candidates.len()
            && let Some(sketch) = predictor.sketch()
        {
            let losses = self.judge(&*sketch, candidates)?;
            listed.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]).then(a.cmp(b)));
            listed.truncate(length);
            listed.sort_unstable();
        }
        Ok(listed)
    }

    /// The error on the rows held out with each of the units.
    fn judge(&self, predictor: &(dyn Predictor<'a> + 'a), units: &[usize]) -> Result<Vec<f64>> {
        let columns = |at: usize| &self.problem.units[units[at]].columns;
        let mut by_width: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        (0..units.len()).for_each(|at| by_width.entry(columns(at).len()).or_default().push(at));
        let mut losses = vec![f64::INFINITY; units.len()];
        for (width, members) in &by_width {
            self.run.check()?;
            let stage = predictor.stage(*width, self.run)?;
            let judge = |at: &usize| {
                self.done.fetch_add(1, Ordering::Relaxed);
                stage.loss(columns(*at), self.run)
            };
            let found = members.par_iter().map(judge).collect::<Result<Vec<f64>>>()?;
            members.iter().zip(found).for_each(|(at, loss)| losses[*at] = loss);
        }
        Ok(losses)
    }

    /// The best candidate, and its lead over the runner-up if there is one.
    pub fn best(&self, lookahead: usize) -> Result<Option<(usize, Option<f64>)>> {
        let candidates = self.candidates(None);
        let mut losses = self.losses(&self.predictors, &candidates)?;
        self.ask_others(&candidates, &mut losses)?;
        let Some(mut best) = least(&losses) else { return Ok(None) };
        let is_last = self.choices.len() + 1 >= self.limit || candidates.len() == 1;
        if lookahead > 1 && !is_last {
            let mut order: Vec<usize> = (0..candidates.len()).collect();
            order.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]).then(a.cmp(b)));
            order.truncate(lookahead);
            let next = order.iter().map(|at| self.next_loss(candidates[*at])).collect::<Result<Vec<f64>>>()?;
            best = order[least(&next).expect("there is one at least")];
        }
        let others = losses.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, loss)| *loss);
        let runner_up = others.reduce(f64::min).filter(|loss| loss.is_finite());
        let lead = runner_up.map(|loss| (loss - losses[best]) / self.without);
        Ok(Some((candidates[best], lead)))
    }

    /// Where the best candidates are nearly equal, which of them is least is luck of the random neurons and of the folds: their errors become the mean over
    /// others too. Only for a predictor without rivals, because of several each candidate has its own.
    fn ask_others(&self, candidates: &[usize], losses: &mut [f64]) -> Result<()> {
        let ([(_, predictor)], Some(best)) = (&self.predictors[..], least(losses)) else { return Ok(()) };
        let mut near: Vec<usize> = (0..losses.len()).filter(|at| losses[*at] <= losses[best] * (1.0 + NEAR)).collect();
        near.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]).then(a.cmp(b)));
        near.truncate(NEAR_MAX);
        if near.len() < 2 || self.others.is_empty() {
            return Ok(());
        }
        let units: Vec<usize> = near.iter().map(|at| candidates[*at]).collect();
        let mut sums: Vec<f64> = near.iter().map(|at| losses[*at]).collect();
        for (draw, folds) in self.others.iter().enumerate() {
            let Some(mut other) = predictor.redrawn(folds, draw as u64) else { return Ok(()) };
            self.choices.iter().for_each(|choice| other.keep(&self.problem.units[choice.unit].columns));
            sums.iter_mut().zip(self.judge(&*other, &units)?).for_each(|(sum, loss)| *sum += loss);
        }
        near.iter().zip(sums).for_each(|(at, sum)| losses[*at] = sum / (self.others.len() + 1) as f64);
        Ok(())
    }

    /// The least error that the step after a unit would reach.
    fn next_loss(&self, unit: usize) -> Result<f64> {
        let mut predictors: Vec<_> = self.predictors.iter().map(|(name, predictor)| (name.clone(), predictor.copy())).collect();
        predictors.iter_mut().for_each(|(_, predictor)| predictor.keep(&self.problem.units[unit].columns));
        Ok(self.losses(&predictors, &self.candidates(Some(unit)))?.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// Fits every predictor with a unit, and takes the best.
    pub fn fit(&mut self, unit: usize) -> Result<Step> {
        let columns = &self.problem.units[unit].columns;
        let fits = self.predictors.iter_mut().map(|(_, predictor)| predictor.fit(columns, self.run));
        let fitted = fits.collect::<Result<Vec<Fitted>>>()?;
        let errors: Vec<f64> = fitted.iter().map(|fitted| self.error(fitted)).collect();
        let predictor = least(&errors).expect("there is a predictor: it was checked");
        Ok(Step { fitted: fitted[predictor].clone(), predictor })
    }

    /// Whether a step takes away enough more of the error, in decibels as a share of what has been taken away before. The first always does.
    ///
    /// With one feature more the same random neurons are spread thinner over the others, by which a few draws of them lose as much as a feature gives. So
    /// before the answer is no, other draws are asked what the step is worth to them.
    pub fn suffices(&self, unit: usize, step: &Step, eta: f64) -> Result<bool> {
        let Some(last) = self.choices.last() else { return Ok(true) };
        let own = self.improvement(&self.now, &step.fitted);
        if own >= eta {
            return Ok(true);
        }
        let columns = |unit: usize| &self.problem.units[unit].columns[..];
        let mut improvements = vec![own];
        for draw in 0..REDRAWN {
            let Some(mut other) = self.predictors[step.predictor].1.redrawn(self.folds, draw) else { break };
            let earlier = &self.choices[..self.choices.len() - 1];
            earlier.iter().for_each(|choice| other.keep(columns(choice.unit)));
            let before = other.fit(columns(last.unit), self.run)?;
            other.keep(columns(last.unit));
            improvements.push(self.improvement(&before, &other.fit(columns(unit), self.run)?));
        }
        Ok(improvements.iter().sum::<f64>() / improvements.len() as f64 >= eta)
    }

    fn improvement(&self, before: &Fitted, after: &Fitted) -> f64 {
        // Decibels are of squares, so an absolute error is squared.
        let power = if self.folds.is_absolute { 2 } else { 1 };
        let of = |fitted: &Fitted| decibel((self.error(fitted) / self.without).powi(power));
        let (before, after) = (of(before), of(after));
        (before - after) / before.abs().max(f64::MIN_POSITIVE)
    }

    /// Keeps a unit for good.
    pub fn keep(&mut self, unit: usize, step: Step, lead: Option<f64>) {
        let columns = &self.problem.units[unit].columns;
        self.predictors.iter_mut().for_each(|(_, predictor)| predictor.keep(columns));
        let fitted = step.fitted;
        let score = lead.unwrap_or_else(|| (self.error(&self.now) - self.error(&fitted)) / self.without);
        let reason = (self.predictors.len() > 1).then(|| format!("predicted by {}", self.predictors[step.predictor].0));
        self.choices.push(Choice {
            valid_score: Some(self.score(&fitted.valid)),
            reason,
            ..Choice::new(self.choices.len() + 1, unit, score)
        });
        self.now = fitted;
    }
}

/// The position of the least loss; of equals the first.
fn least(losses: &[f64]) -> Option<usize> {
    let better = |best: usize, at: usize| if losses[at] < losses[best] * (1.0 - TIE) { at } else { best };
    (0..losses.len()).reduce(better)
}
