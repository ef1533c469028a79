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
        let mut descent = Descent::new(self.products, self.weights.clone(), self.mix, run)?;
        if let Some(penalty) = self.penalty {
            return at_penalty(problem, &mut descent, penalty, run, |point, ranking| self.fill(point, ranking));
        }
        let forced = problem.must_include.len();
        let is_penalized: Vec<bool> = self.weights.iter().map(|weight| *weight > 0.0).collect();
        let k = match problem.k {
            Some(k) => k,
            None => {
                let most = SIZES_MAX.min(self.products.rows as usize / 2).max(1);
                let (order, point) = path(&mut descent, &is_penalized, most, run)?;
                explain(problem, self.products, run, &in_order(problem, order, &point), None)?.choices.len()
            }
        };
        let mut descent = Descent::new(self.products, self.weights.clone(), self.mix, run)?;
        let (order, point) = path(&mut descent, &is_penalized, k.saturating_sub(forced), run)?;
        let mut ranking = explain(problem, self.products, run, &in_order(problem, order, &point), Some(k))?;
        self.fill(&point, &mut ranking);
        Ok(ranking)
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
