//! The rows path, physically: read everything, hand it to the selector, emit the ranking.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::config::ConfigOptions;
use datafusion::common::runtime::JoinSet;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, exec_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions, collect,
};
use futures::StreamExt;
use pursuit_udfs::{Budget, Data, Error, Reads, RowsBuilder};

use crate::call::Call;
use crate::columns::Batch;
use crate::error::named;
use crate::progress::{Active, Progress};

/// The rows of each group; without `partition_by` there is one, without a key.
type Groups = BTreeMap<Option<OwnedRow>, RowsBuilder>;

/// Collects its input's rows and runs a selector on them.
#[derive(Debug, Clone)]
pub(crate) struct SelectExec {
    pub(crate) call: Arc<Call>,
    /// The table; then, if the call has them, the second table and the names of the features; for a single pass the number of rows.
    pub(crate) inputs: Vec<Arc<dyn ExecutionPlan>>,
    schema: SchemaRef,
    pub(crate) progress: Arc<Progress>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SelectExec {
    pub(crate) fn new(call: Call, inputs: Vec<Arc<dyn ExecutionPlan>>, schema: SchemaRef, progress: Arc<Progress>) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        Self { call: Arc::new(call), inputs, schema, progress, properties, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for SelectExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, label, features) = (self.call.question.spec.name, &self.call.plan.label, self.call.plan.features.len());
        let reads = if matches!(self.call.reads, Reads::Pass(_)) { "one pass" } else { "rows" };
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "SelectExec: selector={name}, label={label}, features={features}, reads={reads}")
            }
            DisplayFormatType::TreeRender => write!(f, "selector={name}\nlabel={label}\nfeatures={features}"),
        }
    }
}

impl ExecutionPlan for SelectExec {
    fn name(&self) -> &str {
        "SelectExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { inputs: children, metrics: ExecutionPlanMetricsSet::new(), ..self.as_ref().clone() }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    // The partitions are read by this operator itself, in their order: a coalescing operator below it would mix the rows
    // in the order in which they arrive, and the last digits would differ from run to run.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(exec_datafusion_err!("SelectExec has one partition, not {partition}"));
        }
        let selection = self.clone();
        let stream = futures::stream::once(async move { selection.select(context).await });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }
}

impl SelectExec {
    async fn select(mut self, context: Arc<TaskContext>) -> Result<RecordBatch> {
        let name = self.call.question.spec.name;
        let baseline = BaselineMetrics::new(&self.metrics, 0);
        let time = |metric| MetricBuilder::new(&self.metrics).subset_time(metric, 0);
        let metrics = self.metrics.clone();
        let count = |metric| MetricBuilder::new(&metrics).counter(metric, 0);
        let (read_time, select_time) = (time("read_time"), time("select_time"));
        let peak = MetricBuilder::new(&self.metrics).gauge("peak_memory", 0);
        let memory = Arc::new(Memory {
            call: Arc::clone(&self.call),
            reservation: MemoryConsumer::new(format!("SelectExec[{name}]")).register(context.memory_pool()),
        });

        if let Reads::Pass(first_rows) = self.call.reads {
            let timer = select_time.timer();
            let columns = self.pass(first_rows, &context, &memory).await?;
            timer.done();
            peak.set_max(memory.reservation.size());
            count("steps").add(columns.first().map_or(0, |column| column.len()));
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
            baseline.record_output(batch.num_rows());
            return Ok(batch);
        }

        // One for all: keys made by another converter would not be comparable.
        let converter = self.converter()?.map(Arc::new);
        let active = Arc::new(self.progress.start());
        let timer = read_time.timer();
        if self.call.features.is_some() {
            self.restrict(&context).await?;
        }
        let groups = self.read(&context, &memory, &active, &converter).await?;
        let held_out = match self.second() {
            Some(second) => second.read(&context, &memory, &active, &None).await?.into_values().next(),
            None => None,
        };
        timer.done();

        let timer = select_time.timer();
        let mut parts: Vec<Vec<ArrayRef>> = Vec::new();
        let mut keys = Vec::new();
        for (key, builder) in groups {
            let held_out = held_out.clone();
            let finish_bytes = builder.finish_bytes() + held_out.as_ref().map_or(0, RowsBuilder::finish_bytes);
            memory.grow(finish_bytes)?;
            peak.set_max(memory.reservation.size());
            let plan = self.call.plan.clone();
            let seen = Arc::new(std::sync::Mutex::new(None));
            let report = Arc::clone(&seen);
            let data = move || {
                let (rows, held_out) = match held_out {
                    Some(held_out) => builder.finish_with(held_out).map(|(rows, held_out)| (rows, Some(held_out)))?,
                    None => (builder.finish()?, None),
                };
                *report.lock().expect("no holder of this lock panics") = Some(rows.seen.clone());
                Ok((Data::Rows(rows), held_out, plan))
            };
            let answer = self.call.question.answer(Arc::clone(&self.progress), Some(Arc::clone(&memory) as _), data).await;
            let columns = answer.map_err(|error| named(name, error))?;
            let rows = columns.first().map_or(0, |column| column.len());
            memory.reservation.shrink(finish_bytes);
            if let Some(seen) = seen.lock().expect("no holder of this lock panics").take() {
                count("rows_read").add((seen.rows + seen.rows_dropped()) as usize);
                count("rows_dropped").add(seen.rows_dropped() as usize);
                count("values_filled").add(seen.values_missing() as usize);
            }
            count("steps").add(rows);
            keys.extend(std::iter::repeat_n(key, rows));
            parts.push(columns);
        }
        timer.done();

        if parts.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let columns = (0..self.call.question.fields.len())
            .map(|at| Ok(concat(&parts.iter().map(|part| part[at].as_ref()).collect::<Vec<_>>())?))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let mut all = match converter {
            Some(converter) => converter.convert_rows(keys.iter().flatten().map(|key: &OwnedRow| key.row()))?,
            None => Vec::new(),
        };
        // Keys come back as plain values where the column was a dictionary.
        for (column, field) in all.iter_mut().zip(self.schema.fields()) {
            *column = cast(column, field.data_type())?;
        }
        all.extend(columns);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), all)?;
        baseline.record_output(batch.num_rows());
        Ok(batch)
    }

    /// Reads which features count, and leaves the others' columns unread.
    async fn restrict(&mut self, context: &Arc<TaskContext>) -> Result<()> {
        let names = self.inputs.pop().ok_or_else(|| exec_datafusion_err!("SelectExec lost an input"))?;
        let mut features = Vec::new();
        for batch in collect(names, Arc::clone(context)).await? {
            let names = cast(batch.column(0), &DataType::Utf8)?;
            features.extend(names.as_string::<i32>().iter().flatten().map(str::to_string));
        }
        let (mut call, kept) = self.call.restrict(&features).map_err(|error| named(self.call.question.spec.name, error))?;
        let config = context.session_config().options();
        let wanted: Vec<usize> = call.partitions.iter().chain(&call.columns).copied().collect();
        self.inputs[0] = narrow(&self.inputs[0], &wanted, config)?;
        let partitions = call.partitions.len();
        call.partitions = (0..partitions).collect();
        call.columns = (partitions..wanted.len()).collect();
        if let Some(held_out) = &mut call.held_out {
            let wanted: Vec<usize> = kept.iter().map(|at| held_out.columns[*at]).collect();
            self.inputs[1] = narrow(&self.inputs[1], &wanted, config)?;
            held_out.columns = (0..wanted.len()).collect();
        }
        self.call = Arc::new(call);
        Ok(())
    }

    /// The same operator on the second table, if there is one.
    fn second(&self) -> Option<Self> {
        let held_out = self.call.held_out.as_ref()?;
        let call = Call { columns: held_out.columns.clone(), partitions: Vec::new(), ..self.call.as_ref().clone() };
        Some(Self { call: Arc::new(call), inputs: vec![Arc::clone(&self.inputs[1])], ..self.clone() })
    }

    /// All partitions at once, put together in their order; one builder for each group.
    async fn read(
        &self,
        context: &Arc<TaskContext>,
        memory: &Arc<Memory>,
        active: &Arc<Active>,
        converter: &Option<Arc<RowConverter>>,
    ) -> Result<Groups> {
        // Files must not move between partitions while they are read, or the order of the rows would depend on the weather.
        let context = steady(context);
        // Dropping the set ends the reads.
        let mut reads: JoinSet<Result<(usize, Groups)>> = JoinSet::new();
        for partition in 0..self.inputs[0].output_partitioning().partition_count() {
            let mut stream = self.inputs[0].execute(partition, Arc::clone(&context))?;
            let (selection, memory, active, converter) =
                (self.clone(), Arc::clone(memory), Arc::clone(active), converter.clone());
            reads.spawn(async move {
                let mut groups = BTreeMap::new();
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    memory.grow(RowsBuilder::bytes_for(&selection.call.plan, batch.num_rows()))?;
                    selection.push(&batch, converter.as_deref(), &mut groups)?;
                    active.add_rows(batch.num_rows());
                }
                Ok((partition, groups))
            });
        }
        let mut parts = BTreeMap::new();
        while let Some(read) = reads.join_next().await {
            let (partition, groups) = read.map_err(|error| exec_datafusion_err!("reading failed: {error}"))??;
            parts.insert(partition, groups);
        }
        let mut groups: Groups = BTreeMap::new();
        for (key, builder) in parts.into_values().flatten() {
            match groups.get_mut(&key) {
                Some(first) => first.append(builder),
                None => {
                    groups.insert(key, builder);
                }
            }
        }
        if groups.is_empty() && self.call.partitions.is_empty() {
            groups.insert(None, RowsBuilder::new(self.call.plan.clone()));
        }
        Ok(groups)
    }

    fn push(&self, batch: &RecordBatch, converter: Option<&RowConverter>, groups: &mut Groups) -> Result<()> {
        let plan = &self.call.plan;
        let columns: Vec<ArrayRef> = self.call.columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let mut add = |key: Option<OwnedRow>, columns: &[ArrayRef]| -> Result<()> {
            let builder = groups.entry(key).or_insert_with(|| RowsBuilder::new(plan.clone()));
            let pushed = Batch::new(plan, columns)?
                .hand_over(|rows, label, weights, features| builder.push(rows, label, weights, features));
            pushed.map_err(|error| named(self.call.question.spec.name, error))
        };
        let Some(converter) = converter else { return add(None, &columns) };
        let keys: Vec<ArrayRef> = self.call.partitions.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let keys = converter.convert_columns(&keys)?;
        let mut rows_of: BTreeMap<OwnedRow, Vec<u32>> = BTreeMap::new();
        for (row, key) in keys.iter().enumerate() {
            rows_of.entry(key.owned()).or_default().push(row as u32);
        }
        for (key, rows) in rows_of {
            let rows = UInt32Array::from(rows);
            let columns = columns.iter().map(|column| Ok(take(column, &rows, None)?)).collect::<Result<Vec<_>>>()?;
            add(Some(key), &columns)?;
        }
        Ok(())
    }

    /// Turns the columns of `partition_by` into comparable keys and back.
    fn converter(&self) -> Result<Option<RowConverter>> {
        if self.call.partitions.is_empty() {
            return Ok(None);
        }
        let schema = self.inputs[0].schema();
        let fields = self.call.partitions.iter().map(|at| SortField::new(schema.field(*at).data_type().clone()));
        Ok(Some(RowConverter::new(fields.collect())?))
    }
}

/// Memory that is asked for before it is used.
pub(crate) struct Memory {
    call: Arc<Call>,
    reservation: MemoryReservation,
}

impl Budget for Memory {
    fn grow(&self, bytes: usize) -> pursuit_udfs::Result<()> {
        self.ask(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }
}

impl Memory {
    /// For those who read rows.
    pub(crate) fn grow(&self, bytes: usize) -> Result<()> {
        self.ask(bytes).map_err(|error| named(self.call.question.spec.name, error))
    }

    fn ask(&self, bytes: usize) -> pursuit_udfs::Result<()> {
        let max = self.call.plan.bytes_max;
        let granted = if max > 0 && self.reservation.size() + bytes > max {
            Err(format!("max_memory is {max} bytes"))
        } else {
            self.reservation.try_grow(bytes).map_err(|error| cause(&error))
        };
        granted.map_err(|why| {
            let question = &self.call.question;
            let instead = match question.reads {
                Reads::Moments => ", or set reads => 'moments'",
                Reads::Pass(_) => ", or lower shuffle_buffer",
                Reads::Rows if question.spec.all_options().iter().any(|option| option.name == "passes") => {
                    ", or set passes => 'one'"
                }
                Reads::Rows => "",
            };
            let features = self.call.plan.features.len();
            Error::limit(format!(
                "the rows of {features} features do not fit into memory; exclude columns, raise the limit{instead} ({why})"
            ))
        })
    }
}

/// The line of a pool's message that says what failed; the others list who else has memory.
fn cause(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    let line = text.lines().find(|line| line.contains("Failed to allocate")).or(text.lines().next());
    line.unwrap_or_default().trim_start_matches("Error: ").trim_end_matches('.').to_string()
}

/// The plan with only these columns, which are not even decoded where the source can leave them out.
pub(crate) fn narrow(plan: &Arc<dyn ExecutionPlan>, columns: &[usize], config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let column = |at: &usize| {
        let name = schema.field(*at).name();
        (Arc::new(PhysicalColumn::new(name, *at)) as Arc<dyn PhysicalExpr>, name.clone())
    };
    let projection = ProjectionExec::try_new(columns.iter().map(column).collect::<Vec<_>>(), Arc::clone(plan))?;
    ProjectionPushdown::new().optimize(Arc::new(projection), config)
}

/// The context with DataFusion's own work stealing between file partitions switched off.
pub(crate) fn steady(context: &TaskContext) -> Arc<TaskContext> {
    let mut config = context.session_config().clone();
    config.options_mut().execution.enable_file_stream_work_stealing = false;
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ))
}
