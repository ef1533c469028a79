use crate::network::batch::Batch;
use crate::network::mlp::{Gate, Mlp};
use crate::network::samples::{Inputs, Loss, Samples};
use crate::neural::candidates::Candidates;
use crate::{Result, Run};

/// A network that looks at rows and shares out attention between candidates.
pub(crate) struct RowAttention {
    mlp: Mlp,
    batch: Batch,
    /// The shares, input by input, and the derivative of the loss by the shares.
    mask: Vec<f32>,
    slopes: Vec<f32>,
}

/// Hidden layers, and what is left of a negative value.
const HIDDEN: [usize; 2] = [128, 64];
const LEAK: f32 = 0.2;

impl RowAttention {
    /// Sees all inputs, and has one output for each candidate.
    pub(crate) fn new(inputs: &Inputs, candidates: &Candidates, run: &Run) -> Self {
        let inputs = Inputs { loss: Loss::Softmax(candidates.len()), ..inputs.clone() };
        let keys: Vec<u64> = candidates.inputs.iter().map(|range| inputs.keys[range.start]).collect();
        let (slopes, mask) = (vec![0.0; candidates.len()], vec![0.0; candidates.columns.len()]);
        Self { mlp: Mlp::leaky(&inputs, &HIDDEN, LEAK, &keys, &run.with_seed(1)), batch: Batch::default(), mask, slopes }
    }

    /// One update of this network and of the one that sees the candidates through its mask; answers with the shares of the candidates and the loss.
    pub(crate) fn step(
        &mut self,
        mlp: &mut Mlp,
        candidates: &Candidates,
        (samples, rows): (&Samples, &[u32]),
        learning_rate: f64,
        batch: &mut Batch,
    ) -> Result<(Vec<f64>, f64)> {
        let shares = self.attend(samples, rows);
        let factors: Vec<f32> = shares.iter().map(|share| *share as f32).collect();
        candidates.spread(&factors, &mut self.mask);
        let loss = mlp.train(samples, rows, Gate { mask: Some(&self.mask), decay: None }, learning_rate, batch)?;
        candidates.gather(batch.slopes(), &mut self.slopes);
        self.learn(samples, &shares, learning_rate);
        Ok((shares, loss))
    }

    /// The share of each candidate for some rows: the softmax of the mean outputs.
    fn attend(&mut self, samples: &Samples, rows: &[u32]) -> Vec<f64> {
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
    fn learn(&mut self, samples: &Samples, shares: &[f64], learning_rate: f64) {
        let slopes = &self.slopes;
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
