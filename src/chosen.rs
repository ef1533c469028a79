//! The columns that a selection chooses: as a table, and as the query that takes them.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, plan_err};
use datafusion::datasource::ViewTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ident, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::unparser::plan_to_sql;
use pursuit_udfs::{ColumnKind as Kind, Error, ReportOnModel, Value, Values, shown};

use crate::error::named;
use crate::on_model::reported;
use crate::wait::wait;

/// The table that columns are chosen of.
pub(crate) struct Source {
    pub function: &'static str,
    pub table: LogicalPlan,
    pub label: String,
    /// The members of each group, as the call gives them.
    pub groups: Option<Value>,
}

impl Source {
    /// The columns that chosen names stand for, and the label.
    fn columns(&self, names: &[String]) -> Vec<String> {
        let members = |name: &String| {
            let members = self.groups.as_ref().and_then(|groups| groups.get(name)).and_then(Value::as_array);
            let texts = |members: &Vec<Value>| members.iter().filter_map(|member| member.as_str().map(str::to_string)).collect();
            members.map_or_else(|| vec![name.clone()], texts)
        };
        names.iter().flat_map(members).chain([self.label.clone()]).collect()
    }
}

/// The table with the chosen columns. They decide on its schema, so that the selection runs now.
pub(crate) fn table(source: &Source, ranking: LogicalPlan, session: &dyn Session) -> Result<Arc<dyn TableProvider>> {
    let names = names_of(ranking)?;
    let read = || async {
        let plan = session.create_physical_plan(&names).await?;
        datafusion::physical_plan::collect(plan, session.task_ctx()).await
    };
    let mut found: Vec<(Option<i64>, String)> = Vec::new();
    for batch in wait(read, || plan_err!("{}: the selection failed", source.function))? {
        let (ranks, names) = (cast(batch.column(0), &DataType::Int64)?, cast(batch.column(1), &DataType::Utf8)?);
        let names = names.as_string::<i32>().iter();
        found.extend(
            ranks.as_primitive::<Int64Type>().iter().zip(names).filter_map(|(rank, name)| Some((rank, name?.to_string()))),
        );
    }
    let found = in_order(found);
    let schema = source.table.schema();
    let column = |name: &String| match schema.index_of_column_by_name(None, name) {
        Some(at) => Ok(Expr::Column(Column::from(schema.qualified_field(at)))),
        None => Err(named(source.function, Error::call(format!("no column `{}` in the table", shown(name))))),
    };
    let columns = source.columns(&found).iter().map(column).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ViewTable::new(LogicalPlanBuilder::from(source.table.clone()).project(columns)?.build()?, None)))
}

/// The query for these columns, written when the selection has run.
pub(crate) fn sql(source: Source, ranking: LogicalPlan) -> Result<Arc<dyn TableProvider>> {
    let from = from(&source.table).ok_or_else(|| {
        named(source.function, Error::call("cannot write the subquery as SQL; make it a view, and give its name"))
    })?;
    let function = source.function;
    Ok(reported(function, names_of(ranking)?, Arc::new(Written { source, from })))
}

/// The ranks and names of the features that were chosen.
fn names_of(ranking: LogicalPlan) -> Result<LogicalPlan> {
    let has_rank = ranking.schema().index_of_column_by_name(None, "rank").is_some();
    let builder = LogicalPlanBuilder::from(ranking);
    match has_rank {
        true => builder.filter(ident("rank").is_not_null())?.project([ident("rank"), ident("feature")])?.build(),
        false => builder.project([lit(ScalarValue::Int64(None)).alias("rank"), ident("feature")])?.build(),
    }
}

/// By their ranks; those without one as they came.
fn in_order(mut found: Vec<(Option<i64>, String)>) -> Vec<String> {
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, name)| name).collect()
}

/// What stands behind FROM.
fn from(table: &LogicalPlan) -> Option<String> {
    match table {
        LogicalPlan::TableScan(scan) if scan.projection.is_none() && scan.filters.is_empty() => {
            Some(scan.table_name.to_quoted_string())
        }
        LogicalPlan::SubqueryAlias(alias) => from(&alias.input),
        other => Some(format!("({}) AS t", plan_to_sql(other).ok()?)),
    }
}

/// Writes the query.
struct Written {
    source: Source,
    from: String,
}

impl ReportOnModel for Written {
    fn reads(&self) -> Vec<(&'static str, Kind)> {
        vec![("rank", Kind::Whole), ("feature", Kind::Text)]
    }

    fn columns(&self) -> Vec<(&'static str, Kind)> {
        vec![("sql", Kind::Text)]
    }

    fn report(&self, table: &[Values]) -> pursuit_udfs::Result<Vec<Values>> {
        let [ranks, names] = table else { return Err(Error::call("a ranking has ranks and features")) };
        let found = (0..names.rows()).filter_map(|row| Some((ranks.whole(row), names.text(row)?.to_string())));
        let names = in_order(found.collect());
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let columns: Vec<String> = self.source.columns(&names).iter().map(quoted).collect();
        Ok(vec![Values::texts([format!("SELECT {} FROM {}", columns.join(", "), self.from)])])
    }
}
