//! How an executor runs a stage: as Ballista does, except that what is aborted stops.
//!
//! Ballista hands the stage's streams to tasks that it does not end with the stage: a selection would train on for nobody. So each stage has a [`Wish`] that is dropped
//! with it, and our operators look at it. What others read and write goes on to the end of its files.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::serde::protobuf::{RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use pursuit::Wanted;

use super::said::said;

#[derive(Default)]
pub(super) struct Stages(DefaultExecutionEngine);

#[derive(Debug)]
struct Stage(Arc<dyn QueryStageExecutor>);

impl ExecutionEngine for Stages {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        folder: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let stage = self.0.create_query_stage_exec(job, stage, task, partitions, plan, folder, config)?;
        Ok(Arc::new(Stage(stage)))
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl QueryStageExecutor for Stage {
    async fn execute_query_stage(&self, task: usize, context: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
        let (wish, wanted) = Wanted::new();
        let config = context.session_config().clone().with_extension(Arc::new(wanted));
        let context = TaskContext::new(
            context.task_id(),
            context.session_id(),
            config,
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            context.runtime_env(),
        );
        let written = self.0.execute_query_stage(task, Arc::new(context)).await;
        drop(wish);
        written.map_err(said)
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.0.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.0.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.0.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.0.collect_column_stats()
    }
}
