use crate::linear::descent::Descent;
use crate::linear::path::Penalized;
use crate::linear::penalized::Penalties;
use crate::linear::products::Products;
use crate::linear::pursuit::Pursuit;
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Adaptive LASSO: what least squares likes is penalised less.
    ///
    /// A LASSO with the penalty `λ Σ |β_j| / |b_j|^gamma`, where `b` are the coefficients of least squares, for label and features of length 1. So it shrinks large coefficients little, and finds the right set where the plain LASSO, which shrinks all alike, takes
    /// useless features along with the useful. With more columns than rows, where least squares fits anything, `b` is a ridge regression's.
    ///
    /// Features are ranked in the order in which they come in. A text or a group comes in with all its columns, and more than two classes are predicted jointly: absolute values are then lengths. `penalty => 0.05` asks for the model at that
    /// penalty instead of for a number of features.
    ///
    /// Cost: one pass over the table, least squares on all features (`features³`), then as `elastic_net`.
    ///
    /// Source: Zou, 2006. The adaptive lasso and its oracle properties.
    #[selector(
        name = "adaptive_lasso",
        aliases = [],
        labels = Any,
        score = "penalty at which the feature enters",
    )]
    pub struct AdaptiveLasso {
        /// How much the coefficients of least squares count.
        gamma: f64 = 1.0, Check::Between(0.1, 10.0);
        /// The penalty, instead of a number of features.
        penalty: Option<f64> = None, Check::Between(0.0, 1.0);
    }
}

/// The ridge of the first regression where there are not enough rows for least squares.
const RIDGE: f64 = 0.1;

impl Selector for AdaptiveLasso {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn has_size(&self) -> bool {
        self.penalty.is_some()
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        let lengths = first(&products, run)?;
        let weight = |length: &f64| if *length > 0.0 { length.powf(-self.gamma).min(1e12) } else { f64::INFINITY };
        let weights = lengths.iter().map(weight).collect();
        Penalties { problem, products: &products, weights, mix: 1.0, penalty: self.penalty }.ranking(run)
    }
}

/// The length of each unit's coefficients when all are in.
fn first(products: &Products, run: &Run) -> Result<Vec<f64>> {
    if products.columns() as f64 + 1.0 >= products.rows {
        let mut ridge = Descent::new(products, vec![1.0; products.units.len()], 0.0, run)?;
        ridge.descend(RIDGE, run)?;
        return Ok(ridge.lengths());
    }
    // A factor as wide as the table, and as high as it has columns.
    let _memory = run.reserve(products.columns() * products.columns() * size_of::<f64>())?;
    let mut pursuit = Pursuit::new(products);
    for unit in 0..products.units.len() {
        run.check()?;
        pursuit.take_unit(unit);
    }
    let mut squares = vec![0.0; products.units.len()];
    for coefficients in pursuit.all_coefficients() {
        let columns = pursuit.columns.iter().zip(coefficients);
        columns.for_each(|(column, beta)| squares[products.unit_of[*column]] += beta * beta);
    }
    Ok(squares.into_iter().map(f64::sqrt).collect())
}
