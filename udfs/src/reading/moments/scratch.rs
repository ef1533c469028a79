use crate::kernels::tiles::Tiles;
use crate::reading::block::is_value;
use crate::reading::intake::Intake;

/// Buffers of one batch.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    pub tiles: Tiles,
    /// What was subtracted from each lane in this batch; `None` until it has a value.
    pub centres: Vec<Option<f64>>,
    pub values: Vec<f64>,
    /// Rows of the batch that count.
    pub intake: Intake,
    /// Those of the current block, from its beginning.
    pub kept: Vec<usize>,
    /// Square roots of their weights; empty when all are 1.
    scales: Vec<f64>,
    /// Columns that are no lanes and of which there are sums, and where these are.
    columns: Vec<usize>,
    place_of: Vec<usize>,
    sums: Vec<f64>,
    stride: usize,
}

const NOWHERE: usize = usize::MAX;

impl Scratch {
    /// Makes ready for a batch of so many lanes, at most so many of them in the end, and so many columns.
    pub fn begin(&mut self, lanes: usize, lanes_max: usize, columns: usize) {
        self.tiles.grow(lanes);
        self.stride = lanes_max.next_multiple_of(Tiles::WIDTH);
        self.place_of.resize(columns, NOWHERE);
    }

    /// Makes ready for a block of the batch, whose first row that counts is at `first` among those that do. Returns how many it has.
    pub fn prepare(&mut self, first: usize, start: usize, rows: usize) -> usize {
        self.values.resize(Tiles::ROWS, 0.0);
        let kept = self.intake.kept[first..].iter().take_while(|row| **row < start + rows);
        self.kept.clear();
        self.kept.extend(kept.map(|row| row - start));
        self.scales.clear();
        let weights = self.intake.weights.iter().skip(first).take(self.kept.len());
        self.scales.extend(weights.map(|weight| weight.sqrt()));
        self.kept.len()
    }

    /// A lane that is 0 unless flagged.
    pub fn clear(&mut self, lane: usize) {
        self.tiles.set(lane, std::iter::repeat_n(0.0, self.kept.len()));
    }

    pub fn set_ones(&mut self) {
        if self.scales.is_empty() {
            self.tiles.set(0, std::iter::repeat_n(1.0, self.kept.len()));
        } else {
            self.tiles.set(0, self.scales.iter().copied());
        }
    }

    fn scale(&self, position: usize) -> f64 {
        self.scales.get(position).copied().unwrap_or(1.0)
    }

    pub fn flag(&mut self, lane: usize, position: usize) {
        self.tiles.set_one(lane, position, self.scale(position));
    }

    /// Adds the lanes of a packed row to the sums of a column that is 1 in it.
    pub fn add_row(&mut self, column: usize, position: usize) {
        if self.place_of[column] == NOWHERE {
            self.place_of[column] = self.columns.len();
            self.columns.push(column);
            self.sums.resize(self.columns.len() * self.stride, 0.0);
        }
        let scale = self.scale(position);
        let sums = &mut self.sums[self.place_of[column] * self.stride..][..self.stride];
        self.tiles.add_row(position, scale, sums);
    }

    /// Columns that are no lanes, and the sums of their products with all lanes.
    pub fn sums(&self) -> impl Iterator<Item = (usize, &[f64])> {
        self.columns.iter().copied().zip(self.sums.chunks(self.stride.max(1)))
    }

    /// Packs `values` of the kept rows, centred and weighted; a missing one becomes 0. Returns whether none was missing.
    /// Afterwards `values[position]` is the value of the row at `position` of `kept`.
    pub fn set_numbers(&mut self, lane: usize) -> bool {
        let rows = self.kept.len();
        // `kept` ascends, so this only ever moves values forward. All rows kept is the common case.
        if self.kept[rows - 1] != rows - 1 {
            for position in 0..rows {
                self.values[position] = self.values[self.kept[position]];
            }
        }
        let values = &self.values[..rows];
        // Not `all`, which stops at the first and so cannot use vector registers.
        let complete = values.iter().fold(true, |complete, value| complete & is_value(*value));
        if self.centres.len() <= lane {
            self.centres.resize(lane + 1, None);
        }
        // Any number amid the values will do, so the first block of a batch decides for all of it. It must not
        // depend on anything outside the batch, or the order of batches would show in the last digit.
        if self.centres[lane].is_none() {
            self.centres[lane] = round_centre(values);
        }
        let centre = self.centres[lane].unwrap_or(0.0);
        if complete && self.scales.is_empty() {
            self.tiles.set(lane, values.iter().map(|value| value - centre));
        } else {
            let scales = self.scales.iter().copied().chain(std::iter::repeat(1.0));
            let scaled =
                values.iter().zip(scales).map(|(value, scale)| if is_value(*value) { (value - centre) * scale } else { 0.0 });
            self.tiles.set(lane, scaled);
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
