use crate::math::argmax;
use crate::math::products::Products;
use crate::math::pursuit::{Pursuit, pursue};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

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
    /// Orthogonal matching pursuit.
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
    /// that lowers the residual most. Classes are predicted as one 0/1 column each, jointly; a text column or a group
    /// counts with the length of the residual's projection on all its columns.
    ///
    /// Cost: one pass over the table, then `features × k` operations a choice.
    ///
    /// Source: Pati, Rezaiifar and Krishnaprasad, 1993. Orthogonal matching pursuit. For 'ols': Chen, Billings and
    /// Luo, 1989. Orthogonal least squares.
    #[selector(
        name = "omp",
        aliases = [],
        labels = Any,
        score = "correlation with the residual, of a label of length 1",
    )]
    pub struct Omp {
        /// 'omp' takes the feature most correlated with the residual, 'ols' the one that lowers the residual most.
        criterion: Criterion = Criterion::Omp;
        /// Stop when the unexplained share of the label's variance is no more than this.
        tolerance: f64 = 0.0, Check::Between(0.0, 1.0);
    }
}

impl Selector for Omp {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem);
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
