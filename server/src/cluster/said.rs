//! Errors of the executors, as the shell would say them itself. Ballista sends an error as the innards of what found it, with a frame for each stage around them. So an
//! executor marks what there is to say, and the client cuts it out.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use ballista_core::error::BallistaError;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};
use futures::TryStreamExt;

const BEGIN: &str = "«said: ";
const END: &str = "»";

/// What is sent of it is its `Debug`.
struct Said(String);

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BEGIN}{}{END}", self.0)
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Said {}

/// The error to be sent. What Ballista would try once more stays as it is.
pub(super) fn said(error: DataFusionError) -> DataFusionError {
    match words(&error) {
        Some(words) => DataFusionError::External(Box::new(Said(words))),
        None => error,
    }
}

fn words(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::Plan(message) | DataFusionError::Execution(message) => Some(message.clone()),
        DataFusionError::IoError(_) => None,
        DataFusionError::External(inner) => match inner.downcast_ref::<BallistaError>() {
            Some(BallistaError::DataFusionError(inner)) => words(inner),
            Some(BallistaError::ArrowError(inner)) => Some(format!("Arrow error: {inner}")),
            Some(_) => None,
            None => Some(inner.to_string()),
        },
        root => Some(root.strip_backtrace()),
    }
}

fn heard(error: DataFusionError) -> DataFusionError {
    let text = error.to_string();
    let words = text.split_once(BEGIN).and_then(|(_, rest)| rest.rsplit_once(END));
    words.map_or(error, |(words, _)| DataFusionError::Execution(words.to_string()))
}

/// A query on the cluster whose errors are heard.
#[derive(Debug)]
pub(super) struct Hearing(pub Arc<dyn ExecutionPlan>);

impl DisplayAs for Hearing {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(form, f)
    }
}

impl ExecutionPlan for Hearing {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self(Arc::clone(&self.0).replace_children(children, options)?)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => internal_err!("what the cluster runs has no inputs here"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stream = self.0.execute(partition, context)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(stream.schema(), stream.map_err(heard))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_executor_says_is_heard_as_it_was_said() {
        let frame = |error: DataFusionError| {
            let sent = format!("Job 1 failed: Task failed due to runtime execution error: {:?}\n", BallistaError::from(error));
            DataFusionError::Execution(sent)
        };
        let inner = || DataFusionError::Execution("omp: no column \"a»b\"".into());
        let wrapped = DataFusionError::Shared(Arc::new(BallistaError::DataFusionError(Box::new(inner())).into_datafusion()));
        for error in [inner(), wrapped] {
            assert_eq!(heard(frame(said(error))).strip_backtrace(), inner().strip_backtrace());
        }
        // Others are passed on, and what is worth another try is known as such.
        let lost = || BallistaError::FetchFailed("e".into(), 1, 2, "gone".into()).into_datafusion();
        assert!(matches!(BallistaError::from(said(lost())), BallistaError::FetchFailed(..)));
        let io = DataFusionError::IoError(std::io::Error::other("disk"));
        assert!(matches!(said(io), DataFusionError::IoError(_)));
        assert!(heard(frame(lost())).to_string().contains("Job 1 failed"));
    }
}
