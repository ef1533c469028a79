//! Parameters that move along their gradients: Adam.

use crate::kernels::aligned::Aligned;

/// Adam's constants, as Keras has them.
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-7;

/// Parameters with their gradient and Adam's moments.
#[derive(Debug, Clone)]
pub(crate) struct Moving {
    pub values: Aligned,
    pub gradient: Aligned,
    pub first: Aligned,
    pub second: Aligned,
}

impl Moving {
    pub fn new(values: Vec<f32>) -> Self {
        let zeros = Aligned::zeros(values.len());
        Self { gradient: zeros.clone(), first: zeros.clone(), second: zeros, values: values.into() }
    }
}

/// The size of an update.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    size: f32,
}

impl Rate {
    /// Adam's step `step`, from 1, with its bias correction.
    pub(crate) fn of(learning_rate: f64, step: i32) -> Self {
        let (one, two) = (1.0 - f64::from(BETA1).powi(step), 1.0 - f64::from(BETA2).powi(step));
        Self { size: (learning_rate * two.sqrt() / one) as f32 }
    }
}

/// One step of Adam with one second moment for all values, so that a value moves by its share of the gradient. Adam moves every value by about the same.
#[inline(always)]
pub(crate) fn adam_in_common(values: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut f32, energy: f32, rate: Rate) {
    *second = BETA2 * *second + (1.0 - BETA2) * energy;
    let size = rate.size / (second.sqrt() + EPSILON);
    for ((value, g), m) in values.iter_mut().zip(gradient).zip(first) {
        *m = BETA1 * *m + (1.0 - BETA1) * g;
        *value -= size * *m;
    }
}

/// One step of Adam.
#[inline(always)]
pub(crate) fn adam(values: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32], rate: Rate) {
    for (((value, g), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
        *m = BETA1 * *m + (1.0 - BETA1) * g;
        *v = BETA2 * *v + (1.0 - BETA2) * g * g;
        *value -= rate.size * *m / (v.sqrt() + EPSILON);
    }
}
