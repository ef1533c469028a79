//! Products of small f32 matrices, for networks: a mini-batch against a layer's weights, forward and backward.
//!
//! They multiply single values of the left matrix, which is read along rows or along columns, with rows of the right one, whose width is a
//! multiple of [`LANES`]. Six rows by sixteen columns of sums stay in registers, or three by twenty-four; where a processor has larger ones, six by
//! sixty-four or five by seventy-two. Rows of the left matrix may lie anywhere: the rows of a batch are read where they are, without being copied together first.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::kernels::gemm_avx512;

/// Widths of right-hand matrices are multiples of this.
pub(crate) const LANES: usize = 8;
/// What a vector register holds.
type Lanes = [f32; LANES];
/// Steps of the inner sum taken at a time: that many rows of two or three registers stay in a first-level cache. Broad ones do not, and do not have to:
/// there is more to multiply for every read.
const DEPTH: usize = 160;
/// Registers of a broad lot, which some processors can take at a time; or one more.
const BROAD: usize = 8;
const BROADER: usize = BROAD + 1;
/// Rows of sums of one register each that fill the registers.
const HEIGHT_MAX: usize = 12;
/// Rows of a transposed product taken at a time.
const ROWS: usize = 64;
/// Values of a matrix that is too large for a cache.
const FAR: usize = 1 << 18;

/// The next multiple of [`LANES`].
pub(crate) fn padded(width: usize) -> usize {
    width.next_multiple_of(LANES)
}

/// Calls a kernel for a number of rows and of registers that are known only now.
macro_rules! tile {
    ($kernel:ident, $height:expr, $vectors:expr, $arguments:tt) => {
        match ($height, $vectors) {
            (3, 3) => tile!($kernel, 3, 3, $arguments;),
            (2, 3) => tile!($kernel, 2, 3, $arguments;),
            (_, 3) => tile!($kernel, 1, 3, $arguments;),
            (6, 2) => tile!($kernel, 6, 2, $arguments;),
            (5, 2) => tile!($kernel, 5, 2, $arguments;),
            (4, 2) => tile!($kernel, 4, 2, $arguments;),
            (3, 2) => tile!($kernel, 3, 2, $arguments;),
            (2, 2) => tile!($kernel, 2, 2, $arguments;),
            (_, 2) => tile!($kernel, 1, 2, $arguments;),
            (12, _) => tile!($kernel, 12, 1, $arguments;),
            (11, _) => tile!($kernel, 11, 1, $arguments;),
            (10, _) => tile!($kernel, 10, 1, $arguments;),
            (9, _) => tile!($kernel, 9, 1, $arguments;),
            (8, _) => tile!($kernel, 8, 1, $arguments;),
            (7, _) => tile!($kernel, 7, 1, $arguments;),
            (6, _) => tile!($kernel, 6, 1, $arguments;),
            (5, _) => tile!($kernel, 5, 1, $arguments;),
            (4, _) => tile!($kernel, 4, 1, $arguments;),
            (3, _) => tile!($kernel, 3, 1, $arguments;),
            (2, _) => tile!($kernel, 2, 1, $arguments;),
            _ => tile!($kernel, 1, 1, $arguments;),
        }
    };
    ($kernel:ident, $height:literal, $vectors:literal, ($($argument:expr),*);) => {
        $kernel::<$height, $vectors, FMA>($($argument),*)
    };
}

/// Some rows of a matrix, in any order: row `i` begins at `values[rows[i] * stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Picked<'a> {
    pub values: &'a [f32],
    pub stride: usize,
    pub rows: &'a [u32],
}

impl Picked<'_> {
    /// Where a row begins, if it has so many values.
    #[inline(always)]
    fn row(&self, at: usize, length: usize) -> *const f32 {
        self.values[self.rows[at] as usize * self.stride..][..length].as_ptr()
    }
}

/// What the sums of a product begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onto {
    Zero,
    /// What is there.
    Sums,
}

/// `c[i][j] = Σ_k a[i][k] · b[k][j]` for `k < depth`, `j < width`, and every row of `a`, onto zero or what `c` has; rows of `b` and `c` lie `width` apart.
///
/// The sum over `k` runs in order for every element, whatever the sizes, so that cutting the rows among threads does not show.
#[inline(always)]
pub(crate) fn product<const FMA: bool>(c: &mut [f32], width: usize, onto: Onto, a: Picked<'_>, b: &[f32], depth: usize) {
    let rows = a.rows.len();
    assert!(width.is_multiple_of(LANES) && c.len() >= rows * width && b.len() >= depth * width);
    if depth == 0 && onto == Onto::Zero {
        c[..rows * width].fill(0.0);
    }
    if rows == 0 || depth == 0 {
        return;
    }
    // Rows of a large table lie in memory, those of the layers behind in cache.
    let is_far = a.values.len() > FAR;
    let is_broad = FMA && has_broad_registers();
    // Plain loops and no closures: what is not inlined here would be compiled without wide registers.
    for from in (0..depth).step_by(DEPTH) {
        let (depth, adds) = (DEPTH.min(depth - from), onto == Onto::Sums || from > 0);
        for (column, vectors) in lots(width, is_broad) {
            for (row, height) in blocks(rows, vectors) {
                let mut left = [std::ptr::null(); HEIGHT_MAX];
                if column == 0 && is_far {
                    for next in row + height..rows.min(row + 2 * height) {
                        prefetch(&a.values[a.rows[next] as usize * a.stride + from..][..depth]);
                    }
                }
                for i in 0..height {
                    left[i] = a.row(row + i, from + depth).wrapping_add(from);
                }
                let (c, b) = (c[row * width + column..].as_mut_ptr(), b[from * width + column..].as_ptr());
                // SAFETY: the assertions above and `Picked::row` bound every row, column and step that the kernel touches.
                unsafe {
                    match vectors {
                        #[cfg(target_arch = "x86_64")]
                        BROAD => gemm_avx512::along_rows::<false>(c, &left[..height], b, width, depth, adds),
                        #[cfg(target_arch = "x86_64")]
                        BROADER => gemm_avx512::along_rows::<true>(c, &left[..height], b, width, depth, adds),
                        _ => tile!(along_rows, height, vectors, (c, &left, b, width, depth, adds)),
                    }
                }
            }
        }
    }
}

/// `c[i][j] = Σ_k a[k][from + i] · b[k][j]` for some columns `from + i` of `a`, `j < width`, and every row `k`, onto zero or what `c` has: the product
/// with the transpose. Meanwhile the memory is asked for the same columns of the rows `coming`.
#[inline(always)]
pub(crate) fn transposed_product<const FMA: bool>(
    c: &mut [f32],
    width: usize,
    onto: Onto,
    a: Picked<'_>,
    columns: Range<usize>,
    b: &[f32],
    coming: &[u32],
) {
    let (depth, from, count) = (a.rows.len(), columns.start, columns.len());
    assert!(width.is_multiple_of(LANES) && c.len() >= count * width && b.len() >= depth * width);
    if depth == 0 && onto == Onto::Zero {
        c[..count * width].fill(0.0);
    }
    if count == 0 {
        return;
    }
    let is_broad = FMA && has_broad_registers();
    // Some with every block of registers, because more requests at a time would keep the kernel waiting.
    let mut tiles = 0;
    for (_, vectors) in lots(width, is_broad) {
        tiles += blocks(count, vectors).count() * depth.div_ceil(ROWS);
    }
    let share = coming.len().div_ceil(tiles.max(1));
    let mut coming = coming.iter();
    for first in (0..depth).step_by(ROWS) {
        let (rows, adds) = (ROWS.min(depth - first), onto == Onto::Sums || first > 0);
        let mut starts = [std::ptr::null(); ROWS];
        for k in 0..rows {
            starts[k] = a.row(first + k, columns.end).wrapping_add(from);
        }
        for (column, vectors) in lots(width, is_broad) {
            for (row, height) in blocks(count, vectors) {
                for row in coming.by_ref().take(share) {
                    prefetch(&a.values[*row as usize * a.stride + from..][..count]);
                }
                let (c, b) = (c[row * width + column..].as_mut_ptr(), b[first * width + column..].as_ptr());
                // SAFETY: as above; every start has `count` values behind it.
                unsafe {
                    match vectors {
                        #[cfg(target_arch = "x86_64")]
                        BROAD => gemm_avx512::along_columns::<false>(c, height, &starts[..rows], row, b, width, adds),
                        #[cfg(target_arch = "x86_64")]
                        BROADER => gemm_avx512::along_columns::<true>(c, height, &starts[..rows], row, b, width, adds),
                        _ => tile!(along_columns, height, vectors, (c, &starts[..rows], row, b, width, adds)),
                    }
                }
            }
        }
    }
}

/// `c[i][0] += Σ_k a[i][k] · b[k]` for every row of `a`: [`product`] with a single column, eight times as fast with registers along `k`.
/// Rows of `c` lie `width` apart; all of `b` counts, whole registers.
#[inline(always)]
pub(crate) fn add_single_product<const FMA: bool>(c: &mut [f32], width: usize, a: Picked<'_>, b: &[f32]) {
    for (i, c) in c.chunks_mut(width).take(a.rows.len()).enumerate() {
        let left = &a.values[a.rows[i] as usize * a.stride..][..b.len()];
        let mut sums = [0.0; LANES];
        for (x, y) in left.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
            let (x, y) = (*x, *y);
            for lane in 0..LANES {
                sums[lane] = if FMA { x[lane].mul_add(y[lane], sums[lane]) } else { sums[lane] + x[lane] * y[lane] };
            }
        }
        c[0] += sums.iter().sum::<f32>();
    }
}

/// `c[i][0] += Σ_k a[k][columns.start + i] · b[k][0]`: [`transposed_product`] with a single column, in the same way.
#[inline(always)]
pub(crate) fn add_single_transposed_product<const FMA: bool>(
    c: &mut [f32],
    width: usize,
    a: Picked<'_>,
    columns: Range<usize>,
    b: &[f32],
) {
    for (block, c) in c.chunks_mut(LANES * width).enumerate() {
        let from = columns.start + block * LANES;
        let mut sums = [0.0; LANES];
        for (row, b) in a.rows.iter().zip(b.chunks(width)) {
            let x: [f32; LANES] = *a.values[*row as usize * a.stride + from..].first_chunk().expect("rows are whole registers");
            for lane in 0..LANES {
                sums[lane] = if FMA { b[0].mul_add(x[lane], sums[lane]) } else { sums[lane] + b[0] * x[lane] };
            }
        }
        for (c, sum) in c.chunks_mut(width).zip(sums) {
            c[0] += sum;
        }
    }
}

/// Whether this processor can take 64 columns at a time.
#[inline(always)]
fn has_broad_registers() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Columns by registers: where each lot begins, and how many registers it has. As many as can be taken at a time; otherwise two, and once three where
/// two do not divide the width: one alone would spend more time on reading than on multiplying.
#[inline(always)]
fn lots(width: usize, is_broad: bool) -> impl Iterator<Item = (usize, usize)> {
    let vectors = width / LANES;
    let mut next = 0;
    std::iter::from_fn(move || {
        let from = next;
        next += match vectors - from {
            0 => return None,
            BROADER if is_broad => BROADER,
            BROAD.. if is_broad => BROAD,
            left if left % 2 == 1 => left.min(3),
            _ => 2,
        };
        Some((from * LANES, next - from))
    })
}

/// Rows in blocks whose sums fill the registers, or of fewer where that leaves no small rest: where each begins, and how many it has.
#[inline(always)]
fn blocks(rows: usize, vectors: usize) -> impl Iterator<Item = (usize, usize)> {
    let blocks = rows.div_ceil(match vectors {
        3 => 3,
        2 | BROAD => 6,
        BROADER => 5,
        _ => HEIGHT_MAX,
    });
    let (small, large) = (rows / blocks, rows % blocks);
    (0..blocks).map(move |block| (block * small + block.min(large), small + usize::from(block < large)))
}

/// `M` rows by `V` registers of sums, along rows of the left matrix.
///
/// # Safety
/// `a[..M]` must be readable for `depth` values, `b` for `depth` and `c` for `M` rows of `V` registers `width` apart.
#[inline(always)]
unsafe fn along_rows<const M: usize, const V: usize, const FMA: bool>(
    c: *mut f32,
    a: &[*const f32; HEIGHT_MAX],
    b: *const f32,
    width: usize,
    depth: usize,
    adds: bool,
) {
    // SAFETY: by the contract of this function.
    unsafe {
        let mut sums = if adds { read::<M, V>(c, width) } else { [[[0.0; LANES]; V]; M] };
        let mut right = b;
        for k in 0..depth {
            let row = read_row::<V>(right);
            for i in 0..M {
                add::<V, FMA>(&mut sums[i], *a[i].add(k), &row);
            }
            right = right.wrapping_add(width);
        }
        write(c, width, &sums);
    }
}

/// The same along columns: from the start of each of its rows, `from` values on.
///
/// # Safety
/// Every start must be readable for `from + M` values, `b` for as many and `c` for `M` rows of `V` registers `width` apart.
#[inline(always)]
unsafe fn along_columns<const M: usize, const V: usize, const FMA: bool>(
    c: *mut f32,
    starts: &[*const f32],
    from: usize,
    b: *const f32,
    width: usize,
    adds: bool,
) {
    // SAFETY: by the contract of this function.
    unsafe {
        let mut sums = if adds { read::<M, V>(c, width) } else { [[[0.0; LANES]; V]; M] };
        let mut right = b;
        for start in starts {
            let row = read_row::<V>(right);
            let left = start.add(from);
            for i in 0..M {
                add::<V, FMA>(&mut sums[i], *left.add(i), &row);
            }
            right = right.wrapping_add(width);
        }
        write(c, width, &sums);
    }
}

#[inline(always)]
fn add<const V: usize, const FMA: bool>(sums: &mut [Lanes; V], x: f32, row: &[Lanes; V]) {
    for v in 0..V {
        for lane in 0..LANES {
            let (sum, value) = (&mut sums[v][lane], row[v][lane]);
            *sum = if FMA { x.mul_add(value, *sum) } else { *sum + x * value };
        }
    }
}

/// # Safety
/// `c` must be readable for `M` rows of `V` registers, `width` values apart.
#[inline(always)]
unsafe fn read<const M: usize, const V: usize>(c: *const f32, width: usize) -> [[Lanes; V]; M] {
    let mut sums = [[[0.0; LANES]; V]; M];
    for (i, sums) in sums.iter_mut().enumerate() {
        // SAFETY: by the contract of this function.
        *sums = unsafe { read_row(c.add(i * width)) };
    }
    sums
}

/// # Safety
/// `row` must be readable for `V` registers.
#[inline(always)]
unsafe fn read_row<const V: usize>(row: *const f32) -> [Lanes; V] {
    let mut values = [[0.0; LANES]; V];
    for (v, values) in values.iter_mut().enumerate() {
        // SAFETY: by the contract of this function.
        *values = unsafe { row.add(v * LANES).cast::<Lanes>().read_unaligned() };
    }
    values
}

/// # Safety
/// `c` must be writable for `M` rows of `V` registers, `width` values apart.
#[inline(always)]
unsafe fn write<const M: usize, const V: usize>(c: *mut f32, width: usize, sums: &[[Lanes; V]; M]) {
    for (i, sums) in sums.iter().enumerate() {
        for (v, sums) in sums.iter().enumerate() {
            // SAFETY: by the contract of this function.
            unsafe { c.add(i * width + v * LANES).cast::<Lanes>().write_unaligned(*sums) };
        }
    }
}

/// Asks the memory for what will be read soon.
#[inline(always)]
pub(crate) fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(values)).step_by(64) {
        // SAFETY: nothing is read; an address that is not there would be passed over.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(values.as_ptr().cast::<i8>().add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Runs `body::<FMA>` compiled for the vector units that this processor has.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($life:lifetime),*>)? ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident;) => {
        $(#[$meta])*
        $vis fn $name $(<$($life),*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn fast $(<$($life),*>)? ($($arg: $ty),*) $(-> $ret)? {
                    $body::<true>($($arg),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has the features that the function was compiled for.
                    return unsafe { fast($($arg),*) };
                }
            }
            // Elsewhere than on old x86 processors fused multiplication is an instruction, and gives the same bits.
            $body::<{ !cfg!(target_arch = "x86_64") }>($($arg),*)
        }
    };
}
pub(crate) use vectorized;

#[cfg(test)]
mod tests;
