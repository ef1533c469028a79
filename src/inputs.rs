//! What operators read: plans of inputs, before they are executed.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::exec_err;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{Distribution, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// The plan below an operator that merges partitions: they are read here, all at once, and in whatever order rows come, that of their
/// content is the one that counts.
pub(crate) fn unmerged(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.downcast_ref::<CoalescePartitionsExec>() {
        Some(merge) if merge.fetch().is_none() => Arc::clone(merge.input()),
        _ => plan,
    }
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

/// Bytes of a batch beyond which its rows are better read in smaller ones: a few of each partition are on their way at a time.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_ROWS_MIN: usize = 256;

/// The context for reading wide tables: smaller batches, and each file read by the partition that it was given to.
pub(crate) fn steady(context: &TaskContext, columns: usize) -> Arc<TaskContext> {
    let mut config = context.session_config().clone();
    config.options_mut().execution.enable_file_stream_work_stealing = false;
    let rows = batch_rows(context, columns);
    let config = config.with_batch_size(rows);
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

fn batch_rows(context: &TaskContext, columns: usize) -> usize {
    let rows = (BATCH_BYTES / (columns.max(1) * size_of::<f64>())).max(BATCH_ROWS_MIN);
    rows.min(context.session_config().batch_size())
}

/// Bytes that those who read so many columns of files have in their hands: some batches of each partition, and what they are decoded from.
pub(crate) fn reading_bytes(plan: &Arc<dyn ExecutionPlan>, context: &TaskContext, columns: usize) -> usize {
    // What scans of Parquet with 40 and with 3,000 columns of numbers were seen to take beside their answer.
    const BATCHES: usize = 10;
    const COLUMN_BYTES: usize = 32 << 10;
    let partitions = plan.output_partitioning().partition_count();
    let bytes = partitions * columns * (BATCHES * batch_rows(context, columns) * size_of::<f64>() + COLUMN_BYTES);
    // Small files have fewer batches; decoded, values take more room than there.
    stored_bytes(plan).map_or(0, |stored| bytes.min(4 * stored as usize))
}

/// Rows that are summed up at once, so that a query can be dropped between them; fewer where they are wide.
pub(crate) fn rows_at_once(columns: usize) -> usize {
    // Texts of so many values take some hundredths of a second.
    const VALUES: usize = 1 << 16;
    (VALUES / columns.max(1)).clamp(256, 8192)
}

/// A batch in pieces of so many rows.
pub(crate) fn in_pieces(batch: &RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> + '_ {
    (0..batch.num_rows()).step_by(rows).map(move |start| batch.slice(start, rows.min(batch.num_rows() - start)))
}

/// Bytes of the files that a plan reads, if it reads nothing but files. However the files are dealt out to partitions, there are as many of them, unless somebody
/// has left some out.
pub(crate) fn stored_bytes(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        let files = source.data_source().downcast_ref::<FileScanConfig>()?.file_groups.iter().flat_map(|group| group.iter());
        return Some(
            files.map(|file| file.range.as_ref().map_or(file.object_meta.size, |range| (range.end - range.start) as u64)).sum(),
        );
    }
    let children = plan.children();
    if children.is_empty() { None } else { children.into_iter().map(stored_bytes).sum() }
}

/// Refuses inputs that are a part of what an operator was planned for: an answer from some of the rows looks like any other.
pub(crate) fn check_whole(function: &str, inputs: &[Arc<dyn ExecutionPlan>], planned: &[Option<u64>]) -> Result<()> {
    for (input, planned) in inputs.iter().zip(planned) {
        if let (Some(planned), Some(bytes)) = (planned, stored_bytes(input))
            && *planned != bytes
        {
            return exec_err!(
                "{function}: was handed {bytes} of {planned} bytes of its files; this host cannot run what needs all rows in one place"
            );
        }
    }
    Ok(())
}

/// Refuses an input in which rows with the same keys can be in different partitions.
pub(crate) fn check_by_keys(function: &str, input: &dyn ExecutionPlan, keys: Vec<Arc<dyn PhysicalExpr>>) -> Result<()> {
    let (partitioning, required) = (input.output_partitioning(), Distribution::KeyPartitioned(keys));
    let is_by_keys = matches!(partitioning, Partitioning::Hash(..))
        && partitioning.satisfaction(&required, input.equivalence_properties(), true).is_satisfied();
    // Nothing can be dealt out in any way.
    if is_by_keys || input.downcast_ref::<EmptyExec>().is_some() {
        return Ok(());
    }
    exec_err!(
        "{function}: the rows of a group are not in one partition ({partitioning}); this host cannot run `partition_by` spread out"
    )
}
