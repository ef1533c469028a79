mod logistic;
mod neural;

use crate::kernels::argmax;
use crate::linear::products::Products;
use crate::linear::pursuit::{Pursuit, pursue};
use crate::network::training::Training;
use crate::neural::workbench;
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What predicts the label.
    pub enum Model {
        Linear = "linear",
        Logistic = "logistic",
        Mlp = "mlp",
    }
}

choice! {
    /// How the next feature is found.
    pub enum Criterion {
        /// The largest correlation with the residual.
        Omp = "omp",
        /// The largest drop of the residual, counting what the feature shares with those already chosen.
        Ols = "ols",
    }
}

selector! {
    /// Orthogonal matching pursuit: greedy and linear, at once.
    ///
    /// Chooses features one at a time: the one most correlated with what is still unexplained, then a least-squares
    /// refit on everything chosen so far.
    ///
    /// Let `r` be the residual (at first the label `y`), `x_j` feature `j` centred and scaled to length 1.
    ///
    /// 1. choose the feature with the largest `|x_j · r|`
    /// 2. refit: `r = y − X_S β` with the least-squares `β` on the chosen set `S`
    /// 3. stop after `k` choices, or when the unexplained share of the variance is within `tolerance`
    ///
    /// `criterion => 'ols'` divides by the length that `x_j` has left beside the chosen ones, and so makes the choice
    /// that lowers the residual most. Classes are predicted as one 0/1 column each, jointly. A text column or a group of `m` columns would
    /// explain `m / rows` of anything by chance; it counts as the single column that it is worth beyond that.
    ///
    /// Other models have other residuals. `model => 'logistic'` refits a multinomial logistic regression and chooses by the score test:
    /// the gradient that a feature would have, by the curvature that it would meet. `model => 'mlp'` goes on training a network on
    /// the chosen features, and chooses by the length of the gradient that the weights of a feature would have.
    ///
    /// Cost: one pass over the table, then `features × k` operations a choice. The other models keep the rows: `rows × features × classes`
    /// operations a choice, and `4 × features × hidden` for each row of each pass.
    ///
    /// Source: Pati, Rezaiifar and Krishnaprasad, 1993. Orthogonal matching pursuit. For 'ols': Chen, Billings and
    /// Luo, 1989. Orthogonal least squares. For 'logistic': Elenberg, Khanna, Dimakis and Negahban, 2018. Restricted strong convexity
    /// implies weak submodularity.
    #[selector(
        name = "omp",
        aliases = [],
        labels = Any,
        score = "linear: correlation with the residual, where label and features have length 1; logistic: score statistic; mlp: length of the gradient",
    )]
    pub struct Omp {
        /// What predicts the label.
        model: Model = Model::Linear;
        /// 'omp' takes the feature most correlated with the residual, 'ols' the one that lowers the residual most.
        criterion: Criterion = Criterion::Omp;
        /// Stop when the unexplained share of the label's variance is no more than this.
        tolerance: f64 = 0.0, Check::Between(0.0, 1.0);
        ..training: Training;
    }
}

impl Selector for Omp {
    fn reads(&self) -> Reads {
        match self.model {
            Model::Linear => Reads::Moments,
            Model::Logistic | Model::Mlp => Reads::Rows,
        }
    }

    fn is_prefix(&self) -> bool {
        self.model == Model::Linear
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        match self.model {
            Model::Linear => self.select_linear(problem, run),
            Model::Logistic => logistic::select(problem, run),
            Model::Mlp => workbench::select(problem, &self.training, run, neural::order),
        }
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        match option {
            "criterion" | "tolerance" if self.model != Model::Linear => Some("model => 'linear'"),
            _ if Training::has(option) && self.model != Model::Mlp => Some("model => 'mlp'"),
            _ => None,
        }
    }
}

impl Omp {
    fn select_linear(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        let score = |pursuit: &Pursuit<'_>, unit: usize| match self.criterion {
            Criterion::Omp => pursuit.correlation(unit),
            Criterion::Ols => pursuit.projection(unit),
        };
        pursue(problem, &products, run, score, |pursuit, open| {
            if pursuit.unexplained <= self.tolerance {
                return Ok(None);
            }
            let best = argmax(open.iter().map(|unit| Some(score(pursuit, *unit))));
            Ok(best.map(|(at, score)| (open[at], score)))
        })
    }
}
