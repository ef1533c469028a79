use crate::linear::spline::Smoother;
use crate::neural::candidates::Candidates;
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Additive model (GAM): a smooth function of each feature.
    ///
    /// Predicts the label by a sum of smooth functions, one of each number, and of the levels of texts, and ranks features by the variance of their function. Sees squares, thresholds and
    /// saturation, which correlation does not; what two features say only together it does not see.
    ///
    /// A function is a cubic spline with `splines` coefficients on equal intervals, whose second differences are penalised (P-splines). All are fitted by backfitting: each in turn to what the others
    /// leave. One smoothness serves all: `smoothness`, or the one with the least generalised cross-validation error. Classes are predicted as one 0/1 column each. `k => 'auto'` keeps what is above the mean.
    ///
    /// Cost: `10 × rows × features` operations for each round of backfitting.
    ///
    /// Source: Hastie and Tibshirani, 1986. Generalized additive models; Eilers and Marx, 1996. Flexible smoothing with B-splines and penalties.
    #[selector(
        name = "gam",
        aliases = [],
        labels = Any,
        score = "variance of its smooth function, as a share of the label's",
    )]
    pub struct Gam {
        /// Splines of each number.
        splines: usize = 8, Check::Between(4.0, 100.0);
        /// How much bends cost, in units of the splines' mean square. NULL: the least error of generalised cross-validation decides.
        smoothness: Option<f64> = None, Check::Between(1e-9, 1e9);
        /// Rounds of backfitting at most.
        iterations: usize = 50, Check::Between(1.0, 100000.0);
    }
}

/// What is tried when nobody says how smooth.
const SMOOTHNESSES: [f64; 4] = [100.0, 1.0, 0.01, 0.0001];
/// Rounds for each of them; the best goes on.
const TRIED: usize = 5;
/// Share of the label's variance by which a round must move the functions to be followed by another.
const ACCURACY: f64 = 1e-10;

impl Selector for Gam {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let rows = problem.rows();
        let candidates = Candidates::new(problem, rows, run)?;
        let outputs = rows.labels.len();
        let _memory = run.reserve((outputs + 2) * rows.rows() * size_of::<f64>() + candidates.columns.len() * self.bytes())?;
        let mut backfit = Backfit::new(problem, &candidates, self.splines, run)?;
        let smoothness = match self.smoothness {
            Some(smoothness) => smoothness,
            None => {
                let mut best = (f64::INFINITY, SMOOTHNESSES[0]);
                for smoothness in SMOOTHNESSES {
                    let freedom = backfit.tune(smoothness);
                    backfit.run(TRIED.min(self.iterations), run)?;
                    let error = backfit.generalized(freedom);
                    if error < best.0 {
                        best = (error, smoothness);
                    }
                }
                best.1
            }
        };
        backfit.tune(smoothness);
        backfit.run(self.iterations, run)?;
        let variances = backfit.variances(&candidates, run)?;
        Ok(candidates.ranking(problem, &variances))
    }
}

impl Gam {
    /// What a column's splines take.
    fn bytes(&self) -> usize {
        (4 * self.splines * self.splines + 4 * self.splines) * size_of::<f64>()
    }
}

/// A function of each column, and what they leave of the label.
struct Backfit<'a> {
    problem: &'a Problem,
    /// The columns in an order of their names, so that the order of the table's does not matter.
    columns: Vec<usize>,
    terms: Vec<Term>,
    /// For each column of the label what is left of it.
    left: Vec<Vec<f64>>,
}

struct Term {
    /// None for what is no number: a level is there or is not.
    smoother: Option<Smoother>,
    /// Of a level: the sum of its squares.
    energy: f64,
    /// For each column of the label: coefficients, and what centres the function.
    coefficients: Vec<(Vec<f64>, f64)>,
}

impl Term {
    #[inline]
    fn value(&self, output: usize, x: f64) -> f64 {
        let (coefficients, centre) = &self.coefficients[output];
        match &self.smoother {
            Some(smoother) => smoother.basis.value(coefficients, x) - centre,
            None => coefficients[0] * x - centre,
        }
    }
}

impl<'a> Backfit<'a> {
    fn new(problem: &'a Problem, candidates: &Candidates, splines: usize, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let mut columns = candidates.columns.clone();
        columns.sort_by_key(|column| problem.column_key(*column));
        let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
        let term = |column: &usize| -> Result<Term> {
            run.check()?;
            let values = &rows.columns[*column];
            let is_number = rows.design[*column].is_number;
            let smoother = is_number.then(|| Smoother::new(values, weight, splines));
            let energy = values.iter().enumerate().map(|(row, x)| weight(row) * x * x).sum();
            let width = if is_number { splines } else { 1 };
            Ok(Term { smoother, energy, coefficients: vec![(vec![0.0; width], 0.0); rows.labels.len()] })
        };
        let terms = columns.iter().map(term).collect::<Result<_>>()?;
        Ok(Self { problem, columns, terms, left: rows.labels.clone() })
    }

    fn weight(&self, row: usize) -> f64 {
        self.problem.rows().weights.get(row).copied().unwrap_or(1.0)
    }

    /// Makes ready for a smoothness; returns how many coefficients all functions are worth.
    fn tune(&mut self, smoothness: f64) -> f64 {
        self.terms.iter_mut().map(|term| term.smoother.as_mut().map_or(1.0, |smoother| smoother.tune(smoothness))).sum()
    }

    /// Rounds of backfitting, until they change nothing.
    fn run(&mut self, most: usize, run: &Run) -> Result<()> {
        let total: f64 = self.problem.label_variance() * self.problem.rows().weight() * self.left.len().max(1) as f64;
        for round in 0..most {
            run.step(round, most)?;
            let mut moved = 0.0;
            for at in 0..self.terms.len() {
                run.check()?;
                for output in 0..self.left.len() {
                    moved += self.refit(at, output);
                }
            }
            if moved <= ACCURACY * total {
                break;
            }
        }
        Ok(())
    }

    /// Fits one function to what the others leave; returns by how much it has moved, squared and summed.
    fn refit(&mut self, at: usize, output: usize) -> f64 {
        let rows = self.problem.rows();
        let values = &rows.columns[self.columns[at]];
        let term = &self.terms[at];
        // What is left, with the function itself added back.
        let partial = |row: usize, x: f64| self.left[output][row] + term.value(output, x);
        let mut found = vec![0.0; term.coefficients[output].0.len()];
        match &term.smoother {
            Some(smoother) => {
                for (row, x) in values.iter().enumerate() {
                    let (first, alive) = smoother.basis.at(*x);
                    let y = self.weight(row) * partial(row, *x);
                    found[first..].iter_mut().zip(alive).for_each(|(sum, value)| *sum += y * value);
                }
                smoother.solve(&mut found);
            }
            None => {
                let sum: f64 = values.iter().enumerate().map(|(row, x)| self.weight(row) * x * partial(row, *x)).sum();
                found[0] = sum / term.energy.max(f64::MIN_POSITIVE);
            }
        }
        let before = self.terms[at].coefficients[output].clone();
        self.terms[at].coefficients[output] = (found, 0.0);
        let sum: f64 = values.iter().enumerate().map(|(row, x)| self.weight(row) * self.terms[at].value(output, *x)).sum();
        self.terms[at].coefficients[output].1 = sum / rows.weight();
        let old = Term { smoother: self.terms[at].smoother.clone(), energy: 0.0, coefficients: vec![before] };
        let mut moved = 0.0;
        for (row, x) in values.iter().enumerate() {
            let change = self.terms[at].value(output, *x) - old.value(0, *x);
            self.left[output][row] -= change;
            moved += self.problem.rows().weights.get(row).copied().unwrap_or(1.0) * change * change;
        }
        moved
    }

    /// The error of generalised cross-validation: what is left, by the square of the rows that are left over.
    fn generalized(&self, freedom: f64) -> f64 {
        let rows = self.problem.rows();
        let left: f64 = self.left.iter().flat_map(|left| left.iter().enumerate()).map(|(row, r)| self.weight(row) * r * r).sum();
        let free = rows.weight().max(rows.rows() as f64) - freedom - 1.0;
        if free > 1.0 { left / (free * free) } else { f64::INFINITY }
    }

    /// For each candidate the variance of its functions together, as a share of the label's.
    fn variances(&self, candidates: &Candidates, run: &Run) -> Result<Vec<f64>> {
        let rows = self.problem.rows();
        let place = |column: usize| self.columns.iter().position(|own| *own == column).expect("every column has a function");
        let of = |inputs: &std::ops::Range<usize>| -> Result<f64> {
            run.check()?;
            let own: Vec<(usize, usize)> =
                inputs.clone().map(|input| (candidates.columns[input], place(candidates.columns[input]))).collect();
            let mut variance = 0.0;
            for output in 0..self.left.len() {
                for row in 0..rows.rows() {
                    let value: f64 =
                        own.iter().map(|(column, at)| self.terms[*at].value(output, rows.columns[*column][row])).sum();
                    variance += self.weight(row) * value * value;
                }
            }
            Ok(variance / rows.weight() / self.problem.label_variance())
        };
        candidates.inputs.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// Functions of known variances, one of them a bend that no correlation shows.
    #[test]
    fn functions_have_the_variance_that_was_put_in() {
        let table = Table::random(3000, 4, 3);
        let label: Vec<f64> = (0..3000).map(|row| table.column(1)[row].powi(2) + table.column(3)[row]).collect();
        let ranking = Gam::default().select(&table.k(4).problem_of_rows(&label), &Run::new(0)).unwrap();
        assert_eq!(ranking.units()[..2], [1, 3]);
        // The square of a normal number has variance 2.
        let scores: Vec<f64> = ranking.choices.iter().map(|choice| choice.score).collect();
        assert!((scores[0] - 2.0 / 3.0).abs() < 0.06 && (scores[1] - 1.0 / 3.0).abs() < 0.04, "{scores:?}");
        assert!(scores[2] < 0.01 && scores[3] < 0.01, "{scores:?}");
    }

    /// Backfitting ends where the dense system of all splines together has its solution: there no function gains from a change. The system is solved here by plain
    /// elimination, from splines written out by Cox and de Boor's recursion.
    #[test]
    fn backfitting_solves_the_system_of_all_splines() {
        let (rows, splines, smoothness) = (60, 6, 0.1);
        let table = Table::random(rows, 2, 8);
        let label: Vec<f64> = (0..rows).map(|row| table.column(0)[row].sin() + 0.5 * table.column(1)[row].abs()).collect();
        let problem = table.clone().k(2).problem_of_rows(&label);
        let gam = Gam { splines, smoothness: Some(smoothness), iterations: 5000 };
        let ranking = gam.select(&problem, &Run::new(0)).unwrap();
        let recursion = |i: isize, x: f64| {
            let mut b = [0.0; 4];
            (0..4).for_each(|k| b[k as usize] = f64::from((i + k) as f64 <= x && x < (i + k) as f64 + 1.0));
            for d in 1..4 {
                for k in 0..4 - d {
                    let start = (i + k as isize) as f64;
                    b[k] = (x - start) / d as f64 * b[k] + (start + d as f64 + 1.0 - x) / d as f64 * b[k + 1];
                }
            }
            b[0]
        };
        let of_rows = problem.rows();
        let intervals = (splines - 3) as f64;
        let design: Vec<Vec<f64>> = (0..2)
            .flat_map(|j| (0..splines).map(move |s| (j, s)))
            .map(|(j, s)| {
                let column = &of_rows.columns[j];
                let (low, high) = column.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
                let place = |x: f64| ((x - low) / (high - low) * intervals).min(intervals * (1.0 - 1e-15));
                column.iter().map(|x| recursion(s as isize - 3, place(*x))).collect()
            })
            .collect();
        let n = 2 * splines + 1;
        let column = |i: usize, row: usize| if i == n - 1 { 1.0 } else { design[i][row] };
        let mut system = vec![vec![0.0; n + 1]; n];
        for i in 0..n {
            for k in 0..n {
                system[i][k] = (0..rows).map(|row| column(i, row) * column(k, row)).sum();
            }
            system[i][n] = (0..rows).map(|row| column(i, row) * of_rows.labels[0][row]).sum();
        }
        for j in 0..2 {
            let start = j * splines;
            let scale = (start..start + splines).map(|i| system[i][i]).sum::<f64>() / splines as f64;
            for i in start..start + splines - 2 {
                for (p, a) in [1.0, -2.0, 1.0].iter().enumerate() {
                    for (q, b) in [1.0, -2.0, 1.0].iter().enumerate() {
                        system[i + p][i + q] += smoothness * scale * a * b;
                    }
                }
            }
            (start..start + splines).for_each(|i| system[i][i] += 1e-9 * scale);
        }
        for i in 0..n {
            let pivot = (i..n).max_by(|a, b| system[*a][i].abs().total_cmp(&system[*b][i].abs())).unwrap();
            system.swap(i, pivot);
            for k in 0..n {
                if k != i {
                    let factor = system[k][i] / system[i][i];
                    let row = system[i].clone();
                    system[k].iter_mut().zip(&row).for_each(|(a, b)| *a -= factor * b);
                }
            }
        }
        let beta: Vec<f64> = (0..n).map(|i| system[i][n] / system[i][i]).collect();
        for j in 0..2 {
            let f: Vec<f64> =
                (0..rows).map(|row| (0..splines).map(|s| beta[j * splines + s] * design[j * splines + s][row]).sum()).collect();
            let mean = f.iter().sum::<f64>() / rows as f64;
            let variance = f.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / rows as f64 / problem.label_variance();
            let found = ranking.choices.iter().find(|choice| choice.unit == j).unwrap().score;
            assert!((found - variance).abs() < 1e-4, "{j}: {found} {variance}");
        }
    }
}
