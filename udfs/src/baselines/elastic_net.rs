use crate::linear::penalized::Penalties;
use crate::linear::products::Products;
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Elastic net: a LASSO that keeps redundant features together.
    ///
    /// Lowers the penalty of `min ½‖y − Xβ‖² + λ Σ (l1_ratio |β_j| + ½ (1 − l1_ratio) β_j²)` from where nothing is chosen to where `k` features are. Squares make features that correlate share a coefficient, where the
    /// LASSO would take one of them.
    ///
    /// `coefficient` is the penalised one where one feature more would enter; `train_score` that of least squares on the features ranked so far. `penalty => 0.05` asks for the model at that penalty instead: `score` is then the length of a
    /// feature's coefficient, where label and features have length 1. A text or a group comes in with all its columns, and more than two classes are predicted jointly: then `|β_j|` is the length of all coefficients of a feature.
    ///
    /// Cost: one pass over the table, then `features × k` operations a sweep, and some sweeps for each penalty.
    ///
    /// Source: Zou and Hastie, 2005. Regularization and variable selection via the elastic net.
    #[selector(
        name = "elastic_net",
        aliases = [],
        labels = Any,
        score = "penalty at which the feature enters",
    )]
    pub struct ElasticNet {
        /// Share of the penalty that is on absolute values; the rest is on squares.
        l1_ratio: f64 = 0.5, Check::Between(0.01, 1.0);
        /// The penalty, instead of a number of features.
        penalty: Option<f64> = None, Check::Between(0.0, 100.0);
    }
}

impl Selector for ElasticNet {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn has_size(&self) -> bool {
        self.penalty.is_some()
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        let weights = vec![1.0; problem.units.len()];
        Penalties { problem, products: &products, weights, mix: self.l1_ratio, penalty: self.penalty }.ranking(run)
    }
}
