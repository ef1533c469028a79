//! The rows path, logically: a table whose scan is the selection.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, TableProviderFilterPushDown, TableType, ident, lit,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::scalar::ScalarValue;
use pursuit_udfs::{Plan, Reads, Value};

use crate::call::Call;
use crate::exec::{Select, SelectExec};
use crate::in_order;
use crate::progress::Progress;
use crate::shares::{self, Part};

#[derive(Debug)]
pub(crate) struct SelectTable {
    input: LogicalPlan,
    pub(crate) call: Call,
    schema: SchemaRef,
    progress: Arc<Progress>,
    /// Whether groups may be answered on different machines.
    is_spread: bool,
}

impl SelectTable {
    pub(crate) fn new(input: LogicalPlan, call: Call, progress: Arc<Progress>) -> Self {
        let partitions = call.partitions.iter().map(|at| Arc::clone(&input.schema().fields()[*at]));
        let fields: Vec<FieldRef> = partitions.chain(call.question.fields.iter().cloned()).collect();
        let identity = HashMap::from([("pursuit.call".to_string(), identity(&input, &call))]);
        Self { schema: Arc::new(Schema::new_with_metadata(fields, identity)), input, call, progress, is_spread: false }
    }

    /// The same table on another machine, where the groups of `partition_by` go to whoever is free. It has the columns that it was announced with.
    pub(crate) fn elsewhere(self, schema: SchemaRef) -> Self {
        Self { is_spread: true, schema, ..self }
    }

    /// The table that is selected from.
    pub(crate) fn input(&self) -> &LogicalPlan {
        &self.input
    }
}

/// What tells a call from others. DataFusion takes two scans for one if their names and schemas are equal, and two subqueries of one query would share an
/// answer.
fn identity(input: &LogicalPlan, call: &Call) -> String {
    let mut hasher = DefaultHasher::new();
    (input, &call.plan.label, Value::Object(call.settings.clone()).to_string()).hash(&mut hasher);
    (call.held_out.as_ref().map(|held_out| &held_out.plan), &call.features).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl SelectTable {
    pub(crate) fn function(&self) -> &'static str {
        self.call.question.spec.name
    }

    /// How the label is read, and its type.
    pub(crate) fn label(&self) -> (&Plan, DataType) {
        let at = self.call.columns[0];
        (&self.call.plan, self.input.schema().field(at).data_type().clone())
    }
}

#[async_trait]
impl TableProvider for SelectTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    /// The filter stays where it is; it tells how many choices suffice.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let is_about_rank = |filter: &&Expr| last_rank(filter).is_some();
        let kind =
            |told: bool| if told { TableProviderFilterPushDown::Inexact } else { TableProviderFilterPushDown::Unsupported };
        Ok(filters.iter().map(|filter| kind(is_about_rank(filter))).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // A limit is about the rows of all groups together.
        let limit = limit.filter(|_| self.call.partitions.is_empty());
        let last_rank = filters.iter().filter_map(last_rank).chain(limit).min();
        let shows = |name: &str| {
            let at = self.schema.column_with_name(name).map(|(at, _)| at);
            at.is_some_and(|at| projection.is_none_or(|columns| columns.contains(&at)))
        };
        let select = |call: Call| Select::new(call, Arc::clone(&self.schema), Arc::clone(&self.progress)).up_to(last_rank, shows);
        let (call, mut inputs) = self.planned(state).await?;
        if !self.is_spread {
            return projected(Arc::new(SelectExec::new(select(call), inputs)), projection);
        }
        let of = shares::count(&call, state.config_options().execution.target_partitions);
        let mut select_all = select(call).spread(&inputs);
        if of > 1 {
            let mut made: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(of);
            for first in 0..of {
                // Each plans its inputs for itself: who shares a plan is executed by the same machine.
                let (call, inputs) = self.planned(state).await?;
                let share = Select { part: Part::Share { first, of }, schema: shares::schema(), ..select(call).spread(&inputs) };
                made.push(Arc::new(SelectExec::new(share, inputs)));
            }
            select_all.part = Part::Rest { of };
            inputs.push(UnionExec::try_new(made)?);
        }
        projected(Arc::new(SelectExec::new(select_all, inputs)), projection)
    }
}

impl SelectTable {
    /// The call with the columns that it needs, and its inputs.
    async fn planned(&self, state: &dyn Session) -> Result<(Call, Vec<Arc<dyn ExecutionPlan>>)> {
        let mut call = self.call.clone();
        // Leave columns unread where some are not needed.
        let needed: Vec<usize> = call.partitions.iter().chain(&call.columns).copied().collect();
        let (input, needed) = project(&self.input, needed)?;
        let partitions = call.partitions.len();
        (call.partitions, call.columns) = (needed[..partitions].to_vec(), needed[partitions..].to_vec());
        let is_pass = matches!(call.reads, Reads::Pass(_));
        let table = if is_pass { in_order::planned(state, &input).await? } else { state.create_physical_plan(&input).await? };
        let mut inputs = vec![table];
        if let Some(held_out) = &mut call.held_out {
            let (plan, columns) = project(&held_out.plan, std::mem::take(&mut held_out.columns))?;
            held_out.columns = columns;
            inputs.push(state.create_physical_plan(&plan).await?);
        }
        if let Some(features) = &call.features {
            let names = LogicalPlanBuilder::from(features.clone()).project([ident("feature")])?.build()?;
            inputs.push(state.create_physical_plan(&names).await?);
        }
        if is_pass {
            let rows = LogicalPlanBuilder::from(input.clone()).aggregate(Vec::<Expr>::new(), vec![count(lit(1))])?.build()?;
            inputs.push(state.create_physical_plan(&rows).await?);
        }
        Ok((call, inputs))
    }
}

/// The last rank that a filter lets through: `rank <= 3`, `rank < 4`, `rank = 3`, either way round.
fn last_rank(filter: &Expr) -> Option<usize> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
    let is_rank = |side: &Expr| matches!(side, Expr::Column(column) if column.name == "rank");
    let (op, value) = match (&**left, &**right) {
        (rank, Expr::Literal(value, _)) if is_rank(rank) => (*op, value),
        (Expr::Literal(value, _), rank) if is_rank(rank) => (op.swap()?, value),
        _ => return None,
    };
    let ScalarValue::Int64(Some(value)) = value.cast_to(&DataType::Int64).ok()? else { return None };
    let last = match op {
        Operator::LtEq | Operator::Eq => value,
        Operator::Lt => value.saturating_sub(1),
        _ => return None,
    };
    Some(usize::try_from(last).unwrap_or(0))
}

/// The plan with only these columns, and where they are then. A projection of all would only make planning slow.
pub(crate) fn project(plan: &LogicalPlan, columns: Vec<usize>) -> Result<(LogicalPlan, Vec<usize>)> {
    if columns.len() == plan.schema().fields().len() {
        return Ok((plan.clone(), columns));
    }
    let exprs: Vec<Expr> = columns.iter().map(|at| Expr::Column(Column::from(plan.schema().qualified_field(*at)))).collect();
    Ok((LogicalPlanBuilder::from(plan.clone()).project(exprs)?.build()?, (0..columns.len()).collect()))
}

/// The operator with only the columns that the query asks for.
pub(crate) fn projected(plan: Arc<dyn ExecutionPlan>, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(projection) = projection else { return Ok(plan) };
    let schema = plan.schema();
    let column = |at: &usize| {
        let name = schema.field(*at).name();
        (Arc::new(PhysicalColumn::new(name, *at)) as Arc<dyn PhysicalExpr>, name.clone())
    };
    Ok(Arc::new(ProjectionExec::try_new(projection.iter().map(column).collect::<Vec<_>>(), plan)?))
}
