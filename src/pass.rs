//! The one-pass path, physically: rows go to the selector as they are read, and are forgotten.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::exec_datafusion_err;
use datafusion::common::runtime::JoinSet;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlanProperties, collect};
use futures::StreamExt;
use pursuit_udfs::{Data, Error, Plan, Problem, RowsBuilder, Run};
use tokio::sync::mpsc::{Receiver, channel};

use crate::answer;
use crate::call::Call;
use crate::columns::Batch;
use crate::error::named;
use crate::exec::{Memory, SelectExec, steady};

/// Rows kept at first, and the bytes that they may take, unless the selector says otherwise.
const FIRST_ROWS: usize = 65_536;
const FIRST_BYTES: usize = 64 << 20;
const FIRST_ROWS_MIN: usize = 1024;
/// Batches of a partition that may wait.
const WAITING: usize = 4;

impl SelectExec {
    /// Reads all partitions at once, takes their batches in turn, and hands them to the selector. Returns the answer's columns.
    pub(crate) async fn pass(
        &self,
        first_rows: Option<usize>,
        context: &Arc<TaskContext>,
        memory: &Arc<Memory>,
    ) -> Result<Vec<ArrayRef>> {
        let name = self.call.question.spec.name;
        let count = self.inputs.last().ok_or_else(|| exec_datafusion_err!("SelectExec lost an input"))?;
        let count = collect(Arc::clone(count), Arc::clone(context)).await?;
        let rows = count.first().map_or(0, |batch| batch.column(0).as_primitive::<Int64Type>().value(0)) as u64;
        let features = self.call.plan.features.len().max(1);
        let first_rows = first_rows.unwrap_or_else(|| FIRST_ROWS.min(FIRST_BYTES / (8 * features)).max(FIRST_ROWS_MIN));
        // The rows as read, as columns, and as the buffer in which they wait.
        memory.grow(3 * RowsBuilder::bytes_for(&self.call.plan, first_rows.min(rows as usize)))?;

        let active = Arc::new(self.progress.start());
        let context = steady(context);
        let mut reads: JoinSet<Result<()>> = JoinSet::new();
        let mut turns = Turns { partitions: Vec::new(), next: 0 };
        for partition in 0..self.inputs[0].output_partitioning().partition_count() {
            let mut stream = self.inputs[0].execute(partition, Arc::clone(&context))?;
            let (sender, receiver) = channel(WAITING);
            turns.partitions.push(receiver);
            let active = Arc::clone(&active);
            reads.spawn(async move {
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    active.add_rows(batch.num_rows());
                    // The selector has ended, one way or the other.
                    if sender.send(batch).await.is_err() {
                        break;
                    }
                }
                Ok(())
            });
        }
        let call = Arc::clone(&self.call);
        let work = move |run: &Run| select(&call, turns, first_rows, rows, run);
        let answer = self.call.question.run(Arc::clone(&self.progress), Some(Arc::clone(memory) as _), work);
        let read = async {
            while let Some(read) = reads.join_next().await {
                read.map_err(|error| exec_datafusion_err!("reading failed: {error}"))??;
            }
            Ok(())
        };
        let (read, answer): (Result<()>, _) = futures::future::join(read, answer).await;
        read?;
        answer.map_err(|error| named(name, error))
    }
}

/// Batches of several partitions, one of each in turn: an order that does not depend on who is faster.
struct Turns {
    partitions: Vec<Receiver<RecordBatch>>,
    next: usize,
}

impl Iterator for Turns {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        while !self.partitions.is_empty() {
            self.next %= self.partitions.len();
            match self.partitions[self.next].blocking_recv() {
                Some(batch) => {
                    self.next += 1;
                    return Some(batch);
                }
                None => drop(self.partitions.remove(self.next)),
            }
        }
        None
    }
}

fn select(call: &Call, mut batches: Turns, first_rows: usize, rows: u64, run: &Run) -> Result<Vec<ArrayRef>, Error> {
    let (question, plan) = (&call.question, &call.plan);
    let mut first = Vec::new();
    let mut builder = RowsBuilder::new(plan.clone());
    let mut kept = 0;
    while kept < first_rows {
        run.check()?;
        let Some(batch) = batches.next() else { break };
        encode(call, plan, &batch)?.hand_over(|rows, label, weights, features| builder.push(rows, label, weights, features))?;
        kept += batch.num_rows();
        first.push(batch);
    }
    let problem = Problem::new(Data::Rows(builder.finish()?), plan, &question.common, question.spec.labels)?;
    let selector = question.selector()?;
    let streaming = selector.streaming().ok_or_else(|| Error::call("does not select in one pass"))?;
    let mut pass = streaming.begin(&problem, plan, rows, run)?;
    for batch in first.into_iter().chain(batches) {
        encode(call, plan, &batch)?.hand_over(|rows, label, weights, features| pass.push(rows, label, weights, features))?;
    }
    // Readers that were dropped look like readers that are done.
    run.check()?;
    let ranking = pass.finish(&problem)?;
    Ok(answer::columns(&answer::rows(&problem, &ranking, &question.common, plan), question.spec.name))
}

fn encode(call: &Call, plan: &Plan, batch: &RecordBatch) -> Result<Batch, Error> {
    let columns: Vec<ArrayRef> = call.columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
    Batch::new(plan, &columns).map_err(|error| Error::data(error.strip_backtrace()))
}
