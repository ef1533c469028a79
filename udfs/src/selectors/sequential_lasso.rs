use crate::math::TIE;
use crate::math::argmax;
use crate::math::nnls::nonnegative;
use crate::math::products::Products;
use crate::math::pursuit::{Pursuit, pursue};
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Sequential LASSO.
    ///
    /// A LASSO that never penalises what it has chosen already: lower the penalty until the first feature enters,
    /// choose it, free it of the penalty, and begin again.
    ///
    /// With `S` the chosen set it looks at `min ½‖y − Xβ‖² + λ Σ |β_j|`, the sum over `j` not in `S`, features and label
    /// scaled to length 1.
    ///
    /// 1. the largest penalty at which a feature enters is `λ* = max |x_j · r|`, `r` the residual of least squares on `S`
    /// 2. choose the feature that enters there. When several attain the maximum, not all of them need enter: the
    ///    directions just below `λ*` solve a small non-negative least-squares problem, and the first feature with a
    ///    positive one is chosen
    ///
    /// Without ties this is orthogonal matching pursuit (theorem 3.3 of the second source), which is why one engine serves both.
    ///
    /// Cost: one pass over the table, then `features × k` operations a choice.
    ///
    /// Source: Luo and Chen, 2014. Sequential LASSO cum EBIC for feature selection. Yasuda, Bateni, Chen, Fahrbach, Fu
    /// and Mirrokni, 2023. Sequential attention for feature selection.
    #[selector(
        name = "sequential_lasso",
        aliases = ["slasso"],
        labels = Any,
        score = "penalty at which the feature enters",
    )]
    pub struct SequentialLasso {}
}

impl Selector for SequentialLasso {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem);
        pursue(
            problem,
            &products,
            run,
            |pursuit, unit| pursuit.correlation(unit),
            |pursuit, open| {
                let Some((at, lambda)) = argmax(open.iter().map(|unit| Some(pursuit.correlation(*unit)))) else {
                    return Ok(None);
                };
                if lambda <= f64::EPSILON {
                    return Ok(None);
                }
                let is_tied = |unit: &usize| pursuit.correlation(*unit) >= lambda * (1.0 - 8.0 * TIE);
                let tied: Vec<usize> = open.iter().copied().filter(is_tied).collect();
                let unit = if tied.len() > 1 { first_to_enter(pursuit, &tied) } else { open[at] };
                Ok(Some((unit, pursuit.correlation(unit))))
            },
        )
    }
}

/// Of units that attain λ* together, the first that truly enters just below it.
///
/// There the coefficients leave zero as `(λ* − λ) v` times the signs of the correlations, where `v ≥ 0` minimises
/// `½ vᵀ H v − 1ᵀ v` and `H` holds the inner products of the tied directions off the span of the chosen. The theorem
/// only says that the entering set is among the tied; a tied feature with `v = 0` never enters.
fn first_to_enter(pursuit: &Pursuit<'_>, tied: &[usize]) -> usize {
    let directions: Vec<Vec<(usize, f64)>> = tied.iter().map(|unit| steepest_direction(pursuit, *unit)).collect();
    let m = tied.len();
    let mut h = vec![0.0; m * m];
    for i in 0..m {
        for j in 0..m {
            for (a, wa) in &directions[i] {
                for (b, wb) in &directions[j] {
                    h[i * m + j] += wa * wb * pursuit.residual_inner(*a, *b);
                }
            }
        }
    }
    let v = nonnegative(&h, m);
    let largest = v.iter().copied().fold(0.0, f64::max);
    v.iter().position(|v| *v > 1e-9 * largest).map_or(tied[0], |at| tied[at])
}

/// The combination of a unit's columns that is most correlated with the residual. For one column: its sign.
///
/// With several label columns each has its own residual; the first of them gives the direction, which is exact for
/// numbers and two classes and a heuristic for more.
fn steepest_direction(pursuit: &Pursuit<'_>, unit: usize) -> Vec<(usize, f64)> {
    let q = pursuit.products.labels;
    let columns = pursuit.products.units[unit].clone();
    let strongest = (0..q)
        .map(|label| columns.clone().map(|j| pursuit.correlations[j * q + label].powi(2)).sum::<f64>())
        .enumerate()
        .fold((0, 0.0), |best, (label, s)| if s > best.1 { (label, s) } else { best });
    let length = strongest.1.sqrt();
    columns.map(|j| (j, pursuit.correlations[j * q + strongest.0] / length)).collect()
}
