use super::*;
use crate::Run;

vectorized! {
    fn multiply(c: &mut [f32], width: usize, onto: Onto, a: Picked<'_>, b: &[f32], depth: usize) = product;
}
vectorized! {
    fn multiply_transposed(c: &mut [f32], width: usize, onto: Onto, a: Picked<'_>, columns: Range<usize>, b: &[f32], coming: &[u32]) =
        transposed_product;
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
        multiply(&mut c, width, Onto::Sums, a, &b, depth);
        for (i, j) in (0..rows).flat_map(|i| (0..width).map(move |j| (i, j))) {
            close(&c, i, j, (0..depth).map(|k| value(i, k) * f64::from(b[k * width + j])).sum());
        }
        let mut c = start.clone();
        multiply_transposed(&mut c, width, Onto::Sums, a, 1..depth + 1, &b, &picked);
        for (i, j) in (0..depth).flat_map(|i| (0..width).map(move |j| (i, j))) {
            close(&c, i, j, (0..rows).map(|k| value(k, i + 1) * f64::from(b[k * width + j])).sum());
        }
    }
}

vectorized! {
    fn multiply_single(c: &mut [f32], width: usize, a: Picked<'_>, b: &[f32]) = add_single_product;
}
vectorized! {
    fn multiply_single_transposed(c: &mut [f32], width: usize, a: Picked<'_>, columns: Range<usize>, b: &[f32]) =
        add_single_transposed_product;
}

#[test]
fn a_single_column_is_a_column_of_the_product() {
    let mut random = Run::new(7).random("gemm", 0);
    let mut draw = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
    let (rows, depth, width) = (13, 72, LANES);
    let (a, right, errors) = (draw(rows * depth), draw(depth), draw(rows * width));
    let picked: Vec<u32> = (0..rows as u32).rev().collect();
    let a = Picked { values: &a, stride: depth, rows: &picked };
    let mut b = vec![0.0; depth * width];
    b.iter_mut().step_by(width).zip(&right).for_each(|(b, right)| *b = *right);
    let (mut all, mut single) = (vec![0.5; rows * width], vec![0.5; rows * width]);
    multiply(&mut all, width, Onto::Sums, a, &b, depth);
    multiply_single(&mut single, width, a, &right);
    assert!(all.iter().zip(&single).all(|(x, y)| (x - y).abs() < 1e-4));
    let (mut all, mut single) = (vec![0.5; 19 * width], vec![0.5; 19 * width]);
    multiply_transposed(&mut all, width, Onto::Sums, a, 24..43, &errors, &[]);
    multiply_single_transposed(&mut single, width, a, 24..43, &errors);
    assert!(all.iter().zip(&single).step_by(width).all(|(x, y)| (x - y).abs() < 1e-4));
    assert!(single.iter().enumerate().all(|(at, x)| at % width == 0 || *x == 0.5));
}

/// One after the other, whatever registers they are taken in: so that a processor with larger ones gives the same bits.
#[test]
fn every_sum_is_taken_in_order() {
    let mut random = Run::new(8).random("gemm", 0);
    let mut draw = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
    let is_fused = has_fused();
    let next = |sum: f32, x: f32, y: f32| if is_fused { x.mul_add(y, sum) } else { sum + x * y };
    for (rows, width, depth) in [(13, 64, 170), (23, 72, 70), (7, 128, 9), (70, 136, 33), (6, 80, 5), (31, 24, 30)] {
        let (a, b, errors) = (draw(rows * depth), draw(depth * width), draw(rows * width));
        let picked: Vec<u32> = (0..rows as u32).collect();
        let left = Picked { values: &a, stride: depth, rows: &picked };
        for onto in [Onto::Zero, Onto::Sums] {
            let start = if onto == Onto::Sums { 0.5 } else { 0.0 };
            let (mut c, mut turned) = (vec![0.5; rows * width], vec![0.5; depth * width]);
            multiply(&mut c, width, onto, left, &b, depth);
            multiply_transposed(&mut turned, width, onto, left, 0..depth, &errors, &picked);
            for j in 0..width {
                for i in 0..rows {
                    let sum = (0..depth).fold(start, |sum, k| next(sum, a[i * depth + k], b[k * width + j]));
                    assert_eq!(c[i * width + j], sum, "{rows} {width} {depth} ({i}, {j})");
                }
                for i in 0..depth {
                    let sum = (0..rows).fold(start, |sum, k| next(sum, a[k * depth + i], errors[k * width + j]));
                    assert_eq!(turned[i * width + j], sum, "{rows} {width} {depth} ({i}, {j}), transposed");
                }
            }
        }
    }
}

fn has_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    true
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
    multiply(&mut whole, width, Onto::Sums, some(&all), &b, depth);
    for cut in 1..rows {
        let mut parts = vec![0.0; rows * width];
        let (first, second) = parts.split_at_mut(cut * width);
        multiply(first, width, Onto::Sums, some(&all[..cut]), &b, depth);
        multiply(second, width, Onto::Sums, some(&all[cut..]), &b, depth);
        assert_eq!(parts, whole);
    }
}

#[test]
#[should_panic]
fn a_row_that_is_not_there_is_not_read() {
    multiply(&mut [0.0; 8], 8, Onto::Sums, Picked { values: &[1.0; 8], stride: 4, rows: &[2] }, &[1.0; 32], 4);
}
