//! Pursuit by a network: the gradient of the loss by a feature's weights in the place of the correlation.
//!
//! Where we depart from the authors' program: the gradient is taken over many rows and not over one batch, and before anything is
//! chosen, when no ReLU is active and every gradient is 0, the linear score decides. Together they make a weak method a good one.

use crate::kernels::argmax;
use crate::linear::products::Products;
use crate::linear::pursuit::Pursuit;
use crate::network::mlp::Gate;
use crate::network::training::Schedule;
use crate::neural::workbench::Workbench;
use crate::{Problem, Result, Run};

/// Rows over which the gradient is taken.
const ROWS_MAX: usize = 8192;

pub(super) fn order(bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
    let rounds = most.saturating_sub(1);
    let schedule = Schedule::new(bench.training, bench.trainer.pass_rows(), rounds, 0.0);
    let candidates = bench.candidates.len();
    let (mut mask, mut of_inputs) = (vec![0.0; candidates], vec![0.0; bench.candidates.columns.len()]);
    let sample = bench.trainer.samples.some(ROWS_MAX, &mut bench.run.random("omp rows", 0), bench.run)?;
    let mut order: Vec<(usize, f64)> = Vec::new();
    while order.len() < most {
        bench.run.step_with(order.len(), most, || bench.trainer.note())?;
        let scores = if order.is_empty() {
            linear_scores(bench.problem, &bench.candidates.units, bench.run)?
        } else {
            for _ in 0..schedule.round(order.len() - 1) {
                bench.trainer.step(Gate { mask: Some(&of_inputs), decay: None }, bench.training.learning_rate)?;
            }
            let trainer = &mut bench.trainer;
            let slopes = trainer.mlp.input_slopes(&sample, &of_inputs, &mut trainer.batch, bench.run)?;
            let of_unit = |inputs: &std::ops::Range<usize>| slopes[inputs.clone()].iter().map(|s| s * s).sum::<f64>().sqrt();
            bench.candidates.inputs.iter().map(of_unit).collect()
        };
        let (candidate, score) = match bench.forced.get(order.len()) {
            Some(candidate) => (*candidate, scores[*candidate]),
            None => {
                let open = (0..candidates).map(|at| (mask[at] == 0.0).then(|| scores[at]));
                let Some(best) = argmax(open) else { break };
                best
            }
        };
        mask[candidate] = 1.0;
        bench.candidates.spread(&mask, &mut of_inputs);
        order.push((candidate, score));
    }
    Ok(order)
}

/// The correlation of each unit with the label.
fn linear_scores(problem: &Problem, units: &[usize], run: &Run) -> Result<Vec<f64>> {
    let products = Products::new(problem, run)?;
    let pursuit = Pursuit::new(&products);
    Ok(units.iter().map(|unit| pursuit.correlation(*unit)).collect())
}
