//! What clients ask PostgreSQL's catalog for and the library does not answer: which functions there are besides PostgreSQL's own, for psql's `\df`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Schema};
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::{ScalarValue, exec_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::SessionContext;

/// Rows of `pg_proc` for our functions: those of one that answers with a table, as ours do, under other names. Numbers are beyond those that tables have.
const OURS: &str = "
    SELECT p.* REPLACE (f.oid AS oid, f.function AS proname, n.oid AS pronamespace)
    FROM (SELECT * FROM pg_catalog.pg_proc WHERE proname = 'pg_get_keywords') AS p
    CROSS JOIN (SELECT 1000000 + row_number() OVER (ORDER BY function) AS oid, function FROM functions()) AS f
    CROSS JOIN (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'public') AS n";

/// What is told of each of them, in the same order: an example stands for the types of the arguments, which can be given by name and in several forms.
const TOLD: &str = "
    SELECT CAST(1000000 + row_number() OVER (ORDER BY function) AS INT) AS oid, rtrim(substr(example, strpos(example, '(') + 1), ')') AS arguments, summary
    FROM functions()";

/// PostgreSQL's catalog with our functions in it.
#[derive(Debug)]
struct WithOurs {
    catalog: Arc<dyn SchemaProvider>,
    functions: Arc<dyn TableProvider>,
}

const FUNCTIONS: &str = "pg_proc";

#[async_trait]
impl SchemaProvider for WithOurs {
    fn table_names(&self) -> Vec<String> {
        self.catalog.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name.eq_ignore_ascii_case(FUNCTIONS) {
            true => Ok(Some(Arc::clone(&self.functions))),
            false => self.catalog.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.catalog.table_exist(name)
    }
}

/// Adds our functions to the catalog, and what tells about them.
pub async fn register(ctx: &SessionContext) -> Result<()> {
    let missing = || exec_datafusion_err!("the session has no catalog of PostgreSQL's");
    let database = ctx.catalog("datafusion").ok_or_else(missing)?;
    let catalog = database.schema("pg_catalog").ok_or_else(missing)?;
    let mut rows = ctx.table("pg_catalog.pg_proc").await?.collect().await?;
    let schema = rows.first().ok_or_else(missing)?.schema();
    for batch in ctx.sql(OURS).await?.collect().await? {
        let typed = |(column, field): (&ArrayRef, &FieldRef)| Ok(cast(column, field.data_type())?);
        let columns = batch.columns().iter().zip(schema.fields()).map(typed).collect::<Result<_>>()?;
        rows.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
    }
    // Who may use a function is a list, of which psql makes a text.
    let lists = |field: &FieldRef| match field.name() == "proacl" {
        true => Arc::new(Field::new_list("proacl", Field::new_list_field(DataType::Utf8, true), true)),
        false => Arc::clone(field),
    };
    let listed = Arc::new(Schema::new(schema.fields().iter().map(lists).collect::<Vec<_>>()));
    let list = |batch: RecordBatch| {
        let column = |(column, field): (&ArrayRef, &FieldRef)| match column.data_type() == field.data_type() {
            true => Arc::clone(column),
            false => new_null_array(field.data_type(), batch.num_rows()),
        };
        let columns = batch.columns().iter().zip(listed.fields()).map(column).collect();
        Ok(RecordBatch::try_new(Arc::clone(&listed), columns)?)
    };
    let rows = rows.into_iter().map(list).collect::<Result<_>>()?;
    let functions = Arc::new(MemTable::try_new(listed, vec![rows])?);

    let (mut arguments, mut summaries) = (HashMap::new(), HashMap::new());
    for batch in ctx.sql(TOLD).await?.collect().await? {
        for (at, told) in [(1, &mut arguments), (2, &mut summaries)] {
            let texts = cast(batch.column(at), &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_string());
            told.extend(batch.column(0).as_primitive::<Int32Type>().values().iter().copied().zip(texts));
        }
    }
    database.register_schema("pg_catalog", Arc::new(WithOurs { catalog, functions }))?;

    let results = arguments.keys().map(|oid| (*oid, "SETOF record".to_string())).collect();
    tell(ctx, "pg_get_function_arguments", &[], arguments);
    tell(ctx, "pg_get_function_result", &[], results);
    tell(ctx, "pg_get_function_sqlbody", &[], HashMap::new());
    // Of everything else that may have a description, none has.
    tell(ctx, "obj_description", &[DataType::Utf8], summaries);
    // What a table takes on disk, for `\dt+`, is not known.
    let nothing = |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Utf8(None)));
    for (name, argument) in [("pg_table_size", DataType::Int32), ("pg_size_pretty", DataType::Utf8)] {
        ctx.register_udf(create_udf(name, vec![argument], DataType::Utf8, Volatility::Stable, Arc::new(nothing)));
    }
    let visible = |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))));
    let visible =
        create_udf("pg_function_is_visible", vec![DataType::Int32], DataType::Boolean, Volatility::Stable, Arc::new(visible));
    ctx.register_udf(visible);
    Ok(())
}

/// A function that has a text for some numbers, and for others an empty one, whatever is said beside the number.
fn tell(ctx: &SessionContext, name: &str, beside: &[DataType], texts: HashMap<i32, String>) {
    let answer = move |arguments: &[ColumnarValue]| {
        let oids = ColumnarValue::values_to_arrays(arguments)?;
        let text = |oid: Option<i32>| oid.and_then(|oid| texts.get(&oid)).map_or("", String::as_str);
        let told: StringArray = oids[0].as_primitive::<Int32Type>().iter().map(|oid| Some(text(oid))).collect();
        Ok(ColumnarValue::Array(Arc::new(told)))
    };
    let arguments = [&[DataType::Int32], beside].concat();
    ctx.register_udf(create_udf(name, arguments, DataType::Utf8, Volatility::Stable, Arc::new(answer)));
}
