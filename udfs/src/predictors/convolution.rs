//! A layer of 3 × 3 filters, ReLU, and of every 2 × 2 the largest.
//!
//! An image is its pixels row by row, each with all its channels. So the three pixels that a row of a filter covers lie beside each other, and
//! the next position's begin one pixel later: a row of the filter against all positions is one product whose left side overlaps
//! itself, and nothing is copied. Positions at the right border run over into the next row; they cost a little, and nobody reads them.

use crate::kernels::gemm::{Onto, Picked, product, transposed_product, vectorized};
use crate::network::adam::{Moving, Rate, adam};
use crate::{Random, Run};

/// Rows and columns of a filter.
pub(crate) const FILTER: usize = 3;
/// Where [`Layer::forward`] found nothing above 0.
const NOWHERE: u32 = 4;

/// Pixels of an image, with whatever border it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Shape {
    pub fn len(self) -> usize {
        self.height * self.width * self.channels
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    input: Shape,
    filters: usize,
    /// Positions that are computed: all but the last two, of which no filter fits.
    positions: Vec<u32>,
    /// `weights[((filter row · 3 + filter column) · channels + channel) · filters + filter]`.
    pub weights: Moving,
    pub bias: Moving,
    /// The same with channel and filter exchanged, as the errors meet them.
    transposed: Vec<f32>,
}

/// One image on its way: the layer before the largest are taken, and which they were.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    pub image: Vec<f32>,
    from: Vec<u32>,
}

impl Layer {
    /// Weights uniform after Glorot and Bengio, no bias.
    pub fn new(input: Shape, filters: usize, run: &Run, key: u64) -> Self {
        let taps = FILTER * FILTER;
        let mut random = run.random("filters", key);
        let reach = (6.0 / (taps * (input.channels + filters)) as f64).sqrt();
        let weights = uniform(taps * input.channels * filters, reach, &mut random);
        let positions = (input.height + 1 - FILTER) * input.width + 1 - FILTER;
        let mut layer = Self {
            positions: (0..positions as u32).collect(),
            input,
            filters,
            transposed: weights.clone(),
            weights: Moving::new(weights),
            bias: Moving::new(vec![0.0; filters]),
        };
        layer.transpose();
        layer
    }

    /// Height and width after the largest of every 2 × 2 are taken; a row or column too many is left out.
    pub fn pooled(&self) -> (usize, usize) {
        ((self.input.height + 1 - FILTER) / 2, (self.input.width + 1 - FILTER) / 2)
    }

    pub fn trace(&self) -> Trace {
        let (height, width) = self.pooled();
        Trace { image: vec![0.0; self.input.len()], from: vec![NOWHERE; height * width * self.filters] }
    }

    /// Values before the largest are taken.
    pub fn grid(&self) -> Vec<f32> {
        vec![0.0; (self.input.height + 1 - FILTER) * self.input.width * self.filters]
    }

    /// The layer's values for an image, into the middle of the next one: rows `stride` pixels apart, from pixel `first`.
    pub fn forward(&self, trace: &mut Trace, grid: &mut [f32], out: &mut [f32], first: usize, stride: usize) {
        forward(self, trace, grid, out, (first, stride));
    }

    /// Adds an image's share to the gradient, from the errors of what it gave on, which lie as `forward` wrote them. `errors` becomes those of the image, if wanted.
    pub fn backward(&mut self, trace: &Trace, given: (&[f32], usize, usize), grid: &mut [f32], errors: Option<&mut [f32]>) {
        backward(self, trace, given, grid, errors);
    }

    pub fn forget(&mut self) {
        self.weights.gradient.fill(0.0);
        self.bias.gradient.fill(0.0);
    }

    pub fn update(&mut self, rate: Rate) {
        step(&mut self.weights, rate);
        step(&mut self.bias, rate);
        self.transpose();
    }

    pub fn transpose(&mut self) {
        let (channels, filters) = (self.input.channels, self.filters);
        let taps = self.weights.values.chunks(channels * filters).zip(self.transposed.chunks_mut(channels * filters));
        for (from, to) in taps {
            for (channel, weights) in from.chunks(filters).enumerate() {
                weights.iter().enumerate().for_each(|(filter, weight)| to[filter * channels + channel] = *weight);
            }
        }
    }
}

pub(crate) fn uniform(count: usize, reach: f64, random: &mut Random) -> Vec<f32> {
    (0..count).map(|_| (reach * (2.0 * random.uniform() - 1.0)) as f32).collect()
}

vectorized! {
    fn forward(layer: &Layer, trace: &mut Trace, grid: &mut [f32], out: &mut [f32], place: (usize, usize)) = forward_with;
}
vectorized! {
    fn backward(layer: &mut Layer, trace: &Trace, given: (&[f32], usize, usize), grid: &mut [f32], errors: Option<&mut [f32]>) = backward_with;
}
vectorized! {
    /// One step of Adam.
    pub(crate) fn step(moving: &mut Moving, rate: Rate) = step_with;
}

#[inline(always)]
fn step_with<const FMA: bool>(moving: &mut Moving, rate: Rate) {
    adam(&mut moving.values, &moving.gradient, &mut moving.first, &mut moving.second, rate);
}

#[inline(always)]
fn forward_with<const FMA: bool>(layer: &Layer, trace: &mut Trace, grid: &mut [f32], out: &mut [f32], place: (usize, usize)) {
    let (Shape { width, channels, .. }, filters, positions) = (layer.input, layer.filters, &layer.positions);
    grid.chunks_exact_mut(filters).for_each(|values| values.copy_from_slice(&layer.bias.values));
    let a_row = FILTER * channels * filters;
    for (row, weights) in layer.weights.values.chunks(a_row).enumerate() {
        let left = Picked { values: &trace.image[row * width * channels..], stride: channels, rows: positions };
        product::<FMA>(grid, filters, Onto::Sums, left, weights, FILTER * channels);
    }
    let (first, stride) = place;
    let (height, across) = layer.pooled();
    for (at, from) in trace.from.chunks_exact_mut(filters).enumerate().take(height * across) {
        let (y, x) = (at / across, at % across);
        let four = four(width, y, x).map(|position| &grid[position * filters..][..filters]);
        let out = &mut out[(first + y * stride + x) * filters..][..filters];
        for filter in 0..filters {
            let (mut largest, mut which) = (0.0, NOWHERE);
            for (corner, values) in (0..).zip(&four) {
                if values[filter] > largest {
                    (largest, which) = (values[filter], corner);
                }
            }
            (out[filter], from[filter]) = (largest, which);
        }
    }
}

/// The positions of which one is kept.
fn four(width: usize, y: usize, x: usize) -> [usize; 4] {
    let first = 2 * y * width + 2 * x;
    [first, first + 1, first + width, first + width + 1]
}

#[inline(always)]
fn backward_with<const FMA: bool>(
    layer: &mut Layer,
    trace: &Trace,
    given: (&[f32], usize, usize),
    grid: &mut [f32],
    errors: Option<&mut [f32]>,
) {
    let (Shape { width, channels, .. }, filters, positions) = (layer.input, layer.filters, &layer.positions);
    let (given, first, stride) = given;
    let (_, across) = layer.pooled();
    grid.fill(0.0);
    for (at, from) in trace.from.chunks_exact(filters).enumerate() {
        let (y, x) = (at / across, at % across);
        let (four, given) = (four(width, y, x), &given[(first + y * stride + x) * filters..][..filters]);
        for filter in 0..filters {
            if from[filter] != NOWHERE {
                grid[four[from[filter] as usize] * filters + filter] = given[filter];
                layer.bias.gradient[filter] += given[filter];
            }
        }
    }
    let a_row = FILTER * channels * filters;
    for (row, gradient) in layer.weights.gradient.chunks_mut(a_row).enumerate() {
        let left = Picked { values: &trace.image[row * width * channels..], stride: channels, rows: positions };
        transposed_product::<FMA>(gradient, filters, Onto::Sums, left, 0..FILTER * channels, grid, &[]);
    }
    let Some(errors) = errors else { return };
    errors.fill(0.0);
    for (tap, weights) in layer.transposed.chunks(channels * filters).enumerate() {
        let from = tap / FILTER * width + tap % FILTER;
        let left = Picked { values: grid, stride: filters, rows: positions };
        product::<FMA>(&mut errors[from * channels..], channels, Onto::Sums, left, weights, filters);
    }
}
