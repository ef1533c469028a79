//! One pass (appendix B.3 of the paper): the same rounds on a stream of rows, each of which is seen once.
//!
//! Rows wait in a buffer and leave it in random order, so that rows which arrive together are not learnt from together. What is kept
//! is the buffer and the network: memory does not grow with the table.

use std::collections::BTreeMap;

use super::SequentialAttention;
use super::attention::Attention;
use crate::kernels::aligned::Aligned;
use crate::kernels::gemm::{LANES, prefetch};
use crate::network::batch::Batch;
use crate::network::mlp::{Gate, Mlp};
use crate::network::samples::{Inputs, Loss, Samples, stride_for};
use crate::network::training::Schedule;
use crate::neural::candidates::Candidates;
use crate::neural::workbench;
use crate::reading::block::is_value;
use crate::{
    Block, Coding, Error, Label, Lease, NO_LEVEL, Nulls, Numbers, Pass, Plan, Problem, Random, Ranking, Result, Rows, Run,
};

/// Steps that a round should have; the batches are as large as that allows.
const ROUND_STEPS: usize = 200;
const BATCH_MIN: usize = 32;
const BATCH_MAX: usize = 256;
/// Rows turned over at a time, [`LANES`] columns of them: what is being turned stays in cache, and a row gets them in one piece.
const BAND: usize = 256;
/// Rows that are pushed at a time, for a start: so many are encoded while those before them are learnt from.
const PUSHED_ROWS: usize = 8192;
/// Rows between the one that is moved and the one whose place is asked of the memory.
const AHEAD: usize = 8;

/// The rows that come in, and the network that learns from those that came before.
pub(super) struct OnePass {
    feed: Feed,
    learner: Learner,
    /// For the rows that wait, and for the network.
    _lease: Lease,
}

/// Rows on their way to the network.
struct Feed {
    encoder: Encoder,
    /// Rows waiting.
    buffer: Samples,
    capacity: usize,
    /// Rows leaving together.
    batch: Samples,
    batch_rows: usize,
    /// Batches that the network has not seen yet.
    ready: Vec<Samples>,
    /// Space for more.
    spare: Vec<Samples>,
    random: Random,
    /// What is left over of a weight that is no whole number.
    owed: f64,
    mean_weight: f64,
}

struct Learner {
    candidates: Candidates,
    most: usize,
    per_round: usize,
    learning_rate: f64,
    attention_rate: f64,
    schedule: Schedule,
    space: Batch,
    rows: Vec<u32>,
    mlp: Mlp,
    attention: Attention,
    mask: Vec<f32>,
    slopes: Vec<f32>,
    order: Vec<(usize, f64)>,
    round: usize,
    /// Steps done in this round; the warm-up is round 0.
    step: usize,
    loss: f64,
    run: Run,
}

impl OnePass {
    /// `total` is the number of rows that will come.
    pub(super) fn new(options: &SequentialAttention, problem: &Problem, plan: &Plan, total: u64, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let candidates = Candidates::new(problem, rows);
        let Some(k) = problem.k else {
            return Err(Error::call(
                "`k` cannot be 'auto' with passes => 'one', because no rows are kept to judge by; give a number",
            ));
        };
        let most = k.min(candidates.len());
        let forced = candidates.forced(problem);
        let inputs = Inputs::new(problem, rows, candidates.columns.clone());
        let rounds = most.saturating_sub(forced.len()).div_ceil(options.per_round);
        let total = (total as usize).max(1);
        let wanted = total / (ROUND_STEPS * (rounds + 1));
        let batch_rows = options.training.batch_rows.unwrap_or(wanted.clamp(BATCH_MIN, BATCH_MAX)).min(total);
        let schedule = Schedule::of_steps((total / batch_rows).max(rounds), rounds, options.warmup);
        let mut attention = Attention::new(options.mask, candidates.len());
        forced.iter().for_each(|candidate| attention.choose(*candidate));
        attention.begin_round();
        let stride = stride_for(candidates.columns.len());
        let space = |rows: usize| Samples {
            columns: candidates.columns.len(),
            stride,
            values: Aligned::zeros(rows * stride),
            ..Samples::default()
        };
        // The buffer, and the batches of a push: those that are made and those that are learnt from.
        let waiting = rows.rows().max(1) + 2 * PUSHED_ROWS;
        let lease = run.reserve(waiting * (stride + 1) * size_of::<f32>())?;
        let feed = Feed {
            encoder: Encoder::new(problem, rows, &inputs, plan),
            buffer: space(rows.rows().max(1)),
            capacity: rows.rows().max(1),
            batch: space(batch_rows),
            batch_rows,
            ready: Vec::new(),
            spare: Vec::new(),
            random: run.random("buffer", 0),
            owed: 0.0,
            mean_weight: rows.weight() / rows.rows() as f64,
        };
        let learner = Learner {
            mlp: Mlp::new(&inputs, &options.training.hidden, run),
            mask: vec![1.0; candidates.columns.len()],
            slopes: vec![0.0; candidates.len()],
            order: forced.iter().map(|candidate| (*candidate, 1.0)).collect(),
            rows: (0..batch_rows as u32).collect(),
            candidates,
            most,
            per_round: options.per_round,
            learning_rate: options.training.learning_rate,
            attention_rate: options.attention_rate(),
            schedule,
            // Reading, encoding and training side by side keep two cores busy; sharing out each step as well would keep them waiting.
            space: if rayon::current_num_threads() <= 2 { Batch::alone() } else { Batch::default() },
            attention,
            round: 0,
            step: 0,
            loss: f64::NAN,
            run: run.clone(),
        };
        Ok(Self { feed, learner, _lease: lease })
    }
}

impl Feed {
    fn push(&mut self, rows: usize, label: &Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        let stride = self.buffer.stride;
        let maps = self.encoder.maps(label, features);
        let mut band = vec![0.0; BAND * stride];
        let (mut scratch, mut turning) = (vec![0.0; BAND], vec![0.0; LANES * BAND]);
        for start in (0..rows).step_by(BAND) {
            let count = BAND.min(rows - start);
            let band = &mut band[..count * stride];
            let (targets, mut counts) = self.encoder.targets(label, &maps, start, count)?;
            if let Some(weights) = weights {
                weights.fill(start, &mut scratch[..count]);
                for (count, weight) in counts.iter_mut().zip(&scratch) {
                    if *weight < 0.0 {
                        return Err(Plan::negative_weight(*weight));
                    }
                    let share = if is_value(*weight) { weight / self.mean_weight } else { 0.0 };
                    self.owed += if *count > 0 { share } else { 0.0 };
                    *count *= self.owed.max(0.0) as usize;
                    self.owed -= *count as f64;
                }
            }
            for (at, columns) in self.encoder.columns.chunks(LANES).enumerate() {
                for ((column, level), turning) in columns.iter().zip(&maps.levels[at * LANES..]).zip(turning.chunks_mut(BAND)) {
                    let feature = &features[column.feature];
                    // Columns come from another core's cache, or from memory.
                    if let Some(Block::Numbers(next)) = features.get(column.feature + 1)
                        && let Some(values) = next.as_slice()
                    {
                        prefetch(&values[start..start + count]);
                    }
                    self.encoder.encode((column, *level), feature, start, &mut turning[..count], &mut counts, &mut scratch)?;
                }
                turning[columns.len() * BAND..].fill(0.0);
                for (row, inputs) in band.chunks_mut(stride).enumerate() {
                    let inputs: &mut [f32; LANES] = inputs[at * LANES..].first_chunk_mut().expect("rows are filled up");
                    for lane in 0..LANES {
                        inputs[lane] = turning[lane * BAND + row];
                    }
                }
            }
            self.shuffle_in(band, &targets, &counts);
        }
        Ok(())
    }

    /// Puts rows into the buffer, each so many times: while it is not full as they come, and then in the places of others, which leave.
    fn shuffle_in(&mut self, band: &[f32], targets: &[f32], counts: &[usize]) {
        let stride = self.buffer.stride;
        let mut rows = counts.iter().enumerate().flat_map(|(row, count)| std::iter::repeat_n(row, *count));
        let room = self.capacity - self.buffer.rows();
        for row in rows.by_ref().take(room) {
            append(&mut self.buffer, &band[row * stride..][..stride], targets[row]);
        }
        let moves: Vec<(usize, usize)> = rows.map(|row| (row, self.random.below(self.capacity))).collect();
        for (at, (row, place)) in moves.iter().enumerate() {
            // The buffer is larger than a cache, and its places come in no order.
            if let Some((_, next)) = moves.get(at + AHEAD) {
                prefetch(&self.buffer.values[next * stride..][..stride]);
                prefetch(&self.buffer.targets[*next..][..1]);
            }
            let leaving = &mut self.buffer.values[place * stride..][..stride];
            append(&mut self.batch, leaving, self.buffer.targets[*place]);
            copy(leaving, &band[row * stride..][..stride]);
            self.buffer.targets[*place] = targets[*row];
            if self.batch.rows() == self.batch_rows {
                self.end_batch();
            }
        }
    }

    fn end_batch(&mut self) {
        let next = self.spare.pop().unwrap_or_else(|| Samples { targets: Vec::new(), ..self.batch.clone() });
        self.ready.push(std::mem::replace(&mut self.batch, next));
    }

    /// Lets all that wait leave, in random order.
    fn empty(&mut self) {
        let mut waiting: Vec<usize> = (0..self.buffer.rows()).collect();
        self.random.shuffle(&mut waiting);
        for at in waiting {
            append(
                &mut self.batch,
                &self.buffer.values[at * self.buffer.stride..][..self.buffer.stride],
                self.buffer.targets[at],
            );
            if self.batch.rows() == self.batch_rows {
                self.end_batch();
            }
        }
    }
}

/// Adds a row to samples that have space for it.
fn append(samples: &mut Samples, values: &[f32], target: f32) {
    let row = samples.rows();
    copy(&mut samples.values[row * samples.stride..][..samples.stride], values);
    samples.targets.push(target);
}

/// Copies a row. Rows are short and whole registers, so that calling the general function would take longer than this.
fn copy(to: &mut [f32], from: &[f32]) {
    to.as_chunks_mut::<LANES>().0.iter_mut().zip(from.as_chunks::<LANES>().0).for_each(|(to, from)| *to = *from);
}

impl Learner {
    /// One step on each batch.
    fn learn(&mut self, batches: &[Samples]) -> Result<()> {
        batches.iter().try_for_each(|batch| self.work(batch))
    }

    /// One step on the rows of a batch.
    fn work(&mut self, batch: &Samples) -> Result<()> {
        self.run.check()?;
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
        let steps = if is_warm { self.schedule.warm } else { self.schedule.round(self.round - 1) };
        if self.step >= steps && (is_warm || self.round < self.schedule.rounds) { self.end_round() } else { Ok(()) }
    }

    fn end_round(&mut self) -> Result<()> {
        if self.round > 0 {
            let wanted = self.per_round.min(self.most - self.order.len());
            for candidate in self.attention.ranked().into_iter().take(wanted) {
                self.order.push((candidate, f64::from(self.attention.mask[candidate])));
                self.attention.choose(candidate);
            }
        }
        self.run
            .step_with(self.round.min(self.schedule.rounds), self.schedule.rounds + 1, || format!("loss {:.4}", self.loss))?;
        self.round += 1;
        self.step = 0;
        self.attention.begin_round();
        self.candidates.spread(&self.attention.mask, &mut self.mask);
        Ok(())
    }
}

impl Pass for OnePass {
    fn push(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        let Self { feed, learner, .. } = self;
        // What the last push has brought is learnt from while this one is encoded. Neither waits for anything else.
        let mut batches = std::mem::take(&mut feed.ready);
        let (pushed, learnt) = rayon::join(|| feed.push(rows, &label, weights, features), || learner.learn(&batches));
        pushed?;
        learnt?;
        batches.iter_mut().for_each(|batch| batch.targets.clear());
        feed.spare.append(&mut batches);
        Ok(())
    }

    fn finish(self: Box<Self>, problem: &Problem) -> Result<Ranking> {
        let Self { mut feed, mut learner, .. } = *self;
        learner.learn(&std::mem::take(&mut feed.ready))?;
        feed.empty();
        learner.learn(&feed.ready)?;
        // Rows that were left out make rounds shorter than planned; what is still open is chosen by the attention there is.
        while learner.order.len() < learner.most {
            learner.round = learner.round.max(1);
            learner.end_round()?;
        }
        workbench::explain_order(problem, &learner.candidates, &learner.order, &learner.run)
    }
}

/// Turns rows of a table into inputs of the network, as the first rows settled it.
struct Encoder {
    columns: Vec<Column>,
    /// The position of each class; empty for numbers.
    classes: BTreeMap<String, u32>,
    loss: Loss,
    target: (f64, f64),
    plan: Plan,
}

/// An input: the feature it comes from, and how.
struct Column {
    feature: usize,
    coding: Coding,
    mean: f64,
    factor: f64,
}

/// For a batch: the class of each of the label's names, and for each input that is a level the code of it.
struct Maps {
    classes: Vec<Option<u32>>,
    levels: Vec<u32>,
}

impl Encoder {
    fn new(problem: &Problem, rows: &Rows, inputs: &Inputs, plan: &Plan) -> Self {
        let column = |(column, factor): (&usize, &f64)| Column {
            feature: rows.design[*column].feature,
            coding: rows.origins[*column].coding.clone(),
            mean: rows.origins[*column].mean,
            factor: *factor,
        };
        let classes = match &problem.label {
            Label::Numbers => BTreeMap::new(),
            Label::Classes(classes) => classes.iter().cloned().zip(0..).collect(),
        };
        Self {
            columns: inputs.columns.iter().zip(&inputs.factors).map(column).collect(),
            classes,
            loss: inputs.loss,
            target: inputs.target,
            plan: plan.clone(),
        }
    }

    fn maps(&self, label: &Block<'_>, features: &[Block<'_>]) -> Maps {
        let class = |name: &&str| self.classes.get(*name).copied();
        let classes = match label {
            Block::Levels { names, .. } => names.iter().map(class).collect(),
            Block::Numbers(_) => Vec::new(),
        };
        let level = |column: &Column| match (&column.coding, &features[column.feature]) {
            (Coding::Level(level), Block::Levels { names, .. }) => {
                names.iter().position(|name| name == level).map_or(NO_LEVEL - 1, |at| at as u32)
            }
            _ => NO_LEVEL,
        };
        Maps { classes, levels: self.columns.iter().map(level).collect() }
    }

    /// The label of each row, and 1 for each that has one.
    fn targets(&self, label: &Block<'_>, maps: &Maps, start: usize, count: usize) -> Result<(Vec<f32>, Vec<usize>)> {
        let unseen = |name: String| {
            Error::data(format!(
                "class `{name}` of `{}` does not occur in the rows first read; raise shuffle_buffer, or leave passes out",
                self.plan.label
            ))
        };
        let (mut targets, mut counts) = (vec![0.0; count], vec![1; count]);
        match label {
            Block::Levels { codes, names } => {
                for (row, code) in codes[start..start + count].iter().enumerate() {
                    match maps.classes.get(*code as usize) {
                        Some(Some(class)) => targets[row] = *class as f32,
                        Some(None) => return Err(unseen(names[*code as usize].to_string())),
                        None => counts[row] = 0,
                    }
                }
            }
            Block::Numbers(numbers) => {
                let mut values = vec![0.0; count];
                numbers.fill(start, &mut values);
                for (row, value) in values.into_iter().enumerate() {
                    if !is_value(value) {
                        counts[row] = 0;
                    } else if self.loss == Loss::Squared {
                        targets[row] = ((value - self.target.0) / self.target.1) as f32;
                    } else {
                        let name = crate::Class::of_number(value).to_string();
                        let class = self.classes.get(&name).copied();
                        targets[row] = class.ok_or_else(|| unseen(name))? as f32;
                    }
                }
            }
        }
        Ok((targets, counts))
    }

    /// Writes an input of some rows. A row that `nulls` drops counts 0 times.
    fn encode(
        &self,
        (column, level): (&Column, u32),
        feature: &Block<'_>,
        start: usize,
        inputs: &mut [f32],
        counts: &mut [usize],
        scratch: &mut [f64],
    ) -> Result<()> {
        let scaled = |x: f64| ((x - column.mean) * column.factor) as f32;
        let is_missing = column.coding == Coding::Missing;
        match feature {
            Block::Numbers(numbers) => {
                let scratch = &mut scratch[..inputs.len()];
                let values = match numbers.as_slice() {
                    Some(values) => &values[start..start + inputs.len()],
                    None => {
                        numbers.fill(start, scratch);
                        scratch
                    }
                };
                if is_missing {
                    inputs.iter_mut().zip(values).for_each(|(input, x)| *input = scaled(f64::from(!is_value(*x))));
                    return Ok(());
                }
                inputs.iter_mut().zip(values).for_each(|(input, x)| *input = if is_value(*x) { scaled(*x) } else { 0.0 });
                self.refuse_missing(values.iter().map(|x| !is_value(*x)), column.feature, counts)
            }
            Block::Levels { codes, .. } => {
                let codes = &codes[start..start + inputs.len()];
                let missing = codes.iter().map(|code| *code == NO_LEVEL);
                if is_missing {
                    inputs.iter_mut().zip(missing).for_each(|(input, missing)| *input = scaled(f64::from(missing)));
                    return Ok(());
                }
                let value = |code: u32| if code == NO_LEVEL { 0.0 } else { scaled(f64::from(code == level)) };
                inputs.iter_mut().zip(codes).for_each(|(input, code)| *input = value(*code));
                self.refuse_missing(missing, column.feature, counts)
            }
        }
    }

    fn refuse_missing(&self, missing: impl Iterator<Item = bool>, feature: usize, counts: &mut [usize]) -> Result<()> {
        if !matches!(self.plan.nulls, Nulls::Drop | Nulls::Error) {
            return Ok(());
        }
        for (missing, count) in missing.zip(counts) {
            if missing && *count > 0 && self.plan.nulls == Nulls::Error {
                return Err(self.plan.null_refused(feature));
            }
            if missing {
                *count = 0;
            }
        }
        Ok(())
    }
}
