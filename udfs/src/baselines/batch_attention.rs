use crate::network::samples::{Inputs, Samples};
use crate::network::training::Training;
use crate::neural::one_pass::{Course, Method, Network, OnePass, Passing, Stream};
use crate::neural::row_attention::RowAttention;
use crate::neural::workbench::{self, Workbench, ranked};
use crate::{Pass, Plan, Problem, Ranking, Reads, Result, Run, Selector, Streaming, selector};

selector! {
    /// Batch attention: a second network masks the features.
    ///
    /// A second network looks at the rows of each batch and says how much every feature counts: its outputs, averaged over the
    /// batch, go through a softmax and become the mask through which the first network sees the features. Both are trained together,
    /// and features are ranked by the mask that the second network gives to all rows at the end.
    ///
    /// The second network has hidden layers of 128 and 64 units with leaky ReLUs, also behind its last layer, as its authors have it.
    ///
    /// `passes => 'one'` reads the table once, row by row, for tables that do not fit into memory, and ranks by the shares of the last batches.
    ///
    /// Cost: `4 × features × (hidden + 192)` operations for each row of each pass.
    ///
    /// Source: Liao, Latty and Yang, 2021. Feature selection using batch-wise attenuation and feature mask normalization.
    #[selector(
        name = "batch_attention",
        aliases = [],
        labels = Any,
        score = "share of the attention",
    )]
    pub struct BatchAttention {
        ..passing: Passing;
        ..training: Training;
    }
}

impl Selector for BatchAttention {
    fn reads(&self) -> Reads {
        self.passing.reads()
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        self.passing.is_one().then_some(self)
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        workbench::select(problem, &self.training, run, |bench, most| self.order(bench, most))
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        self.passing.unused(option)
    }
}

impl Streaming for BatchAttention {
    fn begin(&self, problem: &Problem, plan: &Plan, rows: u64, run: &Run) -> Result<Box<dyn Pass>> {
        let stream = Stream { problem, plan, total: rows };
        let method = |network: &mut Network, inputs: &Inputs| Attending {
            attender: RowAttention::new(inputs, &network.candidates, run),
            shares: vec![0.0; network.candidates.len()],
        };
        OnePass::begin(&stream, &self.training, &Course { warmup: 0.0, per_round: None }, method, run)
    }
}

impl BatchAttention {
    fn order(&self, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        let inputs = Inputs::new(bench.problem, bench.rows, bench.candidates.columns.clone());
        let mut attender = RowAttention::new(&inputs, &bench.candidates, bench.run);
        let rate = self.training.learning_rate;
        bench.train(most, |bench| {
            let Workbench { trainer, candidates, .. } = bench;
            trainer.draw();
            trainer.train_by(|mlp, samples, rows, batch| Ok(attender.step(mlp, candidates, (samples, rows), rate, batch)?.1))
        })?;
        let shares = attender.attend_all(&bench.trainer.samples);
        Ok(bench.ranked(&shares, most))
    }
}

/// One pass: the shares of the batches, the last ones counting most, because no rows are kept to ask about.
struct Attending {
    attender: RowAttention,
    shares: Vec<f64>,
}

/// What a batch adds to the shares.
const RECENT: f64 = 0.02;

impl Method for Attending {
    fn step(&mut self, network: &mut Network, batch: &Samples, rows: &[u32], _: bool) -> Result<f64> {
        let Network { mlp, candidates, space, learning_rate, .. } = network;
        let (shares, loss) = self.attender.step(mlp, candidates, (batch, rows), *learning_rate, space)?;
        self.shares.iter_mut().zip(shares).for_each(|(mean, share)| *mean += RECENT * (share - *mean));
        Ok(loss)
    }

    fn order(&mut self, network: &Network) -> Vec<(usize, f64)> {
        ranked(&network.forced, &self.shares, network.most)
    }
}
