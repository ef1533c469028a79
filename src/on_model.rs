//! Functions on nothing but a model: its table is read, and a report on it is the answer.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, ident};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use futures::stream::BoxStream;
use pursuit_udfs::{Error, ReportOnModel, Settings, Spec, Work};

use crate::answer;
use crate::applier::ModelRows;
use crate::error::named;
use crate::function::usage;
use crate::operator::{Execution, Operator, one_answer};
use crate::operator_table::OperatorTable;
use crate::question::check_option;

/// The call as a table.
pub(crate) fn provider(spec: &Arc<Spec>, table: LogicalPlan, settings: &Settings) -> Result<Arc<dyn TableProvider>> {
    let report = || -> pursuit_udfs::Result<_> {
        for option in settings.keys() {
            check_option(spec, option)?;
        }
        let Work::OnModel(report) = (spec.build)(settings)? else { return Err(Error::call("has no model before it")) };
        let has = |name: &str| table.schema().index_of_column_by_name(None, name).is_some();
        match report.reads().iter().find(|(name, _)| !has(name)) {
            Some((missing, _)) => Err(Error::call(format!("the table has no column `{missing}`; {}", usage(spec)))),
            None => Ok(report),
        }
    };
    let report = report().map_err(|error| named(spec.name, error))?;
    let table = LogicalPlanBuilder::from(table).project(report.reads().iter().map(|(name, _)| ident(*name)))?.build()?;
    Ok(reported(spec.name, table, report))
}

/// What a report says of a table, which has the columns that it reads.
pub(crate) fn reported(name: &'static str, table: LogicalPlan, report: Arc<dyn ReportOnModel>) -> Arc<dyn TableProvider> {
    let schema = Arc::new(Schema::new(answer::fields(&report.columns())));
    let inputs = vec![table];
    Arc::new(OperatorTable::new(OnModel { name, report, schema: Arc::clone(&schema) }, &schema, inputs))
}

struct OnModel {
    name: &'static str,
    report: Arc<dyn ReportOnModel>,
    schema: SchemaRef,
}

impl fmt::Debug for OnModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnModel({})", self.name)
    }
}

impl Operator for OnModel {
    const NAME: &'static str = "ModelExec";
    type Common = ();

    fn function(&self) -> &str {
        self.name
    }

    fn properties(&self, _: &[Arc<dyn ExecutionPlan>]) -> PlanProperties {
        one_answer(EquivalenceProperties::new(Arc::clone(&self.schema)))
    }

    fn explain(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "function={}", self.name)
    }

    fn execute(self: Arc<Self>, execution: Execution<Self>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Execution { inputs, context, .. } = execution;
        let table = inputs.into_iter().next().ok_or_else(|| exec_datafusion_err!("ModelExec has an input"))?;
        let report = async move {
            let memory = MemoryConsumer::new(format!("ModelExec[{}]", self.name)).register(context.memory_pool());
            let rows = ModelRows::read(&table, &self.report.reads(), &context, &memory).await?;
            let columns = self.report.report(rows.columns()).map_err(|error| named(self.name, error))?;
            let columns = columns.into_iter().map(answer::column).collect();
            Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
        };
        Ok(futures::stream::once(report).boxed())
    }
}
