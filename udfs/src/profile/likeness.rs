//! Columns that say nearly the same, told by some rows that are kept: those of the smallest hashes of their content, which neither order nor partitions change.

use std::collections::BTreeMap;

use crate::reading::block::{Block, is_value};
use crate::reading::plan::Plan;

/// Rows that are kept. Two columns that agree in so many agree in all but a few.
const ROWS: usize = 1024;
/// Multiplications that comparing all columns may take: of wide tables fewer rows are compared.
const WORK_MAX: usize = 1 << 31;
/// Rows that tell anything, and the squared correlation from which on two columns say the same.
const ROWS_MIN: usize = 30;
const SAME: f64 = 0.998;

/// Some rows of the columns that are numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Likeness {
    kept: BTreeMap<u64, Vec<f64>>,
}

impl Likeness {
    pub fn bytes(&self) -> usize {
        self.kept.values().map(|row| 64 + row.len() * size_of::<f64>()).sum()
    }

    /// Looks at rows from `start` on, given a hash of each.
    pub fn push(&mut self, hashes: &[u64], start: usize, features: &[Block<'_>]) {
        for (row, hash) in hashes.iter().enumerate() {
            let is_early = self.kept.len() < ROWS || self.kept.last_key_value().is_some_and(|(last, _)| hash < last);
            if !is_early || self.kept.contains_key(hash) {
                continue;
            }
            let value = |block: &Block<'_>| match block {
                Block::Numbers(numbers) => {
                    let mut value = [0.0];
                    numbers.fill(start + row, &mut value);
                    Some(value[0])
                }
                Block::Levels { .. } => None,
            };
            self.kept.insert(*hash, features.iter().filter_map(value).collect());
            if self.kept.len() > ROWS {
                self.kept.pop_last();
            }
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.kept.extend(other.kept.iter().map(|(key, row)| (*key, row.clone())));
        while self.kept.len() > ROWS {
            self.kept.pop_last();
        }
    }

    /// For each column the first of those before it that says nearly the same, and whether it does so exactly, in other units.
    pub fn found(&self, plan: &Plan) -> Vec<Option<(usize, bool)>> {
        let numbers: Vec<usize> = (0..plan.features.len()).filter(|at| !plan.features[*at].is_text).collect();
        let rows = ROWS.min(WORK_MAX / (numbers.len() * numbers.len()).max(1));
        let mut found = vec![None; plan.features.len()];
        if rows < ROWS_MIN {
            return found;
        }
        let column = |at: usize| self.kept.values().take(rows).map(|row| row[at]).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..numbers.len()).map(column).collect();
        for at in 0..numbers.len() {
            let like = |other: &usize| Some((*other, likeness(&columns[at], &columns[*other]).filter(|same| *same >= SAME)?));
            let first = (0..at).find_map(|other| like(&other));
            found[numbers[at]] = first.map(|(other, same)| (numbers[other], same >= 1.0 - 1e-9));
        }
        found
    }
}

/// The squared correlation of two columns in the rows that have both.
fn likeness(a: &[f64], b: &[f64]) -> Option<f64> {
    let both: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).filter(|(a, b)| is_value(*a) && is_value(*b)).collect();
    if both.len() < ROWS_MIN {
        return None;
    }
    let n = both.len() as f64;
    let (a, b) = (both.iter().map(|(a, _)| a).sum::<f64>() / n, both.iter().map(|(_, b)| b).sum::<f64>() / n);
    let (mut aa, mut ab, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in both {
        aa += (x - a) * (x - a);
        ab += (x - a) * (y - b);
        bb += (y - b) * (y - b);
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / aa * (ab / bb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_by_hand() {
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let scaled: Vec<f64> = x.iter().map(|x| 7.0 - 0.5 * x).collect();
        assert!((likeness(&x, &scaled).unwrap() - 1.0).abs() < 1e-12);
        let holes: Vec<f64> = x.iter().map(|x| if *x < 20.0 { f64::NAN } else { *x }).collect();
        assert_eq!((likeness(&x, &holes), likeness(&x, &[1.0; 40])), (None, None), "too few rows, and a constant");
    }
}
