//! A network of dense layers with ReLU between them, trained by Adam on mini-batches.
//!
//! A step has three parts. The first multiplies the inputs with their weights, by groups of inputs and chunks of rows. The second takes the
//! chunks through the rest of the network: forward, loss, and the errors backward. The third goes through the weights, in blocks: their
//! gradient over the whole batch, and the update. Every sum is taken by one thread in one order, so that the number of threads
//! does not show.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::math::aligned::Aligned;
use crate::math::gemm::{
    Picked, add_product, add_single_product, add_single_transposed_product, padded, transposed_product, vectorized,
};
use crate::models::adam::{Moving, Rate, adam};
use crate::models::losses;
use crate::models::samples::{Inputs, Loss, Samples};
use crate::models::sparse;
use crate::models::team::{Hands, Team};
use crate::{Error, Result, Run};

/// Rows of a batch that one thread takes through the network at a time.
const CHUNK: usize = losses::ROWS;
/// The rows of a chunk one after the other.
const IN_ORDER: [u32; CHUNK] = {
    let mut rows = [0; CHUNK];
    let mut row = 0;
    while row < CHUNK {
        rows[row] = row as u32;
        row += 1;
    }
    rows
};
/// Inputs whose products are summed up together, at most. The sums of several such groups are added afterwards, so that a thread can stay
/// with the same weights from step to step, forward and backward: they are in its cache.
const GROUP: usize = 384;
/// Inputs whose weights are updated together: four blocks of registers, and small pieces to share out.
const BLOCK: usize = 24;
/// Inputs whose weights are masked together.
const MASKED: usize = 96;
/// Multiplications below which a second thread costs more than it brings.
const PARALLEL: usize = 300_000;
/// Log odds of an output that only fills a vector register.
const NEVER: f32 = -1e30;

#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    layers: Vec<Layer>,
    loss: Loss,
    steps: i32,
    /// What is left of a negative value: nothing behind a ReLU.
    leak: f32,
    /// Whether the last layer has an activation too.
    is_last_active: bool,
}

/// `inputs × width` weights, of whose columns the first `outputs` count.
#[derive(Debug, Clone)]
struct Layer {
    inputs: usize,
    outputs: usize,
    width: usize,
    weights: Moving,
    bias: Moving,
    /// `outputs × padded(inputs)`: the weights as the errors meet them. Empty in the first layer, behind which there is nothing.
    transposed: Aligned,
}

/// What is done to the inputs on their way into the first layer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Gate<'a> {
    /// A factor for each input; `None`: 1 for all.
    pub mask: Option<&'a [f32]>,
    /// This times an input's weights is added to their gradient.
    pub decay: Option<&'a [f32]>,
}

impl Mlp {
    /// Weights uniform after Glorot and Bengio, no bias. Those of an input are drawn with its own key.
    pub(crate) fn new(inputs: &Inputs, hidden: &[usize], run: &Run) -> Self {
        let outputs = hidden.iter().copied().chain([inputs.loss.outputs()]);
        let mut layers: Vec<Layer> = Vec::new();
        for (at, outputs) in outputs.enumerate() {
            let count = layers.last().map_or(inputs.columns.len(), |layer| layer.outputs);
            let key = |row: usize| if at == 0 { inputs.keys[row] } else { (at * 100_003 + row) as u64 };
            layers.push(Layer::new(count, outputs, at, |row| run.random("weights", key(row))));
        }
        let mut mlp = Self { layers, loss: inputs.loss, steps: 0, leak: 0.0, is_last_active: false };
        if let Loss::Softmax(classes) = inputs.loss {
            mlp.last_mut().bias.values[classes..].fill(NEVER);
        }
        mlp
    }

    /// Leaky ReLUs behind every layer. The weights of an output are drawn with its own key.
    pub(crate) fn leaky(inputs: &Inputs, hidden: &[usize], leak: f32, keys: &[u64], run: &Run) -> Self {
        let mut mlp = Self { leak, is_last_active: true, ..Self::new(inputs, hidden, run) };
        let last = mlp.last_mut();
        let reach = (6.0 / (last.inputs + last.outputs) as f64).sqrt();
        for (output, key) in keys.iter().enumerate() {
            let mut random = run.random("outputs", *key);
            for input in 0..last.inputs {
                last.weights.values[input * last.width + output] = (reach * (2.0 * random.uniform() - 1.0)) as f32;
            }
        }
        last.bias.values.fill(0.0);
        last.transpose();
        mlp
    }

    /// The sum of the outputs over some rows, each times its weight.
    pub(crate) fn sum_outputs(
        &self,
        samples: &Samples,
        rows: &[u32],
        weight: impl Fn(u32) -> f64,
        batch: &mut Batch,
    ) -> Vec<f64> {
        batch.fit(self, rows.len());
        let first = &self.layers[0].weights.values;
        batch.hands().each(&mut batch.chunks, |at, chunk| forward_chunk(self, first, samples, chunk, rows_of(rows, at)));
        let last = self.layers.last().expect("a network has a layer");
        let mut sums = vec![0.0; last.outputs];
        for (chunk, rows) in batch.chunks.iter().zip(rows.chunks(CHUNK)) {
            let values = chunk.values.last().expect("a network has a layer");
            for (values, row) in values.chunks(last.width).zip(rows) {
                let weight = weight(*row);
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * f64::from(*value));
            }
        }
        sums
    }

    /// One update from the derivative of a loss by the mean outputs of the batch that went through last.
    pub(crate) fn learn_from(&mut self, samples: &Samples, errors: &[f32], learning_rate: f64, batch: &mut Batch) {
        let rows: usize = batch.chunks.iter().map(|chunk| chunk.rows.len()).sum();
        batch.hands().each(&mut batch.chunks, |_, chunk| backward_chunk(self, chunk, errors, 1.0 / rows as f32));
        self.steps += 1;
        self.update(samples, Gate::default(), Some(Rate::of(learning_rate, self.steps)), batch);
    }

    fn last_mut(&mut self) -> &mut Layer {
        self.layers.last_mut().expect("a network has a layer")
    }

    pub(crate) fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    /// Whether a step on so many rows is long enough for several threads.
    pub(crate) fn is_worth_sharing(&self, rows: usize) -> bool {
        rows * self.inputs() * self.layers[0].width >= PARALLEL
    }

    /// The weights of one input.
    pub(crate) fn input_weights(&self, input: usize) -> &[f32] {
        let layer = &self.layers[0];
        &layer.weights.values[input * layer.width..][..layer.outputs]
    }

    /// Brings the weights of the inputs to a standard deviation.
    pub(crate) fn spread_input_weights(&mut self, deviation: f64) {
        let layer = &mut self.layers[0];
        let reach = (6.0 / (layer.inputs + layer.outputs) as f64).sqrt();
        let factor = (deviation * 3.0f64.sqrt() / reach) as f32;
        layer.weights.values.iter_mut().for_each(|weight| *weight *= factor);
    }

    /// Drops all other inputs. Weights and moments of the rest stay as they are.
    pub(crate) fn keep_inputs(&mut self, inputs: &[usize]) {
        let layer = &mut self.layers[0];
        let weights = &mut layer.weights;
        for values in [&mut weights.values, &mut weights.gradient, &mut weights.first, &mut weights.second] {
            *values = inputs.iter().flat_map(|input| &values[input * layer.width..][..layer.width]).copied().collect();
        }
        layer.inputs = inputs.len();
    }

    /// One update from a batch of rows. Returns its mean loss.
    pub(crate) fn train(&mut self, samples: &Samples, rows: &[u32], gate: Gate<'_>, rate: f64, batch: &mut Batch) -> Result<f64> {
        let loss = self.differentiate(samples, rows, gate, batch)?;
        self.steps += 1;
        let rate = Rate::of(rate, self.steps);
        self.update(samples, gate, Some(rate), batch);
        Ok(loss)
    }

    /// Forward and backward; what is left to do is the gradient of the weights.
    fn differentiate(&self, samples: &Samples, rows: &[u32], gate: Gate<'_>, batch: &mut Batch) -> Result<f64> {
        batch.fit(self, rows.len());
        batch.mask(&self.layers[0], gate.mask);
        let hands = batch.hands();
        let Batch { chunks, products, masked, .. } = batch;
        let first = if gate.mask.is_some() { &masked[..] } else { &self.layers[0].weights.values };
        let (count, groups) = (chunks.len(), self.layers[0].groups());
        let scale = 1.0 / rows.len() as f32;
        if groups == 1 {
            hands.each(chunks, |at, chunk| pass_all(self, first, samples, chunk, rows_of(rows, at), scale));
        } else {
            // Group by group, not chunk by chunk. Those in the middle, where two threads meet, in halves, so that none waits long.
            let (pieces, width) = (products.len(), self.layers[0].width);
            let mut halves = Vec::with_capacity(pieces + 2);
            for (at, product) in products.iter_mut().enumerate() {
                let (rows, group) = (rows_of(rows, at % count), at / count);
                let middle = if at + 1 == pieces / 2 || at == pieces / 2 { rows.len() / 2 } else { rows.len() };
                let (first, second) = product.split_at_mut(middle * width);
                halves.push((&rows[..middle], first, group));
                if middle < rows.len() {
                    halves.push((&rows[middle..], second, group));
                }
            }
            hands.each(&mut halves, |_, (rows, product, group)| multiply_group(self, first, samples, product, rows, *group));
            hands.each(chunks, |at, chunk| {
                let products = (0..groups).map(|group| &products[group * count + at][..]);
                chunk.begin(&self.layers[0], rows_of(rows, at), products);
                pass_chunk(self, samples, chunk, scale);
            });
        }
        let loss = batch.chunks.iter().map(|chunk| chunk.loss).sum::<f64>() / rows.len() as f64;
        if loss.is_finite() {
            Ok(loss)
        } else {
            Err(Error::data("training diverged: the loss is no longer a number; lower learning_rate"))
        }
    }

    /// Gradients of all layers, and the update if there is a rate.
    fn update(&mut self, samples: &Samples, gate: Gate<'_>, rate: Option<Rate>, batch: &mut Batch) {
        let hands = batch.hands();
        let Batch { chunks, slopes, next, .. } = batch;
        slopes.resize(self.layers.iter().map(|layer| layer.inputs).sum(), 0.0);
        let sums = sum_of(chunks, 0);
        // The blocks of all layers together, so that threads meet only once.
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut rest = &mut slopes[..];
        for (at, layer) in self.layers.iter_mut().enumerate() {
            let inputs = if at == 0 { block_of(samples) } else { BLOCK };
            let (outputs, width, size) = (layer.outputs, layer.width, inputs * layer.width);
            let weights = &mut layer.weights;
            let (own, others) = std::mem::take(&mut rest).split_at_mut(layer.inputs);
            rest = others;
            let parts = weights
                .values
                .chunks_mut(size)
                .zip(weights.gradient.chunks_mut(size))
                .zip(weights.first.chunks_mut(size).zip(weights.second.chunks_mut(size)))
                .zip(own.chunks_mut(inputs));
            for (block, (((values, gradient), (first, second)), slopes)) in parts.enumerate() {
                blocks.push(Block { layer: at, from: block * inputs, outputs, width, values, gradient, first, second, slopes });
            }
        }
        let passed = Passed { samples, chunks, next, sums: &sums };
        hands.each(&mut blocks, |_, block| {
            let gate = if block.layer == 0 { gate } else { Gate::default() };
            SCRATCH.with_borrow_mut(|scratch| {
                // A gradient that is used at once does not leave this core's cache.
                scratch.fit(block.values.len());
                let gradient = if rate.is_some() { &mut scratch[..] } else { &mut *std::mem::take(&mut block.gradient) };
                update_block(block, gradient, passed, gate, rate);
            });
        });
        for (at, layer) in self.layers.iter_mut().enumerate() {
            layer.update_bias(sum_of(chunks, at), rate);
            layer.transpose();
        }
    }

    /// The outputs for every row, `outputs` values each: log odds of classes, or standardised numbers.
    pub(crate) fn outputs(&self, samples: &Samples, mask: Option<&[f32]>) -> Vec<f32> {
        let outputs = self.loss.outputs();
        let mut all = vec![0.0; samples.rows() * outputs];
        let mut masked = Batch::default();
        masked.mask(&self.layers[0], mask);
        let first = if mask.is_some() { &masked.masked } else { &self.layers[0].weights.values };
        all.par_chunks_mut(CHUNK * outputs).enumerate().for_each_init(
            || Chunk::new(self),
            |chunk, (at, out)| {
                let rows: Vec<u32> = (0..out.len() / outputs).map(|row| (at * CHUNK + row) as u32).collect();
                forward_chunk(self, first, samples, chunk, &rows);
                let last = self.layers.last().expect("a network has a layer");
                let values = chunk.values.last().expect("a network has a layer");
                for (row, out) in out.chunks_mut(outputs).enumerate() {
                    out.copy_from_slice(&values[row * last.width..][..outputs]);
                }
            },
        );
        all
    }

    /// Length of the gradient of the loss over all rows by each input's weights, as if the input were on.
    pub(crate) fn input_slopes(&mut self, samples: &Samples, mask: &[f32], batch: &mut Batch, run: &Run) -> Result<Vec<f64>> {
        let all: Vec<u32> = (0..samples.rows() as u32).collect();
        let width = self.layers[0].width;
        let mut total = vec![0.0f64; self.inputs() * width];
        for rows in all.chunks(256) {
            run.check()?;
            self.differentiate(samples, rows, Gate { mask: Some(mask), decay: None }, batch)?;
            self.update(samples, Gate::default(), None, batch);
            let share = rows.len() as f64 / all.len() as f64;
            total.iter_mut().zip(self.layers[0].weights.gradient.iter()).for_each(|(sum, g)| *sum += share * f64::from(*g));
        }
        Ok(total.chunks(width).map(|row| row.iter().map(|g| g * g).sum::<f64>().sqrt()).collect())
    }
}

impl Layer {
    fn new(inputs: usize, outputs: usize, at: usize, random: impl Fn(usize) -> crate::Random) -> Self {
        let width = padded(outputs);
        let reach = (6.0 / (inputs + outputs) as f64).sqrt();
        let mut weights = vec![0.0; inputs * width];
        for (row, weights) in weights.chunks_mut(width).enumerate() {
            let mut random = random(row);
            weights[..outputs].iter_mut().for_each(|weight| *weight = (reach * (2.0 * random.uniform() - 1.0)) as f32);
        }
        let transposed = Aligned::zeros(if at == 0 { 0 } else { outputs * padded(inputs) });
        let mut layer =
            Self { inputs, outputs, width, weights: Moving::new(weights), bias: Moving::new(vec![0.0; width]), transposed };
        layer.transpose();
        layer
    }

    /// The groups of its inputs.
    fn groups(&self) -> usize {
        self.inputs.div_ceil(GROUP)
    }

    /// The inputs of a group: about as many in each, in whole blocks.
    fn inputs_of(&self, group: usize, block: usize) -> Range<usize> {
        let (blocks, groups) = (self.inputs.div_ceil(block), self.groups());
        group * blocks / groups * block..self.inputs.min((group + 1) * blocks / groups * block)
    }

    fn update_bias(&mut self, gradient: Vec<f32>, rate: Option<Rate>) {
        let bias = &mut self.bias;
        bias.gradient.copy_from_slice(&gradient);
        if let Some(rate) = rate {
            adam(&mut bias.values, &bias.gradient, &mut bias.first, &mut bias.second, rate);
        }
    }

    fn transpose(&mut self) {
        if self.transposed.is_empty() {
            return;
        }
        for (column, row) in self.transposed.chunks_mut(padded(self.inputs)).enumerate() {
            for (to, from) in row.iter_mut().zip(self.weights.values[column..].iter().step_by(self.width)) {
                *to = *from;
            }
        }
    }
}

/// Working space for batches; it fits itself to what it is used with.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    chunks: Vec<Chunk>,
    /// For each group of inputs and each chunk: what the inputs add to the first layer.
    products: Vec<Aligned>,
    /// The first layer's weights behind the mask.
    masked: Aligned,
    /// Of the inputs of all layers; those of the first are wanted.
    slopes: Vec<f32>,
    inputs: usize,
    is_parallel: bool,
    /// The rows of the batch after this one, if they are known: memory is asked for them in good time.
    pub next: Vec<u32>,
    /// Who shares the work; nobody: rayon's threads.
    pub team: Option<Arc<Team>>,
    is_alone: bool,
}

impl Batch {
    /// For steps that are not shared out.
    pub(crate) fn alone() -> Self {
        Self { is_alone: true, ..Self::default() }
    }

    /// Derivative of the last batch's loss by the mask, for each input: `⟨w, g⟩` of its weights and their gradient before the mask.
    pub(crate) fn slopes(&self) -> &[f32] {
        &self.slopes[..self.inputs]
    }

    fn fit(&mut self, mlp: &Mlp, rows: usize) {
        self.chunks.resize_with(rows.div_ceil(CHUNK), || Chunk::new(mlp));
        self.inputs = mlp.inputs();
        self.products.resize_with(self.chunks.len() * mlp.layers[0].groups(), || Aligned::zeros(CHUNK * mlp.layers[0].width));
        self.is_parallel = mlp.is_worth_sharing(rows);
    }

    fn hands(&self) -> Hands {
        match &self.team {
            _ if self.is_alone || !self.is_parallel => Hands::One,
            Some(team) => Hands::Team(team.clone()),
            None => Hands::Pool,
        }
    }

    fn mask(&mut self, layer: &Layer, mask: Option<&[f32]>) {
        let Some(mask) = mask else { return };
        self.masked.fit(layer.weights.values.len());
        // A thread of rayon's would take longer to wake up than this takes.
        let hands = if self.team.is_some() { self.hands() } else { Hands::One };
        let size = MASKED * layer.width;
        let mut blocks: Vec<_> =
            self.masked.chunks_mut(size).zip(layer.weights.values.chunks(size)).zip(mask.chunks(MASKED)).collect();
        hands.each(&mut blocks, |_, ((masked, weights), mask)| {
            for ((masked, weights), factor) in masked.chunks_mut(layer.width).zip(weights.chunks(layer.width)).zip(*mask) {
                masked.iter_mut().zip(weights).for_each(|(masked, weight)| *masked = factor * weight);
            }
        });
    }
}

/// A few rows on their way through the network.
#[derive(Debug)]
struct Chunk {
    /// The rows of the samples.
    rows: Vec<u32>,
    /// Of each layer: what it gives on, and the derivative of the loss by it.
    values: Vec<Aligned>,
    errors: Vec<Aligned>,
    /// Of each layer: its errors summed over the rows.
    sums: Vec<Aligned>,
    loss: f64,
}

impl Chunk {
    fn new(mlp: &Mlp) -> Self {
        let space = |rows: usize| mlp.layers.iter().map(|layer| Aligned::zeros(rows * layer.width)).collect::<Vec<_>>();
        Self { rows: Vec::new(), values: space(CHUNK), errors: space(CHUNK), sums: space(1), loss: 0.0 }
    }

    /// Takes some rows, and into the first layer its bias and what the inputs add to it.
    fn begin<'a>(&mut self, first: &Layer, rows: &[u32], products: impl Iterator<Item = &'a [f32]>) {
        self.rows.clear();
        self.rows.extend(rows);
        let values = &mut self.values[0][..rows.len() * first.width];
        values.chunks_mut(first.width).for_each(|values| values.copy_from_slice(&first.bias.values));
        for product in products {
            values.iter_mut().zip(product).for_each(|(value, product)| *value += product);
        }
    }
}

/// Inputs of the first layer that are taken together.
fn block_of(samples: &Samples) -> usize {
    if samples.sparse.is_some() { sparse::BLOCK } else { BLOCK }
}

/// The rows of a batch that its chunk of a number has.
fn rows_of(rows: &[u32], chunk: usize) -> &[u32] {
    &rows[chunk * CHUNK..rows.len().min((chunk + 1) * CHUNK)]
}

/// The errors of a layer summed over all rows.
fn sum_of(chunks: &[Chunk], layer: usize) -> Vec<f32> {
    let mut total = chunks[0].sums[layer].to_vec();
    for chunk in &chunks[1..] {
        total.iter_mut().zip(chunk.sums[layer].iter()).for_each(|(total, sum)| *total += sum);
    }
    total
}

vectorized! {
    fn multiply_group(mlp: &Mlp, first: &[f32], samples: &Samples, product: &mut [f32], rows: &[u32], group: usize) = multiply;
}
vectorized! {
    fn pass_all(mlp: &Mlp, first: &[f32], samples: &Samples, chunk: &mut Chunk, rows: &[u32], scale: f32) = whole_pass;
}
vectorized! {
    fn pass_chunk(mlp: &Mlp, samples: &Samples, chunk: &mut Chunk, scale: f32) = pass;
}
vectorized! {
    fn forward_chunk(mlp: &Mlp, first: &[f32], samples: &Samples, chunk: &mut Chunk, rows: &[u32]) = forward;
}
vectorized! {
    fn backward_chunk(mlp: &Mlp, chunk: &mut Chunk, errors: &[f32], scale: f32) = backward_from;
}
vectorized! {
    fn update_block(block: &mut Block<'_>, gradient: &mut [f32], passed: Passed<'_>, gate: Gate<'_>, rate: Option<Rate>) = update;
}

/// What a group of inputs adds to the first layer.
#[inline(always)]
fn multiply<const FMA: bool>(mlp: &Mlp, first: &[f32], samples: &Samples, product: &mut [f32], rows: &[u32], group: usize) {
    let layer = &mlp.layers[0];
    product.fill(0.0);
    add_inputs::<FMA>(layer, first, samples, product, rows, layer.inputs_of(group, block_of(samples)));
}

/// Adds the product of some inputs, whole blocks, with their weights.
#[inline(always)]
fn add_inputs<const FMA: bool>(
    layer: &Layer,
    first: &[f32],
    samples: &Samples,
    values: &mut [f32],
    rows: &[u32],
    inputs: Range<usize>,
) {
    match &samples.sparse {
        Some(sparse) => {
            let blocks = inputs.start / sparse::BLOCK..inputs.end.div_ceil(sparse::BLOCK);
            sparse.add_product::<FMA>(values, layer.width, rows, blocks, first);
        }
        None => {
            let left = Picked { values: &samples.values[inputs.start..], stride: samples.stride, rows };
            add_product::<FMA>(values, layer.width, left, &first[inputs.start * layer.width..], inputs.len());
        }
    }
}

#[inline(always)]
fn whole_pass<const FMA: bool>(mlp: &Mlp, first: &[f32], samples: &Samples, chunk: &mut Chunk, rows: &[u32], scale: f32) {
    begin_with_inputs::<FMA>(mlp, first, samples, chunk, rows);
    pass::<FMA>(mlp, samples, chunk, scale);
}

#[inline(always)]
fn begin_with_inputs<const FMA: bool>(mlp: &Mlp, first: &[f32], samples: &Samples, chunk: &mut Chunk, rows: &[u32]) {
    let layer = &mlp.layers[0];
    chunk.begin(layer, rows, std::iter::empty());
    add_inputs::<FMA>(layer, first, samples, &mut chunk.values[0], rows, 0..layer.inputs);
}

#[inline(always)]
fn pass<const FMA: bool>(mlp: &Mlp, samples: &Samples, chunk: &mut Chunk, scale: f32) {
    forward_behind::<FMA>(mlp, chunk);
    let last = mlp.layers.len() - 1;
    let (values, errors) = (&chunk.values[last], &mut chunk.errors[last]);
    let width = mlp.layers[last].width;
    let mut targets = [0.0; CHUNK];
    targets.iter_mut().zip(&chunk.rows).for_each(|(target, row)| *target = samples.targets[*row as usize]);
    let targets = &targets[..chunk.rows.len()];
    chunk.loss = match mlp.loss {
        Loss::Squared => losses::squared(values, width, targets, scale, errors),
        Loss::Logistic => losses::logistic(values, width, targets, scale, errors),
        Loss::Softmax(_) => losses::softmax(values, width, targets, scale, errors),
    };
    backward::<FMA>(mlp, chunk);
}

/// The errors of every layer from those of the last, and their sums.
#[inline(always)]
fn backward<const FMA: bool>(mlp: &Mlp, chunk: &mut Chunk) {
    let rows = chunk.rows.len();
    for at in (1..mlp.layers.len()).rev() {
        let (layer, behind) = (&mlp.layers[at], &mlp.layers[at - 1]);
        let (before, after) = chunk.errors.split_at_mut(at);
        let errors = &mut before[at - 1][..rows * behind.width];
        errors.fill(0.0);
        let left = Picked { values: &after[0], stride: layer.width, rows: &IN_ORDER[..rows] };
        add_product::<FMA>(errors, behind.width, left, &layer.transposed, layer.outputs);
        for (error, value) in errors.iter_mut().zip(chunk.values[at - 1].iter()) {
            *error *= if *value > 0.0 { 1.0 } else { mlp.leak };
        }
    }
    for (layer, (sums, errors)) in mlp.layers.iter().zip(chunk.sums.iter_mut().zip(&chunk.errors)) {
        sums.fill(0.0);
        for errors in errors.chunks(layer.width).take(rows) {
            sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error);
        }
    }
}

/// The same when every row has the same derivative of the loss by the outputs, which have an activation.
#[inline(always)]
fn backward_from<const FMA: bool>(mlp: &Mlp, chunk: &mut Chunk, errors: &[f32], scale: f32) {
    let last = mlp.layers.len() - 1;
    let width = mlp.layers[last].width;
    let rows = chunk.values[last].chunks(width).zip(chunk.errors[last].chunks_mut(width)).take(chunk.rows.len());
    for (values, row) in rows {
        row.fill(0.0);
        for ((row, value), error) in row.iter_mut().zip(values).zip(errors) {
            *row = scale * error * if *value > 0.0 { 1.0 } else { mlp.leak };
        }
    }
    backward::<FMA>(mlp, chunk);
}

#[inline(always)]
fn forward<const FMA: bool>(mlp: &Mlp, first: &[f32], samples: &Samples, chunk: &mut Chunk, rows: &[u32]) {
    begin_with_inputs::<FMA>(mlp, first, samples, chunk, rows);
    forward_behind::<FMA>(mlp, chunk);
}

/// From the sums of the first layer on.
#[inline(always)]
fn forward_behind<const FMA: bool>(mlp: &Mlp, chunk: &mut Chunk) {
    let rows = chunk.rows.len();
    for (at, layer) in mlp.layers.iter().enumerate() {
        let (before, after) = chunk.values.split_at_mut(at);
        let values = &mut after[0][..rows * layer.width];
        if at > 0 {
            values.chunks_mut(layer.width).for_each(|values| values.copy_from_slice(&layer.bias.values));
            let left = Picked { values: &before[at - 1], stride: mlp.layers[at - 1].width, rows: &IN_ORDER[..rows] };
            if layer.outputs == 1 {
                add_single_product::<FMA>(values, layer.width, left, &layer.transposed);
            } else {
                add_product::<FMA>(values, layer.width, left, &layer.weights.values, layer.inputs);
            }
        }
        if at + 1 < mlp.layers.len() || mlp.is_last_active {
            values.iter_mut().for_each(|value| *value *= if *value > 0.0 { 1.0 } else { mlp.leak });
        }
    }
}

/// A batch that went through the network.
#[derive(Clone, Copy)]
struct Passed<'a> {
    samples: &'a Samples,
    chunks: &'a [Chunk],
    /// The rows that come next.
    next: &'a [u32],
    /// The errors of the first layer summed over all rows.
    sums: &'a [f32],
}

thread_local! {
    /// Space for the gradient of a block.
    static SCRATCH: RefCell<Aligned> = RefCell::default();
}

/// Some rows of a layer's weights.
struct Block<'a> {
    layer: usize,
    from: usize,
    outputs: usize,
    width: usize,
    values: &'a mut [f32],
    gradient: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    slopes: &'a mut [f32],
}

#[inline(always)]
fn update<const FMA: bool>(block: &mut Block<'_>, gradient: &mut [f32], passed: Passed<'_>, gate: Gate<'_>, rate: Option<Rate>) {
    let Passed { samples, chunks, next, sums } = passed;
    let Block { layer, from, outputs, width, values, first, second, slopes, .. } = block;
    let (layer, from, outputs, width) = (*layer, *from, *outputs, *width);
    let rows = gradient.len() / width;
    match (layer, &samples.sparse) {
        (0, Some(sparse)) => {
            for (gradient, base) in gradient.chunks_mut(width).zip(sparse.base(from..from + rows)) {
                gradient.iter_mut().zip(sums).for_each(|(g, sum)| *g = base * sum);
            }
            for chunk in chunks {
                sparse.add_transposed_product::<FMA>(gradient, width, from / sparse::BLOCK, &chunk.rows, &chunk.errors[0]);
            }
        }
        (0, None) => {
            for (at, chunk) in chunks.iter().enumerate() {
                let left = Picked { values: &samples.values, stride: samples.stride, rows: &chunk.rows };
                // The thread that updates these weights now will multiply with them next, if it can.
                let coming = if next.len() > at * CHUNK { rows_of(next, at) } else { &[] };
                transposed_product::<FMA>(gradient, width, left, from..from + rows, &chunk.errors[0], at > 0, coming);
            }
        }
        _ => {
            gradient.fill(0.0);
            for chunk in chunks {
                let (values, errors) = (&chunk.values[layer - 1], &chunk.errors[layer]);
                let left = Picked { values, stride: values.len() / CHUNK, rows: &IN_ORDER[..chunk.rows.len()] };
                if outputs == 1 {
                    add_single_transposed_product::<FMA>(gradient, width, left, from..from + rows, errors);
                } else {
                    transposed_product::<FMA>(gradient, width, left, from..from + rows, errors, true, &[]);
                }
            }
        }
    }
    for row in 0..rows {
        let range = row * width..(row + 1) * width;
        let (values, gradient) = (&mut values[range.clone()], &mut gradient[range.clone()]);
        if layer == 0 {
            let mut sums = [0.0f32; 8];
            for (w, g) in values.as_chunks::<8>().0.iter().zip(gradient.as_chunks::<8>().0) {
                for lane in 0..8 {
                    sums[lane] += w[lane] * g[lane];
                }
            }
            slopes[row] = sums.iter().sum();
            if let Some(mask) = gate.mask {
                gradient.iter_mut().for_each(|g| *g *= mask[from + row]);
            }
            if let Some(decay) = gate.decay {
                gradient.iter_mut().zip(&*values).for_each(|(g, w)| *g += decay[from + row] * w);
            }
        }
        if let Some(rate) = rate {
            adam(values, gradient, &mut first[range.clone()], &mut second[range], rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five inputs, forty rows, and a network on them.
    fn example(loss: Loss, hidden: &[usize]) -> (Mlp, Samples, Vec<u32>) {
        let mut random = Run::new(8).random("example", 0);
        let inputs = Inputs::plain((0..5).collect(), loss);
        let stride = crate::models::samples::stride_for(5);
        let mut values = Aligned::zeros(40 * stride);
        values.chunks_mut(stride).for_each(|row| row[..5].iter_mut().for_each(|x| *x = random.normal() as f32));
        let targets = (0..40)
            .map(|row| match loss {
                Loss::Squared => random.normal() as f32,
                _ => (row % loss.outputs().max(2)) as f32,
            })
            .collect();
        let samples = Samples { columns: 5, stride, values, targets, ..Samples::default() };
        (Mlp::new(&inputs, hidden, &Run::new(3)), samples, (0..40).collect())
    }

    fn loss(mlp: &Mlp, samples: &Samples, rows: &[u32], mask: &[f32]) -> f64 {
        mlp.differentiate(samples, rows, Gate { mask: Some(mask), decay: None }, &mut Batch::default()).unwrap()
    }

    /// For every loss and depth: all weights, biases and the mask, against the loss at a little more and a little less.
    #[test]
    fn gradients_equal_finite_differences() {
        const STEP: f32 = 2e-3;
        let mask = [1.0, 0.3, 0.7, 0.05, 0.5];
        for kind in [Loss::Squared, Loss::Logistic, Loss::Softmax(3), Loss::Softmax(9)] {
            for hidden in [&[][..], &[7][..], &[11, 6][..]] {
                let (mut mlp, samples, rows) = example(kind, hidden);
                let mut batch = Batch::default();
                let gate = Gate { mask: Some(&mask), decay: None };
                mlp.differentiate(&samples, &rows, gate, &mut batch).unwrap();
                mlp.update(&samples, gate, None, &mut batch);
                let mut wrong = 0;
                let mut checked = 0;
                let mut check = |analytic: f32, moved: &dyn Fn(f32) -> f64| {
                    let difference = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
                    checked += 1;
                    // Where a ReLU switches on between the two points the difference is no derivative.
                    wrong += usize::from((difference - f64::from(analytic)).abs() > 2e-3 + 0.02 * difference.abs());
                };
                for at in 0..mlp.layers.len() {
                    let width = mlp.layers[at].width;
                    for weight in (0..mlp.layers[at].weights.values.len()).filter(|w| w % width < mlp.layers[at].outputs) {
                        let moved = |by: f32| {
                            let mut other = mlp.clone();
                            other.layers[at].weights.values[weight] += by;
                            other.layers[at].transpose();
                            loss(&other, &samples, &rows, &mask)
                        };
                        check(mlp.layers[at].weights.gradient[weight], &moved);
                    }
                    for bias in 0..mlp.layers[at].outputs {
                        let moved = |by: f32| {
                            let mut other = mlp.clone();
                            other.layers[at].bias.values[bias] += by;
                            loss(&other, &samples, &rows, &mask)
                        };
                        check(mlp.layers[at].bias.gradient[bias], &moved);
                    }
                }
                for input in 0..5 {
                    let moved = |by: f32| {
                        let mut other = mask;
                        other[input] += by;
                        loss(&mlp, &samples, &rows, &other)
                    };
                    check(batch.slopes()[input], &moved);
                }
                assert!(wrong * 50 <= checked, "{kind:?} {hidden:?}: {wrong} of {checked}");
            }
        }
    }

    /// The mean loss decreases, and what the network says is what the loss was computed from.
    #[test]
    fn training_lowers_the_loss() {
        for kind in [Loss::Squared, Loss::Logistic, Loss::Softmax(3)] {
            let (mut mlp, samples, rows) = example(kind, &[16]);
            let mut batch = Batch::default();
            let first = mlp.train(&samples, &rows, Gate::default(), 0.01, &mut batch).unwrap();
            for _ in 0..300 {
                mlp.train(&samples, &rows, Gate::default(), 0.01, &mut batch).unwrap();
            }
            let last = loss(&mlp, &samples, &rows, &[1.0; 5]);
            assert!(last < 0.3 * first, "{kind:?}: {first} {last}");
            let outputs = mlp.outputs(&samples, None);
            let judged = crate::models::judge::judge(&Inputs::plain((0..5).collect(), kind), &outputs, &samples);
            assert!((judged.loss - last).abs() < 1e-4, "{kind:?}: {} {last}", judged.loss);
        }
    }

    #[test]
    fn dropping_an_input_is_the_same_as_masking_it() {
        let (mut mlp, mut samples, rows) = example(Loss::Softmax(3), &[7]);
        let masked = loss(&mlp, &samples, &rows, &[1.0, 0.0, 1.0, 1.0, 0.0]);
        mlp.keep_inputs(&[0, 2, 3]);
        samples.keep_columns(&[0, 2, 3]);
        assert!((loss(&mlp, &samples, &rows, &[1.0; 3]) - masked).abs() < 1e-6);
    }

    #[test]
    fn a_batch_of_any_size_gives_the_same_on_any_number_of_threads() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let inputs = Inputs::plain((0..300).collect(), Loss::Softmax(3));
                let mut random = Run::new(1).random("x", 0);
                let stride = crate::models::samples::stride_for(300);
                let values = (0..77 * stride).map(|_| random.normal() as f32).collect();
                let targets = (0..77).map(|row| (row % 3) as f32).collect();
                let samples = Samples { columns: 300, stride, values, targets, ..Samples::default() };
                let mut mlp = Mlp::new(&inputs, &[67], &Run::new(3));
                let rows: Vec<u32> = (0..77).collect();
                let mut batch = Batch::default();
                for _ in 0..5 {
                    mlp.train(&samples, &rows, Gate::default(), 0.01, &mut batch).unwrap();
                }
                assert!(batch.is_parallel);
                mlp.layers[0].weights.values.to_vec()
            })
        };
        assert_eq!(run(1), run(3));
    }

    /// Rows kept whole and rows of which only the unusual values are kept, alone and with a team: the same training.
    #[test]
    fn sparse_rows_train_as_whole_ones_do() {
        const COLUMNS: usize = 500;
        let mut random = Run::new(1).random("x", 0);
        let mut column =
            |base: f64| -> Vec<f64> { (0..77).map(|_| if random.uniform() < 0.2 { random.normal() } else { base }).collect() };
        let columns: Vec<Vec<f64>> = (0..COLUMNS).map(|at| column([0.0, -0.3, 0.7][at % 3])).collect();
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let rows: Vec<usize> = (0..77).collect();
        let stride = crate::models::samples::stride_for(COLUMNS);
        let mut values = Aligned::zeros(77 * stride);
        for (row, values) in values.chunks_mut(stride).enumerate() {
            values.iter_mut().zip(&columns).for_each(|(value, column)| *value = column[row] as f32);
        }
        let targets: Vec<f32> = (0..77).map(|row| (row % 3) as f32).collect();
        let sparse = sparse::Sparse::of(&slices, &[1.0; COLUMNS], &rows);
        assert!(sparse.is_some());
        let whole = Samples { columns: COLUMNS, stride, values, targets: targets.clone(), ..Samples::default() };
        let samples = [whole, Samples { columns: COLUMNS, sparse, targets, ..Samples::default() }];
        let train = |samples: &Samples, batch: &mut Batch| {
            let mut mlp = Mlp::new(&Inputs::plain((0..COLUMNS).collect(), Loss::Softmax(3)), &[67], &Run::new(3));
            let rows: Vec<u32> = (0..77).rev().collect();
            let losses: Vec<f64> = (0..20).map(|_| mlp.train(samples, &rows, Gate::default(), 0.01, batch).unwrap()).collect();
            assert!(batch.is_parallel);
            (losses, mlp.outputs(samples, None))
        };
        let [whole, sparse] = samples.each_ref().map(|samples| train(samples, &mut Batch::default()));
        for (a, b) in whole.0.iter().zip(&sparse.0) {
            // Rounding in the sums differs, and a step of Adam does not make it smaller.
            assert!((a - b).abs() < 1e-4, "{:?} {:?}", whole.0, sparse.0);
        }
        for (samples, alone) in samples.iter().zip([whole, sparse]) {
            for threads in [1, 2, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let together = pool
                    .install(|| Team::gather(|team| train(samples, &mut Batch { team: Some(team.clone()), ..Batch::default() })));
                assert_eq!(together, alone);
            }
        }
    }
}
