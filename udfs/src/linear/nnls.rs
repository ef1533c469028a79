use crate::kernels::cholesky::Cholesky;
use crate::kernels::dot;

/// `min ½ vᵀ H v − 1ᵀ v` over `v ≥ 0`, by Lawson and Hanson's active set: add the variable with the steepest
/// descent, solve on the free ones, back off to the first that would turn negative.
pub(crate) fn nonnegative(h: &[f64], m: usize) -> Vec<f64> {
    let mut v = vec![0.0; m];
    let mut free: Vec<usize> = Vec::new();
    // Each round lowers the objective, so no free set comes twice; the bound is for rounding alone.
    for _ in 0..10 * m + 10 {
        let slope = |i: usize| 1.0 - dot(&h[i * m..(i + 1) * m], &v);
        let entering = (0..m).filter(|i| !free.contains(i)).map(|i| (i, slope(i))).filter(|(_, s)| *s > 1e-9);
        let Some((entering, _)) = entering.reduce(|a, b| if b.1 > a.1 + 1e-9 { b } else { a }) else { break };
        free.push(entering);
        while let Some(target) = solve_ones(h, m, &free) {
            if target.iter().all(|t| *t > 0.0) {
                v.fill(0.0);
                free.iter().zip(&target).for_each(|(i, t)| v[*i] = *t);
                break;
            }
            let step = free.iter().zip(&target).filter(|(_, t)| **t <= 0.0).map(|(i, t)| v[*i] / (v[*i] - t)).fold(1.0, f64::min);
            for (i, t) in free.iter().zip(&target) {
                v[*i] += step * (t - v[*i]);
            }
            free.retain(|i| v[*i] > 1e-12);
        }
        // A twin of a free variable makes the system singular: it stays out, the first keeps its place.
        if solve_ones(h, m, &free).is_none() {
            free.pop();
            break;
        }
    }
    v
}

/// Solves `H_FF x = 1`; `None` if it is singular.
fn solve_ones(h: &[f64], m: usize, free: &[usize]) -> Option<Vec<f64>> {
    let mut x = vec![1.0; free.len()];
    Cholesky::of(free.len(), |i, j| h[free[i] * m + free[j]])?.solve(&mut x);
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_by_hand() {
        // Without the bound v = H⁻¹ 1 = (2, −2/3): the second must stay out.
        assert_eq!(nonnegative(&[1.0, 1.5, 1.5, 3.0], 2), [1.0, 0.0]);
        assert_eq!(nonnegative(&[1.0, 0.0, 0.0, 4.0], 2), [1.0, 0.25]);
    }

    #[test]
    fn of_two_equal_columns_the_first() {
        assert_eq!(nonnegative(&[1.0, 1.0, 1.0, 1.0], 2), [1.0, 0.0]);
    }
}
