//! Attention round by round on a stream of rows, each of which is seen once.

use super::SequentialAttention;
use super::attention::Attention;
use crate::Result;
use crate::network::mlp::Gate;
use crate::network::samples::Samples;
use crate::neural::one_pass::{Method, Network};

pub(super) struct Attending {
    attention: Attention,
    rate: f64,
    per_round: usize,
    mask: Vec<f32>,
    slopes: Vec<f32>,
    order: Vec<(usize, f64)>,
}

impl Attending {
    pub(super) fn new(options: &SequentialAttention, network: &Network) -> Self {
        let candidates = network.candidates.len();
        let mut attention = Attention::new(options.mask, candidates);
        network.forced.iter().for_each(|candidate| attention.choose(*candidate));
        attention.begin_round();
        Self {
            attention,
            rate: options.attention_rate(candidates),
            per_round: options.per_round,
            mask: vec![1.0; network.candidates.columns.len()],
            slopes: vec![0.0; candidates],
            order: network.forced.iter().map(|candidate| (*candidate, 1.0)).collect(),
        }
    }
}

impl Method for Attending {
    fn step(&mut self, network: &mut Network, batch: &Samples, rows: &[u32], is_warm: bool) -> Result<f64> {
        let Network { mlp, candidates, space, learning_rate, .. } = network;
        let gate = Gate { mask: (!is_warm).then_some(&self.mask), decay: None };
        let loss = mlp.train(batch, rows, gate, *learning_rate, space)?;
        if !is_warm {
            candidates.gather(space.slopes(), &mut self.slopes);
            self.attention.step(&self.slopes, self.rate);
            candidates.spread(&self.attention.mask, &mut self.mask);
        }
        Ok(loss)
    }

    fn end_round(&mut self, network: &Network, was_warm: bool) {
        if !was_warm {
            let wanted = self.per_round.min(network.most - self.order.len());
            for candidate in self.attention.ranked().into_iter().take(wanted) {
                self.order.push((candidate, f64::from(self.attention.mask[candidate])));
                self.attention.choose(candidate);
            }
        }
        self.attention.begin_round();
        network.candidates.spread(&self.attention.mask, &mut self.mask);
    }

    fn order(&mut self, _: &Network) -> Vec<(usize, f64)> {
        std::mem::take(&mut self.order)
    }
}
