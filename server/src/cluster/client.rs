//! The shell as a client of a cluster.

use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::config::{BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE, BALLISTA_CLIENT_GRPC_TIMEOUT_SECONDS};
use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use ballista_core::planner::BallistaQueryPlanner;
use datafusion::catalog::Session;
use datafusion::common::plan_datafusion_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_proto::protobuf::LogicalPlanNode;
use pursuit::Engine;
use pursuit::shell::Hook;

use super::MESSAGE_MAX;

/// Longest that a call to the scheduler may take; planning a query of 1,000 columns takes seconds.
const CALL_SECONDS: &str = "120";

/// Has the session's queries run by the cluster.
pub fn hook(url: &str) -> Result<Hook> {
    let address = url.strip_prefix("df://").filter(|address| address.contains(':') && !address.contains('/'));
    let address = address.ok_or_else(|| plan_datafusion_err!("--cluster: write df://host:port, got `{url}`"))?;
    let scheduler = format!("http://{address}");
    Ok(Box::new(move |ctx| {
        let mut state = ctx.state().upgrade_for_ballista(scheduler.clone())?;
        let options = state.config_mut().options_mut();
        options.set(BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE, &MESSAGE_MAX.to_string())?;
        options.set(BALLISTA_CLIENT_GRPC_TIMEOUT_SECONDS, CALL_SECONDS)?;
        let cluster = BallistaQueryPlanner::new(scheduler.clone(), state.config().ballista_config());
        let planner = Planner { cluster };
        *ctx.state_ref().write() = SessionStateBuilder::new_from_existing(state).with_query_planner(Arc::new(planner)).build();
        // The upgrade leaves no functions but its own.
        Engine::default().register(ctx)
    }))
}

/// Decides where a query runs. What reads files alone goes to the cluster. All else stays here, because the cluster has no such table: samples, tables in
/// memory, and selectors that read rows. These plan their own inputs, which come by again, and are read by the cluster if they are files: so rows are
/// filtered and cut to the columns that count where they are, and arrive here all of them, in one stream.
#[derive(Debug)]
struct Planner {
    cluster: BallistaQueryPlanner<LogicalPlanNode>,
}

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        if reads_files_alone(plan)? {
            self.cluster.create_physical_plan(plan, session).await
        } else {
            DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await
        }
    }
}

fn reads_files_alone(plan: &LogicalPlan) -> Result<bool> {
    let (mut files, mut others) = (0, 0);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let table = source_as_provider(&scan.source);
                let is_file = table.is_ok_and(|table| table.downcast_ref::<ListingTable>().is_some());
                *(if is_file { &mut files } else { &mut others }) += 1;
            }
            // EXPLAIN shows where a query would run, and files are written by whoever asks.
            LogicalPlan::Explain(_) | LogicalPlan::Copy(_) | LogicalPlan::Dml(_) => others += 1,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(files > 0 && others == 0)
}
