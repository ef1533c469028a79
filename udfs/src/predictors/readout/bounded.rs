//! The paper's readout: coefficients of a bounded length.

/// ADMM's penalty of a departure from the bound, and its steps, as in the authors' program.
pub(crate) const ADMM_MU: f64 = 1e3;
const ADMM_STEPS: usize = 100;

/// The paper's readout: least squares with a bound on the length of the coefficients, by a hundred steps of ADMM from zero, which stop short of
/// convergence; `solve` is for the products with a ridge of `1 / ADMM_MU`. The bound supposes labels of unit variance, so it is taken in units of their deviation.
pub(crate) fn bounded(solve: &dyn Fn(&mut [f64]), sides: &[Vec<f64>], deviation: f64, out: &mut [Vec<f64>]) {
    let bound = 2.0 * (2.0 * sides.len() as f64).sqrt() * deviation;
    let lanes = out.first().map_or(0, Vec::len);
    let (mut z, mut lambda) = (vec![vec![0.0; lanes]; sides.len()], vec![vec![0.0; lanes]; sides.len()]);
    for _ in 0..ADMM_STEPS {
        for (q, side) in sides.iter().enumerate() {
            for lane in 0..lanes {
                out[q][lane] = side[lane] + (z[q][lane] + lambda[q][lane]) / ADMM_MU;
            }
            solve(&mut out[q]);
        }
        let mut length: f64 = 0.0;
        for q in 0..sides.len() {
            for lane in 0..lanes {
                z[q][lane] = out[q][lane] - lambda[q][lane];
                length += z[q][lane] * z[q][lane];
            }
        }
        let factor = f64::min(1.0, bound / length.sqrt().max(f64::MIN_POSITIVE));
        for q in 0..sides.len() {
            for lane in 0..lanes {
                z[q][lane] *= factor;
                lambda[q][lane] += z[q][lane] - out[q][lane];
            }
        }
    }
}
