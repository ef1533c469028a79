//! Attention weights and the masks they make.

use crate::choice;
use crate::kernels::gemm::{LANES, vectorized};
use crate::network::adam::{Rate, adam, adam_in_common};
use crate::network::losses::exp;

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

    /// The size of a step. Masks that are not normalised start the smaller the more candidates there are, so a step is a share of the start.
    pub(crate) fn rate(self, candidates: usize) -> f64 {
        match self {
            Mask::L1 => 0.5 * f64::from(self.start(candidates.max(1))),
            Mask::L2 => 0.15 * f64::from(self.start(candidates.max(1))),
            _ => 0.03,
        }
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
    /// 1 for the candidates that attention is shared between, 0 for the others.
    open: Vec<f32>,
    /// 1 for the others.
    pub mask: Vec<f32>,
    /// What the open candidates' part of the mask was multiplied by, so that it sums to one.
    factor: f32,
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
            open: vec![1.0; candidates],
            mask: zeros,
            factor: 1.0,
        };
        attention.begin_round();
        attention
    }

    /// Weights back to their start, and the moments with them: what one round learnt must not push the next.
    pub(crate) fn begin_round(&mut self) {
        let open = self.open.iter().filter(|open| **open > 0.0).count();
        self.weights.fill(self.kind.start(open.max(1)));
        self.first.fill(0.0);
        self.second.fill(0.0);
        self.steps = 0;
        update_mask::<false>(self);
    }

    /// Takes a candidate out of the competition: it is on from now.
    pub(crate) fn choose(&mut self, candidate: usize) {
        self.open[candidate] = 0.0;
    }

    /// One step of Adam along `slopes`, the derivative of the loss by the mask.
    pub(crate) fn step(&mut self, slopes: &[f32], rate: f64) {
        self.steps += 1;
        let rate = Rate::of(rate, self.steps);
        take_step(self, slopes, rate);
    }

    /// The open candidates, the most attended first.
    pub(crate) fn ranked(&self) -> Vec<usize> {
        let value = |at: usize| if self.kind == Mask::Softmax { self.weights[at] } else { self.weights[at].abs() };
        let mut order: Vec<usize> = (0..self.open.len()).filter(|at| self.open[*at] > 0.0).collect();
        order.sort_by(|a, b| value(*b).total_cmp(&value(*a)).then(a.cmp(b)));
        order
    }
}

// All other threads wait meanwhile, so it is worth wide registers.
vectorized! {
    fn take_step(attention: &mut Attention, slopes: &[f32], rate: Rate) = step;
}

#[inline(always)]
fn step<const FMA: bool>(attention: &mut Attention, slopes: &[f32], rate: Rate) {
    differentiate::<FMA>(attention, slopes);
    let Attention { kind, weights, gradient, first, second, open, .. } = attention;
    if kind.is_normalized() {
        adam(weights, gradient, first, second, rate);
    } else if let Some(second) = second.first_mut() {
        // Nothing but the size of its gradient sets a candidate apart from others that grow, too, so all share the second moment.
        let energy = gradient.iter().map(|g| g * g).sum::<f32>() / open.iter().sum::<f32>().max(1.0);
        adam_in_common(weights, gradient, first, second, energy, rate);
    }
    if *kind == Mask::L1 {
        // With the other sign its factor would grow again.
        weights.iter_mut().for_each(|weight| *weight = weight.max(0.0));
    }
    update_mask::<FMA>(attention);
}

/// The derivative of the loss by the weights, from its derivative `slopes` by the mask.
#[inline(always)]
fn differentiate<const FMA: bool>(attention: &mut Attention, slopes: &[f32]) {
    let Attention { kind, weights, open, mask, gradient, factor, .. } = attention;
    // Of one candidate more than of all others, because they share what there is.
    let mean = if kind.is_normalized() { sum_of_products(open, mask, slopes) as f32 } else { 0.0 };
    let all = gradient.iter_mut().zip(weights).zip(slopes).zip(mask).zip(open);
    for ((((gradient, weight), slope), mask), open) in all {
        let derivative = match kind {
            Mask::Softmax => *mask * (slope - mean),
            Mask::L1 => weight.signum() * slope,
            Mask::L2 => 2.0 * *weight * slope,
            Mask::L1Normalized => weight.signum() * *factor * (slope - mean),
            Mask::L2Normalized => 2.0 * *weight * *factor * (slope - mean),
        };
        *gradient = *open * derivative;
    }
}

#[inline(always)]
fn update_mask<const FMA: bool>(attention: &mut Attention) {
    let Attention { kind, weights, open, mask, factor, .. } = attention;
    let largest = if *kind == Mask::Softmax { largest(weights, open) } else { 0.0 };
    for ((mask, weight), open) in mask.iter_mut().zip(&*weights).zip(&*open) {
        let value = match kind {
            Mask::Softmax => exp((weight - largest).min(0.0)),
            Mask::L1 | Mask::L1Normalized => weight.abs(),
            Mask::L2 | Mask::L2Normalized => weight * weight,
        };
        *mask = *open * value;
    }
    if kind.is_normalized() {
        let total = sum_of_products(open, mask, open);
        *factor = if total > 0.0 { (1.0 / total) as f32 } else { 0.0 };
    }
    for (mask, open) in mask.iter_mut().zip(open) {
        *mask = *mask * *factor + (1.0 - *open);
    }
}

/// `Σ a·b·c`, in as many running sums as fill the registers.
#[inline(always)]
fn sum_of_products(a: &[f32], b: &[f32], c: &[f32]) -> f64 {
    let mut sums = [0.0; LANES];
    let ((a, a_rest), (b, b_rest), (c, c_rest)) = (a.as_chunks(), b.as_chunks(), c.as_chunks());
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        let (a, b, c): ([f32; LANES], [f32; LANES], [f32; LANES]) = (*a, *b, *c);
        for lane in 0..LANES {
            sums[lane] += f64::from(a[lane] * b[lane]) * f64::from(c[lane]);
        }
    }
    for (lane, sum) in sums.iter_mut().enumerate().take(a_rest.len()) {
        *sum += f64::from(a_rest[lane] * b_rest[lane]) * f64::from(c_rest[lane]);
    }
    sums.iter().sum()
}

/// The largest weight of an open candidate.
#[inline(always)]
fn largest(weights: &[f32], open: &[f32]) -> f32 {
    let mut tops = [f32::NEG_INFINITY; LANES];
    let ((weights, rest), (open, open_rest)) = (weights.as_chunks(), open.as_chunks());
    for (weights, open) in weights.iter().zip(open) {
        let (weights, open): ([f32; LANES], [f32; LANES]) = (*weights, *open);
        for lane in 0..LANES {
            let is_higher = open[lane] > 0.0 && weights[lane] > tops[lane];
            tops[lane] = if is_higher { weights[lane] } else { tops[lane] };
        }
    }
    let rest = rest.iter().zip(open_rest).filter(|(_, open)| **open > 0.0).map(|(weight, _)| *weight);
    rest.chain(tops).fold(f32::NEG_INFINITY, f32::max)
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
            update_mask::<false>(&mut attention);
            differentiate::<false>(&mut attention, &slopes);
            for at in [0, 1, 3, 4] {
                let loss = |shift: f32| {
                    let mut moved = example(kind);
                    moved.weights.copy_from_slice(&attention.weights);
                    moved.weights[at] += shift;
                    update_mask::<false>(&mut moved);
                    moved.mask.iter().zip(&slopes).map(|(m, s)| f64::from(*m) * f64::from(*s)).sum::<f64>()
                };
                let difference = (loss(1e-2) - loss(-1e-2)) / 2e-2;
                assert!((difference - f64::from(attention.gradient[at])).abs() < 1e-3, "{kind:?} {at}");
            }
        }
    }
}
