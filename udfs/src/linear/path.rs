//! The path of a model under a penalty that is lowered step by step, and in which order units come into it.

use crate::{Result, Run};

/// A model whose units have coefficients, or none, as a penalty allows.
pub(crate) trait Penalized {
    /// The penalty at which the first unit enters. What is not penalised is in already.
    fn first(&mut self, run: &Run) -> Result<f64>;

    /// To the optimum at a penalty, from wherever it is.
    fn descend(&mut self, penalty: f64, run: &Run) -> Result<()>;

    /// The length of each unit's coefficients; 0: it is not in the model.
    fn lengths(&self) -> Vec<f64>;

    fn coefficients(&self) -> Vec<f64>;

    /// Back to coefficients that it has had.
    fn go_to(&mut self, coefficients: &[f64], run: &Run) -> Result<()>;
}

/// A point of the path.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub penalty: f64,
    pub lengths: Vec<f64>,
    pub coefficients: Vec<f64>,
}

impl Point {
    fn of(model: &impl Penalized, penalty: f64) -> Self {
        Self { penalty, lengths: model.lengths(), coefficients: model.coefficients() }
    }
}

/// Times that units which enter together are looked at from nearer.
const HALVINGS: usize = 40;
/// Penalties from the first down to the least share of it.
const STEPS: i32 = 100;
const LEAST: f64 = 1e-3;

/// Lowers the penalty until more than `most` units are in that are penalised, or to its end. Returns the units that were ever in, in the order of their first
/// entry and with the penalty there, and the last point with no more than `most`.
pub(crate) fn path(
    model: &mut impl Penalized,
    is_penalized: &[bool],
    most: usize,
    run: &Run,
) -> Result<(Vec<(usize, f64)>, Point)> {
    let first = model.first(run)?;
    let mut order: Vec<(usize, f64)> = Vec::new();
    let mut before = Point::of(model, first);
    let mut penalties: Vec<f64> = (1..=STEPS).rev().map(|step| first * LEAST.powf(f64::from(step) / f64::from(STEPS))).collect();
    let mut halvings = 0;
    while let Some(penalty) = penalties.pop().filter(|_| first > 0.0) {
        run.step(order.len(), most)?;
        model.descend(penalty, run)?;
        let now = Point::of(model, penalty);
        let active: Vec<usize> = (0..is_penalized.len()).filter(|unit| is_penalized[*unit] && now.lengths[*unit] > 0.0).collect();
        let mut new: Vec<usize> = active.iter().copied().filter(|unit| order.iter().all(|(known, _)| known != unit)).collect();
        // Two at once, or one too many: look between, so that their order and the last point are known.
        if halvings < HALVINGS && (new.len() > 1 || active.len() > most) && before.penalty - penalty > 1e-9 * first {
            halvings += 1;
            penalties.push(penalty);
            penalties.push(0.5 * (before.penalty + penalty));
            model.go_to(&before.coefficients, run)?;
            continue;
        }
        halvings = 0;
        new.sort_by(|a, b| now.lengths[*b].total_cmp(&now.lengths[*a]).then(a.cmp(b)));
        // Of those that cannot be told apart the first, as far as there is room.
        let room = most.saturating_sub(active.len() - new.len());
        let is_last = active.len() > most;
        if is_last && room == 0 {
            break;
        }
        order.extend(new.into_iter().take(room).map(|unit| (unit, before.penalty)));
        before = now;
        if is_last {
            break;
        }
    }
    Ok((order, before))
}
