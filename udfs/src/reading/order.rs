//! Rows in an order of their content: neither files, partitions nor threads show in what is learnt from them.
//!
//! The order is that of a hash of a row's values, so that it is a shuffled one as well. Columns are told apart by their names and their
//! hashes are added up, so that the order of columns does not matter. Rows of equal values are the same row for whoever learns from
//! them. Weights only order rows that are otherwise equal: a row of weight 2 stands where the row written twice would.

use rayon::prelude::*;

use crate::run::hash;

/// Rows hashed at a time, whose hashes stay in cache from column to column.
const CHUNK: usize = 4096;

/// A column whose values are hashed.
pub(crate) enum Content<'a> {
    Numbers(&'a [f64]),
    /// Codes, and the hash of each level's name.
    Levels(&'a [u32], Vec<u64>),
}

/// 128 bits: two different rows of the same hash will not be met.
pub(crate) type Hash = [u64; 2];

/// `rows` put into the order of their content.
pub(crate) fn by_content(rows: &mut [usize], columns: &[(&str, Content<'_>)], weights: &[f64]) {
    let seeds: Vec<u64> = columns.iter().map(|(name, _)| mix(hash(name))).collect();
    let mut keys: Vec<(Hash, u64, usize)> =
        rows.iter().map(|row| ([0; 2], weights.get(*row).map_or(0, |weight| weight.to_bits()), *row)).collect();
    keys.par_chunks_mut(CHUNK).for_each(|keys| {
        for ((_, content), seed) in columns.iter().zip(&seeds) {
            match content {
                Content::Numbers(values) => keys.iter_mut().for_each(|(hash, _, row)| add(hash, number(values[*row]), *seed)),
                Content::Levels(codes, names) => keys.iter_mut().for_each(|(hash, _, row)| {
                    add(hash, names.get(codes[*row] as usize).copied().unwrap_or(MISSING), *seed);
                }),
            }
        }
    });
    keys.par_sort_unstable();
    rows.iter_mut().zip(keys).for_each(|(row, (_, _, at))| *row = at);
}

/// Bytes that ordering so many rows takes.
pub(crate) fn bytes_for(rows: usize) -> usize {
    rows * size_of::<(Hash, u64, usize)>()
}

/// What stands for no value.
pub(crate) const MISSING: u64 = 0x6d69_7373_696e_6721;

pub(super) fn number(x: f64) -> u64 {
    if crate::reading::block::is_value(x) { x.to_bits() } else { MISSING }
}

pub(super) fn add(hash: &mut Hash, value: u64, seed: u64) {
    let first = mix(value ^ seed);
    hash[0] = hash[0].wrapping_add(first);
    hash[1] = hash[1].wrapping_add(mix(first ^ 0x9e37_79b9_7f4a_7c15));
}

/// Every bit of the result depends on every bit of the argument (the finish of SplitMix64).
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    fn order(columns: &[(&str, &[f64])], weights: &[f64]) -> Vec<usize> {
        let columns: Vec<_> = columns.iter().map(|(name, values)| (*name, Content::Numbers(values))).collect();
        let Content::Numbers(values) = &columns[0].1 else { unreachable!("all are numbers") };
        let mut rows: Vec<usize> = (0..values.len()).collect();
        by_content(&mut rows, &columns, weights);
        rows
    }

    #[test]
    fn neither_the_order_of_rows_nor_that_of_columns_shows() {
        let mut random = Run::new(1).random("order", 0);
        let x: Vec<f64> = (0..10_000).map(|_| random.below(50) as f64).collect();
        let y: Vec<f64> = (0..10_000).map(|_| random.normal()).collect();
        let rows: Vec<(u64, u64)> =
            order(&[("x", &x), ("y", &y)], &[]).iter().map(|r| (x[*r].to_bits(), y[*r].to_bits())).collect();
        let mut shuffled: Vec<usize> = (0..10_000).collect();
        random.shuffle(&mut shuffled);
        let take = |values: &[f64]| -> Vec<f64> { shuffled.iter().map(|row| values[*row]).collect() };
        let (x, y) = (take(&x), take(&y));
        let again: Vec<(u64, u64)> =
            order(&[("y", &y), ("x", &x)], &[]).iter().map(|r| (x[*r].to_bits(), y[*r].to_bits())).collect();
        assert_eq!(rows, again);
    }

    #[test]
    fn a_row_with_weight_stands_where_its_repetition_would() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0];
        let weighted: Vec<f64> = order(&[("x", &x)], &[1.0, 2.0, 1.0, 1.0, 1.0]).iter().map(|row| x[*row]).collect();
        let twice = [1.0, 2.0, 2.0, 3.0, 4.0, 5.0];
        let mut repeated: Vec<f64> = order(&[("x", &twice)], &[]).iter().map(|row| twice[*row]).collect();
        repeated.dedup();
        assert_eq!(weighted, repeated);
    }
}
