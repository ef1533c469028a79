use rayon::prelude::*;

use crate::datum_wise::policy::Action;
use crate::datum_wise::rewards::{Bits, has, insert, words};
use crate::datum_wise::rollouts::Rollouts;
use crate::datum_wise::train::{Fitted, Learner, SoFar};
use crate::datum_wise::walk::Walk;
use crate::{Random, Result};

/// Most states in one iteration: beyond it rows are drawn, others in each iteration. A regression on some hundred numbers
/// learns nothing more from more of them.
const STATES_MAX: usize = 100_000;

/// States that a small table is to have, by trying up to a hundred of each row. The paper has ten,
/// whatever the size of the table.
const STATES_MIN: usize = 20_000;

/// Share of the states that lie on the policy's own way, from the second iteration on. The paper draws all at random; but a linear score cannot be right
/// everywhere, and this makes it right where the policy goes.
const OWN_WAY: f64 = 0.8;

/// Units up to which each is known or not by a coin; beyond, states near the start would never be drawn.
const COIN_UNITS_MAX: usize = 30;

/// States of some rows, and what became of asking for each unit.
#[derive(Default)]
pub(crate) struct States {
    pub rows: Vec<usize>,
    /// How many states each stands for.
    pub weights: Vec<f64>,
    /// `known[state * words ..]`
    pub known: Vec<u64>,
    /// `returns[state * units + unit]`: what following the policies earned after the unit was asked for, without its price; NaN where it could not be.
    pub returns: Vec<f64>,
    /// Whether most units can be asked for.
    pub open: Vec<bool>,
}

impl States {
    pub fn is_open(&self, state: usize) -> bool {
        self.open[state]
    }

    fn extend(&mut self, other: States) {
        self.rows.extend(other.rows);
        self.weights.extend(other.weights);
        self.known.extend(other.known);
        self.returns.extend(other.returns);
        self.open.extend(other.open);
    }
}

impl Learner<'_> {
    /// Draws states and tries every unit in each.
    pub(super) fn states(&self, so_far: SoFar<'_>) -> Result<States> {
        let parts: Vec<States> = self
            .rows()
            .par_chunks(16)
            .map(|rows| {
                let mut part = States::default();
                let mut rollouts = Rollouts::new(self, so_far);
                for row in rows {
                    self.run.check()?;
                    let task = (self.iteration * self.sample.rows() + row) as u64;
                    self.states_of(*row, so_far, &mut self.run.random("datum_wise", task), &mut rollouts, &mut part);
                }
                Ok(part)
            })
            .collect::<Result<_>>()?;
        let mut all = States::default();
        parts.into_iter().for_each(|part| all.extend(part));
        Ok(all)
    }

    /// Bytes of an iteration's states, in parts and put together.
    pub(super) fn states_bytes(&self) -> usize {
        let units = self.rewards.units();
        let most = (STATES_MAX / self.states_of_row()).max(1);
        let states = self.states_of_row() * self.sample.rows().min(most);
        let each = (units + words(units) + 2) * size_of::<u64>() + size_of::<bool>();
        // Lists grow by doubling.
        3 * states * each + self.sample.rows() * size_of::<usize>()
    }

    fn states_of_row(&self) -> usize {
        self.training.states.unwrap_or((STATES_MIN / self.sample.rows()).clamp(10, 100))
    }

    /// The rows of this iteration.
    fn rows(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.sample.rows()).collect();
        let most = (STATES_MAX / self.states_of_row()).max(1);
        if rows.len() > most {
            self.run.random("datum_wise rows", self.iteration as u64).shuffle(&mut rows);
            rows.truncate(most);
            rows.sort_unstable();
        }
        rows
    }

    fn states_of(&self, row: usize, so_far: SoFar<'_>, random: &mut Random, rollouts: &mut Rollouts<'_>, part: &mut States) {
        let states = self.states_of_row();
        let on_way = (OWN_WAY * states as f64) as usize;
        rollouts.of_row(row);
        let mut add = |known: Bits, weight: f64, random: &mut Random| {
            let before = part.returns.len();
            rollouts.after_each_unit(&known, weight, random, &mut part.returns);
            let closed = part.returns[before..].iter().filter(|value| value.is_nan()).count();
            part.open.push(2 * closed < self.rewards.units());
            part.rows.push(row);
            part.weights.push(weight);
            part.known.extend(known);
        };
        (on_way..states).for_each(|_| add(self.draw(random), 1.0, random));
        // The first policy follows none, and is soon forgotten: drawn states are enough for it.
        let Some(policy) = so_far.current else { return };
        let mut way = self.way(policy, row);
        // Each state of the way stands for as many as would have been drawn of it.
        if way.len() > on_way {
            random.shuffle(&mut way);
            way.truncate(on_way);
        }
        let weight = on_way as f64 / way.len() as f64;
        way.into_iter().rev().for_each(|state| add(state, weight, random));
    }

    /// States on a policy's way.
    fn way(&self, policy: &Fitted, row: usize) -> Vec<Bits> {
        let mut walk = Walk::default();
        self.start(policy, row, &mut walk);
        let mut way = vec![walk.known.clone()];
        while let Action::Ask(unit) = walk.best(self.rewards).0 {
            self.ask(policy, row, unit, &mut walk);
            way.push(walk.known.clone());
        }
        way
    }

    /// Which units are known in a state.
    fn draw(&self, random: &mut Random) -> Bits {
        let rewards = self.rewards;
        let units = rewards.units();
        let mut known = vec![0; words(units)];
        self.given.iter().for_each(|unit| insert(&mut known, *unit));
        let is_hard = rewards.neighbours.as_ref().is_some_and(|near| near.far.is_none());
        if is_hard || rewards.budget.is_some() {
            // As many as the budget allows, each number alike, each a step that is allowed.
            let most = rewards.budget.unwrap_or(units).min(units);
            let mut count = self.given.len();
            let size = count + random.below((most + 1).saturating_sub(count).max(1));
            while count < size {
                let asks: Vec<usize> =
                    (0..units).filter(|unit| !has(&known, *unit) && rewards.price(*unit, &known).is_some()).collect();
                if asks.is_empty() {
                    break;
                }
                insert(&mut known, asks[random.below(asks.len())]);
                count += 1;
            }
            return known;
        }
        let share = if units <= COIN_UNITS_MAX { 0.5 } else { random.uniform() };
        for unit in 0..units {
            if random.uniform() < share {
                insert(&mut known, unit);
            }
        }
        known
    }
}
