//! One pass (appendix B.3 of the paper): the same rounds on a stream of rows, each of which is seen once.
//!
//! Rows wait in a buffer and leave it in random order, so that rows which arrive together are not learnt from together. What is kept
//! is the buffer and the network: memory does not grow with the table.

mod encoder;
mod feed;

use super::SequentialAttention;
use super::attention::Attention;
use crate::network::batch::Batch;
use crate::network::mlp::{Gate, Mlp};
use crate::network::samples::{Inputs, Samples};
use crate::network::training::Schedule;
use crate::neural::candidates::Candidates;
use crate::neural::workbench;
use crate::{Block, Error, Numbers, Pass, Plan, Problem, Ranking, Result, Run};
use encoder::Encoder;
use feed::{Feed, Repeats};

/// Steps that a round should have; the batches are as large as that allows.
const ROUND_STEPS: usize = 200;
/// Steps that a round has at least. If the rows that are left at the end are too few for that, they are seen again.
const ROUND_STEPS_MIN: usize = 10;
const BATCH_MIN: usize = 32;
const BATCH_MAX: usize = 256;

/// The rows that come in, and the network that learns from those that came before.
pub(super) struct OnePass {
    feed: Feed,
    learner: Learner,
}

/// Rows to learn from in one step, and how many steps there will be in all as far as could be told when they left.
struct Portion {
    samples: Samples,
    steps: usize,
}

struct Learner {
    candidates: Candidates,
    most: usize,
    per_round: usize,
    learning_rate: f64,
    attention_rate: f64,
    warmup: f64,
    rounds: usize,
    /// From which step on the rounds from which on share the steps of which total.
    shared: (usize, usize, usize),
    space: Batch,
    rows: Vec<u32>,
    mlp: Mlp,
    attention: Attention,
    mask: Vec<f32>,
    slopes: Vec<f32>,
    order: Vec<(usize, f64)>,
    /// The warm-up is round 0.
    round: usize,
    /// Steps done, and those that were done when this round began.
    step: usize,
    round_start: usize,
    loss: f64,
    run: Run,
}

impl OnePass {
    /// `total` is the number of rows that will come.
    pub(super) fn new(options: &SequentialAttention, problem: &Problem, plan: &Plan, total: u64, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let candidates = Candidates::new(problem, rows, run)?;
        let Some(k) = problem.k else {
            return Err(Error::call(
                "`k` cannot be 'auto' with passes => 'one', because no rows are kept to judge by; give a number",
            ));
        };
        let most = k.min(candidates.len());
        let forced = candidates.forced(problem);
        let inputs = Inputs::new(problem, rows, candidates.columns.clone());
        let rounds = most.saturating_sub(forced.len()).div_ceil(options.per_round);
        // Of the rows that will come as many count, and as often, as of the first.
        let first = rows.seen.rows + rows.seen.rows_dropped();
        let counting = Repeats::new(rows).rows(rows);
        let expected = ((u128::from(total) * counting as u128 / u128::from(first.max(1))) as usize).max(1);
        let wanted = expected / (ROUND_STEPS * (rounds + 1));
        let batch_rows = options.training.batch_rows.unwrap_or(wanted.clamp(BATCH_MIN, BATCH_MAX)).min(counting);
        let mut attention = Attention::new(options.mask, candidates.len());
        forced.iter().for_each(|candidate| attention.choose(*candidate));
        attention.begin_round();
        let encoder = Encoder::new(problem, rows, &inputs, &plan.label);
        let feed = Feed::new(encoder, plan, rows, total, batch_rows, run)?;
        let learner = Learner {
            mlp: Mlp::new(&inputs, &options.training.hidden, run),
            mask: vec![1.0; candidates.columns.len()],
            slopes: vec![0.0; candidates.len()],
            order: forced.iter().map(|candidate| (*candidate, 1.0)).collect(),
            rows: (0..batch_rows as u32).collect(),
            attention_rate: options.attention_rate(candidates.len()),
            candidates,
            most,
            per_round: options.per_round,
            learning_rate: options.training.learning_rate,
            warmup: options.warmup,
            rounds,
            shared: (0, 0, 0),
            // Reading, encoding and training side by side keep two cores busy; sharing out each step as well would keep them waiting.
            space: if rayon::current_num_threads() <= 2 { Batch::alone() } else { Batch::default() },
            attention,
            round: 0,
            step: 0,
            round_start: 0,
            loss: f64::NAN,
            run: run.clone(),
        };
        Ok(Self { feed, learner })
    }
}

impl Learner {
    /// One step on each batch.
    fn learn(&mut self, portions: &[Portion]) -> Result<()> {
        portions.iter().try_for_each(|portion| self.work(portion))
    }

    /// One step on the rows of a batch.
    fn work(&mut self, portion: &Portion) -> Result<()> {
        self.run.check()?;
        let batch = &portion.samples;
        let rows = &self.rows[..batch.rows()];
        let is_warm = self.round == 0;
        let gate = Gate { mask: (!is_warm).then_some(&self.mask), decay: None };
        let loss = self.mlp.train(batch, rows, gate, self.learning_rate, &mut self.space)?;
        self.loss = if self.loss.is_nan() { loss } else { 0.98 * self.loss + 0.02 * loss };
        if !is_warm {
            self.candidates.gather(self.space.slopes(), &mut self.slopes);
            self.attention.step(&self.slopes, self.attention_rate);
            self.candidates.spread(&self.attention.mask, &mut self.mask);
        }
        self.step += 1;
        if self.step >= self.end(portion.steps) && self.round <= self.rounds { self.end_round() } else { Ok(()) }
    }

    /// The step with which the round ends, if there will be so many steps in all. Rows that do not count show only as they come, so that the
    /// rounds that are left share the steps that are left anew whenever the total changes.
    fn end(&mut self, steps: usize) -> usize {
        if self.round == 0 {
            return Schedule::of_steps(steps, self.rounds, self.warmup).warm;
        }
        if self.shared.2 != steps {
            self.shared = (self.round_start, self.round, steps);
        }
        let (start, first, _) = self.shared;
        start + (self.round + 1 - first) * steps.saturating_sub(start) / (self.rounds + 1 - first).max(1)
    }

    /// Steps without which the rounds that are left would be too short.
    fn steps_wanted(&self) -> usize {
        let left = self.rounds + 1 - self.round.min(self.rounds + 1);
        left * ROUND_STEPS_MIN
    }

    fn end_round(&mut self) -> Result<()> {
        if self.round > 0 {
            let wanted = self.per_round.min(self.most - self.order.len());
            for candidate in self.attention.ranked().into_iter().take(wanted) {
                self.order.push((candidate, f64::from(self.attention.mask[candidate])));
                self.attention.choose(candidate);
            }
        }
        self.run.step_with(self.round.min(self.rounds), self.rounds + 1, || format!("loss {:.4}", self.loss))?;
        self.round += 1;
        self.round_start = self.step;
        self.attention.begin_round();
        self.candidates.spread(&self.attention.mask, &mut self.mask);
        Ok(())
    }
}

impl Pass for OnePass {
    fn push(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        let Self { feed, learner } = self;
        // What the last push has brought is learnt from while this one is encoded. Neither waits for anything else.
        let portions = feed.take_ready();
        let (pushed, learnt) = rayon::join(|| feed.push(rows, label, weights, features), || learner.learn(&portions));
        pushed?;
        learnt?;
        feed.give_back(portions);
        Ok(())
    }

    fn finish(self: Box<Self>, problem: &Problem) -> Result<Ranking> {
        let Self { mut feed, mut learner } = *self;
        learner.learn(&feed.take_ready())?;
        feed.empty(&mut learner)?;
        workbench::explain_order(problem, &learner.candidates, &learner.order, &learner.run)
    }
}
