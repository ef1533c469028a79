//! Least squares, in double precision.

use crate::kernels::cholesky::Cholesky;
use crate::models::additive::{self, Learnt};
use crate::models::design::Design;
use crate::models::table::Row;
use crate::{Error, Label, Problem, Result, Run};

/// The coefficients that make the squared error small, and `½ penalty ‖β‖²` for each unit of weight of the rows. A column that depends on those before it has 0.
pub(crate) fn fit(problem: &Problem, penalty: f64, run: &Run) -> Result<Vec<Row>> {
    if problem.label != Label::Numbers {
        return Err(Error::data(
            "model => 'linear' predicts numbers, and the label has classes; use model => 'logistic', 'boosting' or 'mlp', or set task => 'regression' if they are numbers",
        ));
    }
    let design = Design::new(problem);
    let d = design.columns();
    let _memory = run.reserve((3 * d * d + 4 * d) * size_of::<f64>())?;
    let total = design.rows.weight();
    let label = &design.rows.labels[0];
    // The lower half of XᵀX row by row, then Xᵀy.
    let half = d * (d + 1) / 2;
    let sums = design.sums(half + d, run, |x, row, weight, sums| {
        let mut at = 0;
        for i in 0..d {
            let factor = weight * x[i];
            sums[at..at + i + 1].iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
            at += i + 1;
        }
        let y = weight * label[row];
        sums[half..].iter_mut().zip(x).for_each(|(sum, x)| *sum += y * x);
    })?;
    let (ridge, mut factor, mut kept) = (penalty * total, Cholesky::default(), Vec::with_capacity(d));
    for i in 0..d {
        run.check()?;
        let element =
            |j: usize| sums[i * (i + 1) / 2 + kept.get(j).copied().unwrap_or(i)] + if j == kept.len() { ridge } else { 0.0 };
        if factor.push(element) {
            kept.push(i);
        }
    }
    let mut side: Vec<f64> = kept.iter().map(|i| sums[half + i]).collect();
    factor.solve(&mut side);
    let mut beta = vec![0.0; d];
    kept.iter().zip(&side).for_each(|(i, b)| beta[*i] = *b);
    // What the products lost in digits shows in the residual, and solving for that once more brings it back.
    let rest = design.sums(d, run, |x, row, weight, sums| {
        let miss = weight * (label[row] - x.iter().zip(&beta).map(|(x, b)| x * b).sum::<f64>());
        sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += miss * x);
    })?;
    let mut side: Vec<f64> = kept.iter().map(|i| rest[*i] - ridge * beta[*i]).collect();
    factor.solve(&mut side);
    kept.iter().zip(&side).for_each(|(i, b)| beta[*i] += b);
    let coefficients: Vec<f64> = beta.iter().zip(&design.inputs.factors).map(|(b, factor)| b * factor).collect();
    let learnt: Vec<Learnt<'_>> = design
        .inputs
        .columns
        .iter()
        .zip(coefficients.chunks(1))
        .map(|(column, coefficients)| Learnt { column: *column, coefficients })
        .collect();
    Ok(additive::rows("linear", problem, &[design.inputs.target.0], &learnt))
}
