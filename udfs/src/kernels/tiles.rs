//! The symmetric product XᵀX of a block of rows, accumulated tile by tile.
//!
//! Columns are packed twelve to a strip, row by row, so that one packed copy serves as both the left and the
//! right side of the product: a tile of twelve by twelve is three register blocks of four by twelve. Only tiles on
//! or above the diagonal are computed, and appending a column never moves an earlier one.

use rayon::prelude::*;

use crate::kernels::team::Team;

/// Columns in a strip.
pub(crate) const WIDTH: usize = 12;
/// Rows packed at a time: two strips of them fit into a first-level cache, the strips of some 800 columns into a second-level one.
pub(crate) const ROWS: usize = 128;
pub(crate) const TILE: usize = WIDTH * WIDTH;
/// Numbers in a cache line.
const LINE: usize = 8;
/// Columns from which on a block is worth waking another thread for.
const PARALLEL_COLUMNS: usize = 300;

/// Up to [`Tiles::ROWS`] rows of a growing number of columns, and the sum of their products so far.
#[derive(Debug, Default, Clone)]
pub struct Tiles {
    columns: usize,
    /// `packed[aligned + (strip * ROWS + row) * WIDTH + lane]`
    packed: Vec<f64>,
    /// Where the first element stands that a vector register can be loaded from without crossing a cache line.
    aligned: usize,
    /// Tile (left, right), left ≤ right, at `right (right + 1) / 2 + left`.
    sums: Vec<f64>,
}

impl Tiles {
    /// Rows that can be packed at a time.
    pub const ROWS: usize = ROWS;
    /// Columns that are packed side by side.
    pub const WIDTH: usize = WIDTH;

    /// Adds columns of zeros up to `columns`; what has been summed stays.
    pub fn grow(&mut self, columns: usize) {
        let strips = columns.div_ceil(WIDTH);
        self.columns = self.columns.max(columns);
        if self.sums.len() < strips * (strips + 1) / 2 * TILE {
            let mut packed = vec![0.0; strips * ROWS * WIDTH + LINE];
            let aligned = packed.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
            let before = self.packed.get(self.aligned..).unwrap_or(&[]);
            let used = before.len().min(packed.len() - LINE);
            packed[aligned..aligned + used].copy_from_slice(&before[..used]);
            (self.packed, self.aligned) = (packed, aligned);
            self.sums.resize(strips * (strips + 1) / 2 * TILE, 0.0);
        }
    }

    /// Packs `values`, from row 0, as column `column`.
    pub fn set(&mut self, column: usize, values: impl Iterator<Item = f64>) {
        let start = self.aligned + column / WIDTH * ROWS * WIDTH + column % WIDTH;
        for (slot, value) in self.packed[start..].iter_mut().step_by(WIDTH).zip(values.take(ROWS)) {
            *slot = value;
        }
    }

    /// Packs one value.
    pub fn set_one(&mut self, column: usize, row: usize, value: f64) {
        self.packed[self.aligned + (column / WIDTH * ROWS + row) * WIDTH + column % WIDTH] = value;
    }

    /// Packs the values of one row, from column 0 on.
    pub fn set_row(&mut self, row: usize, values: &[f64]) {
        for (strip, values) in values.chunks(WIDTH).enumerate() {
            let start = self.aligned + (strip * ROWS + row) * WIDTH;
            self.packed[start..start + values.len()].copy_from_slice(values);
        }
    }

    /// Adds a packed row, `scale` times, to `sums`, which has room for whole strips.
    pub fn add_row(&self, row: usize, scale: f64, sums: &mut [f64]) {
        for (strip, sums) in sums.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate().take(self.columns.div_ceil(WIDTH)) {
            let packed = &self.packed[self.aligned + (strip * ROWS + row) * WIDTH..][..WIDTH];
            sums.iter_mut().zip(packed).for_each(|(sum, x)| *sum += scale * x);
        }
    }

    /// Adds the products of the first `rows` packed rows. Every tile is summed by one thread in one order, so that the
    /// number of threads does not show.
    pub fn accumulate(&mut self, rows: usize) {
        let is_shared = self.columns >= PARALLEL_COLUMNS && rayon::current_thread_index().is_some();
        let mut columns = self.columns_of_tiles(rows);
        if is_shared {
            columns.into_par_iter().rev().for_each(|mut column| column.accumulate());
        } else {
            columns.iter_mut().for_each(ColumnOfTiles::accumulate);
        }
    }

    /// The same for a thread that is none of the pool's: it does itself what no member of the team has begun.
    pub(crate) fn accumulate_shared(&mut self, rows: usize, team: &Team) {
        team.each(&mut self.columns_of_tiles(rows), |_, column| column.accumulate());
    }

    fn columns_of_tiles(&mut self, rows: usize) -> Vec<ColumnOfTiles<'_>> {
        let strips = self.columns.div_ceil(WIDTH);
        let (kernel, packed) = (kernel(), &self.packed[self.aligned..]);
        let mut rest = &mut self.sums[..];
        let column = |right: usize| {
            let (sums, after) = std::mem::take(&mut rest).split_at_mut((right + 1) * TILE);
            rest = after;
            ColumnOfTiles { packed, rows, right, sums, kernel }
        };
        (0..strips).map(column).collect()
    }

    /// The sum for a pair of columns.
    #[inline(always)]
    pub fn sum(&self, i: usize, j: usize) -> f64 {
        let (i, j) = if i / WIDTH <= j / WIDTH { (i, j) } else { (j, i) };
        let (left, right) = (i / WIDTH, j / WIDTH);
        self.sums[(right * (right + 1) / 2 + left) * TILE + i % WIDTH * WIDTH + j % WIDTH]
    }

    /// Bytes that so many columns take.
    pub fn bytes_for(columns: usize) -> usize {
        let strips = columns.div_ceil(WIDTH);
        (strips * ROWS * WIDTH + LINE + strips * (strips + 1) / 2 * TILE) * size_of::<f64>()
    }
}

/// The tiles of a strip of columns with those before it.
struct ColumnOfTiles<'a> {
    packed: &'a [f64],
    rows: usize,
    right: usize,
    sums: &'a mut [f64],
    kernel: Kernel,
}

impl ColumnOfTiles<'_> {
    fn accumulate(&mut self) {
        let strip = |at: usize| &self.packed[at * ROWS * WIDTH..][..self.rows * WIDTH];
        for (left, sums) in self.sums.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
            (self.kernel)(strip(left), strip(self.right), sums);
        }
    }
}

pub(crate) type Kernel = fn(&[f64], &[f64], &mut [f64; TILE]);

/// The fastest kernel for this processor.
pub(crate) fn kernel() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the features that the function was compiled for.
        return |a, b, sums| unsafe { avx2(a, b, sums) };
    }
    portable
}

/// `sums[i][j] += Σ_row a[row][i] · b[row][j]`
fn portable(a: &[f64], b: &[f64], sums: &mut [f64; TILE]) {
    for (a, b) in a.as_chunks::<WIDTH>().0.iter().zip(b.as_chunks::<WIDTH>().0) {
        for (x, sums) in a.iter().zip(sums.as_chunks_mut::<WIDTH>().0) {
            for (sum, y) in sums.iter_mut().zip(b) {
                *sum += x * y;
            }
        }
    }
}

/// The same with nine vector registers of sums: three values of `a` against twelve of `b` in each step. Four against twelve
/// would need every register there is, and what the compiler then keeps in memory halves the speed.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(a: &[f64], b: &[f64], sums: &mut [f64; TILE]) {
    use std::arch::x86_64::*;
    const LEFT: usize = 3;
    let (a, b) = (a.as_chunks::<WIDTH>().0, b.as_chunks::<WIDTH>().0);
    for (part, sums) in sums.as_chunks_mut::<{ LEFT * WIDTH }>().0.iter_mut().enumerate() {
        let mut block = [[_mm256_setzero_pd(); 3]; LEFT];
        for (a, b) in a.iter().zip(b) {
            // SAFETY: `b` is an array of twelve f64, so three loads of four stay inside it.
            let right = unsafe {
                let b = b.as_ptr();
                [_mm256_loadu_pd(b), _mm256_loadu_pd(b.add(4)), _mm256_loadu_pd(b.add(8))]
            };
            for i in 0..LEFT {
                let left = _mm256_set1_pd(a[part * LEFT + i]);
                for j in 0..3 {
                    block[i][j] = _mm256_fmadd_pd(left, right[j], block[i][j]);
                }
            }
        }
        for (sum, slot) in block.as_flattened().iter().zip(sums.as_chunks_mut::<4>().0) {
            // SAFETY: `slot` is an array of four f64.
            unsafe { _mm256_storeu_pd(slot.as_mut_ptr(), _mm256_add_pd(_mm256_loadu_pd(slot.as_ptr()), *sum)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    /// Every column count around the strip width, grown half-way, against the plain triple loop.
    #[test]
    fn equals_the_plain_product() {
        for columns in [1usize, 2, 11, 12, 13, 25, 100] {
            let mut random = Run::new(columns as u64).random("tiles", 0);
            let rows = 100;
            let x: Vec<Vec<f64>> = (0..columns).map(|_| (0..2 * rows).map(|_| random.normal()).collect()).collect();
            let mut tiles = Tiles::default();
            // The second half of the columns does not exist in the first block of rows.
            let half = columns.div_ceil(2);
            tiles.grow(half);
            (0..half).for_each(|j| tiles.set(j, x[j][..rows].iter().copied()));
            tiles.accumulate(rows);
            tiles.grow(columns);
            (0..columns).for_each(|j| tiles.set(j, x[j][rows..].iter().copied()));
            tiles.accumulate(rows);
            for i in 0..columns {
                for j in 0..columns {
                    let start = if i < half && j < half { 0 } else { rows };
                    let plain: f64 = (start..2 * rows).map(|row| x[i][row] * x[j][row]).sum();
                    assert!((tiles.sum(i, j) - plain).abs() < 1e-11, "{columns} columns, ({i}, {j})");
                }
            }
        }
    }

    #[test]
    fn portable_and_vector_kernels_agree() {
        let mut random = Run::new(7).random("kernel", 0);
        let mut draw = |n: usize| (0..n).map(|_| random.normal()).collect::<Vec<f64>>();
        let (a, b) = (draw(WIDTH * 37), draw(WIDTH * 37));
        let (mut plain, mut fast) = ([1.0; TILE], [1.0; TILE]);
        portable(&a, &b, &mut plain);
        kernel()(&a, &b, &mut fast);
        assert!(plain.iter().zip(&fast).all(|(x, y)| (x - y).abs() < 1e-12));
    }
}
