use crate::linear::lars::{Change, Knot, path};
use crate::linear::penalized::Penalties;
use crate::linear::products::Products;
use crate::linear::pursuit::{PATIENCE, Pursuit, explain};
use crate::{Check, Choice, Error, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// LASSO, in the order of its path.
    ///
    /// Lowers the penalty of `min ½‖y − Xβ‖² + λ Σ |β_j|` from where nothing is chosen to where `k` features are: least angle
    /// regression with the LASSO's drops. A feature may leave the path again; its rank is that of its last entry.
    ///
    /// `coefficient` is the LASSO's own, shrunken one, at the penalty where one feature more would enter; `train_score` that of
    /// least squares on the features ranked so far. `path => true` returns the whole path instead: one row for each step
    /// and active feature, `rank` the step, `score` the penalty at its end, `reason` what happened to the feature in it.
    ///
    /// `penalty => 0.05` asks for the LASSO at that penalty instead of for a number of features: `score` is then the length of a feature's coefficient, where label and features have length 1, and the penalty is on the same
    /// scale as the `score` of the path.
    ///
    /// A text column or a group is in as soon as one of its columns is. With more than two classes, or with `penalty`, the penalty is on the length of all coefficients of a feature, `λ Σ ‖B_j‖`: one feature comes in for all classes at once.
    ///
    /// Cost: one pass over the table, then `features × k` operations a step.
    ///
    /// Source: Efron, Hastie, Johnstone and Tibshirani, 2004. Least angle regression.
    #[selector(
        name = "lasso",
        aliases = [],
        labels = Any,
        score = "penalty at which the feature enters",
    )]
    pub struct Lasso {
        /// Return every step of the path, not only its end.
        path: bool = false;
        /// The penalty, instead of a number of features.
        penalty: Option<f64> = None, Check::Between(0.0, 1.0);
    }
}

impl Selector for Lasso {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn has_size(&self) -> bool {
        self.penalty.is_some()
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        if products.labels > 1 || self.penalty.is_some() {
            if self.path {
                let why = if self.penalty.is_some() { "leave out `penalty`" } else { "take numbers or two classes" };
                return Err(Error::call(format!("`path` follows one coefficient a feature through all penalties; {why}")));
            }
            let weights = vec![1.0; problem.units.len()];
            return Penalties { problem, products: &products, weights, mix: 1.0, penalty: self.penalty }.ranking(run);
        }
        let mut fixed = Pursuit::new(&products);
        problem.must_include.iter().for_each(|unit| fixed.take_unit(*unit));
        let k = match problem.k {
            Some(k) => k,
            None => Path::new(problem, &products, &fixed, run, usize::MAX)?.best_size(),
        };
        let path = Path::new(problem, &products, &fixed, run, k)?;
        if self.path {
            return Ok(path.steps());
        }
        let mut ranking = explain(problem, &products, run, &path.order(), Some(k))?;
        let last = path.coefficients(path.knots.last());
        for choice in &mut ranking.choices {
            choice.coefficient = path.coefficient(&last, choice.unit);
        }
        Ok(ranking)
    }
}

/// The path up to the knot at which one unit more than wanted would enter.
struct Path<'a> {
    problem: &'a Problem,
    products: &'a Products,
    fixed: &'a Pursuit<'a>,
    knots: Vec<Knot>,
}

impl<'a> Path<'a> {
    fn new(problem: &'a Problem, products: &'a Products, fixed: &'a Pursuit<'a>, run: &Run, k: usize) -> Result<Self> {
        let free = k - problem.must_include.len().min(k);
        let mut active: Vec<usize> = Vec::new();
        let knots = path(fixed, run, |knot| match knot.change {
            Some(Change::Enters(column)) => {
                let unit = products.unit_of[column];
                if active.iter().all(|c| products.unit_of[*c] != unit) && units(products, &active).len() >= free {
                    return true;
                }
                active.push(column);
                false
            }
            Some(Change::Leaves(column)) => {
                active.retain(|c| *c != column);
                false
            }
            None => false,
        })?;
        Ok(Self { problem, products, fixed, knots })
    }

    /// How many units the best active set of the path has, by the information criterion of least squares on it.
    fn best_size(&self) -> usize {
        let mut best = (Pursuit::new(self.products).ebic_of_columns(), 0);
        let mut active: Vec<usize> = Vec::new();
        for knot in &self.knots {
            match knot.change {
                Some(Change::Enters(column)) => active.push(column),
                Some(Change::Leaves(column)) => active.retain(|c| *c != column),
                None => {}
            }
            let mut fit = Pursuit::new(self.products);
            self.fixed.columns.iter().chain(&active).for_each(|column| {
                if fit.is_open(*column) {
                    fit.take(*column);
                }
            });
            let size = self.problem.must_include.len() + units(self.products, &active).len();
            if fit.ebic_of_columns() < best.0 {
                best = (fit.ebic_of_columns(), size);
            }
            if size >= best.1 + PATIENCE || fit.columns.len() as f64 + 2.0 >= self.products.rows {
                break;
            }
        }
        best.1.max(self.problem.must_include.len())
    }

    /// The units of the final active set by their last entry, with the penalty there; the forced ones before them.
    fn order(&self) -> Vec<(usize, f64)> {
        let mut entered: Vec<(usize, usize, f64)> = Vec::new();
        for knot in self.knots.iter().take(self.knots.len().saturating_sub(1)) {
            match knot.change {
                Some(Change::Enters(column)) => entered.push((column, self.products.unit_of[column], knot.lambda)),
                Some(Change::Leaves(column)) => entered.retain(|(c, ..)| *c != column),
                None => {}
            }
        }
        let forced = self.problem.must_include.iter().filter(|unit| !self.products.units[**unit].is_empty());
        let mut order: Vec<(usize, f64)> = forced.map(|unit| (*unit, Pursuit::new(self.products).correlation(*unit))).collect();
        for (_, unit, lambda) in entered {
            if order.iter().all(|(known, _)| *known != unit) {
                order.push((unit, lambda));
            }
        }
        order
    }

    /// Coefficients at a knot in the input's units, of all columns: (column, coefficient).
    fn coefficients(&self, knot: Option<&Knot>) -> Vec<(usize, f64)> {
        let free = knot.map_or(Vec::new(), |knot| knot.coefficients.clone());
        let fixed = self.fixed.columns.iter().copied().zip(self.fixed.coefficients(&free));
        fixed.chain(free.iter().copied()).map(|(column, beta)| (column, self.products.in_input_units(column, beta))).collect()
    }

    fn coefficient(&self, coefficients: &[(usize, f64)], unit: usize) -> Option<f64> {
        let of_unit = coefficients.iter().find(|(column, _)| self.products.unit_of[*column] == unit);
        of_unit.filter(|_| self.problem.units[unit].is_number).map(|(_, coefficient)| *coefficient)
    }

    /// One choice for each step and active unit.
    fn steps(&self) -> Ranking {
        let mut ranking = Ranking::default();
        for (step, pair) in self.knots.windows(2).enumerate() {
            let coefficients = self.coefficients(Some(&pair[1]));
            let columns: Vec<usize> = coefficients.iter().map(|(column, _)| *column).collect();
            for unit in units(self.products, &columns) {
                let mut choice = Choice::new(step + 1, unit, pair[1].lambda);
                choice.coefficient = self.coefficient(&coefficients, unit);
                let is = |change: Option<Change>, kind: fn(usize) -> Change| {
                    columns.iter().any(|c| self.products.unit_of[*c] == unit && change == Some(kind(*c)))
                };
                choice.reason = if is(pair[0].change, Change::Enters) {
                    Some("enters".to_string())
                } else if is(pair[1].change, Change::Leaves) {
                    Some("leaves".to_string())
                } else {
                    None
                };
                ranking.choices.push(choice);
            }
        }
        ranking
    }
}

/// The units of some columns, each once, in order.
fn units(products: &Products, columns: &[usize]) -> Vec<usize> {
    let mut units: Vec<usize> = Vec::new();
    for column in columns {
        let unit = products.unit_of[*column];
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::options::Count;
    use crate::testing::{Table, planted};

    /// Copies of features enter and are turned away again; they must not count.
    #[test]
    fn copies_do_not_use_up_k() {
        let (table, label) = planted(120, 12, &[0, 3, 5, 7, 8, 11], 1.0, 3);
        let plain = Lasso::default().select(&table.clone().k(9).problem(&label), &Run::default()).unwrap();
        let copied = (0..12).fold(table.clone(), |copied, j| {
            let copy: Vec<f64> = table.column(j).iter().map(|x| 0.1 * x - 0.3).collect();
            copied.numbers(&format!("copy{j}"), &copy)
        });
        let with_copies = Lasso::default().select(&copied.k(9).problem(&label), &Run::default()).unwrap();
        assert_eq!(plain.units(), with_copies.units());
        assert!(with_copies.choices.iter().all(|choice| choice.coefficient.unwrap().abs() > 1e-6));
    }

    /// `k => 'auto'` is the answer that naming its size would give.
    #[test]
    fn auto_is_the_path_of_its_size() {
        for seed in 0..20 {
            let (table, label) = planted(80, 15, &[1, 2, 9], 2.0, seed);
            let mut auto = table.clone();
            auto.common.k = Count::Auto;
            let auto = Lasso::default().select(&auto.problem(&label), &Run::default()).unwrap();
            if !auto.choices.is_empty() {
                let named = Lasso::default().select(&table.k(auto.choices.len()).problem(&label), &Run::default()).unwrap();
                assert_eq!(auto, named, "problem {seed}");
            }
        }
    }

    /// With nothing left to explain the path ends.
    #[test]
    fn an_exact_fit_ends_the_path() {
        let table = Table::random(50, 6, 4);
        let label: Vec<f64> = (0..50).map(|row| 2.0 * table.column(1)[row] - 7.0 * table.column(4)[row]).collect();
        let mut chosen = Lasso::default().select(&table.k(6).problem(&label), &Run::default()).unwrap().units();
        chosen.sort_unstable();
        assert_eq!(chosen, [1, 4]);
    }
}
