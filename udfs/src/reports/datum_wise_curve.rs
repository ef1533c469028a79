use crate::contract::report::{Kind, Report, Values};
use crate::datum_wise::{Asking, Policy};
use crate::{Check, Error, Problem, Result, Rows, Run, Split, report};

report! {
    /// Accuracy against sparsity of a datum-wise sparse classifier.
    ///
    /// Trains a policy for each price of `lambda`, decides rows that it has not seen, and tells how often it was right, how many features it asked for on
    /// average, what share it left unasked (`sparsity`) and what it paid. `note` tells when a price is so high that no row asks for anything.
    ///
    /// Judged on the table given as `test`; without one, on a held-out share of the rows.
    ///
    /// Source: Dulac-Arnold, Denoyer, Preux and Gallinari, 2012. Sequential approaches for learning datum-wise sparse representations.
    #[report(
        name = "datum_wise_curve",
        aliases = [],
        labels = Classes,
        table = ("test", "The rows to judge by, with the same columns."),
    )]
    pub struct DatumWiseCurve {
        /// What asking for a feature costs, where a mistake costs 1: a list, a policy for each.
        lambda: Vec<f64> = vec![0.0, 0.001, 0.01, 0.03, 0.1, 0.2], Check::AtLeast(0.0);
        /// Share of the rows to judge by, where there is no table `test`; NULL: 0.3.
        validation: Option<f64> = None, Check::Between(0.01, 0.99);
        ..asking: Asking;
    }
}

/// The share of the rows that judge, unless another is asked for.
const VALIDATION: f64 = 0.3;

impl Report for DatumWiseCurve {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        let numbers = ["lambda", "accuracy", "mean_features", "sparsity", "mean_cost"].map(|name| (name, Kind::Number));
        numbers.into_iter().chain([("note", Kind::Text)]).collect()
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        self.asking.unused(option)
    }

    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let rows = problem.rows();
        if problem.held_out.is_some() && self.validation.is_some() {
            return Err(Error::call("`validation` and `test` both say what rows to judge by; leave one of them out"));
        }
        let parts;
        let (train, test) = match &problem.held_out {
            Some(test) => (rows, &**test),
            None => {
                parts = self.parts(rows, run);
                (&parts.0, &parts.1)
            }
        };
        if test.rows() == 0 {
            return Err(Error::data(match &problem.held_out {
                Some(_) => "the table given as `test` has no rows with a label; give one that has".to_string(),
                None => format!("{} rows are too few to hold some out; give a table as `test`", rows.rows()),
            }));
        }
        let points: Vec<Point> = self
            .lambda
            .iter()
            .map(|lambda| {
                let policy = self.asking.learn_on(*lambda, problem, train, run)?;
                Point::of(&policy, problem, test, run)
            })
            .collect::<Result<_>>()?;
        let numbers = |of: fn(&Point) -> f64| Values::numbers(points.iter().map(of));
        let note = |point: &Point| {
            (point.features == 0.0)
                .then(|| "no row asks for any feature: each is given the same class; lower the price".to_string())
        };
        Ok(vec![
            Values::numbers(self.lambda.clone()),
            numbers(|point| point.accuracy),
            numbers(|point| point.features),
            numbers(|point| point.sparsity),
            numbers(|point| point.cost),
            Values::Text(points.iter().map(note).collect()),
        ])
    }
}

impl DatumWiseCurve {
    /// Rows to learn from, and rows to judge by.
    fn parts(&self, rows: &Rows, run: &Run) -> (Rows, Rows) {
        let split = Split::fraction(rows, self.validation.unwrap_or(VALIDATION), run);
        (rows.take(&split.train), rows.take(&split.valid))
    }
}

/// One policy's place on the curve.
struct Point {
    accuracy: f64,
    features: f64,
    sparsity: f64,
    cost: f64,
}

impl Point {
    fn of(policy: &Policy, problem: &Problem, rows: &Rows, run: &Run) -> Result<Self> {
        let (mut total, mut right, mut features, mut cost) = (0.0, 0.0, 0.0, 0.0);
        policy.decide_rows(problem, rows, run, |row, decision| {
            let weight = rows.weights.get(row).copied().unwrap_or(1.0);
            total += weight;
            right += weight * f64::from(decision.class as f64 == rows.targets[row]);
            features += weight * decision.units.len() as f64;
            cost += weight * decision.cost;
        })?;
        let features = features / total;
        let sparsity = 1.0 - features / problem.units.len() as f64;
        Ok(Self { accuracy: right / total, features, sparsity, cost: cost / total })
    }
}
