use serde::{Deserialize, Serialize};

use crate::Problem;

/// One chosen unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// 1 = chosen first.
    pub rank: usize,
    /// Position in [`Problem::units`](crate::Problem::units).
    pub unit: usize,
    /// The selector's own criterion; higher is better.
    pub score: f64,
    /// What this choice added to `train_score`.
    pub gain: Option<f64>,
    /// Share of the label's variance explained by choices 1..=rank.
    pub train_score: Option<f64>,
    /// The same quality on rows that were held out, where a selector validates.
    pub valid_score: Option<f64>,
    /// Its standard error, where it is a mean over folds.
    pub valid_error: Option<f64>,
    /// How likely so strong a connection with the label would be by chance, where a selector tests for one.
    pub p_value: Option<f64>,
    /// What acquiring the unit costs, where a selector knows.
    pub cost: Option<f64>,
    /// Coefficient of a single-column unit, in the input's units.
    pub coefficient: Option<f64>,
    /// What happened to the unit at this step, where a selector returns a whole path.
    pub reason: Option<String>,
    /// What a person would remark on it; more is added around the selector.
    pub note: Option<String>,
}

impl Choice {
    pub fn new(rank: usize, unit: usize, score: f64) -> Self {
        Self {
            rank,
            unit,
            score,
            gain: None,
            train_score: None,
            valid_score: None,
            valid_error: None,
            p_value: None,
            cost: None,
            coefficient: None,
            reason: None,
            note: None,
        }
    }
}

/// What a selector answers: its choices, best first, and why it passed over others where it knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Ranking {
    pub choices: Vec<Choice>,
    /// Units that could not be chosen, with the reason (`collinear with bmi`).
    pub passed_over: Vec<(usize, String)>,
}

impl Ranking {
    /// Some units by their importance, the most important first, behind those that must be included; with `k => 'auto'` those above the mean.
    pub(crate) fn by_importance(
        problem: &Problem,
        units: impl Iterator<Item = usize>,
        importance: impl Fn(usize) -> f64,
    ) -> Self {
        let (forced, mut order): (Vec<usize>, Vec<usize>) = units.partition(|unit| problem.must_include.contains(unit));
        // Of equals the first stays first.
        order.sort_by(|a, b| importance(*b).total_cmp(&importance(*a)));
        let positive = order.iter().chain(&forced).map(|unit| importance(*unit).max(0.0));
        let mean = positive.sum::<f64>() / problem.units.len() as f64;
        let above = order.iter().filter(|unit| importance(**unit) > mean).count();
        let most = problem.k.unwrap_or(problem.must_include.len() + above);
        let forced = problem.must_include.iter().filter(|unit| forced.contains(unit)).copied();
        let chosen = forced.chain(order).take(most).enumerate();
        let choices = chosen.map(|(at, unit)| Choice::new(at + 1, unit, importance(unit))).collect();
        Self { choices, passed_over: Vec::new() }
    }

    pub fn units(&self) -> Vec<usize> {
        self.choices.iter().map(|choice| choice.unit).collect()
    }
}
