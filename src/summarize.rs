//! Answers that are gathered while rows stream by: each partition by itself, and merged at the end.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::exec_datafusion_err;
use datafusion::common::runtime::JoinSet;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use pursuit_udfs::{Error, LeftOut, Plan, Settings, Spec, Summarize, Summary, Types, Work};

use crate::answer;
use crate::call::{self, Input};
use crate::columns::{ColumnKind, kind, with_blocks};
use crate::error::named;
use crate::inputs::{in_pieces, rows_at_once, unmerged};
use crate::operator::{Execution, Operator, one_answer};
use crate::operator_table::OperatorTable;
use crate::progress::Progress;
use crate::question::Question;
use crate::table::project;

/// The call as a table.
pub(crate) fn provider(
    spec: &Arc<Spec>,
    progress: &Arc<Progress>,
    input: LogicalPlan,
    name: Option<&str>,
    label: Option<&str>,
    settings: &Settings,
) -> Result<Arc<dyn TableProvider>> {
    let gathering = || -> pursuit_udfs::Result<_> {
        let question = Question::new(Arc::clone(spec), settings)?;
        let Work::Summarize(work) = (spec.build)(question.own())? else { return Err(Error::call("gathers nothing")) };
        let table = Input { schema: input.schema(), table: name };
        let (plan, columns, types) = plan(&table, label, &question, work.as_ref())?;
        // What is wrong with the columns shows before a row is read.
        work.begin(&plan, &types)?;
        let schema = Arc::new(Schema::new(question.fields.clone()));
        Ok(Summarizing { name: spec.name, work, plan, types, columns, schema, progress: Arc::clone(progress) })
    };
    let mut gathering = gathering().map_err(|error| named(spec.name, error))?;
    // Leave columns unread that are not needed.
    let (input, columns) = project(&input, std::mem::take(&mut gathering.columns))?;
    gathering.columns = columns;
    let schema = Arc::clone(&gathering.schema);
    Ok(Arc::new(OperatorTable::new(gathering, &schema, vec![input])))
}

/// How the table is read: the plan, and which columns, the label first.
fn plan(
    input: &Input<'_>,
    label: Option<&str>,
    question: &Question,
    work: &dyn Summarize,
) -> pursuit_udfs::Result<(Plan, Vec<usize>, Types)> {
    input.has_unique_names()?;
    let label_at = label.map(|label| input.column(label, None)).transpose()?;
    let reserved: BTreeSet<usize> = label_at.into_iter().collect();
    let (mut candidates, mut left_out) = call::candidates(input, &reserved, question)?;
    // What the call itself leaves out needs no row.
    left_out.retain(|out| {
        input.schema.field_with_unqualified_name(&out.feature).is_ok_and(|field| kind(field.data_type()) == ColumnKind::Other)
    });
    if !work.reads_texts() {
        let is_text = |at: &usize| kind(input.data_type(*at)) == ColumnKind::Text;
        let text = |at: &usize| LeftOut { feature: input.name(*at).to_string(), reason: "text".to_string() };
        left_out.extend(candidates.iter().filter(|at| is_text(at)).map(text));
        candidates.retain(|at| !is_text(at));
        if candidates.is_empty() {
            return Err(Error::call("no column is a number; check `features` and `exclude`"));
        }
    }
    let type_of = |at: usize| input.data_type(at).to_string();
    let types = Types { label: label_at.map(type_of), features: candidates.iter().map(|at| type_of(*at)).collect() };
    let plan = call::plan_of(input, label_at, &candidates, left_out, &question.common)?;
    Ok((plan, label_at.into_iter().chain(candidates).collect(), types))
}

/// What an operator must know to gather.
struct Summarizing {
    name: &'static str,
    work: Arc<dyn Summarize>,
    plan: Plan,
    types: Types,
    /// Positions in the input: the label's if there is one, then those of the features.
    columns: Vec<usize>,
    schema: SchemaRef,
    progress: Arc<Progress>,
}

impl fmt::Debug for Summarizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Summarizing({}, columns {:?})", self.name, self.columns)
    }
}

impl Operator for Summarizing {
    const NAME: &'static str = "SummarizeExec";
    type Common = ();

    fn function(&self) -> &str {
        self.name
    }

    fn properties(&self, _: &[Arc<dyn ExecutionPlan>]) -> PlanProperties {
        one_answer(EquivalenceProperties::new(Arc::clone(&self.schema)))
    }

    fn explain(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "function={}, features={}, reads=one pass", self.name, self.plan.features.len())
    }

    fn execute(self: Arc<Self>, execution: Execution<Self>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Execution { inputs, context, .. } = execution;
        let input = inputs.into_iter().next().ok_or_else(|| exec_datafusion_err!("SummarizeExec has an input"))?;
        let summary = async move {
            let input = unmerged(input);
            // Dropping the query drops these, which ends them at their next batch.
            let mut parts = JoinSet::new();
            for partition in 0..input.output_partitioning().partition_count() {
                parts.spawn(Arc::clone(&self).gather(Arc::clone(&input), partition, Arc::clone(&context)));
            }
            let mut whole = self.begin()?;
            while let Some(part) = parts.join_next().await {
                let part = part.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
                whole.merge(part).map_err(|error| named(self.name, error))?;
            }
            let columns = whole.finish().map_err(|error| named(self.name, error))?;
            Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns.into_iter().map(answer::column).collect())?)
        };
        Ok(futures::stream::once(summary).boxed())
    }
}

impl Summarizing {
    fn begin(&self) -> Result<Box<dyn Summary>> {
        self.work.begin(&self.plan, &self.types).map_err(|error| named(self.name, error))
    }

    /// Gathers one partition.
    async fn gather(
        self: Arc<Self>,
        input: Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<Box<dyn Summary>> {
        let memory = MemoryConsumer::new(format!("SummarizeExec[{}]", self.name)).register(context.memory_pool());
        let mut part = self.begin()?;
        let active = self.progress.start();
        let label_is_text = self.plan.label_kind == pursuit_udfs::LabelKind::Class;
        let has_label = self.types.label.is_some();
        let texts: Vec<bool> = has_label
            .then_some(label_is_text)
            .into_iter()
            .chain(self.plan.features.iter().map(|feature| feature.is_text))
            .collect();
        let mut batches = input.execute(partition, context)?;
        while let Some(batch) = batches.try_next().await? {
            for rows in in_pieces(&batch, rows_at_once(self.columns.len())) {
                let columns: Vec<(ArrayRef, bool)> =
                    self.columns.iter().zip(&texts).map(|(at, is_text)| (Arc::clone(rows.column(*at)), *is_text)).collect();
                let pushed = with_blocks(&columns, |blocks| {
                    let (label, features) = blocks.split_at(usize::from(has_label));
                    part.push(rows.num_rows(), label.first().copied(), features)
                })?;
                pushed.map_err(|error| named(self.name, error))?;
                memory.try_resize(part.bytes())?;
                active.add_rows(rows.num_rows());
                tokio::task::yield_now().await;
            }
        }
        Ok(part)
    }
}
