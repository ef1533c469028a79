//! Tails of the F and the χ² distribution, as logarithms: a p-value of 1e-400 is still smaller than one of 1e-350, and ranks need to tell.

/// ln of the probability that `I_x(a, b)`, the regularised incomplete beta function, gives; `y` is 1 − x, which the caller knows to more digits.
pub(crate) fn ln_beta_tail(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if y <= 0.0 {
        return 0.0;
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * y.ln();
    if x < (a + 1.0) / (a + b + 2.0) {
        (front + (beta_fraction(a, b, x) / a).ln()).min(0.0)
    } else {
        ln_one_minus((front + (beta_fraction(b, a, y) / b).ln()).exp())
    }
}

/// ln of the probability that a χ² of so many degrees of freedom is at least `statistic`.
pub(crate) fn ln_chi2_tail(freedom: f64, statistic: f64) -> f64 {
    let (a, x) = (freedom / 2.0, statistic / 2.0);
    if x <= 0.0 || a <= 0.0 {
        return 0.0;
    }
    let front = a * x.ln() - x - ln_gamma(a);
    if x < a + 1.0 {
        let (mut term, mut sum, mut at) = (1.0 / a, 1.0 / a, a);
        while term > sum * f64::EPSILON {
            at += 1.0;
            term *= x / at;
            sum += term;
        }
        return ln_one_minus((front + sum.ln()).exp());
    }
    let fraction = lentz(x + 1.0 - a, |i| (-i * (i - a), x + 2.0 * i + 1.0 - a));
    (front - fraction.ln()).min(0.0)
}

/// ln(1 − p) of a probability that rounding may have made more than 1.
fn ln_one_minus(p: f64) -> f64 {
    (-p.min(1.0)).ln_1p()
}

/// A continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) by Lentz' method; `terms(i)` = (aᵢ, bᵢ).
fn lentz(first: f64, terms: impl Fn(f64) -> (f64, f64)) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut value = away(first);
    let (mut c, mut d) = (value, 0.0);
    for i in 1..100_000 {
        let (a, b) = terms(f64::from(i));
        d = 1.0 / away(b + a * d);
        c = away(b + a / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let term = |i: f64| {
        let m = (i / 2.0).floor();
        let numerator = if i % 2.0 == 0.0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        (numerator, 1.0)
    };
    1.0 / lentz(1.0, term)
}

/// ln Γ(x) for x > 0, by Stirling's series beyond 10.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 12.0
        - square
            * (1.0 / 360.0
                - square
                    * (1.0 / 1260.0
                        - square * (1.0 / 1680.0 - square * (1.0 / 1188.0 - square * (691.0 / 360_360.0 - square / 156.0)))));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series / x - f64::ln(product)
}

/// The derivative of ln Γ.
pub(crate) fn digamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 12.0
        - square
            * (1.0 / 120.0
                - square * (1.0 / 252.0 - square * (1.0 / 240.0 - square * (1.0 / 132.0 - square * 691.0 / 32_760.0))));
    sum + x.ln() - 0.5 / x - square * series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found} instead of {expected}");
    }

    /// Distributions whose tails have a closed form.
    #[test]
    fn tails_with_a_formula() {
        for chi in [0.1, 1.0, 7.0, 90.0, 4000.0] {
            assert_close(ln_chi2_tail(2.0, chi), -chi / 2.0);
            // Four degrees of freedom: e^(−x/2) (1 + x/2).
            assert_close(ln_chi2_tail(4.0, chi), -chi / 2.0 + (chi / 2.0).ln_1p());
        }
        for x in [1e-9, 0.2, 0.5, 0.97] {
            assert_close(ln_beta_tail(3.0, 1.0, x, 1.0 - x), 3.0 * f64::ln(x));
            assert_close(ln_beta_tail(1.0, 2.5, x, 1.0 - x), f64::ln(-(2.5 * f64::ln_1p(-x)).exp_m1()));
        }
        // Student's t of one degree of freedom is Cauchy's: at 1 a half is beyond.
        assert_close(ln_beta_tail(0.5, 0.5, 0.5, 0.5), 0.5f64.ln());
    }

    #[test]
    fn gamma_of_whole_and_half_numbers() {
        assert_close(ln_gamma(1.0), 0.0);
        assert_close(ln_gamma(11.0), 3_628_800f64.ln());
        assert_close(ln_gamma(0.5), 0.5 * std::f64::consts::PI.ln());
        assert_close(digamma(1.0), -0.577_215_664_901_532_9);
        assert_close(digamma(4.0), -0.577_215_664_901_532_9 + 11.0 / 6.0);
    }
}
