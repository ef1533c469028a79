//! The rows path, logically: a table whose scan is the selection.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::answer;
use crate::call::Call;
use crate::exec::SelectExec;
use crate::progress::Progress;

#[derive(Debug)]
pub(crate) struct SelectTable {
    input: LogicalPlan,
    call: Call,
    schema: SchemaRef,
    progress: Arc<Progress>,
}

impl SelectTable {
    pub(crate) fn new(input: LogicalPlan, call: Call, progress: Arc<Progress>) -> Self {
        let partitions = call.partitions.iter().map(|at| Arc::clone(&input.schema().fields()[*at]));
        let fields: Vec<FieldRef> = partitions.chain(answer::FIELDS.iter().cloned()).collect();
        Self { input, call, schema: Arc::new(Schema::new(fields)), progress }
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

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut call = self.call.clone();
        let mut input = self.input.clone();
        // Leave columns unread where some are not needed. A projection of all would only make planning slow.
        let needed: Vec<usize> = call.partitions.iter().chain(&call.columns).copied().collect();
        if needed.len() < input.schema().fields().len() {
            let columns: Vec<Expr> =
                needed.iter().map(|at| Expr::Column(Column::from(input.schema().qualified_field(*at)))).collect();
            input = LogicalPlanBuilder::from(input).project(columns)?.build()?;
            call.partitions = (0..call.partitions.len()).collect();
            call.columns = (call.partitions.len()..needed.len()).collect();
        }
        let input = state.create_physical_plan(&input).await?;
        let select = Arc::new(SelectExec::new(call, input, Arc::clone(&self.schema), Arc::clone(&self.progress)));
        let Some(projection) = projection else { return Ok(select) };
        let column = |at: &usize| {
            let name = self.schema.field(*at).name();
            (Arc::new(PhysicalColumn::new(name, *at)) as Arc<dyn PhysicalExpr>, name.clone())
        };
        Ok(Arc::new(ProjectionExec::try_new(projection.iter().map(column).collect::<Vec<_>>(), select)?))
    }
}
