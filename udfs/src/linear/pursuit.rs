use crate::kernels::dot;
use crate::linear::chance::stand_in;
use crate::linear::products::{INDEPENDENT, Products};
use crate::reading::problem::Problem;
use crate::{Choice, Ranking, Result, Run};

/// Least squares on a growing set of columns, with what every other column still could add: a Cholesky
/// factor that gains one row for each column taken in.
///
/// With `S` the columns so far and `P` the projection off their span it keeps, for every column `j`, the correlation
/// `xⱼ · P y` with the residual and the energy `‖P xⱼ‖²` that is left. Taking in a column costs one product with all
/// others and one sweep over the factor: no system is ever solved.
#[derive(Clone)]
pub struct Pursuit<'a> {
    /// What it pursues.
    pub products: &'a Products,
    /// `correlations[j * labels + q]` = xⱼ · P y_q
    pub correlations: Vec<f64>,
    /// ‖P xⱼ‖²
    pub energies: Vec<f64>,
    /// ‖P y‖², where the label has length 1
    pub unexplained: f64,
    /// The same if each unit had explained no more than its stand-in: what is not due to a unit's many columns.
    left: f64,
    /// The columns taken in, and of how many units they are.
    pub columns: Vec<usize>,
    units: usize,
    /// Row s: the s-th orthonormal direction times every column.
    factor: Vec<Vec<f64>>,
    /// The s-th direction times the label's columns.
    projections: Vec<Vec<f64>>,
}

impl<'a> Pursuit<'a> {
    /// With no column taken in.
    pub fn new(products: &'a Products) -> Self {
        Self {
            products,
            correlations: products.correlations.clone(),
            energies: products.energies.clone(),
            unexplained: 1.0,
            left: 1.0,
            columns: Vec::new(),
            units: 0,
            factor: Vec::new(),
            projections: Vec::new(),
        }
    }

    /// Whether a column still adds a direction of its own.
    pub fn is_open(&self, column: usize) -> bool {
        self.energies[column] > INDEPENDENT * self.products.energies[column]
    }

    /// Whether a unit still adds anything.
    pub fn unit_is_open(&self, unit: usize) -> bool {
        self.products.units[unit].clone().any(|column| self.is_open(column))
    }

    /// ‖xⱼᵀ P Y‖² of one column.
    pub fn squared_correlation(&self, column: usize) -> f64 {
        let q = self.products.labels;
        let c = &self.correlations[column * q..(column + 1) * q];
        dot(c, c)
    }

    /// Length of the unit's correlations with the residual, whatever the number of its columns.
    pub fn length(&self, unit: usize) -> f64 {
        self.products.units[unit].clone().map(|column| self.squared_correlation(column)).sum::<f64>().sqrt()
    }

    /// The correlation with the residual of a single column; of a wider unit that of its stand-in.
    pub fn correlation(&self, unit: usize) -> f64 {
        let columns = self.products.units[unit].clone();
        let length = self.length(unit);
        if columns.len() == 1 {
            return length;
        }
        // What a direction has left is what it can explain by chance.
        self.beyond_chance(length * length, columns.map(|column| self.energies[column]).sum()).sqrt()
    }

    /// Length of the residual's projection on what the unit adds: the square root of what taking it in explains; of a wider unit, of what its
    /// stand-in does.
    pub fn projection(&self, unit: usize) -> f64 {
        let columns = self.products.units[unit].clone();
        if columns.len() == 1 {
            if !self.is_open(columns.start) {
                return 0.0;
            }
            return (self.squared_correlation(columns.start) / self.energies[columns.start]).sqrt();
        }
        let mut trial = Pursuit { projections: Vec::new(), ..self.clone() };
        trial.take_unit(unit);
        let columns = trial.columns.len() - self.columns.len();
        self.beyond_chance((self.unexplained - trial.unexplained).max(0.0), columns as f64).sqrt()
    }

    /// What of the label the stand-in explains for so many columns that explain a part of what is left.
    fn beyond_chance(&self, part: f64, columns: f64) -> f64 {
        if self.unexplained <= 0.0 {
            return 0.0;
        }
        let (free, dimensions) = self.chances(self.columns.len());
        stand_in(part / self.unexplained, columns, free, dimensions) * self.unexplained
    }

    /// Degrees of freedom when so many columns are taken in, and dimensions of the label.
    fn chances(&self, columns: usize) -> (f64, f64) {
        (self.products.rows - 1.0 - columns as f64, (self.products.labels.max(2) - 1) as f64)
    }

    /// The inner product of two columns off the span of those taken in.
    pub fn residual_inner(&self, i: usize, j: usize) -> f64 {
        self.products.inner(i, j) - self.factor.iter().map(|row| row[i] * row[j]).sum::<f64>()
    }

    /// Takes in a column that is open.
    pub fn take(&mut self, column: usize) {
        let length = self.energies[column].sqrt();
        let mut direction = self.products.cross(column);
        for earlier in &self.factor {
            let overlap = earlier[column];
            if overlap == 0.0 {
                continue;
            }
            direction.iter_mut().zip(earlier).for_each(|(d, e)| *d -= overlap * e);
        }
        direction.iter_mut().for_each(|d| *d /= length);
        let q = self.products.labels;
        let projection: Vec<f64> = self.correlations[column * q..(column + 1) * q].iter().map(|c| c / length).collect();
        for (j, d) in direction.iter().enumerate() {
            self.energies[j] -= d * d;
            for (c, z) in self.correlations[j * q..(j + 1) * q].iter_mut().zip(&projection) {
                *c -= d * z;
            }
        }
        // Exactly nothing is left of the column itself; rounding must not say otherwise.
        self.energies[column] = 0.0;
        self.correlations[column * q..(column + 1) * q].fill(0.0);
        self.unexplained = (self.unexplained - dot(&projection, &projection)).max(0.0);
        self.columns.push(column);
        self.factor.push(direction);
        self.projections.push(projection);
    }

    /// Takes in what a unit adds: its open columns, one after the other.
    pub fn take_unit(&mut self, unit: usize) {
        let (before, columns) = (self.unexplained, self.columns.len());
        for column in self.products.units[unit].clone() {
            // Of a unit of thousands of columns nothing is worth having when nobody waits for it any more.
            if self.is_open(column) && !self.products.is_cancelled() {
                self.take(column);
            }
        }
        let added = self.columns.len() - columns;
        self.units += usize::from(added > 0);
        self.left = if self.columns.len() == self.units {
            self.unexplained
        } else {
            let (free, dimensions) = self.chances(columns);
            let share = if before > 0.0 { (before - self.unexplained) / before } else { 0.0 };
            self.left * (1.0 - stand_in(share, added as f64, free, dimensions))
        };
    }

    /// Xᵀ P xⱼ
    pub fn residual_cross(&self, j: usize) -> Vec<f64> {
        let mut cross = self.products.cross(j);
        for row in &self.factor {
            let overlap = row[j];
            cross.iter_mut().zip(row).for_each(|(c, r)| *c -= overlap * r);
        }
        cross
    }

    /// Nothing is left of the label but rounding.
    fn is_solved(&self) -> bool {
        self.unexplained <= f64::EPSILON
    }

    /// Least-squares coefficients of the columns taken in, for a label of one column, when other columns have the
    /// coefficients `others`: R β = z − R_others β_others, from below.
    pub fn coefficients(&self, others: &[(usize, f64)]) -> Vec<f64> {
        self.solved(|row, z| z[0] - others.iter().map(|(j, beta)| row[*j] * beta).sum::<f64>())
    }

    /// Least-squares coefficients of the columns taken in, for each column of the label.
    pub fn all_coefficients(&self) -> Vec<Vec<f64>> {
        (0..self.products.labels).map(|q| self.solved(|_, z| z[q])).collect()
    }

    /// R β = z, from below.
    fn solved(&self, z: impl Fn(&Vec<f64>, &Vec<f64>) -> f64) -> Vec<f64> {
        let k = self.columns.len();
        let mut beta: Vec<f64> = self.factor.iter().zip(&self.projections).map(|(row, projection)| z(row, projection)).collect();
        for s in (0..k).rev() {
            for t in s + 1..k {
                beta[s] -= self.factor[s][self.columns[t]] * beta[t];
            }
            beta[s] /= self.factor[s][self.columns[s]];
        }
        beta
    }

    /// The unit taken in that a closed column leans on most.
    pub fn leans_on(&self, column: usize) -> Option<usize> {
        let share = |(s, row): (usize, &Vec<f64>)| (row[column].abs(), std::cmp::Reverse(s));
        let (_, std::cmp::Reverse(s)) =
            self.factor.iter().enumerate().map(share).max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
        Some(self.products.unit_of[self.columns[s]])
    }

    /// The extended Bayesian information criterion of Chen and Chen (2008), with the γ that Luo and Chen (2014) use
    /// to stop sequential LASSO. Smaller is better. A wider unit counts as its stand-in does, with one parameter and what that explains.
    pub fn ebic(&self) -> f64 {
        let units = self.products.units.iter().filter(|columns| !columns.is_empty()).count();
        ebic(self.products.rows, self.left, units, self.units)
    }

    /// The same of columns that were taken in one by one, whatever units they are of.
    pub fn ebic_of_columns(&self) -> f64 {
        ebic(self.products.rows, self.unexplained, self.products.columns(), self.columns.len())
    }
}

/// Of a model with `chosen` of so many candidates.
fn ebic(n: f64, unexplained: f64, candidates: usize, chosen: usize) -> f64 {
    let (d, s) = (candidates as f64, chosen as f64);
    let gamma = if d > 1.0 { (1.0 - n.ln() / (2.0 * d.ln())).max(0.0) } else { 0.0 };
    let choose: f64 = (0..chosen).map(|i| ((d - i as f64) / (i as f64 + 1.0)).ln()).sum();
    n * (unexplained / n).max(1e-300).ln() + s * n.ln() + 2.0 * gamma * choose
}

/// Chooses how many of a sequence of units are worth having.
struct Auto {
    best: f64,
    size: usize,
}

/// Units without an improvement of the criterion after which `k => 'auto'` looks no further.
pub(crate) const PATIENCE: usize = 25;

impl Auto {
    fn new(k: Option<usize>, pursuit: &Pursuit<'_>) -> Option<Self> {
        k.is_none().then(|| Self { best: pursuit.ebic(), size: 0 })
    }

    /// Judges the set after another unit; `false` when looking further is pointless.
    fn goes_on(&mut self, pursuit: &Pursuit<'_>, size: usize, is_forced: bool) -> bool {
        let criterion = pursuit.ebic();
        if criterion < self.best || is_forced {
            (self.best, self.size) = (criterion, size);
        }
        // With as many columns as rows any label is explained, and the criterion means nothing.
        size < self.size + PATIENCE && pursuit.columns.len() as f64 + 2.0 < pursuit.products.rows
    }
}

/// What every greedy selector does around its own rule: take in the units that must be included, then ask `next`
/// for the unit to choose and its score until there are `k`, or nothing is left to explain, or `next` has none.
pub fn pursue(
    problem: &Problem,
    products: &Products,
    run: &Run,
    score_of: impl Fn(&Pursuit<'_>, usize) -> f64,
    mut next: impl FnMut(&Pursuit<'_>, &[usize]) -> Result<Option<(usize, f64)>>,
) -> Result<Ranking> {
    let mut pursuit = Pursuit::new(products);
    let mut ranking = Ranking::default();
    let mut open: Vec<usize> = (0..problem.units.len()).filter(|unit| !products.units[*unit].is_empty()).collect();
    let most = problem.k.unwrap_or(open.len());
    let mut auto = Auto::new(problem.k, &pursuit);
    let mut forced = problem.must_include.iter().filter(|unit| !products.units[**unit].is_empty());
    while ranking.choices.len() < most {
        run.step(ranking.choices.len(), most)?;
        let forced = forced.next().copied();
        let choice = match forced {
            Some(unit) => Some((unit, score_of(&pursuit, unit))),
            None => {
                close(&pursuit, problem, &mut open, &mut ranking);
                if pursuit.is_solved() { None } else { next(&pursuit, &open)? }
            }
        };
        // A unit that explains nothing is no choice, unless somebody asked for it.
        let Some((unit, score)) = choice.filter(|(_, score)| forced.is_some() || *score > f64::EPSILON) else { break };
        open.retain(|other| *other != unit);
        ranking.choices.push(take(&mut pursuit, ranking.choices.len() + 1, unit, score));
        if auto.as_mut().is_some_and(|auto| !auto.goes_on(&pursuit, ranking.choices.len(), forced.is_some())) {
            break;
        }
    }
    close(&pursuit, problem, &mut open, &mut ranking);
    finish(problem, products, auto, &mut ranking);
    // What was multiplied after a cancellation means nothing.
    run.check()?;
    Ok(ranking)
}

/// The ranking for the first `k` units of an order: what each adds to the fit of those before it. Without `k` the best beginning
/// is kept.
pub fn explain(problem: &Problem, products: &Products, run: &Run, order: &[(usize, f64)], k: Option<usize>) -> Result<Ranking> {
    let mut pursuit = Pursuit::new(products);
    let mut ranking = Ranking::default();
    let mut auto = Auto::new(k, &pursuit);
    for (at, (unit, score)) in order.iter().enumerate().take(k.unwrap_or(order.len())) {
        run.step(at, order.len())?;
        ranking.choices.push(take(&mut pursuit, at + 1, *unit, *score));
        if auto.as_mut().is_some_and(|auto| !auto.goes_on(&pursuit, at + 1, problem.must_include.contains(unit))) {
            break;
        }
    }
    finish(problem, products, auto, &mut ranking);
    run.check()?;
    Ok(ranking)
}

fn take(pursuit: &mut Pursuit<'_>, rank: usize, unit: usize, score: f64) -> Choice {
    let before = pursuit.unexplained;
    pursuit.take_unit(unit);
    let mut choice = Choice::new(rank, unit, score);
    choice.gain = Some(before - pursuit.unexplained);
    choice.train_score = Some(1.0 - pursuit.unexplained);
    choice
}

/// Moves the units that no longer add anything from `open` to the passed over, with the reason.
fn close(pursuit: &Pursuit<'_>, problem: &Problem, open: &mut Vec<usize>, ranking: &mut Ranking) {
    open.retain(|&unit| {
        if pursuit.unit_is_open(unit) {
            return true;
        }
        let with = pursuit.leans_on(pursuit.products.units[unit].start);
        let reason = with.map_or("collinear".to_string(), |with| format!("collinear with {}", problem.units[with].name));
        ranking.passed_over.push((unit, reason));
        false
    });
}

/// Cuts an automatic choice to size, and fills in the coefficients of the final set: each single number's, in the
/// input's units.
fn finish(problem: &Problem, products: &Products, auto: Option<Auto>, ranking: &mut Ranking) {
    if let Some(auto) = auto {
        ranking.choices.truncate(auto.size);
    }
    if products.labels != 1 {
        return;
    }
    let mut pursuit = Pursuit::new(products);
    ranking.choices.iter().for_each(|choice| pursuit.take_unit(choice.unit));
    let coefficients = pursuit.coefficients(&[]);
    for choice in &mut ranking.choices {
        if problem.units[choice.unit].is_number
            && let Some(at) = pursuit.columns.iter().position(|column| products.unit_of[*column] == choice.unit)
        {
            choice.coefficient = Some(products.in_input_units(pursuit.columns[at], coefficients[at]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Table, least_squares};

    #[test]
    fn agrees_with_normal_equations() {
        let table = Table::random(30, 6, 11);
        let label: Vec<f64> =
            (0..30).map(|row| table.column(1)[row] - 0.5 * table.column(4)[row] + table.column(0)[row].sin()).collect();
        let problem = table.problem(&label);
        let products = Products::new(&problem, &Run::default()).unwrap();
        let mut pursuit = Pursuit::new(&products);
        [4, 1, 3].into_iter().for_each(|unit| pursuit.take_unit(unit));
        let (beta, r2) = least_squares(&[table.column(4), table.column(1), table.column(3)], &label);
        assert!((1.0 - pursuit.unexplained - r2).abs() < 1e-12);
        for ((column, coefficient), expected) in pursuit.columns.iter().zip(pursuit.coefficients(&[])).zip(beta) {
            assert!((products.in_input_units(*column, coefficient) - expected).abs() < 1e-10);
        }
    }

    #[test]
    fn projection_of_a_wide_unit_is_what_taking_it_in_explains() {
        let table = Table::random(40, 3, 5).text("colour", &["red", "blue", "green", "blue"].repeat(10));
        let label: Vec<f64> = (0..40).map(|row| table.column(0)[row] + f64::from(row as u32 % 4)).collect();
        let problem = table.problem(&label);
        let products = Products::new(&problem, &Run::default()).unwrap();
        let mut pursuit = Pursuit::new(&products);
        pursuit.take_unit(0);
        let promised = pursuit.projection(3);
        let before = pursuit.unexplained;
        pursuit.take_unit(3);
        let explained = stand_in((before - pursuit.unexplained) / before, 2.0, 38.0, 1.0) * before;
        assert!((explained - promised * promised).abs() < 1e-12 && promised * promised < before - pursuit.unexplained);
    }
}
