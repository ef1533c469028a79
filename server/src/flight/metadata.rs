//! What there is: the server itself, catalogs, schemas, tables.

use std::sync::LazyLock;

use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables, SqlInfo, SqlSupportedTransaction,
};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::prelude::SessionContext;
use tonic::Status;

pub(super) static SQL_INFO: LazyLock<Result<SqlInfoData, String>> = LazyLock::new(|| {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Pursuit");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.build().map_err(|error| error.to_string())
});

/// PostgreSQL's own tables are for its own clients.
const HIDDEN: &str = "pg_catalog";

fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

pub(super) fn catalogs(ctx: &SessionContext, query: CommandGetCatalogs) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    ctx.catalog_names().into_iter().for_each(|name| builder.append(name));
    builder.build().map_err(internal)
}

pub(super) fn schemas(ctx: &SessionContext, query: CommandGetDbSchemas) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    for name in ctx.catalog_names() {
        let schemas = ctx.catalog(&name).map(|catalog| catalog.schema_names()).unwrap_or_default();
        schemas.iter().filter(|schema| *schema != HIDDEN).for_each(|schema| builder.append(&name, schema));
    }
    builder.build().map_err(internal)
}

pub(super) fn table_types(query: CommandGetTableTypes) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    ["TABLE", "VIEW"].into_iter().for_each(|kind| builder.append(kind));
    builder.build().map_err(internal)
}

pub(super) async fn tables(ctx: &SessionContext, query: CommandGetTables) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    for name in ctx.catalog_names() {
        let Some(catalog) = ctx.catalog(&name) else { continue };
        for schema_name in catalog.schema_names().into_iter().filter(|schema| schema != HIDDEN) {
            let Some(schema) = catalog.schema(&schema_name) else { continue };
            for table_name in schema.table_names() {
                let Some(table) = schema.table(&table_name).await.map_err(internal)? else { continue };
                let kind = if table.table_type() == datafusion::logical_expr::TableType::View { "VIEW" } else { "TABLE" };
                let plain = Schema::new(table.schema().fields().clone());
                builder.append(&name, &schema_name, &table_name, kind, &plain).map_err(internal)?;
            }
        }
    }
    builder.build().map_err(internal)
}
