//! Products of small f32 matrices, for networks: a mini-batch against a layer's weights, forward and backward.
//!
//! One kernel does all of them. It multiplies single values of the left matrix, which may be read along rows or along columns,
//! with rows of the right one, whose width is a multiple of [`LANES`]. Six rows by sixteen columns of sums stay in registers.

/// Widths of right-hand matrices are multiples of this.
pub(crate) const LANES: usize = 8;
/// Steps of the inner sum taken at a time: that many rows of sixteen columns stay in a first-level cache.
const DEPTH: usize = 256;

/// The next multiple of [`LANES`].
pub(crate) fn padded(width: usize) -> usize {
    width.next_multiple_of(LANES)
}

/// A matrix that is read value by value: element `(i, k)` is `values[i * row + k * step]`.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub values: &'a [f32],
    pub row: usize,
    pub step: usize,
}

/// `c[i][j] += Σ_k a(i, k) · b[k][j]` for `i < rows`, `k < depth`, `j < width`; rows of `b` and `c` lie `width` apart.
///
/// The sum over `k` runs in order for every element, whatever the sizes, so that cutting the rows among threads does not show.
#[inline(always)]
pub(crate) fn add_product<const FMA: bool>(c: &mut [f32], rows: usize, width: usize, a: Left<'_>, b: &[f32], depth: usize) {
    if rows == 0 || depth == 0 {
        return;
    }
    assert!(width.is_multiple_of(LANES) && c.len() >= rows * width && b.len() >= depth * width);
    assert!(a.values.len() > (rows - 1) * a.row + (depth - 1) * a.step);
    // Rows in blocks of six, or of five where that leaves no small rest.
    let blocks = rows.div_ceil(6);
    let (small, large) = (rows / blocks, rows % blocks);
    for from in (0..depth).step_by(DEPTH) {
        let depth = DEPTH.min(depth - from);
        let mut column = 0;
        while column < width {
            let wide = width - column >= 2 * LANES;
            let mut row = 0;
            for block in 0..blocks {
                let height = small + usize::from(block < large);
                // SAFETY: the assertions above bound every row, column and step that the kernel touches.
                unsafe {
                    let c = c.as_mut_ptr().add(row * width + column);
                    let a = Strided { at: a.values.as_ptr().add(row * a.row + from * a.step), row: a.row, step: a.step };
                    let b = b.as_ptr().add(from * width + column);
                    match (height, wide) {
                        (6, true) => kernel::<6, 16, FMA>(c, a, b, width, depth),
                        (5, true) => kernel::<5, 16, FMA>(c, a, b, width, depth),
                        (4, true) => kernel::<4, 16, FMA>(c, a, b, width, depth),
                        (3, true) => kernel::<3, 16, FMA>(c, a, b, width, depth),
                        (2, true) => kernel::<2, 16, FMA>(c, a, b, width, depth),
                        (_, true) => kernel::<1, 16, FMA>(c, a, b, width, depth),
                        (6, false) => kernel::<6, 8, FMA>(c, a, b, width, depth),
                        (5, false) => kernel::<5, 8, FMA>(c, a, b, width, depth),
                        (4, false) => kernel::<4, 8, FMA>(c, a, b, width, depth),
                        (3, false) => kernel::<3, 8, FMA>(c, a, b, width, depth),
                        (2, false) => kernel::<2, 8, FMA>(c, a, b, width, depth),
                        (_, false) => kernel::<1, 8, FMA>(c, a, b, width, depth),
                    }
                }
                row += height;
            }
            column += if wide { 2 * LANES } else { LANES };
        }
    }
}

#[derive(Clone, Copy)]
struct Strided {
    at: *const f32,
    row: usize,
    step: usize,
}

/// `M` rows by `N` columns of sums in registers.
///
/// # Safety
/// `a` must be readable for `M` rows and `depth` steps, `b` for `depth` and `c` for `M` rows of `N` values `width` apart.
#[inline(always)]
unsafe fn kernel<const M: usize, const N: usize, const FMA: bool>(
    c: *mut f32,
    a: Strided,
    b: *const f32,
    width: usize,
    depth: usize,
) {
    let mut sums = [[0.0f32; N]; M];
    // SAFETY: by the contract of this function.
    unsafe {
        for i in 0..M {
            sums[i] = c.add(i * width).cast::<[f32; N]>().read_unaligned();
        }
        let (mut left, mut right) = (a.at, b);
        for _ in 0..depth {
            let row = right.cast::<[f32; N]>().read_unaligned();
            for i in 0..M {
                let x = *left.add(i * a.row);
                for j in 0..N {
                    sums[i][j] = if FMA { x.mul_add(row[j], sums[i][j]) } else { sums[i][j] + x * row[j] };
                }
            }
            left = left.add(a.step);
            right = right.add(width);
        }
        for i in 0..M {
            c.add(i * width).cast::<[f32; N]>().write_unaligned(sums[i]);
        }
    }
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
        fn multiply(c: &mut [f32], rows: usize, width: usize, a: Left<'_>, b: &[f32], depth: usize) = add_product;
    }

    /// Every shape around the sizes of the blocks, along rows and along columns, against the plain triple loop.
    #[test]
    fn equals_the_plain_product() {
        let mut random = Run::new(5).random("gemm", 0);
        let mut draw = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
        for (rows, width, depth) in [(1, 8, 1), (6, 16, 7), (7, 24, 300), (13, 72, 12), (5, 40, 513), (32, 8, 4), (11, 48, 256)] {
            let (a, b, start) = (draw(rows * depth), draw(depth * width), draw(rows * width));
            for (row, step) in [(depth, 1), (1, rows)] {
                let mut c = start.clone();
                multiply(&mut c, rows, width, Left { values: &a, row, step }, &b, depth);
                for i in 0..rows {
                    for j in 0..width {
                        let sum: f64 = (0..depth).map(|k| f64::from(a[i * row + k * step]) * f64::from(b[k * width + j])).sum();
                        let plain = f64::from(start[i * width + j]) + sum;
                        assert!((f64::from(c[i * width + j]) - plain).abs() < 1e-3, "{rows} {width} {depth} ({i}, {j})");
                    }
                }
            }
        }
    }

    #[test]
    fn cutting_the_rows_does_not_show() {
        let mut random = Run::new(6).random("gemm", 0);
        let mut draw = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
        let (rows, width, depth) = (29, 24, 300);
        let (a, b) = (draw(rows * depth), draw(depth * width));
        let mut whole = vec![0.0; rows * width];
        multiply(&mut whole, rows, width, Left { values: &a, row: depth, step: 1 }, &b, depth);
        for cut in 1..rows {
            let mut parts = vec![0.0; rows * width];
            let (first, second) = parts.split_at_mut(cut * width);
            multiply(first, cut, width, Left { values: &a, row: depth, step: 1 }, &b, depth);
            multiply(second, rows - cut, width, Left { values: &a[cut * depth..], row: depth, step: 1 }, &b, depth);
            assert_eq!(parts, whole);
        }
    }
}
