//! One pass over the table: the moments of all rows, in groups and in parts, growing while questions are answered already.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::row::{OwnedRow, RowConverter};
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::Result;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use pursuit_udfs::{Moments, Reads, Settings, Value};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::line;
use super::snapshot::{Group, Snapshot};
use super::source::Source;
use super::sql;
use crate::call::{Call, Input};
use crate::engine::Registry;
use crate::error::named;
use crate::exec::{Groups, Selection};
use crate::gathered::Gathered;
use crate::inputs::steady;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::shares::Part;
use crate::table::project;

/// Folds that the page validates with. The moments of each are kept.
pub(super) const FOLDS: usize = 5;
/// Most values of a column that rows are grouped by.
const GROUPS_MAX: usize = 100;
/// Most bytes that the moments of all groups may take.
const BYTES_MAX: u64 = 4 << 30;

/// What has to be known before the first row is read. Another one needs another pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub label: String,
    pub settings: Settings,
}

/// Options that decide how rows are read.
const READ_OPTIONS: [&str; 6] = ["weights", "task", "nulls", "levels", "max_classes", "max_memory"];

impl Key {
    /// Of all options those that decide how rows are read.
    pub(super) fn new(label: &str, given: &Settings, by: Option<&str>) -> Self {
        let decides = |name: &str| READ_OPTIONS.contains(&name);
        let mut settings: Settings =
            given.iter().filter(|(name, _)| decides(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
        // A row is dropped for its NULLs, and a column that is left out has none.
        let drops = settings.get("nulls").and_then(Value::as_str).is_some_and(|nulls| nulls != "mean" && nulls != "indicator");
        if let Some(exclude) = given.get("exclude").filter(|_| drops) {
            settings.insert("exclude".into(), exclude.clone());
        }
        if let Some(by) = by {
            settings.insert("partition_by".into(), Value::from(vec![by]));
        }
        Self { label: label.to_string(), settings }
    }
}

/// A pass that is under way, or over. Dropping it ends it.
pub(super) struct Reading {
    pub key: Key,
    pass: Arc<Pass>,
    task: AbortHandle,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How far a pass is.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Status {
    pub rows: u64,
    pub total: Option<u64>,
    pub seconds: f64,
    pub is_complete: bool,
    pub error: Option<String>,
}

struct Pass {
    selection: Selection,
    source: Source,
    converter: Option<RowConverter>,
    /// Grows in each partition by itself.
    partitions: Mutex<Vec<Arc<Mutex<Groups>>>>,
    begun: Instant,
    rows: AtomicU64,
    bytes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    total: Option<u64>,
    snapshot: Option<Arc<Snapshot>>,
    /// Seconds that the pass took, and whether it failed.
    end: Option<(f64, Option<String>)>,
}

impl Reading {
    /// Begins a pass on the threads of the runtime. What is wrong with the columns is told at once.
    pub(super) fn start(source: &Source, key: Key, registry: &Arc<Registry>, runtime: &Handle) -> Result<Self> {
        // Any selector that is content with moments: what is read does not depend on which.
        let spec = registry.specs.iter().find(|spec| {
            spec.is_selector() && spec.selector(&Settings::new()).is_ok_and(|selector| selector.reads() == Reads::Moments)
        });
        let spec = spec.ok_or_else(|| exec_datafusion_err!("ui: no selector reads moments"))?;
        let mut settings = key.settings.clone();
        settings.insert("folds".into(), Value::from(FOLDS));
        settings.insert("reads".into(), Value::from("moments"));
        let input = Input { schema: source.plan.schema(), table: Some(&source.title) };
        let call = Call::of(Arc::clone(spec), Some(registry), &input, &key.label, settings);
        let mut call = call.map_err(|error| named("ui", error))?;
        let needed: Vec<usize> = call.partitions.iter().chain(&call.columns).copied().collect();
        let (plan, needed) = project(&source.plan, needed)?;
        let groups = call.partitions.len();
        (call.partitions, call.columns) = (needed[..groups].to_vec(), needed[groups..].to_vec());
        let schema = Arc::clone(plan.schema().inner());
        let selection = Selection {
            call: Arc::new(call),
            inputs: Vec::new(),
            only: None,
            part: Part::Whole,
            schema,
            progress: Arc::new(Progress::default()),
            metrics: ExecutionPlanMetricsSet::new(),
        };
        let source = Source { plan, ..source.clone() };
        let pass = Arc::new(Pass {
            converter: selection.converter_of(source.plan.schema().inner())?,
            selection,
            source,
            partitions: Mutex::default(),
            begun: Instant::now(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            state: Mutex::default(),
        });
        let reads = Arc::clone(&pass);
        let task = runtime.spawn(async move {
            let end = reads.read().await.err().map(line);
            lock(&reads.state).end = Some((reads.begun.elapsed().as_secs_f64(), end));
        });
        Ok(Self { key, pass, task: task.abort_handle() })
    }

    pub(super) fn status(&self) -> Status {
        let state = lock(&self.pass.state);
        Status {
            rows: self.pass.rows.load(Ordering::Relaxed),
            total: state.total,
            seconds: state.end.as_ref().map_or_else(|| self.pass.begun.elapsed().as_secs_f64(), |(seconds, _)| *seconds),
            is_complete: matches!(state.end, Some((_, None))),
            error: state.end.as_ref().and_then(|(_, error)| error.clone()),
        }
    }

    /// What was gathered so far, as of a moment ago.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        lock(&self.pass.state).snapshot.clone()
    }
}

impl Pass {
    async fn read(self: &Arc<Self>) -> Result<()> {
        let state = self.source.ctx.state();
        let plan = state.create_physical_plan(&self.source.plan).await?;
        lock(&self.state).total = rows_of(&plan);
        let context = steady(&state.task_ctx(), self.selection.call.columns.len());
        let memory = Arc::new(Memory::new(Arc::clone(&self.selection.call), &context, &self.selection.metrics));
        // Dropping the set ends the reads.
        let mut reads: JoinSet<Result<()>> = JoinSet::new();
        for partition in 0..plan.output_partitioning().partition_count() {
            let mut stream = plan.execute(partition, Arc::clone(&context))?;
            let (pass, groups, memory) = (Arc::clone(self), Arc::new(Mutex::new(Groups::new())), Arc::clone(&memory));
            lock(&self.partitions).push(Arc::clone(&groups));
            reads.spawn(async move {
                let mut asked = 0;
                while let Some(batch) = stream.next().await {
                    pass.add(&batch?, &groups, &memory, &mut asked)?;
                    // Batches that are there at once would keep the thread, and whoever wants to look would wait for the end.
                    tokio::task::yield_now().await;
                }
                Ok(())
            });
        }
        let mut next = FIRST_LOOK;
        loop {
            match tokio::time::timeout(next, reads.join_next()).await {
                Ok(None) => break,
                Ok(Some(read)) => self.selection.joined(read)?,
                Err(_) => {
                    let begun = Instant::now();
                    self.look(false).await?;
                    // Looking must not be what the time goes into.
                    next = (10 * begun.elapsed()).max(LOOK_EVERY);
                }
            }
        }
        self.look(true).await
    }

    fn add(&self, batch: &RecordBatch, groups: &Mutex<Groups>, memory: &Memory, asked: &mut usize) -> Result<()> {
        let mut groups = lock(groups);
        if let Some(converter) = &self.converter {
            self.few_groups(batch, converter, &groups)?;
        }
        self.selection.push(batch, self.converter.as_ref(), &mut groups)?;
        let bytes = groups.values().map(Gathered::bytes).sum::<usize>();
        drop(groups);
        let grown = bytes.saturating_sub(*asked);
        memory.grow(grown)?;
        *asked = bytes.max(*asked);
        if self.bytes.fetch_add(grown as u64, Ordering::Relaxed) > BYTES_MAX {
            return exec_err!(
                "ui: the second moments of all groups take more than {} GB; group by a column with fewer values",
                BYTES_MAX >> 30
            );
        }
        self.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Refuses a column of too many values before their moments are made.
    fn few_groups(&self, batch: &RecordBatch, converter: &RowConverter, groups: &Groups) -> Result<()> {
        let keys: Vec<_> = self.selection.call.partitions.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let keys = converter.convert_columns(&keys)?;
        let mut new = HashSet::new();
        for key in keys.iter() {
            new.insert(key);
            if new.len() > GROUPS_MAX {
                break;
            }
        }
        let fresh = new.into_iter().filter(|key| !groups.contains_key(&Some(key.owned()))).count();
        if groups.len() + fresh > GROUPS_MAX {
            return exec_err!("ui: the column to group by has more than {GROUPS_MAX} values; group by another one");
        }
        Ok(())
    }

    /// Adds up what the partitions have, and lets questions be put to it. At the end it is taken, before that copied.
    async fn look(self: &Arc<Self>, is_complete: bool) -> Result<()> {
        let pass = Arc::clone(self);
        let snapshot = SpawnedTask::spawn_blocking(move || pass.gathered(is_complete)).join().await;
        let snapshot = snapshot.map_err(|error| exec_datafusion_err!("ui: {error}"))??;
        lock(&self.state).snapshot = Some(Arc::new(snapshot));
        Ok(())
    }

    fn gathered(&self, is_complete: bool) -> Result<Snapshot> {
        let rows = self.rows.load(Ordering::Relaxed);
        let ours = |error| named("ui", error);
        let mut groups = Groups::new();
        let partitions: Vec<_> = lock(&self.partitions).iter().map(Arc::clone).collect();
        for partition in partitions {
            let gathered = if is_complete { std::mem::take(&mut *lock(&partition)) } else { lock(&partition).clone() };
            for (key, gathered) in gathered {
                match groups.get_mut(&key) {
                    Some(first) => first.append(gathered).map_err(ours)?,
                    None => drop(groups.insert(key, gathered)),
                }
            }
        }
        if groups.is_empty() && self.converter.is_none() {
            groups.insert(None, Gathered::new(&self.selection.call));
        }
        let mut finished = Vec::with_capacity(groups.len());
        for (key, gathered) in groups {
            let Gathered::Moments(moments) = gathered else { return exec_err!("ui: moments were to be gathered") };
            let (whole, parts): (Moments, Vec<Moments>) = moments.finish().map_err(ours)?;
            finished.push(Group { literal: self.literal(key)?, whole, parts });
        }
        Ok(Snapshot::new(rows, finished))
    }

    fn literal(&self, key: Option<OwnedRow>) -> Result<String> {
        let (Some(key), Some(converter)) = (key, &self.converter) else { return Ok(String::new()) };
        let values = converter.convert_rows([key.row()])?;
        let value = ScalarValue::try_from_array(&values[0], 0)?;
        sql::group(&value).ok_or_else(|| exec_datafusion_err!("ui: rows can be grouped by text, whole numbers and booleans"))
    }
}

/// When to look for the first time, and how often then.
const FIRST_LOOK: Duration = Duration::from_millis(300);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The rows of a table, if its statistics tell.
fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?.num_rows.get_value().map(|rows| *rows as u64)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
