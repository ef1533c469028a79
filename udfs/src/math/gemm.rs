//! Products of small f32 matrices, for networks: a mini-batch against a layer's weights, forward and backward.
//!
//! They multiply single values of the left matrix, which is read along rows or along columns, with rows of the right one, whose width is a
//! multiple of [`LANES`]. Six rows by sixteen columns of sums stay in registers. Rows of the left matrix may lie anywhere: the rows of a
//! batch are read where they are, without being copied together first.

/// Widths of right-hand matrices are multiples of this.
pub(crate) const LANES: usize = 8;
/// Steps of the inner sum taken at a time: that many rows of sixteen columns stay in a first-level cache.
const DEPTH: usize = 256;
/// Values of a matrix that is too large for a cache.
const FAR: usize = 1 << 18;

/// The next multiple of [`LANES`].
pub(crate) fn padded(width: usize) -> usize {
    width.next_multiple_of(LANES)
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

/// `c[i][j] += Σ_k a[i][k] · b[k][j]` for `k < depth`, `j < width`, and every row of `a`; rows of `b` and `c` lie `width` apart.
///
/// The sum over `k` runs in order for every element, whatever the sizes, so that cutting the rows among threads does not show.
#[inline(always)]
pub(crate) fn add_product<const FMA: bool>(c: &mut [f32], width: usize, a: Picked<'_>, b: &[f32], depth: usize) {
    let rows = a.rows.len();
    if rows == 0 || depth == 0 {
        return;
    }
    assert!(width.is_multiple_of(LANES) && c.len() >= rows * width && b.len() >= depth * width);
    // Rows of a large table lie in memory, those of the layers behind in cache.
    let is_far = a.values.len() > FAR;
    // Plain loops and no closures: what is not inlined here would be compiled without wide registers.
    for from in (0..depth).step_by(DEPTH) {
        let depth = DEPTH.min(depth - from);
        for (column, wide) in columns(width) {
            for (row, height) in blocks(rows, wide) {
                let mut left = [std::ptr::null(); 12];
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
                    match (height, wide) {
                        (6, true) => along_rows::<6, 16, FMA>(c, &left, b, width, depth),
                        (5, true) => along_rows::<5, 16, FMA>(c, &left, b, width, depth),
                        (4, true) => along_rows::<4, 16, FMA>(c, &left, b, width, depth),
                        (3, true) => along_rows::<3, 16, FMA>(c, &left, b, width, depth),
                        (2, true) => along_rows::<2, 16, FMA>(c, &left, b, width, depth),
                        (_, true) => along_rows::<1, 16, FMA>(c, &left, b, width, depth),
                        (12, false) => along_rows::<12, 8, FMA>(c, &left, b, width, depth),
                        (11, false) => along_rows::<11, 8, FMA>(c, &left, b, width, depth),
                        (10, false) => along_rows::<10, 8, FMA>(c, &left, b, width, depth),
                        (9, false) => along_rows::<9, 8, FMA>(c, &left, b, width, depth),
                        (8, false) => along_rows::<8, 8, FMA>(c, &left, b, width, depth),
                        (7, false) => along_rows::<7, 8, FMA>(c, &left, b, width, depth),
                        (6, false) => along_rows::<6, 8, FMA>(c, &left, b, width, depth),
                        (5, false) => along_rows::<5, 8, FMA>(c, &left, b, width, depth),
                        (4, false) => along_rows::<4, 8, FMA>(c, &left, b, width, depth),
                        (3, false) => along_rows::<3, 8, FMA>(c, &left, b, width, depth),
                        (2, false) => along_rows::<2, 8, FMA>(c, &left, b, width, depth),
                        (_, false) => along_rows::<1, 8, FMA>(c, &left, b, width, depth),
                    }
                }
            }
        }
    }
}

/// `c[i][j] += Σ_k a[k][from + i] · b[k][j]` for `i < count`, `j < width`, and every row `k` of `a`: the product with the transpose.
#[inline(always)]
pub(crate) fn add_transposed_product<const FMA: bool>(
    c: &mut [f32],
    width: usize,
    a: Picked<'_>,
    from: usize,
    count: usize,
    b: &[f32],
    starts: &mut Vec<*const f32>,
) {
    let depth = a.rows.len();
    if count == 0 || depth == 0 {
        return;
    }
    assert!(width.is_multiple_of(LANES) && c.len() >= count * width && b.len() >= depth * width);
    starts.clear();
    starts.extend((0..depth).map(|row| a.row(row, from + count).wrapping_add(from)));
    for (column, wide) in columns(width) {
        for (row, height) in blocks(count, wide) {
            let (c, b) = (c[row * width + column..].as_mut_ptr(), b[column..].as_ptr());
            // SAFETY: as above; every start has `count` values behind it.
            unsafe {
                match (height, wide) {
                    (6, true) => along_columns::<6, 16, FMA>(c, starts, row, b, width),
                    (5, true) => along_columns::<5, 16, FMA>(c, starts, row, b, width),
                    (4, true) => along_columns::<4, 16, FMA>(c, starts, row, b, width),
                    (3, true) => along_columns::<3, 16, FMA>(c, starts, row, b, width),
                    (2, true) => along_columns::<2, 16, FMA>(c, starts, row, b, width),
                    (_, true) => along_columns::<1, 16, FMA>(c, starts, row, b, width),
                    (12, false) => along_columns::<12, 8, FMA>(c, starts, row, b, width),
                    (11, false) => along_columns::<11, 8, FMA>(c, starts, row, b, width),
                    (10, false) => along_columns::<10, 8, FMA>(c, starts, row, b, width),
                    (9, false) => along_columns::<9, 8, FMA>(c, starts, row, b, width),
                    (8, false) => along_columns::<8, 8, FMA>(c, starts, row, b, width),
                    (7, false) => along_columns::<7, 8, FMA>(c, starts, row, b, width),
                    (6, false) => along_columns::<6, 8, FMA>(c, starts, row, b, width),
                    (5, false) => along_columns::<5, 8, FMA>(c, starts, row, b, width),
                    (4, false) => along_columns::<4, 8, FMA>(c, starts, row, b, width),
                    (3, false) => along_columns::<3, 8, FMA>(c, starts, row, b, width),
                    (2, false) => along_columns::<2, 8, FMA>(c, starts, row, b, width),
                    (_, false) => along_columns::<1, 8, FMA>(c, starts, row, b, width),
                }
            }
        }
    }
}

/// Columns sixteen at a time, and eight in the end: where each lot begins, and whether it is a wide one.
#[inline(always)]
fn columns(width: usize) -> impl Iterator<Item = (usize, bool)> {
    (0..width).step_by(2 * LANES).map(move |column| (column, width - column >= 2 * LANES))
}

/// Rows in blocks of six, of narrow columns twelve, or of fewer where that leaves no small rest: where each begins, and how many it has.
#[inline(always)]
fn blocks(rows: usize, wide: bool) -> impl Iterator<Item = (usize, usize)> {
    let blocks = rows.div_ceil(if wide { 6 } else { 12 });
    let (small, large) = (rows / blocks, rows % blocks);
    (0..blocks).map(move |block| (block * small + block.min(large), small + usize::from(block < large)))
}

/// `M` rows by `N` columns of sums in registers, along rows of the left matrix.
///
/// # Safety
/// `a[..M]` must be readable for `depth` values, `b` for `depth` and `c` for `M` rows of `N` values `width` apart.
#[inline(always)]
unsafe fn along_rows<const M: usize, const N: usize, const FMA: bool>(
    c: *mut f32,
    a: &[*const f32; 12],
    b: *const f32,
    width: usize,
    depth: usize,
) {
    // SAFETY: by the contract of this function.
    unsafe {
        let mut sums = read::<M, N>(c, width);
        let mut right = b;
        for k in 0..depth {
            let row = right.cast::<[f32; N]>().read_unaligned();
            for i in 0..M {
                add::<N, FMA>(&mut sums[i], *a[i].add(k), &row);
            }
            right = right.add(width);
        }
        write(c, width, &sums);
    }
}

/// The same along columns: from the start of each of its rows, `from` values on.
///
/// # Safety
/// Every start must be readable for `from + M` values, `b` for as many and `c` for `M` rows of `N` values `width` apart.
#[inline(always)]
unsafe fn along_columns<const M: usize, const N: usize, const FMA: bool>(
    c: *mut f32,
    starts: &[*const f32],
    from: usize,
    b: *const f32,
    width: usize,
) {
    // SAFETY: by the contract of this function.
    unsafe {
        let mut sums = read::<M, N>(c, width);
        let mut right = b;
        for start in starts {
            let row = right.cast::<[f32; N]>().read_unaligned();
            let left = start.add(from);
            for i in 0..M {
                add::<N, FMA>(&mut sums[i], *left.add(i), &row);
            }
            right = right.add(width);
        }
        write(c, width, &sums);
    }
}

#[inline(always)]
fn add<const N: usize, const FMA: bool>(sums: &mut [f32; N], x: f32, row: &[f32; N]) {
    for j in 0..N {
        sums[j] = if FMA { x.mul_add(row[j], sums[j]) } else { sums[j] + x * row[j] };
    }
}

#[inline(always)]
unsafe fn read<const M: usize, const N: usize>(c: *const f32, width: usize) -> [[f32; N]; M] {
    let mut sums = [[0.0; N]; M];
    for (i, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the callers' contract covers `M` rows of `N` values.
        *sums = unsafe { c.add(i * width).cast::<[f32; N]>().read_unaligned() };
    }
    sums
}

#[inline(always)]
unsafe fn write<const M: usize, const N: usize>(c: *mut f32, width: usize, sums: &[[f32; N]; M]) {
    for (i, sums) in sums.iter().enumerate() {
        // SAFETY: the callers' contract covers `M` rows of `N` values.
        unsafe { c.add(i * width).cast::<[f32; N]>().write_unaligned(*sums) };
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
mod tests {
    use super::*;
    use crate::Run;

    vectorized! {
        fn multiply(c: &mut [f32], width: usize, a: Picked<'_>, b: &[f32], depth: usize) = add_product;
    }
    vectorized! {
        fn multiply_transposed(c: &mut [f32], width: usize, a: Picked<'_>, from: usize, count: usize, b: &[f32], starts: &mut Vec<*const f32>) =
            add_transposed_product;
    }

    /// Every shape around the sizes of the blocks, along rows and along columns, against the plain triple loop.
    #[test]
    fn equals_the_plain_product() {
        let mut random = Run::new(5).random("gemm", 0);
        let mut draw = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
        for (rows, width, depth) in [(1, 8, 1), (6, 16, 7), (7, 24, 300), (13, 72, 12), (5, 40, 513), (32, 8, 4), (11, 48, 256)] {
            let stride = depth + 3;
            let (a, b, start) = (draw(rows * stride), draw(depth.max(rows) * width), draw(depth.max(rows) * width));
            let picked: Vec<u32> = (0..rows as u32).rev().collect();
            let a = Picked { values: &a, stride, rows: &picked };
            let value = |row: usize, k: usize| f64::from(a.values[picked[row] as usize * stride + k]);
            let close = |c: &[f32], i: usize, j: usize, sum: f64| {
                let plain = f64::from(start[i * width + j]) + sum;
                assert!((f64::from(c[i * width + j]) - plain).abs() < 1e-3, "{rows} {width} {depth} ({i}, {j})");
            };
            let mut c = start.clone();
            multiply(&mut c, width, a, &b, depth);
            for (i, j) in (0..rows).flat_map(|i| (0..width).map(move |j| (i, j))) {
                close(&c, i, j, (0..depth).map(|k| value(i, k) * f64::from(b[k * width + j])).sum());
            }
            let mut c = start.clone();
            multiply_transposed(&mut c, width, a, 1, depth, &b, &mut Vec::new());
            for (i, j) in (0..depth).flat_map(|i| (0..width).map(move |j| (i, j))) {
                close(&c, i, j, (0..rows).map(|k| value(k, i + 1) * f64::from(b[k * width + j])).sum());
            }
        }
    }

    #[test]
    fn cutting_the_rows_does_not_show() {
        let mut random = Run::new(6).random("gemm", 0);
        let mut draw = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
        let (rows, width, depth) = (29usize, 24, 300);
        let (a, b) = (draw(rows * depth), draw(depth * width));
        let all: Vec<u32> = (0..rows as u32).collect();
        let some = |rows| Picked { values: &a, stride: depth, rows };
        let mut whole = vec![0.0; rows * width];
        multiply(&mut whole, width, some(&all), &b, depth);
        for cut in 1..rows {
            let mut parts = vec![0.0; rows * width];
            let (first, second) = parts.split_at_mut(cut * width);
            multiply(first, width, some(&all[..cut]), &b, depth);
            multiply(second, width, some(&all[cut..]), &b, depth);
            assert_eq!(parts, whole);
        }
    }

    #[test]
    #[should_panic]
    fn a_row_that_is_not_there_is_not_read() {
        multiply(&mut [0.0; 8], 8, Picked { values: &[1.0; 8], stride: 4, rows: &[2] }, &[1.0; 32], 4);
    }
}
