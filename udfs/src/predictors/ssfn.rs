//! A network of one layer with random weights, of which only the readout is learnt, in closed form.
//!
//! **As in the paper** (Das et al., 2022; the network is SSFN of Chatterjee et al.) a hidden layer of random neurons with ReLU and a linear path
//! from the inputs feed a regularised least squares readout. **Unlike it**:
//! - inputs are standardised and neurons have a bias, where the paper divides each row's hidden values by their length, by which
//!   one feature alone tells a neuron nothing but its sign. Without a bias every neuron bends at the mean, and one feature has only two shapes;
//! - the inputs themselves are columns of the readout (a direct path), where the paper first fits a linear map and feeds the positive and the negative part
//!   of its prediction, which would have to be fitted anew for every fold;
//! - a chosen feature keeps its random weights, so that the errors of two steps differ by the feature and not by luck;
//! - the ridge is chosen after each step, on the rows held out, as a share of each hidden column's variance;
//! - candidates are judged in folds, so that every row judges once, where the paper holds out one part; and numbers by the absolute error, because a few
//!   rows with extreme labels decide a sum of squares.
//!
//! **What makes it fast.** All candidates of a step share the random weights, so that a candidate's hidden values are the current ones plus one
//! product; the rest is in `readout.rs`.

use rayon::prelude::*;

use crate::judging::folds::Folds;
use crate::predictors::readout::{Readout, Ready};
use crate::predictors::{Fitted, Predictor, Stage};
use crate::{Result, Run};

/// Ridges that are tried, as shares of a column's variance; the first step begins with the one at [`FIRST`].
const RIDGES: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0, 3.0];
const FIRST: f64 = 1e-2;
/// Biases are uniform up to this, weights up to 1. A neuron with a large bias hardly bends within the data: biases up to 2 miss four times as many features of the
/// artificial problem in 250 rows as biases up to ½.
const BIAS: f64 = 0.5;
/// A sketch has one neuron for so many. A quarter costs a fifteenth.
const SKETCH: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Ssfn<'a> {
    pub folds: &'a Folds,
    pub readout: Readout,
    /// `None`: no ridge at all, as for plain least squares.
    pub ridge: Option<f64>,
    is_tuned: bool,
    run: Run,
    pub chosen: Vec<usize>,
    units: u64,
    pub neurons: usize,
    /// Neurons that weights are drawn for; a sketch has only the first of them.
    drawn: usize,
    bias: Vec<f64>,
    /// For each column chosen, its weight for each neuron.
    taken: Vec<Vec<f64>>,
}

impl<'a> Ssfn<'a> {
    /// A network; without a `ridge` it is chosen as the features are.
    pub fn new(folds: &'a Folds, neurons: usize, readout: Readout, ridge: Option<f64>, run: &Run) -> Self {
        let mut random = run.random("ssfn bias", 0);
        let bias: Vec<f64> = (0..neurons).map(|_| BIAS * (2.0 * random.uniform() - 1.0)).collect();
        let is_tuned = ridge.is_none() && readout == Readout::Ridge;
        let ridge = Some(ridge.unwrap_or(FIRST));
        let (chosen, taken) = (Vec::new(), Vec::new());
        Self { folds, readout, ridge, is_tuned, run: run.clone(), chosen, units: 0, neurons, drawn: neurons, bias, taken }
    }

    /// Plain least squares: no neurons, no ridge.
    pub fn linear(folds: &'a Folds, run: &Run) -> Self {
        Self { ridge: None, is_tuned: false, ..Self::new(folds, 0, Readout::Ridge, None, run) }
    }

    /// The random weights of the next unit's columns, one list for each.
    pub fn weights(&self, columns: usize) -> Vec<Vec<f64>> {
        let mut random = self.run.random("ssfn weights", self.units);
        let mut draw = || {
            let mut weights: Vec<f64> = (0..self.drawn).map(|_| 2.0 * random.uniform() - 1.0).collect();
            weights.truncate(self.neurons);
            weights
        };
        (0..columns).map(|_| draw()).collect()
    }

    /// The values of the neurons for a row, before the ReLU. They are worked out anew for each step: kept, they would take as much memory as all
    /// the rest, and a step takes many times as long.
    pub fn hidden(&self, row: usize, hidden: &mut [f64]) {
        hidden.copy_from_slice(&self.bias);
        for (column, weights) in self.chosen.iter().zip(&self.taken) {
            let x = self.folds.columns[*column][row];
            hidden.iter_mut().zip(weights).for_each(|(hidden, weight)| *hidden += weight * x);
        }
    }

    /// The network of the first neurons.
    fn of_first(&self, neurons: usize) -> Self {
        let first = |weights: &Vec<f64>| weights[..neurons].to_vec();
        Self { neurons, bias: first(&self.bias), taken: self.taken.iter().map(first).collect(), ..self.clone() }
    }

    pub fn ready(&self, width: usize, run: &Run) -> Result<Ready<'_>> {
        Ready::new(self, width, run)
    }
}

impl<'a> Predictor<'a> for Ssfn<'a> {
    fn stage(&self, width: usize, run: &Run) -> Result<Box<dyn Stage + '_>> {
        Ok(Box::new(self.ready(width, run)?))
    }

    fn sketch(&self) -> Option<Box<dyn Predictor<'a> + 'a>> {
        let neurons = self.neurons.div_ceil(SKETCH);
        (neurons < self.neurons).then(|| Box::new(self.of_first(neurons)) as _)
    }

    fn redrawn(&self, folds: &'a Folds, draw: u64) -> Option<Box<dyn Predictor<'a> + 'a>> {
        let run = self.run.with_seed(draw + 1);
        let other = Self::new(folds, self.neurons, self.readout, self.ridge, &run);
        (self.neurons > 0).then(|| Box::new(Self { is_tuned: self.is_tuned, ..other }) as _)
    }

    fn fit(&mut self, unit: &[usize], run: &Run) -> Result<Fitted> {
        let ready = self.ready(unit.len(), run)?;
        let _memory = run.reserve(RIDGES.len() * ready.scratch_bytes())?;
        let mut scratch = ready.scratch();
        ready.products(unit, &mut scratch, run)?;
        let mut ridge = self.ridge;
        if self.is_tuned {
            let losses = RIDGES.into_par_iter().map(|ridge| {
                let mut scratch = scratch.clone();
                Ok((ready.loss_with(unit, Some(ridge), &mut scratch, run)?, ridge))
            });
            // Of equals the largest, which is the simplest.
            let best = losses.collect::<Result<Vec<_>>>()?;
            ridge = best.into_iter().reduce(|a, b| if b.0 <= a.0 { b } else { a }).map(|(_, ridge)| ridge);
        }
        let fitted = ready.fitted(unit, ridge, &mut scratch, run)?;
        self.ridge = ridge;
        Ok(fitted)
    }

    fn keep(&mut self, unit: &[usize]) {
        self.taken.extend(self.weights(unit.len()));
        self.chosen.extend(unit);
        self.units += 1;
    }

    fn copy(&self) -> Box<dyn Predictor<'a> + 'a> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::folds::Holding;
    use crate::judging::metric::Criterion;
    use crate::testing::{Table, least_squares};

    fn folds_of(table: &Table, label: &[f64], holding: Holding) -> Folds {
        Folds::new(&table.problem_of_rows(label), holding, Criterion::Auto, &Run::new(0)).unwrap()
    }

    fn bent(rows: usize, seed: u64) -> (Table, Vec<f64>) {
        let table = Table::random(rows, 6, seed);
        let label = (0..rows).map(|row| table.column(0)[row].abs() + table.column(1)[row] * table.column(2)[row]).collect();
        (table, label)
    }

    /// The error on the rows held out, computed with nothing but loops: hidden values from scratch, normal equations by elimination.
    fn plain_loss(network: &Ssfn<'_>, order: &[&[usize]], ridge: f64) -> f64 {
        let folds = network.folds;
        let mut bias = network.run.random("ssfn bias", 0);
        let bias: Vec<f64> = (0..network.neurons).map(|_| BIAS * (2.0 * bias.uniform() - 1.0)).collect();
        let inputs = |row: usize| -> Vec<f64> {
            let mut hidden = bias.clone();
            let mut linear = Vec::new();
            for (step, unit) in order.iter().enumerate() {
                let mut random = network.run.random("ssfn weights", step as u64);
                for column in unit.iter() {
                    let x = folds.columns[*column][row];
                    hidden.iter_mut().for_each(|h| *h += (2.0 * random.uniform() - 1.0) * x);
                    linear.push(x);
                }
            }
            hidden.iter().map(|h| h.max(0.0)).chain(linear).collect()
        };
        let mut loss = 0.0;
        for fit in 0..folds.held_out.len() {
            let learn = folds.learnt_rows(fit);
            let weight: f64 = learn.iter().map(|row| folds.weights[*row]).sum();
            let y: Vec<Vec<f64>> = (0..folds.rows()).map(inputs).collect();
            let n = y[0].len();
            let mean = |of: &dyn Fn(usize) -> f64| learn.iter().map(|row| folds.weights[*row] * of(*row)).sum::<f64>() / weight;
            let means: Vec<f64> = (0..n).map(|j| mean(&|row| y[row][j])).collect();
            for label in &folds.labels {
                let label_mean = mean(&|row| label[row]);
                let mut a = vec![vec![0.0; n + 1]; n];
                for row in &learn {
                    for i in 0..n {
                        let d = folds.weights[*row] * (y[*row][i] - means[i]);
                        (0..n).for_each(|j| a[i][j] += d * (y[*row][j] - means[j]));
                        a[i][n] += d * (label[*row] - label_mean);
                    }
                }
                (0..n).for_each(|i| a[i][i] *= 1.0 + ridge);
                (0..n).filter(|i| a[*i][*i] == 0.0).collect::<Vec<_>>().into_iter().for_each(|i| a[i][i] = 1.0);
                for i in 0..n {
                    let row = a[i].clone();
                    for below in &mut a[i + 1..] {
                        let factor = below[i] / row[i];
                        (i..=n).for_each(|j| below[j] -= factor * row[j]);
                    }
                }
                let mut beta = vec![0.0; n];
                for i in (0..n).rev() {
                    beta[i] = (a[i][n] - (i + 1..n).map(|j| a[i][j] * beta[j]).sum::<f64>()) / a[i][i];
                }
                for row in folds.held_out_rows(fit) {
                    let predicted = label_mean + (0..n).map(|j| beta[j] * (y[row][j] - means[j])).sum::<f64>();
                    let error = label[row] - predicted;
                    loss += folds.weights[row] * if folds.is_absolute { error.abs() } else { error * error };
                }
            }
        }
        loss
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-8 * b.abs()
    }

    /// Step after step, one column or two at a time, in folds and with a share held out: what is updated equals what is computed anew.
    #[test]
    fn the_incremental_path_equals_a_dense_solve_from_scratch() {
        let (table, label) = bent(150, 3);
        for holding in [Holding::Folds(4), Holding::Share(0.3)] {
            let folds = folds_of(&table, &label, holding);
            let mut network = Ssfn::new(&folds, 20, Readout::Ridge, Some(1e-3), &Run::new(7));
            let units: [&[usize]; 4] = [&[1], &[0, 4], &[5], &[2]];
            for at in 0..units.len() {
                let plain = plain_loss(&network, &units[..=at], 1e-3);
                let quick = network.ready(units[at].len(), &Run::new(0)).unwrap().loss(units[at], &Run::new(0)).unwrap();
                assert!(close(quick, plain), "{holding:?} {at}: {quick} {plain}");
                let fitted = network.fit(units[at], &Run::new(0)).unwrap();
                assert!(
                    close(fitted.valid.criterion(folds.is_absolute), plain),
                    "{holding:?} {at}: {} {plain}",
                    fitted.valid.criterion(folds.is_absolute)
                );
                network.keep(units[at]);
            }
        }
    }

    #[test]
    fn weights_and_classes_equal_a_dense_solve_too() {
        let (table, label) = bent(120, 4);
        let classes: Vec<f64> = label.iter().map(|y| if *y > 1.0 { 2.0 } else { f64::from(*y > 0.3) }).collect();
        let table = Table {
            weights: Some((0..120).map(|row| 0.5 + f64::from(row % 3)).collect()),
            task: Some(crate::Task::Classification),
            ..table
        };
        for criterion in [Criterion::Squared, Criterion::Absolute] {
            let folds = Folds::new(&table.problem_of_rows(&classes), Holding::Folds(3), criterion, &Run::new(0)).unwrap();
            let network = Ssfn::new(&folds, 15, Readout::Ridge, Some(1e-2), &Run::new(7));
            let quick = network.ready(2, &Run::new(0)).unwrap().loss(&[0, 2], &Run::new(0)).unwrap();
            assert!(close(quick, plain_loss(&network, &[&[0, 2]], 1e-2)), "{criterion:?}");
        }
    }

    #[test]
    fn linear_is_least_squares() {
        let (table, label) = bent(90, 5);
        let folds = folds_of(&table, &label, Holding::Share(0.2));
        let mut linear = Ssfn::linear(&folds, &Run::new(0));
        linear.keep(&[0]);
        linear.keep(&[3]);
        let fitted = linear.fit(&[1], &Run::new(0)).unwrap();
        let rows = folds.learnt_rows(0);
        let column = |at: usize| rows.iter().map(|row| folds.columns[at][*row]).collect::<Vec<f64>>();
        let columns = [column(0), column(3), column(1)];
        let labels: Vec<f64> = rows.iter().map(|row| folds.labels[0][*row]).collect();
        let (_, r2) = least_squares(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>(), &labels);
        assert!((1.0 - fitted.train.unexplained() - r2).abs() < 1e-10);
    }

    /// Other draws are other networks, the same ones each time; without neurons there is nothing to draw.
    #[test]
    fn a_redrawn_network_has_other_neurons() {
        let (table, label) = bent(80, 8);
        let folds = folds_of(&table, &label, Holding::Default);
        let run = Run::new(1);
        let mut network = Ssfn::new(&folds, 20, Readout::Ridge, Some(1e-2), &run);
        let own = network.stage(1, &run).unwrap().loss(&[0], &run).unwrap();
        network.keep(&[1]);
        let redrawn = |draw| network.redrawn(&folds, draw).unwrap().stage(1, &run).unwrap().loss(&[0], &run).unwrap();
        assert!(redrawn(0) != own && redrawn(0) != redrawn(1) && redrawn(0) == redrawn(0));
        assert!(Ssfn::linear(&folds, &run).redrawn(&folds, 0).is_none());
    }

    /// The sketch is the network of its first neurons.
    #[test]
    fn a_sketch_is_a_smaller_network() {
        let (table, label) = bent(80, 8);
        let folds = folds_of(&table, &label, Holding::Default);
        let mut network = Ssfn::new(&folds, 40, Readout::Ridge, Some(1e-2), &Run::new(1));
        network.keep(&[0, 3]);
        let (run, sketch) = (Run::new(0), network.sketch().unwrap());
        let small = network.of_first(10);
        let (mut all, mut first) = ([0.0; 40], [0.0; 10]);
        network.hidden(7, &mut all);
        small.hidden(7, &mut first);
        assert_eq!(all[..10], first);
        assert_eq!(sketch.stage(1, &run).unwrap().loss(&[1], &run), small.stage(1, &run).unwrap().loss(&[1], &run));
        assert!(small.sketch().is_some() && Ssfn::linear(&folds, &run).sketch().is_none());
    }
}
