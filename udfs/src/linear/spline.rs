//! Smooth functions of one number: cubic B-splines on equal intervals, kept smooth by the squares of their coefficients' second differences (P-splines).

use crate::kernels::cholesky::Cholesky;

/// A basis over the values of a column.
#[derive(Debug, Clone)]
pub(crate) struct Basis {
    low: f64,
    /// Intervals in a unit of the column.
    scale: f64,
    intervals: usize,
}

/// Splines that are not 0 anywhere in an interval.
const ALIVE: usize = 4;

impl Basis {
    /// So many splines, of which any four next to each other live on one interval.
    pub fn new(values: &[f64], splines: usize) -> Self {
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
        let intervals = splines - (ALIVE - 1);
        Self { low, scale: if high > low { intervals as f64 / (high - low) } else { 0.0 }, intervals }
    }

    pub fn len(&self) -> usize {
        self.intervals + ALIVE - 1
    }

    /// The first spline that lives at a value, and what it and the next three are there.
    pub fn at(&self, x: f64) -> (usize, [f64; ALIVE]) {
        let place = ((x - self.low) * self.scale).clamp(0.0, self.intervals as f64);
        let interval = (place as usize).min(self.intervals - 1);
        let u = place - interval as f64;
        let (v, u2, u3) = (1.0 - u, u * u, u * u * u);
        let values = [v * v * v / 6.0, (3.0 * u3 - 6.0 * u2 + 4.0) / 6.0, (-3.0 * u3 + 3.0 * u2 + 3.0 * u + 1.0) / 6.0, u3 / 6.0];
        (interval, values)
    }

    /// The value of a spline with these coefficients.
    pub fn value(&self, coefficients: &[f64], x: f64) -> f64 {
        let (first, values) = self.at(x);
        values.iter().zip(&coefficients[first..]).map(|(value, c)| value * c).sum()
    }
}

/// What makes a smooth function of what is asked of it: the system of its coefficients, solved once.
#[derive(Debug, Clone)]
pub(crate) struct Smoother {
    pub basis: Basis,
    /// The products of the splines, summed over the rows.
    products: Vec<f64>,
    factor: Option<Cholesky>,
}

/// Keeps splines without rows at 0, as a share of the mean square.
const RIDGE: f64 = 1e-9;

impl Smoother {
    pub fn new(values: &[f64], weight: impl Fn(usize) -> f64, splines: usize) -> Self {
        let basis = Basis::new(values, splines);
        let n = basis.len();
        let mut products = vec![0.0; n * n];
        for (row, x) in values.iter().enumerate() {
            let (first, alive) = basis.at(*x);
            for (i, a) in alive.iter().enumerate() {
                for (j, b) in alive.iter().enumerate() {
                    products[(first + i) * n + first + j] += weight(row) * a * b;
                }
            }
        }
        Self { basis, products, factor: None }
    }

    /// Makes ready for a smoothness, in units of the splines' mean square; returns how many coefficients it is worth, the mean aside.
    pub fn tune(&mut self, smoothness: f64) -> f64 {
        let n = self.basis.len();
        let scale = (0..n).map(|i| self.products[i * n + i]).sum::<f64>() / n as f64;
        // DᵀD of the second differences.
        let mut penalty = vec![0.0; n * n];
        for i in 0..n - 2 {
            for (j, a) in [1.0, -2.0, 1.0].iter().enumerate() {
                for (k, b) in [1.0, -2.0, 1.0].iter().enumerate() {
                    penalty[(i + j) * n + i + k] += a * b;
                }
            }
        }
        let element = |i: usize, j: usize| {
            let ridge = if i == j { RIDGE * scale } else { 0.0 };
            self.products[i * n + j] + smoothness * scale * penalty[i * n + j] + ridge
        };
        self.factor = Cholesky::of(n, element);
        let Some(factor) = &self.factor else { return 0.0 };
        let trace = |i: usize| {
            let mut column: Vec<f64> = (0..n).map(|j| self.products[j * n + i]).collect();
            factor.solve(&mut column);
            column[i]
        };
        ((0..n).map(trace).sum::<f64>() - 1.0).max(0.0)
    }

    /// The coefficients of the smooth function nearest to what the splines' sums with it are.
    pub fn solve(&self, sums: &mut [f64]) {
        match &self.factor {
            Some(factor) => factor.solve(sums),
            None => sums.fill(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cox and de Boor's recursion on equal knots.
    fn by_recursion(i: isize, degree: usize, x: f64) -> f64 {
        let i_ = i as f64;
        if degree == 0 {
            return f64::from(x >= i_ && x < i_ + 1.0);
        }
        let d = degree as f64;
        (x - i_) / d * by_recursion(i, degree - 1, x) + (i_ + d + 1.0 - x) / d * by_recursion(i + 1, degree - 1, x)
    }

    #[test]
    fn splines_are_those_of_the_recursion_and_sum_to_one() {
        let basis = Basis::new(&[0.0, 5.0], 8);
        for x in [0.0, 0.3, 1.0, 2.7, 4.999] {
            let (first, values) = basis.at(x);
            assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for (at, value) in values.iter().enumerate() {
                let expected = by_recursion((first + at) as isize - 3, 3, x);
                assert!((value - expected).abs() < 1e-12, "{x} {at}: {value} {expected}");
            }
        }
    }

    /// A straight line is as smooth as can be, however much is asked; with little asked a bend is followed.
    #[test]
    fn lines_stay_and_bends_are_followed() {
        let x: Vec<f64> = (0..200).map(|row| f64::from(row) / 199.0).collect();
        let fit = |y: &dyn Fn(f64) -> f64, smoothness: f64| {
            let mut smoother = Smoother::new(&x, |_| 1.0, 12);
            let freedom = smoother.tune(smoothness);
            let mut sums = vec![0.0; 12];
            for x in &x {
                let (first, values) = smoother.basis.at(*x);
                sums[first..].iter_mut().zip(values).for_each(|(sum, value)| *sum += value * y(*x));
            }
            smoother.solve(&mut sums);
            let worst = x.iter().map(|x| (smoother.basis.value(&sums, *x) - y(*x)).abs()).fold(0.0, f64::max);
            (worst, freedom)
        };
        let (line, freedom) = fit(&|x| 2.0 * x + 1.0, 1e6);
        assert!(line < 1e-3 && (freedom - 1.0).abs() < 1e-2, "{line} {freedom}");
        let (bend, freedom) = fit(&|x| (6.0 * x).sin(), 1e-6);
        assert!(bend < 1e-2 && freedom > 10.0, "{bend} {freedom}");
        assert!(fit(&|x| (6.0 * x).sin(), 1e6).0 > 0.5);
    }
}
