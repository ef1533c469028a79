use std::collections::BTreeMap;
use std::ops::Range;

use crate::{Problem, Rows};

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
}

impl Sample {
    pub fn rows(&self) -> usize {
        self.classes.len()
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns.len()..][..self.columns.len()]
    }

    pub fn new(problem: &Problem, rows: &Rows, candidates: &[usize]) -> Self {
        let mut unit_of = candidates.to_vec();
        unit_of.sort_by(|a, b| problem.units[*a].name.cmp(&problem.units[*b].name));
        let (mut units, mut design) = (Vec::new(), Vec::new());
        for unit in &unit_of {
            let start = design.len();
            // A constant level says nothing, and its scale would be infinite.
            design.extend(problem.units[*unit].columns.iter().filter(|column| rows.columns[**column].iter().any(|x| *x != 0.0)));
            units.push(start..design.len());
        }
        let (order, weights) = distinct_rows(rows, &design);
        let scale = |column: &usize| {
            let values = &rows.columns[*column];
            let energy: f64 = order.iter().zip(&weights).map(|(row, weight)| weight * values[*row] * values[*row]).sum();
            (energy / weights.iter().sum::<f64>()).sqrt().recip()
        };
        let scales = |column: &usize| if problem.standardize { scale(column) } else { 1.0 };
        let columns: Vec<(usize, f64)> = design.iter().map(|column| (*column, scales(column))).collect();
        let values =
            order.iter().flat_map(|row| columns.iter().map(|(column, scale)| rows.columns[*column][*row] * scale)).collect();
        let classes = order.iter().map(|row| rows.targets[*row] as usize).collect();
        Self { units, unit_of, columns, values, classes, weights }
    }
}

/// One of each kind of row, in the order of their values, and the weight of the kind.
fn distinct_rows(rows: &Rows, columns: &[usize]) -> (Vec<usize>, Vec<f64>) {
    let compare = |a: &usize, b: &usize| {
        let by_value = columns.iter().map(|column| rows.columns[*column][*a].total_cmp(&rows.columns[*column][*b]));
        by_value
            .chain([rows.targets[*a].total_cmp(&rows.targets[*b])])
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_by(compare);
    let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
    let (mut kept, mut weights): (Vec<usize>, Vec<f64>) = (Vec::new(), Vec::new());
    for row in order {
        match (kept.last(), weights.last_mut()) {
            (Some(last), Some(sum)) if compare(last, &row).is_eq() => *sum += weight(row),
            _ => {
                kept.push(row);
                weights.push(weight(row));
            }
        }
    }
    (kept, weights)
}

/// For each unit, an earlier one with the same values: of twins only the first is ever worth asking for.
pub(crate) fn twins(problem: &Problem, rows: &Rows) -> Vec<Option<usize>> {
    let mut seen: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut twins = Vec::new();
    for (at, unit) in problem.units.iter().enumerate() {
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
    twins
}
