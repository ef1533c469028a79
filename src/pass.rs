//! The one-pass path, physically: rows go to the selector as they are read, and are forgotten.
//!
//! How many rows there are decides how long a round is. It is counted first, which reads nothing where the table's statistics tell.
//!
//! The first rows are learnt from in the order of their content. So the answer for a table that fits into the buffer does not depend
//! on the order of its rows; for a longer one it is that of the order in which they are stored, one batch of each partition of a table in memory in turn.

use std::pin::pin;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::exec_datafusion_err;
use datafusion::common::runtime::JoinSet;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlanProperties, collect};
use futures::StreamExt;
use futures::future::{Either, select};
use pursuit_udfs::{Data, Error, Lease, Pass, Problem, RowsBuilder, Run, annotate};
use tokio::sync::mpsc::{Receiver, channel};

use crate::answer;
use crate::call::Call;
use crate::columns::Batch;
use crate::error::named;
use crate::exec::Selection;
use crate::inputs::steady;
use crate::lanes::Lane;
use crate::memory::Memory;

/// Rows kept at first, and the bytes that they may take, unless the selector says otherwise.
const FIRST_ROWS: usize = 65_536;
const FIRST_BYTES: usize = 64 << 20;
const FIRST_ROWS_MIN: usize = 1024;
/// Batches of a partition that may wait.
const WAITING: usize = 2;

impl Selection {
    /// Reads all partitions at once, takes their batches in turn, and hands them to the selector. Returns the answer's columns.
    pub(crate) async fn pass(
        &self,
        first_rows: Option<usize>,
        context: &Arc<TaskContext>,
        memory: &Arc<Memory>,
    ) -> Result<Vec<ArrayRef>> {
        let call = &self.call;
        let ours = |error| named(call.question.spec.name, error);
        let count = self.inputs.last().ok_or_else(|| exec_datafusion_err!("SelectExec lost an input"))?;
        let count = collect(Arc::clone(count), Arc::clone(context)).await?;
        let rows = count.first().map_or(0, |batch| batch.column(0).as_primitive::<Int64Type>().value(0)) as u64;
        let features = call.plan.features.len().max(1);
        let first_rows = first_rows.unwrap_or_else(|| FIRST_ROWS.min(FIRST_BYTES / (8 * features)).max(FIRST_ROWS_MIN));

        let learnt_from = call.draw.map_or(rows, |draw| rows.min(draw.rows as u64));
        // Jobs are short, a batch each: between two of them no thread waits for rows.
        let running = call.question.start(&self.progress, Some(Arc::clone(memory) as _), Lane::Short).map_err(ours)?;
        let mut batches = self.read_in_turns(context, rows, &running.run())?;
        let (mut first, mut kept) = (Vec::new(), 0);
        while kept < first_rows
            && let Some(batch) = batches.next(self).await?
        {
            kept += batch.0.num_rows();
            first.push(batch);
        }
        let begun = Arc::clone(call);
        let mut passing = running.job(move |run| Passing::begin(begun, first, learnt_from, run)).await.map_err(ours)?;
        while let Some((batch, lease)) = batches.next(self).await? {
            let pushed = running.job(move |_| {
                passing.push(&batch)?;
                drop(lease);
                Ok(passing)
            });
            passing = pushed.await.map_err(ours)?;
        }
        running.job(move |run| passing.finish(run)).await.map_err(ours)
    }

    fn read_in_turns(&self, context: &Arc<TaskContext>, rows: u64, run: &Run) -> Result<Turns> {
        let input = &self.inputs[0];
        let context = steady(context, self.call.columns.len());
        let active = Arc::new(self.progress.start());
        let mut turns = Turns { partitions: Vec::new(), next: 0, reads: JoinSet::new() };
        for partition in 0..input.output_partitioning().partition_count() {
            let mut stream = input.execute(partition, Arc::clone(&context))?;
            let (sender, receiver) = channel(WAITING);
            turns.partitions.push(receiver);
            let (active, run, call) = (Arc::clone(&active), run.clone(), Arc::clone(&self.call));
            turns.reads.spawn(async move {
                let name = call.question.spec.name;
                while let Some(batch) = stream.next().await {
                    let batch = drawn(&call, batch?, rows)?;
                    let lease = run.reserve(batch.get_array_memory_size()).map_err(|error| named(name, error))?;
                    active.add_rows(batch.num_rows());
                    // The selector has ended, one way or the other.
                    if sender.send((batch, lease)).await.is_err() {
                        break;
                    }
                }
                Ok(())
            });
        }
        Ok(turns)
    }
}

/// Batches of several partitions, one of each in turn: an order that does not depend on who is faster.
struct Turns {
    partitions: Vec<Receiver<(RecordBatch, Lease)>>,
    next: usize,
    /// Dropping the set ends the reads.
    reads: JoinSet<Result<()>>,
}

impl Turns {
    /// The next batch; the first failure of any partition, as soon as there is one.
    async fn next(&mut self, selection: &Selection) -> Result<Option<(RecordBatch, Lease)>> {
        while !self.partitions.is_empty() {
            self.next %= self.partitions.len();
            let batch = {
                let (read, batch) = (pin!(self.reads.join_next()), pin!(self.partitions[self.next].recv()));
                match select(read, batch).await {
                    Either::Left((Some(read), _)) => {
                        selection.joined(read)?;
                        continue;
                    }
                    Either::Left((None, batch)) => batch.await,
                    Either::Right((batch, _)) => batch,
                }
            };
            match batch {
                Some(batch) => {
                    self.next += 1;
                    return Ok(Some(batch));
                }
                None => drop(self.partitions.remove(self.next)),
            }
        }
        while let Some(read) = self.reads.join_next().await {
            selection.joined(read)?;
        }
        Ok(None)
    }
}

/// A selection that goes on between batches.
struct Passing {
    call: Arc<Call>,
    problem: Problem,
    pass: Box<dyn Pass>,
    /// For the rows that were kept.
    _leases: [Lease; 2],
}

impl Passing {
    fn begin(call: Arc<Call>, first: Vec<(RecordBatch, Lease)>, rows: u64, run: &Run) -> Result<Self, Error> {
        let (question, plan) = (&call.question, &call.plan);
        let mut builder = RowsBuilder::new(plan.clone());
        // As columns; as one batch, and that in order.
        let bytes: usize = first.iter().map(|(batch, _)| batch.get_array_memory_size()).sum();
        let kept = run.reserve(first.iter().map(|(batch, _)| RowsBuilder::bytes_for(plan, batch.num_rows())).sum())?;
        let copies = run.reserve(2 * bytes)?;
        let mut names = run.reserve(0)?;
        for (batch, _) in &first {
            run.check()?;
            let before = builder.name_bytes();
            encode(&call, batch)?.hand_over(|rows, label, weights, features| builder.push(rows, label, weights, features))?;
            names.grow(builder.name_bytes().saturating_sub(before))?;
        }
        let order = UInt32Array::from(builder.content_order());
        let finish = run.reserve(builder.finish_bytes())?;
        let problem = Problem::new(Data::Rows(builder.finish()?), plan, &question.common, question.spec.labels)?;
        let selector = question.selector()?;
        let streaming = selector.streaming().ok_or_else(|| Error::call("does not select in one pass"))?;
        let pass = streaming.begin(&problem, plan, rows, run)?;
        let mut passing = Self { call: Arc::clone(&call), problem, pass, _leases: [kept, finish] };
        let failed = |error: datafusion::arrow::error::ArrowError| Error::data(error.to_string());
        if let Some((batch, _)) = first.first() {
            let schema = batch.schema();
            let batch = concat_batches(&schema, first.iter().map(|(batch, _)| batch)).map_err(failed)?;
            drop(first);
            passing.push(&take_record_batch(&batch, &order).map_err(failed)?)?;
        }
        drop(copies);
        Ok(passing)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let pass = &mut self.pass;
        encode(&self.call, batch)?.hand_over(|rows, label, weights, features| pass.push(rows, label, weights, features))
    }

    fn finish(self, run: &Run) -> Result<Vec<ArrayRef>, Error> {
        let mut ranking = self.pass.finish(&self.problem)?;
        annotate(&self.problem, &mut ranking, run)?;
        let question = &self.call.question;
        let rows = answer::rows(&self.problem, &ranking, &question.common, &self.call.plan);
        Ok(answer::columns(&rows, question.spec.name))
    }
}

/// The rows of a batch that are learnt from, where not all are.
fn drawn(call: &Call, batch: RecordBatch, all: u64) -> Result<RecordBatch> {
    let Some(draw) = call.draw else { return Ok(batch) };
    let encoded = encode(call, &batch).map_err(|error| named(call.question.spec.name, error))?;
    let is_drawn = encoded.hand_over(|rows, label, _, features| draw.streamed(all, &call.plan, rows, label, features));
    Ok(filter_record_batch(&batch, &BooleanArray::from(is_drawn))?)
}

fn encode(call: &Call, batch: &RecordBatch) -> Result<Batch, Error> {
    let columns: Vec<ArrayRef> = call.columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
    Batch::new(&call.plan, &columns).map_err(|error| Error::data(error.strip_backtrace()))
}
