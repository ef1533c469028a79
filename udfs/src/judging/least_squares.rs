//! The judge of a ranking's beginnings that all selectors share: least squares on the rows learnt from, and its error on the rows held out.
//!
//! It is the same for every selector, needs nothing but moments, and costs next to nothing beside a selection. What only a network or a tree sees in the
//! chosen features it does not see: `evaluate` has these as judges.

use crate::judging::resample::HeldOut;
use crate::linear::products::Products;
use crate::linear::pursuit::Pursuit;
use crate::reading::moments::Gram;
use crate::{Problem, Result, Rows, Run};

/// What least squares on the first so many units of an order is worth: the share of the label's variance that it leaves, for each number of units from 0 on.
pub(crate) struct Beginnings {
    /// Mean squared error on the rows held out.
    pub errors: Vec<f64>,
    /// Share of the variance explained where it was learnt.
    pub explained: Vec<f64>,
    /// For each beginning the coefficients of its units that are single numbers, in the input's units; none where the label has several columns.
    pub coefficients: Vec<Vec<Option<f64>>>,
}

/// Judges the beginnings of an order of units.
pub(crate) fn beginnings(problem: &Problem, held_out: &HeldOut, order: &[usize], run: &Run) -> Result<Beginnings> {
    let products = Products::of_units(problem, |unit| order.contains(&unit), run)?;
    let mut pursuit = Pursuit::new(&products);
    let mut beginnings = Beginnings { errors: Vec::new(), explained: Vec::new(), coefficients: Vec::new() };
    for size in 0..=order.len() {
        run.check()?;
        if let Some(last) = size.checked_sub(1) {
            pursuit.take_unit(order[last]);
        }
        let all = pursuit.all_coefficients();
        let fits: Vec<Vec<(usize, f64)>> = all.iter().map(|beta| products.in_design(&pursuit.columns, beta)).collect();
        beginnings.errors.push(match held_out {
            HeldOut::Moments(gram) => error_of_moments(gram, &fits),
            HeldOut::Rows(rows) => error_of_rows(rows, &fits, run)?,
            HeldOut::Nothing => 0.0,
        });
        beginnings.explained.push(1.0 - pursuit.unexplained);
        let coefficient = |unit: &usize| {
            let column = *problem.units[*unit].columns.first().filter(|_| problem.units[*unit].is_number)?;
            let [fit] = &fits[..] else { return None };
            fit.iter().find(|(design, _)| *design == column).map(|(_, beta)| *beta)
        };
        beginnings.coefficients.push(order[..size].iter().map(coefficient).collect());
    }
    Ok(beginnings)
}

/// Σ (y − xᵀβ)² from the moments of y and x about the means learnt.
fn error_of_moments(gram: &Gram, fits: &[Vec<(usize, f64)>]) -> f64 {
    let (d, q) = (gram.design.len(), fits.len());
    let explained = |(at, fit): (usize, &Vec<(usize, f64)>)| {
        let of = |(i, beta): &(usize, f64)| {
            let row = &gram.matrix[i * d..(i + 1) * d];
            beta * (2.0 * gram.products[i * q + at] - fit.iter().map(|(j, gamma)| row[*j] * gamma).sum::<f64>())
        };
        fit.iter().map(of).sum::<f64>()
    };
    ((gram.label_energy - fits.iter().enumerate().map(explained).sum::<f64>()) / gram.weight).max(0.0)
}

fn error_of_rows(rows: &Rows, fits: &[Vec<(usize, f64)>], run: &Run) -> Result<f64> {
    let _memory = run.reserve(rows.rows() * size_of::<f64>())?;
    let mut squares = 0.0;
    for (label, fit) in rows.labels.iter().zip(fits) {
        let mut left = label.clone();
        for (column, beta) in fit {
            run.check()?;
            left.iter_mut().zip(&rows.columns[*column]).for_each(|(left, x)| *left -= beta * x);
        }
        let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
        squares += left.iter().enumerate().map(|(row, left)| weight(row) * left * left).sum::<f64>();
    }
    Ok(squares / rows.weight())
}
