//! Eigenvalues and eigenvectors of a symmetric matrix: reflections that leave three diagonals (Householder), and rotations that leave one (QL with implicit shifts).

use crate::kernels::dot;

/// Eigenvalues, the largest first, and the eigenvector of each.
pub(crate) struct Eigen {
    pub values: Vec<f64>,
    pub vectors: Vec<Vec<f64>>,
}

/// Rotations that an eigenvalue takes at most.
const ROTATIONS_MAX: usize = 60;

/// Of the matrix `n × n`, row after row. `None` if it is stopped on the way.
pub(crate) fn symmetric(mut a: Vec<f64>, n: usize, is_stopped: &dyn Fn() -> bool) -> Option<Eigen> {
    let (mut diagonal, mut beside) = (vec![0.0; n], vec![0.0; n]);
    let mut reflections: Vec<Vec<f64>> = Vec::new();
    for k in 0..n.saturating_sub(1) {
        if is_stopped() {
            return None;
        }
        let mut v: Vec<f64> = (k + 1..n).map(|row| a[row * n + k]).collect();
        let length = dot(&v, &v).sqrt();
        beside[k] = if v[0] > 0.0 { -length } else { length };
        v[0] -= beside[k];
        let energy = dot(&v, &v);
        if energy > 0.0 {
            let scale = (2.0 / energy).sqrt();
            v.iter_mut().for_each(|v| *v *= scale);
            reflect(&mut a, n, k + 1, &v);
        } else {
            v.fill(0.0);
        }
        reflections.push(v);
    }
    (0..n).for_each(|at| diagonal[at] = a[at * n + at]);
    // The rows of the reflections' product are what the rotations begin with.
    let mut vectors: Vec<Vec<f64>> = (0..n).map(|at| (0..n).map(|other| f64::from(at == other)).collect()).collect();
    for (k, v) in reflections.iter().enumerate().rev() {
        if is_stopped() {
            return None;
        }
        for vector in &mut vectors[k + 1..] {
            let inner = dot(&vector[k + 1..], v);
            vector[k + 1..].iter_mut().zip(v).for_each(|(x, v)| *x -= inner * v);
        }
    }
    rotate(&mut diagonal, &mut beside, &mut vectors, is_stopped)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| diagonal[*b].total_cmp(&diagonal[*a]));
    let values = order.iter().map(|at| diagonal[*at]).collect();
    let vectors = order.iter().map(|at| std::mem::take(&mut vectors[*at])).collect();
    Some(Eigen { values, vectors })
}

/// `(I − v vᵀ) A (I − v vᵀ)` for the part of a matrix from `from` on; `v` has length √2.
fn reflect(a: &mut [f64], n: usize, from: usize, v: &[f64]) {
    let p: Vec<f64> = (from..n).map(|row| dot(&a[row * n + from..(row + 1) * n], v)).collect();
    let half = 0.5 * dot(&p, v);
    let w: Vec<f64> = p.iter().zip(v).map(|(p, v)| p - half * v).collect();
    for (at, row) in (from..n).enumerate() {
        let values = &mut a[row * n + from..(row + 1) * n];
        values.iter_mut().zip(v).zip(&w).for_each(|((x, v_of), w_of)| *x -= v[at] * w_of + w[at] * v_of);
    }
}

fn rotate(d: &mut [f64], e: &mut [f64], vectors: &mut [Vec<f64>], is_stopped: &dyn Fn() -> bool) -> Option<()> {
    let n = d.len();
    for l in 0..n {
        for _ in 0..ROTATIONS_MAX {
            if is_stopped() {
                return None;
            }
            let is_small = |m: usize| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs());
            let m = (l..n - 1).find(|m| is_small(*m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let shift = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let root = shift.hypot(1.0);
            let mut g = d[m] - d[l] + e[l] / (shift + if shift >= 0.0 { root } else { -root });
            let (mut sin, mut cos, mut taken) = (1.0, 1.0, 0.0);
            let mut is_split = false;
            for i in (l..m).rev() {
                let (f, b) = (sin * e[i], cos * e[i]);
                let length = f.hypot(g);
                e[i + 1] = length;
                if length == 0.0 {
                    d[i + 1] -= taken;
                    e[m] = 0.0;
                    is_split = true;
                    break;
                }
                (sin, cos) = (f / length, g / length);
                g = d[i + 1] - taken;
                let turn = (d[i] - g) * sin + 2.0 * cos * b;
                taken = sin * turn;
                d[i + 1] = g + taken;
                g = cos * turn - b;
                let (low, high) = vectors.split_at_mut(i + 1);
                for (x, y) in low[i].iter_mut().zip(&mut high[0]) {
                    (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                }
            }
            if !is_split {
                d[l] -= taken;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors are orthonormal and each is stretched by its value, also where values come twice, and of matrices of rank 1 and 0.
    #[test]
    fn vectors_are_stretched_by_their_values() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        for (n, rank) in [(1, 1), (2, 2), (5, 5), (30, 30), (12, 3), (6, 1), (4, 0)] {
            let factors: Vec<Vec<f64>> = (0..rank).map(|_| (0..n).map(|_| random()).collect()).collect();
            let twice = if n == 12 { 2.0 } else { 0.0 };
            let entry = |i: usize, j: usize| factors.iter().map(|f| f[i] * f[j]).sum::<f64>() + if i == j { twice } else { 0.0 };
            let matrix: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
            let found = symmetric(matrix.clone(), n, &|| false).unwrap();
            assert!(found.values.windows(2).all(|pair| pair[0] >= pair[1]));
            for (value, vector) in found.values.iter().zip(&found.vectors) {
                for i in 0..n {
                    let stretched = dot(&matrix[i * n..(i + 1) * n], vector);
                    assert!((stretched - value * vector[i]).abs() < 1e-12, "{n} {rank}: {stretched} {value}");
                }
            }
            for i in 0..n {
                for j in 0..n {
                    assert!((dot(&found.vectors[i], &found.vectors[j]) - f64::from(i == j)).abs() < 1e-12);
                }
            }
        }
        assert!(symmetric(vec![1.0; 9], 3, &|| true).is_none());
    }
}
