//! The shell as a client of a cluster.

use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::config::{
    BALLISTA_ADAPTIVE_PLANNER_ENABLED, BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE, BALLISTA_CLIENT_GRPC_TIMEOUT_SECONDS,
};
use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use ballista_core::planner::BallistaQueryPlanner;
use datafusion::catalog::{Session, TableProvider};
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
use pursuit::shell::Hook;
use pursuit::{Engine, Travel};

use super::MESSAGE_MAX;
use super::codec::codecs;
use super::said::Hearing;

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
        // The adaptive planner runs a branch of a UNION once for each branch if it comes from one partition, as selections do.
        options.set(BALLISTA_ADAPTIVE_PLANNER_ENABLED, "false")?;
        let engine = Engine::default();
        let (codec, _) = codecs(&engine);
        let cluster = BallistaQueryPlanner::with_extension(scheduler.clone(), state.config().ballista_config(), codec);
        let planner = Planner { cluster, travel: engine.travel() };
        *ctx.state_ref().write() = SessionStateBuilder::new_from_existing(state).with_query_planner(Arc::new(planner)).build();
        // The upgrade leaves no functions but its own.
        engine.register(ctx)
    }))
}

/// Decides where a query runs. What reads files alone, or selects from what does, goes to the cluster. All else stays here, because the cluster has no such table:
/// samples, tables in memory, models that are applied, and selections in one pass. Those plan their own inputs, which come by again, and are read by the cluster if
/// they are files: so rows are filtered and cut to the columns that count where they are, and arrive here all of them, in one stream.
#[derive(Debug)]
struct Planner {
    cluster: BallistaQueryPlanner<LogicalPlanNode>,
    travel: Travel,
}

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        if self.reads_files_alone(plan)? {
            Ok(Arc::new(Hearing(self.cluster.create_physical_plan(plan, session).await?)))
        } else {
            DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await
        }
    }
}

impl Planner {
    fn reads_files_alone(&self, plan: &LogicalPlan) -> Result<bool> {
        let (mut files, mut others) = (0, 0);
        plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::TableScan(scan) => {
                    let is_file = match source_as_provider(&scan.source) {
                        Ok(table) => self.is_file(table.as_ref())?,
                        Err(_) => false,
                    };
                    *(if is_file { &mut files } else { &mut others }) += 1;
                }
                // Files are written by whoever asks.
                LogicalPlan::Copy(_) | LogicalPlan::Dml(_) => others += 1,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(files > 0 && others == 0)
    }

    /// Whether a table is a file, or a selection from such.
    fn is_file(&self, table: &dyn TableProvider) -> Result<bool> {
        if table.downcast_ref::<ListingTable>().is_some() {
            return Ok(true);
        }
        let Some((_, inputs)) = self.travel.pack_table(table) else { return Ok(false) };
        inputs.into_iter().try_fold(true, |all, input| Ok(all && self.reads_files_alone(input)?))
    }
}
