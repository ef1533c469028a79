use crate::Random;
use crate::datum_wise::memo::Memo;
use crate::datum_wise::policy::Action;
use crate::datum_wise::rewards::{Bits, has, insert, words};
use crate::datum_wise::train::{Fitted, Learner, SoFar};
use crate::datum_wise::walk::Walk;

/// Scratch for the rollouts of a row.
pub(crate) struct Rollouts<'a> {
    learner: &'a Learner<'a>,
    mixture: &'a [(f64, Fitted)],
    row: usize,
    /// For each policy of the mixture: the change of the scores by each unit, once it has been asked of this row.
    changes: Vec<Vec<f64>>,
    memos: Vec<Memo>,
    path: Vec<(usize, f64)>,
    before: Walk,
    walk: Walk,
    known: Bits,
}

impl<'a> Rollouts<'a> {
    pub fn new(learner: &'a Learner<'a>, so_far: SoFar<'a>) -> Self {
        let mixture = so_far.mixture;
        let policies = mixture.len();
        let memos = (0..policies).map(|_| Memo::new(words(learner.rewards.units()))).collect();
        let changes = vec![Vec::new(); policies];
        let (before, walk) = (Walk::default(), Walk::default());
        Self { learner, mixture, row: 0, changes, memos, path: Vec::new(), before, walk, known: Vec::new() }
    }

    /// The rollouts that follow are of this row.
    pub fn of_row(&mut self, row: usize) {
        self.row = row;
        self.changes.iter_mut().for_each(Vec::clear);
        self.memos.iter_mut().for_each(Memo::clear);
    }

    /// Adds to `returns` what is earned from a state on, for each unit that may be asked for there: without its price, following policies of the mixture. A state
    /// that stands for several is followed as often, by policies spread over the mixture; all units by the same, so that what differs is the unit's.
    pub fn after_each_unit(&mut self, known: &[u64], weight: f64, random: &mut Random, returns: &mut Vec<f64>) {
        let (rewards, mixture) = (self.learner.rewards, self.mixture);
        let count = known.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let may = |unit: usize| !has(known, unit) && rewards.has_budget(count) && rewards.price(unit, known).is_some();
        let first = returns.len();
        returns.extend((0..rewards.units()).map(|unit| if may(unit) { 0.0 } else { f64::NAN }));
        let returns = &mut returns[first..];
        if mixture.is_empty() {
            for (unit, value) in returns.iter_mut().enumerate().filter(|(_, value)| !value.is_nan()) {
                self.known.clear();
                self.known.extend(known);
                insert(&mut self.known, unit);
                *value = self.at_random(count + 1, random);
            }
            return;
        }
        let times = (weight.round() as usize).max(1);
        let start = random.uniform();
        let mut so_far = 0.0;
        for (policy, (share, _)) in mixture.iter().enumerate() {
            // Of the points start, start + 1, … below `times`, those in this policy's part.
            let points = |share: f64| (share * times as f64 - start).ceil().max(0.0);
            let until = if policy + 1 == mixture.len() { 1.0 } else { so_far + share };
            let part = (points(until) - points(so_far)) / times as f64;
            so_far = until;
            if part > 0.0 {
                self.follow_each(known, policy, part, returns);
            }
        }
    }

    fn follow_each(&mut self, known: &[u64], policy: usize, part: f64, returns: &mut [f64]) {
        let learner = self.learner;
        let weights = self.mixture[policy].1.of_fold(learner.folds[self.row]);
        if self.changes[policy].is_empty() {
            learner.write_changes(weights, self.row, &mut self.changes[policy]);
        }
        self.before.start(learner.rewards, &weights.start);
        for unit in (0..learner.rewards.units()).filter(|unit| has(known, *unit)) {
            let change = &self.changes[policy][unit * weights.actions..][..weights.actions];
            self.before.learn(learner.rewards, unit, std::iter::once((1.0, change)));
        }
        for (unit, value) in returns.iter_mut().enumerate().filter(|(_, value)| !value.is_nan()) {
            *value += part * self.follow(unit, policy, weights.actions);
        }
    }

    /// Rollouts of one row and one policy meet again and again: each state is decided once.
    fn follow(&mut self, first: usize, policy: usize, actions: usize) -> f64 {
        let Learner { sample, rewards, .. } = self.learner;
        let Self { changes, memos, path, before, walk, .. } = self;
        let memo = &mut memos[policy];
        let change = |unit: usize| std::iter::once((1.0, &changes[policy][unit * actions..][..actions]));
        path.clear();
        self.known.clear();
        self.known.extend(&before.known);
        insert(&mut self.known, first);
        let slot = match memo.find(&self.known) {
            Ok(value) => return value,
            Err(slot) => slot,
        };
        walk.copy(before);
        walk.learn(rewards, first, change(first));
        let mut slot = slot;
        let mut earned = loop {
            match walk.best(rewards).0 {
                Action::Predict(class) => {
                    path.push((slot, 0.0));
                    break -rewards.mistake(class, sample.classes[self.row]);
                }
                Action::Ask(unit) => {
                    path.push((slot, rewards.price(unit, &walk.known).expect("only what may be asked for is")));
                    walk.learn(rewards, unit, change(unit));
                }
            }
            slot = match memo.find(&walk.known) {
                Ok(value) => break value,
                Err(slot) => slot,
            };
        };
        for (slot, price) in path.iter().rev() {
            earned -= price;
            memo.set(*slot, earned);
        }
        earned
    }

    /// The first policy: any action that is allowed.
    fn at_random(&mut self, mut count: usize, random: &mut Random) -> f64 {
        let Learner { sample, rewards, .. } = self.learner;
        let known = &mut self.known;
        let units = rewards.units();
        let mut earned = 0.0;
        loop {
            let asks = if rewards.has_budget(count) { units - count } else { 0 };
            if random.below(rewards.classes + asks) < rewards.classes {
                return earned - rewards.mistake(random.below(rewards.classes), sample.classes[self.row]);
            }
            // Drawn until one is not known yet. One that may not be asked for here is an empty step, of which a row takes only so many.
            let unit = (0..).map(|_| random.below(units)).find(|unit| !has(known, *unit)).expect("some are not known");
            count += 1;
            if let Some(price) = rewards.price(unit, known) {
                earned -= price;
                insert(known, unit);
            }
        }
    }
}
