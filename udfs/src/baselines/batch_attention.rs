use crate::network::mlp::Gate;
use crate::network::training::Training;
use crate::neural::row_attention::RowAttention;
use crate::neural::workbench::{self, Workbench};
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Batch attention: a second network masks the features.
    ///
    /// A second network looks at the rows of each batch and says how much every feature counts: its outputs, averaged over the
    /// batch, go through a softmax and become the mask through which the first network sees the features. Both are trained together,
    /// and features are ranked by the mask that the second network gives to all rows at the end.
    ///
    /// The second network has hidden layers of 128 and 64 units with leaky ReLUs, also behind its last layer, as its authors have it.
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
        ..training: Training;
    }
}

impl Selector for BatchAttention {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        workbench::select(problem, &self.training, run, |bench, most| self.order(bench, most))
    }
}

impl BatchAttention {
    fn order(&self, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        let mut attender = RowAttention::new(bench);
        let (candidates, inputs) = (bench.candidates.len(), bench.candidates.columns.len());
        let (mut mask, mut slopes) = (vec![0.0; inputs], vec![0.0; candidates]);
        bench.train(most, |bench| {
            let trainer = &mut bench.trainer;
            trainer.draw();
            let shares = attender.attend(&trainer.samples, trainer.rows());
            let factors: Vec<f32> = shares.iter().map(|share| *share as f32).collect();
            bench.candidates.spread(&factors, &mut mask);
            trainer.train(Gate { mask: Some(&mask), decay: None }, self.training.learning_rate)?;
            bench.candidates.gather(trainer.batch.slopes(), &mut slopes);
            attender.learn(&trainer.samples, &shares, &slopes, self.training.learning_rate);
            Ok(())
        })?;
        let shares = attender.attend_all(&bench.trainer.samples);
        Ok(bench.ranked(&shares, most))
    }
}
