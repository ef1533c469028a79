//! What EXPLAIN ANALYZE shows of the moments path: its nodes are DataFusion's own, which know nothing of rows dropped or values filled. A node that is put
//! between them for that occasion counts, and is not there otherwise.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::stream::{BoxStream, StreamExt, unfold};
use pursuit_udfs::Moments;

use crate::error::named;
use crate::expand::GRAM;
use crate::operator::{Execution, Operator, OperatorExec};

/// The plan with a node that counts wherever a selection begins from moments.
pub(crate) fn measured(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let measure = |node: Arc<dyn ExecutionPlan>| {
        let input = node.children().first().map(|input| Arc::clone(input));
        match input.filter(|input| node.name() == "async_func" && input.schema().column_with_name(GRAM).is_some()) {
            Some(input) => {
                let counted: Vec<Arc<dyn ExecutionPlan>> = vec![Arc::new(OperatorExec::new(MomentsRead, vec![input]))];
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                Ok(Transformed::yes(node.replace_children(counted, options)?))
            }
            None => Ok(Transformed::no(node)),
        }
    };
    plan.transform_up(measure).data()
}

/// Hands grams on as they come.
#[derive(Debug)]
struct MomentsRead;

impl Operator for MomentsRead {
    const NAME: &'static str = "MomentsExec";

    type Common = ();

    fn function(&self) -> &str {
        "select_from"
    }

    fn properties(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> PlanProperties {
        inputs[0].properties().as_ref().clone()
    }

    fn distribution(&self, _: &[Arc<dyn ExecutionPlan>]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn explain(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = "second moments, from which the features are chosen";
        if form == DisplayFormatType::TreeRender { writeln!(f, "reads={text}") } else { f.write_str(text) }
    }

    fn execute(self: Arc<Self>, execution: Execution<Self>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Execution { inputs, partition, context, metrics, .. } = execution;
        let input = inputs[0].execute(partition, context)?;
        let (begin, time) = (Instant::now(), |metric: &'static str, metrics: &ExecutionPlanMetricsSet| {
            MetricBuilder::new(metrics).subset_time(metric, partition)
        });
        let (read_time, select_time) = (time("read_time", &metrics), time("select_time", &metrics));
        // What was handed on is worked on until the next batch is asked for.
        let next = move |(mut input, handed_on): (_, Option<Instant>)| {
            let (metrics, read_time, select_time) = (metrics.clone(), read_time.clone(), select_time.clone());
            async move {
                if let Some(handed_on) = handed_on {
                    select_time.add_duration(handed_on.elapsed());
                }
                let batch: Result<RecordBatch> = datafusion::execution::SendableRecordBatchStream::next(&mut input).await?;
                if handed_on.is_none() {
                    read_time.add_duration(begin.elapsed());
                }
                let counted = batch.and_then(|batch| count(&batch, &metrics, partition).map(|()| batch));
                Some((counted, (input, Some(Instant::now()))))
            }
        };
        Ok(unfold((input, None), next).boxed())
    }
}

fn count(batch: &RecordBatch, metrics: &ExecutionPlanMetricsSet, partition: usize) -> Result<()> {
    let Some(column) = batch.column_by_name(GRAM) else { return Ok(()) };
    let grams = cast(column, &DataType::LargeBinary)?;
    let add = |metric: &'static str, amount: u64| MetricBuilder::new(metrics).counter(metric, partition).add(amount as usize);
    for gram in grams.as_binary::<i64>().iter().flatten() {
        let moments = Moments::from_bytes(gram).map_err(|error| named("select_from", error))?;
        let seen = moments.seen();
        add("rows_read", seen.rows + seen.rows_dropped());
        add("rows_dropped", seen.rows_dropped());
        add("values_filled", moments.plan().values_filled(seen));
        add("values_out_of_range", seen.out_of_range);
        add("memory", moments.bytes() as u64);
    }
    Ok(())
}
