use crate::linear::penalized::Penalties;
use crate::linear::products::Products;
use crate::network::samples::{Inputs, Samples};
use crate::network::training::Training;
use crate::neural::group_penalty::Penalized;
use crate::neural::one_pass::{Course, Method, Network, OnePass, Passing, Stream};
use crate::neural::workbench::{self, Workbench, lengths_of_all, ranked};
use crate::{Check, Pass, Plan, Problem, Ranking, Reads, Result, Run, Selector, Streaming, choice, selector};

choice! {
    /// What predicts the label.
    pub enum Model {
        Mlp = "mlp",
        Linear = "linear",
    }
}

selector! {
    /// Group LASSO: a penalty that drops features.
    ///
    /// Trains a network on all features under the penalty `penalty × Σ ‖w_j‖`, `w_j` the weights with which feature `j` enters the
    /// hidden layer, and ranks features by the length of their weights at the end. One training, one look: nothing adapts to what
    /// has been chosen before, which is what sequential LASSO and sequential attention add.
    ///
    /// `model => 'linear'` is the method as it was first: least squares under the penalty `λ Σ √m_j ‖β_j‖`, `m_j` the columns of a text or a group, which come in together or not at all. The penalty is lowered until `k` features are in,
    /// and they are ranked in the order in which they come.
    ///
    /// `passes => 'one'` reads the table once, row by row, for tables that do not fit into memory.
    ///
    /// Cost: `4 × features × hidden` operations for each row of each pass; linear: one pass over the table, then `features × k` operations a step.
    ///
    /// Source: Zhao, Hu and Wang, 2015. Heterogeneous feature selection with multi-modal deep neural networks and sparse group LASSO. For 'linear': Yuan and Lin, 2006. Model selection and estimation in regression with grouped variables.
    #[selector(
        name = "group_lasso",
        aliases = [],
        labels = Any,
        score = "share of the length of all weights; linear: penalty at which the feature enters",
    )]
    pub struct GroupLasso {
        /// What predicts the label.
        model: Model = Model::Mlp;
        /// Weight of the penalty.
        penalty: f64 = 0.01, Check::Between(0.0, 1e6);
        ..passing: Passing;
        ..training: Training;
    }
}

impl Selector for GroupLasso {
    fn reads(&self) -> Reads {
        match self.model {
            Model::Mlp => self.passing.reads(),
            Model::Linear => Reads::Moments,
        }
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        matches!(self.reads(), Reads::Pass(_)).then_some(self)
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        let is_neural = option == "penalty" || Training::has(option) || Passing::has(option);
        if is_neural && self.model == Model::Linear { Some("model => 'mlp'") } else { self.passing.unused(option) }
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        if self.model == Model::Linear {
            let products = Products::new(problem, run)?;
            let weights = products.units.iter().map(|columns| (columns.len() as f64).sqrt()).collect();
            return Penalties { problem, products: &products, weights, mix: 1.0, penalty: None }.ranking(run);
        }
        workbench::select(problem, &self.training, run, |bench, most| self.order(bench, most))
    }
}

impl Streaming for GroupLasso {
    fn begin(&self, problem: &Problem, plan: &Plan, rows: u64, run: &Run) -> Result<Box<dyn Pass>> {
        let stream = Stream { problem, plan, total: rows };
        let method = |network: &mut Network, _: &Inputs| {
            Shrinking(Penalized::new(&mut network.mlp, &network.candidates, &network.forced, self.penalty))
        };
        OnePass::begin(&stream, &self.training, &Course { warmup: 0.0, per_round: None }, method, run)
    }
}

impl GroupLasso {
    fn order(&self, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        let mut penalized = Penalized::new(&mut bench.trainer.mlp, &bench.candidates, &bench.forced, self.penalty);
        bench.train(most, |bench| bench.penalized_step(&mut penalized))?;
        Ok(bench.ranked(&bench.lengths(), most))
    }
}

/// One pass: the lengths at its end.
struct Shrinking(Penalized);

impl Method for Shrinking {
    fn step(&mut self, network: &mut Network, batch: &Samples, rows: &[u32], _: bool) -> Result<f64> {
        let Network { mlp, candidates, space, learning_rate, .. } = network;
        self.0.step(mlp, candidates, (batch, rows), *learning_rate, space)
    }

    fn order(&mut self, network: &Network) -> Vec<(usize, f64)> {
        ranked(&network.forced, &lengths_of_all(&network.mlp, &network.candidates), network.most)
    }
}
