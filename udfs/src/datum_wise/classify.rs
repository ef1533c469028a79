use std::ops::Range;

use crate::datum_wise::policy::{Action, Decision, Policy, Step};
use crate::datum_wise::walk::{Walk, starts};
use crate::math::gemm::vectorized;
use crate::problem::{Block, Feature, NO_LEVEL, is_value};
use crate::rows::Coding;
use crate::{Result, Run};

/// Rows between two looks at whether the query still runs.
const STRIDE: usize = 1024;

/// A column of the policy, found in a block of the input.
enum Source<'a> {
    Number { values: &'a [f64], mean: f64 },
    Level { codes: &'a [u32], level: Option<u32>, mean: f64 },
    MissingNumber { values: &'a [f64], mean: f64 },
    MissingLevel { codes: &'a [u32], mean: f64 },
}

impl Source<'_> {
    /// The coded value less its mean; 0 where there is none. A level that training did not see is none of the levels.
    #[inline(always)]
    fn value(&self, row: usize) -> f64 {
        match self {
            Source::Number { values, mean } => {
                if is_value(values[row]) {
                    values[row] - mean
                } else {
                    0.0
                }
            }
            Source::Level { codes, .. } if codes[row] == NO_LEVEL => 0.0,
            Source::Level { codes, level, mean } => f64::from(Some(codes[row]) == *level) - mean,
            Source::MissingNumber { values, mean } => f64::from(!is_value(values[row])) - mean,
            Source::MissingLevel { codes, mean } => f64::from(codes[row] == NO_LEVEL) - mean,
        }
    }
}

impl Policy {
    /// The columns of a table that the policy may ask for, and whether each is text.
    pub fn features(&self) -> Vec<Feature> {
        let mut features: Vec<Feature> = Vec::new();
        for column in &self.columns {
            let is_level = matches!(column.coding, Coding::Level(_));
            match features.iter_mut().find(|feature| feature.name == column.feature) {
                Some(feature) => feature.is_text |= is_level,
                None => features.push(Feature { name: column.feature.clone(), is_text: is_level }),
            }
        }
        features
    }

    /// Decides rows as they come: a block for each of [`Self::features`], a decision for each row.
    pub fn classify(
        &self,
        rows: usize,
        features: &[Block<'_>],
        run: &Run,
        mut receive: impl FnMut(usize, &Decision),
    ) -> Result<()> {
        let numbers: Vec<Vec<f64>> = features
            .iter()
            .map(|block| {
                let Block::Numbers(numbers) = block else { return Vec::new() };
                let mut values = vec![0.0; rows];
                numbers.fill(0, &mut values);
                values
            })
            .collect();
        let names = self.features();
        let source = |column: &crate::datum_wise::PolicyColumn| {
            let at = names.iter().position(|feature| feature.name == column.feature).expect("a feature for each column");
            let mean = column.mean;
            match (&features[at], &column.coding) {
                (Block::Numbers(_), Coding::Number) => Source::Number { values: &numbers[at], mean },
                (Block::Numbers(_), _) => Source::MissingNumber { values: &numbers[at], mean },
                (Block::Levels { codes, names }, Coding::Level(level)) => {
                    Source::Level { codes, level: names.iter().position(|name| name == level).map(|at| at as u32), mean }
                }
                (Block::Levels { codes, .. }, _) => Source::MissingLevel { codes, mean },
            }
        };
        let sources: Vec<Source<'_>> = self.columns.iter().map(source).collect();
        let mut decision = Decision::default();
        let filled = Filled::of(self);
        let (opening, mut walk) = (self.opening(), Walk::default());
        for start in (0..rows).step_by(STRIDE) {
            run.check()?;
            let block = start..rows.min(start + STRIDE);
            match &filled {
                Some(filled) => decide_rows(filled, &sources, block, &mut decision, &mut receive),
                None => {
                    for row in block {
                        self.decide(&opening, &mut walk, |column| sources[column].value(row), &mut decision);
                        receive(row, &decision);
                    }
                }
            }
        }
        Ok(())
    }
}

const LANES: usize = 4;

/// The same decisions, to the bit, as [`Policy::decide`] makes, for the usual policy: prices that do not change, and nothing given. The weights of
/// an action are filled up to whole registers, which makes deciding faster.
struct Filled<'a> {
    policy: &'a Policy,
    width: usize,
    start: Vec<f64>,
    known: Vec<f64>,
    values: Vec<f64>,
}

impl<'a> Filled<'a> {
    fn of(policy: &'a Policy) -> Option<Self> {
        let actions = policy.weights.actions;
        // A word has a bit for each action.
        if !policy.rewards.is_plain() || !policy.given.is_empty() || actions > 64 {
            return None;
        }
        let width = actions.next_multiple_of(LANES);
        let fill = |rows: &[f64], with: f64| -> Vec<f64> {
            rows.chunks(actions).flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(with, width - actions))).collect()
        };
        Some(Self {
            policy,
            width,
            start: fill(&starts(&policy.rewards, &policy.weights.start), f64::NEG_INFINITY),
            known: fill(&policy.weights.known, 0.0),
            values: fill(&policy.weights.values, 0.0),
        })
    }
}

vectorized! {
    fn decide_rows(filled: &Filled<'_>, sources: &[Source<'_>], rows: Range<usize>, decision: &mut Decision, receive: &mut dyn FnMut(usize, &Decision)) =
        decide_rows_body;
}

// Plain loops and no closures: what is not inlined here would be compiled without wide registers.
#[inline(always)]
fn decide_rows_body<const FUSED: bool>(
    filled: &Filled<'_>,
    sources: &[Source<'_>],
    rows: Range<usize>,
    decision: &mut Decision,
    receive: &mut dyn FnMut(usize, &Decision),
) {
    let (policy, width) = (filled.policy, filled.width);
    let rewards = &policy.rewards;
    let mut scores = filled.start.clone();
    for row in rows {
        decision.steps.clear();
        decision.units.clear();
        decision.cost = 0.0;
        scores.copy_from_slice(&filled.start);
        loop {
            let asked = decision.units.len();
            if !rewards.has_budget(asked) {
                scores[rewards.classes..].fill(f64::NEG_INFINITY);
            }
            let (at, score) = highest(&scores);
            if at < rewards.classes {
                decision.steps.push(Step { action: Action::Predict(at), score });
                (decision.class, decision.score) = (at, score);
                break;
            }
            let unit = at - rewards.classes;
            decision.steps.push(Step { action: Action::Ask(unit), score });
            decision.units.push(unit);
            decision.cost += rewards.prices[unit];
            add(&mut scores, 1.0, &filled.known[unit * width..]);
            for column in policy.units[unit].columns.clone() {
                let value = sources[column].value(row);
                if value != 0.0 {
                    add(&mut scores, value, &filled.values[column * width..]);
                }
            }
            scores[at] = f64::NEG_INFINITY;
        }
        receive(row, decision);
    }
}

#[inline(always)]
fn add(scores: &mut [f64], factor: f64, change: &[f64]) {
    for (scores, change) in scores.as_chunks_mut::<LANES>().0.iter_mut().zip(change.as_chunks::<LANES>().0) {
        // By value, so that the compiler sees that the two do not overlap.
        let (mut sums, change) = (*scores, *change);
        for lane in 0..LANES {
            sums[lane] += factor * change[lane];
        }
        *scores = sums;
    }
}

/// The highest score and its place, the first of equals.
#[inline(always)]
fn highest(scores: &[f64]) -> (usize, f64) {
    let blocks = scores.as_chunks::<LANES>().0;
    let mut top = [f64::NEG_INFINITY; LANES];
    for block in blocks {
        let block = *block;
        for lane in 0..LANES {
            top[lane] = if block[lane] > top[lane] { block[lane] } else { top[lane] };
        }
    }
    let pairs = [if top[0] > top[2] { top[0] } else { top[2] }, if top[1] > top[3] { top[1] } else { top[3] }];
    let highest = if pairs[0] > pairs[1] { pairs[0] } else { pairs[1] };
    let mut places = 0u64;
    for (at, block) in blocks.iter().enumerate() {
        for lane in 0..LANES {
            places |= u64::from(block[lane] == highest) << (LANES * at + lane);
        }
    }
    (places.trailing_zeros() as usize, highest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum_wise::policy::{PolicyColumn, PolicyUnit, Weights};
    use crate::datum_wise::rewards::Rewards;

    /// Random policies of several sizes, one unit with two columns, values that are missing or exactly the mean.
    #[test]
    fn wide_registers_decide_as_one_row_at_a_time_does() {
        let mut random = Run::new(3).random("policies", 0);
        let mut lengths = std::collections::BTreeSet::new();
        for (classes, units, budget) in [(2, 10, None), (3, 5, Some(2)), (2, 61, None), (10, 30, Some(0)), (2, 2, Some(1))] {
            let (actions, columns) = (classes + units, units + 1);
            let mut draw = |n: usize, size: f64| (0..n).map(|_| size * random.normal()).collect::<Vec<f64>>();
            let weights = Weights {
                actions,
                start: draw(actions, 0.3),
                known: draw(units * actions, 0.3),
                values: draw(columns * actions, 0.5),
            };
            let column = |at: usize| PolicyColumn { feature: format!("x{at}"), coding: Coding::Number, mean: 0.25 };
            let unit = |at: usize| PolicyUnit { name: format!("u{at}"), columns: at..at + 1 + usize::from(at + 1 == units) };
            let policy = Policy {
                classes: (0..classes).map(|class| class.to_string()).collect(),
                units: (0..units).map(unit).collect(),
                columns: (0..columns).map(column).collect(),
                weights,
                rewards: Rewards { budget, ..Rewards::plain(classes, units, 0.05) },
                given: Vec::new(),
            };
            assert!(Filled::of(&policy).is_some_and(|filled| filled.width.is_multiple_of(LANES)) == (actions <= 64));
            let mut values: Vec<Vec<f64>> = (0..columns).map(|_| draw(1500, 1.0)).collect();
            values.iter_mut().for_each(|column| (column[3], column[7]) = (f64::NAN, 0.25));
            let blocks: Vec<Block<'_>> = values.iter().map(|column| Block::Numbers(column)).collect();
            let (opening, mut walk, mut slow) = (policy.opening(), Walk::default(), Decision::default());
            let check = |row: usize, decision: &Decision| {
                let value = |column: usize| if values[column][row].is_nan() { 0.0 } else { values[column][row] - 0.25 };
                policy.decide(&opening, &mut walk, value, &mut slow);
                assert_eq!(*decision, slow, "{classes} {units} {row}");
                lengths.insert(slow.units.len());
            };
            policy.classify(1500, &blocks, &Run::default(), check).unwrap();
        }
        assert!(lengths.len() > 4, "rows differ in how much they ask for: {lengths:?}");
    }
}
