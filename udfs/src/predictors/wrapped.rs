//! The models that selectors are wrapped around.

use crate::judging::folds::Folds;
use crate::judging::judge;
use crate::network::training::Training;
use crate::predictors::logistic::Logistic;
use crate::predictors::mlp::MlpLearner;
use crate::predictors::model::{LeastSquares, Model};
use crate::predictors::refit::Learner;
use crate::predictors::trees::{TreeLearner, Trees};
use crate::{Check, Error, Label, Problem, Result, Run, choice, options};

choice! {
    /// What predicts the label.
    pub enum Wrapped {
        Linear = "linear",
        Logistic = "logistic",
        Mlp = "mlp",
        Forest = "forest",
        Boosting = "boosting",
    }
}

options! {
    /// How the model is trained.
    pub struct Wrapping {
        /// Trees of a forest, rounds of boosting.
        trees: usize = 50, Check::Between(1.0, 100000.0);
        /// Widths of the hidden layers of mlp, one after the other.
        hidden: Vec<usize> = vec![32], Check::Between(1.0, 4096.0);
        /// Passes over the rows in which mlp is trained. NULL: 20, but at least 768 steps and at most 20000.
        epochs: Option<usize> = None, Check::Between(1.0, 1000000.0);
    }
}

impl Wrapped {
    /// What only the label can tell: whether the model is for it.
    pub(crate) fn check(self, problem: &Problem) -> Result<()> {
        match (self, &problem.label) {
            (Wrapped::Logistic, Label::Numbers) => Err(Error::data(
                "model => 'logistic' predicts classes, and the label is a number; use model => 'linear', 'mlp', 'forest' or 'boosting'",
            )),
            _ => Ok(()),
        }
    }

    /// What an option of the training needs to mean anything.
    pub(crate) fn unused(self, option: &str) -> Option<&'static str> {
        match option {
            "trees" if !matches!(self, Wrapped::Forest | Wrapped::Boosting) => Some("model => 'forest' or 'boosting'"),
            "hidden" | "epochs" if self != Wrapped::Mlp => Some("model => 'mlp'"),
            _ => None,
        }
    }
}

impl Wrapping {
    /// A model to be learnt from folds. With a penalty a network pays for the length of the weights that leave each input.
    pub(crate) fn model(&self, model: Wrapped, penalty: f64, folds: &Folds, run: &Run) -> Result<Box<dyn Model>> {
        Ok(match model {
            Wrapped::Linear => Box::new(LeastSquares),
            Wrapped::Logistic => Box::new(Logistic),
            Wrapped::Mlp => Box::new(MlpLearner { penalty, ..self.mlp() }),
            Wrapped::Forest | Wrapped::Boosting => Box::new(TreeLearner::new(self.grown(model), folds, run)?),
        })
    }

    /// The same, to be learnt from the beginning for every set of columns.
    pub(crate) fn learner(&self, model: Wrapped, folds: &Folds, run: &Run) -> Result<Box<dyn Learner>> {
        Ok(match model {
            Wrapped::Linear => Box::new(LeastSquares),
            Wrapped::Logistic => Box::new(Logistic),
            Wrapped::Mlp => Box::new(self.mlp()),
            Wrapped::Forest | Wrapped::Boosting => Box::new(TreeLearner::new(self.grown(model), folds, run)?),
        })
    }

    fn mlp(&self) -> MlpLearner {
        let training = Training { hidden: self.hidden.clone(), epochs: self.epochs, ..Training::default() };
        MlpLearner { training, rounds: judge::ROUNDS, penalty: 0.0 }
    }

    fn grown(&self, model: Wrapped) -> Trees {
        if model == Wrapped::Forest { Trees::forest(self.trees) } else { Trees::boosting(self.trees) }
    }
}
