//! The small convolutional network of Das et al.: 32 filters of 3 × 3, of every 2 × 2 the largest, 64 filters, again the largest, and a dense softmax behind a dropout
//! of one half; trained by Adam in batches of 32. A pixel that is not chosen is 0, which is its mean.
//!
//! As theirs it has no border, so that a layer of filters takes two rows and columns off an image. Of images under ten pixels that would leave nothing: they get a border of zeros.

use crate::judging::folds::Folds;
use crate::kernels::gemm::{LANES, Onto, Picked, padded, product, transposed_product, vectorized};
use crate::network::adam::{Moving, Rate};
use crate::network::samples::{Batches, Samples};
use crate::network::training::Training;
use crate::predictors::convolution::{FILTER, Layer, Shape, Trace, step, uniform};
use crate::predictors::refit::Learner;
use crate::{Error, Result, Run};

const FILTERS: [usize; 2] = [32, 64];
const DROPOUT: f64 = 0.5;
const BATCH: usize = 32;
/// Below this, in either direction, an image gets a border.
const BORDERLESS_MIN: usize = 10;
/// Of fewer pixels nothing would be left.
pub(crate) const SIDE_MIN: usize = 4;

/// The network as a predictor: every candidate trains one from the beginning.
#[derive(Debug, Clone)]
pub(crate) struct Convolutional {
    pub height: usize,
    pub width: usize,
    pub epochs: usize,
    /// For each column of the design, which pixel it is.
    pub pixels: Vec<usize>,
}

impl Learner for Convolutional {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let classes = folds.classes.expect("only asked for classes");
        let mut cnn = Cnn::new(self.height, self.width, classes, run);
        let images = |rows: &[usize]| -> Vec<Vec<f32>> {
            let places: Vec<usize> = columns.iter().map(|column| cnn.place(self.pixels[*column])).collect();
            let image = |row: &usize| {
                let mut image = vec![0.0; cnn.first_shape().len()];
                places.iter().zip(columns).for_each(|(place, column)| image[*place] = folds.columns[*column][*row] as f32);
                image
            };
            rows.iter().map(image).collect()
        };
        let _memory = run.reserve((learn.len() + rows.len()) * (cnn.first_shape().len() * size_of::<f32>() + 32))?;
        let (learnt, asked) = (images(learn), images(rows));
        let targets: Vec<f32> = learn.iter().map(|row| folds.targets[*row] as f32).collect();
        let weights = if folds.is_weighted { learn.iter().map(|row| folds.weights[*row]).collect() } else { Vec::new() };
        let training = Training { epochs: Some(self.epochs), batch_rows: Some(BATCH), ..Training::default() };
        let mut batches = Batches::new(&Samples { targets: targets.clone(), weights, ..Samples::default() }, None, run);
        let mut drawn = vec![0; training.batch_rows(batches.pass_rows())];
        let mut work = Work::default();
        for step in 0..training.steps(batches.pass_rows(), 1) {
            run.check()?;
            batches.next_batch(&mut drawn);
            let batch: Vec<&[f32]> = drawn.iter().map(|row| &learnt[*row as usize][..]).collect();
            let classes: Vec<usize> = drawn.iter().map(|row| targets[*row as usize] as usize).collect();
            let dropped = cnn.dropout(batch.len(), step as u64, run);
            cnn.differentiate(&batch, &classes, &dropped, &mut work)?;
            cnn.update(training.learning_rate);
        }
        let first = usize::from(classes == 2);
        let mut predictions = Vec::with_capacity(rows.len());
        for batch in asked.chunks(BATCH) {
            run.check()?;
            let batch: Vec<&[f32]> = batch.iter().map(Vec::as_slice).collect();
            cnn.forward(&batch, &mut work);
            for odds in work.odds.chunks(cnn.width()).take(batch.len()) {
                let probabilities = softmax(&odds[..classes]);
                predictions.push(probabilities[first..].iter().zip(&folds.offsets).map(|(p, offset)| p - offset).collect());
            }
        }
        Ok(predictions)
    }
}

fn softmax(odds: &[f32]) -> Vec<f64> {
    let largest = odds.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = odds.iter().map(|x| f64::from(x - largest).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

#[derive(Debug, Clone)]
struct Cnn {
    /// Columns of an image, and zeros around it.
    across: usize,
    border: usize,
    shapes: [Shape; 2],
    layers: [Layer; 2],
    /// Values that the second layer gives on.
    values: usize,
    classes: usize,
    /// `dense[value · width + class]`.
    dense: Moving,
    bias: Moving,
    steps: i32,
}

/// Space for a batch.
#[derive(Debug, Default)]
struct Work {
    traces: Vec<[Trace; 2]>,
    grids: [Vec<f32>; 2],
    /// What the second layer gives on, a row for each image, and the errors of it.
    values: Vec<f32>,
    errors: Vec<f32>,
    /// Log odds of the classes, then the derivative of the loss by them.
    odds: Vec<f32>,
    between: Vec<f32>,
}

impl Cnn {
    fn new(height: usize, width: usize, classes: usize, run: &Run) -> Self {
        let border = usize::from(height.min(width) < BORDERLESS_MIN);
        let first = Shape { height: height + 2 * border, width: width + 2 * border, channels: 1 };
        let one = Layer::new(first, FILTERS[0], run, 0);
        let (height, between) = one.pooled();
        let second = Shape { height: height + 2 * border, width: between + 2 * border, channels: FILTERS[0] };
        let two = Layer::new(second, FILTERS[1], run, 1);
        let values = two.pooled().0 * two.pooled().1 * FILTERS[1];
        let reach = (6.0 / (values + classes) as f64).sqrt();
        let mut dense = vec![0.0; values * padded(classes)];
        let mut random = run.random("dense", 0);
        dense.chunks_mut(padded(classes)).for_each(|row| row[..classes].copy_from_slice(&uniform(classes, reach, &mut random)));
        let bias = Moving::new(vec![0.0; padded(classes)]);
        let layers = [one, two];
        Self {
            across: width,
            border,
            shapes: [first, second],
            layers,
            values,
            classes,
            dense: Moving::new(dense),
            bias,
            steps: 0,
        }
    }

    fn first_shape(&self) -> Shape {
        self.shapes[0]
    }

    /// Where a pixel lies among the zeros around the image.
    fn place(&self, pixel: usize) -> usize {
        (pixel / self.across + self.border) * self.shapes[0].width + pixel % self.across + self.border
    }

    fn width(&self) -> usize {
        padded(self.classes)
    }

    /// For each value of each image 0, or what makes up for those that are.
    fn dropout(&self, images: usize, step: u64, run: &Run) -> Vec<f32> {
        let mut random = run.random("dropout", step);
        let kept = (1.0 / (1.0 - DROPOUT)) as f32;
        (0..images * self.values).map(|_| if random.uniform() < DROPOUT { 0.0 } else { kept }).collect()
    }

    /// The pixel in which the second image begins within its border, and how far its rows are apart.
    fn inside(&self) -> (usize, usize) {
        let width = self.shapes[1].width;
        (self.border * (width + 1), width)
    }

    /// The values of the second layer.
    fn convolve(&self, batch: &[&[f32]], work: &mut Work) {
        let [one, two] = &self.layers;
        work.traces.resize_with(batch.len().max(work.traces.len()), || [one.trace(), two.trace()]);
        work.grids =
            [0, 1].map(|at| if work.grids[at].is_empty() { self.layers[at].grid() } else { std::mem::take(&mut work.grids[at]) });
        work.values.resize(batch.len() * self.values, 0.0);
        let (first, stride) = self.inside();
        for ((image, traces), values) in batch.iter().zip(&mut work.traces).zip(work.values.chunks_mut(self.values)) {
            let [before, after] = traces;
            before.image.copy_from_slice(image);
            one.forward(before, &mut work.grids[0], &mut after.image, first, stride);
            two.forward(after, &mut work.grids[1], values, 0, two.pooled().1);
        }
    }

    /// Log odds for every image, nothing dropped.
    fn forward(&self, batch: &[&[f32]], work: &mut Work) {
        self.convolve(batch, work);
        self.classify(batch.len(), work);
    }

    fn classify(&self, images: usize, work: &mut Work) {
        let width = self.width();
        work.odds.clear();
        (0..images).for_each(|_| work.odds.extend_from_slice(&self.bias.values));
        let left = Picked { values: &work.values, stride: self.values, rows: &in_order(images) };
        multiply(&mut work.odds, width, Onto::Sums, left, &self.dense.values, self.values);
    }

    /// The gradient of the mean cross-entropy, and that mean.
    fn differentiate(&mut self, batch: &[&[f32]], classes: &[usize], dropped: &[f32], work: &mut Work) -> Result<f64> {
        self.convolve(batch, work);
        work.values.iter_mut().zip(dropped).for_each(|(value, factor)| *value *= factor);
        self.classify(batch.len(), work);
        let loss = self.differentiate_loss(classes, &mut work.odds);
        if !loss.is_finite() {
            return Err(Error::data(
                "training of cnn diverged: the loss is no longer a number; are there pixels of enormous size?",
            ));
        }
        self.differentiate_dense(batch.len(), work);
        work.errors.iter_mut().zip(dropped).for_each(|(error, factor)| *error *= factor);
        let (first, stride) = self.inside();
        work.between.resize(self.shapes[1].len(), 0.0);
        let [one, two] = &mut self.layers;
        one.forget();
        two.forget();
        let across = two.pooled().1;
        for ([before, after], errors) in work.traces.iter().zip(work.errors.chunks(self.values)) {
            two.backward(after, (errors, 0, across), &mut work.grids[1], Some(&mut work.between));
            one.backward(before, (&work.between, first, stride), &mut work.grids[0], None);
        }
        Ok(loss)
    }

    /// Log odds become derivatives; the mean loss.
    fn differentiate_loss(&self, classes: &[usize], odds: &mut [f32]) -> f64 {
        let mut loss = 0.0;
        for (odds, class) in odds.chunks_mut(self.width()).zip(classes) {
            let probabilities = softmax(&odds[..self.classes]);
            loss -= probabilities[*class].max(1e-30).ln();
            if probabilities.iter().any(|probability| probability.is_nan()) {
                return f64::NAN;
            }
            for (at, (slope, probability)) in odds.iter_mut().zip(&probabilities).enumerate() {
                *slope = ((probability - f64::from(at == *class)) / classes.len() as f64) as f32;
            }
            odds[self.classes..].fill(0.0);
        }
        loss / classes.len() as f64
    }

    fn differentiate_dense(&mut self, images: usize, work: &mut Work) {
        let width = self.width();
        let rows = in_order(images);
        let left = Picked { values: &work.values, stride: self.values, rows: &rows };
        multiply_transposed(&mut self.dense.gradient, width, left, self.values, &work.odds);
        self.bias.gradient.fill(0.0);
        for slopes in work.odds.chunks(width) {
            self.bias.gradient.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
        }
        let mut transposed = vec![0.0; self.classes * self.values];
        for (value, weights) in self.dense.values.chunks(width).enumerate() {
            weights[..self.classes]
                .iter()
                .enumerate()
                .for_each(|(class, weight)| transposed[class * self.values + value] = *weight);
        }
        work.errors.resize(images * self.values, 0.0);
        let left = Picked { values: &work.odds, stride: width, rows: &rows };
        multiply(&mut work.errors, self.values, Onto::Zero, left, &transposed, self.classes);
    }

    fn update(&mut self, learning_rate: f64) {
        self.steps += 1;
        let rate = Rate::of(learning_rate, self.steps);
        self.layers.iter_mut().for_each(|layer| layer.update(rate));
        step(&mut self.dense, rate);
        step(&mut self.bias, rate);
    }
}

fn in_order(rows: usize) -> Vec<u32> {
    (0..rows as u32).collect()
}

vectorized! {
    fn multiply(c: &mut [f32], width: usize, onto: Onto, a: Picked<'_>, b: &[f32], depth: usize) = product;
}
vectorized! {
    fn multiply_transposed(c: &mut [f32], width: usize, a: Picked<'_>, count: usize, b: &[f32]) = multiply_transposed_with;
}

#[inline(always)]
fn multiply_transposed_with<const FMA: bool>(c: &mut [f32], width: usize, a: Picked<'_>, count: usize, b: &[f32]) {
    transposed_product::<FMA>(c, width, Onto::Zero, a, 0..count, b, &[]);
}

const _: () = assert!(FILTERS[0].is_multiple_of(LANES) && FILTERS[1].is_multiple_of(LANES) && SIDE_MIN > FILTER);

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, key: u64) -> Vec<f32> {
        let mut random = Run::new(4).random("noise", key);
        (0..count).map(|_| random.normal() as f32).collect()
    }

    /// Five images in the middle of their border, of three classes, and half of the values dropped.
    fn example(height: usize, width: usize) -> (Cnn, Vec<Vec<f32>>, Vec<usize>, Vec<f32>) {
        let cnn = Cnn::new(height, width, 3, &Run::new(2));
        let image = |at: u64| {
            let mut image = vec![0.0; cnn.first_shape().len()];
            noise(height * width, at).into_iter().enumerate().for_each(|(pixel, value)| image[cnn.place(pixel)] = value);
            image
        };
        let images = (0..5).map(image).collect();
        let dropped = cnn.dropout(5, 0, &Run::new(2));
        (cnn, images, vec![0, 2, 1, 1, 0], dropped)
    }

    /// The network with nothing but loops, in f64.
    fn plain_loss(cnn: &Cnn, images: &[Vec<f32>], classes: &[usize], dropped: &[f32]) -> f64 {
        let layer = |at: usize, image: &[f64], border: usize| -> Vec<f64> {
            let (shape, layer, filters) = (cnn.shapes[at], &cnn.layers[at], FILTERS[at]);
            let value = |y: usize, x: usize, filter: usize| -> f64 {
                let mut sum = f64::from(layer.bias.values[filter]);
                for tap in 0..9 {
                    for channel in 0..shape.channels {
                        let pixel = image[((y + tap / 3) * shape.width + x + tap % 3) * shape.channels + channel];
                        sum += pixel * f64::from(layer.weights.values[(tap * shape.channels + channel) * filters + filter]);
                    }
                }
                sum.max(0.0)
            };
            let (height, width) = ((shape.height - 2) / 2, (shape.width - 2) / 2);
            let mut out = vec![0.0; (height + 2 * border) * (width + 2 * border) * filters];
            for at in 0..height * width * filters {
                let (y, x, filter) = (at / filters / width, at / filters % width, at % filters);
                let four = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(dy, dx)| value(2 * y + dy, 2 * x + dx, filter));
                out[((y + border) * (width + 2 * border) + x + border) * filters + filter] = four.into_iter().fold(0.0, f64::max);
            }
            out
        };
        let mut loss = 0.0;
        for (at, (image, class)) in images.iter().zip(classes).enumerate() {
            let image: Vec<f64> = image.iter().map(|value| f64::from(*value)).collect();
            let values = layer(1, &layer(0, &image, cnn.border), 0);
            assert_eq!(values.len(), cnn.values);
            let odds = |class: usize| -> f64 {
                let terms = values.iter().zip(&dropped[at * cnn.values..]).enumerate();
                terms
                    .map(|(v, (value, factor))| value * f64::from(*factor) * f64::from(cnn.dense.values[v * cnn.width() + class]))
                    .sum::<f64>()
                    + f64::from(cnn.bias.values[class])
            };
            let all: Vec<f64> = (0..cnn.classes).map(odds).collect();
            loss += all.iter().map(|odds| odds.exp()).sum::<f64>().ln() - all[*class];
        }
        loss / images.len() as f64
    }

    /// With and without a border, of even and odd sides: the loss against plain loops, and the gradient against what these say a little to either side.
    #[test]
    fn gradients_equal_finite_differences() {
        const STEP: f32 = 1e-4;
        for (height, width) in [(4, 5), (7, 4), (10, 11)] {
            let (mut cnn, images, classes, dropped) = example(height, width);
            let batch: Vec<&[f32]> = images.iter().map(Vec::as_slice).collect();
            let loss = cnn.differentiate(&batch, &classes, &dropped, &mut Work::default()).unwrap();
            let plain = plain_loss(&cnn, &images, &classes, &dropped);
            assert!((loss - plain).abs() < 1e-5, "{height} × {width}: {loss} {plain}");
            fn of(cnn: &mut Cnn, at: usize) -> &mut Moving {
                match at {
                    0 => &mut cnn.layers[0].weights,
                    1 => &mut cnn.layers[0].bias,
                    2 => &mut cnn.layers[1].weights,
                    3 => &mut cnn.layers[1].bias,
                    4 => &mut cnn.dense,
                    _ => &mut cnn.bias,
                }
            }
            let (mut checked, mut wrong) = (0, 0);
            for (at, every) in [(0, 11), (1, 5), (2, 1501), (3, 11), (4, 101), (5, 1)] {
                for weight in (0..of(&mut cnn, at).values.len()).step_by(every) {
                    let moved = |by: f32| {
                        let mut other = cnn.clone();
                        let value = &mut of(&mut other, at).values[weight];
                        let before = *value;
                        *value += by;
                        let by = f64::from(*value) - f64::from(before);
                        (plain_loss(&other, &images, &classes, &dropped), by)
                    };
                    let ((more, up), (less, down)) = (moved(STEP), moved(-STEP));
                    let difference = (more - less) / (up - down);
                    let slope = f64::from(of(&mut cnn, at).gradient[weight]);
                    // The largest of four may be another at one of the two points.
                    wrong += usize::from((slope - difference).abs() > 1e-5 + 1e-3 * difference.abs());
                    checked += 1;
                }
            }
            assert!(checked > 60 && wrong * 50 <= checked, "{height} × {width}: {wrong} of {checked}");
        }
    }

    /// A bright bar, upright or lying, anywhere: what one pixel cannot tell and filters can.
    #[test]
    fn learns_which_way_a_bar_lies() {
        let run = Run::new(3);
        let mut cnn = Cnn::new(8, 8, 2, &run);
        let mut random = run.random("bars", 0);
        let mut bar = |class: usize| {
            let (at, mut image) = (random.below(8), vec![0.0; cnn.first_shape().len()]);
            (0..8).for_each(|along| image[cnn.place(if class == 0 { at * 8 + along } else { along * 8 + at })] = 1.0);
            image.iter_mut().for_each(|value| *value += 0.2 * random.normal() as f32);
            image
        };
        let images: Vec<Vec<f32>> = (0..200).map(|at| bar(at % 2)).collect();
        let (mut work, mut losses) = (Work::default(), Vec::new());
        for step in 0..60 {
            let rows: Vec<usize> = (0..BATCH).map(|at| (step * BATCH + at) % 160).collect();
            let batch: Vec<&[f32]> = rows.iter().map(|row| &images[*row][..]).collect();
            let classes: Vec<usize> = rows.iter().map(|row| row % 2).collect();
            let dropped = cnn.dropout(BATCH, step as u64, &run);
            losses.push(cnn.differentiate(&batch, &classes, &dropped, &mut work).unwrap());
            cnn.update(1e-3);
        }
        let others: Vec<&[f32]> = images[160..].iter().map(Vec::as_slice).collect();
        cnn.forward(&others, &mut work);
        let right = work.odds.chunks(cnn.width()).enumerate().filter(|(at, odds)| (odds[1] > odds[0]) == (at % 2 == 1)).count();
        assert!(right >= 38 && losses[59] < 0.2 * losses[0], "{right} of 40, {losses:?}");
    }
}
