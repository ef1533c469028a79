//! One pass (appendix B.3 of the sequential attention paper): a selector's training on a stream of rows, each of which is seen once.
//!
//! Rows wait in a buffer and leave it in random order, so that rows which arrive together are not learnt from together. What is kept
//! is the buffer and the network: memory does not grow with the table.

mod encoder;
mod feed;

use crate::network::batch::Batch;
use crate::network::mlp::Mlp;
use crate::network::samples::{Inputs, Samples};
use crate::network::training::{Schedule, Training};
use crate::neural::candidates::Candidates;
use crate::neural::workbench;
use crate::{Block, Check, Error, Lease, Numbers, Pass, Plan, Problem, Ranking, Reads, Result, Run, choice, options};
use encoder::Encoder;
use feed::{Feed, Repeats};

choice! {
    /// How often rows are seen.
    pub enum Passes {
        Many = "many",
        One = "one",
    }
}

options! {
    /// How often the rows are seen.
    pub struct Passing {
        /// Whether rows are kept and seen many times, or seen once, as they are read.
        passes: Passes = Passes::Many;
        /// One pass: rows that wait to be seen in random order. NULL: 65536, fewer if these take more than 64 MB.
        shuffle_buffer: Option<usize> = None, Check::Between(16.0, 1e9);
    }
}

impl Passing {
    pub(crate) fn is_one(&self) -> bool {
        self.passes == Passes::One
    }

    pub(crate) fn reads(&self) -> Reads {
        if self.is_one() { Reads::Pass(self.shuffle_buffer) } else { Reads::Rows }
    }

    /// What one of its options needs to mean anything, if it means nothing.
    pub(crate) fn unused(&self, option: &str) -> Option<&'static str> {
        (option == "shuffle_buffer" && !self.is_one()).then_some("passes => 'one'")
    }

    /// Whether this is one of its options, which mean nothing where no network is trained.
    pub(crate) fn has(option: &str) -> bool {
        <Self as crate::Options>::specs().iter().any(|spec| spec.name == option)
    }
}

/// What a selector does with a network and the batches that come.
pub(crate) trait Method: Send {
    /// One step on a batch; answers with its loss.
    fn step(&mut self, network: &mut Network, batch: &Samples, rows: &[u32], is_warm: bool) -> Result<f64>;

    /// A round has ended, or the warm-up.
    fn end_round(&mut self, _network: &Network, _was_warm: bool) {}

    /// Candidates with their scores, when all rows have been seen.
    fn order(&mut self, network: &Network) -> Vec<(usize, f64)>;
}

/// A network over all candidates, and what is asked of it.
pub(crate) struct Network {
    pub mlp: Mlp,
    pub candidates: Candidates,
    pub space: Batch,
    pub learning_rate: f64,
    /// How many candidates are to be chosen, and those that must be.
    pub most: usize,
    pub forced: Vec<usize>,
}

/// How the steps are shared out: a warm-up, and rounds of so many choices.
pub(crate) struct Course {
    pub warmup: f64,
    /// Choices of a round; `None`: there is only one round.
    pub per_round: Option<usize>,
}

/// The stream of rows that a selection begins with.
pub(crate) struct Stream<'a> {
    pub problem: &'a Problem,
    pub plan: &'a Plan,
    /// The number of rows that will come.
    pub total: u64,
}

/// Steps that a round should have; the batches are as large as that allows.
const ROUND_STEPS: usize = 200;
/// Steps that a round has at least. If the rows that are left at the end are too few for that, they are seen again.
const ROUND_STEPS_MIN: usize = 10;
const BATCH_MIN: usize = 32;
const BATCH_MAX: usize = 256;

/// The rows that come in, and the network that learns from those that came before.
pub(crate) struct OnePass {
    feed: Feed,
    learner: Learner,
}

/// Rows to learn from in one step, and how many steps there will be in all as far as could be told when they left.
struct Portion {
    samples: Samples,
    steps: usize,
}

struct Learner {
    network: Network,
    method: Box<dyn Method>,
    warmup: f64,
    rounds: usize,
    /// From which step on the rounds from which on share the steps of which total.
    shared: (usize, usize, usize),
    rows: Vec<u32>,
    /// The warm-up is round 0.
    round: usize,
    /// Steps done, and those that were done when this round began.
    step: usize,
    round_start: usize,
    loss: f64,
    run: Run,
    _memory: Lease,
}

impl OnePass {
    /// A selection on a stream by the method that `begin` makes for the network.
    pub(crate) fn begin<M: Method + 'static>(
        stream: &Stream<'_>,
        training: &Training,
        course: &Course,
        begin: impl FnOnce(&mut Network, &Inputs) -> M,
        run: &Run,
    ) -> Result<Box<dyn Pass>> {
        let Stream { problem, plan, total } = *stream;
        if training.validation.is_some() || training.epochs.is_some() {
            return Err(Error::call("`validation` and `epochs` need rows that are kept; leave them out with passes => 'one'"));
        }
        let rows = problem.rows();
        let candidates = Candidates::new(problem, rows, run)?;
        let Some(k) = problem.k else {
            return Err(Error::call(
                "`k` cannot be 'auto' with passes => 'one', because no rows are kept to judge by; give a number",
            ));
        };
        let forced = candidates.forced(problem);
        let inputs = Inputs::new(problem, rows, candidates.columns.clone());
        // Of the rows that will come as many count, and as often, as of the first.
        let first = rows.seen.rows + rows.seen.rows_dropped();
        let counting = Repeats::new(rows).rows(rows);
        let expected = ((u128::from(total) * counting as u128 / u128::from(first.max(1))) as usize).max(1);
        let most = k.min(candidates.len());
        let open = most.saturating_sub(forced.len());
        let rounds = course.per_round.map_or(1, |per_round| open.div_ceil(per_round));
        let wanted = expected / (ROUND_STEPS * (rounds + 1));
        let batch_rows = training.batch_rows.unwrap_or(wanted.clamp(BATCH_MIN, BATCH_MAX)).min(counting);
        let memory = run.reserve(Mlp::bytes_for(&inputs, &training.hidden, batch_rows))?;
        let encoder = Encoder::new(problem, rows, &inputs, &plan.label);
        let feed = Feed::new(encoder, plan, rows, total, batch_rows, run)?;
        let mut network = Network {
            mlp: Mlp::new(&inputs, &training.hidden, run),
            candidates,
            // Reading, encoding and training side by side keep two cores busy; sharing out each step as well would keep them waiting.
            space: if rayon::current_num_threads() <= 2 { Batch::alone() } else { Batch::default() },
            learning_rate: training.learning_rate,
            most,
            forced,
        };
        let learner = Learner {
            method: Box::new(begin(&mut network, &inputs)),
            network,
            warmup: course.warmup,
            rounds,
            shared: (0, 0, 0),
            rows: (0..batch_rows as u32).collect(),
            round: 0,
            step: 0,
            round_start: 0,
            loss: f64::NAN,
            run: run.clone(),
            _memory: memory,
        };
        Ok(Box::new(Self { feed, learner }))
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
        let rows = &self.rows[..portion.samples.rows()];
        let loss = self.method.step(&mut self.network, &portion.samples, rows, self.round == 0)?;
        self.loss = if self.loss.is_nan() { loss } else { 0.98 * self.loss + 0.02 * loss };
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
        self.method.end_round(&self.network, self.round == 0);
        self.run.step_with(self.round.min(self.rounds), self.rounds + 1, || format!("loss {:.4}", self.loss))?;
        self.round += 1;
        self.round_start = self.step;
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
        let order = learner.method.order(&learner.network);
        workbench::explain_order(problem, &learner.network.candidates, &order, &learner.run)
    }
}
