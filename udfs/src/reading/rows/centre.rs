use crate::reading::block::is_value;
use crate::reading::moments::CONSTANT;

/// Subtracts the weighted mean of the known values among the first `own`; a missing value becomes 0, which is the mean.
/// Returns that mean.
pub(super) fn centre(column: &mut [f64], own: usize, weights: &[f64]) -> f64 {
    let weight = |row: usize| weights.get(row).copied().unwrap_or(1.0);
    let known = |column: &[f64]| -> (f64, f64) {
        let mut total = (0.0, 0.0);
        for (row, value) in column[..own].iter().enumerate().filter(|(_, value)| is_value(**value)) {
            total.0 += weight(row) * value;
            total.1 += weight(row);
        }
        total
    };
    let (sum, count) = known(column);
    let first = if count > 0.0 { sum / count } else { 0.0 };
    column.iter_mut().for_each(|value| *value -= first);
    // What the first mean lost to rounding, which matters for a timestamp in nanoseconds.
    let (sum, _) = known(column);
    let rest = if count > 0.0 { sum / count } else { 0.0 };
    column.iter_mut().for_each(|value| *value = if is_value(*value) { *value - rest } else { 0.0 });
    let energy: f64 = column[..own].iter().enumerate().map(|(row, value)| weight(row) * value * value).sum();
    if energy <= CONSTANT * (energy + count * first * first) {
        column.fill(0.0);
    }
    first + rest
}
