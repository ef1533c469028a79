//! Attention weights and the masks they make.

use crate::choice;
use crate::models::mlp::{Rate, adam, exp};

choice! {
    /// How attention weights become factors of the features.
    pub enum Mask {
        Softmax = "softmax",
        L1 = "l1",
        L2 = "l2",
        L1Normalized = "l1_normalized",
        L2Normalized = "l2_normalized",
    }
}

impl Mask {
    pub(crate) fn is_normalized(self) -> bool {
        !matches!(self, Mask::L1 | Mask::L2)
    }

    /// Where every weight starts, so that the mask is uniform.
    fn start(self, open: usize) -> f32 {
        match self {
            Mask::Softmax => 0.0,
            Mask::L1 => 1.0 / open as f32,
            Mask::L2 => 1.0 / (open as f32).sqrt(),
            Mask::L1Normalized | Mask::L2Normalized => 1.0,
        }
    }
}

/// One weight for each candidate that is still open, and Adam's moments.
pub(crate) struct Attention {
    kind: Mask,
    pub weights: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    gradient: Vec<f32>,
    steps: i32,
    /// The candidates that attention is shared between.
    pub open: Vec<bool>,
    /// 1 for the others.
    pub mask: Vec<f32>,
}

impl Attention {
    pub(crate) fn new(kind: Mask, candidates: usize) -> Self {
        let zeros = vec![0.0; candidates];
        let mut attention = Self {
            kind,
            weights: zeros.clone(),
            first: zeros.clone(),
            second: zeros.clone(),
            gradient: zeros.clone(),
            steps: 0,
            open: vec![true; candidates],
            mask: zeros,
        };
        attention.begin_round();
        attention
    }

    /// Weights back to their start, and the moments with them: what one round learnt must not push the next.
    pub(crate) fn begin_round(&mut self) {
        let open = self.open.iter().filter(|open| **open).count();
        self.weights.fill(self.kind.start(open.max(1)));
        self.first.fill(0.0);
        self.second.fill(0.0);
        self.steps = 0;
        self.update_mask();
    }

    /// Takes a candidate out of the competition: it is on from now.
    pub(crate) fn choose(&mut self, candidate: usize) {
        self.open[candidate] = false;
    }

    fn update_mask(&mut self) {
        let Self { kind, weights, open, mask, .. } = self;
        let largest = weights.iter().zip(&*open).filter(|(_, open)| **open).map(|(w, _)| *w).fold(f32::NEG_INFINITY, f32::max);
        for ((mask, weight), open) in mask.iter_mut().zip(weights.iter()).zip(&*open) {
            let value = match kind {
                Mask::Softmax => exp((weight - largest).min(0.0)),
                Mask::L1 | Mask::L1Normalized => weight.abs(),
                Mask::L2 | Mask::L2Normalized => weight * weight,
            };
            *mask = if *open { value } else { 0.0 };
        }
        if kind.is_normalized() {
            let total: f64 = mask.iter().map(|x| f64::from(*x)).sum();
            let factor = if total > 0.0 { (1.0 / total) as f32 } else { 0.0 };
            mask.iter_mut().for_each(|x| *x *= factor);
        }
        for (mask, open) in mask.iter_mut().zip(open) {
            *mask = if *open { *mask } else { 1.0 };
        }
    }

    /// The derivative of the loss by the weights, from its derivative `slopes` by the mask.
    fn differentiate(&mut self, slopes: &[f32]) {
        let Self { kind, weights, open, mask, gradient, .. } = self;
        let mut mean = 0.0;
        let mut total = 0.0;
        for (((open, mask), slope), weight) in open.iter().zip(&*mask).zip(slopes).zip(&*weights) {
            let counts = if *open { 1.0 } else { 0.0 };
            mean += counts * f64::from(*mask) * f64::from(*slope);
            total += counts
                * match kind {
                    Mask::L1Normalized => f64::from(weight.abs()),
                    Mask::L2Normalized => f64::from(*weight).powi(2),
                    _ => 0.0,
                };
        }
        let mean = mean as f32;
        let factor = if total > 0.0 { (1.0 / total) as f32 } else { 0.0 };
        for at in 0..open.len() {
            let (weight, slope) = (weights[at], slopes[at]);
            let derivative = match kind {
                Mask::Softmax => mask[at] * (slope - mean),
                Mask::L1 => weight.signum() * slope,
                Mask::L2 => 2.0 * weight * slope,
                Mask::L1Normalized => weight.signum() * factor * (slope - mean),
                Mask::L2Normalized => 2.0 * weight * factor * (slope - mean),
            };
            gradient[at] = if open[at] { derivative } else { 0.0 };
        }
    }

    /// One step of Adam along `slopes`, the derivative of the loss by the mask.
    pub(crate) fn step(&mut self, slopes: &[f32], rate: f64) {
        self.differentiate(slopes);
        self.steps += 1;
        adam(&mut self.weights, &self.gradient, &mut self.first, &mut self.second, Rate::of(rate, self.steps));
        self.update_mask();
    }

    /// The open candidates, the most attended first.
    pub(crate) fn ranked(&self) -> Vec<usize> {
        let value = |at: usize| if self.kind == Mask::Softmax { self.weights[at] } else { self.weights[at].abs() };
        let mut order: Vec<usize> = (0..self.open.len()).filter(|at| self.open[*at]).collect();
        order.sort_by(|a, b| value(*b).total_cmp(&value(*a)).then(a.cmp(b)));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Mask; 5] = [Mask::Softmax, Mask::L1, Mask::L2, Mask::L1Normalized, Mask::L2Normalized];

    fn example(kind: Mask) -> Attention {
        let mut attention = Attention::new(kind, 5);
        attention.choose(2);
        attention.begin_round();
        attention
    }

    #[test]
    fn masks_start_uniform_and_chosen_ones_are_on() {
        for kind in ALL {
            let mask = example(kind).mask;
            assert_eq!(mask[2], 1.0);
            assert!([0, 1, 3, 4].iter().all(|at| (mask[*at] - 0.25).abs() < 1e-6), "{kind:?} {mask:?}");
        }
    }

    #[test]
    fn normalised_masks_sum_to_one_after_any_step() {
        for kind in ALL.into_iter().filter(|kind| kind.is_normalized()) {
            let mut attention = example(kind);
            for step in 0..20 {
                let slopes: Vec<f32> = (0..5).map(|at| ((at * 7 + step) as f32).sin()).collect();
                attention.step(&slopes, 0.1);
                let total: f32 = [0, 1, 3, 4].iter().map(|at| attention.mask[*at]).sum();
                assert!((total - 1.0).abs() < 1e-5, "{kind:?} {total}");
            }
        }
    }

    /// A loss that is linear in the mask, `Σ slope · mask`, moved by a little in every weight.
    #[test]
    fn gradients_equal_finite_differences() {
        let slopes = [0.3, -1.0, 0.5, 2.0, -0.2f32];
        for kind in ALL {
            let mut attention = example(kind);
            attention.weights.copy_from_slice(&[0.4, -0.7, 0.1, 1.3, 0.9]);
            attention.update_mask();
            attention.differentiate(&slopes);
            for at in [0, 1, 3, 4] {
                let loss = |shift: f32| {
                    let mut moved = example(kind);
                    moved.weights.copy_from_slice(&attention.weights);
                    moved.weights[at] += shift;
                    moved.update_mask();
                    moved.mask.iter().zip(&slopes).map(|(m, s)| f64::from(*m) * f64::from(*s)).sum::<f64>()
                };
                let difference = (loss(1e-2) - loss(-1e-2)) / 2e-2;
                assert!((difference - f64::from(attention.gradient[at])).abs() < 1e-3, "{kind:?} {at}");
            }
        }
    }
}
