//! Rows in the order in which they are stored, however many partitions the query has.
//!
//! A pass learns from rows as they come, and files cut into other partitions would come in another order. So its input is planned for one partition, and
//! stays as it was planned: DataFusion optimises the whole query once more, and would deal the rows out.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::operator::{Execution, Operator, OperatorExec};

/// The plan of an input whose rows come in the same order for any number of partitions.
pub(crate) async fn planned(session: &dyn Session, input: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = match session.as_any().downcast_ref::<SessionState>() {
        Some(state) => {
            let mut state = state.clone();
            let config = state.config().clone().with_target_partitions(1);
            *state.config_mut() = config;
            state.create_physical_plan(input).await?
        }
        None => session.create_physical_plan(input).await?,
    };
    Ok(Arc::new(OperatorExec::new(InOrder, vec![plan])))
}

#[derive(Debug)]
struct InOrder;

impl Operator for InOrder {
    const NAME: &'static str = "InOrderExec";
    type Common = ();

    fn function(&self) -> &str {
        "one pass"
    }

    fn properties(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> PlanProperties {
        inputs[0].properties().as_ref().clone()
    }

    fn distribution(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution; inputs.len()]
    }

    // A table in memory has the partitions that it was stored in, and these are its order.
    fn accepts(&self, inputs: &[Arc<dyn ExecutionPlan>], own: &[Arc<dyn ExecutionPlan>]) -> bool {
        let partitions = |plans: &[Arc<dyn ExecutionPlan>]| plans[0].output_partitioning().partition_count();
        partitions(inputs) == partitions(own)
    }

    fn explain(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match form {
            DisplayFormatType::TreeRender => Ok(()),
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, "as stored"),
        }
    }

    fn execute(self: Arc<Self>, execution: Execution<Self>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Execution { inputs, partition, context, .. } = execution;
        let input = inputs.first().ok_or_else(|| exec_datafusion_err!("InOrderExec has an input"))?;
        Ok(input.execute(partition, context)?.boxed())
    }
}
