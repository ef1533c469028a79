//! A network of one layer with random weights, of which only the readout is learnt, in closed form.
//!
//! **As in the paper** (Das et al., 2022; the network is SSFN of Chatterjee et al.) a hidden layer of random neurons with ReLU and a linear path
//! from the inputs feed a regularised least squares readout. **Unlike it**, and each for a measured reason (benches/ngp.rs prints the figures):
//! - inputs are standardised and neurons have a bias, where the paper divides each row's hidden values by their length, by which
//!   one feature alone tells a neuron nothing but its sign;
//! - the linear path is the inputs themselves in the readout, where the paper first fits a linear map and feeds the positive and the negative part of
//!   its prediction, which would have to be fitted anew for every fold;
//! - a chosen feature keeps its random weights, so that the errors of two steps differ by the feature and not by luck;
//! - the ridge is chosen after each step, on the rows held out, as a share of each hidden column's variance.
//!
//! **What makes it fast.** All candidates of a step share the random weights, so that a candidate's hidden values are the current ones plus one
//! product. These are written straight into the strips that the tile kernel multiplies. Folds share the products: each
//! segment's are summed once, and a fold learns from the total less its own.

use rayon::prelude::*;

use super::metric::Tally;
use super::sample::Sample;
use super::{Fitted, Predictor, Stage};
use crate::math::strips::{Aligned, Strips};
use crate::math::tiles::{Kernel, ROWS, TILE, WIDTH, kernel};
use crate::{Result, Run, choice};

choice! {
    /// How the readout is kept small.
    pub enum Readout {
        Ridge = "ridge",
        Admm = "admm",
    }
}

/// Ridges that are tried, as shares of a column's variance; the first step begins with the one at [`FIRST`].
const RIDGES: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0, 3.0];
const FIRST: f64 = 1e-2;
/// A column of which less is left than this share, once the columns before it are known, is not used.
const PIVOT: f64 = 1e-10;
/// A sketch has one neuron for so many. A quarter costs a fifteenth.
const SKETCH: usize = 4;
/// The paper's constants: penalty of a departure from the bound, and how many times.
const ADMM_MU: f64 = 1e3;
const ADMM_STEPS: usize = 100;

#[derive(Debug, Clone)]
pub(crate) struct Ssfn<'a> {
    sample: &'a Sample,
    readout: Readout,
    /// `None`: no ridge at all, as for plain least squares.
    ridge: Option<f64>,
    is_tuned: bool,
    run: Run,
    chosen: Vec<usize>,
    units: u64,
    neurons: usize,
    /// Neurons that weights are drawn for; a sketch has only the first of them.
    drawn: usize,
    /// `hidden[row * neurons + neuron]`, before the ReLU.
    hidden: Vec<f64>,
}

impl<'a> Ssfn<'a> {
    /// A network; without a `ridge` it is chosen as the features are.
    pub fn new(sample: &'a Sample, neurons: usize, readout: Readout, ridge: Option<f64>, run: &Run) -> Self {
        let mut random = run.random("ssfn bias", 0);
        let bias: Vec<f64> = (0..neurons).map(|_| 2.0 * random.uniform() - 1.0).collect();
        let hidden = (0..sample.rows()).flat_map(|_| bias.iter().copied()).collect();
        let is_tuned = ridge.is_none() && readout == Readout::Ridge;
        let ridge = Some(ridge.unwrap_or(FIRST));
        Self { sample, readout, ridge, is_tuned, run: run.clone(), chosen: Vec::new(), units: 0, neurons, drawn: neurons, hidden }
    }

    /// Plain least squares: no neurons, no ridge.
    pub fn linear(sample: &'a Sample, run: &Run) -> Self {
        Self { ridge: None, is_tuned: false, ..Self::new(sample, 0, Readout::Ridge, None, run) }
    }

    pub fn ridge(&self) -> Option<f64> {
        self.ridge
    }

    /// The random weights of the next unit's columns, one list for each.
    fn weights(&self, columns: usize) -> Vec<Vec<f64>> {
        let mut random = self.run.random("ssfn weights", self.units);
        let mut draw = || {
            let mut weights: Vec<f64> = (0..self.drawn).map(|_| 2.0 * random.uniform() - 1.0).collect();
            weights.truncate(self.neurons);
            weights
        };
        (0..columns).map(|_| draw()).collect()
    }

    /// Everything but the hidden values.
    fn bare(&self) -> Self {
        Self { run: self.run.clone(), chosen: self.chosen.clone(), hidden: Vec::new(), ..*self }
    }

    fn ready(&self, width: usize) -> Ready<'_> {
        Ready::new(self, width)
    }
}

impl<'a> Predictor<'a> for Ssfn<'a> {
    fn stage(&self, width: usize) -> Box<dyn Stage + '_> {
        Box::new(self.ready(width))
    }

    fn sketch(&self) -> Option<Box<dyn Predictor<'a> + 'a>> {
        let neurons = self.neurons.div_ceil(SKETCH);
        let first = |hidden: &[f64]| hidden[..neurons].to_vec();
        let is_smaller = neurons < self.neurons;
        is_smaller.then(|| {
            let hidden = self.hidden.chunks_exact(self.neurons).flat_map(first).collect();
            Box::new(Self { neurons, hidden, ..self.bare() }) as _
        })
    }

    fn fit(&mut self, unit: &[usize], run: &Run) -> Result<Fitted> {
        let ready = self.ready(unit.len());
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
        for (column, weights) in unit.iter().zip(self.weights(unit.len())) {
            let values = &self.sample.columns[*column];
            for (hidden, x) in self.hidden.chunks_exact_mut(self.neurons.max(1)).zip(values) {
                hidden.iter_mut().zip(&weights).for_each(|(hidden, weight)| *hidden += weight * x);
            }
        }
        self.chosen.extend(unit);
        self.units += 1;
    }

    fn copy(&self) -> Box<dyn Predictor<'a> + 'a> {
        Box::new(self.clone())
    }
}

/// A run of rows of one segment that is multiplied at a time.
#[derive(Debug, Clone, Copy)]
struct Block {
    segment: usize,
    start: usize,
    rows: usize,
}

/// The network before a step, laid out for units of one width.
///
/// A row's columns stand in lanes, twelve to a strip: first those that a candidate changes, the neurons and its own columns; then, beginning in what the last of their
/// strips leaves free, those that it does not: a 1 for the intercept, the label, the features chosen before.
struct Ready<'a> {
    network: &'a Ssfn<'a>,
    weights: Vec<Vec<f64>>,
    blocks: Vec<Block>,
    /// Strips that a candidate changes, and all.
    changing: usize,
    strips: usize,
    /// What each block has without a candidate: `values[((block * strips + strip) * ROWS + row) * WIDTH + lane]`.
    values: Aligned,
    /// The least value of a lane: 0 for a neuron.
    least: Vec<f64>,
    /// 1 for a lane that the readout learns a coefficient for.
    is_input: Vec<f64>,
    intercept: usize,
    labels: Vec<usize>,
    /// Products of the strips that no candidate changes, for each segment that is learnt from.
    fixed: Vec<Vec<f64>>,
    kernel: Kernel,
}

/// What one thread works in.
#[derive(Debug, Clone)]
struct Scratch {
    /// The changing strips of a block.
    block: Aligned,
    /// For each segment, tile (left, right) at `right (right + 1) / 2 + left`.
    products: Vec<Vec<f64>>,
    total: Vec<f64>,
    matrix: Strips,
    floor: Vec<f64>,
    /// For each column of the label, what each lane adds to its residual.
    coefficients: Vec<Vec<f64>>,
    residuals: Vec<f64>,
}

fn tile(left: usize, right: usize) -> usize {
    (right * (right + 1) / 2 + left) * TILE
}

impl<'a> Ready<'a> {
    fn new(network: &'a Ssfn<'a>, width: usize) -> Self {
        let sample = network.sample;
        let (neurons, sides) = (network.neurons, sample.labels.len());
        let free = neurons + width;
        let (intercept, labels) = (free, (free + 1..=free + sides).collect::<Vec<_>>());
        let chosen = free + 1 + sides;
        let lanes = chosen + network.chosen.len();
        let (changing, strips) = (free.div_ceil(WIDTH), lanes.div_ceil(WIDTH));
        let mut blocks = Vec::new();
        for (segment, rows) in sample.segments.iter().enumerate() {
            let starts = rows.clone().step_by(ROWS);
            blocks.extend(starts.map(|start| Block { segment, start, rows: ROWS.min(rows.end - start) }));
        }
        let mut is_input = vec![0.0; strips * WIDTH];
        (0..lanes).filter(|lane| *lane < free || *lane >= chosen).for_each(|lane| is_input[lane] = 1.0);
        let mut least = vec![f64::NEG_INFINITY; strips * WIDTH];
        least[..neurons].fill(0.0);
        let mut ready = Self {
            network,
            weights: network.weights(width),
            changing,
            strips,
            values: Aligned::zeros(blocks.len() * strips * ROWS * WIDTH),
            blocks,
            least,
            is_input,
            intercept,
            labels,
            fixed: Vec::new(),
            kernel: kernel(),
        };
        ready.lay_out(chosen);
        ready.fixed = ready.fixed_products();
        ready
    }

    /// Writes the current network into the lanes. A row that counts twice is longer by √2, and everything linear follows.
    fn lay_out(&mut self, chosen: usize) {
        let (network, strips) = (self.network, self.strips);
        let (sample, neurons) = (network.sample, network.neurons);
        let (intercept, labels, blocks) = (self.intercept, &self.labels, &self.blocks);
        self.values.par_chunks_mut(strips * ROWS * WIDTH).zip(blocks).for_each(|(values, block)| {
            for at in 0..block.rows {
                let row = block.start + at;
                let root = if sample.is_weighted { sample.weights[row].sqrt() } else { 1.0 };
                let mut set = |lane: usize, value: f64| values[(lane / WIDTH * ROWS + at) * WIDTH + lane % WIDTH] = root * value;
                let hidden = &network.hidden[row * neurons..][..neurons];
                hidden.iter().enumerate().for_each(|(lane, value)| set(lane, *value));
                set(intercept, 1.0);
                labels.iter().zip(&sample.labels).for_each(|(lane, label)| set(*lane, label[row]));
                let features = network.chosen.iter().enumerate();
                features.for_each(|(at, column)| set(chosen + at, sample.columns[*column][row]));
            }
        });
    }

    /// The products that are the same for all candidates.
    fn fixed_products(&self) -> Vec<Vec<f64>> {
        let segments = 0..self.network.sample.segments.len();
        let of = |segment: usize| {
            let mut sums = vec![0.0; tile(0, self.strips)];
            for (at, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.segment == segment) {
                for right in self.changing..self.strips {
                    (self.changing..=right).for_each(|left| {
                        let (left_strip, right_strip) = (self.strip(at, left, block.rows), self.strip(at, right, block.rows));
                        (self.kernel)(left_strip, right_strip, as_tile(&mut sums[tile(left, right)..]));
                    });
                }
            }
            sums
        };
        let learnt = |segment: usize| if self.network.sample.is_learnt(segment) { of(segment) } else { Vec::new() };
        segments.into_par_iter().map(learnt).collect()
    }

    fn strip(&self, block: usize, strip: usize, rows: usize) -> &[f64] {
        &self.values[(block * self.strips + strip) * ROWS * WIDTH..][..rows * WIDTH]
    }

    fn scratch(&self) -> Scratch {
        let sides = self.labels.len();
        Scratch {
            block: Aligned::zeros(self.changing * ROWS * WIDTH),
            products: vec![Vec::new(); self.network.sample.segments.len()],
            total: Vec::new(),
            matrix: Strips::default(),
            floor: Vec::new(),
            coefficients: vec![vec![0.0; self.strips * WIDTH]; sides],
            residuals: Vec::new(),
        }
    }

    /// For each column of a unit, what a lane takes of it: its weight for a neuron, itself in its own lane.
    fn shares(&self, unit: &[usize]) -> Vec<Vec<f64>> {
        let neurons = self.network.neurons;
        let share = |(at, _): (usize, &usize)| {
            let mut lanes = vec![0.0; self.changing * WIDTH];
            lanes[..neurons].copy_from_slice(&self.weights[at]);
            lanes[neurons + at] = 1.0;
            lanes
        };
        unit.iter().enumerate().map(share).collect()
    }

    /// The changing strips of a block with a unit in them.
    #[inline(always)]
    fn write(&self, at: usize, unit: &[usize], shares: &[Vec<f64>], out: &mut [f64]) {
        let (block, sample) = (self.blocks[at], self.network.sample);
        let rows = block.start..block.start + block.rows;
        let twelve = |lanes: &[f64]| -> [f64; WIDTH] { lanes.try_into().expect("a strip has twelve lanes") };
        let root = |at: usize| if sample.is_weighted { sample.weights[rows.start + at].sqrt() } else { 1.0 };
        for strip in 0..self.changing {
            let lanes = strip * WIDTH..(strip + 1) * WIDTH;
            let least = twelve(&self.least[lanes.clone()]);
            let out = out[strip * ROWS * WIDTH..][..block.rows * WIDTH].as_chunks_mut::<WIDTH>().0;
            let mut before = self.strip(at, strip, block.rows).as_chunks::<WIDTH>().0;
            let mut sums = Vec::new();
            let (last, others) = unit.split_last().expect("a unit has a column");
            if !others.is_empty() {
                sums.extend_from_slice(before);
                for (column, share) in others.iter().zip(shares) {
                    let share = twelve(&share[lanes.clone()]);
                    for (at, (row, x)) in sums.iter_mut().zip(&sample.columns[*column][rows.clone()]).enumerate() {
                        let x = x * root(at);
                        (0..WIDTH).for_each(|lane| row[lane] += share[lane] * x);
                    }
                }
                before = &sums;
            }
            // The last column, and for most units the only one, is added on the way.
            let share = twelve(&shares[others.len()][lanes]);
            let values = &sample.columns[*last][rows.clone()];
            for (at, ((out, before), x)) in out.iter_mut().zip(before).zip(values).enumerate() {
                let x = x * root(at);
                for lane in 0..WIDTH {
                    let sum = before[lane] + share[lane] * x;
                    out[lane] = if sum > least[lane] { sum } else { least[lane] };
                }
            }
        }
    }

    /// The products of all lanes with a unit in them, for each segment and in total.
    fn products(&self, unit: &[usize], scratch: &mut Scratch, run: &Run) -> Result<()> {
        let sample = self.network.sample;
        let shares = self.shares(unit);
        for (segment, products) in scratch.products.iter_mut().enumerate() {
            if sample.is_learnt(segment) {
                products.clear();
                products.extend_from_slice(&self.fixed[segment]);
            }
        }
        for at in 0..self.blocks.len() {
            let block = self.blocks[at];
            if !sample.is_learnt(block.segment) {
                continue;
            }
            run.check()?;
            self.write_fast(at, unit, &shares, &mut scratch.block);
            let sums = &mut scratch.products[block.segment];
            for right in 0..self.strips {
                let of = |strip: usize| match strip {
                    strip if strip < self.changing => &scratch.block[strip * ROWS * WIDTH..][..block.rows * WIDTH],
                    strip => self.strip(at, strip, block.rows),
                };
                for left in 0..=right.min(self.changing - 1) {
                    (self.kernel)(of(left), of(right), as_tile(&mut sums[tile(left, right)..]));
                }
            }
        }
        scratch.total.clear();
        scratch.total.resize(tile(0, self.strips), 0.0);
        for products in &scratch.products {
            scratch.total.iter_mut().zip(products).for_each(|(total, product)| *total += product);
        }
        Ok(())
    }

    fn write_fast(&self, at: usize, unit: &[usize], shares: &[Vec<f64>], out: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function was compiled for.
            unsafe { write_avx2(self, at, unit, shares, out) };
            return;
        }
        self.write(at, unit, shares, out);
    }

    /// Learns the readout of one fit. The products must be there.
    fn learn(&self, fit: usize, ridge: Option<f64>, scratch: &mut Scratch) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function was compiled for.
            unsafe { learn_avx2(self, fit, ridge, scratch) };
            return;
        }
        self.learn_plainly(fit, ridge, scratch);
    }

    #[inline(always)]
    fn learn_plainly(&self, fit: usize, ridge: Option<f64>, scratch: &mut Scratch) {
        let own = &scratch.products[self.network.sample.held_out[fit]];
        let total = &scratch.total;
        let product = |i: usize, j: usize| {
            let (i, j) = if i / WIDTH <= j / WIDTH { (i, j) } else { (j, i) };
            let at = tile(i / WIDTH, j / WIDTH) + i % WIDTH * WIDTH + j % WIDTH;
            total[at] - own.get(at).copied().unwrap_or(0.0)
        };
        let lanes = self.strips * WIDTH;
        let weight = product(self.intercept, self.intercept);
        let means: Vec<f64> = (0..lanes).map(|lane| product(self.intercept, lane) / weight * self.is_input[lane]).collect();
        let means_of_labels: Vec<f64> = self.labels.iter().map(|lane| product(self.intercept, *lane) / weight).collect();
        let matrix = &mut scratch.matrix;
        matrix.clear(lanes, self.labels.len());
        for right in 0..self.strips {
            for left in 0..=right {
                let at = tile(left, right);
                let mut centred = [0.0; TILE];
                centred.copy_from_slice(&total[at..at + TILE]);
                if let Some(own) = own.get(at..at + TILE) {
                    centred.iter_mut().zip(own).for_each(|(value, own)| *value -= own);
                }
                let (input, mean) = (&self.is_input[right * WIDTH..][..WIDTH], &means[right * WIDTH..][..WIDTH]);
                for (row, values) in centred.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
                    let (own_input, own_mean) = (self.is_input[left * WIDTH + row], weight * means[left * WIDTH + row]);
                    for lane in 0..WIDTH {
                        values[lane] = own_input * input[lane] * values[lane] - own_mean * mean[lane];
                    }
                }
                matrix.set_tile(left, right, &centred);
            }
        }
        scratch.floor.clear();
        for lane in 0..lanes {
            let variance = matrix.get(lane, lane);
            let whole = variance + weight * means[lane] * means[lane];
            scratch.floor.push(f64::max(PIVOT * variance, 1e-3 * PIVOT * whole));
            let ridge = match self.network.readout {
                Readout::Ridge => ridge.unwrap_or(0.0) * variance,
                Readout::Admm => 1.0 / ADMM_MU,
            };
            matrix.set(lane, lane, variance + ridge * self.is_input[lane]);
            for (side, label) in self.labels.iter().enumerate() {
                let covariance = product(lane, *label) - weight * means[lane] * means_of_labels[side];
                matrix.set(lane, lanes + side, self.is_input[lane] * covariance);
            }
        }
        let sides: Vec<Vec<f64>> = match self.network.readout {
            Readout::Ridge => Vec::new(),
            Readout::Admm => (0..self.labels.len()).map(|q| (0..lanes).map(|i| matrix.get(i, lanes + q)).collect()).collect(),
        };
        matrix.factorise(&scratch.floor);
        let spread: f64 = self
            .labels
            .iter()
            .zip(&means_of_labels)
            .map(|(lane, mean)| product(*lane, *lane) - weight * mean * mean)
            .sum::<f64>()
            / weight
            / self.labels.len() as f64;
        match self.network.readout {
            Readout::Ridge => {
                let solved = scratch.coefficients.iter_mut().enumerate();
                solved.for_each(|(side, coefficients)| matrix.solution(side, coefficients));
            }
            Readout::Admm => bounded(matrix, &sides, spread.sqrt(), &mut scratch.coefficients),
        }
        // The residual is the label less the prediction: with these signs all lanes simply add up.
        for (side, coefficients) in scratch.coefficients.iter_mut().enumerate() {
            let explained: f64 = coefficients.iter().zip(&means).map(|(coefficient, mean)| coefficient * mean).sum();
            coefficients.iter_mut().zip(&self.is_input).for_each(|(coefficient, is_input)| *coefficient *= -is_input);
            coefficients[self.intercept] = explained - means_of_labels[side];
            coefficients[self.labels[side]] = 1.0;
        }
    }

    /// Residuals of one column of the label in a block, times the root of the weight. The changing strips must be there.
    fn residuals(&self, at: usize, side: usize, scratch: &mut Scratch) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function was compiled for.
            unsafe { residuals_avx2(self, at, side, scratch) };
            return;
        }
        self.residuals_plainly(at, side, scratch);
    }

    #[inline(always)]
    fn residuals_plainly(&self, at: usize, side: usize, scratch: &mut Scratch) {
        let rows = self.blocks[at].rows;
        let mut sums = [[0.0; WIDTH]; ROWS];
        for strip in 0..self.strips {
            let coefficients: &[f64; WIDTH] =
                scratch.coefficients[side][strip * WIDTH..][..WIDTH].try_into().expect("a strip has twelve lanes");
            let values = if strip < self.changing {
                &scratch.block[strip * ROWS * WIDTH..][..rows * WIDTH]
            } else {
                self.strip(at, strip, rows)
            };
            for (sum, row) in sums.iter_mut().zip(values.as_chunks::<WIDTH>().0) {
                for lane in 0..WIDTH {
                    sum[lane] += row[lane] * coefficients[lane];
                }
            }
        }
        scratch.residuals.clear();
        scratch.residuals.extend(sums[..rows].iter().map(|sum| sum.iter().sum::<f64>()));
    }

    /// The squared error on the rows held out. The products must be there.
    fn loss_with(&self, unit: &[usize], ridge: Option<f64>, scratch: &mut Scratch, run: &Run) -> Result<f64> {
        let shares = self.shares(unit);
        let mut loss = 0.0;
        for (fit, segment) in self.network.sample.held_out.iter().enumerate() {
            run.check()?;
            self.learn(fit, ridge, scratch);
            for at in (0..self.blocks.len()).filter(|at| self.blocks[*at].segment == *segment) {
                self.write_fast(at, unit, &shares, &mut scratch.block);
                for side in 0..self.labels.len() {
                    self.residuals(at, side, scratch);
                    loss += scratch.residuals.iter().map(|residual| residual * residual).sum::<f64>();
                }
            }
        }
        Ok(loss)
    }

    /// How well the network does with a unit, row by row. The products must be there.
    fn fitted(&self, unit: &[usize], ridge: Option<f64>, scratch: &mut Scratch, run: &Run) -> Result<Fitted> {
        let sample = self.network.sample;
        let shares = self.shares(unit);
        let (mut train, mut valid) = (Tally::default(), Tally::default());
        for (fit, segment) in sample.held_out.iter().enumerate() {
            self.learn(fit, ridge, scratch);
            for (at, block) in self.blocks.iter().enumerate() {
                run.check()?;
                self.write_fast(at, unit, &shares, &mut scratch.block);
                let mut predictions = vec![vec![0.0; self.labels.len()]; block.rows];
                for side in 0..self.labels.len() {
                    self.residuals(at, side, scratch);
                    for (row, residual) in scratch.residuals.iter().enumerate() {
                        let root = sample.weights[block.start + row].sqrt();
                        predictions[row][side] = sample.labels[side][block.start + row] - residual / root;
                    }
                }
                let tally = if block.segment == *segment { &mut valid } else { &mut train };
                let rows = predictions.iter().enumerate();
                rows.for_each(|(row, prediction)| tally.add(sample, block.start + row, prediction));
            }
        }
        Ok(Fitted { train, valid })
    }
}

impl Stage for Ready<'_> {
    fn loss(&self, unit: &[usize], run: &Run) -> Result<f64> {
        let mut scratch = self.scratch();
        self.products(unit, &mut scratch, run)?;
        self.loss_with(unit, self.network.ridge, &mut scratch, run)
    }
}

// The same once more, compiled for wide registers.

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn learn_avx2(ready: &Ready<'_>, fit: usize, ridge: Option<f64>, scratch: &mut Scratch) {
    ready.learn_plainly(fit, ridge, scratch);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn residuals_avx2(ready: &Ready<'_>, at: usize, side: usize, scratch: &mut Scratch) {
    ready.residuals_plainly(at, side, scratch);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn write_avx2(ready: &Ready<'_>, at: usize, unit: &[usize], shares: &[Vec<f64>], out: &mut [f64]) {
    ready.write(at, unit, shares, out);
}

fn as_tile(sums: &mut [f64]) -> &mut [f64; TILE] {
    sums.first_chunk_mut().expect("a tile is whole")
}

/// The paper's readout: least squares with a bound on the length of the coefficients, by a hundred steps of ADMM from zero, which stop short of
/// convergence. The bound supposes labels of unit variance, so it is taken in units of their deviation.
fn bounded(matrix: &Strips, sides: &[Vec<f64>], deviation: f64, out: &mut [Vec<f64>]) {
    let bound = 2.0 * (2.0 * sides.len() as f64).sqrt() * deviation;
    let lanes = out.first().map_or(0, Vec::len);
    let (mut z, mut lambda) = (vec![vec![0.0; lanes]; sides.len()], vec![vec![0.0; lanes]; sides.len()]);
    for _ in 0..ADMM_STEPS {
        for (q, side) in sides.iter().enumerate() {
            for lane in 0..lanes {
                out[q][lane] = side[lane] + (z[q][lane] + lambda[q][lane]) / ADMM_MU;
            }
            matrix.solve(&mut out[q]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::sample::Holding;
    use crate::testing::{Table, least_squares};

    fn sample(table: &Table, label: &[f64], holding: Holding) -> Sample {
        Sample::new(&table.problem_of_rows(label), holding, &Run::new(0)).unwrap()
    }

    fn bent(rows: usize, seed: u64) -> (Table, Vec<f64>) {
        let table = Table::random(rows, 6, seed);
        let label = (0..rows).map(|row| table.column(0)[row].abs() + table.column(1)[row] * table.column(2)[row]).collect();
        (table, label)
    }

    /// The error on the rows held out, computed with nothing but loops: hidden values from scratch, normal equations by elimination.
    fn plain_loss(network: &Ssfn<'_>, order: &[&[usize]], ridge: f64) -> f64 {
        let sample = network.sample;
        let mut bias = network.run.random("ssfn bias", 0);
        let bias: Vec<f64> = (0..network.neurons).map(|_| 2.0 * bias.uniform() - 1.0).collect();
        let inputs = |row: usize| -> Vec<f64> {
            let mut hidden = bias.clone();
            let mut linear = Vec::new();
            for (step, unit) in order.iter().enumerate() {
                let mut random = network.run.random("ssfn weights", step as u64);
                for column in unit.iter() {
                    let x = sample.columns[*column][row];
                    hidden.iter_mut().for_each(|h| *h += (2.0 * random.uniform() - 1.0) * x);
                    linear.push(x);
                }
            }
            hidden.iter().map(|h| h.max(0.0)).chain(linear).collect()
        };
        let mut loss = 0.0;
        for fit in 0..sample.held_out.len() {
            let learn = sample.learnt_rows(fit);
            let weight: f64 = learn.iter().map(|row| sample.weights[*row]).sum();
            let y: Vec<Vec<f64>> = (0..sample.rows()).map(inputs).collect();
            let n = y[0].len();
            let mean = |of: &dyn Fn(usize) -> f64| learn.iter().map(|row| sample.weights[*row] * of(*row)).sum::<f64>() / weight;
            let means: Vec<f64> = (0..n).map(|j| mean(&|row| y[row][j])).collect();
            for label in &sample.labels {
                let label_mean = mean(&|row| label[row]);
                let mut a = vec![vec![0.0; n + 1]; n];
                for row in &learn {
                    for i in 0..n {
                        let d = sample.weights[*row] * (y[*row][i] - means[i]);
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
                for row in sample.held_out_rows(fit) {
                    let predicted = label_mean + (0..n).map(|j| beta[j] * (y[row][j] - means[j])).sum::<f64>();
                    loss += sample.weights[row] * (label[row] - predicted).powi(2);
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
            let sample = sample(&table, &label, holding);
            let mut network = Ssfn::new(&sample, 20, Readout::Ridge, Some(1e-3), &Run::new(7));
            let units: [&[usize]; 4] = [&[1], &[0, 4], &[5], &[2]];
            for at in 0..units.len() {
                let plain = plain_loss(&network, &units[..=at], 1e-3);
                let quick = network.ready(units[at].len()).loss(units[at], &Run::new(0)).unwrap();
                assert!(close(quick, plain), "{holding:?} {at}: {quick} {plain}");
                let fitted = network.fit(units[at], &Run::new(0)).unwrap();
                assert!(close(fitted.valid.squared, plain), "{holding:?} {at}: {} {plain}", fitted.valid.squared);
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
        let sample = sample(&table, &classes, Holding::Folds(3));
        let network = Ssfn::new(&sample, 15, Readout::Ridge, Some(1e-2), &Run::new(7));
        let quick = network.ready(2).loss(&[0, 2], &Run::new(0)).unwrap();
        assert!(close(quick, plain_loss(&network, &[&[0, 2]], 1e-2)));
    }

    #[test]
    fn linear_is_least_squares() {
        let (table, label) = bent(90, 5);
        let sample = sample(&table, &label, Holding::Share(0.2));
        let mut linear = Ssfn::linear(&sample, &Run::new(0));
        linear.keep(&[0]);
        linear.keep(&[3]);
        let fitted = linear.fit(&[1], &Run::new(0)).unwrap();
        let rows = sample.learnt_rows(0);
        let column = |at: usize| rows.iter().map(|row| sample.columns[at][*row]).collect::<Vec<f64>>();
        let columns = [column(0), column(3), column(1)];
        let labels: Vec<f64> = rows.iter().map(|row| sample.labels[0][*row]).collect();
        let (_, r2) = least_squares(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>(), &labels);
        assert!((1.0 - fitted.train.unexplained() - r2).abs() < 1e-10);
    }

    /// The paper's readout keeps its coefficients shorter, and so fits the rows it learns from less closely.
    #[test]
    fn the_bounded_readout_is_shorter() {
        let (table, label) = bent(200, 6);
        let sample = sample(&table, &label, Holding::Share(0.2));
        let length = |readout, ridge| {
            let network = Ssfn::new(&sample, 30, readout, Some(ridge), &Run::new(1));
            let ready = network.ready(3);
            let mut scratch = ready.scratch();
            ready.products(&[0, 1, 2], &mut scratch, &Run::new(0)).unwrap();
            ready.learn(0, Some(ridge), &mut scratch);
            let inputs = scratch.coefficients[0].iter().zip(&ready.is_input);
            inputs.map(|(c, is_input)| c * c * is_input).sum::<f64>().sqrt()
        };
        let (bounded, free) = (length(Readout::Admm, 1e-9), length(Readout::Ridge, 1e-9));
        assert!(bounded < free && bounded > 0.1, "{bounded} {free}");
    }

    /// The sketch is the network of its first neurons.
    #[test]
    fn a_sketch_is_a_smaller_network() {
        let (table, label) = bent(80, 8);
        let sample = sample(&table, &label, Holding::Default);
        let mut network = Ssfn::new(&sample, 40, Readout::Ridge, Some(1e-2), &Run::new(1));
        network.keep(&[0, 3]);
        let sketch = network.sketch().unwrap();
        let mut small = Ssfn { neurons: 10, hidden: Vec::new(), ..network.bare() };
        small.hidden = network.hidden.chunks_exact(40).flat_map(|row| row[..10].to_vec()).collect();
        let run = Run::new(0);
        assert_eq!(sketch.stage(1).loss(&[1], &run), small.stage(1).loss(&[1], &run));
        assert!(small.sketch().is_some() && Ssfn::linear(&sample, &run).sketch().is_none());
    }
}
