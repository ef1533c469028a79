//! A table that is the answer of an operator over the tables given to it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::operator::{Operator, OperatorExec};
use crate::table::projected;

#[derive(Debug)]
pub(crate) struct OperatorTable<O: Operator> {
    operator: Arc<O>,
    schema: SchemaRef,
    inputs: Vec<LogicalPlan>,
}

impl<O: Operator> OperatorTable<O> {
    pub(crate) fn new(operator: impl Into<Arc<O>>, schema: &SchemaRef, inputs: Vec<LogicalPlan>) -> Self {
        Self { operator: operator.into(), schema: Arc::clone(schema), inputs }
    }
}

#[async_trait]
impl<O: Operator> TableProvider for OperatorTable<O> {
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
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            inputs.push(state.create_physical_plan(input).await?);
        }
        match projection.map(|columns| self.operator.narrowed(columns)).transpose()?.flatten() {
            Some(narrowed) => Ok(Arc::new(OperatorExec::<O>::new(narrowed, inputs))),
            None => projected(Arc::new(OperatorExec::<O>::new(Arc::clone(&self.operator), inputs)), projection),
        }
    }
}
