use crate::kernels::tiles::Tiles;
use crate::reading::block::is_value;
use crate::reading::intake::Intake;

use super::Column;

/// Buffers of one batch.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    pub tiles: Tiles,
    /// What was subtracted from each number in this batch; `None` until it has a value.
    pub centres: Vec<Option<f64>>,
    pub values: Vec<f64>,
    /// Rows of the current block that count.
    pub intake: Intake,
    /// Square roots of their weights; empty when all are 1.
    pub scales: Vec<f64>,
    /// Classes of an integer label that are no longer wanted.
    pub classes_given_up: bool,
}

impl Scratch {
    /// Makes ready for the rows of a block that were taken in.
    pub fn prepare(&mut self) {
        self.values.resize(Tiles::ROWS, 0.0);
        self.scales.clear();
        self.scales.extend(self.intake.weights.iter().map(|weight| weight.sqrt()));
    }

    /// Columns that are 0 unless flagged.
    pub fn clear_flags(&mut self, columns: &[Column]) {
        let rows = self.intake.kept.len();
        for (at, column) in columns.iter().enumerate() {
            if matches!(column, Column::Class(_) | Column::Null(_) | Column::Level(..)) {
                self.tiles.set(at, std::iter::repeat_n(0.0, rows));
            }
        }
    }

    pub fn set_ones(&mut self) {
        if self.scales.is_empty() {
            self.tiles.set(0, std::iter::repeat_n(1.0, self.intake.kept.len()));
        } else {
            self.tiles.set(0, self.scales.iter().copied());
        }
    }

    pub fn flag(&mut self, column: usize, position: usize) {
        let scale = self.scales.get(position).copied().unwrap_or(1.0);
        self.tiles.set_one(column, position, scale);
    }

    /// Packs `values` of the kept rows, centred and weighted; a missing one becomes 0. Returns whether none was missing.
    /// Afterwards `values[position]` is the value of the row at `position` of `kept`.
    pub fn set_numbers(&mut self, column: usize) -> bool {
        let rows = self.intake.kept.len();
        // `kept` ascends, so this only ever moves values forward. All rows kept is the common case.
        if self.intake.kept[rows - 1] != rows - 1 {
            for position in 0..rows {
                self.values[position] = self.values[self.intake.kept[position]];
            }
        }
        let values = &self.values[..rows];
        // Not `all`, which stops at the first and so cannot use vector registers.
        let complete = values.iter().fold(true, |complete, value| complete & is_value(*value));
        if self.centres.len() <= column {
            self.centres.resize(column + 1, None);
        }
        // Any number amid the values will do, so the first block of a batch decides for all of it. It must not
        // depend on anything outside the batch, or the order of batches would show in the last digit.
        if self.centres[column].is_none() {
            self.centres[column] = round_centre(values);
        }
        let centre = self.centres[column].unwrap_or(0.0);
        if complete && self.scales.is_empty() {
            self.tiles.set(column, values.iter().map(|value| value - centre));
        } else {
            let scales = self.scales.iter().copied().chain(std::iter::repeat(1.0));
            let scaled =
                values.iter().zip(scales).map(|(value, scale)| if is_value(*value) { (value - centre) * scale } else { 0.0 });
            self.tiles.set(column, scaled);
        }
        complete
    }
}

/// A number amid the finite values, with few binary digits.
///
/// Few, so that whole numbers stay short ones when it is subtracted: their products and sums are then exact, and even
/// batches that are cut elsewhere add up to the same bits.
fn round_centre(values: &[f64]) -> Option<f64> {
    let known = || values.iter().copied().filter(|value| is_value(*value));
    let (low, high) = known().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return None;
    }
    let middle = low / 2.0 + high / 2.0;
    let grid = ((high / 4.0 - low / 4.0).log2().floor()).exp2();
    Some(if low == high || grid == 0.0 || !grid.is_finite() { low } else { (middle / grid).round() * grid })
}
