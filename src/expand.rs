//! The moments path: a call becomes ordinary plan nodes, which any host and any cluster can run and EXPLAIN.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ident, lit};
use pursuit_udfs::{Settings, Value};

use crate::answer;
use crate::call::Call;
use crate::engine::Registry;
use crate::gram::{GramFunction, Order, SelectFrom};
use crate::progress::Progress;

/// Projection ← Unnest ← `select_from` ← Aggregate(`gram`) ← input. `partition_by` is the aggregate's GROUP BY.
pub(crate) fn expand(input: LogicalPlan, call: &Call, registry: &Arc<Registry>, progress: &Arc<Progress>) -> Result<LogicalPlan> {
    let column = |at: &usize| Expr::Column(Column::from(input.schema().qualified_field(*at)));
    let order = Order { function: call.question.spec.name.to_string(), plan: call.plan.clone() };
    let order = serde_json::to_string(&order).expect("an order of numbers and names is valid JSON");
    let arguments = [lit(order)].into_iter().chain(call.columns.iter().map(column)).collect();
    let gram = GramFunction::new(Arc::clone(progress)).call(arguments).alias("gram");
    let partitions: Vec<Expr> = call.partitions.iter().map(column).collect();

    // What the gram has settled already need not be said again.
    let settled = ["task", "nulls", "max_levels", "max_classes", "weights", "exclude", "features", "reads"];
    let settings: Settings =
        call.settings.iter().filter(|(name, _)| !settled.contains(&name.as_str())).map(|(n, v)| (n.clone(), v.clone())).collect();
    let options = Value::Object(settings).to_string();
    let name = call.question.spec.name;
    let ranking = SelectFrom::new(Arc::clone(registry), Arc::clone(progress)).call(vec![ident("gram"), lit(name), lit(options)]);

    LogicalPlanBuilder::from(input.clone())
        .aggregate(partitions.clone(), vec![gram])?
        .project(partitions.iter().cloned().chain([ranking.alias("ranking")]))?
        .unnest_column("ranking")?
        .project(
            partitions
                .into_iter()
                .chain(answer::FIELDS.iter().map(|field| get_field(ident("ranking"), field.name().as_str()).alias(field.name()))),
        )?
        .build()
}
