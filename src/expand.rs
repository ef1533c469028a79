//! The moments path: a call becomes ordinary plan nodes, which any host can run and EXPLAIN.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ident, lit};
use datafusion::scalar::ScalarValue;
use pursuit_udfs::{Settings, Value};

use crate::answer;
use crate::call::Call;
use crate::engine::Registry;
use crate::gram::{GramFunction, Order};
use crate::progress::Progress;
use crate::select_from::{SETTLED, SelectFrom};

/// Names of our own inside the plan, which no column of a user has.
pub(crate) const GRAM: &str = "gram()";
const RANKING: &str = "select_from()";

/// A LIMIT on the answer is not used here: DataFusion hands one to a table's scan or to an operator, and these are nodes of its own, through
/// which it cannot look. The choices are cheap beside the pass that gathers the moments.
///
/// Projection ← Unnest ← `select_from` ← Aggregate(`gram`) ← input. `partition_by` is the aggregate's GROUP BY.
pub(crate) fn expand(input: LogicalPlan, call: &Call, registry: &Arc<Registry>, progress: &Arc<Progress>) -> Result<LogicalPlan> {
    let column = |at: &usize| Expr::Column(Column::from(input.schema().qualified_field(*at)));
    let order = Order { function: call.question.spec.name.to_string(), plan: call.plan.clone() };
    let order = serde_json::to_string(&order).expect("an order of numbers and names is valid JSON");
    // A constant argument of an aggregate is repeated for every row; a dictionary repeats a byte.
    let order = ScalarValue::Dictionary(Box::new(DataType::Int8), Box::new(ScalarValue::from(order)));
    let arguments = [lit(order)].into_iter().chain(call.columns.iter().map(column)).collect();
    let gram = GramFunction::udaf(Arc::clone(progress)).call(arguments).alias(GRAM);
    let partitions: Vec<Expr> = call.partitions.iter().map(column).collect();

    let is_open = |name: &str| !SETTLED.contains(&name);
    let settings: Settings =
        call.settings.iter().filter(|(name, _)| is_open(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    let options = Value::Object(settings).to_string();
    let name = call.question.spec.name;
    let ranking = SelectFrom::udf(Arc::clone(registry), Arc::clone(progress)).call(vec![ident(GRAM), lit(name), lit(options)]);

    LogicalPlanBuilder::from(input.clone())
        .aggregate(partitions.clone(), vec![gram])?
        .project(partitions.iter().cloned().chain([ranking.alias(RANKING)]))?
        .unnest_column(RANKING)?
        .project(
            partitions
                .into_iter()
                .chain(answer::FIELDS.iter().map(|field| get_field(ident(RANKING), field.name().as_str()).alias(field.name()))),
        )?
        .build()
}
