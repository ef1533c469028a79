//! What clients ask PostgreSQL's catalog for and the library does not answer: psql's `\df` looks for functions that are visible.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::SessionContext;

/// Adds the functions.
pub fn register(ctx: &SessionContext) {
    let constant = |name: &str, takes: Vec<DataType>, value: ScalarValue| {
        let kind = value.data_type();
        let answer = Arc::new(move |_: &[ColumnarValue]| Ok::<_, DataFusionError>(ColumnarValue::Scalar(value.clone())));
        ctx.register_udf(create_udf(name, takes, kind, Volatility::Stable, answer));
    };
    let text = || ScalarValue::Utf8(Some(String::new()));
    constant("pg_function_is_visible", vec![DataType::Int32], ScalarValue::Boolean(Some(true)));
    constant("pg_get_function_result", vec![DataType::Int32], text());
    constant("pg_get_function_arguments", vec![DataType::Int32], text());
    constant("pg_get_function_sqlbody", vec![DataType::Int32], text());
}
