//! Rows of which most values are the same: only the others are kept, and multiplied.
//!
//! Every column has a base, its most frequent value: a blank pixel, an absent level, the mean that NULLs were filled with. With `x = base + rest`
//! a product is one with the bases, the same for all rows, and one with what is left of each row. Four fifths of MNIST's pixels are blank.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernels::gemm::{LANES, prefetch};

/// Columns that are looked up together.
pub(crate) const BLOCK: usize = 48;
/// Share of values beside the base up to which this is faster than multiplying all.
const SHARE_MAX: f64 = 0.3;
/// Rows looked at to find the bases.
const PROBES: usize = 512;
/// Rows turned over at a time: so that both sides stay in cache, and a word has a bit for each.
const BAND: usize = 64;
/// Rows between the one that is multiplied and the one that is asked of the memory.
const AHEAD: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Sparse {
    /// Of each column.
    base: Vec<f32>,
    /// Where the entries of each row begin, and the end.
    starts: Vec<usize>,
    /// For each row and block of columns how many of the row's entries come before; and once more behind the last block.
    marks: Vec<u16>,
    columns: Vec<u16>,
    /// What is added to the base there.
    values: Vec<f32>,
}

/// Some rows on their way into a [`Sparse`].
#[derive(Default)]
struct Band {
    counts: Vec<u16>,
    marks: Vec<u16>,
    columns: Vec<u16>,
    values: Vec<f32>,
}

impl Sparse {
    /// The given rows of some columns, each times a factor; nothing if they are better kept as they are.
    pub(crate) fn of(columns: &[&[f64]], factors: &[f64], rows: &[usize]) -> Option<Self> {
        if columns.len() >= usize::from(u16::MAX) || rows.is_empty() {
            return None;
        }
        let probes: Vec<usize> = rows.iter().copied().step_by(rows.len().div_ceil(PROBES)).collect();
        let base: Vec<f64> = columns.par_iter().map(|column| most_frequent(column, &probes)).collect();
        let others = |(column, base): (&&[f64], &f64)| probes.iter().filter(|row| column[**row] != *base).count();
        let others: usize = columns.par_iter().zip(&base).map(others).sum();
        if others as f64 > SHARE_MAX * (probes.len() * columns.len()) as f64 {
            return None;
        }
        let bands: Vec<Band> = rows.par_chunks(BAND).map(|rows| Band::of(columns, factors, &base, rows)).collect();
        Some(Self::join(base.iter().zip(factors).map(|(base, factor)| (base * factor) as f32).collect(), bands))
    }

    fn join(base: Vec<f32>, bands: Vec<Band>) -> Self {
        let entries: usize = bands.iter().map(|band| band.values.len()).sum();
        // Zeros are not written before they are needed, so that all threads share in what the first touch of memory costs.
        let (mut columns, mut values) = (vec![0; entries], vec![0.0; entries]);
        let (mut starts, mut marks) = (vec![0], Vec::new());
        let (mut free_columns, mut free_values) = (&mut columns[..], &mut values[..]);
        let mut places = Vec::with_capacity(bands.len());
        for band in &bands {
            for count in &band.counts {
                starts.push(starts[starts.len() - 1] + usize::from(*count));
            }
            marks.extend(&band.marks);
            let (of_columns, rest) = free_columns.split_at_mut(band.columns.len());
            free_columns = rest;
            let (of_values, rest) = free_values.split_at_mut(band.values.len());
            free_values = rest;
            places.push((of_columns, of_values));
        }
        bands.into_par_iter().zip(places).for_each(|(band, (columns, values))| {
            columns.copy_from_slice(&band.columns);
            values.copy_from_slice(&band.values);
        });
        Self { base, starts, marks, columns, values }
    }

    pub(crate) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn bytes(&self) -> usize {
        4 * self.base.len() + 8 * self.starts.len() + 2 * self.marks.len() + 6 * self.values.len()
    }

    /// Whether so much is left beside the bases that all values are better multiplied.
    pub(crate) fn is_dense(&self) -> bool {
        self.values.len() as f64 > SHARE_MAX * (self.rows() * self.base.len()) as f64
    }

    /// All values of a row.
    pub(crate) fn row(&self, row: usize) -> Vec<f32> {
        let mut all = self.base.clone();
        let (columns, values) = self.entries(row, 0..self.base.len().div_ceil(BLOCK));
        columns.iter().zip(values).for_each(|(column, value)| all[usize::from(*column)] += value);
        all
    }

    pub(crate) fn some_rows(&self, rows: &[usize]) -> Self {
        let kept: Vec<Option<u16>> = (0..self.base.len() as u16).map(Some).collect();
        Self::join(self.base.clone(), rows.par_chunks(BAND).map(|rows| Band::some(self, &kept, self.base.len(), rows)).collect())
    }

    pub(crate) fn some_columns(&self, columns: &[usize]) -> Self {
        let mut kept = vec![None; self.base.len()];
        columns.iter().enumerate().for_each(|(to, from)| kept[*from] = Some(to as u16));
        let rows: Vec<usize> = (0..self.rows()).collect();
        let bands = rows.par_chunks(BAND).map(|rows| Band::some(self, &kept, columns.len(), rows)).collect();
        Self::join(columns.iter().map(|column| self.base[*column]).collect(), bands)
    }

    /// Columns and values of a row's entries in some blocks of columns.
    #[inline(always)]
    fn entries(&self, row: usize, blocks: Range<usize>) -> (&[u16], &[f32]) {
        let marks = &self.marks[row * (self.base.len().div_ceil(BLOCK) + 1)..];
        let (from, to) = (usize::from(marks[blocks.start]), usize::from(marks[blocks.end]));
        let range = self.starts[row] + from..self.starts[row] + to;
        (&self.columns[range.clone()], &self.values[range])
    }

    /// `c[i][j] += Σ x[rows[i]][k] · weights[k][j]` over the columns `k` of some blocks.
    #[inline(always)]
    pub(crate) fn add_product<const FMA: bool>(
        &self,
        c: &mut [f32],
        width: usize,
        rows: &[u32],
        blocks: Range<usize>,
        weights: &[f32],
    ) {
        assert!(width.is_multiple_of(LANES) && c.len() >= rows.len() * width && weights.len() >= self.base.len() * width);
        let mut column = 0;
        // Plain loops and no closures: what is not inlined here would be compiled without wide registers.
        while column < width {
            column += match (width - column) / LANES {
                9 => self.add_columns::<9, FMA>(c, width, column, rows, blocks.clone(), weights),
                8.. => self.add_columns::<8, FMA>(c, width, column, rows, blocks.clone(), weights),
                4.. => self.add_columns::<4, FMA>(c, width, column, rows, blocks.clone(), weights),
                _ => self.add_columns::<1, FMA>(c, width, column, rows, blocks.clone(), weights),
            };
        }
    }

    /// The columns of the product from `column` on that fit into `V` registers. Returns how many.
    #[inline(always)]
    fn add_columns<const V: usize, const FMA: bool>(
        &self,
        c: &mut [f32],
        width: usize,
        column: usize,
        rows: &[u32],
        blocks: Range<usize>,
        weights: &[f32],
    ) -> usize {
        let from = column;
        let mut of_base = [[0.0; LANES]; V];
        for k in blocks.start * BLOCK..self.base.len().min(blocks.end * BLOCK) {
            add::<V, FMA>(&mut of_base, self.base[k], lanes(&weights[k * width + from..]));
        }
        for row in rows {
            let blocks = self.base.len().div_ceil(BLOCK) + 1;
            prefetch(&self.starts[*row as usize..][..1]);
            prefetch(&self.marks[*row as usize * blocks..][..blocks]);
        }
        for (i, row) in rows.iter().enumerate() {
            if let Some(next) = rows.get(i + AHEAD) {
                let (columns, values) = self.entries(*next as usize, blocks.clone());
                prefetch(columns);
                prefetch(values);
            }
            let mut sums = of_base;
            let (columns, values) = self.entries(*row as usize, blocks.clone());
            for (k, value) in columns.iter().zip(values) {
                add::<V, FMA>(&mut sums, *value, lanes(&weights[usize::from(*k) * width + from..]));
            }
            let c = lanes_mut::<V>(&mut c[i * width + from..]);
            for v in 0..V {
                for lane in 0..LANES {
                    c[v][lane] += sums[v][lane];
                }
            }
        }
        V * LANES
    }

    /// `c[k][j] += Σ x[rows[i]][k] · b[i][j]` over all rows `i`, for the columns of a block, but for what the bases add to it.
    #[inline(always)]
    pub(crate) fn add_transposed_product<const FMA: bool>(
        &self,
        c: &mut [f32],
        width: usize,
        block: usize,
        rows: &[u32],
        b: &[f32],
    ) {
        assert!(width.is_multiple_of(LANES));
        let mut column = 0;
        while column < width {
            column += match (width - column) / LANES {
                9 => self.add_rows::<9, FMA>(c, width, column, block, rows, b),
                8.. => self.add_rows::<8, FMA>(c, width, column, block, rows, b),
                4.. => self.add_rows::<4, FMA>(c, width, column, block, rows, b),
                _ => self.add_rows::<1, FMA>(c, width, column, block, rows, b),
            };
        }
    }

    #[inline(always)]
    fn add_rows<const V: usize, const FMA: bool>(
        &self,
        c: &mut [f32],
        width: usize,
        column: usize,
        block: usize,
        rows: &[u32],
        b: &[f32],
    ) -> usize {
        for (i, row) in rows.iter().enumerate() {
            let errors = *lanes::<V>(&b[i * width + column..]);
            let (columns, values) = self.entries(*row as usize, block..block + 1);
            for (k, value) in columns.iter().zip(values) {
                let c = lanes_mut::<V>(&mut c[(usize::from(*k) - block * BLOCK) * width + column..]);
                let mut sums = *c;
                add::<V, FMA>(&mut sums, *value, &errors);
                *c = sums;
            }
        }
        V * LANES
    }

    /// The bases of some columns.
    pub(crate) fn base(&self, columns: Range<usize>) -> &[f32] {
        &self.base[columns]
    }
}

impl Band {
    fn of(columns: &[&[f64]], factors: &[f64], base: &[f64], rows: &[usize]) -> Self {
        let blocks = columns.len().div_ceil(BLOCK) + 1;
        let mut band = Self { counts: vec![0; rows.len()], marks: vec![0; rows.len() * blocks], ..Self::default() };
        // For each column which of the rows have an entry, so that only those are looked at again.
        let mut present = Vec::with_capacity(columns.len());
        for (at, (column, base)) in columns.iter().zip(base).enumerate() {
            if at % BLOCK == 0 {
                band.mark(at / BLOCK, blocks);
            }
            let mut bits = 0u64;
            for (i, (count, row)) in band.counts.iter_mut().zip(rows).enumerate() {
                let is_present = column[*row] != *base;
                *count += u16::from(is_present);
                bits |= u64::from(is_present) << i;
            }
            present.push(bits);
        }
        band.mark(blocks - 1, blocks);
        let mut next: Vec<usize> = Vec::with_capacity(rows.len());
        let mut entries = 0;
        for count in &band.counts {
            next.push(entries);
            entries += usize::from(*count);
        }
        band.columns.resize(entries, 0);
        band.values.resize(entries, 0.0);
        for (at, (column, (base, factor))) in columns.iter().zip(base.iter().zip(factors)).enumerate() {
            let mut bits = present[at];
            while bits != 0 {
                let i = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                band.columns[next[i]] = at as u16;
                band.values[next[i]] = ((column[rows[i]] - base) * factor) as f32;
                next[i] += 1;
            }
        }
        band
    }

    /// What every row has before this block.
    fn mark(&mut self, block: usize, blocks: usize) {
        for (marks, count) in self.marks.chunks_mut(blocks).zip(&self.counts) {
            marks[block] = *count;
        }
    }

    /// Some rows, and of their columns those that have a new place among `count`, in the same order.
    fn some(from: &Sparse, kept: &[Option<u16>], count: usize, rows: &[usize]) -> Self {
        let blocks = count.div_ceil(BLOCK) + 1;
        let mut band = Self::default();
        for row in rows {
            let (columns, values) = from.entries(*row, 0..from.base.len().div_ceil(BLOCK));
            let (begin, mut block) = (band.values.len(), 0);
            for (column, value) in columns.iter().zip(values) {
                let Some(to) = kept[usize::from(*column)] else { continue };
                while block * BLOCK <= usize::from(to) {
                    band.marks.push((band.values.len() - begin) as u16);
                    block += 1;
                }
                band.columns.push(to);
                band.values.push(*value);
            }
            let entries = (band.values.len() - begin) as u16;
            band.marks.extend(std::iter::repeat_n(entries, blocks - block));
            band.counts.push(entries);
        }
        band
    }
}

/// The value that most of the rows have, if more than half have the same: each other value cancels one of it.
fn most_frequent(column: &[f64], rows: &[usize]) -> f64 {
    let (mut value, mut votes) = (0.0, 0usize);
    for row in rows {
        if votes == 0 {
            value = column[*row];
        }
        if column[*row] == value { votes += 1 } else { votes -= 1 }
    }
    value
}

#[inline(always)]
fn lanes<const V: usize>(values: &[f32]) -> &[[f32; LANES]; V] {
    values.as_chunks::<LANES>().0.first_chunk().expect("rows are as wide as the product")
}

#[inline(always)]
fn lanes_mut<const V: usize>(values: &mut [f32]) -> &mut [[f32; LANES]; V] {
    values.as_chunks_mut::<LANES>().0.first_chunk_mut().expect("rows are as wide as the product")
}

#[inline(always)]
fn add<const V: usize, const FMA: bool>(sums: &mut [[f32; LANES]; V], x: f32, row: &[[f32; LANES]; V]) {
    for v in 0..V {
        for lane in 0..LANES {
            sums[v][lane] = if FMA { x.mul_add(row[v][lane], sums[v][lane]) } else { sums[v][lane] + x * row[v][lane] };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::kernels::gemm::vectorized;

    #[inline(always)]
    fn product<const FMA: bool>(
        sparse: &Sparse,
        c: &mut [f32],
        width: usize,
        rows: &[u32],
        blocks: Range<usize>,
        weights: &[f32],
    ) {
        sparse.add_product::<FMA>(c, width, rows, blocks, weights);
    }
    #[inline(always)]
    fn transposed<const FMA: bool>(sparse: &Sparse, c: &mut [f32], width: usize, block: usize, rows: &[u32], b: &[f32]) {
        sparse.add_transposed_product::<FMA>(c, width, block, rows, b);
    }
    vectorized! {
        fn multiply(sparse: &Sparse, c: &mut [f32], width: usize, rows: &[u32], blocks: Range<usize>, weights: &[f32]) = product;
    }
    vectorized! {
        fn multiply_transposed(sparse: &Sparse, c: &mut [f32], width: usize, block: usize, rows: &[u32], b: &[f32]) = transposed;
    }

    /// Columns that are mostly 0, or mostly something else, and the same rows by themselves.
    fn example(columns: usize) -> (Sparse, Vec<Vec<f32>>) {
        let mut random = Run::new(4).random("sparse", 0);
        let values: Vec<Vec<f64>> = (0..columns)
            .map(|column| {
                let base = if column % 3 == 0 { 0.0 } else { random.normal() };
                (0..90).map(|_| if random.uniform() < 0.2 { random.normal() } else { base }).collect()
            })
            .collect();
        let factors: Vec<f64> = (0..columns).map(|_| 0.5 + random.uniform()).collect();
        let rows: Vec<usize> = (5..85).rev().collect();
        let slices: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        let sparse = Sparse::of(&slices, &factors, &rows).expect("most values are the same");
        let dense = rows.iter().map(|row| values.iter().zip(&factors).map(|(x, f)| (x[*row] * f) as f32).collect()).collect();
        (sparse, dense)
    }

    fn assert_rows(sparse: &Sparse, rows: &[Vec<f32>]) {
        assert_eq!(sparse.rows(), rows.len());
        for (row, values) in rows.iter().enumerate() {
            assert!(sparse.row(row).iter().zip(values).all(|(a, b)| (a - b).abs() < 1e-6), "{row}");
        }
    }

    #[test]
    fn rows_come_back() {
        for columns in [1, BLOCK - 1, BLOCK, BLOCK + 1, 100] {
            let (sparse, rows) = example(columns);
            assert_rows(&sparse, &rows);
            let some: Vec<usize> = (0..40).map(|row| row * 7 % 80).collect();
            assert_rows(&sparse.some_rows(&some), &some.iter().map(|row| rows[*row].clone()).collect::<Vec<_>>());
            let kept: Vec<usize> = (0..columns).filter(|column| column % 3 != 1).collect();
            let fewer: Vec<Vec<f32>> = rows.iter().map(|row| kept.iter().map(|column| row[*column]).collect()).collect();
            assert_rows(&sparse.some_columns(&kept), &fewer);
        }
    }

    #[test]
    fn many_different_values_are_refused() {
        let column: Vec<f64> = (0..50).map(f64::from).collect();
        assert!(Sparse::of(&[&column], &[1.0], &(0..50).collect::<Vec<_>>()).is_none());
    }

    #[test]
    fn products_equal_those_of_all_values() {
        let mut random = Run::new(5).random("sparse", 0);
        for (columns, width) in [(BLOCK + 1, 8), (130, 72), (2 * BLOCK, 24), (60, 104), (70, 64)] {
            let (sparse, rows) = example(columns);
            let mut draw = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
            let (weights, errors) = (draw(columns * width), draw(9 * width));
            let picked = [3u32, 3, 70, 0, 12, 44, 9, 8, 79];
            let blocks = columns.div_ceil(BLOCK);
            let mut c = vec![0.5; 9 * width];
            multiply(&sparse, &mut c, width, &picked, 1..blocks, &weights);
            for (i, j) in (0..9).flat_map(|i| (0..width).map(move |j| (i, j))) {
                let row = &rows[picked[i] as usize];
                let plain = 0.5 + (BLOCK..columns).map(|k| f64::from(row[k] * weights[k * width + j])).sum::<f64>();
                assert!((f64::from(c[i * width + j]) - plain).abs() < 1e-4, "{columns} {width} {i} {j}");
            }
            let block = blocks / 2;
            let (from, count) = (block * BLOCK, BLOCK.min(columns - block * BLOCK));
            let mut c = vec![0.5; count * width];
            multiply_transposed(&sparse, &mut c, width, block, &picked[..4], &errors);
            multiply_transposed(&sparse, &mut c, width, block, &picked[4..], &errors[4 * width..]);
            for (k, j) in (0..count).flat_map(|k| (0..width).map(move |j| (k, j))) {
                let base = sparse.base(from + k..from + k + 1)[0];
                let of = |i: usize| f64::from((rows[picked[i] as usize][from + k] - base) * errors[i * width + j]);
                let plain = 0.5 + (0..9).map(of).sum::<f64>();
                assert!((f64::from(c[k * width + j]) - plain).abs() < 1e-4, "{columns} {width} {k} {j}");
            }
        }
    }
}
