use crate::math::pursuit::Pursuit;
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

/// Pivot below which a column depends on the active ones.
const PIVOT: f64 = 1e-10;

/// Least angle regression with the LASSO's drops (Efron et al., 2004), off the span of what `pursuit` has taken in,
/// for a label of one column. Goes on until `stop` says so of a knot, or to the end of the path.
pub(crate) fn path(pursuit: &Pursuit<'_>, run: &Run, mut stop: impl FnMut(&Knot) -> bool) -> Result<Vec<Knot>> {
    let mut correlations = pursuit.correlations.clone();
    let mut open: Vec<bool> = (0..correlations.len()).map(|j| pursuit.is_open(j)).collect();
    let mut active: Vec<Active> = Vec::new();
    let mut knots: Vec<Knot> = Vec::new();
    let Some((mut lambda, first)) = steepest(&correlations, &open) else { return Ok(knots) };
    let mut change = Change::Enters(first);
    loop {
        run.step(knots.len(), correlations.len())?;
        let coefficients = active.iter().map(|a| (a.column, a.coefficient)).collect();
        knots.push(Knot { lambda, coefficients, change: Some(change) });
        if stop(&knots[knots.len() - 1]) {
            return Ok(knots);
        }
        match change {
            Change::Enters(column) => {
                let sign = correlations[column].signum();
                active.push(Active { column, coefficient: 0.0, sign, cross: pursuit.residual_cross(column) });
            }
            Change::Leaves(column) => active.retain(|a| a.column != column),
        }
        let Some(direction) = equiangular(&active) else {
            // The newcomer depends on the active ones: it can never have a coefficient of its own.
            let Change::Enters(column) = change else { return Ok(knots) };
            active.pop();
            open[column] = false;
            knots.pop();
            match entering(&correlations, &[], &open, &active, lambda, None) {
                Some((gap, next)) if gap <= 1e-12 * lambda => {
                    change = Change::Enters(next);
                    continue;
                }
                _ => {
                    // Go on from the same place without it.
                    let Some(direction) = equiangular(&active) else { return Ok(knots) };
                    change = advance(&mut lambda, &mut correlations, &mut active, &direction, &open, None);
                    if lambda <= 0.0 {
                        break;
                    }
                    continue;
                }
            }
        };
        let left = match change {
            Change::Leaves(column) => Some(column),
            Change::Enters(_) => None,
        };
        change = advance(&mut lambda, &mut correlations, &mut active, &direction, &open, left);
        if lambda <= 0.0 {
            break;
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

fn steepest(correlations: &[f64], open: &[bool]) -> Option<(f64, usize)> {
    let scores = correlations.iter().zip(open).map(|(c, open)| open.then_some(c.abs()));
    crate::math::argmax(scores).filter(|(_, c)| *c > 0.0).map(|(j, c)| (c, j))
}

/// `G_AA w = sign`: along w all active correlations shrink alike. `None` if the active columns depend on each other.
fn equiangular(active: &[Active]) -> Option<Vec<f64>> {
    let n = active.len();
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let inner = active[i].cross[active[j].column];
            let sum = inner - (0..j).map(|s| l[i * n + s] * l[j * n + s]).sum::<f64>();
            if i == j {
                if sum <= PIVOT * inner {
                    return None;
                }
                l[i * n + i] = sum.sqrt();
            } else {
                l[i * n + j] = sum / l[j * n + j];
            }
        }
    }
    let mut w: Vec<f64> = active.iter().map(|a| a.sign).collect();
    for i in 0..n {
        w[i] = (w[i] - (0..i).map(|j| l[i * n + j] * w[j]).sum::<f64>()) / l[i * n + i];
    }
    for i in (0..n).rev() {
        w[i] = (w[i] - (i + 1..n).map(|j| l[j * n + i] * w[j]).sum::<f64>()) / l[i * n + i];
    }
    Some(w)
}

/// Moves along `direction` to the next knot and says what happens there. At the end of the path `lambda` is 0.
fn advance(
    lambda: &mut f64,
    correlations: &mut [f64],
    active: &mut [Active],
    direction: &[f64],
    open: &[bool],
    left: Option<usize>,
) -> Change {
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
    *lambda = if change.is_none() { 0.0 } else { *lambda - step };
    change.unwrap_or(Change::Enters(usize::MAX))
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
        let slope = slopes.get(j).copied().unwrap_or(0.0);
        for (distance, speed) in [(lambda - c, 1.0 - slope), (lambda + c, 1.0 + slope)] {
            // The one that has just left is at no distance, and on its way inwards.
            if speed <= 1e-14 || (left == Some(j) && distance <= 1e-9 * lambda) {
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
