//! The columns of a table as linear models see them: those that vary, each at its scale, and sums over their rows.

use std::ops::Range;

use rayon::prelude::*;

use crate::network::samples::Inputs;
use crate::{Problem, Result, Rows, Run};

/// Rows whose sums are taken together, in an order that does not depend on threads.
const BAND: usize = 1024;

pub(crate) struct Design<'a> {
    pub rows: &'a Rows,
    pub inputs: Inputs,
}

impl<'a> Design<'a> {
    pub fn new(problem: &'a Problem) -> Self {
        let rows = problem.rows();
        let mut is_asked = vec![false; rows.columns.len()];
        problem.units.iter().flat_map(|unit| &unit.columns).for_each(|column| is_asked[*column] = true);
        let takes_part = |column: &usize| is_asked[*column] && rows.columns[*column].iter().any(|x| *x != 0.0);
        Self { rows, inputs: Inputs::new(problem, rows, (0..rows.columns.len()).filter(takes_part).collect()) }
    }

    pub fn columns(&self) -> usize {
        self.inputs.columns.len()
    }

    /// So many sums over all rows. `add` is given the columns of a row, its place and its weight; bands of rows go side by side and are added up in order.
    pub fn sums(&self, size: usize, run: &Run, add: impl Fn(&[f64], usize, f64, &mut [f64]) + Sync) -> Result<Vec<f64>> {
        let (rows, d) = (self.rows.rows(), self.columns());
        let of_band = |band: usize| -> Result<Vec<f64>> {
            run.check()?;
            let (mut sums, range) = (vec![0.0; size], band * BAND..((band + 1) * BAND).min(rows));
            let values = self.turned(range.clone());
            for (at, row) in range.enumerate() {
                add(&values[at * d..(at + 1) * d], row, self.weight(row), &mut sums);
            }
            Ok(sums)
        };
        let mut total = vec![0.0; size];
        // A few bands at a time, so that long tables do not take more space.
        let (bands, at_once) = (rows.div_ceil(BAND), 4 * rayon::current_num_threads());
        let _memory = run.reserve((at_once.min(bands) + 1) * (size + BAND * d) * size_of::<f64>())?;
        for first in (0..bands).step_by(at_once) {
            let sums = (first..bands.min(first + at_once)).into_par_iter().map(of_band).collect::<Result<Vec<_>>>()?;
            for sums in sums {
                total.iter_mut().zip(sums).for_each(|(sum, part)| *sum += part);
            }
        }
        Ok(total)
    }

    /// Some rows, one after the other.
    fn turned(&self, range: Range<usize>) -> Vec<f64> {
        let d = self.columns();
        let mut values = vec![0.0; range.len() * d];
        for (at, (column, factor)) in self.inputs.columns.iter().zip(&self.inputs.factors).enumerate() {
            let column = &self.rows.columns[*column][range.clone()];
            values.iter_mut().skip(at).step_by(d).zip(column).for_each(|(to, x)| *to = x * factor);
        }
        values
    }

    pub fn weight(&self, row: usize) -> f64 {
        self.rows.weights.get(row).copied().unwrap_or(1.0)
    }
}
