//! Columns of numbers that grow as rows come.

use crate::reading::block::Numbers;

/// Adds what a reader hands over.
pub(super) fn extend(values: &mut Vec<f64>, rows: usize, numbers: &dyn Numbers) {
    let start = values.len();
    make_room(values, rows);
    values.resize(start + rows, 0.0);
    numbers.fill(0, &mut values[start..]);
}

/// Room for more, an eighth too much at most: a vector that doubles takes twice what was asked of the memory pool.
pub(super) fn make_room(values: &mut Vec<f64>, rows: usize) {
    if values.capacity() - values.len() < rows {
        values.reserve_exact(rows.max(values.len() / 8));
    }
}

/// Keeps the values of some rows.
pub(super) fn retain(values: &mut Vec<f64>, kept: &[usize]) {
    if !values.is_empty() {
        *values = kept.iter().map(|row| values[*row]).collect();
    }
}
