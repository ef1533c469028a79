//! Models that are learnt once and asked often: what they predict, and what they would if some columns had other values.

use crate::judging::folds::Folds;
use crate::kernels::cholesky::Cholesky;
use crate::predictors::refit::Learner;
use crate::{Result, Run};

/// Learns from some rows of folds, and what it has learnt can be kept.
pub(crate) trait Model: Send + Sync {
    fn learn<'a>(&'a self, folds: &'a Folds, columns: &[usize], learn: &[usize], run: &Run) -> Result<Box<dyn Learnt + 'a>>;
}

/// What was learnt.
pub(crate) trait Learnt: Send + Sync {
    /// The label's columns for some rows, centred as the folds' are.
    fn predict(&self, rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>>;

    /// Whether a prediction can depend on a column.
    fn uses(&self, column: usize) -> bool;

    /// Makes ready to predict these rows with other values.
    fn probe<'b>(&'b self, rows: &'b [usize], run: &Run) -> Result<Box<dyn Probe + 'b>>;
}

/// Rows that are predicted with other values in some columns.
pub(crate) trait Probe: Send + Sync {
    fn altered(&self, columns: &[usize], instead: &Instead<'_>, run: &Run) -> Result<Vec<Vec<f64>>>;
}

/// The values that stand in.
pub(crate) enum Instead<'a> {
    /// The mean of the column, which is 0.
    Mean,
    /// For each row asked about, the row whose values it gets.
    Rows(&'a [usize]),
}

/// What a model makes of the sums of a row.
pub(crate) type Rest<'a> = Box<dyn Fn(&[f64]) -> Vec<f64> + Send + Sync + 'a>;

/// A model that begins with sums of weighted columns: least squares, logistic regression, a network of layers.
pub(crate) struct Affine<'a> {
    pub folds: &'a Folds,
    pub columns: Vec<usize>,
    /// For each column one weight for each sum.
    pub weights: Vec<f64>,
    pub start: Vec<f64>,
    /// From the sums of a row to the label's columns, centred.
    pub rest: Rest<'a>,
}

impl Affine<'_> {
    fn weights_of(&self, at: usize) -> &[f64] {
        let width = self.start.len();
        &self.weights[at * width..(at + 1) * width]
    }

    fn add_sums(&self, row: usize, sums: &mut [f64]) {
        sums.copy_from_slice(&self.start);
        for (at, column) in self.columns.iter().enumerate() {
            let x = self.folds.columns[*column][row];
            sums.iter_mut().zip(self.weights_of(at)).for_each(|(sum, weight)| *sum += x * weight);
        }
    }
}

impl Learnt for Affine<'_> {
    fn predict(&self, rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let mut sums = vec![0.0; self.start.len()];
        let mut predicted = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            if at % 64 == 0 {
                run.check()?;
            }
            self.add_sums(*row, &mut sums);
            predicted.push((self.rest)(&sums));
        }
        Ok(predicted)
    }

    fn uses(&self, column: usize) -> bool {
        let at = self.columns.iter().position(|own| *own == column);
        at.is_some_and(|at| self.weights_of(at).iter().any(|weight| *weight != 0.0))
    }

    fn probe<'b>(&'b self, rows: &'b [usize], run: &Run) -> Result<Box<dyn Probe + 'b>> {
        let width = self.start.len();
        let memory = run.reserve(rows.len() * width * size_of::<f64>())?;
        let mut sums = vec![0.0; rows.len() * width];
        for (at, (row, sums)) in rows.iter().zip(sums.chunks_mut(width)).enumerate() {
            if at % 64 == 0 {
                run.check()?;
            }
            self.add_sums(*row, sums);
        }
        Ok(Box::new(Probed { model: self, rows, sums, _memory: memory }))
    }
}

struct Probed<'a> {
    model: &'a Affine<'a>,
    rows: &'a [usize],
    /// The sums of each row as it is.
    sums: Vec<f64>,
    _memory: crate::Lease,
}

impl Probe for Probed<'_> {
    fn altered(&self, columns: &[usize], instead: &Instead<'_>, run: &Run) -> Result<Vec<Vec<f64>>> {
        let model = self.model;
        let places = columns.iter().filter_map(|column| Some((*column, model.columns.iter().position(|own| own == column)?)));
        let places: Vec<(usize, usize)> = places.collect();
        let mut predicted = Vec::with_capacity(self.rows.len());
        let mut sums = vec![0.0; model.start.len()];
        for (place, (row, own)) in self.rows.iter().zip(self.sums.chunks(sums.len())).enumerate() {
            if place % 64 == 0 {
                run.check()?;
            }
            sums.copy_from_slice(own);
            for (column, at) in &places {
                let values = &model.folds.columns[*column];
                let other = match instead {
                    Instead::Mean => 0.0,
                    Instead::Rows(others) => values[others[place]],
                };
                let change = other - values[*row];
                sums.iter_mut().zip(model.weights_of(*at)).for_each(|(sum, weight)| *sum += change * weight);
            }
            predicted.push((model.rest)(&sums));
        }
        Ok(predicted)
    }
}

/// Shares of classes from their log odds.
pub(crate) fn softmax(odds: &[f64]) -> Vec<f64> {
    let largest = odds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = odds.iter().map(|x| (x - largest).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

/// Least squares of the label's columns.
pub(crate) struct LeastSquares;

/// Keeps columns that depend on each other from making the system singular; a share of the rows' weight, of columns of variance 1.
const RIDGE: f64 = 1e-9;

impl Model for LeastSquares {
    fn learn<'a>(&'a self, folds: &'a Folds, columns: &[usize], learn: &[usize], run: &Run) -> Result<Box<dyn Learnt + 'a>> {
        let (inputs, outputs) = (columns.len() + 1, folds.labels.len());
        let _memory = run.reserve((2 * inputs * inputs + outputs * inputs) * size_of::<f64>())?;
        let mut products = vec![0.0; inputs * inputs];
        let mut sides = vec![vec![0.0; inputs]; outputs];
        let mut x = vec![1.0; inputs];
        for row in learn {
            run.check()?;
            let weight = folds.weights[*row];
            x[1..].iter_mut().zip(columns).for_each(|(x, column)| *x = folds.columns[*column][*row]);
            for i in 0..inputs {
                let factor = weight * x[i];
                products[i * inputs..i * inputs + i + 1].iter_mut().zip(&x).for_each(|(p, x)| *p += factor * x);
            }
            for (side, label) in sides.iter_mut().zip(&folds.labels) {
                side.iter_mut().zip(&x).for_each(|(s, x)| *s += weight * label[*row] * x);
            }
        }
        let ridge = RIDGE * learn.iter().map(|row| folds.weights[*row]).sum::<f64>();
        let system = |i: usize, j: usize| products[i.max(j) * inputs + i.min(j)] + if i == j { ridge } else { 0.0 };
        match Cholesky::of(inputs, system) {
            Some(factor) => sides.iter_mut().for_each(|side| factor.solve(side)),
            None => sides.iter_mut().for_each(|side| side.fill(0.0)),
        }
        let of = |at: usize| sides.iter().map(move |side| side[at]);
        let weights = (1..inputs).flat_map(of).collect();
        Ok(Box::new(Affine {
            folds,
            columns: columns.to_vec(),
            weights,
            start: of(0).collect(),
            rest: Box::new(|sums: &[f64]| sums.to_vec()),
        }))
    }
}

impl Learner for LeastSquares {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        self.learn(folds, columns, learn, run)?.predict(rows, run)
    }
}
