use crate::datum_wise::policy::Action;
use crate::datum_wise::rewards::{Bits, Rewards, insert, words};
use crate::kernels::gemm::vectorized;

/// A row on its way: what is known of it, and what its actions are worth.
#[derive(Debug, Default, Clone)]
pub(crate) struct Walk {
    /// Of each action; a unit that is known is worth minus infinity. Where prices do not depend on what is known they are subtracted already.
    scores: Vec<f64>,
    pub known: Bits,
    pub count: usize,
}

impl Walk {
    /// Nothing is known yet. `start` is what [`starts`] makes of a policy's scores.
    pub fn start(&mut self, rewards: &Rewards, start: &[f64]) {
        self.scores.clear();
        self.scores.extend(start);
        self.known.clear();
        self.known.resize(words(rewards.units()), 0);
        self.count = 0;
    }

    /// A copy of another, in the memory that there is.
    pub fn copy(&mut self, other: &Walk) {
        self.scores.clone_from(&other.scores);
        self.known.clone_from(&other.known);
        self.count = other.count;
    }

    /// A unit becomes known, which changes the scores by the sum of `changes`, each times its factor.
    pub fn learn<'a>(&mut self, rewards: &Rewards, unit: usize, changes: impl Iterator<Item = (f64, &'a [f64])>) {
        insert(&mut self.known, unit);
        self.count += 1;
        changes.for_each(|(factor, change)| add(&mut self.scores, factor, change));
        self.scores[rewards.classes + unit] = f64::NEG_INFINITY;
    }

    /// The best action, and its score less its price. Ties go to a class before a unit, then to the lower index.
    pub fn best(&self, rewards: &Rewards) -> (Action, f64) {
        let (classes, units) = self.scores.split_at(rewards.classes);
        if !rewards.has_budget(self.count) {
            let (class, score) = highest(classes);
            return (Action::Predict(class), score);
        }
        if rewards.is_plain() {
            let (at, score) = highest(&self.scores);
            let action = if at < rewards.classes { Action::Predict(at) } else { Action::Ask(at - rewards.classes) };
            return (action, score);
        }
        let (class, score) = highest(classes);
        let mut top = (Action::Predict(class), score);
        for (unit, score) in units.iter().enumerate() {
            // No price is below 0: it is looked at only where it can matter.
            if *score > top.1
                && let Some(price) = rewards.price(unit, &self.known)
                && score - price > top.1
            {
                top = (Action::Ask(unit), score - price);
            }
        }
        top
    }
}

/// The scores to begin with: a policy's, less the prices that never change.
pub(crate) fn starts(rewards: &Rewards, start: &[f64]) -> Vec<f64> {
    let mut start = start.to_vec();
    if rewards.is_plain() {
        start[rewards.classes..].iter_mut().zip(&rewards.prices).for_each(|(score, price)| *score -= price);
    }
    start
}

/// Actions from which on wide registers are worth asking for.
const WIDE: usize = 24;

/// `scores += factor · change`
fn add(scores: &mut [f64], factor: f64, change: &[f64]) {
    if scores.len() < WIDE { add_body::<false>(scores, factor, change) } else { add_wide(scores, factor, change) }
}

vectorized! {
    fn add_wide(scores: &mut [f64], factor: f64, change: &[f64]) = add_body;
}

#[inline(always)]
fn add_body<const FUSED: bool>(scores: &mut [f64], factor: f64, change: &[f64]) {
    for (score, change) in scores.iter_mut().zip(change) {
        *score += factor * change;
    }
}

/// The highest score and its place, the first of equals. A score that is no number is passed over, and one of minus infinity is never taken: it is that of
/// a unit that is known. Where no other is left the first class is, so that a row ends whatever the weights are.
fn highest(scores: &[f64]) -> (usize, f64) {
    let mut top = (0, f64::NEG_INFINITY);
    if scores.len() >= WIDE {
        let highest = highest_wide(scores);
        if highest > f64::NEG_INFINITY {
            top = (scores.iter().position(|score| *score == highest).unwrap_or_default(), highest);
        }
    } else {
        for (at, score) in scores.iter().enumerate() {
            if *score > top.1 {
                top = (at, *score);
            }
        }
    }
    if top.1 > f64::NEG_INFINITY { top } else { (0, scores[0]) }
}

vectorized! {
    fn highest_wide(scores: &[f64]) -> f64 = highest_body;
}

#[inline(always)]
fn highest_body<const FUSED: bool>(scores: &[f64]) -> f64 {
    let (blocks, rest) = scores.as_chunks::<8>();
    let mut top = [f64::NEG_INFINITY; 8];
    for block in blocks {
        for lane in 0..8 {
            top[lane] = if block[lane] > top[lane] { block[lane] } else { top[lane] };
        }
    }
    let mut highest = f64::NEG_INFINITY;
    for score in top.iter().chain(rest) {
        highest = if *score > highest { *score } else { highest };
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_the_highest_however_many_there_are() {
        for n in [3, WIDE - 1, WIDE, 50] {
            let mut scores: Vec<f64> = (0..n).map(|at| -(at as f64)).collect();
            assert_eq!(highest(&scores), (0, 0.0));
            (scores[n - 2], scores[n - 1]) = (1.0, 1.0);
            assert_eq!(highest(&scores), (n - 2, 1.0));
            scores[0] = f64::NAN;
            assert_eq!(highest(&scores), (n - 2, 1.0));
            scores.fill(f64::NEG_INFINITY);
            assert_eq!(highest(&scores).0, 0);
            scores[0] = f64::NAN;
            assert_eq!(highest(&scores).0, 0, "what is known is not asked for again");
        }
    }

    #[test]
    fn what_is_known_is_not_asked_for_again() {
        let rewards = Rewards::plain(2, 2, 0.1);
        let mut walk = Walk::default();
        walk.start(&rewards, &starts(&rewards, &[-0.5, -0.4, -0.1, 0.0]));
        assert_eq!(walk.best(&rewards), (Action::Ask(1), -0.1));
        walk.learn(&rewards, 1, [(2.0, &[0.1, 0.0, 0.0, 9.0][..])].into_iter());
        assert_eq!(walk.best(&rewards), (Action::Ask(0), -0.2));
        walk.learn(&rewards, 0, [(1.0, &[0.0; 4][..])].into_iter());
        assert_eq!(walk.best(&rewards), (Action::Predict(0), -0.3));
    }
}
