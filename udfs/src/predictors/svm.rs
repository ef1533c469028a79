//! Support vectors with a radial kernel, by coordinate descent on the dual problem.
//!
//! The intercept is part of the kernel, to which a 1 is added, so that no equation ties the coefficients together: one after the other is moved to its best
//! place, and a run can be stopped after any of them.

use crate::judging::folds::Folds;
use crate::predictors::knn::one;
use crate::predictors::refit::Learner;
use crate::{Result, Run};

/// Price of an error, and errors of numbers (in standard deviations) that cost nothing. Both are libsvm's.
const PRICE: f64 = 1.0;
const FREE: f64 = 0.1;
/// Rows learnt from at most, evenly taken: memory and time grow with their square.
const ROWS_MAX: usize = 1000;
/// Sweeps over the coefficients at most, and how little the largest move of a sweep must be to end them.
const SWEEPS_MAX: usize = 200;
const MOVE_MIN: f64 = 1e-3;

pub(crate) struct Svm;

impl Learner for Svm {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let count = learn.len().min(ROWS_MAX);
        let learn: Vec<usize> = (0..count).map(|at| learn[at * learn.len() / count]).collect();
        let _memory = run.reserve((count * count + 4 * count + (count + 1) * columns.len() + rows.len()) * size_of::<f64>())?;
        let row = |row: usize| -> Vec<f64> { columns.iter().map(|column| folds.columns[*column][row]).collect() };
        let known: Vec<Vec<f64>> = learn.iter().map(|at| row(*at)).collect();
        let is_class = folds.classes.is_some();
        let targets: Vec<f64> = learn.iter().map(|row| folds.targets[*row]).collect();
        let mean = targets.iter().sum::<f64>() / count as f64;
        let spread = (targets.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
        // One value throughout is its own prediction.
        if spread == 0.0 {
            return Ok(vec![one(folds, mean); rows.len()]);
        }
        let goals: Vec<f64> = match is_class {
            true => targets.iter().map(|class| 2.0 * class - 1.0).collect(),
            false => targets.iter().map(|y| (y - mean) / spread).collect(),
        };
        let width = 1.0 / columns.len().max(1) as f64;
        let near = |a: &[f64], b: &[f64]| 1.0 + (-width * a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp();
        let mut kernel = Vec::with_capacity(count * count);
        for a in &known {
            run.check()?;
            kernel.extend(known.iter().map(|b| near(a, b)));
        }
        let beta = solve(&kernel, &goals, is_class, run)?;
        let support: Vec<(&Vec<f64>, f64)> = known.iter().zip(beta).filter(|(_, beta)| *beta != 0.0).collect();
        let mut predictions = Vec::with_capacity(rows.len());
        for (at, asked) in rows.iter().enumerate() {
            if at % 64 == 0 {
                run.check()?;
            }
            let asked = row(*asked);
            let value: f64 = support.iter().map(|(known, beta)| beta * near(known, &asked)).sum();
            predictions.push(one(folds, if is_class { f64::from(value > 0.0) } else { mean + spread * value }));
        }
        Ok(predictions)
    }
}

/// The coefficients: for classes `½ βᵀKβ − yᵀβ` is least with `0 ≤ yβ ≤ PRICE`, for numbers `½ βᵀKβ − yᵀβ + FREE Σ|β|` with `|β| ≤ PRICE`.
fn solve(kernel: &[f64], goals: &[f64], is_class: bool, run: &Run) -> Result<Vec<f64>> {
    let count = goals.len();
    let (mut beta, mut fitted) = (vec![0.0f64; count], vec![0.0f64; count]);
    for _ in 0..SWEEPS_MAX {
        run.check()?;
        let mut largest: f64 = 0.0;
        for at in 0..count {
            let row = &kernel[at * count..(at + 1) * count];
            // Where it would be best without bounds.
            let free = beta[at] + (goals[at] - fitted[at]) / row[at];
            let best = match is_class {
                true => goals[at] * (goals[at] * free).clamp(0.0, PRICE),
                false => ((free.abs() - FREE / row[at]).max(0.0) * free.signum()).clamp(-PRICE, PRICE),
            };
            let change = best - beta[at];
            if change != 0.0 {
                fitted.iter_mut().zip(row).for_each(|(fitted, near)| *fitted += change * near);
                beta[at] = best;
                largest = largest.max(change.abs());
            }
        }
        if largest < MOVE_MIN {
            break;
        }
    }
    Ok(beta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::judging::folds::Holding;
    use crate::judging::metric::Criterion;
    use crate::testing::Table;

    /// At the optimum a coefficient inside its bounds has an error of exactly what is free (numbers) or a margin of 1 (classes).
    #[test]
    fn the_conditions_of_the_optimum_hold() {
        let table = Table::random(60, 2, 3);
        let near = |a: usize, b: usize| {
            1.0 + (-0.5 * (0..2).map(|j| (table.column(j)[a] - table.column(j)[b]).powi(2)).sum::<f64>()).exp()
        };
        let kernel: Vec<f64> = (0..3600).map(|at| near(at / 60, at % 60)).collect();
        for is_class in [false, true] {
            let goal = |row: usize| {
                let y = table.column(0)[row] * table.column(1)[row];
                if is_class { y.signum() } else { y }
            };
            let goals: Vec<f64> = (0..60).map(goal).collect();
            let beta = solve(&kernel, &goals, is_class, &Run::default()).unwrap();
            let mut inside = 0;
            for row in 0..60 {
                let fitted: f64 = (0..60).map(|other| kernel[row * 60 + other] * beta[other]).sum();
                let gap = if is_class { goals[row] * fitted - 1.0 } else { (goals[row] - fitted).abs() - FREE };
                if beta[row] != 0.0 && beta[row].abs() < PRICE {
                    inside += 1;
                    assert!(gap.abs() < 0.02, "{is_class} {row}: {gap}");
                } else if beta[row] == 0.0 {
                    assert!(if is_class { gap > -0.02 } else { gap < 0.02 }, "{is_class} {row}: {gap}");
                }
            }
            assert!(inside > 3);
        }
    }

    /// More columns than rows, and classes that only a curve parts.
    #[test]
    fn curves_are_learnt() {
        for task in [Task::Regression, Task::Classification] {
            let table = Table { task: Some(task), ..Table::random(300, 2, 4) };
            let label: Vec<f64> = (0..300)
                .map(|row| {
                    let radius = table.column(0)[row].powi(2) + table.column(1)[row].powi(2);
                    if task == Task::Classification { f64::from(radius > 1.4) } else { radius }
                })
                .collect();
            let folds = Folds::new(&table.problem_of_rows(&label), Holding::Share(0.3), Criterion::Auto, &Run::new(0)).unwrap();
            let rows: Vec<usize> = folds.held_out_rows(0).collect();
            let predicted = Svm.predict(&folds, &[0, 1], &folds.learnt_rows(0), &rows, &Run::new(0)).unwrap();
            let square = |of: &dyn Fn(usize) -> f64| (0..rows.len()).map(|at| of(at).powi(2)).sum::<f64>();
            let left = square(&|at| folds.labels[0][rows[at]] - predicted[at][0]);
            let all = square(&|at| folds.labels[0][rows[at]]);
            assert!(left < 0.35 * all, "{task:?} {left} {all}");
        }
    }
}
