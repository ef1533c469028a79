//! A network that has been trained, as numbers to keep, and back.

use crate::kernels::aligned::Aligned;
use crate::kernels::gemm::padded;
use crate::network::adam::Moving;
use crate::network::batch::{CHUNK, Space, forward_chunk};
use crate::network::mlp::{Layer, Mlp, NEVER};
use crate::network::samples::{Loss, Samples, stride_for};
use crate::{Result, Run};

/// A layer: `inputs × outputs` weights, and a bias for each output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeptLayer {
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

impl Mlp {
    pub(crate) fn kept(&self) -> Vec<KeptLayer> {
        let layer = |layer: &Layer| KeptLayer {
            weights: layer.weights.values.chunks(layer.width).flat_map(|row| &row[..layer.outputs]).copied().collect(),
            bias: layer.bias.values[..layer.outputs].to_vec(),
        };
        self.layers.iter().map(layer).collect()
    }

    /// A network of layers that were kept. It is not trained any further.
    pub(crate) fn of_kept(loss: Loss, layers: &[KeptLayer]) -> Self {
        let last = layers.len() - 1;
        let layer = |(at, kept): (usize, &KeptLayer)| {
            let outputs = kept.bias.len();
            let (inputs, width) = (kept.weights.len() / outputs, padded(outputs));
            let wide = |values: &[f32], rest: f32| {
                let mut wide = values.to_vec();
                wide.resize(width, rest);
                wide
            };
            let rest = if at == last && matches!(loss, Loss::Softmax(_)) { NEVER } else { 0.0 };
            let weights = Moving::new(kept.weights.chunks(outputs).flat_map(|row| wide(row, 0.0)).collect());
            let transposed = Aligned::zeros(if at == 0 { 0 } else { outputs * padded(inputs) });
            let mut layer = Layer { inputs, outputs, width, weights, bias: Moving::new(wide(&kept.bias, rest)), transposed };
            layer.transpose();
            layer
        };
        Self::of_layers(loss, layers.iter().enumerate().map(layer).collect())
    }

    /// The outputs of rows that `fill` writes the inputs of, on this thread alone. To the last digit those of a training that had the same rows.
    pub(crate) fn outputs_of(&self, inputs: usize, rows: usize, fill: impl Fn(usize, &mut [f32]), run: &Run) -> Result<Vec<f32>> {
        let (outputs, stride) = (self.loss.outputs(), stride_for(inputs));
        let mut samples = Samples { columns: inputs, stride, values: Aligned::zeros(CHUNK * stride), ..Samples::default() };
        samples.targets = vec![0.0; CHUNK];
        let (mut space, mut all) = (Space::default(), Vec::with_capacity(rows * outputs));
        let first = &self.layers[0].weights.values;
        for start in (0..rows).step_by(CHUNK) {
            run.check()?;
            let count = CHUNK.min(rows - start);
            for (at, values) in samples.values.chunks_mut(stride).take(count).enumerate() {
                fill(start + at, &mut values[..inputs]);
            }
            let chunk: Vec<u32> = (0..count as u32).collect();
            space.fit(self, &chunk);
            space.parts(self).iter_mut().for_each(|part| forward_chunk(self, first, &samples, part));
            let width = self.layers.last().map_or(1, |layer| layer.width);
            all.extend(space.outputs().chunks(width).flat_map(|row| &row[..outputs]));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::samples::Inputs;

    /// Kept and made again, a network says the same to the last digit, whatever its shape.
    #[test]
    fn a_kept_network_is_the_network() {
        for (loss, hidden) in [
            (Loss::Squared, vec![]),
            (Loss::Squared, vec![5]),
            (Loss::Logistic, vec![9, 4]),
            (Loss::Softmax(3), vec![67]),
            (Loss::Softmax(11), vec![]),
        ] {
            let inputs = Inputs::plain((0..13).collect(), loss);
            let mlp = Mlp::new(&inputs, &hidden, &Run::new(3));
            let mut random = Run::new(4).random("rows", 0);
            let rows = 45;
            let values: Vec<f32> = (0..rows * 13).map(|_| random.normal() as f32).collect();
            let stride = stride_for(13);
            let mut samples = Samples { columns: 13, stride, values: Aligned::zeros(rows * stride), ..Samples::default() };
            for (row, values) in values.chunks(13).enumerate() {
                samples.values[row * stride..row * stride + 13].copy_from_slice(values);
            }
            samples.targets = vec![0.0; rows];
            let expected = mlp.outputs(&samples, &samples.all(), &Run::default()).unwrap();
            let again = Mlp::of_kept(loss, &mlp.kept());
            assert_eq!(again.kept(), mlp.kept());
            let fill = |row: usize, to: &mut [f32]| to.copy_from_slice(&values[row * 13..(row + 1) * 13]);
            assert_eq!(again.outputs_of(13, rows, fill, &Run::default()).unwrap(), expected, "{loss:?} {hidden:?}");
        }
    }
}
