use std::ops::Range;

use crate::datum_wise::rewards::Rewards;
use crate::datum_wise::walk::{Walk, starts};
use crate::reading::coding::Coding;

/// A learned policy: what to do next with a row of which some units are known. It scores every action, a class or a unit,
/// linearly in what is known, and takes the best.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// What the classes are called.
    pub classes: Vec<String>,
    pub units: Vec<PolicyUnit>,
    pub columns: Vec<PolicyColumn>,
    pub weights: Weights,
    pub rewards: Rewards,
    /// Units that are known from the start.
    pub given: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PolicyUnit {
    pub name: String,
    /// Its columns among the policy's.
    pub columns: Range<usize>,
}

/// A number that the policy makes from a column of the input: coded, and the mean subtracted.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyColumn {
    pub feature: String,
    pub coding: Coding,
    pub mean: f64,
}

/// Of every action, classes first, then units: the score before anything is known, what it gains when a unit becomes known, and
/// what it gains by each value.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    pub actions: usize,
    pub start: Vec<f64>,
    /// `known[unit * actions + action]`
    pub known: Vec<f64>,
    /// `values[column * actions + action]`
    pub values: Vec<f64>,
}

impl Weights {
    pub(crate) fn mean(all: &[&Weights]) -> Self {
        let mean = |of: fn(&Weights) -> &[f64]| -> Vec<f64> {
            (0..of(all[0]).len()).map(|at| all.iter().map(|weights| of(weights)[at]).sum::<f64>() / all.len() as f64).collect()
        };
        Self { actions: all[0].actions, start: mean(|w| &w.start), known: mean(|w| &w.known), values: mean(|w| &w.values) }
    }

    /// What becoming known of a unit adds to the scores, given its values: lists of weights, and what to multiply each by.
    pub(crate) fn changes(
        &self,
        unit: usize,
        columns: Range<usize>,
        value: impl Fn(usize) -> f64,
    ) -> impl Iterator<Item = (f64, &[f64])> {
        let known = (1.0, &self.known[unit * self.actions..][..self.actions]);
        let of_column = move |column: usize| (value(column), &self.values[column * self.actions..][..self.actions]);
        std::iter::once(known).chain(columns.map(of_column).filter(|(value, _)| *value != 0.0))
    }
}

/// What a policy does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Predict(usize),
    Ask(usize),
}

/// One step of a row's way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub action: Action,
    /// The expected reward from here on: minus what will still be paid.
    pub score: f64,
}

/// How a row was decided.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    pub steps: Vec<Step>,
    /// Units that were known, in the order in which they became known; those given come first.
    pub units: Vec<usize>,
    pub class: usize,
    /// What the units cost.
    pub cost: f64,
    /// The expected reward of the prediction.
    pub score: f64,
}

/// The scores that every row begins with, and its first step unless that depends on what is given.
pub(crate) struct Opening {
    start: Vec<f64>,
    first: Option<(Action, f64)>,
}

impl Policy {
    /// Bytes that its table takes while it is made.
    pub(crate) fn table_bytes(&self) -> usize {
        let rows = self.weights.actions * (2 + self.units.len() + self.columns.len());
        // A row with its names, and the same once more by columns.
        rows * 2 * (size_of::<crate::datum_wise::PolicyRow>() + 64)
    }

    /// Where every row begins.
    pub(crate) fn opening(&self) -> Opening {
        let start = starts(&self.rewards, &self.weights.start);
        let mut walk = Walk::default();
        walk.start(&self.rewards, &start);
        let first = self.given.is_empty().then(|| walk.best(&self.rewards));
        Opening { start, first }
    }

    /// Decides a row, of which `value` knows the policy's columns. Only the values that are asked for are looked at.
    pub(crate) fn decide(&self, opening: &Opening, walk: &mut Walk, value: impl Fn(usize) -> f64, decision: &mut Decision) {
        decision.steps.clear();
        decision.units.clear();
        decision.cost = 0.0;
        walk.start(&self.rewards, &opening.start);
        for unit in &self.given {
            decision.cost += self.rewards.price(*unit, &walk.known).unwrap_or(self.rewards.prices[*unit]);
            self.ask(*unit, walk, &value, decision);
        }
        let mut first = opening.first;
        loop {
            // What is given does not count against the budget's end, only against its size.
            let (action, score) = first.take().unwrap_or_else(|| walk.best(&self.rewards));
            decision.steps.push(Step { action, score });
            match action {
                Action::Ask(unit) => {
                    decision.cost += self.rewards.price(unit, &walk.known).expect("only what may be asked for is");
                    self.ask(unit, walk, &value, decision);
                }
                Action::Predict(class) => {
                    (decision.class, decision.score) = (class, score);
                    return;
                }
            }
        }
    }

    fn ask(&self, unit: usize, walk: &mut Walk, value: &impl Fn(usize) -> f64, decision: &mut Decision) {
        walk.learn(&self.rewards, unit, self.weights.changes(unit, self.units[unit].columns.clone(), value));
        decision.units.push(unit);
    }
}
