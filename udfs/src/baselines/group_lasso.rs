use crate::network::training::Training;
use crate::neural::group_penalty::Penalized;
use crate::neural::workbench::{self, Workbench};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Group LASSO of a network.
    ///
    /// Trains a network on all features under the penalty `penalty × Σ ‖w_j‖`, `w_j` the weights with which feature `j` enters the
    /// hidden layer, and ranks features by the length of their weights at the end. One training, one look: nothing adapts to what
    /// has been chosen before, which is what sequential LASSO and sequential attention add.
    ///
    /// Cost: `4 × features × hidden` operations for each row of each pass.
    ///
    /// Source: Zhao, Hu and Wang, 2015. Heterogeneous feature selection with multi-modal deep neural networks and sparse group LASSO.
    #[selector(
        name = "group_lasso",
        aliases = [],
        labels = Any,
        score = "share of the length of all weights",
    )]
    pub struct GroupLasso {
        /// Weight of the penalty.
        penalty: f64 = 0.01, Check::Between(0.0, 1e6);
        ..training: Training;
    }
}

impl Selector for GroupLasso {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        workbench::select(problem, &self.training, run, |bench, most| self.order(bench, most))
    }
}

impl GroupLasso {
    fn order(&self, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        let mut penalized = Penalized::new(bench, self.penalty);
        bench.train(most, |bench| penalized.step(bench))?;
        Ok(bench.ranked(&bench.lengths(), most))
    }
}
