//! What the page is about: a table, a file or a query, and how SQL names it.

use datafusion::common::{TableReference, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use pursuit_udfs::{did_you_mean, shown};

use crate::columns::{ColumnKind, kind};

/// A relation of a session.
#[derive(Clone)]
pub(super) struct Source {
    pub ctx: SessionContext,
    pub plan: LogicalPlan,
    /// As it stands behind FROM, and as the first argument of a function.
    pub relation: String,
    /// What a person calls it.
    pub title: String,
}

/// A column as the page lists it.
pub(super) struct Column {
    pub name: String,
    pub kind: ColumnKind,
}

/// Names that people give to what is to be predicted.
const LABELS: [&str; 6] = ["label", "target", "class", "y", "outcome", "response"];

impl Source {
    pub(super) async fn new(ctx: SessionContext, input: &str) -> Result<Self> {
        let input = input.trim().trim_end_matches(';').trim_end();
        let first: String = input.chars().take_while(|c| c.is_alphabetic()).collect();
        if input.starts_with('(') || ["select", "with", "values"].contains(&first.to_lowercase().as_str()) {
            let relation = if input.starts_with('(') { input.to_string() } else { format!("({input})") };
            let plan = ctx.sql(&format!("SELECT * FROM {relation}")).await?.into_unoptimized_plan();
            return Ok(Self { ctx, plan, relation, title: "a query".to_string() });
        }
        if input.is_empty() {
            return plan_err!("ui: name a table, a file or a query, such as sample.wine");
        }
        let reference = TableReference::parse_str(input);
        let is_table = ctx.table_exist(reference.clone()).unwrap_or(false);
        let relation = if is_table { reference.to_quoted_string() } else { format!("'{}'", input.replace('\'', "''")) };
        match ctx.sql(&format!("SELECT * FROM {relation}")).await {
            Ok(table) => Ok(Self { ctx, plan: table.into_unoptimized_plan(), relation, title: input.to_string() }),
            Err(error) if is_table || std::path::Path::new(input).exists() || input.contains("://") => Err(error),
            Err(_) => {
                let tables = tables(&ctx);
                let hint = did_you_mean(input, &tables);
                plan_err!("ui: no table and no file named `{}`{hint} tables are {}", shown(input), tables.join(", "))
            }
        }
    }

    pub(super) fn columns(&self) -> Vec<Column> {
        let fields = self.plan.schema().fields().iter();
        fields.map(|field| Column { name: field.name().clone(), kind: kind(field.data_type()) }).collect()
    }

    /// The column to predict, if nobody says: one that is called so, or the last.
    pub(super) fn label(&self) -> Option<String> {
        let columns: Vec<Column> = self.columns().into_iter().filter(|column| column.kind != ColumnKind::Other).collect();
        let named = LABELS.iter().find_map(|name| columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)));
        named.or(columns.last()).map(|column| column.name.clone())
    }
}

fn tables(ctx: &SessionContext) -> Vec<String> {
    let defaults = ctx.copied_config().options().catalog.clone();
    let Some(catalog) = ctx.catalog(&defaults.default_catalog) else { return Vec::new() };
    let mut names = Vec::new();
    for schema in catalog.schema_names().into_iter().filter(|schema| schema != "information_schema") {
        let prefix = if schema == defaults.default_schema { String::new() } else { format!("{schema}.") };
        let tables = catalog.schema(&schema).map(|schema| schema.table_names()).unwrap_or_default();
        names.extend(tables.into_iter().map(|table| format!("{prefix}{table}")));
    }
    names.sort();
    names
}
