//! The values of a text column: which of them are told apart, and what becomes of the others.
//!
//! Whatever is decided depends on which values there are and on how much each weighs, and never on the order in which they came. Values are
//! told apart as long as they are few. When they become too many, each goes to a bucket that its hash names: sums of values add up
//! to the sums of their buckets, so that nothing is lost by deciding late, and the frequent values still stand out among the buckets.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::reading::order::mix;
use crate::reading::plan::Plan;
use crate::run::hash;
use crate::settings::common::Levels;

/// Bits of a text's hash that name its bucket.
const BITS: u32 = 20;
/// Most buckets.
pub(crate) const BUCKETS_MAX: usize = 1 << BITS;

pub(crate) fn hash_of(text: &str) -> u64 {
    mix(hash(text))
}

/// The bucket of a text, out of so many.
pub(crate) fn bucket(text: &str, of: usize) -> u32 {
    fewer((hash_of(text) >> (64 - BITS)) as u32, BUCKETS_MAX, of)
}

/// The bucket that a bucket is part of when there are fewer: exact where `from` is [`BUCKETS_MAX`], or both are powers of two.
pub(crate) fn fewer(bucket: u32, from: usize, of: usize) -> u32 {
    (u64::from(bucket) * of.min(BUCKETS_MAX) as u64 / from as u64) as u32
}

/// How many different texts there were: exact while they are few, later an estimate from the smallest hashes, which is the same in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Distinct(BTreeSet<u64>);

/// Hashes that are kept: the estimate is right within about 4 %.
pub(crate) const SMALLEST: usize = 512;

impl Distinct {
    pub fn insert(&mut self, hash: u64) {
        if self.0.len() < SMALLEST || self.0.last().is_some_and(|largest| hash < *largest) {
            self.0.insert(hash);
            if self.0.len() > SMALLEST {
                self.0.pop_last();
            }
        }
    }

    pub fn estimate(&self) -> u64 {
        match self.0.last() {
            Some(largest) if self.0.len() == SMALLEST => {
                ((SMALLEST - 1) as f64 / (*largest as f64 / (u64::MAX as f64)).max(f64::MIN_POSITIVE)) as u64
            }
            _ => self.0.len() as u64,
        }
    }

    pub fn bytes(&self) -> usize {
        self.0.len() * 2 * size_of::<u64>()
    }

    pub fn hashes(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.0.iter().copied()
    }
}

/// What was seen of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSeen {
    /// Different values; NULL is none.
    pub values: u64,
    /// Whether that is an estimate.
    pub is_estimate: bool,
    /// Rows with a value.
    pub known: u64,
    /// How many values, or buckets of values, have a column of their own. The others have one together.
    pub told_apart: u64,
    /// Whether it is left out, because there are fewer than two rows a value.
    pub is_left_out: bool,
}

impl TextSeen {
    /// Why a text is left out, if it is.
    pub(crate) fn why_left_out(&self) -> Option<String> {
        self.is_left_out.then(|| format!("nearly all values differ: {} in {} rows", self.count(), self.known))
    }

    /// The number of values in words.
    pub(crate) fn count(&self) -> String {
        let about = if self.is_estimate { "about " } else { "" };
        format!("{about}{}", self.values)
    }
}

/// What becomes of the values of a text.
#[derive(Debug, PartialEq)]
pub(crate) enum Fate {
    /// Each has a column.
    Apart,
    /// These have a column each, and the others one together.
    Top(Vec<usize>),
    /// They are dealt out to buckets.
    Hashed,
    /// They have none.
    LeftOut,
}

/// Decides about the values of a text by how many there are, what the rows with a value weigh, and what each value weighs, in an order of the values.
pub(crate) fn fate(plan: &Plan, values: u64, known: f64, weights: &[f64]) -> Fate {
    if values <= plan.max_levels as u64 {
        return Fate::Apart;
    }
    if plan.levels == Levels::Error || 2.0 * values as f64 > known {
        return Fate::LeftOut;
    }
    if plan.levels == Levels::Hash {
        return Fate::Hashed;
    }
    if weights.len() <= plan.max_levels {
        return Fate::Apart;
    }
    let mut heaviest: Vec<usize> = (0..weights.len()).collect();
    heaviest.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
    heaviest.truncate(plan.max_levels);
    heaviest.sort_unstable();
    Fate::Top(heaviest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    #[test]
    fn distinct_texts_are_counted_in_any_order() {
        for values in [0, 1, 500, 512, 700, 100_000] {
            let (mut forward, mut backward) = (Distinct::default(), Distinct::default());
            (0..values).for_each(|at| forward.insert(hash_of(&format!("value {at}"))));
            (0..values).rev().for_each(|at| backward.insert(hash_of(&format!("value {at}"))));
            backward.insert(hash_of("value 0"));
            if values > 0 {
                assert_eq!(forward, backward);
            }
            let error = (forward.estimate() as f64 - values as f64).abs();
            assert!(error <= if values < SMALLEST { 0.0 } else { 0.12 * values as f64 }, "{values}: {}", forward.estimate());
        }
    }

    #[test]
    fn halving_the_buckets_joins_neighbours() {
        for text in ["", "a", "N725MQ", "other"] {
            for of in [2usize, 64, 2048] {
                assert_eq!(bucket(text, of) / 2, bucket(text, of / 2));
                assert_eq!(fewer(bucket(text, of), of, of / 2), bucket(text, of / 2));
            }
            assert!((bucket(text, 50) as usize) < 50);
        }
    }

    #[test]
    fn the_heaviest_are_kept_and_of_equals_the_first() {
        let mut table = Table::new();
        table.common.max_levels = 2;
        let plan = table.plan();
        assert_eq!(fate(&plan, 2, 2.0, &[1.0, 1.0]), Fate::Apart);
        assert_eq!(fate(&plan, 4, 20.0, &[2.0, 5.0, 2.0, 11.0]), Fate::Top(vec![1, 3]));
        assert_eq!(fate(&plan, 3, 9.0, &[3.0, 3.0, 3.0]), Fate::Top(vec![0, 1]));
        assert_eq!(fate(&plan, 3, 5.0, &[2.0, 2.0, 1.0]), Fate::LeftOut, "fewer than two rows a value");
    }
}
