//! What each input contributes to a network's outputs, beside a row that stands for the ordinary: DeepLIFT's rescale rule.

use crate::network::kept::KeptLayer;

/// Below this a neuron's change says nothing of its slope.
const FLAT: f64 = 1e-9;

/// A network of dense layers with ReLUs between them.
pub(crate) struct Layers(pub Vec<KeptLayer>);

/// What the neurons of each layer have for a row: before their ReLU; of the last layer the outputs.
pub(crate) type Trace = Vec<Vec<f64>>;

impl Layers {
    pub fn trace(&self, x: &[f64]) -> Trace {
        let mut trace: Trace = Vec::new();
        for (at, layer) in self.0.iter().enumerate() {
            let mut sums: Vec<f64> = layer.bias.iter().map(|bias| f64::from(*bias)).collect();
            let before = if at == 0 { x } else { &trace[at - 1] };
            for (value, weights) in before.iter().zip(layer.weights.chunks(sums.len())) {
                let value = if at == 0 { *value } else { value.max(0.0) };
                if value != 0.0 {
                    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * f64::from(*weight));
                }
            }
            trace.push(sums);
        }
        trace
    }

    /// For each input what it adds to an output, beside the reference. The sum over all inputs is the difference of the outputs.
    pub fn contributions(&self, x: &[f64], own: &Trace, reference: (&[f64], &Trace), output: usize) -> Vec<f64> {
        let last = self.0.len() - 1;
        let mut multipliers = vec![0.0; own[last].len()];
        multipliers[output] = 1.0;
        for at in (0..=last).rev() {
            let layer = &self.0[at];
            let inputs = layer.weights.chunks(multipliers.len());
            let mut behind: Vec<f64> =
                inputs.map(|weights| weights.iter().zip(&multipliers).map(|(w, m)| f64::from(*w) * m).sum()).collect();
            if at > 0 {
                for ((multiplier, z), before) in behind.iter_mut().zip(&own[at - 1]).zip(&reference.1[at - 1]) {
                    let change = z - before;
                    *multiplier *=
                        if change.abs() > FLAT { (z.max(0.0) - before.max(0.0)) / change } else { f64::from(*z > 0.0) };
                }
            }
            multipliers = behind;
        }
        multipliers.iter().zip(x.iter().zip(reference.0)).map(|(m, (x, before))| m * (x - before)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    fn network(widths: &[usize]) -> Layers {
        let mut random = Run::new(4).random("network", 0);
        let mut draw = |count: usize| (0..count).map(|_| random.normal() as f32).collect::<Vec<f32>>();
        Layers(widths.windows(2).map(|pair| KeptLayer { weights: draw(pair[0] * pair[1]), bias: draw(pair[1]) }).collect())
    }

    /// Completeness: contributions add up to the difference of the outputs, whatever the network, the row and the reference.
    #[test]
    fn contributions_sum_to_the_difference_of_outputs() {
        let mut random = Run::new(5).random("rows", 0);
        for widths in [&[4, 1][..], &[4, 6, 1], &[4, 9, 5, 3], &[4, 7, 7, 7, 2]] {
            let network = network(widths);
            for _ in 0..20 {
                let mut row = || (0..4).map(|_| random.normal()).collect::<Vec<f64>>();
                let (x, reference) = (row(), row());
                let (own, before) = (network.trace(&x), network.trace(&reference));
                for output in 0..*widths.last().unwrap() {
                    let sum: f64 = network.contributions(&x, &own, (&reference, &before), output).iter().sum();
                    let difference = own.last().unwrap()[output] - before.last().unwrap()[output];
                    assert!((sum - difference).abs() < 1e-9 * difference.abs().max(1.0), "{widths:?}: {sum} {difference}");
                }
            }
        }
    }

    /// What `captum.attr.DeepLift` answers; tests/reference/deep_lift.py says of which version. Our weights have fewer digits.
    #[test]
    fn contributions_are_those_of_captum() {
        let fixture: crate::Value = serde_json::from_str(include_str!("../../../tests/reference/deeplift.json")).unwrap();
        let numbers =
            |value: &crate::Value| -> Vec<f64> { value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect() };
        let narrow = |value: &crate::Value| numbers(value).into_iter().map(|v| v as f32).collect();
        let networks = fixture["networks"].as_array().unwrap();
        assert!(networks.len() >= 4);
        for case in networks {
            let layers = case["layers"].as_array().unwrap().iter();
            let network =
                Layers(layers.map(|l| KeptLayer { weights: narrow(&l["weights"]), bias: narrow(&l["bias"]) }).collect());
            let (x, reference) = (numbers(&case["x"]), numbers(&case["reference"]));
            let (own, before) = (network.trace(&x), network.trace(&reference));
            for (output, expected) in case["contributions"].as_array().unwrap().iter().enumerate() {
                let found = network.contributions(&x, &own, (&reference, &before), output);
                for (found, expected) in found.iter().zip(numbers(expected)) {
                    assert!((found - expected).abs() < 1e-5, "{output}: {found} instead of {expected}");
                }
            }
        }
    }

    /// One hidden layer, written out: each neuron passes on its weight times its change of value by its change of input.
    #[test]
    fn one_hidden_layer_by_hand() {
        let network = network(&[3, 5, 2]);
        let (x, reference) = ([0.3, -1.2, 0.8], [0.0, 0.1, -0.4]);
        let (own, before) = (network.trace(&x), network.trace(&reference));
        let found = network.contributions(&x, &own, (&reference, &before), 1);
        for i in 0..3 {
            let through = |h: usize| {
                let (z, z0) = (own[0][h], before[0][h]);
                let slope = (z.max(0.0) - z0.max(0.0)) / (z - z0);
                f64::from(network.0[0].weights[i * 5 + h]) * slope * f64::from(network.0[1].weights[h * 2 + 1])
            };
            let expected = (x[i] - reference[i]) * (0..5).map(through).sum::<f64>();
            assert!((found[i] - expected).abs() < 1e-12, "{i}: {} {expected}", found[i]);
        }
    }
}
