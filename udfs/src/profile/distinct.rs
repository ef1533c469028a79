//! How many different values there are, without keeping them.

use std::collections::BTreeSet;

/// Hashes that are kept. The estimate is off by about one in the root of it.
const KEPT: usize = 2048;

/// The smallest hashes of the values: exact as long as there are few, and afterwards an estimate from how densely they lie. Of any order of the rows they are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Distinct {
    smallest: BTreeSet<u64>,
}

impl Distinct {
    pub fn add(&mut self, hash: u64) {
        if self.smallest.len() < KEPT {
            self.smallest.insert(hash);
        } else if self.smallest.last().is_some_and(|last| hash < *last) && self.smallest.insert(hash) {
            self.smallest.pop_last();
        }
    }

    pub fn merge(&mut self, other: &Self) {
        other.smallest.iter().for_each(|hash| self.add(*hash));
    }

    pub fn estimate(&self) -> u64 {
        match self.smallest.last() {
            Some(last) if self.smallest.len() == KEPT => {
                let share = (*last as f64 + 1.0) / 2f64.powi(64);
                ((KEPT - 1) as f64 / share).round() as u64
            }
            _ => self.smallest.len() as u64,
        }
    }

    pub fn bytes(&self) -> usize {
        2 * self.smallest.len() * size_of::<u64>()
    }
}

/// A hash that is as good in all its bits.
pub(crate) fn mixed(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_counted_and_many_estimated() {
        for count in [0u64, 1, 2000, 100_000, 3_000_000] {
            let mut parts = [Distinct::default(), Distinct::default()];
            (0..count).for_each(|value| parts[(value % 2) as usize].add(mixed(value + 1)));
            let [mut first, second] = parts;
            first.merge(&second);
            let found = first.estimate() as f64;
            let error = if count <= 2000 { 0.0 } else { 0.06 * count as f64 };
            assert!((found - count as f64).abs() <= error, "{count}: {found}");
        }
    }
}
