//! A network with a direct way from its inputs to its outputs beside the hidden layers, and the step that takes inputs out of it.
//!
//! The direct way goes through the layers: each hidden layer has one unit more for every output, which passes its sum on as it is. So an input's direct weights stand behind its other weights.

use std::ops::Range;

use crate::network::adam::Moving;
use crate::network::batch::Batch;
use crate::network::mlp::{Gate, Mlp};
use crate::network::samples::{Inputs, Samples};
use crate::{Result, Run};

/// What is kept of the last step.
const MOMENTUM: f32 = 0.9;

impl Mlp {
    /// The widths of hidden layers with the direct way.
    pub(crate) fn widths_with_skip(inputs: &Inputs, hidden: &[usize]) -> Vec<usize> {
        hidden.iter().map(|width| width + inputs.loss.outputs()).collect()
    }

    pub(crate) fn with_skip(inputs: &Inputs, hidden: &[usize], run: &Run) -> Self {
        let mut mlp = Self::new(inputs, &Self::widths_with_skip(inputs, hidden), run);
        mlp.straight = inputs.loss.outputs();
        mlp.wire();
        mlp
    }

    /// The direct way is not learnt behind the first layer: each of its units leads to the next one and to nothing else, and nothing else leads to it.
    fn wire(&mut self) {
        let (straight, last) = (self.straight, self.layers.len() - 1);
        for (at, layer) in self.layers.iter_mut().enumerate() {
            let bent = layer.outputs - straight;
            if at < last {
                layer.bias.values[bent..layer.outputs].fill(0.0);
            }
            if at == 0 {
                continue;
            }
            let (inputs, width) = (layer.inputs - straight, layer.width);
            for (input, weights) in layer.weights.values.chunks_mut(width).enumerate() {
                match input.checked_sub(inputs) {
                    Some(output) => {
                        weights.fill(0.0);
                        weights[bent + output] = 1.0;
                    }
                    // Into the outputs themselves the other units lead as well.
                    None if at < last => weights[bent..layer.outputs].fill(0.0),
                    None => {}
                }
            }
            layer.transpose();
        }
    }

    /// One update by Adam.
    pub(crate) fn train_with_skip(&mut self, samples: &Samples, rows: &[u32], rate: f64, batch: &mut Batch) -> Result<f64> {
        let loss = self.train(samples, rows, Gate::default(), rate, batch)?;
        self.wire();
        Ok(loss)
    }

    /// One update along the gradient and what is kept of the last.
    pub(crate) fn roll_with_skip(&mut self, samples: &Samples, rows: &[u32], rate: f64, batch: &mut Batch) -> Result<f64> {
        let loss = self.differentiate(samples, rows, Gate::default(), batch)?;
        self.update(samples, Gate::default(), None, batch);
        for layer in &mut self.layers {
            for Moving { values, gradient, first, .. } in [&mut layer.weights, &mut layer.bias] {
                for ((value, slope), speed) in values.iter_mut().zip(gradient.iter()).zip(first.iter_mut()) {
                    *speed = MOMENTUM * *speed + slope;
                    *value -= rate as f32 * *speed;
                }
            }
        }
        self.wire();
        Ok(loss)
    }

    /// Forgets what updates were before.
    pub(crate) fn rest(&mut self) {
        for layer in &mut self.layers {
            layer.weights.first.fill(0.0);
            layer.bias.first.fill(0.0);
        }
    }

    /// The direct weights of some inputs, and their weights into the hidden units.
    pub(crate) fn weights_of(&self, inputs: Range<usize>) -> (Vec<f64>, Vec<f64>) {
        let (outputs, bent) = (self.layers[0].outputs, self.layers[0].outputs - self.straight);
        let of = |lanes: Range<usize>| -> Vec<f64> {
            inputs.clone().flat_map(|input| &self.input_weights(input)[lanes.clone()]).map(|weight| f64::from(*weight)).collect()
        };
        (of(bent..outputs), of(0..bent))
    }

    /// Shrinks the weights of some inputs together: their direct weights by a penalty on their length, and no other larger than `most` times that length. Infinity takes them out.
    pub(crate) fn shrink(&mut self, inputs: Range<usize>, penalty: f64, most: f64) {
        let (direct, hidden) = self.weights_of(inputs.clone());
        let (factor, limit) = hierarchical(&direct, &hidden, penalty, most);
        let (width, outputs) = (self.layers[0].width, self.layers[0].outputs);
        let bent = outputs - self.straight;
        for input in inputs {
            let weights = &mut self.layers[0].weights.values[input * width..][..outputs];
            weights[..bent].iter_mut().for_each(|weight| *weight = weight.clamp(-limit as f32, limit as f32));
            weights[bent..].iter_mut().for_each(|weight| *weight *= factor as f32);
        }
    }
}

/// Where `½‖β − v‖² + ½‖θ − u‖² + penalty ‖β‖` with `|θ_i| ≤ most ‖β‖` is least: the factor of `v`, and the limit of every `|u_i|` (Hier-Prox of Lemhadri et al.).
pub(crate) fn hierarchical(v: &[f64], u: &[f64], penalty: f64, most: f64) -> (f64, f64) {
    let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length <= 0.0 || penalty.is_infinite() {
        return (0.0, 0.0);
    }
    // If so many of the largest are at the limit.
    let place = |at_limit: usize, sum: f64| {
        let factor = (1.0 - (penalty - most * sum) / length).max(0.0) / (1.0 + at_limit as f64 * most * most);
        (factor, most * factor * length)
    };
    let free = place(0, 0.0);
    if u.iter().all(|u| u.abs() <= free.1) {
        return free;
    }
    let mut sizes: Vec<f64> = u.iter().map(|u| u.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut best) = (0.0, free);
    for (at, size) in sizes.iter().enumerate() {
        if *size <= best.1 {
            break;
        }
        sum += size;
        best = place(at + 1, sum);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::aligned::Aligned;
    use crate::network::samples::{Loss, stride_for};

    fn cost(v: &[f64], u: &[f64], penalty: f64, most: f64, factor: f64) -> f64 {
        // With β = factor · v the best θ is known: u, cut off.
        let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let limit = most * factor * length;
        let of_u: f64 = u.iter().map(|u| (u.abs() - limit).max(0.0).powi(2)).sum();
        0.5 * (1.0 - factor).powi(2) * length * length + 0.5 * of_u + penalty * factor * length
    }

    /// Against all factors, near and far.
    #[test]
    fn nothing_is_better_than_the_step() {
        let mut random = Run::new(3).random("prox", 0);
        for case in 0..300 {
            let most = [0.0, 0.3, 1.0, 10.0][case % 4];
            let penalty = [0.0, 0.1, 1.0, 5.0, 40.0][case % 5];
            let v: Vec<f64> = (0..1 + case % 3).map(|_| random.normal()).collect();
            let u: Vec<f64> = (0..case % 7).map(|_| 2.0 * random.normal()).collect();
            let (factor, limit) = hierarchical(&v, &u, penalty, most);
            let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            assert!((limit - most * factor * length).abs() < 1e-12 * (1.0 + limit));
            let own = cost(&v, &u, penalty, most, factor);
            for at in 0..=4000 {
                let other = 4.0 * f64::from(at) / 4000.0 * (1.0 + most * u.len() as f64);
                assert!(own <= cost(&v, &u, penalty, most, other) + 1e-9, "{case}: {factor} costs {own}, {other} less");
            }
        }
    }

    /// What `lassonet.prox.prox` answers; tests/reference/lassonet.py says of which version.
    #[test]
    fn the_step_is_that_of_the_lassonet_package() {
        let fixture: crate::Value = serde_json::from_str(include_str!("../../../tests/reference/lassonet.json")).unwrap();
        let numbers =
            |value: &crate::Value| -> Vec<f64> { value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect() };
        let cases = fixture["prox"].as_array().unwrap();
        assert!(cases.len() >= 40);
        for case in cases {
            let (v, u) = (numbers(&case["v"]), numbers(&case["u"]));
            let (factor, limit) = hierarchical(&v, &u, case["lambda"].as_f64().unwrap(), case["m"].as_f64().unwrap());
            for (v, expected) in v.iter().zip(numbers(&case["beta"])) {
                assert!((factor * v - expected).abs() < 1e-9, "{case}");
            }
            for (u, expected) in u.iter().zip(numbers(&case["theta"])) {
                assert!((u.clamp(-limit, limit) - expected).abs() < 1e-9, "{case}");
            }
        }
    }

    /// The direct way adds a product of the inputs to what the hidden layers say, before and after steps.
    #[test]
    fn outputs_are_a_linear_model_and_a_network() {
        for (loss, hidden) in
            [(Loss::Squared, vec![5]), (Loss::Logistic, vec![9, 4]), (Loss::Softmax(3), vec![6]), (Loss::Softmax(3), vec![])]
        {
            let inputs = Inputs::plain((0..4).collect(), loss);
            let mut mlp = Mlp::with_skip(&inputs, &hidden, &Run::new(3));
            let (rows, q, stride) = (40, loss.outputs(), stride_for(4));
            let mut random = Run::new(4).random("rows", 0);
            let mut samples = Samples { columns: 4, stride, values: Aligned::zeros(rows * stride), ..Samples::default() };
            samples.values.iter_mut().for_each(|value| *value = random.normal() as f32);
            samples.targets = (0..rows).map(|row| (row % 2) as f32).collect();
            let (all, mut batch): (Vec<u32>, Batch) = ((0..rows as u32).collect(), Batch::default());
            for step in 0..4 {
                let found = mlp.outputs(&samples, &all, &Run::default()).unwrap();
                let kept = mlp.kept();
                for row in 0..rows {
                    let x: Vec<f64> = samples.row(row).iter().map(|x| f64::from(*x)).collect();
                    let (mut values, mut direct) = (x.clone(), vec![0.0; q]);
                    for (at, layer) in kept.iter().enumerate() {
                        let wide = layer.bias.len();
                        let bent = if at + 1 < kept.len() || kept.len() == 1 { wide - q } else { wide };
                        let sum = |unit: usize| -> f64 {
                            values.iter().enumerate().map(|(j, x)| x * f64::from(layer.weights[j * wide + unit])).sum::<f64>()
                        };
                        if at == 0 {
                            direct = (wide - q..wide).map(sum).collect();
                        }
                        let biased = |unit: usize| sum(unit) + f64::from(layer.bias[unit]);
                        let next: Vec<f64> = (0..bent).map(biased).collect();
                        values = if at + 1 < kept.len() { next.into_iter().map(|z| z.max(0.0)).collect() } else { next };
                        values.truncate(bent);
                    }
                    for output in 0..q {
                        let network = values.get(output).copied().unwrap_or(f64::from(kept[0].bias[output]));
                        let expected = direct[output] + network;
                        let found = f64::from(found[row * q + output]);
                        assert!((found - expected).abs() < 1e-4, "{loss:?} {hidden:?} {step}: {found} {expected}");
                    }
                }
                match step {
                    0 => mlp.train_with_skip(&samples, &all, 0.01, &mut batch).unwrap(),
                    _ => mlp.roll_with_skip(&samples, &all, 0.01, &mut batch).unwrap(),
                };
            }
        }
    }
}
