use std::sync::Arc;

use crate::network::batch::Batch;
use crate::network::mlp::{Gate, Mlp};
use crate::network::samples::{Batches, Inputs, Samples};
use crate::network::threads::Team;
use crate::{Check, Lease, Options, Result, Rows, Run, Split, options};

options! {
    /// How a network is trained.
    pub struct Training {
        /// Widths of the hidden layers, one after the other; an empty list makes the model linear.
        hidden: Vec<usize> = vec![67], Check::Between(1.0, 4096.0);
        /// Passes over the rows in all. NULL: 20, but at least 48 steps for each round and at most 20000 steps in all.
        epochs: Option<usize> = None, Check::Between(1.0, 1000000.0);
        /// Rows in a step, but no more than an eighth of the table. NULL: 128; in one pass as many as leave 200 steps a round, but at most 256.
        batch_rows: Option<usize> = None, Check::Between(1.0, 1000000.0);
        /// Size of a step of the network's weights.
        learning_rate: f64 = 0.001, Check::Between(1e-9, 10.0);
        /// Share of the rows that is held out for `valid_score`. NULL: none, and a fifth for `k => 'auto'`.
        validation: Option<f64> = None, Check::Between(0.01, 0.9);
    }
}

/// Steps that a round has at least, and a training at most, unless `epochs` says otherwise.
const ROUND_STEPS_MIN: usize = 48;
const STEPS_MAX: usize = 20_000;
const EPOCHS: usize = 20;
const BATCH_ROWS: usize = 128;
/// Held out when something must be judged and nobody said how much.
const VALIDATION: f64 = 0.2;
/// Fewest rows that can be parted.
const SPLIT_ROWS_MIN: usize = 10;

impl Training {
    /// Whether this is one of its options, which mean nothing where no network is trained.
    pub(crate) fn has(option: &str) -> bool {
        Self::specs().iter().any(|spec| spec.name == option)
    }

    pub(crate) fn batch_rows(&self, rows: usize) -> usize {
        self.batch_rows.unwrap_or(BATCH_ROWS).min((rows / 8).max(8)).min(rows)
    }

    /// Steps for so many rounds.
    pub(crate) fn steps(&self, pass_rows: usize, rounds: usize) -> usize {
        let a_pass = (pass_rows / self.batch_rows(pass_rows)).max(1);
        let least = rounds * ROUND_STEPS_MIN;
        match self.epochs {
            Some(epochs) => (epochs * a_pass).max(rounds),
            None => (EPOCHS * a_pass).min(STEPS_MAX).max(least),
        }
    }

    /// The rows to learn from and those to judge by.
    pub(crate) fn split(&self, rows: &Rows, must_judge: bool, run: &Run) -> Split {
        let share = self.validation.or(must_judge.then_some(VALIDATION));
        match share {
            Some(share) if rows.rows() >= SPLIT_ROWS_MIN => Split::fraction(rows, share, run),
            _ => Split::none(rows.rows()),
        }
    }
}

/// Steps cut into a warm-up and rounds.
pub(crate) struct Schedule {
    pub warm: usize,
    pub rounds: usize,
    steps: usize,
}

impl Schedule {
    pub(crate) fn new(training: &Training, pass_rows: usize, rounds: usize, warmup: f64) -> Self {
        Self::of_steps(training.steps(pass_rows, rounds.max(1)), rounds, warmup)
    }

    pub(crate) fn of_steps(steps: usize, rounds: usize, warmup: f64) -> Self {
        Self { warm: (warmup * steps as f64) as usize, rounds, steps }
    }

    /// Steps of a round.
    pub(crate) fn round(&self, round: usize) -> usize {
        let end = |round: usize| round * (self.steps - self.warm) / self.rounds.max(1);
        end(round + 1) - end(round)
    }
}

/// A network in training.
pub(crate) struct Trainer<'a> {
    pub samples: Arc<Samples>,
    pub mlp: Mlp,
    pub batch: Batch,
    batches: Batches,
    rows: Vec<u32>,
    run: &'a Run,
    /// Mean loss, the recent steps counting most.
    pub loss: f64,
    _memory: Lease,
}

impl<'a> Trainer<'a> {
    pub(crate) fn new(samples: Arc<Samples>, inputs: &Inputs, training: &Training, run: &'a Run) -> Result<Self> {
        Self::on(samples, None, inputs, training, run)
    }

    /// Learns from some of the rows; `None`: from all.
    pub(crate) fn on(
        samples: Arc<Samples>,
        part: Option<Arc<[u32]>>,
        inputs: &Inputs,
        training: &Training,
        run: &'a Run,
    ) -> Result<Self> {
        let mut batches = Batches::new(&samples, part, run);
        let batch_rows = training.batch_rows(batches.pass_rows());
        let order = batches.pass_rows() * 2 * size_of::<u32>();
        let memory = run.reserve(Mlp::bytes_for(inputs, &training.hidden, batch_rows) + order)?;
        let mlp = Mlp::new(inputs, &training.hidden, run);
        let rows = vec![0; batch_rows];
        let mut batch = Batch::default();
        batch.next.clone_from(&rows);
        batches.next_batch(&mut batch.next);
        Ok(Self { samples, mlp, batch, batches, rows, run, loss: f64::NAN, _memory: memory })
    }

    pub(crate) fn pass_rows(&self) -> usize {
        self.batches.pass_rows()
    }

    pub(crate) fn step(&mut self, gate: Gate<'_>, learning_rate: f64) -> Result<()> {
        self.draw();
        self.train(gate, learning_rate)
    }

    /// Does some steps, with threads that stay awake between them if a step is worth sharing.
    pub(crate) fn together<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        if !self.mlp.is_worth_sharing(self.rows.len()) {
            return work(self);
        }
        Team::gather(|team| {
            self.batch.team = Some(team.clone());
            let result = work(self);
            self.batch.team = None;
            result
        })
    }

    /// Goes on to the next batch, and draws the rows of the one after it.
    pub(crate) fn draw(&mut self) {
        std::mem::swap(&mut self.rows, &mut self.batch.next);
        self.batches.next_batch(&mut self.batch.next);
    }

    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// One update from the rows drawn last.
    pub(crate) fn train(&mut self, gate: Gate<'_>, learning_rate: f64) -> Result<()> {
        self.train_by(|mlp, samples, rows, batch| mlp.train(samples, rows, gate, learning_rate, batch))
    }

    /// One update of another kind, which answers with the loss.
    pub(crate) fn train_by(&mut self, update: impl FnOnce(&mut Mlp, &Samples, &[u32], &mut Batch) -> Result<f64>) -> Result<()> {
        self.run.check()?;
        let loss = update(&mut self.mlp, &self.samples, &self.rows, &mut self.batch)?;
        self.loss = if self.loss.is_nan() { loss } else { 0.98 * self.loss + 0.02 * loss };
        Ok(())
    }

    /// Goes on with these inputs alone. The samples must be its own.
    pub(crate) fn keep_inputs(&mut self, inputs: &[usize]) -> Result<()> {
        self.mlp.keep_inputs(inputs);
        let samples = Arc::get_mut(&mut self.samples).expect("a trainer that drops inputs does not share its samples");
        samples.keep_columns(inputs, self.run)
    }

    /// The loss for a progress line.
    pub(crate) fn note(&self) -> String {
        if self.loss.is_nan() { String::new() } else { format!("loss {:.4}", self.loss) }
    }
}
