//! The values of texts in moments: told apart while they are few, in buckets by their hash when they are not.
//!
//! All texts together may have so many columns. When they would have more, the buckets are halved until they have not, and the texts with more values than there are
//! buckets are the ones to lose: what is left at the end follows from the values alone, in whatever order they came.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Column, Moments, Written};
use crate::reading::block::{Block, NO_LEVEL};
use crate::reading::levels::{BUCKETS_MAX, Distinct, bucket, fewer, hash_of};
use crate::reading::plan::Plan;
use crate::settings::common::Levels;

/// Columns that the values of all texts may have together while rows are read; not counting what `max_levels` asks for.
const TOGETHER: usize = 2048;

/// The fewest buckets from which the most frequent can be taken.
fn fewest(plan: &Plan) -> usize {
    plan.max_levels.min(BUCKETS_MAX).next_power_of_two()
}

/// Buckets of a text that is the first to have too many values.
pub(super) fn buckets_at_first(plan: &Plan) -> usize {
    match plan.levels {
        Levels::Top => TOGETHER.max(fewest(plan)),
        Levels::Hash | Levels::Error => plan.max_levels.min(BUCKETS_MAX),
    }
}

impl Moments {
    /// The same as if no more than so many values of a text were to be told apart, so that another number needs no second reading. `None`: it
    /// does, because values went into buckets together that would not have.
    pub fn with_max_levels(&self, max_levels: usize) -> Option<Self> {
        let plan = Plan { max_levels, ..self.plan().clone() };
        let is_halved = self.buckets < buckets_at_first(self.plan());
        let is_same = max_levels == self.plan().max_levels;
        let kept_all = plan.levels == Levels::Top && !is_halved && buckets_at_first(&plan) == buckets_at_first(self.plan());
        let has_texts = self.places.is_text.contains(&true);
        (is_same || kept_all || !has_texts).then(|| Self { plan: Arc::new(Written::from(plan)), ..self.clone() })
    }

    /// Makes columns for the values that texts have in the rows that count, and says which codes occur.
    pub(super) fn learn(&mut self, features: &[Block<'_>]) -> Vec<Vec<bool>> {
        let (mut all, mut names_of) = (Vec::with_capacity(features.len()), Vec::new());
        for (feature, block) in features.iter().enumerate() {
            let Block::Levels { codes, names } = block else {
                all.push(Vec::new());
                continue;
            };
            let (mut used, mut missing) = (vec![false; names.len()], 0);
            for row in &self.scratch.intake.kept {
                match codes[*row] {
                    NO_LEVEL => missing += 1,
                    code => used[code as usize] = true,
                }
            }
            self.seen.missing[feature] += missing;
            if missing > 0 {
                self.place(Column::Null(feature));
            }
            let names = names.iter().zip(&used).filter(|(_, used)| **used).map(|(name, _)| *name);
            names_of.push((feature, names.collect::<Vec<&str>>()));
            all.push(used);
        }
        self.add_values(&names_of);
        self.halve();
        all
    }

    /// The column of a value that was learnt.
    pub(super) fn value(&self, feature: usize, name: &str) -> usize {
        let column = match &self.hashed[feature] {
            None => self.places.levels[feature].get(name),
            Some(_) => self.places.buckets[feature].get(&bucket(name, self.buckets)),
        };
        *column.expect("values are learnt before they are looked for")
    }

    /// Makes columns for the values of texts. All texts that have become too many are dealt out to buckets together: each time, all products are written anew.
    fn add_values(&mut self, names_of: &[(usize, Vec<&str>)]) {
        let is_many = |(feature, names): &&(usize, Vec<&str>)| {
            let known = &self.places.levels[*feature];
            let new: BTreeSet<&str> = names.iter().copied().filter(|name| !known.contains_key(*name)).collect();
            self.hashed[*feature].is_none() && known.len() + new.len() > self.apart_max()
        };
        let many: Vec<usize> = names_of.iter().filter(is_many).map(|(feature, _)| *feature).collect();
        if !many.is_empty() {
            self.hash_values(&many, self.buckets);
        }
        for (feature, names) in names_of {
            for name in names {
                self.add_value(*feature, name);
            }
        }
    }

    fn add_value(&mut self, feature: usize, name: &str) {
        match &mut self.hashed[feature] {
            Some(distinct) => {
                distinct.insert(hash_of(name));
                self.place(Column::Bucket(feature, bucket(name, self.buckets)));
            }
            None if self.places.levels[feature].contains_key(name) => {}
            None => {
                self.place(Column::Level(feature, name.to_string()));
            }
        }
    }

    /// Most values of a text that are told apart.
    fn apart_max(&self) -> usize {
        if self.plan().levels == Levels::Top { self.buckets } else { self.plan().max_levels }
    }

    /// Lets the values of some texts be dealt out to buckets, and all buckets be as many as `buckets` says.
    pub(super) fn hash_values(&mut self, features: &[usize], buckets: usize) {
        for feature in features {
            let mut distinct = Distinct::default();
            self.places.levels[*feature].keys().for_each(|name| distinct.insert(hash_of(name)));
            self.hashed[*feature].get_or_insert(distinct);
        }
        let before = std::mem::replace(&mut self.buckets, buckets);
        let is_hashed: Vec<bool> = self.hashed.iter().map(Option::is_some).collect();
        self.regroup(|column| {
            Some(match column {
                Column::Level(feature, name) if is_hashed[*feature] => {
                    Cow::Owned(Column::Bucket(*feature, bucket(name, buckets)))
                }
                Column::Bucket(feature, at) => Cow::Owned(Column::Bucket(*feature, fewer(*at, before, buckets))),
                column => Cow::Borrowed(column),
            })
        });
    }

    /// Halves the buckets until the texts have no more columns than they may.
    fn halve(&mut self) {
        let values: Vec<usize> = self.places.levels.iter().map(|levels| levels.len()).collect();
        let buckets = self.buckets_for(&values);
        if buckets < self.buckets {
            let many: Vec<usize> = (0..values.len()).filter(|feature| values[*feature] > buckets).collect();
            self.hash_values(&many, buckets);
        }
    }

    /// As many buckets as there may be if the texts have so many values. Those that are in buckets have more than there are buckets now.
    fn buckets_for(&self, values: &[usize]) -> usize {
        let mut buckets = self.buckets;
        if self.plan().levels != Levels::Top {
            return buckets;
        }
        let columns = |buckets: usize| -> usize {
            let of =
                |(hashed, values): (&Option<Distinct>, &usize)| if hashed.is_some() { buckets } else { buckets.min(*values) };
            self.hashed.iter().zip(values).map(of).sum()
        };
        while buckets > fewest(self.plan()) && columns(buckets) > TOGETHER {
            buckets /= 2;
        }
        buckets
    }

    /// Makes this and another agree about which texts are in buckets, and about how many of them; returns the other as it then is.
    pub(super) fn agree<'a>(&mut self, other: &'a Moments) -> Cow<'a, Moments> {
        self.halve_to(other.buckets);
        let mut values: Vec<usize> = Vec::new();
        for (feature, theirs) in other.places.levels.iter().enumerate() {
            let mine = &self.places.levels[feature];
            values.push(mine.len() + theirs.keys().filter(|name| !mine.contains_key(*name)).count());
        }
        let is_many = |this: &Self, feature: &usize| {
            this.hashed[*feature].is_some() || other.hashed[*feature].is_some() || values[*feature] > this.apart_max()
        };
        let many = |this: &Self| -> Vec<usize> { (0..values.len()).filter(|feature| is_many(this, feature)).collect() };
        let first = many(self);
        if !first.is_empty() {
            self.hash_values(&first, self.buckets);
        }
        let buckets = self.buckets_for(&values);
        if buckets < self.buckets {
            self.halve_to(buckets);
            self.hash_values(&many(self), buckets);
        }
        let hashed: Vec<usize> = (0..values.len()).filter(|feature| self.hashed[*feature].is_some()).collect();
        let agrees = other.buckets == self.buckets && hashed.iter().all(|feature| other.hashed[*feature].is_some());
        let other = match agrees || hashed.is_empty() {
            true => Cow::Borrowed(other),
            false => {
                let mut other = other.clone();
                other.hash_values(&hashed, self.buckets);
                Cow::Owned(other)
            }
        };
        for (mine, theirs) in self.hashed.iter_mut().zip(&other.hashed) {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                theirs.hashes().for_each(|hash| mine.insert(hash));
            }
        }
        other
    }

    fn halve_to(&mut self, buckets: usize) {
        if buckets < self.buckets {
            self.hash_values(&[], buckets);
        }
    }
}
