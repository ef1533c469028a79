//! Rows decided by a policy, as they stream through: `datum_wise_classify` and `datum_wise_steps`.
//!
//! The policy is a table, stored or answered by `datum_wise_policy` on the spot, so that there is one way from weights to
//! predictions and a policy that was kept decides as it did when it was learnt.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, exec_datafusion_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType, ident};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions, collect,
};
use futures::{StreamExt, TryStreamExt};
use pursuit_udfs::datum_wise::{Action, Decisions, Detail, POLICY_COLUMNS, Policy, PolicyRow};
use pursuit_udfs::{Decides, Error, Run, Settings, Spec, Work};
use tokio::sync::OnceCell;

use crate::call::{Call, Input};
use crate::columns::{ColumnKind, kind, with_blocks};
use crate::engine::Registry;
use crate::error::named;
use crate::exec::narrow;
use crate::progress::Progress;
use crate::table::SelectTable;

/// What is asked for, if the function decides rows.
pub(crate) fn asked(spec: &Spec, settings: &Settings) -> pursuit_udfs::Result<Option<Decides>> {
    // Common options are checked where the policy is learnt.
    let own: Vec<&str> = (spec.options)().iter().map(|option| option.name).collect();
    let own = settings.iter().filter(|(name, _)| own.contains(&name.as_str()));
    match (spec.build)(&own.map(|(name, value)| (name.clone(), value.clone())).collect())? {
        Work::Decide(decides) => Ok(Some(decides)),
        _ => Ok(None),
    }
}

/// The tables of a call.
pub(crate) struct Tables {
    pub first: LogicalPlan,
    pub name: Option<String>,
    pub test: Option<LogicalPlan>,
    pub policy: Option<LogicalPlan>,
    pub features: Option<LogicalPlan>,
}

/// The call as a table: its policy, read or learnt, and the rows to decide.
pub(crate) fn provider(
    spec: &Spec,
    registry: &Registry,
    progress: &Arc<Progress>,
    decides: Decides,
    tables: Tables,
    label: &str,
    mut settings: Settings,
) -> Result<Arc<dyn TableProvider>> {
    let error = |message: String| named(spec.name, Error::call(message));
    settings.remove("key");
    let Tables { first, name, test, policy, features } = tables;
    if policy.is_some() && test.is_some() {
        return Err(error("`policy` and `test` cannot be used together: with a policy, the first table is decided".into()));
    }
    if let (Some(_), Some((option, _))) = (&policy, settings.iter().next()) {
        return Err(error(format!("`{option}` belongs to the training, which `policy` has behind it; leave one of them out")));
    }
    let rows = test.unwrap_or_else(|| first.clone());
    let policy = match policy {
        Some(policy) => policy,
        None => {
            // Keys tell rows apart and say nothing about the label.
            let mut exclude: Vec<String> = match settings.get("exclude") {
                Some(given) => pursuit_udfs::OptionType::parse(given).unwrap_or_default(),
                None => Vec::new(),
            };
            exclude.extend(decides.key.iter().filter(|key| first.schema().index_of_column_by_name(None, key).is_some()).cloned());
            if !exclude.is_empty() {
                settings.insert("exclude".into(), exclude.into());
            }
            let trainer = registry.find("datum_wise_policy").ok_or_else(|| error("needs datum_wise_policy".into()))?;
            // Mistakes are reported in the name that was called.
            let trainer = Arc::new(Spec { name: spec.name, ..trainer.as_ref().clone() });
            let input = Input { schema: first.schema(), table: name.as_deref() };
            let call = Call::new(trainer, &input, label, settings).map_err(|error| named(spec.name, error))?;
            let call = call.with_relations(None, features).map_err(|error| named(spec.name, error))?;
            let table = Arc::new(SelectTable::new(first.clone(), call, Arc::clone(progress)));
            LogicalPlanBuilder::scan("policy", provider_as_source(table), None)?.build()?
        }
    };
    if let Some((missing, _)) =
        POLICY_COLUMNS.iter().find(|(name, _)| policy.schema().index_of_column_by_name(None, name).is_none())
    {
        return Err(error(format!("the table given as `policy` has no column `{missing}`; make it with datum_wise_policy")));
    }
    let policy = LogicalPlanBuilder::from(policy).project(POLICY_COLUMNS.map(|(name, _)| ident(name)))?.build()?;
    let names: Vec<&str> = rows.schema().fields().iter().map(|field| field.name().as_str()).collect();
    let find = |key: &String| {
        names.iter().position(|name| name == key).ok_or_else(|| {
            let hint = pursuit_udfs::did_you_mean(key, &names);
            error(format!("`key` names `{key}`, which is not a column{hint} columns are {}", pursuit_udfs::name_list(&names)))
        })
    };
    let keys = decides.key.iter().map(find).collect::<Result<Vec<usize>>>()?;
    if decides.shows_steps && keys.is_empty() {
        return Err(error("missing `key`; without it the steps of one row cannot be told from another's".into()));
    }
    let label_at = names.iter().position(|name| *name == label);
    let label_type = first.schema().field_with_unqualified_name(label).map(|field| field.data_type().clone());
    let label_type = label_type.unwrap_or(DataType::Utf8);
    let fields = fields(&rows, &keys, label_type.clone(), decides.shows_steps);
    if let Some(key) = decides.key.iter().find(|key| fields.iter().filter(|field| field.name() == *key).count() > 1) {
        return Err(error(format!("`key` names `{key}`, which is given twice or is a column of the answer; rename it with AS")));
    }
    let plan = Deciding { name: spec.name, keys, label: label_at, label_type, shows_steps: decides.shows_steps };
    Ok(Arc::new(DecideTable { plan, policy, rows, schema: Arc::new(Schema::new(fields)) }))
}

fn fields(rows: &LogicalPlan, keys: &[usize], label: DataType, shows_steps: bool) -> Vec<FieldRef> {
    let keys = keys.iter().map(|at| Arc::clone(&rows.schema().fields()[*at]));
    let own = if shows_steps {
        vec![
            Field::new("step", DataType::Int64, false),
            Field::new("action", DataType::Utf8, false),
            Field::new("feature", DataType::Utf8, true),
            Field::new("prediction", label, true),
            Field::new("score", DataType::Float64, false),
        ]
    } else {
        vec![
            Field::new("prediction", label, true),
            Field::new("features", DataType::new_list(DataType::Utf8, true), false),
            Field::new("n_features", DataType::Int64, false),
            Field::new("cost", DataType::Float64, false),
            Field::new("score", DataType::Float64, false),
            Field::new("correct", DataType::Boolean, true),
        ]
    };
    keys.chain(own.into_iter().map(Arc::new)).collect()
}

/// What an operator that decides rows must know beside its inputs.
#[derive(Debug, Clone)]
struct Deciding {
    name: &'static str,
    /// Positions in the rows.
    keys: Vec<usize>,
    label: Option<usize>,
    /// In the first table, which predictions have too.
    label_type: DataType,
    shows_steps: bool,
}

#[derive(Debug)]
struct DecideTable {
    plan: Deciding,
    policy: LogicalPlan,
    rows: LogicalPlan,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for DecideTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let policy = state.create_physical_plan(&self.policy).await?;
        let rows = state.create_physical_plan(&self.rows).await?;
        // What nobody asks for is not made: lists of names take longer than the decisions.
        let schema = projection.map_or(Ok(Arc::clone(&self.schema)), |columns| self.schema.project(columns).map(Arc::new))?;
        let label = self.plan.label.filter(|_| schema.column_with_name("correct").is_some());
        Ok(Arc::new(DecideExec::new(Deciding { label, ..self.plan.clone() }, policy, rows, schema)))
    }
}

/// A policy, and the rows that it is to decide.
type Ready = (Arc<Decider>, Arc<dyn ExecutionPlan>);

/// Reads a policy, then decides its other input batch by batch, each partition by itself.
#[derive(Debug, Clone)]
struct DecideExec {
    plan: Deciding,
    policy: Arc<dyn ExecutionPlan>,
    rows: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    /// Read or learnt once for all partitions; and the rows with only what the policy may ask for. The partitions of one plan share the
    /// files among them, so that a plan for each partition would read every file once more.
    ready: Arc<OnceCell<Ready>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DecideExec {
    fn new(plan: Deciding, policy: Arc<dyn ExecutionPlan>, rows: Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Self {
        let partitions = rows.output_partitioning().partition_count();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self { plan, policy, rows, schema, ready: Arc::default(), properties, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for DecideExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DecideExec: function={}", self.plan.name)
    }
}

impl ExecutionPlan for DecideExec {
    fn name(&self) -> &str {
        "DecideExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.policy, &self.rows]
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
        let [policy, rows] = <[_; 2]>::try_from(children).map_err(|_| exec_datafusion_err!("DecideExec has two inputs"))?;
        Ok(Arc::new(Self::new(self.plan.clone(), policy, rows, Arc::clone(&self.schema))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (exec, metrics) = (self.clone(), BaselineMetrics::new(&self.metrics, partition));
        let decided = async move {
            let (decider, rows) = exec.ready.get_or_try_init(|| exec.prepare(&context)).await?.clone();
            let stream = rows.execute(partition, context)?;
            let decide = move |batch: Result<RecordBatch>| {
                let decided = metrics.elapsed_compute().timer();
                let batch = decider.decide(&batch?)?;
                decided.done();
                metrics.record_output(batch.num_rows());
                Ok::<_, DataFusionError>(batch)
            };
            Ok::<_, DataFusionError>(stream.map(decide))
        };
        let stream = futures::stream::once(decided).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }
}

impl DecideExec {
    async fn prepare(&self, context: &Arc<TaskContext>) -> Result<Ready> {
        let mut rows = Vec::new();
        for batch in collect(Arc::clone(&self.policy), Arc::clone(context)).await? {
            rows.extend(policy_rows(&batch)?);
        }
        let policy = Policy::from_rows(&rows).map_err(|error| named(self.plan.name, error))?;
        let decider = Decider::new(policy, self)?;
        let rows = narrow(&self.rows, &decider.wanted, context.session_config().options())?;
        let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
        if partitions(&rows) != partitions(&self.rows) {
            return Err(exec_datafusion_err!("DecideExec: reading fewer columns changed the partitions"));
        }
        Ok((Arc::new(decider), rows))
    }
}

/// The rows of a policy's table; the columns are in the order of [`POLICY_COLUMNS`].
fn policy_rows(batch: &RecordBatch) -> Result<Vec<PolicyRow>> {
    let text = |at: usize| cast(batch.column(at), &DataType::Utf8);
    let whole = |at: usize| cast(batch.column(at), &DataType::Int64);
    let (parts, actions, features, levels) = (text(0)?, text(2)?, text(4)?, text(5)?);
    let (action_ids, feature_ids, values) = (whole(1)?, whole(3)?, cast(batch.column(6), &DataType::Float64)?);
    let (parts, actions, features, levels) =
        (parts.as_string::<i32>(), actions.as_string::<i32>(), features.as_string::<i32>(), levels.as_string::<i32>());
    let (action_ids, feature_ids, values) =
        (action_ids.as_primitive::<Int64Type>(), feature_ids.as_primitive::<Int64Type>(), values.as_primitive::<Float64Type>());
    let string = |column: &StringArray, row: usize| column.is_valid(row).then(|| column.value(row).to_string());
    let row = |row: usize| PolicyRow {
        part: string(parts, row).unwrap_or_default(),
        action_id: action_ids.is_valid(row).then(|| action_ids.value(row)),
        action: string(actions, row),
        feature_id: feature_ids.is_valid(row).then(|| feature_ids.value(row)),
        feature: string(features, row),
        level: string(levels, row),
        value: values.is_valid(row).then(|| values.value(row)),
    };
    Ok((0..batch.num_rows()).map(row).collect())
}

/// A policy, and where its columns are in the rows that it reads.
#[derive(Debug)]
struct Decider {
    policy: Policy,
    schema: SchemaRef,
    /// Columns of the rows to read: keys, features, then the label if it is asked for.
    wanted: Vec<usize>,
    /// Names of the key columns.
    keys: Vec<String>,
    /// Whether each feature is text.
    is_text: Vec<bool>,
    has_label: bool,
    shows_steps: bool,
    detail: Detail,
    /// The classes as texts and as values of the label; what can be asked for.
    class_names: ArrayRef,
    classes: ArrayRef,
    units: ArrayRef,
}

impl Decider {
    fn new(policy: Policy, exec: &DecideExec) -> Result<Self> {
        let plan = &exec.plan;
        let schema = exec.rows.schema();
        let mut wanted = plan.keys.clone();
        let mut is_text = Vec::new();
        for feature in policy.features() {
            let error = |message: String| named(plan.name, Error::data(message));
            let at = schema.fields().iter().position(|field| *field.name() == feature.name);
            let at = at.ok_or_else(|| error(format!("the policy asks for `{}`, which the table does not have", feature.name)))?;
            let found = schema.field(at).data_type();
            if kind(found) == ColumnKind::Other || (kind(found) == ColumnKind::Text) != feature.is_text {
                let wants = if feature.is_text { "text" } else { "a number" };
                return Err(error(format!(
                    "the policy asks for `{}` as {wants}, and in the table it is {found}; cast it",
                    feature.name
                )));
            }
            wanted.push(at);
            is_text.push(feature.is_text);
        }
        wanted.extend(plan.label);
        let keys = plan.keys.iter().map(|at| schema.field(*at).name().clone()).collect();
        let class_names: ArrayRef = Arc::new(StringArray::from_iter_values(&policy.classes));
        let classes = cast(&class_names, &plan.label_type)?;
        let units = Arc::new(StringArray::from_iter_values(policy.units.iter().map(|unit| &unit.name)));
        let (has_label, shows_steps, schema) = (plan.label.is_some(), plan.shows_steps, Arc::clone(&exec.schema));
        let detail = match schema.column_with_name("features") {
            _ if shows_steps => Detail::Steps,
            Some(_) => Detail::Units,
            None => Detail::Predictions,
        };
        Ok(Self { policy, schema, wanted, keys, is_text, has_label, shows_steps, detail, class_names, classes, units })
    }

    fn decide(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys.len();
        let features = self.is_text.iter().enumerate().map(|(at, text)| (Arc::clone(batch.column(keys + at)), *text));
        let decisions = with_blocks(&features.collect::<Vec<_>>(), |blocks| {
            self.policy.classify(batch.num_rows(), blocks, self.detail, &Run::default())
        })?
        .map_err(|error| named("datum_wise_classify", error))?;
        let answer = if self.shows_steps { Answer::of_steps(&decisions) } else { Answer::of_rows(decisions) };
        let columns =
            self.schema.fields().iter().map(|field| self.column(field.name(), batch, &answer)).collect::<Result<_>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(answer.predictions.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows)?)
    }

    /// A column of the answer.
    fn column(&self, name: &str, batch: &RecordBatch, answer: &Answer) -> Result<ArrayRef> {
        Ok(match name {
            key if self.keys.iter().any(|other| other == key) => {
                let at = self.keys.iter().position(|other| other == key).expect("it is one of them");
                if self.shows_steps { take(batch.column(at), &answer.rows, None)? } else { Arc::clone(batch.column(at)) }
            }
            "prediction" => take(&self.classes, &answer.predictions, None)?,
            "score" => Arc::new(answer.scores.clone()),
            "step" => Arc::new(answer.counts.clone()),
            "action" => {
                let names = StringArray::from(vec!["predict", "ask"]);
                let asks: UInt32Array = answer.units.iter().map(|unit| Some(u32::from(unit.is_some()))).collect();
                take(&names, &asks, None)?
            }
            "feature" => take(&self.units, &answer.units, None)?,
            "features" => {
                let lengths = OffsetBuffer::from_lengths(answer.counts.values().iter().map(|count| *count as usize));
                let names = take(&self.units, &answer.units, None)?;
                Arc::new(ListArray::try_new(Arc::new(Field::new_list_field(DataType::Utf8, true)), lengths, names, None)?)
            }
            "n_features" => Arc::new(answer.counts.clone()),
            "cost" => Arc::new(answer.costs.clone()),
            "correct" => {
                let label = self.has_label.then(|| batch.columns().last()).flatten();
                Arc::new(self.correct(label, answer)?)
            }
            other => return Err(exec_datafusion_err!("DecideExec has no column {other}")),
        })
    }

    /// Whether each prediction is the label; NULL where the label is.
    fn correct(&self, label: Option<&ArrayRef>, answer: &Answer) -> Result<BooleanArray> {
        let Some(label) = label else { return Ok(BooleanArray::new_null(answer.predictions.len())) };
        if label.data_type() == self.classes.data_type() {
            return Ok(eq(label, &take(&self.classes, &answer.predictions, None)?)?);
        }
        // Classes are called by their text; a whole number has no decimals there, whatever its type.
        let label = match kind(label.data_type()) {
            ColumnKind::Number => cast(&cast(label, &DataType::Float64)?, &DataType::Utf8)?,
            _ => cast(label, &DataType::Utf8)?,
        };
        let (label, classes) = (label.as_string::<i32>(), self.class_names.as_string::<i32>());
        let is_same = |(row, class): (usize, &u32)| {
            let value = label.is_valid(row).then(|| label.value(row))?;
            Some(value.strip_suffix(".0").unwrap_or(value) == classes.value(*class as usize))
        };
        Ok(answer.predictions.values().iter().enumerate().map(is_same).collect())
    }
}

/// Decisions by number, those of rows or their steps: names are looked up for a whole batch at once.
struct Answer {
    /// The row of each step.
    rows: UInt32Array,
    predictions: UInt32Array,
    /// Of each step, or of each row those that it asked for, one row after the other.
    units: UInt32Array,
    counts: Int64Array,
    costs: Float64Array,
    scores: Float64Array,
}

impl Answer {
    fn of_rows(decisions: Decisions) -> Self {
        Self {
            rows: UInt32Array::new_null(0),
            predictions: decisions.classes.into(),
            units: decisions.units.into(),
            counts: Int64Array::from_iter_values(decisions.counts.iter().map(|count| i64::from(*count))),
            costs: decisions.costs.into(),
            scores: decisions.scores.into(),
        }
    }

    fn of_steps(decisions: &Decisions) -> Self {
        let (mut rows, mut counts, mut scores) = (Vec::new(), Vec::new(), Vec::new());
        let (mut predictions, mut units): (Vec<Option<u32>>, Vec<Option<u32>>) = (Vec::new(), Vec::new());
        for (row, decision) in decisions.rows().enumerate() {
            for (at, step) in decision.steps.iter().enumerate() {
                rows.push(row as u32);
                counts.push(at as i64 + 1);
                scores.push(step.score);
                let (unit, class) = match step.action {
                    Action::Ask(unit) => (Some(unit as u32), None),
                    Action::Predict(class) => (None, Some(class as u32)),
                };
                units.push(unit);
                predictions.push(class);
            }
        }
        Self {
            rows: rows.into(),
            predictions: predictions.into(),
            units: units.into(),
            counts: counts.into(),
            costs: Float64Array::new_null(0),
            scores: scores.into(),
        }
    }
}
