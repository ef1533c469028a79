//! Double-double numbers: a value as the unevaluated sum of two f64, about 32 digits.
//!
//! Sums over batches are kept in them, so that the order in which batches arrive no longer shows in the
//! answer, and so that raw second moments keep enough digits to be centred afterwards.

use std::ops::{Add, AddAssign, Mul, Neg, Sub};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Double {
    pub high: f64,
    pub low: f64,
}

impl Double {
    pub(crate) fn value(self) -> f64 {
        self.high + self.low
    }

    /// `a * b` without rounding.
    #[inline(always)]
    pub(crate) fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        Self { high, low: a.mul_add(b, -high) }
    }

    pub(crate) fn divided_by(self, divisor: Double) -> Self {
        let first = self.high / divisor.high;
        let rest = self - divisor * Double::from(first);
        Double::from(first) + Double::from(rest.high / divisor.high)
    }
}

impl From<f64> for Double {
    #[inline(always)]
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

/// Knuth's sum of two f64, exact.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> Double {
    let high = a + b;
    let back = high - a;
    Double { high, low: (a - (high - back)) + (b - back) }
}

impl Add for Double {
    type Output = Double;
    /// The accurate variant: also right when the two nearly cancel.
    #[inline(always)]
    fn add(self, other: Double) -> Double {
        let high = two_sum(self.high, other.high);
        let low = two_sum(self.low, other.low);
        let first = two_sum(high.high, high.low + low.high);
        two_sum(first.high, first.low + low.low)
    }
}

impl AddAssign for Double {
    #[inline(always)]
    fn add_assign(&mut self, other: Double) {
        *self = *self + other;
    }
}

impl Neg for Double {
    type Output = Double;
    fn neg(self) -> Double {
        Double { high: -self.high, low: -self.low }
    }
}

impl Sub for Double {
    type Output = Double;
    #[inline(always)]
    fn sub(self, other: Double) -> Double {
        self + -other
    }
}

impl Mul for Double {
    type Output = Double;
    #[inline(always)]
    fn mul(self, other: Double) -> Double {
        let exact = Double::product(self.high, other.high);
        let cross = self.high * other.low + self.low * other.high;
        two_sum(exact.high, exact.low + cross)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_f64_loses() {
        let sum = Double::from(1e20) + Double::from(1.0) - Double::from(1e20);
        assert_eq!(sum.value(), 1.0);
        let square = Double::product(1.0 + 2f64.powi(-40), 1.0 + 2f64.powi(-40));
        assert_eq!((square - Double::from(1.0) - Double::from(2f64.powi(-39))).value(), 2f64.powi(-80));
    }

    #[test]
    fn divides() {
        let third = Double::from(1.0).divided_by(Double::from(3.0));
        let back = third * Double::from(3.0) - Double::from(1.0);
        assert!(back.value().abs() < 1e-30);
    }
}
