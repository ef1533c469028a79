use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::{Problem, Result, Rows, Run};

/// The rows as training sees them: candidates only, each column scaled to unit variance, and everything in an order that the
/// table's own does not show in. Units go by name, equal rows are one row of their joint weight, and rows go by value: random
/// numbers then belong to a row and a unit and not to their places.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Each unit's columns.
    pub units: Vec<Range<usize>>,
    /// The unit of the problem that each stands for.
    pub unit_of: Vec<usize>,
    /// The design column that each column is, and what it was multiplied by.
    pub columns: Vec<(usize, f64)>,
    /// `values[row * columns + column]`
    pub values: Vec<f64>,
    pub classes: Vec<usize>,
    pub weights: Vec<f64>,
    /// Whether a row stands for several.
    pub is_repeated: Vec<bool>,
}

impl Sample {
    pub fn rows(&self) -> usize {
        self.classes.len()
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns.len()..][..self.columns.len()]
    }

    /// Bytes of so many rows: their values, and some numbers of each while they are put in order and joined.
    pub fn bytes_for(rows: usize, columns: usize) -> usize {
        rows * (columns + 8) * size_of::<f64>()
    }

    pub fn new(problem: &Problem, rows: &Rows, candidates: &[usize], run: &Run) -> Result<Self> {
        let mut unit_of = candidates.to_vec();
        unit_of.sort_by(|a, b| problem.units[*a].name.cmp(&problem.units[*b].name));
        let (mut units, mut design) = (Vec::new(), Vec::new());
        for unit in &unit_of {
            let start = design.len();
            // A constant level says nothing, and its scale would be infinite.
            design.extend(problem.units[*unit].columns.iter().filter(|column| rows.columns[**column].iter().any(|x| *x != 0.0)));
            units.push(start..design.len());
        }
        let Distinct { order, weights, is_repeated } = Distinct::new(rows, &design, run)?;
        let scale = |column: &usize| {
            let values = &rows.columns[*column];
            let energy: f64 = order.iter().zip(&weights).map(|(row, weight)| weight * values[*row] * values[*row]).sum();
            (energy / weights.iter().sum::<f64>()).sqrt().recip()
        };
        let scales = |column: &usize| if problem.standardize { scale(column) } else { 1.0 };
        let columns: Vec<(usize, f64)> = design.iter().map(|column| (*column, scales(column))).collect();
        run.check()?;
        let values =
            order.iter().flat_map(|row| columns.iter().map(|(column, scale)| rows.columns[*column][*row] * scale)).collect();
        let classes = order.iter().map(|row| rows.targets[*row] as usize).collect();
        Ok(Self { units, unit_of, columns, values, classes, weights, is_repeated })
    }
}

/// One of each kind of row.
struct Distinct {
    /// In the order of their values.
    order: Vec<usize>,
    /// The weight of the kind.
    weights: Vec<f64>,
    is_repeated: Vec<bool>,
}

impl Distinct {
    fn new(rows: &Rows, columns: &[usize], run: &Run) -> Result<Self> {
        let compare = |a: &usize, b: &usize| {
            let by_value = columns.iter().map(|column| rows.columns[*column][*a].total_cmp(&rows.columns[*column][*b]));
            by_value.chain([rows.targets[*a].total_cmp(&rows.targets[*b])]).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
        let count = count_of_weight(&rows.weights);
        let (mut order, mut weights, mut counts): (Vec<usize>, Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new(), Vec::new());
        for row in sorted(rows.rows(), compare, run)? {
            match (order.last(), weights.last_mut(), counts.last_mut()) {
                (Some(last), Some(weights), Some(counts)) if compare(last, &row).is_eq() => {
                    *weights += weight(row);
                    *counts += count(weight(row));
                }
                _ => {
                    order.push(row);
                    weights.push(weight(row));
                    counts.push(count(weight(row)));
                }
            }
        }
        let is_repeated = counts.iter().map(|count| *count > 1.5).collect();
        Ok(Self { order, weights, is_repeated })
    }
}

/// How many rows a row of a weight stands for. Weights that are whole multiples of the smallest are counts of rows that are alike; of others nobody knows
/// more than that there is a row.
fn count_of_weight(weights: &[f64]) -> impl Fn(f64) -> f64 {
    let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
    let is_whole = |weight: &f64| (weight / smallest - (weight / smallest).round()).abs() < 1e-9;
    let are_counts = weights.iter().all(is_whole);
    move |weight| if are_counts && smallest.is_finite() { weight / smallest } else { 1.0 }
}

/// Rows that are sorted between two looks at whether the run goes on.
const SORTED_AT_ONCE: usize = 16_384;

/// The numbers below `n` in an order; equal ones stay as they are. In pieces that are merged, so that a long sort can be cancelled.
fn sorted(n: usize, compare: impl Fn(&usize, &usize) -> Ordering, run: &Run) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..n).collect();
    for piece in order.chunks_mut(SORTED_AT_ONCE) {
        run.check()?;
        piece.sort_by(&compare);
    }
    let mut length = SORTED_AT_ONCE;
    while length < n {
        let mut merged = Vec::with_capacity(n);
        for pair in order.chunks(2 * length) {
            let (mut left, mut right) = pair.split_at(length.min(pair.len()));
            while let (Some(a), Some(b)) = (left.first(), right.first()) {
                if merged.len().is_multiple_of(SORTED_AT_ONCE) {
                    run.check()?;
                }
                let from = if compare(b, a).is_lt() { &mut right } else { &mut left };
                merged.extend(from.split_off_first());
            }
            merged.extend(left.iter().chain(right));
        }
        order = merged;
        length *= 2;
    }
    Ok(order)
}

/// For each unit, an earlier one with the same values: of twins only the first is ever worth asking for.
pub(crate) fn twins(problem: &Problem, rows: &Rows, run: &Run) -> Result<Vec<Option<usize>>> {
    let mut seen: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut twins = Vec::new();
    for (at, unit) in problem.units.iter().enumerate() {
        run.check()?;
        let values = unit.columns.iter().flat_map(|column| &rows.columns[*column]);
        let hash = values.fold(0u64, |hash, x| (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29));
        let alike = seen.entry(hash).or_default();
        let same = |other: &&usize| {
            let theirs = &problem.units[**other].columns;
            theirs.len() == unit.columns.len()
                && theirs.iter().zip(&unit.columns).all(|(a, b)| rows.columns[*a] == rows.columns[*b])
        };
        twins.push(alike.iter().find(same).copied());
        alike.push(at);
    }
    Ok(twins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_sorted_as_few_are_and_equal_ones_keep_their_places() {
        let n = 3 * SORTED_AT_ONCE + 77;
        let mut random = Run::new(4).random("keys", 0);
        let keys: Vec<usize> = (0..n).map(|_| random.below(1000)).collect();
        let mut expected: Vec<usize> = (0..n).collect();
        expected.sort_by_key(|at| keys[*at]);
        assert_eq!(sorted(n, |a, b| keys[*a].cmp(&keys[*b]), &Run::default()).unwrap(), expected);
        let cancelled = Run::default().with_cancel(std::sync::Arc::new(true.into()));
        assert!(sorted(n, |a, b| keys[*a].cmp(&keys[*b]), &cancelled).is_err());
    }

    #[test]
    fn whole_multiples_of_the_smallest_weight_are_counts() {
        let counts = |weights: &[f64]| weights.iter().map(|weight| count_of_weight(weights)(*weight)).collect::<Vec<_>>();
        assert_eq!(counts(&[1.0, 3.0, 1.0]), [1.0, 3.0, 1.0]);
        assert_eq!(counts(&[2.0, 2.0]), [1.0, 1.0]);
        assert_eq!(counts(&[1.5, 2.0, 9.0]), [1.0, 1.0, 1.0]);
        assert_eq!(count_of_weight(&[])(1.0), 1.0);
    }
}
