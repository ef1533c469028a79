use crate::kernels::TIE;
use crate::kernels::argmax;
use crate::linear::nnls::nonnegative;
use crate::linear::products::Products;
use crate::linear::pursuit::{Pursuit, pursue};
use crate::network::samples::{Inputs, Samples};
use crate::network::training::{Schedule, Training};
use crate::neural::group_penalty::Penalized;
use crate::neural::one_pass::{Course, Method, Network, OnePass, Passing, Stream};
use crate::neural::workbench::{self, Workbench};
use crate::{Check, Pass, Plan, Problem, Ranking, Reads, Result, Run, Selector, Streaming, choice, selector};

choice! {
    /// What predicts the label.
    pub enum Model {
        Linear = "linear",
        Mlp = "mlp",
    }
}

selector! {
    /// Sequential LASSO: greedy, by the penalty that lets one in.
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
    /// A text column or a group counts as the single column that it is worth beyond chance.
    ///
    /// Without ties this is orthogonal matching pursuit (theorem 3.3 of the second source), which is why one engine serves both.
    ///
    /// `model => 'mlp'` does the same with a network: its loss plus `penalty × Σ ‖w_j‖` over the features that are not chosen, `w_j` the
    /// weights with which feature `j` enters the hidden layer. At the end of each round the feature with the longest `w_j` is chosen and freed.
    ///
    /// With `passes => 'one'` that network reads the table once, row by row, for tables that do not fit into memory: each round sees its own slice of the rows.
    ///
    /// Cost: one pass over the table, then `features × k` operations a choice; with a network `4 × features × hidden` operations
    /// for each row of each pass.
    ///
    /// Source: Luo and Chen, 2014. Sequential LASSO cum EBIC for feature selection. Yasuda, Bateni, Chen, Fahrbach, Fu
    /// and Mirrokni, 2023. Sequential attention for feature selection.
    #[selector(
        name = "sequential_lasso",
        aliases = ["slasso"],
        labels = Any,
        score = "penalty at which the feature enters; with a network, its share of the length of all weights",
    )]
    pub struct SequentialLasso {
        /// What predicts the label.
        model: Model = Model::Linear;
        /// Network: weight of the penalty.
        penalty: f64 = 0.01, Check::Between(0.0, 1e6);
        ..passing: Passing;
        ..training: Training;
    }
}

impl Selector for SequentialLasso {
    fn reads(&self) -> Reads {
        match self.model {
            Model::Linear => Reads::Moments,
            Model::Mlp => self.passing.reads(),
        }
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        matches!(self.reads(), Reads::Pass(_)).then_some(self)
    }

    fn is_prefix(&self) -> bool {
        self.model == Model::Linear
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        if self.model == Model::Mlp {
            return workbench::select(problem, &self.training, run, |bench, most| neural_order(self.penalty, bench, most));
        }
        let products = Products::new(problem, run)?;
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

    fn unused(&self, option: &str) -> Option<&'static str> {
        let is_for_networks = option == "penalty" || Training::has(option) || Passing::has(option);
        if is_for_networks && self.model != Model::Mlp { Some("model => 'mlp'") } else { self.passing.unused(option) }
    }
}

impl Streaming for SequentialLasso {
    fn begin(&self, problem: &Problem, plan: &Plan, rows: u64, run: &Run) -> Result<Box<dyn Pass>> {
        let stream = Stream { problem, plan, total: rows };
        let method = |network: &mut Network, _: &Inputs| Freeing {
            penalized: Penalized::new(&mut network.mlp, &network.candidates, &network.forced, self.penalty),
            order: network.forced.iter().map(|candidate| (*candidate, 1.0)).collect(),
        };
        OnePass::begin(&stream, &self.training, &Course { warmup: WARMUP, per_round: Some(1) }, method, run)
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

/// Share of the training before the first round.
const WARMUP: f64 = 0.1;

/// The longest weights at the end of each round; who is chosen is free of the penalty from then on.
fn neural_order(penalty: f64, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
    let rounds = most.saturating_sub(bench.forced.len());
    let schedule = Schedule::new(bench.training, bench.trainer.pass_rows(), rounds, WARMUP);
    let mut penalized = Penalized::new(&mut bench.trainer.mlp, &bench.candidates, &bench.forced, penalty);
    let mut order: Vec<(usize, f64)> = bench.forced.iter().map(|candidate| (*candidate, 1.0)).collect();
    for round in 0..rounds {
        bench.run.step_with(round, rounds, || bench.trainer.note())?;
        let warm = if round == 0 { schedule.warm } else { 0 };
        for _ in 0..warm + schedule.round(round) {
            bench.penalized_step(&mut penalized)?;
        }
        order.extend(penalized.choose(&bench.trainer.mlp, &bench.candidates));
    }
    Ok(order)
}

/// One pass: the same rounds on a stream of rows.
struct Freeing {
    penalized: Penalized,
    order: Vec<(usize, f64)>,
}

impl Method for Freeing {
    fn step(&mut self, network: &mut Network, batch: &Samples, rows: &[u32], _: bool) -> Result<f64> {
        let Network { mlp, candidates, space, learning_rate, .. } = network;
        self.penalized.step(mlp, candidates, (batch, rows), *learning_rate, space)
    }

    fn end_round(&mut self, network: &Network, was_warm: bool) {
        if !was_warm && self.order.len() < network.most {
            self.order.extend(self.penalized.choose(&network.mlp, &network.candidates));
        }
    }

    fn order(&mut self, _: &Network) -> Vec<(usize, f64)> {
        std::mem::take(&mut self.order)
    }
}
