use crate::network::mlp::Mlp;
use crate::network::samples::Inputs;
use crate::network::training::Training;
use crate::neural::workbench::{self, Workbench};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// LassoNet: a network whose features leave one by one.
    ///
    /// The network has a direct way from each feature to the outputs, beside its hidden layers, under the penalty `λ Σ ‖β_j‖` on the direct weights, and no weight of a feature into the hidden layers may be larger than `hierarchy × ‖β_j‖`.
    /// So a feature whose direct weights vanish is out of the whole network. It is trained without the penalty first, and then while the penalty grows until nothing is left; features are ranked by the penalty at which they leave.
    ///
    /// The first part of the training is done by Adam, the other by gradient descent with momentum; after each of its steps the weights of a feature move to where penalty and constraint have them (Hier-Prox), in closed form.
    ///
    /// Where we depart from the authors' program: the path has a fixed number of penalties, from one that hardly removes anything to one that removes everything, each for as many steps, where they raise it by 2 % whenever held-out rows
    /// do not improve any more; and a feature that has left does not come back, so that the network shrinks as it goes.
    ///
    /// Cost: `4 × features × hidden` operations for each row of each pass, less as features leave.
    ///
    /// Source: Lemhadri, Ruan, Abraham and Tibshirani, 2021. LassoNet: a neural network with feature sparsity.
    #[selector(
        name = "lassonet",
        aliases = [],
        labels = Any,
        score = "penalty at which the feature leaves the network",
    )]
    pub struct LassoNet {
        /// How many times as large as the length of its direct weights a feature's weight into the hidden layers may be. 0: a linear model.
        hierarchy: f64 = 10.0, Check::Between(0.0, 1e6);
        ..training: Training;
    }
}

impl Selector for LassoNet {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        workbench::select(problem, &self.training, run, |bench, most| self.order(bench, most))
    }
}

/// Share of the training before there is a penalty.
const DENSE: f64 = 0.3;
/// Penalties on the path.
const PENALTIES: usize = 150;
/// Descent takes steps this many times as large as Adam's.
const STRIDE: f64 = 10.0;
/// The first penalty would take so many times as long as it has for the weakest feature.
const EARLY: f64 = 10.0;
/// How the penalty goes on growing if something is left at the end, and how often.
const GROWTH: f64 = 1.2;
const MORE: usize = 200;
/// Share of the inputs that must have left before the network is made smaller.
const SMALLER: f64 = 0.1;

impl LassoNet {
    fn order(&self, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        let inputs = Inputs::new(bench.problem, bench.rows, bench.candidates.columns.clone());
        let widths = Mlp::widths_with_skip(&inputs, &self.training.hidden);
        let batch_rows = self.training.batch_rows(bench.trainer.pass_rows());
        let _memory = bench.run.reserve(Mlp::bytes_for(&inputs, &widths, batch_rows))?;
        bench.trainer.mlp = Mlp::with_skip(&inputs, &self.training.hidden, bench.run);
        let rate = self.training.learning_rate;
        let steps = self.training.steps(bench.trainer.pass_rows(), most.max(20));
        let dense = (DENSE * steps as f64) as usize;
        let (short, all) = ((steps - dense).div_ceil(PENALTIES).max(1), dense + PENALTIES);
        for step in 0..dense {
            if step % 100 == 0 {
                bench.run.step_with(step, all, || bench.trainer.note())?;
            }
            bench.trainer.draw();
            bench.trainer.train_by(|mlp, samples, rows, batch| mlp.train_with_skip(samples, rows, rate, batch))?;
        }
        bench.trainer.mlp.rest();
        let mut leaving = Leaving::new(bench, self.hierarchy);
        let rate = STRIDE * rate;
        let (low, high) = leaving.penalties(bench, rate, short);
        for at in 0..PENALTIES + MORE {
            if leaving.is_over() {
                break;
            }
            bench.run.step_with(dense + at.min(PENALTIES), all, || bench.trainer.note())?;
            let path = (at.min(PENALTIES - 1) as f64) / (PENALTIES - 1) as f64;
            let penalty = low * (high / low).powf(path) * GROWTH.powi((at + 1).saturating_sub(PENALTIES) as i32);
            leaving.train(bench, penalty, rate, short)?;
        }
        Ok(leaving.order(bench, most))
    }
}

/// Features on their way out.
struct Leaving {
    hierarchy: f64,
    /// The candidates that are inputs of the network, in order, and whether each is still in use.
    alive: Vec<(usize, bool)>,
    /// Those that have left, the first first, and the penalty at which they did.
    gone: Vec<(usize, f64)>,
    /// Those that stay.
    forced: Vec<usize>,
    /// The penalty that there was last.
    last: f64,
}

impl Leaving {
    fn new(bench: &Workbench<'_>, hierarchy: f64) -> Self {
        let alive = (0..bench.candidates.len()).map(|candidate| (candidate, true)).collect();
        Self { hierarchy, alive, gone: Vec::new(), forced: bench.forced.clone(), last: 0.0 }
    }

    fn is_over(&self) -> bool {
        self.alive.iter().all(|(candidate, is_used)| !is_used || self.forced.contains(candidate))
    }

    /// The inputs of each of the candidates that the network has.
    fn inputs(&self, bench: &Workbench<'_>) -> Vec<std::ops::Range<usize>> {
        let mut start = 0;
        let mut range = |(candidate, _): &(usize, bool)| {
            let width = bench.candidates.inputs[*candidate].len();
            start += width;
            start - width..start
        };
        self.alive.iter().map(&mut range).collect()
    }

    /// A penalty that hardly takes the weakest feature out in some steps, and one that takes all out in a single one.
    fn penalties(&self, bench: &Workbench<'_>, rate: f64, steps: usize) -> (f64, f64) {
        let needed = |inputs: std::ops::Range<usize>| {
            let (direct, hidden) = bench.trainer.mlp.weights_of(inputs);
            let length = direct.iter().map(|w| w * w).sum::<f64>().sqrt();
            length + self.hierarchy * hidden.iter().map(|w| w.abs()).sum::<f64>()
        };
        let all: Vec<f64> = self.inputs(bench).into_iter().map(needed).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min).max(1e-12);
        let most = all.iter().copied().fold(least, f64::max);
        (least / (rate * steps as f64 * EARLY), most / rate)
    }

    /// Some steps under a penalty.
    fn train(&mut self, bench: &mut Workbench<'_>, penalty: f64, rate: f64, steps: usize) -> Result<()> {
        let inputs = self.inputs(bench);
        let length = |bench: &Workbench<'_>, at: usize| {
            let (direct, _) = bench.trainer.mlp.weights_of(inputs[at].clone());
            direct.iter().map(|w| w * w).sum::<f64>().sqrt()
        };
        let before: Vec<f64> = (0..inputs.len()).map(|at| length(bench, at)).collect();
        let forced = &self.forced;
        let own = |(candidate, is_used): &(usize, bool)| match (is_used, forced.contains(candidate)) {
            (false, _) => f64::INFINITY,
            (_, true) => 0.0,
            _ => penalty * rate,
        };
        let penalties: Vec<f64> = self.alive.iter().map(own).collect();
        for _ in 0..steps {
            bench.trainer.draw();
            bench.trainer.train_by(|mlp, samples, rows, batch| {
                let loss = mlp.roll_with_skip(samples, rows, rate, batch)?;
                for (inputs, penalty) in inputs.iter().zip(&penalties) {
                    mlp.shrink(inputs.clone(), *penalty, self.hierarchy);
                }
                Ok(loss)
            })?;
        }
        let mut left: Vec<usize> = (0..inputs.len()).filter(|at| self.alive[*at].1 && length(bench, *at) == 0.0).collect();
        left.sort_by(|a, b| before[*a].total_cmp(&before[*b]).then(b.cmp(a)));
        for at in left {
            self.alive[at].1 = false;
            self.gone.push((self.alive[at].0, penalty));
        }
        self.last = penalty;
        let used = self.alive.iter().filter(|(_, is_used)| *is_used).count();
        if used > 0 && (used as f64) < (1.0 - SMALLER) * self.alive.len() as f64 {
            let kept: Vec<usize> = inputs
                .iter()
                .zip(&self.alive)
                .filter(|(_, (_, is_used))| *is_used)
                .flat_map(|(range, _)| range.clone())
                .collect();
            bench.trainer.keep_inputs(&kept)?;
            self.alive.retain(|(_, is_used)| *is_used);
        }
        Ok(())
    }

    /// The last to leave first, behind those that must stay.
    fn order(self, bench: &Workbench<'_>, most: usize) -> Vec<(usize, f64)> {
        let mut stayed: Vec<(usize, f64)> = Vec::new();
        for ((candidate, is_used), inputs) in self.alive.iter().zip(self.inputs(bench)) {
            if *is_used && !self.forced.contains(candidate) {
                stayed.push((*candidate, bench.trainer.mlp.weights_of(inputs).0.iter().map(|w| w * w).sum()));
            }
        }
        stayed.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let last = self.last;
        let first = self
            .forced
            .iter()
            .copied()
            .chain(stayed.into_iter().map(|(candidate, _)| candidate))
            .map(|candidate| (candidate, last));
        let gone = self.gone.iter().rev().filter(|(candidate, _)| !self.forced.contains(candidate)).copied();
        first.chain(gone).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// Products and bends, which a linear model cannot see.
    #[test]
    fn a_bent_label_is_seen() {
        let table = Table::random(800, 12, 5);
        let label = (0..800).map(|row| {
            let x = |j: usize| table.column(j)[row];
            2.0 * x(3).abs() + 1.5 * x(7) * x(9)
        });
        let label: Vec<f64> = label.collect();
        let mut chosen = LassoNet::default().select(&table.k(3).problem_of_rows(&label), &Run::new(1)).unwrap().units();
        chosen.sort_unstable();
        assert_eq!(chosen, [3, 7, 9]);
    }
}
