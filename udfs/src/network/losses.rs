//! What networks are trained to make small: the sum over some rows, and its derivative by the outputs, which is written times `scale`. Rows of values and
//! of errors lie `width` apart.

use crate::kernels::gemm::LANES;

/// Rows that are taken together.
pub(crate) const ROWS: usize = 32;

#[inline(always)]
pub(crate) fn squared(values: &[f32], width: usize, targets: &[f32], scale: f32, errors: &mut [f32]) -> f64 {
    let mut loss = 0.0;
    for ((values, errors), target) in values.chunks(width).zip(errors.chunks_mut(width)).zip(targets) {
        let miss = values[0] - target;
        errors[0] = 2.0 * scale * miss;
        loss += f64::from(miss * miss);
    }
    loss
}

#[inline(always)]
pub(crate) fn logistic(values: &[f32], width: usize, targets: &[f32], scale: f32, errors: &mut [f32]) -> f64 {
    let (mut odds, mut losses, mut smalls, mut slopes) = ([0.0f32; ROWS], [0.0; ROWS], [0.0; ROWS], [0.0; ROWS]);
    odds.iter_mut().zip(values.chunks(width)).for_each(|(odds, values)| *odds = values[0]);
    // All rows in step, for which a register has room.
    for (row, target) in targets.iter().enumerate() {
        let (odds, small) = (odds[row], exp(-odds[row].abs()));
        let whole = 1.0 / (1.0 + small);
        slopes[row] = scale * (whole * if odds >= 0.0 { 1.0 } else { small } - target);
        losses[row] = odds.max(0.0) - odds * target;
        smalls[row] = small;
    }
    errors.chunks_mut(width).zip(slopes).take(targets.len()).for_each(|(errors, slope)| errors[0] = slope);
    // Of a product of numbers between 1 and 2 one logarithm is enough.
    let divisor: f64 = smalls[..targets.len()].iter().map(|small| 1.0 + f64::from(*small)).product();
    losses[..targets.len()].iter().map(|loss| f64::from(*loss)).sum::<f64>() + divisor.ln()
}

#[inline(always)]
pub(crate) fn softmax(values: &[f32], width: usize, targets: &[f32], scale: f32, errors: &mut [f32]) -> f64 {
    // One thing for all rows after the other: what is done to one row has to wait for itself.
    let (mut largest, mut totals) = ([0.0; ROWS], [0.0; ROWS]);
    for (largest, values) in largest.iter_mut().zip(values.chunks(width)) {
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for values in values.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                lanes[lane] = larger(lanes[lane], values[lane]);
            }
        }
        *largest = reduced(lanes, larger);
    }
    for ((errors, values), largest) in errors.chunks_mut(width).zip(values.chunks(width)).zip(largest) {
        for (error, value) in errors.iter_mut().zip(values) {
            *error = exp(value - largest);
        }
    }
    for (total, errors) in totals.iter_mut().zip(errors.chunks(width)) {
        let mut lanes = [0.0; LANES];
        for errors in errors.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                lanes[lane] += errors[lane];
            }
        }
        *total = reduced(lanes, |a, b| a + b);
    }
    // Between 1 and the number of classes for each row, so that the product over all is a number, and one logarithm enough.
    let (mut loss, mut divisor) = (0.0, 1.0);
    let rows = values.chunks(width).zip(errors.chunks_mut(width)).zip(targets);
    for (((values, errors), target), (largest, total)) in rows.zip(largest.iter().zip(totals)) {
        let factor = scale / total;
        errors.iter_mut().for_each(|error| *error *= factor);
        let class = *target as usize;
        errors[class] -= scale;
        loss += f64::from(largest - values[class]);
        divisor *= f64::from(total);
    }
    loss + divisor.ln()
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// All lanes of a register in one value, by halves.
#[inline(always)]
fn reduced(mut lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = join(lanes[lane], lanes[lane + half]);
        }
    }
    lanes[0]
}

/// `eˣ` for `x ≤ 0` to the last digit or two of an f32, in steps that the compiler can do for several numbers at once.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding a number of which only whole parts have digits left rounds, and leaves the whole part in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = larger(-87.0, x);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let whole = rounded - ROUND;
    // The logarithm of two in two parts, of which the first is exact in few digits.
    let rest = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let series = 1.987_569_1e-4_f32;
    let series = series * rest + 1.398_199_9e-3;
    let series = series * rest + 8.333_452e-3;
    let series = series * rest + 4.166_579_6e-2;
    let series = series * rest + 1.666_666_5e-1;
    let series = series * rest + 0.5;
    let value = series * rest * rest + rest + 1.0;
    value * f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exact_to_the_last_digits() {
        for at in 0..8700 {
            let x = -0.01 * at as f32;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) - exact).abs() <= 3e-7 * exact, "{x}");
        }
        assert!(exp(-1e30) < 2e-38);
    }
}
