use crate::baselines::boosting::Boosting;
use crate::baselines::random_forest::RandomForest;
use crate::linear::elimination::{eliminate, eliminate_linear};
use crate::linear::products::Products;
use crate::linear::pursuit::{Pursuit, explain};
use crate::models::logistic;
use crate::{Check, Choice, Error, Label, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What predicts the label.
    pub enum Model {
        Linear = "linear",
        Logistic = "logistic",
        Forest = "forest",
        Boosting = "boosting",
    }
}

selector! {
    /// Recursive feature elimination: the weakest go first.
    ///
    /// Fits a model on all features, takes away the one that counts least in it, and goes on with the rest. The last to go is ranked first.
    ///
    /// What counts is the length that a feature's part of the prediction has: the coefficient of a feature of variance 1 in a linear model and, over all classes, in
    /// a logistic one; of trees it is the share of the gains. `k => 'auto'`: for 'linear' as many as the extended Bayesian information criterion asks for; otherwise those
    /// whose part was above the mean when they went.
    ///
    /// Cost: for 'linear' one pass over the table, then `features³` operations in all; otherwise a fit for each round. `step` takes several away in a round.
    ///
    /// Source: Guyon, Weston, Barnhill and Vapnik, 2002. Gene selection for cancer classification using support vector machines.
    #[selector(
        name = "rfe",
        aliases = [],
        labels = Any,
        score = "length of its part of the prediction when it went",
    )]
    pub struct Rfe {
        /// What predicts the label.
        model: Model = Model::Linear;
        /// Features that go in a round: below 1 a share of those left, from 1 on so many. NULL: 1, of trees a tenth of those left.
        step: Option<f64> = None, Check::Between(0.001, 1e9);
        /// Keeps the coefficients of 'logistic' small: ½ penalty ‖β‖² for each row.
        penalty: f64 = 0.01, Check::Between(1e-9, 1e6);
        /// Trees of a forest, rounds of boosting.
        trees: usize = 50, Check::Between(1.0, 100000.0);
    }
}

/// The share of the features that goes in a round where every round grows trees.
const STEP_OF_TREES: f64 = 0.1;

impl Selector for Rfe {
    fn reads(&self) -> Reads {
        if self.model == Model::Linear { Reads::Moments } else { Reads::Rows }
    }

    fn is_prefix(&self) -> bool {
        self.model == Model::Linear
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        match self.model {
            Model::Linear => self.linear(problem, run),
            Model::Logistic if problem.label == Label::Numbers => Err(Error::data(
                "model => 'logistic' predicts classes, and the label is a number; use model => 'linear', 'forest' or 'boosting'",
            )),
            _ => self.rows(problem, run),
        }
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        match option {
            "penalty" if self.model != Model::Logistic => Some("model => 'logistic'"),
            "trees" if matches!(self.model, Model::Linear | Model::Logistic) => Some("model => 'forest' or 'boosting'"),
            _ => None,
        }
    }
}

impl Rfe {
    fn linear(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        let step = self.step.unwrap_or(1.0);
        let mut order = eliminate_linear(problem, &products, step, run, |fit, unit| fit.length(unit))?;
        // What was told while features went has the rounding of all steps; a fit on those up to each feature has not.
        let mut pursuit = Pursuit::new(&products);
        let most = problem.k.unwrap_or(order.len());
        for (unit, score) in order.iter_mut().take(most) {
            run.check()?;
            let before = pursuit.columns.len();
            pursuit.take_unit(*unit);
            let all = pursuit.all_coefficients();
            *score = all.iter().flat_map(|beta| &beta[before..]).map(|beta| beta * beta).sum::<f64>().sqrt();
        }
        explain(problem, &products, run, &order, problem.k)
    }

    fn rows(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let step = self.step.unwrap_or(if self.model == Model::Logistic { 1.0 } else { STEP_OF_TREES });
        let can_be = |unit: &usize| problem.why_never(*unit).is_none();
        let order = eliminate(problem, (0..problem.units.len()).filter(can_be), step, run, |units, _| {
            let some = Problem { k: Some(units.len()), must_include: Vec::new(), ..problem.among(units) };
            let quiet = run.quiet();
            match self.model {
                Model::Forest => of_units(RandomForest { trees: self.trees, ..Default::default() }.select(&some, &quiet)?, units),
                Model::Boosting => of_units(Boosting { rounds: self.trees, ..Default::default() }.select(&some, &quiet)?, units),
                _ => by_logistic(&some, self.penalty, run),
            }
        })?;
        let forced = problem.must_include.len();
        let mean = order.iter().map(|(_, score)| score).sum::<f64>() / order.len().max(1) as f64;
        let auto = order.iter().enumerate().filter(|(at, (_, score))| *at < forced || *score > mean).count();
        let chosen = order.iter().take(problem.k.unwrap_or(auto)).enumerate();
        let choices = chosen.map(|(at, (unit, score))| Choice::new(at + 1, *unit, *score)).collect();
        Ok(Ranking { choices, ..Ranking::default() })
    }
}

/// The scores of a ranking of some units, in their order.
fn of_units(ranking: Ranking, units: &[usize]) -> Result<Vec<f64>> {
    let mut scores = vec![0.0; units.len()];
    ranking.choices.iter().for_each(|choice| scores[choice.unit] = choice.score);
    Ok(scores)
}

/// For each unit, how far its part moves the log odds of the classes.
fn by_logistic(problem: &Problem, penalty: f64, run: &Run) -> Result<Vec<f64>> {
    let (design, outputs, beta) = logistic::learn(problem, Some(penalty), run)?;
    let (rows, width) = (problem.rows(), design.columns() + 1);
    let _memory = run.reserve(rows.rows() * size_of::<f64>())?;
    let place = |column: &usize| design.inputs.columns.iter().position(|own| own == column);
    let of_unit = |columns: &[usize]| -> Result<f64> {
        let mut energy = 0.0;
        for output in 0..outputs {
            run.check()?;
            let mut part = vec![0.0; rows.rows()];
            for (column, at) in columns.iter().filter_map(|column| Some((*column, place(column)?))) {
                let factor = beta[output * width + 1 + at] * design.inputs.factors[at];
                part.iter_mut().zip(&rows.columns[column]).for_each(|(part, x)| *part += factor * x);
            }
            let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
            energy += part.iter().enumerate().map(|(row, part)| weight(row) * part * part).sum::<f64>() / rows.weight();
        }
        Ok(energy.sqrt())
    };
    problem.units.iter().map(|unit| of_unit(&unit.columns)).collect()
}
