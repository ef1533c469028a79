//! Rows on their way to the network: which count, how often, and in what order they leave.

use super::encoder::Encoder;
use super::{Learner, Portion};
use crate::kernels::aligned::Aligned;
use crate::kernels::gemm::{LANES, prefetch};
use crate::network::samples::{Samples, stride_for};
use crate::reading::intake::Intake;
use crate::{Block, Lease, Numbers, Plan, Random, Result, Rows, Run, Seen};

/// Rows turned over at a time, [`LANES`] columns of them: what is being turned stays in cache, and a row gets them in one piece.
const BAND: usize = 256;
/// Rows between the one that is moved and the one whose place is asked of the memory.
const AHEAD: usize = 8;
/// Rows that change places together.
const MOVES: usize = 1024;
/// Batches that are learnt from together at the end.
const TOGETHER: usize = 16;
/// Rows that are pushed at a time: while so many are encoded, those before them are learnt from.
const PUSHED_ROWS: usize = 8192;

/// Rows on their way to the network.
pub(super) struct Feed {
    encoder: Encoder,
    plan: Plan,
    intake: Intake,
    seen: Seen,
    /// Rows waiting.
    buffer: Samples,
    capacity: usize,
    /// Rows leaving together.
    batch: Samples,
    batch_rows: usize,
    /// Batches that the network has not seen yet.
    ready: Vec<Portion>,
    /// Space for more.
    spare: Vec<Samples>,
    random: Random,
    repeats: Repeats,
    /// Rows that there will be, those that were read, and those that came into the buffer, each as often as it counts.
    total: u64,
    read: u64,
    taken: u64,
    _memory: Lease,
}

impl Feed {
    /// `total` is the number of rows that will come.
    pub(super) fn new(encoder: Encoder, plan: &Plan, rows: &Rows, total: u64, batch_rows: usize, run: &Run) -> Result<Self> {
        let repeats = Repeats::new(rows);
        let capacity = repeats.rows(rows);
        let (columns, stride) = (encoder.columns.len(), stride_for(encoder.columns.len()));
        let space = |rows: usize| Samples { columns, stride, values: Aligned::zeros(rows * stride), ..Samples::default() };
        // The buffer, the batches of two pushes (those that are made and those that are learnt from), and a band of rows.
        let pushed = PUSHED_ROWS * capacity.div_ceil(rows.rows().max(1)) + TOGETHER * batch_rows;
        let memory = run.reserve(4 * (stride + 1) * (capacity + 2 * pushed + BAND))?;
        Ok(Self {
            encoder,
            plan: plan.clone(),
            intake: Intake::default(),
            seen: Seen::default(),
            buffer: space(capacity),
            capacity,
            batch: space(batch_rows),
            batch_rows,
            ready: Vec::new(),
            spare: Vec::new(),
            random: run.random("buffer", 0),
            repeats,
            total,
            read: 0,
            taken: 0,
            _memory: memory,
        })
    }

    /// Takes in rows; those that leave are ready.
    pub(super) fn push(
        &mut self,
        rows: usize,
        label: Block<'_>,
        weights: Option<&dyn Numbers>,
        features: &[Block<'_>],
    ) -> Result<()> {
        let stride = self.buffer.stride;
        let maps = self.encoder.maps(&label, features);
        let mut band = vec![0.0; BAND * stride];
        let (mut scratch, mut turning) = (vec![0.0; BAND], vec![0.0; LANES * BAND]);
        for start in (0..rows).step_by(BAND) {
            let count = BAND.min(rows - start);
            let band = &mut band[..count * stride];
            self.intake.keep(&self.plan, start..start + count, label, weights, features, &mut self.seen)?;
            let targets = self.encoder.targets(&label, &maps, start, count, &self.intake)?;
            for (at, columns) in self.encoder.columns.chunks(LANES).enumerate() {
                for ((lane, column), turning) in columns.iter().enumerate().zip(turning.chunks_mut(BAND)) {
                    let feature = &features[column.feature];
                    // Columns come from another core's cache, or from memory.
                    if let Some(Block::Numbers(next)) = features.get(column.feature + 1)
                        && let Some(values) = next.as_slice()
                    {
                        prefetch(&values[start..start + count]);
                    }
                    self.encoder.encode(at * LANES + lane, &maps, feature, start, &mut turning[..count], &mut scratch);
                }
                turning[columns.len() * BAND..].fill(0.0);
                for (row, inputs) in band.chunks_mut(stride).enumerate() {
                    let inputs: &mut [f32; LANES] = inputs[at * LANES..].first_chunk_mut().expect("rows are filled up");
                    for lane in 0..LANES {
                        inputs[lane] = turning[lane * BAND + row];
                    }
                }
            }
            self.shuffle_in(band, &targets);
            self.read += count as u64;
        }
        Ok(())
    }

    /// Puts the rows that count into the buffer, each as often as its weight says: while it is not full as they come, and then in the places of others,
    /// which leave.
    fn shuffle_in(&mut self, band: &[f32], targets: &[f32]) {
        let stride = self.buffer.stride;
        let intake = std::mem::take(&mut self.intake);
        let mut moves: Vec<(usize, usize)> = Vec::with_capacity(MOVES);
        for (at, row) in intake.kept.iter().enumerate() {
            for _ in 0..self.repeats.next(intake.weights.get(at).copied(), self.capacity) {
                if self.buffer.rows() < self.capacity {
                    append(&mut self.buffer, &band[row * stride..][..stride], targets[*row]);
                    self.taken += 1;
                    continue;
                }
                moves.push((*row, self.random.below(self.capacity)));
                if moves.len() == MOVES {
                    self.replace(&moves, band, targets);
                    moves.clear();
                }
            }
        }
        self.intake = intake;
        self.replace(&moves, band, targets);
    }

    /// Puts rows of the band into places of the buffer; those that were there leave.
    fn replace(&mut self, moves: &[(usize, usize)], band: &[f32], targets: &[f32]) {
        let stride = self.buffer.stride;
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
            self.taken += 1;
            if self.batch.rows() == self.batch_rows {
                // As many as came of those read so far are to be expected of the rest.
                let read = self.read + *row as u64 + 1;
                self.end_batch((u128::from(self.taken) * u128::from(self.total.max(read)) / u128::from(read)) as u64);
            }
        }
    }

    /// Ends a batch of what will be `rows` rows in all.
    fn end_batch(&mut self, rows: u64) {
        let Samples { columns, stride, .. } = self.batch;
        let fresh = || Samples { columns, stride, values: Aligned::zeros(self.batch_rows * stride), ..Samples::default() };
        let next = self.spare.pop().unwrap_or_else(fresh);
        let steps = (rows / self.batch_rows as u64) as usize;
        self.ready.push(Portion { samples: std::mem::replace(&mut self.batch, next), steps });
    }

    /// The batches that the network has not seen yet.
    pub(super) fn take_ready(&mut self) -> Vec<Portion> {
        std::mem::take(&mut self.ready)
    }

    /// Batches that were learnt from are space for others.
    pub(super) fn give_back(&mut self, portions: Vec<Portion>) {
        for mut done in portions {
            done.samples.targets.clear();
            self.spare.push(done.samples);
        }
    }

    fn hand_over(&mut self, learner: &mut Learner) -> Result<()> {
        let portions = self.take_ready();
        learner.learn(&portions)?;
        self.give_back(portions);
        Ok(())
    }

    /// Lets all that wait leave, in random order. If these are too few for the rounds that are left they go through the
    /// network again, in another order.
    pub(super) fn empty(&mut self, learner: &mut Learner) -> Result<()> {
        let steps = learner.steps_wanted();
        let mut waiting: Vec<usize> = (0..self.buffer.rows()).collect();
        let missing = (steps * self.batch_rows).saturating_sub(self.batch.rows());
        let passes = missing.div_ceil(waiting.len().max(1)).max(1);
        let rows = self.taken + ((passes - 1) * waiting.len()) as u64;
        for _ in 0..passes {
            self.random.shuffle(&mut waiting);
            for at in &waiting {
                let values = &self.buffer.values[at * self.buffer.stride..][..self.buffer.stride];
                append(&mut self.batch, values, self.buffer.targets[*at]);
                if self.batch.rows() == self.batch_rows {
                    self.end_batch(rows);
                    if self.ready.len() >= TOGETHER {
                        self.hand_over(learner)?;
                    }
                }
            }
        }
        self.hand_over(learner)
    }
}

/// How often each row comes, by its weight.
///
/// Weights of 1 to 8 on average count rows: a weight of 3 is the row three times. Others are shares, measured in their mean. A weight that the first rows
/// gave no idea of counts as often as the buffer has rows and no more, and raises the mean that later ones are measured in, so that the work stays in
/// proportion to the rows whatever the weights are.
pub(super) struct Repeats {
    weight: f64,
    rows: f64,
    unit: f64,
    /// What is left over of a weight that is no whole number of units.
    owed: f64,
}

impl Repeats {
    pub(super) fn new(rows: &Rows) -> Self {
        let mut repeats = Self { weight: rows.weight(), rows: rows.rows() as f64, unit: 1.0, owed: 0.0 };
        repeats.unit = repeats.unit();
        repeats
    }

    fn unit(&self) -> f64 {
        let mean = self.weight / self.rows;
        if (1.0..=8.0).contains(&mean) { 1.0 } else { mean }
    }

    /// How many rows the first rows are, each as often as it comes.
    pub(super) fn rows(&self, rows: &Rows) -> usize {
        ((rows.weight() / self.unit).round() as usize).max(1)
    }

    fn next(&mut self, weight: Option<f64>, most: usize) -> usize {
        let Some(weight) = weight else { return 1 };
        let weight = weight.min(most as f64 * self.unit);
        self.weight += weight;
        self.rows += 1.0;
        self.unit = self.unit();
        self.owed += weight / self.unit;
        let count = self.owed.max(0.0) as usize;
        self.owed -= count as f64;
        count
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
