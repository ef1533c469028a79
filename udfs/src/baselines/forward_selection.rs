use crate::judging::apart::Apart;
use crate::judging::folds::Holding;
use crate::judging::metric::Criterion;
use crate::kernels::argmax;
use crate::linear::products::Products;
use crate::linear::pursuit::pursue;
use crate::predictors::greedy::Pursuit;
use crate::predictors::refit::Refit;
use crate::predictors::ssfn::Ssfn;
use crate::predictors::wrapped::{Wrapped, Wrapping};
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Forward selection: what helps a model most, one by one.
    ///
    /// Begins with no feature and adds, again and again, the one with which the model does best.
    ///
    /// `model => 'linear'` is judged by R² on the rows that it learns from, which needs nothing but moments; `k => 'auto'` takes as many as the extended Bayesian
    /// information criterion asks for. With `inner_folds` or `validation`, and for every other model, it is judged by the squared error on rows held out (by default in five folds), and
    /// `k => 'auto'` ends when that no longer falls.
    ///
    /// Cost: for 'linear' one pass over the table, then `features × k` operations a choice; otherwise `features × folds` fits a choice.
    ///
    /// Source: Efroymson, 1960. Multiple regression analysis; Whitney, 1971. A direct method of nonparametric measurement selection.
    #[selector(
        name = "forward_selection",
        aliases = [],
        labels = Any,
        score = "share of the label's variance that it adds; of rows held out, its lead over the runner-up",
        table = ("validation", "The rows to judge by, with the same columns."),
    )]
    pub struct ForwardSelection {
        /// What predicts the label.
        model: Wrapped = Wrapped::Linear;
        ..apart: Apart;
        ..wrapping: Wrapping;
    }
}

impl Selector for ForwardSelection {
    fn reads(&self) -> Reads {
        if self.is_plain() { Reads::Moments } else { Reads::Rows }
    }

    fn is_prefix(&self) -> bool {
        self.is_plain()
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        self.model.check(problem)?;
        if self.is_plain() && problem.held_out.is_none() {
            let products = Products::new(problem, run)?;
            let mut ranking = pursue(
                problem,
                &products,
                run,
                |pursuit, unit| pursuit.projection(unit),
                |pursuit, open| {
                    let best = argmax(open.iter().map(|unit| Some(pursuit.projection(*unit))));
                    Ok(best.map(|(at, score)| (open[at], score)))
                },
            )?;
            ranking.choices.iter_mut().for_each(|choice| choice.score = choice.gain.unwrap_or(choice.score));
            return Ok(ranking);
        }
        let folds = self.apart.folds(problem, Holding::five(problem), Criterion::Squared, run)?;
        let limit = problem.k.unwrap_or(problem.units.len());
        let predictor: Box<dyn crate::predictors::Predictor<'_>> = match self.model {
            Wrapped::Linear => Box::new(Ssfn::linear(&folds, run)),
            other => Box::new(Refit::new(&folds, self.wrapping.learner(other, &folds, run)?)),
        };
        let mut pursuit = Pursuit::new(problem, &folds, vec![(String::new(), predictor)], limit, run);
        for unit in &problem.must_include {
            let step = pursuit.fit(*unit)?;
            pursuit.keep(*unit, step, None);
        }
        while !pursuit.is_full() {
            pursuit.tell()?;
            let Some((unit, lead)) = pursuit.best(1)? else { break };
            let step = pursuit.fit(unit)?;
            if problem.k.is_none() && !pursuit.suffices(unit, &step, f64::MIN_POSITIVE)? {
                break;
            }
            pursuit.keep(unit, step, lead);
        }
        Ok(Ranking { choices: pursuit.choices(), ..Ranking::default() })
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        self.model.unused(option)
    }
}

impl ForwardSelection {
    /// Whether moments tell all that is asked for.
    fn is_plain(&self) -> bool {
        self.model == Wrapped::Linear && !self.apart.is_asked()
    }
}
