//! The kernels of [`gemm`](crate::kernels::gemm) for 64 or 72 columns, on processors with 32 registers of 16 values: six rows of sums by four registers, or five
//! rows by four and a half. Every sum is taken in the same order as there, so that it has the same bits.
//!
//! With half as many instructions for the same work, reading is done in the shade of multiplying: what 67 columns need is done at 87 % of a core's
//! peak, where registers of eight values come to 80.

use std::arch::asm;
use std::arch::x86_64::{
    __m256, __m512, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps, _mm512_castps512_ps256,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

/// Values of a register.
const LANES: usize = 16;
/// Registers of a row.
const VECTORS: usize = 4;

/// Calls a kernel for a number of rows that is known only now.
macro_rules! of_height {
    ($height:expr, $kernel:ident $arguments:tt) => {
        match $height {
            1 => of_height!($kernel 1 $arguments),
            2 => of_height!($kernel 2 $arguments),
            3 => of_height!($kernel 3 $arguments),
            4 => of_height!($kernel 4 $arguments),
            5 => of_height!($kernel 5 $arguments),
            _ => of_height!($kernel 6 $arguments),
        }
    };
    ($kernel:ident $height:literal ($($argument:expr),*)) => {
        $kernel::<$height, IS_LONGER>($($argument),*)
    };
}

/// `c[i][j] = Σ_k a[i][k] · b[k][j]` for 64 columns `j`, or 72 if they are longer, `k < depth`, and the rows of `a`, at most six, or five; `adds`: onto
/// what `c` has. Rows of `b` and `c` lie `width` apart.
///
/// # Safety
/// The processor must have the registers; every row of `a` must be readable for `depth` values, `b` for `depth` rows and `c` for as many as `a` has.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) unsafe fn along_rows<const IS_LONGER: bool>(
    c: *mut f32,
    a: &[*const f32],
    b: *const f32,
    width: usize,
    depth: usize,
    adds: bool,
) {
    // SAFETY: by the contract of this function.
    unsafe { of_height!(a.len(), rows(c, a, b, width, depth, adds)) }
}

/// `c[i][j] = Σ_k a[k][from + i] · b[k][j]` for as many columns `j`, `height` columns of `a`, at most as many as rows above, and every row `k`;
/// `adds` and `width` as above.
///
/// # Safety
/// The processor must have the registers; every row of `a` must be readable for `from + height` values, `b` for as many rows as `a` has, and `c`
/// for `height`.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) unsafe fn along_columns<const IS_LONGER: bool>(
    c: *mut f32,
    height: usize,
    a: &[*const f32],
    from: usize,
    b: *const f32,
    width: usize,
    adds: bool,
) {
    // SAFETY: by the contract of this function.
    unsafe { of_height!(height, columns(c, a, from, b, width, adds)) }
}

/// Values of a row: of its sums, or what is multiplied.
#[derive(Clone, Copy)]
struct Row {
    values: [__m512; VECTORS],
    /// Those of a longer row.
    rest: __m256,
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn rows<const M: usize, const IS_LONGER: bool>(
    c: *mut f32,
    a: &[*const f32],
    b: *const f32,
    width: usize,
    depth: usize,
    adds: bool,
) {
    let a: &[*const f32; M] = a.first_chunk().expect("it has as many rows");
    // SAFETY: by the contract of the caller.
    unsafe {
        let mut sums = if adds { read_all::<M, IS_LONGER>(c, width) } else { [zeros(); M] };
        let mut right = b;
        for k in 0..depth {
            let row = read::<IS_LONGER>(right);
            for i in 0..M {
                add::<IS_LONGER>(&mut sums[i], a[i].add(k), &row);
            }
            right = right.wrapping_add(width);
        }
        write_all::<M, IS_LONGER>(c, width, &sums);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn columns<const M: usize, const IS_LONGER: bool>(
    c: *mut f32,
    a: &[*const f32],
    from: usize,
    b: *const f32,
    width: usize,
    adds: bool,
) {
    // SAFETY: by the contract of the caller.
    unsafe {
        let mut sums = if adds { read_all::<M, IS_LONGER>(c, width) } else { [zeros(); M] };
        let mut right = b;
        for start in a {
            let (row, left) = (read::<IS_LONGER>(right), start.add(from));
            for i in 0..M {
                add::<IS_LONGER>(&mut sums[i], left.add(i), &row);
            }
            right = right.wrapping_add(width);
        }
        write_all::<M, IS_LONGER>(c, width, &sums);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn zeros() -> Row {
    Row { values: [_mm512_setzero_ps(); VECTORS], rest: _mm256_setzero_ps() }
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn add<const IS_LONGER: bool>(sums: &mut Row, x: *const f32, row: &Row) {
    // SAFETY: by the contract of the caller.
    let x = unsafe { everywhere(x) };
    for v in 0..VECTORS {
        sums.values[v] = _mm512_fmadd_ps(x, row.values[v], sums.values[v]);
    }
    if IS_LONGER {
        sums.rest = _mm256_fmadd_ps(_mm512_castps512_ps256(x), row.rest, sums.rest);
    }
}

/// A value in all places of a register.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn everywhere(x: *const f32) -> __m512 {
    let all: __m512;
    // `_mm512_set1_ps` would do, if the compiler did not fill half a register first, where half a register is wanted too, and then the whole from
    // the half: that takes a unit which has to multiply.
    // SAFETY: by the contract of the caller; a value is read, and nothing else touched.
    unsafe {
        asm!("vbroadcastss {}, dword ptr [{}]", out(zmm_reg) all, in(reg) x, options(pure, readonly, nostack, preserves_flags))
    };
    all
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn read<const IS_LONGER: bool>(from: *const f32) -> Row {
    let mut row = zeros();
    // SAFETY: by the contract of the caller.
    unsafe {
        for v in 0..VECTORS {
            row.values[v] = _mm512_loadu_ps(from.add(v * LANES));
        }
        if IS_LONGER {
            row.rest = _mm256_loadu_ps(from.add(VECTORS * LANES));
        }
    }
    row
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn read_all<const M: usize, const IS_LONGER: bool>(c: *const f32, width: usize) -> [Row; M] {
    let mut sums = [zeros(); M];
    for (i, sums) in sums.iter_mut().enumerate() {
        // SAFETY: by the contract of the caller.
        *sums = unsafe { read::<IS_LONGER>(c.add(i * width)) };
    }
    sums
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn write_all<const M: usize, const IS_LONGER: bool>(c: *mut f32, width: usize, sums: &[Row; M]) {
    for (i, sums) in sums.iter().enumerate() {
        // SAFETY: by the contract of the caller.
        unsafe {
            for v in 0..VECTORS {
                _mm512_storeu_ps(c.add(i * width + v * LANES), sums.values[v]);
            }
            if IS_LONGER {
                _mm256_storeu_ps(c.add(i * width + VECTORS * LANES), sums.rest);
            }
        }
    }
}
