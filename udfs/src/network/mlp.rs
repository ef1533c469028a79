//! A network of dense layers with ReLU between them, trained by Adam on mini-batches.
//!
//! A step has three parts. The first multiplies the inputs with their weights, by groups of inputs and chunks of rows. The second takes the
//! chunks through the rest of the network: forward, loss, and the errors backward. The third goes through the weights, in blocks: their
//! gradient over the whole batch, and the update. Every sum is taken by one thread in one order, so that the number of threads
//! does not show.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernels::aligned::Aligned;
use crate::kernels::gemm::{Onto, padded};
use crate::network::adam::{Moving, Rate, adam};
use crate::network::batch::{
    Batch, Block, CHUNK, Group, Masked, Space, Step, backward_chunk, forward_chunk, multiply_group, pass_all, pass_chunk,
    update_block,
};
use crate::network::samples::{Inputs, Loss, Samples};
use crate::network::sparse;
use crate::network::threads::Hands;
use crate::{Error, Result, Run};

/// Inputs whose products are summed up together, at most. The sums of several such groups are added afterwards, so that a thread can stay
/// with the same weights from step to step, forward and backward: they are in its cache.
const GROUP: usize = 384;
/// Inputs whose weights are updated together: whole lines of the cache.
const BLOCK: usize = 48;
/// Rows, and inputs, of a small piece of work.
const MIDDLE: usize = 10;
const MIDDLE_BLOCK: usize = 16;
/// Multiplications below which a second thread costs more than it brings.
const PARALLEL: usize = 300_000;
/// Log odds of an output that only fills a vector register.
pub(super) const NEVER: f32 = -1e30;

#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    pub(super) layers: Vec<Layer>,
    pub(super) loss: Loss,
    steps: i32,
    /// What is left of a negative value: nothing behind a ReLU.
    pub(super) leak: f32,
    /// Whether the last layer has an activation too.
    pub(super) is_last_active: bool,
    /// How many of the last units of each hidden layer pass their sums on as they are.
    pub(super) straight: usize,
}

/// `inputs × width` weights, of whose columns the first `outputs` count.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub inputs: usize,
    pub outputs: usize,
    pub width: usize,
    pub weights: Moving,
    pub bias: Moving,
    /// `outputs × padded(inputs)`: the weights as the errors meet them. Empty in the first layer, behind which there is nothing.
    pub transposed: Aligned,
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
        let mut mlp = Self::of_layers(inputs.loss, layers);
        if let Loss::Softmax(classes) = inputs.loss {
            mlp.last_mut().bias.values[classes..].fill(NEVER);
        }
        mlp
    }

    /// A network of layers as they are.
    pub(super) fn of_layers(loss: Loss, layers: Vec<Layer>) -> Self {
        Self { layers, loss, steps: 0, leak: 0.0, is_last_active: false, straight: 0 }
    }

    /// Bytes of a network in training: weights, gradient, Adam's moments, the weights behind a mask and turned over, and a batch on its way.
    pub(crate) fn bytes_for(inputs: &Inputs, hidden: &[usize], batch_rows: usize) -> usize {
        let (mut values, mut count) = (0, inputs.columns.len());
        let groups = count.div_ceil(GROUP);
        for (at, outputs) in hidden.iter().copied().chain([inputs.loss.outputs()]).enumerate() {
            let width = padded(outputs);
            values += 6 * count * width + 3 * batch_rows * width;
            values += if at == 0 { groups * batch_rows.next_multiple_of(CHUNK) * width } else { 0 };
            count = outputs;
        }
        values * size_of::<f32>()
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
        batch.fit(self, rows);
        let hands = batch.hands();
        let first = &self.layers[0].weights.values;
        hands.each(&mut batch.space.parts(self), |_, part| forward_chunk(self, first, samples, part));
        let last = self.layers.last().expect("a network has a layer");
        let mut sums = vec![0.0; last.outputs];
        for (values, row) in batch.space.outputs().chunks(last.width).zip(rows) {
            let weight = weight(*row);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        }
        sums
    }

    /// One update from the derivative of a loss by the mean outputs of the batch that went through last.
    pub(crate) fn learn_from(&mut self, samples: &Samples, errors: &[f32], learning_rate: f64, batch: &mut Batch) {
        let scale = 1.0 / batch.space.rows.len() as f32;
        let hands = batch.hands();
        hands.each(&mut batch.space.parts(self), |_, part| backward_chunk(self, part, errors, scale));
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
    pub(super) fn differentiate(&self, samples: &Samples, rows: &[u32], gate: Gate<'_>, batch: &mut Batch) -> Result<f64> {
        batch.fit(self, rows);
        let (hands, near_hands) = (batch.hands(), batch.near_hands());
        let Batch { space, products, masked, .. } = batch;
        let first = self.layers[0].behind(gate.mask, masked, &near_hands);
        let (count, groups) = (rows.len().div_ceil(CHUNK), self.layers[0].groups());
        let scale = 1.0 / rows.len() as f32;
        let mut parts = space.parts(self);
        if groups == 1 {
            hands.each(&mut parts, |_, part| pass_all(self, first, samples, part, scale));
        } else {
            // Group by group, not chunk by chunk.
            let is_cut = is_middle_cut(samples, &hands);
            let (middle, width) = (products.len() / 2, self.layers[0].width);
            let mut pieces = Vec::with_capacity(products.len() + 2 * CHUNK / MIDDLE);
            for (at, product) in products.iter_mut().enumerate() {
                let size = if is_cut && (at + 1 == middle || at == middle) { MIDDLE } else { CHUNK };
                let rows = parts[at % count].rows.chunks(size);
                pieces.extend(rows.zip(product.chunks_mut(size * width)).map(|(rows, product)| (rows, product, at / count)));
            }
            hands.each(&mut pieces, |_, (rows, product, group)| {
                let inputs = self.layers[0].inputs_of(*group, block_of(samples));
                multiply_group(product, Onto::Zero, Group { layer: &self.layers[0], first, samples, rows, inputs });
            });
            hands.each(&mut parts, |at, part| {
                part.begin(&self.layers[0], (0..groups).map(|group| &products[group * count + at][..]));
                pass_chunk(self, samples, part, scale);
            });
        }
        let loss = parts.iter().map(|part| part.loss).sum::<f64>() / rows.len() as f64;
        if loss.is_finite() {
            Ok(loss)
        } else {
            Err(Error::data("training diverged: the loss is no longer a number; lower learning_rate"))
        }
    }

    /// Gradients of all layers, and the update if there is a rate.
    pub(super) fn update(&mut self, samples: &Samples, gate: Gate<'_>, rate: Option<Rate>, batch: &mut Batch) {
        let hands = batch.hands();
        let is_cut = is_middle_cut(samples, &hands);
        let Batch { space, slopes, next, .. } = batch;
        slopes.resize(self.layers.iter().map(|layer| layer.inputs).sum(), 0.0);
        space.total(self);
        // The blocks of all layers together, so that threads meet only once.
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut slopes = &mut slopes[..];
        for (at, layer) in self.layers.iter_mut().enumerate() {
            let width = layer.width;
            let inputs = if at == 0 { block_of(samples) } else { BLOCK };
            let (mut values, mut gradient) = (&mut layer.weights.values[..], &mut layer.weights.gradient[..]);
            let (mut first, mut second) = (&mut layer.weights.first[..], &mut layer.weights.second[..]);
            let mut from = 0;
            while from < layer.inputs {
                let is_middle = is_cut && at == 0 && from.abs_diff(layer.inputs / 2) <= BLOCK;
                let inputs = if is_middle { MIDDLE_BLOCK } else { inputs }.min(layer.inputs - from);
                let size = inputs * width;
                blocks.push(Block {
                    layer: at,
                    from,
                    width,
                    is_single: layer.outputs == 1,
                    values: cut(&mut values, size),
                    gradient: cut(&mut gradient, size),
                    first: cut(&mut first, size),
                    second: cut(&mut second, size),
                    slopes: cut(&mut slopes, inputs),
                });
                from += inputs;
            }
        }
        hands.each(&mut blocks, |_, block| {
            let gate = if block.layer == 0 { gate } else { Gate::default() };
            update_block(block, Step { samples, space, next, gate, rate });
        });
        for (layer, total) in self.layers.iter_mut().zip(&space.totals) {
            layer.update_bias(total, rate);
            layer.transpose();
        }
    }

    /// One update by the gradients that the layers have.
    pub(super) fn descend(&mut self, learning_rate: f64) {
        self.steps += 1;
        let rate = Rate::of(learning_rate, self.steps);
        for layer in &mut self.layers {
            for Moving { values, gradient, first, second } in [&mut layer.weights, &mut layer.bias] {
                adam(values, gradient, first, second, rate);
            }
            layer.transpose();
        }
    }

    /// The outputs for some rows, `outputs` values each: log odds of classes, or standardised numbers.
    pub(crate) fn outputs(&self, samples: &Samples, rows: &[u32], run: &Run) -> Result<Vec<f32>> {
        let outputs = self.loss.outputs();
        let mut all = vec![0.0; rows.len() * outputs];
        let first = &self.layers[0].weights.values;
        all.par_chunks_mut(CHUNK * outputs).zip(rows.par_chunks(CHUNK)).try_for_each_init(
            Space::default,
            |space, (out, rows)| {
                run.check()?;
                space.fit(self, rows);
                space.parts(self).iter_mut().for_each(|part| forward_chunk(self, first, samples, part));
                let last = self.layers.last().expect("a network has a layer");
                for (out, values) in out.chunks_mut(outputs).zip(space.outputs().chunks(last.width)) {
                    out.copy_from_slice(&values[..outputs]);
                }
                Ok(())
            },
        )?;
        Ok(all)
    }

    /// Length of the gradient of the loss over all rows by each input's weights, as if the input were on.
    pub(crate) fn input_slopes(&mut self, samples: &Samples, mask: &[f32], batch: &mut Batch, run: &Run) -> Result<Vec<f64>> {
        let all: Vec<u32> = (0..samples.rows() as u32).collect();
        let width = self.layers[0].width;
        let mut total = vec![0.0f64; self.inputs() * width];
        // The rows of the next batch are of other samples.
        let next = std::mem::take(&mut batch.next);
        for rows in all.chunks(256) {
            run.check()?;
            self.differentiate(samples, rows, Gate { mask: Some(mask), decay: None }, batch)?;
            self.update(samples, Gate::default(), None, batch);
            let share = rows.len() as f64 / all.len() as f64;
            total.iter_mut().zip(self.layers[0].weights.gradient.iter()).for_each(|(sum, g)| *sum += share * f64::from(*g));
        }
        batch.next = next;
        Ok(total.chunks(width).map(|row| row.iter().map(|g| g * g).sum::<f64>().sqrt()).collect())
    }
}

/// Whether work in the middle, where two threads meet, is cut into small pieces, so that none waits long. Not of sparse rows, of which every piece
/// has to begin with the sum of the bases.
fn is_middle_cut(samples: &Samples, hands: &Hands) -> bool {
    samples.sparse.is_none() && !hands.is_one()
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

    /// Its weights as the inputs meet them.
    fn behind<'a>(&'a self, mask: Option<&[f32]>, masked: &'a mut Masked, hands: &Hands) -> &'a [f32] {
        match mask {
            Some(mask) => masked.put(self, mask, hands),
            None => &self.weights.values,
        }
    }

    /// The groups of its inputs.
    pub(super) fn groups(&self) -> usize {
        self.inputs.div_ceil(GROUP)
    }

    /// The inputs of a group: about as many in each, in whole blocks.
    fn inputs_of(&self, group: usize, block: usize) -> Range<usize> {
        let (blocks, groups) = (self.inputs.div_ceil(block), self.groups());
        group * blocks / groups * block..self.inputs.min((group + 1) * blocks / groups * block)
    }

    fn update_bias(&mut self, gradient: &[f32], rate: Option<Rate>) {
        let bias = &mut self.bias;
        bias.gradient.copy_from_slice(gradient);
        if let Some(rate) = rate {
            adam(&mut bias.values, &bias.gradient, &mut bias.first, &mut bias.second, rate);
        }
    }

    pub(super) fn transpose(&mut self) {
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

/// Takes so many values off the front.
fn cut<'a>(values: &mut &'a mut [f32], count: usize) -> &'a mut [f32] {
    values.split_off_mut(..count).expect("blocks are parts of a layer")
}

/// Inputs of the first layer that are taken together.
fn block_of(samples: &Samples) -> usize {
    if samples.sparse.is_some() { sparse::BLOCK } else { BLOCK }
}

#[cfg(test)]
pub(super) mod tests;
