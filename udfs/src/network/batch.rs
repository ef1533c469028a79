//! A batch of rows on its way through a network: the space it takes, and what one thread does to a part of it.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use crate::kernels::aligned::{Aligned, LINE};
use crate::kernels::gemm::{
    Onto, Picked, add_single_product, add_single_transposed_product, product, transposed_product, vectorized,
};
use crate::network::adam::{Rate, adam};
use crate::network::losses;
use crate::network::mlp::{Gate, Layer, Mlp};
use crate::network::samples::{Loss, Samples};
use crate::network::sparse;
use crate::network::threads::{Hands, Team};

/// Rows that one thread takes through the network at a time.
pub(super) const CHUNK: usize = losses::ROWS;
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
/// Inputs whose weights are masked together.
const MASKED: usize = 96;

/// What is needed for steps; it fits itself to what it is used with.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(super) space: Space,
    /// For each group of inputs and each chunk: what the inputs add to the first layer.
    pub(super) products: Vec<Aligned>,
    pub(super) masked: Masked,
    /// Of the inputs of all layers; those of the first are wanted.
    pub(super) slopes: Vec<f32>,
    pub(super) inputs: usize,
    pub(super) is_parallel: bool,
    /// The rows of the batch after this one, if they are known: memory is asked for them in good time.
    pub next: Vec<u32>,
    /// Who shares the work; nobody: rayon's threads.
    pub team: Option<Arc<Team>>,
    pub(super) is_alone: bool,
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

    pub(super) fn fit(&mut self, mlp: &Mlp, rows: &[u32]) {
        self.space.fit(mlp, rows);
        self.inputs = mlp.inputs();
        let (chunks, first) = (rows.len().div_ceil(CHUNK), &mlp.layers[0]);
        self.products.resize_with(chunks * first.groups(), Aligned::default);
        self.products.iter_mut().for_each(|product| product.fit(CHUNK * first.width));
        self.is_parallel = mlp.is_worth_sharing(rows.len());
    }

    pub(super) fn hands(&self) -> Hands {
        match &self.team {
            _ if self.is_alone || !self.is_parallel => Hands::One,
            Some(team) => Hands::Team(team.clone()),
            None => Hands::Pool,
        }
    }

    /// For what takes less time than one of rayon's threads needs to wake up.
    pub(super) fn near_hands(&self) -> Hands {
        if self.team.is_some() { self.hands() } else { Hands::One }
    }
}

/// The first layer's weights behind a mask.
#[derive(Debug, Default)]
pub(super) struct Masked(Aligned);

/// Those of some inputs.
struct MaskedBlock<'a> {
    masked: &'a mut [f32],
    weights: &'a [f32],
    mask: &'a [f32],
}

impl Masked {
    pub fn put(&mut self, layer: &Layer, mask: &[f32], hands: &Hands) -> &[f32] {
        let size = MASKED * layer.width;
        self.0.fit(layer.weights.values.len());
        let of_weights = self.0.chunks_mut(size).zip(layer.weights.values.chunks(size));
        let mut blocks: Vec<MaskedBlock<'_>> =
            of_weights.zip(mask.chunks(MASKED)).map(|((masked, weights), mask)| MaskedBlock { masked, weights, mask }).collect();
        hands.each(&mut blocks, |_, block| mask_block(block, layer.width));
        &self.0
    }
}

/// What becomes of rows in a network.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// The rows of the samples.
    pub rows: Vec<u32>,
    /// Of each layer, row after row: what it gives on, and the derivative of the loss by it.
    pub values: Vec<Aligned>,
    pub errors: Vec<Aligned>,
    /// Of each layer, chunk after chunk: its errors summed over the rows; and all of them together.
    sums: Vec<Aligned>,
    pub totals: Vec<Vec<f32>>,
    /// Numbers from 0 on, as many as rows.
    pub in_order: Vec<u32>,
}

/// A chunk of the rows, with its part of what belongs to each layer.
pub(super) struct Part<'a> {
    pub rows: &'a [u32],
    values: Vec<&'a mut [f32]>,
    errors: Vec<&'a mut [f32]>,
    sums: Vec<&'a mut [f32]>,
    pub loss: f64,
}

impl Space {
    /// Makes room for some rows.
    pub fn fit(&mut self, mlp: &Mlp, rows: &[u32]) {
        self.rows.clear();
        self.rows.extend(rows);
        self.in_order = (0..rows.len() as u32).collect();
        for layers in [&mut self.values, &mut self.errors, &mut self.sums] {
            layers.resize_with(mlp.layers.len(), Aligned::default);
        }
        for (at, layer) in mlp.layers.iter().enumerate() {
            self.values[at].fit(rows.len() * layer.width);
            self.errors[at].fit(rows.len() * layer.width);
            self.sums[at].fit(rows.len().div_ceil(CHUNK) * sums_apart(layer.width));
        }
    }

    pub fn parts(&mut self, mlp: &Mlp) -> Vec<Part<'_>> {
        let Self { rows, values, errors, sums, .. } = self;
        let mut parts: Vec<Part<'_>> = rows
            .chunks(CHUNK)
            .map(|rows| Part { rows, values: Vec::new(), errors: Vec::new(), sums: Vec::new(), loss: 0.0 })
            .collect();
        for (((layer, values), errors), sums) in mlp.layers.iter().zip(values).zip(errors).zip(sums) {
            let size = CHUNK * layer.width;
            let of_layer = values.chunks_mut(size).zip(errors.chunks_mut(size)).zip(sums.chunks_mut(sums_apart(layer.width)));
            for (part, ((values, errors), sums)) in parts.iter_mut().zip(of_layer) {
                part.values.push(values);
                part.errors.push(errors);
                part.sums.push(&mut sums[..layer.width]);
            }
        }
        parts
    }

    /// What the last layer gives on.
    pub fn outputs(&self) -> &[f32] {
        self.values.last().expect("a network has a layer")
    }

    /// Adds to a layer's errors, and to their sums.
    pub fn add_errors(&mut self, layer: usize, width: usize, more: &[f32]) {
        self.errors[layer].iter_mut().zip(more).for_each(|(error, more)| *error += more);
        for more in more.chunks(width) {
            self.sums[layer].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Adds up what the chunks have summed.
    pub fn total(&mut self, mlp: &Mlp) {
        self.totals.clear();
        for (layer, sums) in mlp.layers.iter().zip(&self.sums) {
            let mut total = vec![0.0; layer.width];
            for sums in sums.chunks(sums_apart(layer.width)) {
                total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            }
            self.totals.push(total);
        }
    }
}

/// Values from the sums of one chunk to those of the next: whole lines, because different threads write them.
fn sums_apart(width: usize) -> usize {
    width.next_multiple_of(LINE)
}

impl Part<'_> {
    /// Into the first layer its bias and what the inputs add to it.
    pub fn begin<'a>(&mut self, first: &Layer, products: impl Iterator<Item = &'a [f32]>) {
        let values = &mut self.values[0];
        values.chunks_mut(first.width).for_each(|values| values.copy_from_slice(&first.bias.values));
        for product in products {
            values.iter_mut().zip(product).for_each(|(value, product)| *value += product);
        }
    }
}

/// Some rows of a layer's weights.
pub(super) struct Block<'a> {
    pub layer: usize,
    pub from: usize,
    pub width: usize,
    /// Whether the layer has a single output.
    pub is_single: bool,
    pub values: &'a mut [f32],
    pub gradient: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
    pub slopes: &'a mut [f32],
}

thread_local! {
    /// Space for the gradient of a block.
    static SCRATCH: RefCell<Aligned> = RefCell::default();
}

vectorized! {
    fn mask_block(block: &mut MaskedBlock<'_>, width: usize) = multiply_rows;
}
vectorized! {
    pub(super) fn multiply_group(values: &mut [f32], onto: Onto, group: Group<'_>) = multiply_inputs;
}
vectorized! {
    pub(super) fn pass_all(mlp: &Mlp, first: &[f32], samples: &Samples, part: &mut Part<'_>, scale: f32) = whole_pass;
}
vectorized! {
    pub(super) fn pass_chunk(mlp: &Mlp, samples: &Samples, part: &mut Part<'_>, scale: f32) = pass;
}
vectorized! {
    pub(super) fn forward_chunk(mlp: &Mlp, first: &[f32], samples: &Samples, part: &mut Part<'_>) = forward;
}
vectorized! {
    pub(super) fn backward_chunk(mlp: &Mlp, part: &mut Part<'_>, errors: &[f32], scale: f32) = backward_from;
}
vectorized! {
    fn update_with(block: &mut Block<'_>, gradient: &mut [f32], step: Step<'_>) = update;
}

/// Some inputs of some rows, and the weights that they meet.
pub(super) struct Group<'a> {
    pub layer: &'a Layer,
    /// The layer's weights, behind the mask if there is one.
    pub first: &'a [f32],
    pub samples: &'a Samples,
    pub rows: &'a [u32],
    /// Whole blocks.
    pub inputs: Range<usize>,
}

/// What the update of a block's weights goes by.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub samples: &'a Samples,
    pub space: &'a Space,
    /// The rows that come next.
    pub next: &'a [u32],
    pub gate: Gate<'a>,
    /// Without a rate the gradient is kept and nothing is updated.
    pub rate: Option<Rate>,
}

/// The gradient of a block's weights, and their update.
pub(super) fn update_block(block: &mut Block<'_>, step: Step<'_>) {
    if step.rate.is_none() {
        let gradient = std::mem::take(&mut block.gradient);
        return update_with(block, gradient, step);
    }
    // A gradient that is used at once does not leave this core's cache.
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.fit(block.values.len());
        update_with(block, scratch, step);
    });
}

#[inline(always)]
fn multiply_rows<const FMA: bool>(block: &mut MaskedBlock<'_>, width: usize) {
    let rows = block.masked.chunks_mut(width).zip(block.weights.chunks(width));
    for ((masked, weights), factor) in rows.zip(block.mask) {
        masked.iter_mut().zip(weights).for_each(|(masked, weight)| *masked = factor * weight);
    }
}

/// What some inputs add to the first layer.
#[inline(always)]
fn multiply_inputs<const FMA: bool>(values: &mut [f32], onto: Onto, group: Group<'_>) {
    let Group { layer, first, samples, rows, inputs } = group;
    match &samples.sparse {
        Some(sparse) => {
            let blocks = inputs.start / sparse::BLOCK..inputs.end.div_ceil(sparse::BLOCK);
            if onto == Onto::Zero {
                values.fill(0.0);
            }
            sparse.add_product::<FMA>(values, layer.width, rows, blocks, first);
        }
        None => {
            let left = Picked { values: &samples.values[inputs.start..], stride: samples.stride, rows };
            product::<FMA>(values, layer.width, onto, left, &first[inputs.start * layer.width..], inputs.len());
        }
    }
}

#[inline(always)]
fn whole_pass<const FMA: bool>(mlp: &Mlp, first: &[f32], samples: &Samples, part: &mut Part<'_>, scale: f32) {
    begin_with_inputs::<FMA>(mlp, first, samples, part);
    pass::<FMA>(mlp, samples, part, scale);
}

#[inline(always)]
fn begin_with_inputs<const FMA: bool>(mlp: &Mlp, first: &[f32], samples: &Samples, part: &mut Part<'_>) {
    let layer = &mlp.layers[0];
    part.begin(layer, std::iter::empty());
    let group = Group { layer, first, samples, rows: part.rows, inputs: 0..layer.inputs };
    multiply_inputs::<FMA>(part.values[0], Onto::Sums, group);
}

#[inline(always)]
fn pass<const FMA: bool>(mlp: &Mlp, samples: &Samples, part: &mut Part<'_>, scale: f32) {
    forward_behind::<FMA>(mlp, part);
    let last = mlp.layers.len() - 1;
    let (values, errors) = (&*part.values[last], &mut *part.errors[last]);
    let width = mlp.layers[last].width;
    let mut targets = [0.0; CHUNK];
    targets.iter_mut().zip(part.rows).for_each(|(target, row)| *target = samples.targets[*row as usize]);
    let targets = &targets[..part.rows.len()];
    part.loss = match mlp.loss {
        Loss::Squared => losses::squared(values, width, targets, scale, errors),
        Loss::Logistic => losses::logistic(values, width, targets, scale, errors),
        Loss::Softmax(_) => losses::softmax(values, width, targets, scale, errors),
    };
    backward::<FMA>(mlp, part);
}

/// The errors of every layer from those of the last, and their sums.
#[inline(always)]
fn backward<const FMA: bool>(mlp: &Mlp, part: &mut Part<'_>) {
    let rows = &IN_ORDER[..part.rows.len()];
    for at in (1..mlp.layers.len()).rev() {
        let (layer, behind) = (&mlp.layers[at], &mlp.layers[at - 1]);
        let (before, after) = part.errors.split_at_mut(at);
        let errors = &mut *before[at - 1];
        let left = Picked { values: after[0], stride: layer.width, rows };
        product::<FMA>(errors, behind.width, Onto::Zero, left, &layer.transposed, layer.outputs);
        for (errors, values) in bent(errors, behind, mlp).zip(part.values[at - 1].chunks(chunk_of(behind, mlp))) {
            errors.iter_mut().zip(values).for_each(|(error, value)| *error *= if *value > 0.0 { 1.0 } else { mlp.leak });
        }
    }
    for (layer, (sums, errors)) in mlp.layers.iter().zip(part.sums.iter_mut().zip(&part.errors)) {
        sums.fill(0.0);
        for errors in errors.chunks(layer.width) {
            sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error);
        }
    }
}

/// Values of a layer that lie together before some come that no activation is for: all of them, or a row's.
#[inline(always)]
fn chunk_of(layer: &Layer, mlp: &Mlp) -> usize {
    if mlp.straight == 0 { CHUNK * layer.width } else { layer.width }
}

/// What an activation is for, of a layer's values.
#[inline(always)]
fn bent<'a>(values: &'a mut [f32], layer: &Layer, mlp: &Mlp) -> impl Iterator<Item = &'a mut [f32]> {
    let bent = if mlp.straight == 0 { CHUNK * layer.width } else { layer.outputs - mlp.straight };
    values.chunks_mut(chunk_of(layer, mlp)).map(move |values| {
        let count = bent.min(values.len());
        &mut values[..count]
    })
}

/// The same when every row has the same derivative of the loss by the outputs, which have an activation.
#[inline(always)]
fn backward_from<const FMA: bool>(mlp: &Mlp, part: &mut Part<'_>, errors: &[f32], scale: f32) {
    let last = mlp.layers.len() - 1;
    let width = mlp.layers[last].width;
    for (values, row) in part.values[last].chunks(width).zip(part.errors[last].chunks_mut(width)) {
        row.fill(0.0);
        for ((row, value), error) in row.iter_mut().zip(values).zip(errors) {
            *row = scale * error * if *value > 0.0 { 1.0 } else { mlp.leak };
        }
    }
    backward::<FMA>(mlp, part);
}

#[inline(always)]
fn forward<const FMA: bool>(mlp: &Mlp, first: &[f32], samples: &Samples, part: &mut Part<'_>) {
    begin_with_inputs::<FMA>(mlp, first, samples, part);
    forward_behind::<FMA>(mlp, part);
}

/// From the sums of the first layer on.
#[inline(always)]
fn forward_behind<const FMA: bool>(mlp: &Mlp, part: &mut Part<'_>) {
    for (at, layer) in mlp.layers.iter().enumerate() {
        let (before, after) = part.values.split_at_mut(at);
        let values = &mut *after[0];
        if at > 0 {
            values.chunks_mut(layer.width).for_each(|values| values.copy_from_slice(&layer.bias.values));
            let rows = &IN_ORDER[..part.rows.len()];
            let left = Picked { values: before[at - 1], stride: mlp.layers[at - 1].width, rows };
            if layer.outputs == 1 {
                add_single_product::<FMA>(values, layer.width, left, &layer.transposed);
            } else {
                product::<FMA>(values, layer.width, Onto::Sums, left, &layer.weights.values, layer.inputs);
            }
        }
        if at + 1 < mlp.layers.len() || mlp.is_last_active {
            for values in bent(values, layer, mlp) {
                values.iter_mut().for_each(|value| *value *= if *value > 0.0 { 1.0 } else { mlp.leak });
            }
        }
    }
}

#[inline(always)]
fn update<const FMA: bool>(block: &mut Block<'_>, gradient: &mut [f32], step: Step<'_>) {
    let Step { samples, space, next, gate, rate } = step;
    let Block { layer, from, width, is_single, values, first, second, slopes, .. } = block;
    let (layer, from, width) = (*layer, *from, *width);
    let inputs = gradient.len() / width;
    let errors = &space.errors[layer];
    match (layer, &samples.sparse) {
        (0, Some(sparse)) => {
            for (gradient, base) in gradient.chunks_mut(width).zip(sparse.base(from..from + inputs)) {
                gradient.iter_mut().zip(&space.totals[0]).for_each(|(g, sum)| *g = base * sum);
            }
            sparse.add_transposed_product::<FMA>(gradient, width, from / sparse::BLOCK, &space.rows, errors);
        }
        (0, None) => {
            let left = Picked { values: &samples.values, stride: samples.stride, rows: &space.rows };
            // The thread that updates these weights now will multiply with them next, if it can.
            transposed_product::<FMA>(gradient, width, Onto::Zero, left, from..from + inputs, errors, next);
        }
        _ => {
            let values = &space.values[layer - 1];
            let left = Picked { values, stride: values.len() / space.rows.len(), rows: &space.in_order };
            if *is_single {
                gradient.fill(0.0);
                add_single_transposed_product::<FMA>(gradient, width, left, from..from + inputs, errors);
            } else {
                transposed_product::<FMA>(gradient, width, Onto::Zero, left, from..from + inputs, errors, &[]);
            }
        }
    }
    for row in 0..inputs {
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
