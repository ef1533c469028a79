//! The rows path, physically: read everything, hand it to the selector, emit the ranking.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{SortOptions, cast, concat, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::exec_datafusion_err;
use datafusion::common::runtime::JoinSet;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{
    DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PlanProperties, collect,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use pursuit_udfs::{Budget, Count, Lease, Plan, Reads, RowsBuilder, Run, Seen, Shown};
use rayon::prelude::*;
use tokio::task::JoinError;

use crate::call::Call;
use crate::columns::Batch;
use crate::error::named;
use crate::gathered::Gathered;
use crate::inputs::{check_by_keys, check_whole, in_pieces, narrow, reading_bytes, rows_at_once, steady, stored_bytes, unmerged};
use crate::lanes::Lane;
use crate::memory::Memory;
use crate::operator::{Execution, Operator, OperatorExec, one_answer};
use crate::panics;
use crate::progress::{Active, Progress};
use crate::question::Question;
use crate::shares::{self, Part};

/// What is kept of each group; without `partition_by` there is one, without a key.
pub(crate) type Groups = BTreeMap<Option<OwnedRow>, Gathered>;

/// Collects its input's rows and runs a selector on them.
///
/// Inputs: the table; then, if the call has them, the second table and the names of the features; for a single pass the number of rows.
#[derive(Debug, Clone)]
pub(crate) struct Select {
    pub(crate) call: Arc<Call>,
    pub(crate) schema: SchemaRef,
    pub(crate) progress: Arc<Progress>,
    /// The query takes no more rows than that.
    pub(crate) limit: Option<usize>,
    /// The query takes no rank beyond that.
    pub(crate) last_rank: Option<usize>,
    /// Whether it asks for a column that later choices would change.
    pub(crate) shows_fit: bool,
    /// Whether groups are answered where the rows of each are, a partition by itself, and not all in one place.
    pub(crate) is_spread: bool,
    /// What it makes of the selections that the call needs.
    pub(crate) part: Part,
    /// Bytes of the files that each input reads, where that is known: for whoever runs it somewhere else.
    pub(crate) stored: Vec<Option<u64>>,
}

pub(crate) type SelectExec = OperatorExec<Select>;

impl Select {
    pub(crate) fn new(call: Call, schema: SchemaRef, progress: Arc<Progress>) -> Self {
        Self {
            call: Arc::new(call),
            schema,
            progress,
            limit: None,
            last_rank: None,
            shows_fit: true,
            is_spread: false,
            part: Part::Whole,
            stored: Vec::new(),
        }
    }

    /// The operator of a query that takes no rank beyond `last_rank`, and only some columns.
    pub(crate) fn up_to(mut self, last_rank: Option<usize>, shows: impl Fn(&str) -> bool) -> Self {
        (self.last_rank, self.shows_fit) = (last_rank, shows("coefficient"));
        self
    }

    /// The operator for other machines: groups are answered apart, and it takes note of what its inputs are, to see whether it is given all of it.
    pub(crate) fn spread(mut self, inputs: &[Arc<dyn ExecutionPlan>]) -> Self {
        let is_cut = inputs.len() == 1 && inputs[0].output_partitioning().partition_count() > 1;
        self.is_spread = is_cut && !self.call.partitions.is_empty();
        self.stored = inputs.iter().map(stored_bytes).collect();
        self
    }

    /// The choices that suffice for the query, if those are fewer than the call asks for and the same as its first.
    fn enough(&self) -> Option<usize> {
        let common = &self.call.question.common;
        // Shares were planned before such a limit was known.
        let limit = self.limit.filter(|_| self.call.partitions.is_empty() && self.part == Part::Whole);
        let wanted = limit.into_iter().chain(self.last_rank).min()?.max(common.must_include.len()).max(1);
        let asked = match common.k {
            Count::Exactly(k) => k,
            Count::Default => 10.max(common.must_include.len()),
            Count::Auto | Count::OneSe => 0,
        };
        let is_first = self.call.question.is_prefix && common.rows == Shown::Chosen && !self.shows_fit;
        (is_first && wanted < asked).then_some(wanted)
    }

    /// The columns of `partition_by` in the input.
    fn keys(&self, input: &dyn ExecutionPlan) -> Vec<Arc<dyn PhysicalExpr>> {
        let schema = input.schema();
        let column = |at: &usize| Arc::new(PhysicalColumn::new(schema.field(*at).name(), *at)) as Arc<dyn PhysicalExpr>;
        self.call.partitions.iter().map(column).collect()
    }

    /// The order of the answer: groups by their keys, and a ranking by rank. The path of a selector repeats its ranks, in order too.
    fn order(&self) -> Option<LexOrdering> {
        if matches!(self.part, Part::Share { .. }) {
            return None;
        }
        let sorted = |at: usize, nulls_first: bool| {
            let column = Arc::new(PhysicalColumn::new(self.schema.field(at).name(), at));
            PhysicalSortExpr::new(column, SortOptions { descending: false, nulls_first })
        };
        let keys = self.call.partitions.len();
        let is_ranked = self.call.question.spec.is_selector();
        // Features that were not chosen come last, without a rank.
        let rank = is_ranked.then(|| sorted(keys, false));
        LexOrdering::new((0..keys).map(|at| sorted(at, true)).chain(rank))
    }
}

impl Operator for Select {
    const NAME: &'static str = "SelectExec";
    type Common = ();

    fn function(&self) -> &str {
        self.call.question.spec.name
    }

    fn properties(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> PlanProperties {
        let partitions = if self.is_spread { inputs[0].output_partitioning().partition_count() } else { 1 };
        let one = one_answer(EquivalenceProperties::new_with_orderings(Arc::clone(&self.schema), self.order()));
        one.with_partitioning(Partitioning::UnknownPartitioning(partitions))
    }

    // A selection is about all rows, wherever they are; that of a group about those of the group.
    fn distribution(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Vec<Distribution> {
        let mut distribution = vec![Distribution::SinglePartition; inputs.len()];
        if self.is_spread {
            distribution[0] = Distribution::KeyPartitioned(self.keys(inputs[0].as_ref()));
        }
        distribution
    }

    fn limited(&self, rows: Option<usize>) -> Option<Self> {
        Some(Self { limit: rows, ..self.clone() })
    }

    fn limit(&self) -> Option<usize> {
        self.limit
    }

    fn explain(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, label, features) = (self.function(), &self.call.plan.label, self.call.plan.features.len());
        let reads = match (self.call.reads, self.call.parting) {
            (Reads::Pass(_), _) => "one pass",
            (_, Some(_)) => "moments",
            (_, None) => "rows",
        };
        match form {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "selector={name}, label={label}, features={features}, reads={reads}")?;
                if let Some(parting) = self.call.parting {
                    write!(f, ", parts={}", parting.parts)?;
                }
                if let Some(draw) = self.call.draw {
                    write!(f, ", sample_rows={}", draw.rows)?;
                }
                if self.is_spread {
                    write!(f, ", by_group")?;
                }
                self.part.explain(f)?;
                match (self.enough(), self.limit) {
                    (Some(steps), _) => write!(f, ", limit={steps}"),
                    (None, Some(rows)) => write!(f, ", fetch={rows}"),
                    (None, None) => Ok(()),
                }
            }
            DisplayFormatType::TreeRender => write!(f, "selector={name}\nlabel={label}\nfeatures={features}"),
        }
    }

    fn execute(self: Arc<Self>, execution: Execution<Self>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Execution { inputs, partition, context, metrics, .. } = execution;
        check_whole(self.function(), &inputs, &self.stored)?;
        if self.is_spread {
            check_by_keys(self.function(), inputs[0].as_ref(), self.keys(inputs[0].as_ref()))?;
        }
        let only = self.is_spread.then_some(partition);
        if only.is_none() && partition != 0 {
            return Err(exec_datafusion_err!("SelectExec has one partition, not {partition}"));
        }
        let (mut call, schema, progress) = (Arc::clone(&self.call), Arc::clone(&self.schema), Arc::clone(&self.progress));
        if let Some(choices) = self.enough() {
            Arc::make_mut(&mut call).question.common.k = Count::Exactly(choices);
        }
        let inputs = if self.is_spread { inputs } else { inputs.into_iter().map(unmerged).collect() };
        let selection = Selection { call, inputs, only, part: self.part, schema, progress, metrics };
        let rows = self.limit.unwrap_or(usize::MAX);
        let selected = async move { selection.select(context).await.map(|batch| batch.slice(0, rows.min(batch.num_rows()))) };
        Ok(futures::stream::once(selected).boxed())
    }
}

/// One execution of a call.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) call: Arc<Call>,
    pub(crate) inputs: Vec<Arc<dyn ExecutionPlan>>,
    /// The partition of the table that is read, if not all are.
    pub(crate) only: Option<usize>,
    pub(crate) part: Part,
    pub(crate) schema: SchemaRef,
    pub(crate) progress: Arc<Progress>,
    pub(crate) metrics: ExecutionPlanMetricsSet,
}

/// The answer of a group, and what was read for it.
struct Answered {
    columns: Vec<ArrayRef>,
    seen: Seen,
}

impl Selection {
    async fn select(mut self, context: Arc<TaskContext>) -> Result<RecordBatch> {
        let name = self.call.question.spec.name;
        let baseline = BaselineMetrics::new(&self.metrics, 0);
        let metrics = self.metrics.clone();
        let time = |metric| MetricBuilder::new(&metrics).subset_time(metric, 0);
        let count = |metric| MetricBuilder::new(&metrics).counter(metric, 0);
        let (read_time, select_time) = (time("read_time"), time("select_time"));
        let memory = Arc::new(Memory::new(Arc::clone(&self.call), &context, &self.metrics));

        if let Reads::Pass(first_rows) = self.call.reads {
            let timer = select_time.timer();
            let columns = self.pass(first_rows, &context, &memory).await?;
            timer.done();
            count("steps").add(columns.first().map_or(0, |column| column.len()));
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
            baseline.record_output(batch.num_rows());
            return Ok(batch);
        }

        // One for all: keys made by another converter would not be comparable.
        let converter = self.converter()?.map(Arc::new);
        let active = Arc::new(self.progress.start());
        let timer = read_time.timer();
        let share = self.part.share(&mut self.inputs, &context).await?;
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
        let question = self.call.question.clone();
        let (keys, builders): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
        // What moments would suffice for is solved in milliseconds, unless the rows themselves are many.
        let is_solved = question.spec.is_selector() && question.reads == Reads::Moments;
        let is_short = is_solved && builders.iter().map(Gathered::bytes).sum::<usize>() <= SHORT_BYTES;
        let lane = if is_short { Lane::Short } else { Lane::Long };
        let running = question.start(&self.progress, Some(memory as _), lane).map_err(|error| named(name, error))?;
        let plan = self.call.plan.clone();
        let running = running.sharing(&share);
        let answers = running.job(move |run| answer_groups(&question, builders, held_out, &plan, run)).await;
        if let (Part::Share { .. }, Some(share)) = (self.part, share) {
            timer.done();
            return shares::batch(&share);
        }
        let answers = answers.map_err(|error| named(name, error))?;
        timer.done();

        for Answered { columns, seen } in &answers {
            count("rows_read").add((seen.rows.max(seen.sampled_from) + seen.rows_dropped()) as usize);
            count("rows_dropped").add(seen.rows_dropped() as usize);
            count("values_filled").add(self.call.plan.values_filled(seen) as usize);
            count("values_out_of_range").add(seen.out_of_range as usize);
            count("steps").add(columns[0].len());
        }
        let batch = self.together(keys, &answers, converter.as_deref())?;
        baseline.record_output(batch.num_rows());
        Ok(batch)
    }

    /// The answers of all groups as one batch, with their keys in front.
    fn together(
        &self,
        keys: Vec<Option<OwnedRow>>,
        answers: &[Answered],
        converter: Option<&RowConverter>,
    ) -> Result<RecordBatch> {
        if answers.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let columns = (0..self.call.question.fields.len())
            .map(|at| Ok(concat(&answers.iter().map(|answer| answer.columns[at].as_ref()).collect::<Vec<_>>())?))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let keys = keys.iter().zip(answers).flat_map(|(key, answer)| std::iter::repeat_n(key, answer.columns[0].len()));
        let mut all = match converter {
            Some(converter) => converter.convert_rows(keys.flatten().map(OwnedRow::row))?,
            None => Vec::new(),
        };
        // Keys come back as plain values where the column was a dictionary.
        for (column, field) in all.iter_mut().zip(self.schema.fields()) {
            *column = cast(column, field.data_type())?;
        }
        all.extend(columns);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), all)?)
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
        // Who judges is read as a whole.
        let call = Call { columns: held_out.columns.clone(), partitions: Vec::new(), draw: None, ..self.call.as_ref().clone() };
        Some(Self { call: Arc::new(call), inputs: vec![Arc::clone(&self.inputs[1])], only: None, ..self.clone() })
    }

    /// All partitions at once; one builder for each group.
    async fn read(
        &self,
        context: &Arc<TaskContext>,
        memory: &Arc<Memory>,
        active: &Arc<Active>,
        converter: &Option<Arc<RowConverter>>,
    ) -> Result<Groups> {
        let reading = reading_bytes(&self.inputs[0], context, self.call.columns.len());
        memory.grow(reading)?;
        let context = &steady(context, self.call.columns.len());
        // Dropping the set ends the reads.
        let mut reads: JoinSet<Result<Groups>> = JoinSet::new();
        let all = 0..self.inputs[0].output_partitioning().partition_count();
        for partition in self.only.map_or(all, |partition| partition..partition + 1) {
            let mut stream = self.inputs[0].execute(partition, Arc::clone(context))?;
            let (selection, memory, active, converter) =
                (self.clone(), Arc::clone(memory), Arc::clone(active), converter.clone());
            reads.spawn(async move {
                let (mut groups, mut asked): (Groups, usize) = (BTreeMap::new(), 0);
                let keeps_rows = selection.call.parting.is_none() && selection.call.draw.is_none();
                let at_once = rows_at_once(selection.call.columns.len());
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    if keeps_rows {
                        memory.grow(RowsBuilder::bytes_for(&selection.call.plan, batch.num_rows()))?;
                    }
                    for rows in in_pieces(&batch, at_once) {
                        // Names that rows bring are known when they are there; there are no more of them than rows.
                        let names = selection.push(&rows, converter.as_deref(), &mut groups)?;
                        memory.grow(if keeps_rows { names } else { 0 })?;
                        tokio::task::yield_now().await;
                    }
                    if !keeps_rows {
                        // Moments grow with the columns that show themselves, a batch at a time.
                        let bytes = groups.values().map(Gathered::bytes).sum::<usize>();
                        memory.grow(bytes.saturating_sub(asked))?;
                        asked = asked.max(bytes);
                    }
                    active.add_rows(batch.num_rows());
                }
                Ok(groups)
            });
        }
        let mut groups: Groups = BTreeMap::new();
        while let Some(read) = reads.join_next().await {
            for (key, builder) in self.joined(read)? {
                match groups.get_mut(&key) {
                    Some(first) => first.append(builder).map_err(|error| named(self.call.question.spec.name, error))?,
                    None => {
                        groups.insert(key, builder);
                    }
                }
            }
        }
        memory.shrink(reading);
        if groups.is_empty() && self.call.partitions.is_empty() {
            groups.insert(None, Gathered::new(&self.call));
        }
        Ok(groups)
    }

    /// What a task that reads has brought.
    pub(crate) fn joined<T>(&self, read: Result<Result<T>, JoinError>) -> Result<T> {
        read.unwrap_or_else(|error| {
            let message = match error.try_into_panic() {
                Ok(panic) => panics::internal_error(&*panic),
                Err(error) => format!("reading failed: {error}"),
            };
            Err(exec_datafusion_err!("{}: {message}", self.call.question.spec.name))
        })
    }

    /// Adds a batch, and returns the bytes of names that it brought.
    pub(crate) fn push(&self, batch: &RecordBatch, converter: Option<&RowConverter>, groups: &mut Groups) -> Result<usize> {
        let plan = &self.call.plan;
        let columns: Vec<ArrayRef> = self.call.columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let mut add = |key: Option<OwnedRow>, columns: &[ArrayRef]| -> Result<usize> {
            let builder = groups.entry(key).or_insert_with(|| Gathered::new(&self.call));
            let before = builder.name_bytes();
            let pushed = Batch::new(plan, columns)?
                .hand_over(|rows, label, weights, features| builder.push(rows, label, weights, features));
            pushed.map_err(|error| named(self.call.question.spec.name, error))?;
            Ok(builder.name_bytes().saturating_sub(before))
        };
        let Some(converter) = converter else { return add(None, &columns) };
        let keys: Vec<ArrayRef> = self.call.partitions.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let keys = converter.convert_columns(&keys)?;
        let mut rows_of: BTreeMap<OwnedRow, Vec<u32>> = BTreeMap::new();
        for (row, key) in keys.iter().enumerate() {
            rows_of.entry(key.owned()).or_default().push(row as u32);
        }
        let mut names = 0;
        for (key, rows) in rows_of {
            let rows = UInt32Array::from(rows);
            let columns = columns.iter().map(|column| Ok(take(column, &rows, None)?)).collect::<Result<Vec<_>>>()?;
            names += add(Some(key), &columns)?;
        }
        Ok(names)
    }

    /// Turns the columns of `partition_by` into comparable keys and back.
    fn converter(&self) -> Result<Option<RowConverter>> {
        self.converter_of(&self.inputs[0].schema())
    }

    /// The same for an input of this schema.
    pub(crate) fn converter_of(&self, schema: &SchemaRef) -> Result<Option<RowConverter>> {
        if self.call.partitions.is_empty() {
            return Ok(None);
        }
        let fields = self.call.partitions.iter().map(|at| SortField::new(schema.field(*at).data_type().clone()));
        Ok(Some(RowConverter::new(fields.collect())?))
    }
}

/// The answer of each group. Groups are answered side by side as far as their memory is granted, and those that were refused it
/// one by one, when the others have given theirs back.
fn answer_groups(
    question: &Question,
    builders: Vec<Gathered>,
    held_out: Option<Gathered>,
    plan: &Plan,
    run: &Run,
) -> pursuit_udfs::Result<Vec<Answered>> {
    let answer = |builder: Gathered, _lease: Lease| {
        let read = builder.finish(held_out.as_ref())?;
        let seen = read.data.seen().clone();
        if seen.not_drawn > 0 {
            run.remark(&format!("by {} of {} rows: sample_rows", seen.sampled_from - seen.not_drawn, seen.sampled_from));
        }
        Ok(Answered { columns: question.columns(read, plan, run)?, seen })
    };
    let finish_bytes = |builder: &Gathered| {
        builder.finish_bytes() + held_out.as_ref().map_or(0, |held_out| held_out.bytes() + held_out.finish_bytes())
    };
    let side_by_side = |builder: Gathered| -> pursuit_udfs::Result<Result<Answered, Gathered>> {
        match run.reserve(finish_bytes(&builder)) {
            Ok(lease) => answer(builder, lease).map(Ok),
            Err(_) => Ok(Err(builder)),
        }
    };
    let answers: Vec<_> = builders.into_par_iter().with_max_len(1).map(side_by_side).collect::<pursuit_udfs::Result<_>>()?;
    let one_by_one = |answered: Result<Answered, Gathered>| {
        answered.or_else(|builder| {
            let lease = run.reserve(finish_bytes(&builder))?;
            answer(builder, lease)
        })
    };
    answers.into_iter().map(one_by_one).collect()
}

/// Rows of more than this are not gone through in milliseconds.
const SHORT_BYTES: usize = 64 << 20;
