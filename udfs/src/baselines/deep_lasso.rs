use crate::network::input_penalty::{self, InputPenalty};
use crate::network::training::Training;
use crate::neural::workbench::{self, Workbench};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Deep LASSO: a network whose output may not lean on many.
    ///
    /// Trains a network on all features under the penalty `penalty × Σ ‖∂loss/∂x_j‖`, where the length of feature `j` is the root mean square over the rows of a batch of the derivative of a row's loss by the
    /// feature, and ranks features by the same length over all rows at the end. It asks what the loss owes to a feature through all layers, where `group_lasso` looks at the weights
    /// of the first layer. Of a linear model with squared error it is the LASSO.
    ///
    /// The levels of a text are one feature, with one length. The authors try some hundred settings and keep the best on held-out rows; `penalty` is fixed here.
    ///
    /// Cost: `4 × features × hidden` operations for each row of each pass, and `4 × features × hidden²` for each step.
    ///
    /// Source: Cherepanova, Levin, Somepalli, Geiping, Bruss, Wilson, Goldstein and Goldblum, 2023. A performance-driven benchmark for feature selection in tabular deep learning.
    #[selector(
        name = "deep_lasso",
        aliases = [],
        labels = Any,
        score = "share of the loss's derivatives by all features",
    )]
    pub struct DeepLasso {
        /// Weight of the penalty.
        penalty: f64 = 0.1, Check::Between(0.0, 1e6);
        ..training: Training;
    }
}

impl Selector for DeepLasso {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        workbench::select(problem, &self.training, run, |bench, most| self.order(bench, most))
    }
}

impl DeepLasso {
    fn order(&self, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        let (inputs, rows) = (bench.candidates.columns.len(), bench.trainer.rows().len());
        let outputs = bench.rows.label.columns().len();
        let _memory = bench.run.reserve(input_penalty::bytes_for(inputs, &self.training.hidden, outputs, rows))?;
        let mut weights = vec![self.penalty as f32; bench.candidates.len()];
        bench.forced.iter().for_each(|candidate| weights[*candidate] = 0.0);
        let rate = self.training.learning_rate;
        bench.train(most, |bench| {
            let penalty = InputPenalty { groups: &bench.candidates.inputs, weights: &weights };
            bench.trainer.draw();
            bench.trainer.train_by(|mlp, samples, rows, batch| mlp.train_penalized(samples, rows, &penalty, rate, batch))
        })?;
        let trainer = &mut bench.trainer;
        let lengths = trainer.mlp.input_lengths(&trainer.samples, &bench.candidates.inputs, &mut trainer.batch, bench.run)?;
        Ok(bench.ranked(&lengths, most))
    }
}
