//! Rankings by penalised least squares: what its selectors share.

use crate::linear::descent::Descent;
use crate::linear::path::{Penalized, Point, path};
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::{Choice, Problem, Ranking, Result, Run};

/// Units that a path goes through when it is to say how many there should be.
const SIZES_MAX: usize = 100;

/// Which units come in, as the penalty on them is lowered or at one that is given, and their coefficients there.
pub(crate) struct Penalties<'a> {
    pub problem: &'a Problem,
    pub products: &'a Products,
    /// How heavily each unit is penalised. What must be included is not.
    pub weights: Vec<f64>,
    /// The share of the penalty that is on lengths; the rest is on their squares.
    pub mix: f64,
    /// The penalty, if it is given.
    pub penalty: Option<f64>,
}

impl Penalties<'_> {
    pub fn ranking(mut self, run: &Run) -> Result<Ranking> {
        run.check()?;
        let problem = self.problem;
        problem.must_include.iter().for_each(|unit| self.weights[*unit] = 0.0);
        let asked = Asked { problem, penalty: self.penalty, rows: self.products.rows, run };
        asked.ranking(
            || Descent::new(self.products, self.weights.clone(), self.mix, run),
            |order, k| explain(problem, self.products, run, order, k),
            |point, ranking| self.fill(point, ranking),
        )
    }

    /// The penalised coefficients, of single numbers in the input's units.
    fn fill(&self, point: &Point, ranking: &mut Ranking) {
        for choice in ranking.choices.iter_mut().filter(|choice| self.problem.units[choice.unit].is_number) {
            let column = self.products.units[choice.unit].start;
            if self.products.labels == 1 {
                choice.coefficient = Some(self.products.in_input_units(column, point.coefficients[column]));
            }
        }
    }
}

/// What is asked of a model under a penalty: so many units, or those at a penalty.
pub(crate) struct Asked<'a> {
    pub problem: &'a Problem,
    /// The penalty, if it is given.
    pub penalty: Option<f64>,
    /// How many rows there are to learn from.
    pub rows: f64,
    pub run: &'a Run,
}

impl Asked<'_> {
    /// The units of a model that `begin` makes, in the order in which they come in as the penalty is lowered, or by their lengths at the one that is given. `explained` says what an order of units explains,
    /// or, without a number of them, how many there should be.
    pub fn ranking<M: Penalized>(
        &self,
        begin: impl Fn() -> Result<M>,
        explained: impl Fn(&[(usize, f64)], Option<usize>) -> Result<Ranking>,
        fill: impl FnOnce(&Point, &mut Ranking),
    ) -> Result<Ranking> {
        let Self { problem, run, .. } = self;
        let mut model = begin()?;
        if let Some(penalty) = self.penalty {
            return at_penalty(problem, &mut model, penalty, run, fill);
        }
        let is_penalized: Vec<bool> = (0..problem.units.len()).map(|unit| !problem.must_include.contains(&unit)).collect();
        let k = match problem.k {
            Some(k) => k,
            None => {
                let most = SIZES_MAX.min(self.rows as usize / 2).max(1);
                let (order, point) = path(&mut model, &is_penalized, most, run)?;
                model = begin()?;
                explained(&in_order(problem, order, &point), None)?.choices.len()
            }
        };
        let (order, point) = path(&mut model, &is_penalized, k.saturating_sub(problem.must_include.len()), run)?;
        let mut ranking = explained(&in_order(problem, order, &point), Some(k))?;
        fill(&point, &mut ranking);
        Ok(ranking)
    }
}

/// What must be included, then the units that are in the model at the end, in the order in which they came.
pub(crate) fn in_order(problem: &Problem, order: Vec<(usize, f64)>, point: &Point) -> Vec<(usize, f64)> {
    let forced = problem.must_include.iter().map(|unit| (*unit, point.lengths[*unit]));
    forced.chain(order.into_iter().filter(|(unit, _)| point.lengths[*unit] > 0.0)).collect()
}

/// The units that a penalty leaves in the model, those with the longest coefficients first.
pub(crate) fn at_penalty(
    problem: &Problem,
    model: &mut impl Penalized,
    penalty: f64,
    run: &Run,
    fill: impl FnOnce(&Point, &mut Ranking),
) -> Result<Ranking> {
    model.descend(penalty, run)?;
    let point = Point { penalty, lengths: model.lengths(), coefficients: model.coefficients() };
    let free = |unit: &usize| point.lengths[*unit] > 0.0 && !problem.must_include.contains(unit);
    let mut order: Vec<usize> = (0..point.lengths.len()).filter(free).collect();
    order.sort_by(|a, b| point.lengths[*b].total_cmp(&point.lengths[*a]).then(a.cmp(b)));
    let all = problem.must_include.iter().copied().chain(order);
    let chosen = all.take(problem.k.unwrap_or(usize::MAX)).enumerate();
    let choices = chosen.map(|(at, unit)| Choice::new(at + 1, unit, point.lengths[unit])).collect();
    let mut ranking = Ranking { choices, ..Ranking::default() };
    fill(&point, &mut ranking);
    Ok(ranking)
}
