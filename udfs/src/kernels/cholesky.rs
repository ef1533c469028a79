use crate::kernels::dot;

/// The Cholesky factor of a symmetric positive definite matrix that grows by a row at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cholesky {
    /// Row i has i + 1 elements.
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    /// The factor of a whole matrix; `None` if it is singular.
    pub fn of(n: usize, element: impl Fn(usize, usize) -> f64) -> Option<Self> {
        let mut factor = Self::default();
        (0..n).all(|i| factor.push(|j| element(i, j))).then_some(factor)
    }

    /// Adds a row of the matrix, `element(j)` for j up to and including the diagonal. Refuses one that depends on the rows before it.
    pub fn push(&mut self, element: impl Fn(usize) -> f64) -> bool {
        let n = self.rows.len();
        let mut row = Vec::with_capacity(n + 1);
        for j in 0..n {
            let known = dot(&row, &self.rows[j][..j]);
            row.push((element(j) - known) / self.rows[j][j]);
        }
        let pivot = element(n) - dot(&row, &row);
        let is_independent = pivot > PIVOT * element(n);
        if is_independent {
            row.push(pivot.sqrt());
            self.rows.push(row);
        }
        is_independent
    }

    /// Its rows, of which the i-th has i + 1 elements.
    pub fn into_rows(self) -> Vec<Vec<f64>> {
        self.rows
    }

    /// Solves for one right-hand side, in place.
    pub fn solve(&self, x: &mut [f64]) {
        let n = self.rows.len();
        for i in 0..n {
            let known: f64 = self.rows[i][..i].iter().zip(&*x).map(|(l, x)| l * x).sum();
            x[i] = (x[i] - known) / self.rows[i][i];
        }
        for i in (0..n).rev() {
            x[i] /= self.rows[i][i];
            let solved = x[i];
            x[..i].iter_mut().zip(&self.rows[i]).for_each(|(x, l)| *x -= l * solved);
        }
    }
}

/// Share of its diagonal that a row must keep beside the rows before it.
const PIVOT: f64 = 1e-10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_by_hand() {
        // [[4, 2], [2, 5]] x = [8, 12] has x = [1, 2].
        let matrix = [[4.0, 2.0], [2.0, 5.0]];
        let mut x = [8.0, 12.0];
        Cholesky::of(2, |i, j| matrix[i][j]).unwrap().solve(&mut x);
        assert!((x[0] - 1.0).abs() < 1e-15 && (x[1] - 2.0).abs() < 1e-15);
    }

    #[test]
    fn refuses_a_dependent_row() {
        let mut factor = Cholesky::of(1, |_, _| 4.0).unwrap();
        assert!(!factor.push(|j| [2.0, 1.0][j]));
        assert!(factor.push(|j| [2.0, 2.0][j]));
        assert!(Cholesky::of(2, |_, _| 1.0).is_none());
    }
}
