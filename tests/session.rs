use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use pursuit::{Engine, ReadsFiles};

/// A session as the shell has it.
pub fn session() -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(4))
}

pub fn session_with(config: SessionConfig) -> SessionContext {
    let ctx = SessionContext::new_with_config(config.with_information_schema(true).with_extension(Arc::new(ReadsFiles)))
        .enable_url_table();
    Engine::default().with_samples().register(&ctx).expect("a new session takes every function");
    ctx
}

pub async fn query(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    ctx.sql(sql).await?.collect().await
}

/// The error of a query that must fail, on one line as a user reads it.
pub async fn error(ctx: &SessionContext, sql: &str) -> String {
    match query(ctx, sql).await {
        Ok(_) => panic!("this must fail: {sql}"),
        Err(error) => error.strip_backtrace(),
    }
}

pub fn texts(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let of = |batch: &RecordBatch| -> Vec<String> {
        let column = batch.column_by_name(column).expect("the query has this column");
        (0..column.len()).map(|row| column.as_string::<i32>().value(row).to_string()).collect()
    };
    batches.iter().flat_map(of).collect()
}

pub fn floats(batches: &[RecordBatch], column: &str) -> Vec<f64> {
    let of = |batch: &RecordBatch| {
        batch.column_by_name(column).expect("the query has this column").as_primitive::<Float64Type>().values().to_vec()
    };
    batches.iter().flat_map(of).collect()
}

pub fn ints(batches: &[RecordBatch], column: &str) -> Vec<i64> {
    let of = |batch: &RecordBatch| {
        batch.column_by_name(column).expect("the query has this column").as_primitive::<Int64Type>().values().to_vec()
    };
    batches.iter().flat_map(of).collect()
}
