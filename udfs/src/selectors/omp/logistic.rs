//! Pursuit by a generalised linear model: the score test in the place of the correlation.

use rayon::prelude::*;

use crate::kernels::argmax;
use crate::linear::chance::stand_in;
use crate::linear::logistic::{Examples, SLIGHT};
use crate::neural::candidates::Candidates;
use crate::neural::workbench::explain_order;
use crate::{Coding, Error, Label, Problem, Ranking, Result, Rows, Run};

/// Relative accuracy of the coefficients: who is next does not hang on the last digits.
const ACCURACY: f64 = 1e-3;
/// Choices without an improvement of the criterion after which `k => 'auto'` looks no further.
const PATIENCE: usize = 5;

pub(super) fn select(problem: &Problem, run: &Run) -> Result<Ranking> {
    let rows = problem.rows();
    let Label::Classes(classes) = &problem.label else {
        return Err(Error::data(
            "model => 'logistic' predicts classes, and the label is a number; use model => 'linear' or 'mlp'",
        ));
    };
    let candidates = Candidates::new(problem, rows, run)?;
    let most = problem.k.unwrap_or(candidates.len()).min(candidates.len());
    // Two copies of the columns taken in while another is added, and what the model says of every row.
    let mut widths: Vec<usize> = candidates.inputs.iter().map(|inputs| inputs.len()).collect();
    widths.sort_unstable_by(|a, b| b.cmp(a));
    let taken: usize = 1 + widths.iter().take(most).sum::<usize>();
    let _memory = run.reserve(rows.rows() * (2 * taken + 2 * classes.len() + 1) * size_of::<f64>())?;
    let mut pursuit = Pursuit::new(problem, rows, &candidates, classes.len());
    let forced = candidates.forced(problem);
    let mut order: Vec<(usize, f64)> = Vec::new();
    let (mut best, mut keep) = (f64::INFINITY, 0);
    while order.len() < most {
        run.step(order.len(), most)?;
        pursuit.fit(run)?;
        let criterion = pursuit.criterion();
        if criterion < best || order.len() <= forced.len() {
            (best, keep) = (criterion, order.len());
        }
        if problem.k.is_none() && order.len() >= keep + PATIENCE {
            break;
        }
        let scores = pursuit.scores(&order, run)?;
        let next = match forced.get(order.len()) {
            Some(candidate) => Some((*candidate, scores[*candidate].unwrap_or(0.0))),
            None => argmax(scores.into_iter()).filter(|(_, score)| *score > f64::EPSILON),
        };
        let Some((candidate, score)) = next else { break };
        pursuit.take(candidate);
        order.push((candidate, score));
    }
    if problem.k.is_none() {
        pursuit.fit(run)?;
        let keep = if pursuit.criterion() < best { order.len() } else { keep };
        order.truncate(keep.max(1));
    }
    explain_order(problem, &candidates, &order, run)
}

/// The model on a growing set of columns.
struct Pursuit<'a> {
    rows: &'a Rows,
    candidates: &'a Candidates,
    classes: usize,
    total: f64,
    factors: Vec<f64>,
    /// An intercept and the columns taken in, row after row.
    design: Vec<f64>,
    columns: Vec<usize>,
    /// How many of them do not follow from others of their unit.
    rank: usize,
    /// Whether each candidate is a text.
    is_text: Vec<bool>,
    beta: Vec<f64>,
    /// `[row * classes + class]`: 1 for the row's class, less its probability.
    errors: Vec<f64>,
    /// Of each row: `Σ p (1 − p)` over the classes.
    curvatures: Vec<f64>,
    deviance: f64,
}

impl<'a> Pursuit<'a> {
    fn new(problem: &Problem, rows: &'a Rows, candidates: &'a Candidates, classes: usize) -> Self {
        let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
        let total = rows.weight();
        let is_text = |columns: &[usize]| columns.iter().all(|column| rows.origins[*column].coding != Coding::Number);
        let factor = |column: &usize| {
            let energy: f64 = rows.columns[*column].iter().enumerate().map(|(row, x)| weight(row) * x * x).sum();
            if problem.standardize { (total / energy).sqrt() } else { 1.0 }
        };
        Self {
            rows,
            candidates,
            classes,
            total,
            factors: candidates.columns.par_iter().map(factor).collect(),
            design: vec![1.0; rows.rows()],
            columns: Vec::new(),
            rank: 0,
            is_text: candidates.units.iter().map(|unit| is_text(&problem.units[*unit].columns)).collect(),
            beta: vec![0.0; classes],
            errors: Vec::new(),
            curvatures: Vec::new(),
            deviance: 0.0,
        }
    }

    fn fit(&mut self, run: &Run) -> Result<()> {
        let inputs = self.columns.len() + 1;
        let Rows { targets, weights, .. } = self.rows;
        let examples = Examples { design: &self.design, inputs, classes: self.classes, targets, weights, ridge: SLIGHT };
        self.beta = examples.fit(&self.beta, ACCURACY, run)?;
        let mut errors = vec![0.0; targets.len() * self.classes];
        let rows = errors.par_chunks_mut(self.classes).zip(self.design.par_chunks(inputs));
        rows.for_each(|(probabilities, x)| examples.probabilities(&self.beta, x, probabilities));
        self.curvatures = errors.par_chunks(self.classes).map(|p| p.iter().map(|p| p * (1.0 - p)).sum()).collect();
        self.deviance = 0.0;
        for (row, probabilities) in errors.chunks_mut(self.classes).enumerate() {
            let class = targets[row] as usize;
            self.deviance -= 2.0 * weights.get(row).copied().unwrap_or(1.0) * probabilities[class].max(1e-300).ln();
            probabilities.iter_mut().for_each(|p| *p = -*p);
            probabilities[class] += 1.0;
        }
        self.errors = errors;
        Ok(())
    }

    /// The Bayesian information criterion.
    fn criterion(&self) -> f64 {
        let parameters = ((self.rank + 1) * (self.classes - 1)) as f64;
        self.deviance + parameters * self.total.max(2.0).ln()
    }

    /// For each candidate that is not chosen the score statistic: what its first step would gain, by the curvature that it meets.
    fn scores(&self, order: &[(usize, f64)], run: &Run) -> Result<Vec<Option<f64>>> {
        let of_column = |input: usize| {
            let (column, factor) = (&self.rows.columns[self.candidates.columns[input]], self.factors[input]);
            let (mut gradient, mut curvature) = (vec![0.0; self.classes], 0.0);
            let rows = column.iter().zip(&self.curvatures).zip(self.errors.chunks_exact(self.classes)).enumerate();
            for (row, ((x, of_row), errors)) in rows {
                let (x, weight) = (factor * x, self.rows.weights.get(row).copied().unwrap_or(1.0));
                curvature += weight * x * x * of_row;
                gradient.iter_mut().zip(errors).for_each(|(g, e)| *g += weight * x * e);
            }
            let energy: f64 = gradient.iter().map(|g| g * g).sum();
            if curvature > 0.0 { energy / curvature } else { 0.0 }
        };
        let score = |candidate: usize| {
            run.check()?;
            if order.iter().any(|(chosen, _)| *chosen == candidate) {
                return Ok(None);
            }
            let columns = self.candidates.inputs[candidate].clone();
            let (width, rank) = (columns.len() as f64, self.rank(candidate) as f64);
            // Levels that depend on each other have their sum, and one less of them to explain by chance.
            let share = columns.map(of_column).sum::<f64>() / self.total * rank / width;
            let free = self.total.max(self.rows.rows() as f64) - 1.0 - self.rank as f64;
            Ok(Some(stand_in(share, rank, free, (self.classes - 1) as f64).sqrt()))
        };
        (0..self.candidates.len()).into_par_iter().map(score).collect()
    }

    /// The columns of a candidate that do not follow from its others: the levels of a text add up to 1.
    fn rank(&self, candidate: usize) -> usize {
        let columns = self.candidates.inputs[candidate].len();
        if columns > 1 && self.is_text[candidate] { columns - 1 } else { columns }
    }

    fn take(&mut self, candidate: usize) {
        self.rank += self.rank(candidate);
        for input in self.candidates.inputs[candidate].clone() {
            let (column, factor) = (&self.rows.columns[self.candidates.columns[input]], self.factors[input]);
            let before = self.columns.len() + 1;
            let mut wider = Vec::with_capacity(column.len() * (before + 1));
            for (x, value) in self.design.chunks(before).zip(column) {
                wider.extend_from_slice(x);
                wider.push(factor * value);
            }
            self.design = wider;
            self.beta.resize(self.beta.len() + self.classes, 0.0);
            self.columns.push(input);
        }
    }
}
