//! The readout of a random network, learnt and judged with one candidate after the other.
//!
//! A candidate's hidden values are the current ones plus one product. They are written straight into the strips that the tile kernel
//! multiplies. Folds share the products: each segment's are summed once, and a fold learns from the total less its own.

pub(crate) mod bounded;
mod scratch;

use std::sync::Mutex;

use rayon::prelude::*;

use crate::judging::metric::Tally;
use crate::kernels::blocked_cholesky::{Aligned, BlockedCholesky};
use crate::kernels::tiles::{Kernel, ROWS, TILE, WIDTH, kernel};
use crate::predictors::ssfn::Ssfn;
use crate::predictors::{Fitted, Stage};
use crate::{Lease, Result, Run, choice};
use bounded::{ADMM_MU, bounded};
pub(crate) use scratch::Scratch;

choice! {
    /// How the readout is kept small.
    pub enum Readout {
        Ridge = "ridge",
        Admm = "admm",
    }
}

/// A column of which less is left than this share, once the columns before it are known, is not used.
const PIVOT: f64 = 1e-10;
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
pub(crate) struct Ready<'a> {
    network: &'a Ssfn<'a>,
    /// For each column of a unit, what a lane takes of it: its weight for a neuron, itself in its own lane.
    shares: Vec<Vec<f64>>,
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
    /// What threads have worked in, for the next candidate: to allocate it anew costs as much as a sketch's products do.
    spare: Mutex<Vec<Scratch>>,
    _memory: Option<Lease>,
}

fn shares(weights: &[Vec<f64>], neurons: usize, changing: usize) -> Vec<Vec<f64>> {
    let share = |(at, weights): (usize, &Vec<f64>)| {
        let mut lanes = vec![0.0; changing * WIDTH];
        lanes[..neurons].copy_from_slice(weights);
        lanes[neurons + at] = 1.0;
        lanes
    };
    weights.iter().enumerate().map(share).collect()
}

fn tile(left: usize, right: usize) -> usize {
    (right * (right + 1) / 2 + left) * TILE
}

impl<'a> Ready<'a> {
    pub fn new(network: &'a Ssfn<'a>, width: usize, run: &Run) -> Result<Self> {
        let folds = network.folds;
        let (neurons, sides) = (network.neurons, folds.labels.len());
        let free = neurons + width;
        let (intercept, labels) = (free, (free + 1..=free + sides).collect::<Vec<_>>());
        let chosen = free + 1 + sides;
        let lanes = chosen + network.chosen.len();
        let (changing, strips) = (free.div_ceil(WIDTH), lanes.div_ceil(WIDTH));
        let mut blocks = Vec::new();
        for (segment, rows) in folds.segments.iter().enumerate() {
            let starts = rows.clone().step_by(ROWS);
            blocks.extend(starts.map(|start| Block { segment, start, rows: ROWS.min(rows.end - start) }));
        }
        let products = (folds.segments.len() + 1) * tile(0, strips) * size_of::<f64>();
        let mut memory = run.reserve(blocks.len() * strips * ROWS * WIDTH * size_of::<f64>() + products)?;
        let mut is_input = vec![0.0; strips * WIDTH];
        (0..lanes).filter(|lane| *lane < free || *lane >= chosen).for_each(|lane| is_input[lane] = 1.0);
        let mut least = vec![f64::NEG_INFINITY; strips * WIDTH];
        least[..neurons].fill(0.0);
        let mut ready = Self {
            network,
            shares: shares(&network.weights(width), neurons, changing),
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
            spare: Mutex::new(Vec::new()),
            _memory: None,
        };
        memory.grow((rayon::current_num_threads() + 1) * ready.scratch_bytes())?;
        ready._memory = Some(memory);
        ready.lay_out(chosen, run)?;
        ready.fixed = ready.fixed_products(run)?;
        Ok(ready)
    }

    /// What one thread works in, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        let (tiles, lanes) = (tile(0, self.strips), self.strips * WIDTH);
        let matrix = 2 * lanes * (lanes + self.labels.len());
        ((self.blocks.last().map_or(0, |block| block.segment) + 2) * tiles + matrix + self.changing * ROWS * WIDTH + 4 * lanes)
            * size_of::<f64>()
    }

    /// Writes the current network into the lanes. A row that counts twice is longer by √2, and everything linear follows.
    fn lay_out(&mut self, chosen: usize, run: &Run) -> Result<()> {
        let (network, strips) = (self.network, self.strips);
        let (folds, neurons) = (network.folds, network.neurons);
        let (intercept, labels, blocks) = (self.intercept, &self.labels, &self.blocks);
        self.values.par_chunks_mut(strips * ROWS * WIDTH).zip(blocks).try_for_each(|(values, block)| {
            run.check()?;
            let mut hidden = vec![0.0; neurons];
            for at in 0..block.rows {
                let row = block.start + at;
                let root = if folds.is_weighted { folds.weights[row].sqrt() } else { 1.0 };
                let mut set = |lane: usize, value: f64| values[(lane / WIDTH * ROWS + at) * WIDTH + lane % WIDTH] = root * value;
                network.hidden(row, &mut hidden);
                hidden.iter().enumerate().for_each(|(lane, value)| set(lane, *value));
                set(intercept, 1.0);
                labels.iter().zip(&folds.labels).for_each(|(lane, label)| set(*lane, label[row]));
                let features = network.chosen.iter().enumerate();
                features.for_each(|(at, column)| set(chosen + at, folds.columns[*column][row]));
            }
            Ok(())
        })
    }

    /// The products that are the same for all candidates.
    fn fixed_products(&self, run: &Run) -> Result<Vec<Vec<f64>>> {
        let segments = 0..self.network.folds.segments.len();
        let of = |segment: usize| {
            let mut sums = vec![0.0; tile(0, self.strips)];
            for (at, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.segment == segment) {
                run.check()?;
                for right in self.changing..self.strips {
                    (self.changing..=right).for_each(|left| {
                        let (left_strip, right_strip) = (self.strip(at, left, block.rows), self.strip(at, right, block.rows));
                        (self.kernel)(left_strip, right_strip, as_tile(&mut sums[tile(left, right)..]));
                    });
                }
            }
            Ok(sums)
        };
        let learnt = |segment: usize| if self.network.folds.is_learnt(segment) { of(segment) } else { Ok(Vec::new()) };
        segments.into_par_iter().map(learnt).collect()
    }

    fn strip(&self, block: usize, strip: usize, rows: usize) -> &[f64] {
        &self.values[(block * self.strips + strip) * ROWS * WIDTH..][..rows * WIDTH]
    }

    pub fn scratch(&self) -> Scratch {
        let sides = self.labels.len();
        Scratch {
            block: Aligned::zeros(self.changing * ROWS * WIDTH),
            products: vec![Vec::new(); self.network.folds.segments.len()],
            total: Vec::new(),
            matrix: BlockedCholesky::default(),
            floor: Vec::new(),
            coefficients: vec![vec![0.0; self.strips * WIDTH]; sides],
            residuals: Vec::new(),
        }
    }

    /// The changing strips of a block with a unit in them.
    #[inline(always)]
    fn write(&self, at: usize, unit: &[usize], out: &mut [f64]) {
        let (block, folds) = (self.blocks[at], self.network.folds);
        let rows = block.start..block.start + block.rows;
        let twelve = |lanes: &[f64]| -> [f64; WIDTH] { lanes.try_into().expect("a strip has twelve lanes") };
        let root = |at: usize| if folds.is_weighted { folds.weights[rows.start + at].sqrt() } else { 1.0 };
        for strip in 0..self.changing {
            let lanes = strip * WIDTH..(strip + 1) * WIDTH;
            let least = twelve(&self.least[lanes.clone()]);
            let out = out[strip * ROWS * WIDTH..][..block.rows * WIDTH].as_chunks_mut::<WIDTH>().0;
            let mut before = self.strip(at, strip, block.rows).as_chunks::<WIDTH>().0;
            let mut sums = Vec::new();
            let (last, others) = unit.split_last().expect("a unit has a column");
            if !others.is_empty() {
                sums.extend_from_slice(before);
                for (column, share) in others.iter().zip(&self.shares) {
                    let share = twelve(&share[lanes.clone()]);
                    for (at, (row, x)) in sums.iter_mut().zip(&folds.columns[*column][rows.clone()]).enumerate() {
                        let x = x * root(at);
                        (0..WIDTH).for_each(|lane| row[lane] += share[lane] * x);
                    }
                }
                before = &sums;
            }
            // The last column, and for most units the only one, is added on the way.
            let share = twelve(&self.shares[others.len()][lanes]);
            let values = &folds.columns[*last][rows.clone()];
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
    pub fn products(&self, unit: &[usize], scratch: &mut Scratch, run: &Run) -> Result<()> {
        let folds = self.network.folds;
        for (segment, products) in scratch.products.iter_mut().enumerate() {
            if folds.is_learnt(segment) {
                products.clear();
                products.extend_from_slice(&self.fixed[segment]);
            }
        }
        for at in 0..self.blocks.len() {
            let block = self.blocks[at];
            if !folds.is_learnt(block.segment) {
                continue;
            }
            run.check()?;
            self.write_fast(at, unit, &mut scratch.block);
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

    fn write_fast(&self, at: usize, unit: &[usize], out: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function was compiled for.
            unsafe { write_avx2(self, at, unit, out) };
            return;
        }
        self.write(at, unit, out);
    }

    /// Learns the readout of one fit. The products must be there.
    pub fn learn(&self, fit: usize, ridge: Option<f64>, scratch: &mut Scratch) {
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
        let own = &scratch.products[self.network.folds.held_out[fit]];
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
            Readout::Admm => bounded(&|x| matrix.solve(x), &sides, spread.sqrt(), &mut scratch.coefficients),
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

    /// What the residuals of a block add to the criterion; they come times the root of the weight.
    fn error(&self, at: usize, residuals: &[f64]) -> f64 {
        let folds = self.network.folds;
        if !folds.is_absolute {
            return residuals.iter().map(|residual| residual * residual).sum();
        }
        let weights = &folds.weights[self.blocks[at].start..];
        if folds.is_weighted {
            return residuals.iter().zip(weights).map(|(residual, weight)| residual.abs() * weight.sqrt()).sum();
        }
        residuals.iter().map(|residual| residual.abs()).sum()
    }

    /// The error on the rows held out. The products must be there.
    pub fn loss_with(&self, unit: &[usize], ridge: Option<f64>, scratch: &mut Scratch, run: &Run) -> Result<f64> {
        let mut loss = 0.0;
        for (fit, segment) in self.network.folds.held_out.iter().enumerate() {
            run.check()?;
            self.learn(fit, ridge, scratch);
            for at in (0..self.blocks.len()).filter(|at| self.blocks[*at].segment == *segment) {
                self.write_fast(at, unit, &mut scratch.block);
                for side in 0..self.labels.len() {
                    self.residuals(at, side, scratch);
                    loss += self.error(at, &scratch.residuals);
                }
            }
        }
        Ok(loss)
    }

    /// How well the network does with a unit, row by row. The products must be there.
    pub fn fitted(&self, unit: &[usize], ridge: Option<f64>, scratch: &mut Scratch, run: &Run) -> Result<Fitted> {
        let folds = self.network.folds;
        let (mut train, mut valid) = (Tally::default(), Tally::default());
        for (fit, segment) in folds.held_out.iter().enumerate() {
            self.learn(fit, ridge, scratch);
            for (at, block) in self.blocks.iter().enumerate() {
                run.check()?;
                self.write_fast(at, unit, &mut scratch.block);
                let mut predictions = vec![vec![0.0; self.labels.len()]; block.rows];
                for side in 0..self.labels.len() {
                    self.residuals(at, side, scratch);
                    for (row, residual) in scratch.residuals.iter().enumerate() {
                        let root = folds.weights[block.start + row].sqrt();
                        predictions[row][side] = folds.labels[side][block.start + row] - residual / root;
                    }
                }
                let tally = if block.segment == *segment { &mut valid } else { &mut train };
                let rows = predictions.iter().enumerate();
                rows.for_each(|(row, prediction)| tally.add(folds, block.start + row, prediction));
            }
        }
        Ok(Fitted { train, valid })
    }
}

impl Stage for Ready<'_> {
    fn loss(&self, unit: &[usize], run: &Run) -> Result<f64> {
        let spare = self.spare.lock().expect("nobody panics with it").pop();
        let mut scratch = spare.unwrap_or_else(|| self.scratch());
        self.products(unit, &mut scratch, run)?;
        let loss = self.loss_with(unit, self.network.ridge, &mut scratch, run)?;
        self.spare.lock().expect("nobody panics with it").push(scratch);
        Ok(loss)
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
fn write_avx2(ready: &Ready<'_>, at: usize, unit: &[usize], out: &mut [f64]) {
    ready.write(at, unit, out);
}

fn as_tile(sums: &mut [f64]) -> &mut [f64; TILE] {
    sums.first_chunk_mut().expect("a tile is whole")
}

#[cfg(test)]
mod tests;
