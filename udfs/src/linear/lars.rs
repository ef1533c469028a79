use crate::kernels::argmax;
use crate::kernels::cholesky::Cholesky;
use crate::linear::pursuit::Pursuit;
use crate::{Result, Run};

/// A point of the LASSO path at which a column enters or leaves.
#[derive(Debug, Clone)]
pub(crate) struct Knot {
    /// The penalty here: every active column has this correlation with the residual.
    pub lambda: f64,
    /// Coefficients here of the columns that were active on the way from the knot before, in order of entry.
    pub coefficients: Vec<(usize, f64)>,
    /// What changes here; nothing at the end of the path.
    pub change: Option<Change>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Enters(usize),
    Leaves(usize),
}

/// Share of the first penalty below which the path is at its end: nothing is left to explain but rounding.
const END: f64 = 1e-14;

/// Least angle regression with the LASSO's drops (Efron et al., 2004), off the span of what `pursuit` has taken in,
/// for a label of one column. Goes on until `stop` says so of a knot, or to the end of the path.
pub(crate) fn path(pursuit: &Pursuit<'_>, run: &Run, mut stop: impl FnMut(&Knot) -> bool) -> Result<Vec<Knot>> {
    let mut correlations = pursuit.correlations.clone();
    let mut open: Vec<bool> = (0..correlations.len()).map(|j| pursuit.is_open(j)).collect();
    let mut active: Vec<Active> = Vec::new();
    let mut factor = Cholesky::default();
    let mut knots: Vec<Knot> = Vec::new();
    let Some((first, mut lambda)) = steepest(&correlations, &open) else { return Ok(knots) };
    let end = END * lambda;
    let mut change = Change::Enters(first);
    while lambda > end {
        run.step(knots.len(), correlations.len())?;
        let coefficients: Vec<(usize, f64)> = active.iter().map(|a| (a.column, a.coefficient)).collect();
        let mut left = None;
        let is_knot = match change {
            Change::Enters(column) => {
                let cross = pursuit.residual_cross(column);
                let others = |at: usize| active.get(at).map_or(cross[column], |a| cross[a.column]);
                let is_independent = factor.push(others);
                if is_independent {
                    let sign = correlations[column].signum();
                    active.push(Active { column, coefficient: 0.0, sign, cross });
                } else {
                    // It depends on the active ones: it can never have a coefficient of its own.
                    open[column] = false;
                }
                is_independent
            }
            Change::Leaves(column) => {
                left = Some(column);
                active.retain(|a| a.column != column);
                factor = Cholesky::of(active.len(), |i, j| active[i].cross[active[j].column]).unwrap_or_default();
                true
            }
        };
        if is_knot {
            let knot = Knot { lambda, coefficients, change: Some(change) };
            let is_last = stop(&knot);
            knots.push(knot);
            if is_last {
                return Ok(knots);
            }
        }
        // G_AA w = sign: along w all active correlations shrink alike.
        let mut direction: Vec<f64> = active.iter().map(|a| a.sign).collect();
        factor.solve(&mut direction);
        match advance(&mut lambda, &mut correlations, &mut active, &direction, &open, left) {
            Some(next) => change = next,
            None => break,
        }
    }
    let coefficients = active.iter().map(|a| (a.column, a.coefficient)).collect();
    knots.push(Knot { lambda: 0.0, coefficients, change: None });
    Ok(knots)
}

struct Active {
    column: usize,
    coefficient: f64,
    sign: f64,
    cross: Vec<f64>,
}

fn steepest(correlations: &[f64], open: &[bool]) -> Option<(usize, f64)> {
    let scores = correlations.iter().zip(open).map(|(c, open)| open.then_some(c.abs()));
    argmax(scores).filter(|(_, c)| *c > 0.0)
}

/// Moves along `direction` to the next knot and says what happens there; `None` at the end of the path.
fn advance(
    lambda: &mut f64,
    correlations: &mut [f64],
    active: &mut [Active],
    direction: &[f64],
    open: &[bool],
    left: Option<usize>,
) -> Option<Change> {
    let mut slopes = vec![0.0; correlations.len()];
    for (a, w) in active.iter().zip(direction) {
        slopes.iter_mut().zip(&a.cross).for_each(|(slope, cross)| *slope += w * cross);
    }
    let mut step = *lambda;
    let mut change = None;
    if let Some((gap, column)) = entering(correlations, &slopes, open, active, *lambda, left)
        && gap < step
    {
        step = gap;
        change = Some(Change::Enters(column));
    }
    for (a, w) in active.iter().zip(direction) {
        let zero = -a.coefficient / w;
        if a.coefficient != 0.0 && zero > 0.0 && zero < step {
            step = zero;
            change = Some(Change::Leaves(a.column));
        }
    }
    for (a, w) in active.iter_mut().zip(direction) {
        a.coefficient = if change == Some(Change::Leaves(a.column)) { 0.0 } else { a.coefficient + step * w };
    }
    correlations.iter_mut().zip(&slopes).for_each(|(c, slope)| *c -= step * slope);
    *lambda -= step;
    change
}

/// The column outside the active set that catches up with it first, and by how much λ will have fallen then.
fn entering(
    correlations: &[f64],
    slopes: &[f64],
    open: &[bool],
    active: &[Active],
    lambda: f64,
    left: Option<usize>,
) -> Option<(f64, usize)> {
    let mut first: Option<(f64, usize)> = None;
    for (j, c) in correlations.iter().enumerate() {
        if !open[j] || active.iter().any(|a| a.column == j) {
            continue;
        }
        let slope = slopes[j];
        for (distance, speed) in [(lambda - c, 1.0 - slope), (lambda + c, 1.0 + slope)] {
            // The one that has just left is at no distance, and on its way inwards.
            if speed <= 1e-12 || (left == Some(j) && distance <= 1e-9 * lambda) {
                continue;
            }
            let gap = distance.max(0.0) / speed;
            if first.is_none_or(|(best, _)| gap < best * (1.0 - 1e-12)) {
                first = Some((gap, j));
            }
        }
    }
    first
}
