//! The symmetric product XᵀX of a block of rows, accumulated tile by tile.
//!
//! Columns are packed twelve to a strip, row by row, so that one packed copy serves as both the left and the
//! right side of the product: a tile of twelve by twelve is three register blocks of four by twelve. Only tiles on
//! or above the diagonal are computed, and appending a column never moves an earlier one.

/// Columns in a strip.
pub const WIDTH: usize = 12;
/// Rows packed at a time: a strip of them fills most of a first-level cache.
pub const ROWS: usize = 256;
const TILE: usize = WIDTH * WIDTH;
/// Strips of the left side that stay in the second-level cache while the right side passes by.
const LEFT_STRIPS: usize = 8;

/// Up to [`ROWS`] rows of a growing number of columns, and the sum of their products so far.
#[derive(Debug, Default, Clone)]
pub struct Tiles {
    columns: usize,
    /// `packed[(strip * ROWS + row) * WIDTH + lane]`
    packed: Vec<f64>,
    /// Tile (left, right), left ≤ right, at `right (right + 1) / 2 + left`.
    sums: Vec<f64>,
}

impl Tiles {
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Adds columns of zeros up to `columns`; what has been summed stays.
    pub fn grow(&mut self, columns: usize) {
        let strips = columns.div_ceil(WIDTH);
        self.columns = self.columns.max(columns);
        if self.packed.len() < strips * ROWS * WIDTH {
            self.packed.resize(strips * ROWS * WIDTH, 0.0);
            self.sums.resize(strips * (strips + 1) / 2 * TILE, 0.0);
        }
    }

    /// Packs `values`, from row 0, as column `column`.
    pub fn set(&mut self, column: usize, values: impl Iterator<Item = f64>) {
        let start = column / WIDTH * ROWS * WIDTH + column % WIDTH;
        for (slot, value) in self.packed[start..].iter_mut().step_by(WIDTH).zip(values.take(ROWS)) {
            *slot = value;
        }
    }

    /// Packs one value.
    pub fn set_one(&mut self, column: usize, row: usize, value: f64) {
        self.packed[(column / WIDTH * ROWS + row) * WIDTH + column % WIDTH] = value;
    }

    /// Adds the products of the first `rows` packed rows.
    pub fn accumulate(&mut self, rows: usize) {
        let strips = self.columns.div_ceil(WIDTH);
        let kernel = kernel();
        for first in (0..strips).step_by(LEFT_STRIPS) {
            for right in first..strips {
                for left in first..(first + LEFT_STRIPS).min(right + 1) {
                    let a = &self.packed[left * ROWS * WIDTH..][..rows * WIDTH];
                    let b = &self.packed[right * ROWS * WIDTH..][..rows * WIDTH];
                    let at = (right * (right + 1) / 2 + left) * TILE;
                    kernel(a, b, (&mut self.sums[at..at + TILE]).try_into().expect("a tile has TILE elements"));
                }
            }
        }
    }

    /// The sum for a pair of columns.
    #[inline(always)]
    pub fn sum(&self, i: usize, j: usize) -> f64 {
        let (i, j) = if i / WIDTH <= j / WIDTH { (i, j) } else { (j, i) };
        let (left, right) = (i / WIDTH, j / WIDTH);
        self.sums[(right * (right + 1) / 2 + left) * TILE + i % WIDTH * WIDTH + j % WIDTH]
    }

    /// Forgets the sums, keeps the columns.
    pub fn clear(&mut self) {
        self.sums.fill(0.0);
    }

    pub fn bytes(&self) -> usize {
        (self.packed.capacity() + self.sums.capacity()) * size_of::<f64>()
    }

    /// What [`Self::bytes`] will be with so many columns.
    pub fn bytes_for(columns: usize) -> usize {
        let strips = columns.div_ceil(WIDTH);
        (strips * ROWS * WIDTH + strips * (strips + 1) / 2 * TILE) * size_of::<f64>()
    }
}

type Kernel = fn(&[f64], &[f64], &mut [f64; TILE]);

/// The fastest kernel for this processor.
fn kernel() -> Kernel {
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

/// The same with twelve vector registers of sums: four values of `a` against twelve of `b` in each step.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(a: &[f64], b: &[f64], sums: &mut [f64; TILE]) {
    use std::arch::x86_64::*;
    let (a, b) = (a.as_chunks::<WIDTH>().0, b.as_chunks::<WIDTH>().0);
    for part in 0..3 {
        let mut block = [[_mm256_setzero_pd(); 3]; 4];
        for (a, b) in a.iter().zip(b) {
            // SAFETY: `b` is an array of twelve f64, so three loads of four stay inside it.
            let right = unsafe {
                let b = b.as_ptr();
                [_mm256_loadu_pd(b), _mm256_loadu_pd(b.add(4)), _mm256_loadu_pd(b.add(8))]
            };
            for i in 0..4 {
                let left = _mm256_set1_pd(a[part * 4 + i]);
                for j in 0..3 {
                    block[i][j] = _mm256_fmadd_pd(left, right[j], block[i][j]);
                }
            }
        }
        for (i, row) in block.iter().enumerate() {
            for (j, sum) in row.iter().enumerate() {
                let at = (part * 4 + i) * WIDTH + j * 4;
                // SAFETY: `at + 4` is at most TILE.
                unsafe {
                    let slot = sums.as_mut_ptr().add(at);
                    _mm256_storeu_pd(slot, _mm256_add_pd(_mm256_loadu_pd(slot), *sum));
                }
            }
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
