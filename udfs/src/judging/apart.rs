use crate::judging::folds::{Folds, Holding};
use crate::judging::metric::Criterion;
use crate::{Check, Error, Problem, Result, Run, options};

options! {
    /// Which rows judge.
    pub struct Apart {
        /// Hold out every row once, in so many folds.
        inner_folds: Option<usize> = None, Check::Between(2.0, 10000.0);
        /// Hold out this share of the rows, once, instead of folds. Or a table or subquery with the same columns: its rows judge.
        validation: Option<f64> = None, Check::Between(0.01, 0.99);
    }
}

impl Apart {
    /// Whether some rows are asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.inner_folds.is_some() || self.validation.is_some()
    }

    /// The rows, with those that judge set apart: those of a table given as `validation`, a share, or folds.
    pub(crate) fn folds(&self, problem: &Problem, otherwise: Holding, criterion: Criterion, run: &Run) -> Result<Folds> {
        if self.inner_folds.is_some() && (self.validation.is_some() || problem.held_out.is_some()) {
            return Err(Error::call("give `inner_folds` or `validation`, not both: each says which rows are held out"));
        }
        if let Some(judges) = &problem.held_out {
            if judges.rows() == 0 {
                return Err(Error::data("the table given as `validation` has no rows with a label"));
            }
            return Folds::judged_by(problem, judges, criterion, run);
        }
        let holding = match (self.validation, self.inner_folds) {
            (Some(share), _) => Holding::Share(share),
            (None, Some(folds)) => Holding::Folds(folds),
            (None, None) => otherwise,
        };
        Folds::new(problem, holding, criterion, run)
    }
}
