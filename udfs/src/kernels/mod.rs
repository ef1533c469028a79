//! The arithmetic under everything else: plain functions on slices that know no table, no label and no option.

pub(crate) mod aligned;
pub(crate) mod blocked_cholesky;
pub(crate) mod cholesky;
pub(crate) mod double;
pub(crate) mod eigen;
pub(crate) mod gemm;
#[cfg(target_arch = "x86_64")]
mod gemm_avx512;
pub(crate) mod tails;
pub(crate) mod team;
pub mod tiles;

/// Scores this close, relative to the larger, are a tie; ties go to the lower index.
pub(crate) const TIE: f64 = 1e-12;

/// The index with the largest score; `None` entries do not take part, ties go to the lower index.
pub(crate) fn argmax(scores: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (index, score) in scores.enumerate() {
        let Some(score) = score else { continue };
        if best.is_none_or(|(_, top)| score > top + TIE * top.abs()) {
            best = Some((index, score));
        }
    }
    best
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Eight running sums: the compiler may then use vector registers, and the order is fixed.
    let mut sums = [0.0; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (x, y) in a8.iter().zip(b8) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let tail: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_lower_index() {
        let scores = [Some(1.0), None, Some(2.0), Some(2.0 * (1.0 + 1e-14)), Some(0.5)];
        assert_eq!(argmax(scores.into_iter()), Some((2, 2.0)));
        assert_eq!(argmax([Some(-2.0), Some(-2.0), Some(-3.0)].into_iter()), Some((0, -2.0)));
        assert_eq!(argmax([None, None].into_iter()), None);
    }

    #[test]
    fn dot_takes_every_element() {
        let a: Vec<f64> = (0..19).map(f64::from).collect();
        assert_eq!(dot(&a, &a), (0..19).map(|i| f64::from(i * i)).sum::<f64>());
    }
}
