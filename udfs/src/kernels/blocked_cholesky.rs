//! A Cholesky factor whose products are those of [`tiles`](crate::kernels::tiles): fast for some hundred columns, and many times over.
//!
//! The matrix is kept in strips of twelve columns, row by row, which is how the tile kernel reads. A tile of the factor
//! is then the matrix's tile less one product of two strips.

use crate::kernels::tiles::{Kernel, TILE, WIDTH, kernel};

/// A symmetric matrix with right-hand sides beside it, in strips; after [`BlockedCholesky::factorise`] the upper factor U of UᵀU, with U⁻ᵀB beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockedCholesky {
    /// Columns of the matrix, and of the right-hand sides.
    n: usize,
    sides: usize,
    /// Rows that a strip has room for.
    height: usize,
    /// `values[(strip * height + row) * WIDTH + lane]`; only row ≤ column is used.
    values: Aligned,
}

impl BlockedCholesky {
    /// An empty matrix of `n` columns and `sides` right-hand sides, in the memory of the last one.
    pub fn clear(&mut self, n: usize, sides: usize) {
        (self.n, self.sides) = (n, sides);
        self.height = n.next_multiple_of(WIDTH);
        let length = (n + sides).div_ceil(WIDTH) * self.height * WIDTH;
        if self.values.len() == length {
            self.values.fill(0.0);
        } else {
            self.values = Aligned::zeros(length);
        }
    }

    #[inline(always)]
    fn at(&self, row: usize, column: usize) -> usize {
        (column / WIDTH * self.height + row) * WIDTH + column % WIDTH
    }

    #[inline(always)]
    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.values[self.at(row, column)]
    }

    /// Sets an element on or above the diagonal; columns from `n` on are the right-hand sides.
    #[inline(always)]
    pub fn set(&mut self, row: usize, column: usize, value: f64) {
        let at = self.at(row, column);
        self.values[at] = value;
    }

    /// Sets twelve rows of a strip of the matrix.
    pub fn set_tile(&mut self, rows: usize, strip: usize, tile: &[f64; TILE]) {
        let at = (strip * self.height + rows * WIDTH) * WIDTH;
        self.values[at..at + TILE].copy_from_slice(tile);
    }

    /// Factorises in place. A pivot that rounding made worthless is replaced by its column's `floor`, which leaves that column out.
    pub fn factorise(&mut self, floor: &[f64]) {
        self.factorise_unless(floor, &|| false);
    }

    /// The same, but it ends half-way when it is stopped, and the factor is of no use then. A large one takes seconds.
    pub fn factorise_unless(&mut self, floor: &[f64], is_stopped: &dyn Fn() -> bool) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the features that the function was compiled for.
            unsafe { factorise_avx2(self, floor, is_stopped) };
            return;
        }
        factorise(self, floor, is_stopped, kernel());
    }

    /// The coefficients for one right-hand side.
    #[inline(always)]
    pub fn solution(&self, side: usize, out: &mut [f64]) {
        (0..self.n).for_each(|row| out[row] = self.get(row, self.n + side));
        self.back(out);
    }

    /// Solves for a right-hand side that was not there before, in place.
    pub fn solve(&self, x: &mut [f64]) {
        for row in 0..self.n {
            x[row] /= self.get(row, row);
            let known = x[row];
            (row + 1..self.n).for_each(|column| x[column] -= self.get(row, column) * known);
        }
        self.back(x);
    }

    /// Solves Ux = b, in place.
    #[inline(always)]
    fn back(&self, x: &mut [f64]) {
        for row in (0..self.n).rev() {
            let first = row / WIDTH;
            let mut known = [0.0; WIDTH];
            for strip in first..self.n.div_ceil(WIDTH) {
                let factors = &self.values[(strip * self.height + row) * WIDTH..][..WIDTH];
                // Columns up to the diagonal, and those of the right-hand sides, are not among the unknowns.
                let lanes = if strip == first { row % WIDTH + 1 } else { 0 }..WIDTH.min(self.n - strip * WIDTH);
                for lane in lanes {
                    known[lane] += factors[lane] * x[strip * WIDTH + lane];
                }
            }
            x[row] = (x[row] - known.iter().sum::<f64>()) / self.get(row, row);
        }
    }
}

/// Numbers that begin where a cache line does, so that no vector register is loaded from two.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    values: Vec<f64>,
    start: usize,
    length: usize,
}

/// Numbers in a cache line.
const LINE: usize = 8;

impl Aligned {
    pub fn zeros(length: usize) -> Self {
        let values = vec![0.0; length + LINE];
        let start = values.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        Self { values, start, length }
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.values[self.start..self.start + self.length]
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.values[self.start..self.start + self.length]
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn factorise_avx2(matrix: &mut BlockedCholesky, floor: &[f64], is_stopped: &dyn Fn() -> bool) {
    factorise(matrix, floor, is_stopped, kernel());
}

/// Inlined, so that it is compiled once for every processor and once for those with wide registers.
#[inline(always)]
fn factorise(matrix: &mut BlockedCholesky, floor: &[f64], is_stopped: &dyn Fn() -> bool, kernel: Kernel) {
    let (n, height, length) = (matrix.n, matrix.height, matrix.height * WIDTH);
    let strips = matrix.values.len() / length.max(1);
    for top in (0..n).step_by(WIDTH) {
        if is_stopped() {
            return;
        }
        let first = top / WIDTH;
        // What the rows above have explained.
        for right in first..strips {
            let strip = |at: usize| &matrix.values[at * length..][..top * WIDTH];
            let mut tile = [0.0; TILE];
            kernel(strip(first), strip(right), &mut tile);
            let own = &mut matrix.values[(right * height + top) * WIDTH..][..TILE];
            own.iter_mut().zip(&tile).for_each(|(value, known)| *value -= known);
        }
        for row in top..n.min(top + WIDTH) {
            let own = matrix.get(row, row);
            let pivot = if own > floor[row] { own.sqrt() } else { f64::INFINITY };
            // The factors of the rows below, before they are overwritten.
            let below: [f64; WIDTH] = std::array::from_fn(|lane| matrix.get(row, first * WIDTH + lane) / pivot);
            for right in first..strips {
                let tile = &mut matrix.values[(right * height + top) * WIDTH..][..TILE];
                let (done, rest) = tile.split_at_mut((row - top + 1) * WIDTH);
                let done = &mut done[(row - top) * WIDTH..];
                done.iter_mut().for_each(|value| *value /= pivot);
                for (lower, factor) in rest.chunks_exact_mut(WIDTH).zip(&below[row - top + 1..]) {
                    lower.iter_mut().zip(&*done).for_each(|(value, solved)| *value -= factor * solved);
                }
            }
            if pivot.is_infinite() {
                matrix.set(row, row, 1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::kernels::cholesky::Cholesky;

    #[test]
    fn solves_what_the_plain_factor_solves() {
        for (n, sides) in [(1, 1), (11, 1), (12, 2), (13, 12), (40, 3), (105, 1)] {
            let mut random = Run::new(n as u64).random("strips", 0);
            let x: Vec<Vec<f64>> = (0..n + sides).map(|_| (0..2 * n + 5).map(|_| random.normal()).collect()).collect();
            let product = |i: usize, j: usize| x[i].iter().zip(&x[j]).map(|(a, b)| a * b).sum::<f64>();
            let mut strips = BlockedCholesky::default();
            strips.clear(n, sides);
            for column in 0..n + sides {
                (0..n.min(column + 1)).for_each(|row| strips.set(row, column, product(row, column)));
            }
            strips.factorise(&vec![0.0; n]);
            let plain = Cholesky::of(n, product).unwrap();
            for side in 0..sides {
                let (mut direct, mut fresh) = (vec![0.0; n], (0..n).map(|i| product(i, n + side)).collect::<Vec<_>>());
                strips.solution(side, &mut direct);
                let mut expected = fresh.clone();
                plain.solve(&mut expected);
                strips.solve(&mut fresh);
                for i in 0..n {
                    assert!((direct[i] - expected[i]).abs() < 1e-9 && (fresh[i] - expected[i]).abs() < 1e-9, "{n} {side} {i}");
                }
            }
        }
    }

    /// A column of zeros has no coefficient, and disturbs no other.
    #[test]
    fn leaves_out_what_has_no_pivot() {
        let mut strips = BlockedCholesky::default();
        strips.clear(3, 1);
        for (row, column, value) in [(0, 0, 4.0), (0, 2, 2.0), (2, 2, 5.0), (0, 3, 8.0), (2, 3, 12.0)] {
            strips.set(row, column, value);
        }
        strips.factorise(&[0.0; 3]);
        let mut x = [0.0; 3];
        strips.solution(0, &mut x);
        assert!((x[0] - 1.0).abs() < 1e-15 && x[1] == 0.0 && (x[2] - 2.0).abs() < 1e-15);
    }
}
