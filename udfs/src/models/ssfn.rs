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
use crate::math::strips::Strips;
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
const RIDGES: [f64; 7] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
const FIRST: f64 = 1e-2;
/// A column of which less is left than this share, once the columns before it are known, is not used.
const PIVOT: f64 = 1e-10;
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
        Self { sample, readout, ridge, is_tuned, run: run.clone(), chosen: Vec::new(), units: 0, neurons, hidden }
    }

    /// Plain least squares: no neurons, no ridge.
    pub fn linear(sample: &'a Sample, run: &Run) -> Self {
        Self { ridge: None, is_tuned: false, ..Self::new(sample, 0, Readout::Ridge, None, run) }
    }

    /// The random weights of the next unit's columns, one list for each.
    fn weights(&self, columns: usize) -> Vec<Vec<f64>> {
        let mut random = self.run.random("ssfn weights", self.units);
        (0..columns).map(|_| (0..self.neurons).map(|_| 2.0 * random.uniform() - 1.0).collect()).collect()
    }

    fn ready(&self, width: usize) -> Ready<'_> {
        Ready::new(self, width)
    }
}

impl<'a> Predictor<'a> for Ssfn<'a> {
    fn stage(&self, width: usize) -> Box<dyn Stage + '_> {
        Box::new(self.ready(width))
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
    values: Vec<f64>,
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
    block: Vec<f64>,
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
            values: vec![0.0; blocks.len() * strips * ROWS * WIDTH],
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
            block: vec![0.0; self.changing * ROWS * WIDTH],
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
        for strip in 0..self.changing {
            let lanes = strip * WIDTH..(strip + 1) * WIDTH;
            let out = &mut out[strip * ROWS * WIDTH..][..block.rows * WIDTH];
            out.copy_from_slice(self.strip(at, strip, block.rows));
            for (column, share) in unit.iter().zip(shares) {
                let share: &[f64; WIDTH] = share[lanes.clone()].try_into().expect("a strip has twelve lanes");
                let values = &sample.columns[*column][rows.clone()];
                if sample.is_weighted {
                    let roots = sample.weights[rows.clone()].iter().map(|weight| weight.sqrt());
                    add(out, share, values.iter().zip(roots).map(|(x, root)| x * root));
                } else {
                    add(out, share, values.iter().copied());
                }
            }
            let least: &[f64; WIDTH] = self.least[lanes].try_into().expect("a strip has twelve lanes");
            for row in out.as_chunks_mut::<WIDTH>().0 {
                for lane in 0..WIDTH {
                    row[lane] = if row[lane] > least[lane] { row[lane] } else { least[lane] };
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
                let own = own.get(at..at + TILE);
                for (k, value) in centred.iter_mut().enumerate() {
                    let (i, j) = (left * WIDTH + k / WIDTH, right * WIDTH + k % WIDTH);
                    let sum = total[at + k] - own.map_or(0.0, |own| own[k]);
                    *value = self.is_input[i] * self.is_input[j] * sum - weight * means[i] * means[j];
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

/// `write`, compiled for wide registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn write_avx2(ready: &Ready<'_>, at: usize, unit: &[usize], shares: &[Vec<f64>], out: &mut [f64]) {
    ready.write(at, unit, shares, out);
}

/// Adds a column to every lane, as much as each takes of it.
#[inline(always)]
fn add(out: &mut [f64], share: &[f64; WIDTH], values: impl Iterator<Item = f64>) {
    for (row, x) in out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(values) {
        for lane in 0..WIDTH {
            row[lane] += share[lane] * x;
        }
    }
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
