//! Logistic regression to the last digits, by Newton's method.

use crate::kernels::cholesky::Cholesky;
use crate::linear::logistic::{Examples, SLIGHT};
use crate::models::additive::{self, Learnt};
use crate::models::design::Design;
use crate::models::table::Row;
use crate::{Error, Label, Problem, Result, Run};

/// Coefficients up to which all curvatures are taken at once. With more, steps that need only a bound on them are the shorter way.
const NEWTON_MAX: usize = 256;
const STEPS_MAX: usize = 100;
/// Relative size of a step after which there is nothing to gain.
const ACCURACY: f64 = 1e-11;

/// The coefficients that make the log loss small, and `½ penalty ‖β‖²` for each unit of weight of the rows, the intercepts aside. Without a penalty a slight one
/// keeps classes finite that can be told apart without a mistake.
pub(crate) fn fit(problem: &Problem, penalty: Option<f64>, run: &Run) -> Result<Vec<Row>> {
    let (design, outputs, beta) = learn(problem, penalty, run)?;
    let width = design.columns() + 1;
    // From a list for each class, its intercept first, to a list for each column.
    let factors = &design.inputs.factors;
    let of_column = |at: usize| (0..outputs).map(move |output| (output, at));
    let coefficients: Vec<f64> = (0..width - 1)
        .flat_map(|at| of_column(at).map(|(output, at)| beta[output * width + 1 + at] * factors[at]).collect::<Vec<_>>())
        .collect();
    let columns = design.inputs.columns.iter().zip(coefficients.chunks(outputs));
    let learnt: Vec<Learnt<'_>> = columns.map(|(column, coefficients)| Learnt { column: *column, coefficients }).collect();
    let intercepts: Vec<f64> = (0..outputs).map(|output| beta[output * width]).collect();
    Ok(additive::rows("logistic", problem, &intercepts, &learnt))
}

/// The design, how many outputs there are, and a list of coefficients for each of them, its intercept first.
pub(crate) fn learn<'a>(problem: &'a Problem, penalty: Option<f64>, run: &Run) -> Result<(Design<'a>, usize, Vec<f64>)> {
    let Label::Classes(classes) = &problem.label else {
        return Err(Error::data(
            "model => 'logistic' predicts classes, and the label is a number; use model => 'linear', 'boosting' or 'mlp', or set task => 'classification' if its values are few",
        ));
    };
    let design = Design::new(problem);
    let outputs = if classes.len() == 2 { 1 } else { classes.len() };
    let fitting = Fitting { design, outputs, ridge: penalty.unwrap_or(SLIGHT).max(f64::MIN_POSITIVE) };
    let width = fitting.design.columns() + 1;
    let beta = if outputs * width <= NEWTON_MAX { fitting.newton(run)? } else { fitting.descend(classes.len(), run)? };
    Ok((fitting.design, outputs, beta))
}

struct Fitting<'a> {
    design: Design<'a>,
    /// One for two classes, whose log odds it is; otherwise one for each.
    outputs: usize,
    ridge: f64,
}

/// Loss, gradient and curvature at a place.
struct Place {
    loss: f64,
    gradient: Vec<f64>,
    /// The lower half, row by row.
    curvature: Vec<f64>,
}

impl Fitting<'_> {
    fn newton(&self, run: &Run) -> Result<Vec<f64>> {
        let size = self.outputs * (self.design.columns() + 1);
        let _memory = run.reserve(2 * size * size * size_of::<f64>())?;
        let mut beta = vec![0.0; size];
        let mut here = self.place(&beta, run)?;
        for _ in 0..STEPS_MAX {
            run.check()?;
            let element = |i: usize, j: usize| here.curvature[i * (i + 1) / 2 + j];
            // The scores of many classes can all be shifted alike, which costs nothing: a little more on the diagonal makes the way unique.
            let more = 1e-9 * (0..size).map(|i| element(i, i)).fold(0.0, f64::max);
            let factor = Cholesky::of(size, |i, j| element(i, j) + if i == j { more } else { 0.0 });
            let Some(factor) = factor else { break };
            let mut step = here.gradient.clone();
            factor.solve(&mut step);
            let mut share = 1.0;
            let next = loop {
                let there: Vec<f64> = beta.iter().zip(&step).map(|(b, s)| b - share * s).collect();
                let place = self.place(&there, run)?;
                // But for rounding, which is all that is left at the end.
                if place.loss <= here.loss * (1.0 + 1e-13) {
                    break Some((there, place));
                }
                share *= 0.5;
                if share < 1e-9 {
                    break None;
                }
            };
            let Some((there, place)) = next else { break };
            let moved = there.iter().zip(&beta).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let most = there.iter().fold(1.0f64, |most, b| most.max(b.abs()));
            (beta, here) = (there, place);
            if moved <= ACCURACY * most {
                break;
            }
        }
        self.centre(&mut beta);
        Ok(beta)
    }

    /// With many coefficients: steps under a bound on all curvatures.
    fn descend(&self, classes: usize, run: &Run) -> Result<Vec<f64>> {
        let (width, rows) = (self.design.columns() + 1, self.design.rows);
        let _memory = run.reserve(rows.rows() * width * size_of::<f64>())?;
        let mut values = Vec::with_capacity(rows.rows() * width);
        for row in 0..rows.rows() {
            if row % 256 == 0 {
                run.check()?;
            }
            values.push(1.0);
            let columns = self.design.inputs.columns.iter().zip(&self.design.inputs.factors);
            values.extend(columns.map(|(column, factor)| rows.columns[*column][row] * factor));
        }
        let (targets, weights) = (&rows.targets, &rows.weights);
        let examples = Examples { design: &values, inputs: width, classes, targets, weights, ridge: self.ridge };
        let beta = examples.fit(&vec![0.0; width * classes], 1e-8, run)?;
        let of = |class: usize, at: usize| beta[at * classes + class];
        let mut lists: Vec<f64> = match self.outputs {
            1 => (0..width).map(|at| of(1, at) - of(0, at)).collect(),
            outputs => {
                (0..outputs).flat_map(|class| (0..width).map(move |at| (class, at))).map(|(class, at)| of(class, at)).collect()
            }
        };
        self.centre(&mut lists);
        Ok(lists)
    }

    /// The intercepts of many classes add up to 0.
    fn centre(&self, beta: &mut [f64]) {
        let width = self.design.columns() + 1;
        if self.outputs > 1 {
            let mean = beta.iter().step_by(width).sum::<f64>() / self.outputs as f64;
            beta.iter_mut().step_by(width).for_each(|intercept| *intercept -= mean);
        }
    }

    fn place(&self, beta: &[f64], run: &Run) -> Result<Place> {
        let (outputs, width) = (self.outputs, self.design.columns() + 1);
        let size = outputs * width;
        let half = size * (size + 1) / 2;
        let mut sums = self.design.sums(1 + size + half, run, |x, row, weight, sums| {
            let target = self.design.rows.targets[row];
            let score = |output: usize| {
                let beta = &beta[output * width..(output + 1) * width];
                beta[0] + beta[1..].iter().zip(x).map(|(b, x)| b * x).sum::<f64>()
            };
            let mut shares: Vec<f64> = (0..outputs).map(score).collect();
            let (loss, rest) = sums.split_at_mut(1);
            let (gradient, curvature) = rest.split_at_mut(size);
            loss[0] += weight * log_loss(&mut shares, target);
            let value = |at: usize| if at == 0 { 1.0 } else { x[at - 1] };
            for a in 0..outputs {
                let is_own = if outputs == 1 { target == 1.0 } else { target as usize == a };
                let error = weight * (shares[a] - f64::from(is_own));
                for i in 0..width {
                    gradient[a * width + i] += error * value(i);
                    let at = a * width + i;
                    let line = &mut curvature[at * (at + 1) / 2..];
                    for b in 0..=a {
                        let bend = weight * shares[a] * (f64::from(a == b) - shares[b]) * value(i);
                        let upto = if b == a { i + 1 } else { width };
                        line[b * width] += bend;
                        line[b * width + 1..b * width + upto].iter_mut().zip(x).for_each(|(sum, x)| *sum += bend * x);
                    }
                }
            }
        })?;
        let ridge = self.ridge * self.design.rows.weight();
        let curvature_at = 1 + size;
        for at in (0..size).filter(|at| at % width > 0) {
            sums[0] += 0.5 * ridge * beta[at] * beta[at];
            sums[1 + at] += ridge * beta[at];
            sums[curvature_at + at * (at + 1) / 2 + at] += ridge;
        }
        let curvature = sums.split_off(curvature_at);
        let gradient = sums.split_off(1);
        Ok(Place { loss: sums[0], gradient, curvature })
    }
}

/// The loss of a row, whose scores become probabilities.
fn log_loss(scores: &mut [f64], target: f64) -> f64 {
    if let [odds] = scores {
        let loss = odds.max(0.0) - *odds * target + (-odds.abs()).exp().ln_1p();
        *odds = 1.0 / (1.0 + (-*odds).exp());
        return loss;
    }
    let own = scores[target as usize];
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let total: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= total);
    total.ln() + most - own
}
