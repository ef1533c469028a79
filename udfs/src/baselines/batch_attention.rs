use crate::models::attender::Attender;
use crate::models::ground::{self, Ground, ranked};
use crate::models::mlp::Gate;
use crate::models::training::Training;
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Batch attention.
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
        ground::select(problem, &self.training, run, |ground, most| self.order(ground, most))
    }
}

/// As long as that many rounds of a sequential selector, whatever k.
const ROUNDS_MIN: usize = 20;
/// Steps between two reports of progress.
const REPORT: usize = 100;

impl BatchAttention {
    fn order(&self, ground: &mut Ground<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        let steps = ground.training.steps(ground.trainer.pass_rows(), most.max(ROUNDS_MIN));
        let mut attender = Attender::new(ground);
        let (candidates, inputs) = (ground.candidates.len(), ground.candidates.columns.len());
        let (mut mask, mut slopes) = (vec![0.0; inputs], vec![0.0; candidates]);
        for step in 0..steps {
            if step % REPORT == 0 {
                ground.run.step_with(step, steps, || ground.trainer.note())?;
            }
            let trainer = &mut ground.trainer;
            trainer.draw();
            let shares = attender.attend(&trainer.samples, trainer.rows());
            let factors: Vec<f32> = shares.iter().map(|share| *share as f32).collect();
            ground.candidates.spread(&factors, &mut mask);
            trainer.train(Gate { mask: Some(&mask), decay: None }, self.training.learning_rate)?;
            ground.candidates.gather(trainer.batch.slopes(), &mut slopes);
            attender.learn(&trainer.samples, &shares, &slopes, self.training.learning_rate);
        }
        let shares = attender.attend_all(&ground.trainer.samples);
        Ok(ranked(ground, &shares, most))
    }
}
