//! What type predictions have, which a query must know before it runs.

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::DefaultTableSource;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::LogicalPlan;
use pursuit_udfs::{Apply, LabelKind, ModelTable, Spec, Task};

use crate::answer;
use crate::applier::ModelRows;
use crate::classes::predicted_type;
use crate::error::named;
use crate::table::SelectTable;
use crate::wait::wait;

/// The type of what a model predicts. A model that is stored is read now, as tables of settings are. One that the query itself fits is not fitted for that: the type of
/// its label tells, but for integers, which show only then whether they are numbers or classes, and are predicted as numbers.
pub(crate) fn data_type(
    spec: &Spec,
    model: ModelTable,
    apply: &dyn Apply,
    table: &LogicalPlan,
    session: &dyn Session,
) -> Result<DataType> {
    if let Some(fitted) = fitted_here(table, model.made_by)? {
        return Ok(fitted);
    }
    let read = || async {
        let plan = session.create_physical_plan(table).await?;
        let context = session.task_ctx();
        let memory = MemoryConsumer::new(spec.name).register(context.memory_pool());
        let rows = ModelRows::read(&plan, &apply.fit().columns(), &context, &memory).await?;
        let model = apply.read(rows.columns()).map_err(|error| named(spec.name, error))?;
        Ok(answer::data_type(model.predicts()))
    };
    wait(read, || plan_err!("{}: reading `{}` failed", spec.name, model.option))
}

/// The type that a model predicts which the plan fits, if it does.
fn fitted_here(plan: &LogicalPlan, made_by: &str) -> Result<Option<DataType>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<DefaultTableSource>()
            && let Some(fitting) = source.table_provider.downcast_ref::<SelectTable>()
            && fitting.function() == made_by
        {
            let (plan, label) = fitting.label();
            let is_class = match plan.task {
                Task::Classification => true,
                Task::Regression => false,
                Task::Auto => plan.label_kind == LabelKind::Class,
            };
            found = Some(if is_class { predicted_type(Some(&label)) } else { DataType::Float64 });
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
