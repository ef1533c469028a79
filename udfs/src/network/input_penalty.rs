//! A penalty on what the loss owes to the inputs: `Σ ‖∂loss/∂x‖`, one length for the inputs of a feature and all rows of the batch.
//!
//! Its derivative by the weights needs no rows of inputs. With the errors `E` of the first layer and its weights `W` the derivative of the loss by the inputs is `E Wᵀ`, so that the
//! length of a feature is that of its weights in the metric `EᵀE`. And the derivative of a length by all weights is the change of the loss's gradient when the
//! inputs move along `E Wᵀ` (Pearlmutter, 1994): tangents go through the network as values and errors do, beginning with `E (WᵀSW)`.

use std::ops::Range;

use crate::kernels::aligned::Aligned;
use crate::kernels::gemm::{Onto, Picked, product, transposed_product, vectorized};
use crate::network::batch::{Batch, Space};
use crate::network::mlp::{Gate, Layer, Mlp};
use crate::network::samples::{Loss, Samples};
use crate::{Result, Run};

/// Inputs that are penalised together, and the weight of each such length.
pub(crate) struct InputPenalty<'a> {
    pub groups: &'a [Range<usize>],
    pub weights: &'a [f32],
}

vectorized! {
    fn multiply(c: &mut [f32], width: usize, a: Picked<'_>, b: &[f32], depth: usize) = multiply_plainly;
}
vectorized! {
    fn multiply_transposed(c: &mut [f32], width: usize, a: Picked<'_>, columns: usize, b: &[f32]) = multiply_turned;
}

#[inline(always)]
fn multiply_plainly<const FMA: bool>(c: &mut [f32], width: usize, a: Picked<'_>, b: &[f32], depth: usize) {
    product::<FMA>(c, width, Onto::Zero, a, b, depth);
}

#[inline(always)]
fn multiply_turned<const FMA: bool>(c: &mut [f32], width: usize, a: Picked<'_>, columns: usize, b: &[f32]) {
    transposed_product::<FMA>(c, width, Onto::Zero, a, 0..columns, b, &[]);
}

impl Mlp {
    /// One update from a batch of rows under the penalty. Returns the mean loss without it.
    pub(crate) fn train_penalized(
        &mut self,
        samples: &Samples,
        rows: &[u32],
        penalty: &InputPenalty<'_>,
        rate: f64,
        batch: &mut Batch,
    ) -> Result<f64> {
        let loss = self.differentiate_penalized(samples, rows, penalty, batch)?;
        self.descend(rate);
        Ok(loss)
    }

    /// The gradient of loss and penalty, in every layer.
    fn differentiate_penalized(
        &mut self,
        samples: &Samples,
        rows: &[u32],
        penalty: &InputPenalty<'_>,
        batch: &mut Batch,
    ) -> Result<f64> {
        let loss = self.differentiate(samples, rows, Gate::default(), batch)?;
        let more = self.move_errors(samples, penalty, &mut batch.space);
        self.update(samples, Gate::default(), None, batch);
        for (layer, more) in self.layers.iter_mut().zip(more) {
            layer.weights.gradient.iter_mut().zip(more.iter()).for_each(|(gradient, more)| *gradient += more);
        }
        Ok(loss)
    }

    /// Adds to the errors what the penalty changes in them, and answers with what else it adds to the gradient of each layer's weights.
    fn move_errors(&self, samples: &Samples, penalty: &InputPenalty<'_>, space: &mut Space) -> Vec<Aligned> {
        let (first, count) = (&self.layers[0], space.rows.len());
        let width = first.width;
        let turned = metric(first, &space.errors[0], &space.in_order);
        let mut of_inputs = in_metric(first, &turned);
        let lengths = lengths(first, &of_inputs, penalty.groups);
        // The length is that of the rows' own losses, in the root mean square; the errors are of their mean.
        let scale = (count as f64).sqrt();
        let mut scaled = first.weights.values.clone();
        for ((group, length), weight) in penalty.groups.iter().zip(lengths).zip(penalty.weights) {
            let factor = if length > 0.0 { (f64::from(*weight) * scale / length) as f32 } else { 0.0 };
            let range = group.start * width..group.end * width;
            scaled[range.clone()].iter_mut().chain(&mut of_inputs[range]).for_each(|value| *value *= factor);
        }
        let mut square = Aligned::zeros(width * width);
        let inputs = numbers(first.inputs);
        multiply_transposed(
            &mut square,
            width,
            Picked { values: &scaled, stride: width, rows: &inputs },
            first.outputs,
            &first.weights.values,
        );
        // Tangents forward.
        let mut tangents: Vec<Aligned> = Vec::with_capacity(self.layers.len());
        for (at, layer) in self.layers.iter().enumerate() {
            let mut tangent = Aligned::zeros(count * layer.width);
            let (left, stride, weights, depth) = match at.checked_sub(1) {
                None => (&space.errors[0], width, &square, first.outputs),
                Some(before) => (&tangents[before], self.layers[before].width, &layer.weights.values, layer.inputs),
            };
            multiply(&mut tangent, layer.width, Picked { values: left, stride, rows: &space.in_order }, weights, depth);
            if at + 1 < self.layers.len() {
                pass_active(&mut tangent, &space.values[at]);
            }
            tangents.push(tangent);
        }
        let mut more = vec![of_inputs];
        for at in 1..self.layers.len() {
            let (layer, before) = (&self.layers[at], &self.layers[at - 1]);
            let mut gradient = Aligned::zeros(layer.inputs * layer.width);
            let left = Picked { values: &tangents[at - 1], stride: before.width, rows: &space.in_order };
            multiply_transposed(&mut gradient, layer.width, left, layer.inputs, &space.errors[at]);
            more.push(gradient);
        }
        // And their errors backward.
        let last = self.layers.len() - 1;
        let mut errors = tangents.swap_remove(last);
        let targets = space.rows.iter().map(|row| samples.targets[*row as usize]);
        curve(self.loss, self.layers[last].width, targets, &space.errors[last], &mut errors);
        for at in (0..self.layers.len()).rev() {
            let layer = &self.layers[at];
            let before = (at > 0).then(|| {
                let behind = &self.layers[at - 1];
                let mut before = Aligned::zeros(count * behind.width);
                let left = Picked { values: &errors, stride: layer.width, rows: &space.in_order };
                multiply(&mut before, behind.width, left, &layer.transposed, layer.outputs);
                pass_active(&mut before, &space.values[at - 1]);
                before
            });
            space.add_errors(at, layer.width, &errors);
            errors = before.unwrap_or_default();
        }
        more
    }

    /// For each group of inputs the length of the derivative of a row's loss by them, in the root mean square over all rows.
    pub(crate) fn input_lengths(
        &self,
        samples: &Samples,
        groups: &[Range<usize>],
        batch: &mut Batch,
        run: &Run,
    ) -> Result<Vec<f64>> {
        let (all, first) = (samples.all(), &self.layers[0]);
        let total: f64 = (0..samples.rows()).map(|row| samples.weight(row)).sum();
        let (outputs, width) = (first.outputs, first.width);
        let mut sums = vec![0.0; outputs * outputs];
        // The rows of the next batch are of another walk through the table.
        let next = std::mem::take(&mut batch.next);
        for rows in all.chunks(WALK) {
            run.check()?;
            // Always as many rows, a power of two, so that a row's errors do not depend on where it stands: a weight of 2 is a row twice.
            let mut filled = rows.to_vec();
            filled.resize(WALK, rows[0]);
            self.differentiate(samples, &filled, Gate::default(), batch)?;
            for (errors, row) in batch.space.errors[0].chunks(width).zip(rows) {
                let factor = samples.weight(*row as usize) / total * (WALK * WALK) as f64;
                for (at, error) in errors[..outputs].iter().enumerate().filter(|(_, error)| **error != 0.0) {
                    let scaled = factor * f64::from(*error);
                    let sums = sums[at * outputs..][..outputs].iter_mut();
                    sums.zip(errors).for_each(|(sum, other)| *sum += scaled * f64::from(*other));
                }
            }
        }
        batch.next = next;
        let length = |group: &Range<usize>| -> f64 {
            let square = |input: usize| -> f64 {
                let weights = self.input_weights(input);
                let inner = |at: usize| -> f64 {
                    sums[at * outputs..][..outputs].iter().zip(weights).map(|(sum, w)| sum * f64::from(*w)).sum()
                };
                weights.iter().enumerate().map(|(at, weight)| f64::from(*weight) * inner(at)).sum()
            };
            group.clone().map(square).sum::<f64>().max(0.0).sqrt()
        };
        Ok(groups.iter().map(length).collect())
    }
}

/// Rows that are taken together in a walk through the table.
const WALK: usize = 256;

/// Bytes that the penalty takes beside the network.
pub(crate) fn bytes_for(inputs: usize, hidden: &[usize], outputs: usize, batch_rows: usize) -> usize {
    let widest = hidden.iter().copied().chain([outputs, 8]).max().unwrap_or(8).next_multiple_of(8);
    let values = 3 * inputs * widest + 2 * widest * widest + (hidden.len() + 3) * (batch_rows.max(WALK) + widest) * widest;
    (values + inputs) * size_of::<f32>() + widest * widest * size_of::<f64>()
}

fn numbers(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

/// `EᵀE` of the first layer's errors.
fn metric(first: &Layer, errors: &[f32], rows: &[u32]) -> Aligned {
    let mut turned = Aligned::zeros(first.outputs * first.width);
    multiply_transposed(&mut turned, first.width, Picked { values: errors, stride: first.width, rows }, first.outputs, errors);
    turned
}

/// The first layer's weights times a metric.
fn in_metric(first: &Layer, metric: &[f32]) -> Aligned {
    let (inputs, width) = (numbers(first.inputs), first.width);
    let mut product = Aligned::zeros(first.inputs * width);
    multiply(&mut product, width, Picked { values: &first.weights.values, stride: width, rows: &inputs }, metric, first.outputs);
    product
}

/// Lengths of groups of weights, from the weights and the same times the metric.
fn lengths(first: &Layer, in_metric: &[f32], groups: &[Range<usize>]) -> Vec<f64> {
    let length = |group: &Range<usize>| {
        let range = group.start * first.width..group.end * first.width;
        let values = first.weights.values[range.clone()].iter().zip(&in_metric[range]);
        values.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>().max(0.0).sqrt()
    };
    groups.iter().map(length).collect()
}

/// What a ReLU lets through.
fn pass_active(tangents: &mut [f32], values: &[f32]) {
    tangents.iter_mut().zip(values).filter(|(_, value)| **value <= 0.0).for_each(|(tangent, _)| *tangent = 0.0);
}

/// From changes of the outputs the changes of their errors: the loss's second derivative, times the share of a row.
fn curve(loss: Loss, width: usize, targets: impl ExactSizeIterator<Item = f32>, errors: &[f32], changes: &mut [f32]) {
    let count = targets.len() as f32;
    for ((changes, errors), target) in changes.chunks_mut(width).zip(errors.chunks(width)).zip(targets) {
        match loss {
            Loss::Squared => changes[0] *= 2.0 / count,
            Loss::Logistic => {
                let share = errors[0] * count + target;
                changes[0] *= share * (1.0 - share) / count;
            }
            Loss::Softmax(classes) => {
                let share = |class: usize| errors[class] * count + if class == target as usize { 1.0 } else { 0.0 };
                let mean: f32 = (0..classes).map(|class| share(class) * changes[class]).sum();
                (0..classes).for_each(|class| changes[class] = share(class) * (changes[class] - mean) / count);
                changes[classes..].fill(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::mlp::tests::example;

    /// A network in plain loops and f64: of each layer `inputs × outputs` weights and the biases.
    #[derive(Clone)]
    struct Plain {
        loss: Loss,
        layers: Vec<(Vec<f64>, Vec<f64>)>,
    }

    impl Plain {
        fn of(mlp: &Mlp) -> Self {
            let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
            let layers = mlp.kept().iter().map(|layer| (wide(&layer.weights), wide(&layer.bias))).collect();
            Self { loss: mlp.loss, layers }
        }

        /// What each layer sums up.
        fn sums(&self, x: &[f64]) -> Vec<Vec<f64>> {
            let mut sums: Vec<Vec<f64>> = Vec::new();
            for (weights, bias) in &self.layers {
                let inputs: Vec<f64> =
                    sums.last().map_or_else(|| x.to_vec(), |before| before.iter().map(|a| a.max(0.0)).collect());
                let sum = |output: usize| -> f64 {
                    bias[output] + inputs.iter().enumerate().map(|(at, x)| x * weights[at * bias.len() + output]).sum::<f64>()
                };
                sums.push((0..bias.len()).map(sum).collect());
            }
            sums
        }

        fn loss(&self, x: &[f64], target: f64) -> f64 {
            let sums = self.sums(x);
            let out = &sums[sums.len() - 1];
            match self.loss {
                Loss::Squared => (out[0] - target).powi(2),
                Loss::Logistic => (1.0 + out[0].exp()).ln() - target * out[0],
                Loss::Softmax(_) => out.iter().map(|o| o.exp()).sum::<f64>().ln() - out[target as usize],
            }
        }

        /// Mean loss and penalty, the derivatives by inputs taken as differences.
        fn total(&self, rows: &[(Vec<f64>, f64)], groups: &[Range<usize>], weights: &[f32]) -> f64 {
            let slope = |(x, target): &(Vec<f64>, f64), input: usize| {
                let moved = |by: f64| {
                    let mut x = x.clone();
                    x[input] += by;
                    self.loss(&x, *target)
                };
                (moved(1e-5) - moved(-1e-5)) / 2e-5
            };
            let count = rows.len() as f64;
            let squares = |input: usize| rows.iter().map(|row| slope(row, input).powi(2)).sum::<f64>() / count;
            let length = |group: &Range<usize>| group.clone().map(squares).sum::<f64>().sqrt();
            let penalty: f64 = groups.iter().zip(weights).map(|(group, weight)| f64::from(*weight) * length(group)).sum();
            rows.iter().map(|(x, target)| self.loss(x, *target)).sum::<f64>() / count + penalty
        }
    }

    /// Rows as plain numbers, those left out that are so near to where a ReLU switches that a difference would be no derivative.
    fn plain(mlp: &Mlp, samples: &Samples) -> (Vec<u32>, Vec<(Vec<f64>, f64)>) {
        let network = Plain::of(mlp);
        let row = |row: u32| {
            let x: Vec<f64> = samples.row(row as usize).iter().map(|x| f64::from(*x)).collect();
            (x, f64::from(samples.targets[row as usize]))
        };
        let hidden = mlp.layers.len() - 1;
        let is_far = |x: &[f64]| network.sums(x)[..hidden].iter().flatten().all(|sum| sum.abs() > 0.02);
        let kept: Vec<u32> = (0..samples.rows() as u32).filter(|at| is_far(&row(*at).0)).collect();
        let rows = kept.iter().map(|at| row(*at)).collect();
        (kept, rows)
    }

    const GROUPS: [Range<usize>; 4] = [0..1, 1..3, 3..4, 4..5];

    /// For every loss and depth: all weights and biases, against loss and penalty at a little more and a little less.
    #[test]
    fn the_gradient_equals_finite_differences() {
        let weights = [0.5, 0.8, 0.0, 1.5];
        for kind in [Loss::Squared, Loss::Logistic, Loss::Softmax(3), Loss::Softmax(9)] {
            for hidden in [&[][..], &[7][..], &[11, 6][..]] {
                let (mut mlp, samples, _) = example(kind, hidden);
                let (kept, rows) = plain(&mlp, &samples);
                assert!(kept.len() >= 10, "{kind:?} {hidden:?}: {} rows", kept.len());
                let penalty = InputPenalty { groups: &GROUPS, weights: &weights };
                mlp.differentiate_penalized(&samples, &kept, &penalty, &mut Batch::default()).unwrap();
                let network = Plain::of(&mlp);
                for (at, layer) in mlp.layers.iter().enumerate() {
                    let outputs = layer.outputs;
                    for parameter in 0..(layer.inputs + 1) * outputs {
                        let (row, column) = (parameter / outputs, parameter % outputs);
                        let moved = |by: f64| {
                            let mut other = network.clone();
                            let (weights, bias) = &mut other.layers[at];
                            *if row < layer.inputs { &mut weights[parameter] } else { &mut bias[column] } += by;
                            other.total(&rows, &GROUPS, penalty.weights)
                        };
                        let difference = (moved(1e-4) - moved(-1e-4)) / 2e-4;
                        let own = if row < layer.inputs {
                            layer.weights.gradient[row * layer.width + column]
                        } else {
                            layer.bias.gradient[column]
                        };
                        let own = f64::from(own);
                        assert!(
                            (difference - own).abs() < 1e-4 + 1e-3 * difference.abs(),
                            "{kind:?} {hidden:?} {at} {parameter}: {own} {difference}"
                        );
                    }
                }
            }
        }
    }

    /// The lengths over all rows are those of differences of the loss, and a weight of 2 is the row twice.
    #[test]
    fn lengths_are_those_of_the_loss_s_derivatives() {
        let (mlp, mut samples, _) = example(Loss::Logistic, &[7]);
        let run = Run::new(0);
        let lengths = |samples: &Samples| mlp.input_lengths(samples, &GROUPS, &mut Batch::default(), &run).unwrap();
        let rows: Vec<(Vec<f64>, f64)> = samples
            .all()
            .iter()
            .map(|row| {
                let x = samples.row(*row as usize).iter().map(|x| f64::from(*x)).collect();
                (x, f64::from(samples.targets[*row as usize]))
            })
            .collect();
        let network = Plain::of(&mlp);
        for (at, found) in lengths(&samples).iter().enumerate() {
            let mut alone = [0.0; 4];
            alone[at] = 1.0;
            let expected = network.total(&rows, &GROUPS, &alone) - network.total(&rows, &GROUPS, &[0.0; 4]);
            assert!((found - expected).abs() < 1e-3 * expected, "{at}: {found} {expected}");
        }
        let twice: Aligned = samples.values.iter().chain(&samples.values[..20 * samples.stride]).copied().collect();
        let targets = [&samples.targets[..], &samples.targets[..20]].concat();
        let doubled = Samples { values: twice, targets, columns: 5, stride: samples.stride, ..Samples::default() };
        samples.weights = (0..40).map(|row| if row < 20 { 2.0 } else { 1.0 }).collect();
        for (weighted, doubled) in lengths(&samples).iter().zip(lengths(&doubled)) {
            assert!((weighted - doubled).abs() < 1e-5 * doubled, "{weighted} {doubled}");
        }
    }
}
