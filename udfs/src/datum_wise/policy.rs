use std::ops::Range;

use crate::datum_wise::rewards::{Bits, Rewards, has, insert, words};
use crate::rows::Coding;

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
    /// Adds to `scores` what becoming known of a unit changes, given its values.
    pub(crate) fn learn(&self, unit: usize, columns: Range<usize>, value: impl Fn(usize) -> f64, scores: &mut [f64]) {
        let add = |scores: &mut [f64], factor: f64, weights: &[f64]| {
            scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += factor * weight);
        };
        add(scores, 1.0, &self.known[unit * self.actions..][..self.actions]);
        for column in columns {
            let value = value(column);
            if value != 0.0 {
                add(scores, value, &self.values[column * self.actions..][..self.actions]);
            }
        }
    }
}

/// What a policy does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Predict(usize),
    Ask(usize),
}

/// The best action by `scores`, and its score less its price. Ties go to a class before a unit, then to the lower index.
pub(crate) fn best(rewards: &Rewards, scores: &[f64], known: &[u64], count: usize) -> (Action, f64) {
    let (classes, units) = scores.split_at(rewards.classes);
    let mut top = (Action::Predict(0), f64::NEG_INFINITY);
    for (class, score) in classes.iter().enumerate() {
        if *score > top.1 {
            top = (Action::Predict(class), *score);
        }
    }
    if !rewards.has_budget(count) {
        return top;
    }
    if rewards.is_plain() {
        for (unit, (score, price)) in units.iter().zip(&rewards.prices).enumerate() {
            if score - price > top.1 && !has(known, unit) {
                top = (Action::Ask(unit), score - price);
            }
        }
        return top;
    }
    for (unit, score) in units.iter().enumerate() {
        // The price is looked at only where it can matter.
        if has(known, unit) {
            continue;
        }
        if let Some(price) = rewards.price(unit, known)
            && score - price > top.1
        {
            top = (Action::Ask(unit), score - price);
        }
    }
    top
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

/// Scratch for walking many rows.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    scores: Vec<f64>,
    known: Bits,
}

impl Policy {
    /// Decides a row, of which `value` knows the policy's columns. Only the values that are asked for are looked at.
    pub(crate) fn decide(&self, walk: &mut Walk, value: impl Fn(usize) -> f64, decision: &mut Decision) {
        decision.steps.clear();
        decision.units.clear();
        decision.cost = 0.0;
        walk.scores.clear();
        walk.scores.extend(&self.weights.start);
        walk.known.clear();
        walk.known.resize(words(self.units.len()), 0);
        for unit in &self.given {
            decision.cost += self.rewards.price(*unit, &walk.known).unwrap_or(self.rewards.prices[*unit]);
            self.ask(*unit, walk, &value, decision);
        }
        loop {
            // What is given does not count against the budget's end, only against its size.
            let (action, score) = best(&self.rewards, &walk.scores, &walk.known, decision.units.len());
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
        insert(&mut walk.known, unit);
        self.weights.learn(unit, self.units[unit].columns.clone(), value, &mut walk.scores);
        decision.units.push(unit);
    }
}
