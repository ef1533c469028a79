use rayon::prelude::*;

use crate::judging::apart::Apart;
use crate::judging::folds::{Folds, Holding};
use crate::judging::metric::{Criterion, Tally};
use crate::linear::elimination::{eliminate, eliminate_linear};
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::neural::candidates::Candidates;
use crate::predictors::probing::{Silence, rises};
use crate::predictors::refit::Learner;
use crate::predictors::wrapped::{Wrapped, Wrapping};
use crate::{Check, Choice, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What happens to the model without a feature.
    pub enum Mode {
        /// It stays as it is, and every row has the feature's mean.
        Frozen = "frozen",
        /// It is trained anew, again and again, until every feature has gone.
        Retrain = "retrain",
    }
}

selector! {
    /// Drop one out: what is lost without each feature.
    ///
    /// Asks how much worse the model predicts without a feature. `mode => 'frozen'` trains once, on all features, and gives the feature's mean to every row that judges. Its network pays a
    /// `penalty` for the weights of each column, so that it does without those that say nothing.
    /// `mode => 'retrain'` is backward elimination: it trains without each feature in turn, takes away the one that is missed least, and goes on with the rest; the last to go is
    /// ranked first.
    ///
    /// The error is the squared one on rows held out, by default a quarter (of classes that of their 0/1 columns), as a share of the label's variance. For `model => 'linear'` with 'retrain' it is
    /// that of the rows learnt from, all fits are in closed form, and nothing but moments is read. A text or a group goes as a whole. `k => 'auto'`: what is above the mean; for
    /// linear elimination as many as the extended Bayesian information criterion asks for.
    ///
    /// Cost: 'frozen' a fit for each fold and `features` predictions of every row. 'retrain' `features² / 2` fits for each fold, or with `step` fewer; linear: one pass over the table,
    /// then `features³` operations.
    ///
    /// Source: Ye and Sun, 2018. Variable selection via penalized neural network: a drop-out-one loss approach. For 'retrain': Marill and Green, 1963. On the effectiveness of receptors in
    /// recognition systems.
    #[selector(
        name = "drop_one_out",
        aliases = [],
        labels = Any,
        score = "what R² loses without it",
        table = ("validation", "The rows to judge by, with the same columns."),
    )]
    pub struct DropOneOut {
        /// Whether the model stays as it is without a feature, or is trained anew.
        mode: Mode = Mode::Frozen;
        /// What predicts the label.
        model: Wrapped = Wrapped::Mlp;
        /// With 'retrain', features that go in a round: below 1 a share of those left, from 1 on so many.
        step: f64 = 1.0, Check::Between(0.001, 1e9);
        /// Model mlp, not trained anew: penalty on the length of the weights that leave each column. Without it a network of many columns learns its rows by heart, and relies on noise.
        penalty: f64 = 0.05, Check::Between(0.0, 1e9);
        ..apart: Apart;
        ..wrapping: Wrapping;
    }
}

/// The share of the rows that judges, unless something else is asked for.
const SHARE: f64 = 0.25;

impl Selector for DropOneOut {
    fn reads(&self) -> Reads {
        if self.is_plain() { Reads::Moments } else { Reads::Rows }
    }

    fn is_prefix(&self) -> bool {
        self.is_plain()
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        self.model.check(problem)?;
        if self.is_plain() && problem.held_out.is_none() {
            let products = Products::new(problem, run)?;
            let order = eliminate_linear(problem, &products, self.step, run, |fit, unit| fit.loss(unit))?;
            let mut ranking = explain(problem, &products, run, &order, problem.k)?;
            // What the last of some features adds is what is lost without it.
            ranking.choices.iter_mut().for_each(|choice| choice.score = choice.gain.unwrap_or(choice.score));
            return Ok(ranking);
        }
        let share = Holding::Share(SHARE);
        let folds = self.apart.folds(problem, share, Criterion::Squared, run)?;
        let candidates = Candidates::new(problem, problem.rows(), run)?;
        if self.mode == Mode::Frozen {
            let model = self.wrapping.model(self.model, self.penalty, &folds, run)?;
            let lost = rises(problem, &folds, &*model, &candidates.units, Silence::Mean, run)?;
            return Ok(candidates.ranking(problem, &lost));
        }
        let learner = self.wrapping.learner(self.model, &folds, run)?;
        let order = eliminate(problem, candidates.units.iter().copied(), self.step, run, |units, _| {
            let with_all = error(problem, &folds, &*learner, units, run)?;
            let without = |at: usize| {
                let others: Vec<usize> = units.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, u)| *u).collect();
                Ok(error(problem, &folds, &*learner, &others, run)? - with_all)
            };
            (0..units.len()).into_par_iter().map(without).collect()
        })?;
        let above = order.iter().map(|(_, score)| score.max(0.0)).sum::<f64>() / order.len().max(1) as f64;
        let forced = problem.must_include.len();
        let auto = order.iter().enumerate().filter(|(at, (_, score))| *at < forced || *score > above).count();
        let chosen = order.iter().take(problem.k.unwrap_or(auto)).enumerate();
        let choices = chosen.map(|(at, (unit, score))| Choice::new(at + 1, *unit, *score)).collect();
        Ok(Ranking { choices, passed_over: candidates.repeated })
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        match option {
            "step" if self.mode == Mode::Frozen => Some("mode => 'retrain'"),
            "penalty" if self.mode == Mode::Retrain => Some("mode => 'frozen'"),
            "penalty" if self.model != Wrapped::Mlp => Some("model => 'mlp'"),
            _ => self.model.unused(option),
        }
    }
}

impl DropOneOut {
    /// Whether moments tell all that is asked for.
    fn is_plain(&self) -> bool {
        self.mode == Mode::Retrain && self.model == Wrapped::Linear && !self.apart.is_asked()
    }
}

/// The squared error on the rows held out of a model that knows some units, as a share of the label's variance; 1 without any.
fn error(problem: &Problem, folds: &Folds, learner: &dyn Learner, units: &[usize], run: &Run) -> Result<f64> {
    if units.is_empty() {
        return Ok(1.0);
    }
    let mut columns: Vec<usize> = units.iter().flat_map(|unit| problem.units[*unit].columns.iter().copied()).collect();
    columns.sort_by_key(|column| problem.column_key(*column));
    let mut tally = Tally::default();
    for fit in 0..folds.held_out.len() {
        run.check()?;
        let _memory = run.reserve(folds.rows() * (2 * size_of::<usize>() + (2 * folds.labels.len() + 3) * size_of::<f64>()))?;
        let rows: Vec<usize> = folds.held_out_rows(fit).collect();
        let predicted = learner.predict(folds, &columns, &folds.learnt_rows(fit), &rows, run)?;
        rows.iter().zip(&predicted).for_each(|(row, predicted)| tally.add(folds, *row, predicted));
    }
    Ok(tally.unexplained())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Table, least_squares, planted};

    /// With its mean in the place of a feature a linear model loses the variance of the feature's part.
    #[test]
    fn a_frozen_linear_model_loses_the_part_of_a_feature() {
        let table = Table::random(2000, 3, 5);
        let label: Vec<f64> = (0..2000).map(|row| 2.0 * table.column(1)[row] + table.column(2)[row]).collect();
        let problem = table.k(3).problem_of_rows(&label);
        let ranking = DropOneOut { model: Wrapped::Linear, ..Default::default() }.select(&problem, &Run::new(0)).unwrap();
        assert_eq!(ranking.units(), [1, 2, 0]);
        for (choice, expected) in ranking.choices.iter().zip([0.8, 0.2, 0.0]) {
            assert!((choice.score - expected).abs() < 0.08, "{ranking:?}");
        }
    }

    /// Backward elimination, worked out with a dense fit for every subset that it looks at.
    #[test]
    fn linear_elimination_takes_away_what_is_missed_least() {
        for seed in 0..10 {
            let (table, label) = planted(40, 6, &[1, 4, 5], 3.0, seed);
            let r2 = |units: &[usize]| least_squares(&units.iter().map(|unit| table.column(*unit)).collect::<Vec<_>>(), &label).1;
            let mut left: Vec<usize> = (0..6).collect();
            let mut expected = Vec::new();
            while !left.is_empty() {
                let without = |unit: usize| left.iter().copied().filter(|other| *other != unit).collect::<Vec<_>>();
                let missed = |unit: &usize| if left.len() == 1 { -r2(&left) } else { r2(&without(*unit)) };
                let gone = *left.iter().max_by(|a, b| missed(a).total_cmp(&missed(b))).unwrap();
                expected.push(gone);
                left = without(gone);
            }
            expected.reverse();
            let selector = DropOneOut { mode: Mode::Retrain, model: Wrapped::Linear, ..Default::default() };
            let ranking = selector.select(&table.clone().k(6).problem(&label), &Run::new(0)).unwrap();
            assert_eq!(ranking.units(), expected, "problem {seed}");
        }
    }

    /// Every model, trained anew, keeps to the last what carries the label.
    #[test]
    fn every_model_keeps_what_carries_the_label() {
        let (table, label) = planted(200, 4, &[2], 0.3, 3);
        for model in [Wrapped::Mlp, Wrapped::Forest, Wrapped::Boosting] {
            let wrapping = Wrapping { trees: 10, ..Default::default() };
            let selector = DropOneOut { mode: Mode::Retrain, model, wrapping, ..Default::default() };
            let ranking = selector.select(&table.clone().k(2).problem_of_rows(&label), &Run::new(0)).unwrap();
            assert_eq!(ranking.choices[0].unit, 2, "{model:?}");
        }
    }
}
