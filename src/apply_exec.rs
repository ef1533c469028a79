//! Reads a model, then applies it to its other input batch by batch, each partition by itself.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::{DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use pursuit_udfs::Apply;

use crate::applier::{Applier, ModelRows};
use crate::inputs::narrow;
use crate::operator::{Execution, Once, Operator};

/// What an operator that applies a model must know beside its inputs, which are the model's table and the rows.
#[derive(Clone)]
pub(crate) struct Applying {
    pub name: &'static str,
    /// What the model is called.
    pub model: &'static str,
    pub apply: Arc<dyn Apply>,
    /// Positions in the rows.
    pub keys: Vec<usize>,
    pub label: Option<usize>,
    /// The type of predictions.
    pub label_type: DataType,
    /// The columns of the answer that are asked for.
    pub schema: SchemaRef,
}

impl fmt::Debug for Applying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Applying({}, keys {:?}, label {:?})", self.name, self.keys, self.label)
    }
}

/// The model, and the rows with only the columns that it asks for. The partitions of one plan share the files among them, so that a plan for each
/// partition would read every file once more.
#[derive(Clone)]
pub(crate) struct Ready {
    applier: Arc<Applier>,
    rows: Arc<dyn ExecutionPlan>,
    /// What the model takes.
    _memory: Arc<MemoryReservation>,
}

impl Operator for Applying {
    const NAME: &'static str = "ApplyExec";
    type Common = Once<Ready>;

    fn function(&self) -> &str {
        self.name
    }

    fn properties(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> PlanProperties {
        let partitions = inputs.last().map_or(1, |rows| rows.output_partitioning().partition_count());
        PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&self.schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
    }

    // A row is decided by itself, wherever it is; and the rows of a model say what they are.
    fn distribution(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution; inputs.len()]
    }

    // What nobody asks for is not made. Columns of the rows come first, in the order of `keys`.
    fn narrowed(&self, columns: &[usize]) -> Result<Option<Self>> {
        let keys = columns.iter().filter_map(|at| self.keys.get(*at).copied()).collect();
        Ok(Some(Self { keys, schema: Arc::new(self.schema.project(columns)?), ..self.clone() }))
    }

    fn explain(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "function={}", self.name)
    }

    fn execute(self: Arc<Self>, execution: Execution<Self>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Execution { inputs, partition, context, metrics, common } = execution;
        let [table, rows] = <[_; 2]>::try_from(inputs).map_err(|_| exec_datafusion_err!("ApplyExec has two inputs"))?;
        let metrics = BaselineMetrics::new(&metrics, partition);
        let applied = async move {
            let prepared = Arc::clone(&context);
            let ready = common.get(|| async move { self.prepare(table, rows, &prepared).await }).await?;
            let rows = ready.rows.execute(partition, context)?;
            let pieces = Pieces { applier: ready.applier, rows, left: None, at_once: ROWS_AT_ONCE, metrics };
            Ok::<_, DataFusionError>(pieces.stream())
        };
        Ok(futures::stream::once(applied).try_flatten().boxed())
    }
}

impl Applying {
    async fn prepare(
        &self,
        table: Arc<dyn ExecutionPlan>,
        rows: Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
    ) -> Result<Ready> {
        let memory = MemoryConsumer::new(format!("ApplyExec[{}]", self.name)).register(context.memory_pool());
        let model = ModelRows::read(&table, &self.apply.fit().columns(), context, &memory).await?;
        let applier = Applier::new(self, model, &rows.schema())?;
        let narrowed = narrow(&rows, applier.wanted(), context.session_config().options())?;
        let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
        if partitions(&narrowed) != partitions(&rows) {
            return Err(exec_datafusion_err!("ApplyExec: reading fewer columns changed the partitions"));
        }
        Ok(Ready { applier: Arc::new(applier), rows: narrowed, _memory: Arc::new(memory) })
    }
}

/// Rows that a model gets at first, and at least.
const ROWS_AT_ONCE: usize = 1024;
const ROWS_MIN: usize = 256;

/// A batch is applied in pieces of about this long, so that a query can be dropped between them.
const PIECE: Duration = Duration::from_millis(20);

/// The rows of a partition on their way through the model.
struct Pieces {
    applier: Arc<Applier>,
    rows: SendableRecordBatchStream,
    /// What is left of a batch.
    left: Option<RecordBatch>,
    at_once: usize,
    metrics: BaselineMetrics,
}

impl Pieces {
    fn stream(self) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
        futures::stream::try_unfold(self, |mut pieces| async move {
            let batch = match pieces.left.take() {
                Some(batch) => {
                    tokio::task::yield_now().await;
                    batch
                }
                None => match pieces.rows.try_next().await? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            let piece = batch.slice(0, batch.num_rows().min(pieces.at_once));
            if piece.num_rows() < batch.num_rows() {
                pieces.left = Some(batch.slice(piece.num_rows(), batch.num_rows() - piece.num_rows()));
            }
            Ok(Some((pieces.apply(&piece)?, pieces)))
        })
    }

    fn apply(&mut self, piece: &RecordBatch) -> Result<RecordBatch> {
        let (start, timer) = (Instant::now(), self.metrics.elapsed_compute().timer());
        let applied = self.applier.apply(piece)?;
        timer.done();
        self.metrics.record_output(applied.num_rows());
        if start.elapsed() > 2 * PIECE {
            self.at_once = (piece.num_rows() / 2).max(ROWS_MIN);
        } else if start.elapsed() < PIECE / 2 && piece.num_rows() == self.at_once {
            self.at_once = self.at_once.saturating_mul(2);
        }
        Ok(applied)
    }
}
