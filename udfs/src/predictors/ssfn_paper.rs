//! The network of Das et al. (2022) to the letter, with the constants of the authors' program, to compare ours with (`ssfn.rs` says where it departs).
//!
//! 1. a linear map of the features as they are, neither centred nor scaled, under a ridge of 100: `O₀ = T Xᵀ (X Xᵀ + 100 I)⁻¹`
//! 2. random neurons without bias, `A = R X`, whose values are divided by their length, row by row
//! 3. the input of the readout is `max(0, [O₀ X; −O₀ X; A])`
//! 4. the readout is least squares with a length of at most `2 √(2 Q)` for `Q` columns of the label, by a hundred steps of ADMM
//!
//! One thing is ours: a feature has the same random weights for all candidates of a step and keeps them, where the authors draw anew for every fit.

use crate::judging::folds::{Folds, deviations, factors};
use crate::kernels::cholesky::Cholesky;
use crate::kernels::tiles::Tiles;
use crate::predictors::readout::bounded::{ADMM_MU, bounded};
use crate::predictors::refit::Learner;
use crate::{Problem, Result, Run};

/// The ridge of the linear map.
const RIDGE: f64 = 100.0;
/// Values shorter than this are nothing.
const TINY: f64 = 1e-12;

pub(crate) struct PaperSsfn {
    neurons: usize,
    /// What takes each column of the folds back to what it was: a factor and a mean.
    raw: Vec<(f64, f64)>,
    run: Run,
}

impl PaperSsfn {
    pub fn new(problem: &Problem, neurons: usize, run: &Run) -> Self {
        let rows = problem.rows();
        let factors = factors(&deviations(rows), problem.standardize);
        let raw = |(factor, origin): (f64, &crate::Origin)| (if factor > 0.0 { 1.0 / factor } else { 0.0 }, origin.mean);
        Self { neurons, raw: factors.into_iter().zip(&rows.origins).map(raw).collect(), run: run.clone() }
    }

    fn features(&self, folds: &Folds, columns: &[usize], row: usize, x: &mut [f64]) {
        for (x, column) in x.iter_mut().zip(columns) {
            let (factor, mean) = self.raw[*column];
            *x = folds.columns[*column][row] * factor + mean;
        }
    }

    /// The random weights of so many features, one list for each.
    fn weights(&self, features: usize) -> Vec<Vec<f64>> {
        let of = |feature: usize| {
            let mut random = self.run.random("paper neurons", feature as u64);
            (0..self.neurons).map(|_| 2.0 * random.uniform() - 1.0).collect()
        };
        (0..features).map(of).collect()
    }
}

/// The map from features to the readout's inputs.
struct Layer {
    /// `outputs × features`
    linear: Vec<Vec<f64>>,
    weights: Vec<Vec<f64>>,
}

impl Layer {
    fn width(&self) -> usize {
        2 * self.linear.len() + self.weights.first().map_or(0, Vec::len)
    }

    fn pass(&self, x: &[f64], y: &mut [f64]) {
        let q = self.linear.len();
        for (output, map) in self.linear.iter().enumerate() {
            let value: f64 = map.iter().zip(x).map(|(o, x)| o * x).sum();
            (y[output], y[q + output]) = (value.max(0.0), (-value).max(0.0));
        }
        let neurons = &mut y[2 * q..];
        neurons.fill(0.0);
        for (weights, x) in self.weights.iter().zip(x) {
            neurons.iter_mut().zip(weights).for_each(|(neuron, weight)| *neuron += weight * x);
        }
        let length = neurons.iter().map(|neuron| neuron * neuron).sum::<f64>().sqrt();
        let factor = if length < TINY { 0.0 } else { 1.0 / length };
        neurons.iter_mut().for_each(|neuron| *neuron = (factor * *neuron).max(0.0));
    }
}

/// The products of all values of some rows, each as often as it counts. `fill` writes the values of a row.
fn products(width: usize, rows: &[usize], folds: &Folds, fill: impl Fn(usize, &mut [f64]), run: &Run) -> Result<Tiles> {
    let mut tiles = Tiles::default();
    tiles.grow(width);
    let mut values = vec![0.0; width];
    for rows in rows.chunks(Tiles::ROWS) {
        run.check()?;
        for (at, row) in rows.iter().enumerate() {
            fill(*row, &mut values);
            let root = folds.weights[*row].sqrt();
            values.iter_mut().for_each(|value| *value *= root);
            tiles.set_row(at, &values);
        }
        tiles.accumulate(rows.len());
    }
    Ok(tiles)
}

impl Learner for PaperSsfn {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let (p, q) = (columns.len(), folds.labels.len());
        let m = 2 * q + self.neurons;
        let _memory = run.reserve(Tiles::bytes_for(p.max(m) + q) + 2 * (p.max(m)).pow(2) * size_of::<f64>())?;
        let label = |row: usize, to: &mut [f64]| {
            to.iter_mut().zip(&folds.labels).zip(&folds.offsets).for_each(|((to, label), offset)| *to = label[row] + offset);
        };
        let of_features = |row: usize, values: &mut [f64]| {
            self.features(folds, columns, row, &mut values[..p]);
            label(row, &mut values[p..]);
        };
        let sums = products(p + q, learn, folds, of_features, run)?;
        let factor = Cholesky::of(p, |i, j| sums.sum(i, j) + if i == j { RIDGE } else { 0.0 });
        let map = |output: usize| {
            let mut map: Vec<f64> = (0..p).map(|feature| sums.sum(feature, p + output)).collect();
            match &factor {
                Some(factor) => factor.solve(&mut map),
                None => map.fill(0.0),
            }
            map
        };
        let layer = Layer { linear: (0..q).map(map).collect(), weights: self.weights(p) };
        debug_assert_eq!(layer.width(), m);
        let of_layer = |row: usize, values: &mut [f64]| {
            let mut x = vec![0.0; p];
            self.features(folds, columns, row, &mut x);
            layer.pass(&x, &mut values[..m]);
            label(row, &mut values[m..]);
        };
        let sums = products(m + q, learn, folds, of_layer, run)?;
        let mut readout = vec![vec![0.0; m]; q];
        if let Some(factor) = Cholesky::of(m, |i, j| sums.sum(i, j) + if i == j { 1.0 / ADMM_MU } else { 0.0 }) {
            let sides: Vec<Vec<f64>> = (0..q).map(|output| (0..m).map(|at| sums.sum(at, m + output)).collect()).collect();
            bounded(&|x| factor.solve(x), &sides, 1.0, &mut readout);
        }
        let (mut x, mut y) = (vec![0.0; p], vec![0.0; m]);
        let mut predicted = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            if at % 64 == 0 {
                run.check()?;
            }
            self.features(folds, columns, *row, &mut x);
            layer.pass(&x, &mut y);
            let said = |(readout, offset): (&Vec<f64>, &f64)| readout.iter().zip(&y).map(|(o, y)| o * y).sum::<f64>() - offset;
            predicted.push(readout.iter().zip(&folds.offsets).map(said).collect());
        }
        Ok(predicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::folds::Holding;
    use crate::judging::metric::Criterion;
    use crate::testing::Table;

    /// Gauss-Jordan on a copy, for a matrix and several right-hand sides.
    fn solve(matrix: &[Vec<f64>], sides: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let n = matrix.len();
        let mut a: Vec<Vec<f64>> =
            (0..n).map(|i| matrix[i].iter().copied().chain(sides.iter().map(|side| side[i])).collect()).collect();
        for i in 0..n {
            let pivot = (i..n).max_by(|x, y| a[*x][i].abs().total_cmp(&a[*y][i].abs())).unwrap();
            a.swap(i, pivot);
            let row: Vec<f64> = a[i].iter().map(|value| value / a[i][i]).collect();
            for (other, values) in a.iter_mut().enumerate() {
                let factor = if other == i { 0.0 } else { values[i] };
                values.iter_mut().zip(&row).for_each(|(value, of_row)| *value -= factor * of_row);
            }
            a[i] = row;
        }
        (0..sides.len()).map(|side| a.iter().map(|row| row[n + side]).collect()).collect()
    }

    /// The four steps in plain loops, on the table's own numbers.
    #[test]
    fn it_is_the_network_of_the_paper() {
        let table = Table::random(90, 3, 5);
        let raised = (0..3).fold(Table::new(), |raised, j| {
            let column: Vec<f64> = table.column(j).iter().map(|x| 3.0 + (j + 1) as f64 * x).collect();
            raised.numbers(&format!("x{j}"), &column)
        });
        let x = |row: usize, j: usize| raised.column(j)[row];
        let label: Vec<f64> = (0..90).map(|row| x(row, 0) * x(row, 1).abs() + 2.0).collect();
        let problem = raised.problem_of_rows(&label);
        let folds = Folds::new(&problem, Holding::Share(0.3), Criterion::Auto, &Run::new(0)).unwrap();
        let paper = PaperSsfn::new(&problem, 12, &Run::new(4));
        let (learn, rows) = (folds.learnt_rows(0), folds.held_out_rows(0).collect::<Vec<_>>());
        let found = paper.predict(&folds, &[0, 2], &learn, &rows, &Run::default()).unwrap();
        // Rows of the folds are known by their label.
        let own = |row: usize| (0..90).find(|at| label[*at] == folds.targets[row]).unwrap();
        let features = |row: usize| [x(own(row), 0), x(own(row), 2)];
        let target = |row: usize| label[own(row)];
        let sum = |of: &dyn Fn(usize) -> f64| learn.iter().map(|row| of(*row)).sum::<f64>();
        let gram: Vec<Vec<f64>> = (0..2)
            .map(|i| (0..2).map(|j| sum(&|row| features(row)[i] * features(row)[j]) + if i == j { 100.0 } else { 0.0 }).collect())
            .collect();
        let side: Vec<f64> = (0..2).map(|i| sum(&|row| features(row)[i] * target(row))).collect();
        let linear = solve(&gram, &[side]).remove(0);
        let random = paper.weights(2);
        let hidden = |row: usize| -> Vec<f64> {
            let line = linear[0] * features(row)[0] + linear[1] * features(row)[1];
            let a: Vec<f64> = (0..12).map(|h| random[0][h] * features(row)[0] + random[1][h] * features(row)[1]).collect();
            let length = a.iter().map(|a| a * a).sum::<f64>().sqrt();
            [line, -line].into_iter().chain(a.iter().map(|a| a / length)).map(|y| y.max(0.0)).collect()
        };
        let matrix: Vec<Vec<f64>> = (0..14)
            .map(|i| (0..14).map(|j| sum(&|row| hidden(row)[i] * hidden(row)[j]) + if i == j { 1e-3 } else { 0.0 }).collect())
            .collect();
        let side: Vec<f64> = (0..14).map(|i| sum(&|row| hidden(row)[i] * target(row))).collect();
        let (mut o, mut z, mut dual) = (vec![0.0; 14], vec![0.0; 14], vec![0.0; 14]);
        for _ in 0..100 {
            let right: Vec<f64> = (0..14).map(|i| side[i] + (z[i] + dual[i]) / 1e3).collect();
            o = solve(&matrix, &[right]).remove(0);
            z = (0..14).map(|i| o[i] - dual[i]).collect::<Vec<f64>>();
            let length = z.iter().map(|z| z * z).sum::<f64>().sqrt();
            if length > 2.0 * 2f64.sqrt() {
                z.iter_mut().for_each(|z| *z *= 2.0 * 2f64.sqrt() / length);
            }
            (0..14).for_each(|i| dual[i] += z[i] - o[i]);
        }
        assert!(
            o.iter().map(|o| o * o).sum::<f64>().sqrt() > 2.0 * 2f64.sqrt(),
            "the bound is felt, and a hundred steps do not reach it"
        );
        for (row, found) in rows.iter().zip(&found) {
            let expected: f64 = hidden(*row).iter().zip(&o).map(|(y, o)| y * o).sum();
            assert!((found[0] + folds.offsets[0] - expected).abs() < 1e-6 * expected.abs().max(1.0), "{} {expected}", found[0]);
        }
    }
}
