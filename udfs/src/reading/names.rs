//! The names of a text's values while rows are gathered: a code for each.

use std::collections::BTreeMap;

use crate::reading::block::NO_LEVEL;
use crate::reading::coding::Coding;
use crate::reading::levels::{BUCKETS_MAX, Distinct, SMALLEST, bucket, fewer, hash_of};
use crate::reading::order::mix;
use crate::reading::pieces::Pieces;
use crate::run::hash;

/// Names that are told apart. Those of an id would take more memory than its rows, for nothing.
pub(crate) const APART_MAX: usize = 1 << 17;

/// The codes of names. When there are too many, a code is a bucket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    known: BTreeMap<String, u32>,
    hashed: Option<Distinct>,
    /// Whether there is no end of names that are told apart.
    is_endless: bool,
    bytes: usize,
}

/// Bytes of a name beside its letters.
const NAME_BYTES: usize = 64;

impl Names {
    /// Names that are always told apart: somebody else watches their number.
    pub fn endless() -> Self {
        Self { is_endless: true, ..Self::default() }
    }

    /// Different names, as long as they are told apart.
    pub fn len(&self) -> usize {
        if self.hashed.is_some() { BUCKETS_MAX } else { self.known.len() }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The names in order, with their codes.
    pub fn known(&self) -> &BTreeMap<String, u32> {
        &self.known
    }

    /// Adds values to `codes`, which these names are of.
    pub fn push(&mut self, codes: &mut Pieces<u32>, new: &[u32], names: &[&str]) {
        if self.hashed.is_none() {
            names.iter().for_each(|name| self.learn(name));
            self.hash_if_many(codes);
        }
        let map: Vec<u32> = names.iter().map(|name| self.code(name)).collect();
        codes.extend(new.iter().map(|code| map.get(*code as usize).copied().unwrap_or(NO_LEVEL)));
    }

    /// Adds the values of another column to `codes`, which these names are of.
    pub fn append(&mut self, codes: &mut Pieces<u32>, mut theirs: Pieces<u32>, mut other: Names) {
        match (&self.hashed, &other.hashed) {
            (None, None) => {
                let mut names = vec![""; other.known.len()];
                other.known.iter().for_each(|(name, code)| names[*code as usize] = name);
                theirs.join();
                return self.push(codes, theirs.values(), &names);
            }
            (None, Some(_)) => self.hash(codes),
            (Some(_), None) => other.hash(&mut theirs),
            (Some(_), Some(_)) => {}
        }
        if let (Some(mine), Some(theirs)) = (&mut self.hashed, &other.hashed) {
            theirs.hashes().for_each(|hash| mine.insert(hash));
        }
        codes.append(theirs);
    }

    fn learn(&mut self, name: &str) {
        if !self.known.contains_key(name) {
            self.known.insert(name.to_string(), self.known.len() as u32);
            self.bytes += name.len() + NAME_BYTES;
        }
    }

    fn code(&mut self, name: &str) -> u32 {
        match &mut self.hashed {
            None => self.known[name],
            Some(distinct) => {
                distinct.insert(hash_of(name));
                bucket(name, BUCKETS_MAX)
            }
        }
    }

    fn hash_if_many(&mut self, codes: &mut Pieces<u32>) {
        if self.known.len() > APART_MAX && !self.is_endless {
            self.hash(codes);
        }
    }

    fn hash(&mut self, codes: &mut Pieces<u32>) {
        let mut distinct = Distinct::default();
        let mut buckets = vec![0; self.known.len()];
        for (name, code) in std::mem::take(&mut self.known) {
            distinct.insert(hash_of(&name));
            buckets[code as usize] = bucket(&name, BUCKETS_MAX);
        }
        codes.iter_mut().filter(|code| **code != NO_LEVEL).for_each(|code| *code = buckets[*code as usize]);
        (self.hashed, self.bytes) = (Some(distinct), 0);
    }

    /// A hash for each code, which depends on the name and not on the code.
    pub fn hashes(&self) -> Vec<u64> {
        if self.hashed.is_some() {
            return (0..BUCKETS_MAX as u64).map(mix).collect();
        }
        let mut hashes = vec![0; self.known.len()];
        self.known.iter().for_each(|(name, code)| hashes[*code as usize] = hash(name));
        hashes
    }

    /// Codes in the order of their names, or of the buckets that they are.
    pub fn ordered(&self) -> Vec<u32> {
        if self.hashed.is_some() { (0..BUCKETS_MAX as u32).collect() } else { self.known.values().copied().collect() }
    }

    /// How many different values there are, if that many codes are in use, and whether that is an estimate.
    pub fn values(&self, used: usize) -> (u64, bool) {
        match &self.hashed {
            None => (used as u64, false),
            Some(distinct) => (distinct.estimate(), distinct.hashes().len() == SMALLEST),
        }
    }

    /// How codes in order are coded.
    pub fn codings(&self, codes: &[u32]) -> Vec<Coding> {
        if self.hashed.is_some() {
            return codes.iter().map(|bucket| Coding::Bucket { bucket: *bucket, of: BUCKETS_MAX as u32 }).collect();
        }
        let names = self.known.iter().filter(|(_, code)| codes.contains(code));
        names.map(|(name, _)| Coding::Level(name.clone())).collect()
    }

    /// The bucket, out of so many, of each code.
    pub fn buckets(&self, of: usize) -> Vec<u32> {
        if self.hashed.is_some() {
            return (0..BUCKETS_MAX as u32).map(|bucket| fewer(bucket, BUCKETS_MAX, of)).collect();
        }
        let mut buckets = vec![0; self.known.len()];
        self.known.iter().for_each(|(name, code)| buckets[*code as usize] = bucket(name, of));
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two columns, each with its own names, put together in either order: names that are too many are in the same buckets.
    #[test]
    fn too_many_names_are_in_the_same_buckets_in_any_order() {
        let texts: Vec<String> = (0..APART_MAX + 100).map(|at| format!("{at}")).collect();
        let column = |range: std::ops::Range<usize>| {
            let (mut names, mut codes) = (Names::default(), Pieces::default());
            for part in texts[range].chunks(5000) {
                let part: Vec<&str> = part.iter().map(String::as_str).collect();
                names.push(&mut codes, &(0..part.len() as u32).collect::<Vec<_>>(), &part);
            }
            codes.join();
            (names, codes)
        };
        let half = APART_MAX / 2;
        let (whole, codes) = column(0..texts.len());
        let ((mut a, mut a_codes), (b, b_codes)) = (column(0..half), column(half..texts.len()));
        assert_eq!((a.len(), whole.len()), (half, BUCKETS_MAX));
        a.append(&mut a_codes, b_codes, b);
        a_codes.join();
        assert_eq!((a_codes.values(), a.values(0)), (codes.values(), whole.values(0)));
        assert_eq!(codes.values(), texts.iter().map(|text| bucket(text, BUCKETS_MAX)).collect::<Vec<_>>());
        assert!(whole.values(0).0.abs_diff(texts.len() as u64) < 15_000 && whole.bytes() == 0);
    }

    #[test]
    fn a_name_has_one_code() {
        let (mut names, mut codes) = (Names::default(), Pieces::default());
        names.push(&mut codes, &[0, 1, NO_LEVEL, 2], &["b", "a", "b"]);
        names.push(&mut codes, &[0], &["a"]);
        assert_eq!(codes.into_values(), [0, 1, NO_LEVEL, 0, 1]);
        assert_eq!(names.codings(&[1, 0]), [Coding::Level("a".into()), Coding::Level("b".into())]);
    }
}
