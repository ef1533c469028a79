//! What a model loses on rows that it has not seen when it is not told a feature.

use rayon::prelude::*;

use crate::judging::folds::Folds;
use crate::predictors::model::{Instead, Model};
use crate::reading::bins::Counts;
use crate::{Problem, Result, Run};

/// How a feature is kept from the model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Silence {
    /// Its values are dealt out among the rows anew, so many times.
    Mixed(usize),
    /// Every row has its mean.
    Mean,
}

/// For each of the units, what the squared error on the rows held out rises by, as a share of the label's variance in them.
pub(crate) fn rises(
    problem: &Problem,
    folds: &Folds,
    model: &dyn Model,
    units: &[usize],
    silence: Silence,
    run: &Run,
) -> Result<Vec<f64>> {
    let mut columns: Vec<usize> = units.iter().flat_map(|unit| problem.units[*unit].columns.iter().copied()).collect();
    // In an order of their names, so that the order of the table's columns does not matter.
    columns.sort_by_key(|column| problem.column_key(*column));
    let mut rises = vec![0.0; units.len()];
    let mut variance = 0.0;
    let counts = Counts::new(&folds.weights);
    for fit in 0..folds.held_out.len() {
        run.step(fit, folds.held_out.len())?;
        let _memory = run.reserve(folds.rows() * (4 + folds.labels.len()) * size_of::<f64>())?;
        let learnt = model.learn(folds, &columns, &folds.learnt_rows(fit), run)?;
        let judges: Vec<u32> = folds.held_out_rows(fit).map(|row| row as u32).collect();
        // A row of weight 2 is dealt to as two rows are.
        let (judges, is_once) = counts.copies(&judges);
        let judges: Vec<usize> = judges.iter().map(|row| *row as usize).collect();
        let weight = |row: usize| if is_once { folds.weights[row] } else { 1.0 };
        let error = |predicted: &[Vec<f64>]| -> f64 {
            let of = |(row, predicted): (&usize, &Vec<f64>)| {
                let miss = |(q, p): (usize, &f64)| (folds.labels[q][*row] - p).powi(2);
                weight(*row) * predicted.iter().enumerate().map(miss).sum::<f64>()
            };
            judges.iter().zip(predicted).map(of).sum()
        };
        variance += error(&vec![vec![0.0; folds.labels.len()]; judges.len()]);
        let before = error(&learnt.predict(&judges, run)?);
        let probe = learnt.probe(&judges, run)?;
        let rise = |unit: &usize| -> Result<f64> {
            let own: Vec<usize> = problem.units[*unit].columns.iter().copied().filter(|column| learnt.uses(*column)).collect();
            if own.is_empty() || judges.len() < 2 {
                return Ok(0.0);
            }
            let asked = |instead: &Instead<'_>| -> Result<f64> {
                let _memory = run.reserve(judges.len() * (size_of::<Vec<f64>>() + 2 * folds.labels.len() * size_of::<f64>()))?;
                Ok(error(&probe.altered(&own, instead, run)?) - before)
            };
            match silence {
                Silence::Mean => asked(&Instead::Mean),
                Silence::Mixed(repeats) => {
                    let key = problem.column_key(problem.units[*unit].columns[0]);
                    let mut rise = 0.0;
                    for repeat in 0..repeats {
                        let mut others = judges.clone();
                        run.random("permutation", key ^ (fit * repeats + repeat) as u64).shuffle(&mut others);
                        rise += asked(&Instead::Rows(&others))?;
                    }
                    Ok(rise / repeats as f64)
                }
            }
        };
        let found = units.par_iter().map(rise).collect::<Result<Vec<f64>>>()?;
        rises.iter_mut().zip(found).for_each(|(sum, rise)| *sum += rise);
    }
    rises.iter_mut().for_each(|rise| *rise /= variance.max(f64::MIN_POSITIVE));
    Ok(rises)
}
