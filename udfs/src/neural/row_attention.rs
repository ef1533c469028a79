use crate::network::batch::Batch;
use crate::network::mlp::Mlp;
use crate::network::samples::{Inputs, Loss, Samples};
use crate::neural::workbench::Workbench;

/// A network that looks at rows and shares out attention between candidates.
pub(crate) struct RowAttention {
    mlp: Mlp,
    batch: Batch,
}

/// Hidden layers, and what is left of a negative value.
const HIDDEN: [usize; 2] = [128, 64];
const LEAK: f32 = 0.2;

impl RowAttention {
    /// Sees all inputs, and has one output for each candidate.
    pub(crate) fn new(bench: &Workbench<'_>) -> Self {
        let outputs = Loss::Softmax(bench.candidates.len());
        let inputs = Inputs { loss: outputs, ..Inputs::new(bench.problem, bench.rows, bench.candidates.columns.clone()) };
        let keys: Vec<u64> = bench.candidates.inputs.iter().map(|range| inputs.keys[range.start]).collect();
        Self { mlp: Mlp::leaky(&inputs, &HIDDEN, LEAK, &keys, &bench.run.with_seed(1)), batch: Batch::default() }
    }

    /// The share of each candidate for some rows: the softmax of the mean outputs.
    pub(crate) fn attend(&mut self, samples: &Samples, rows: &[u32]) -> Vec<f64> {
        softmax(self.mlp.sum_outputs(samples, rows, |_| 1.0, &mut self.batch), rows.len() as f64)
    }

    /// The same for all rows.
    pub(crate) fn attend_all(&mut self, samples: &Samples) -> Vec<f64> {
        let rows: Vec<u32> = (0..samples.rows() as u32).collect();
        let weight = |row: u32| samples.weight(row as usize);
        let mut total = Vec::new();
        for rows in rows.chunks(256) {
            let sums = self.mlp.sum_outputs(samples, rows, weight, &mut self.batch);
            total.resize(sums.len(), 0.0);
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        softmax(total, rows.iter().map(|row| weight(*row)).sum())
    }

    /// One update from `slopes`, the derivative of the loss by the shares of the rows attended to last.
    pub(crate) fn learn(&mut self, samples: &Samples, shares: &[f64], slopes: &[f32], learning_rate: f64) {
        let mean: f64 = shares.iter().zip(slopes).map(|(share, slope)| share * f64::from(*slope)).sum();
        let error = |(share, slope): (&f64, &f32)| (share * (f64::from(*slope) - mean)) as f32;
        let errors: Vec<f32> = shares.iter().zip(slopes).map(error).collect();
        self.mlp.learn_from(samples, &errors, learning_rate, &mut self.batch);
    }
}

fn softmax(mut sums: Vec<f64>, weight: f64) -> Vec<f64> {
    let largest = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    sums.iter_mut().for_each(|sum| *sum = ((*sum - largest) / weight).exp());
    let total: f64 = sums.iter().sum();
    sums.iter_mut().for_each(|power| *power /= total);
    sums
}
