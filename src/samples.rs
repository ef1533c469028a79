//! Small public data sets, compiled in: `SELECT * FROM sample.wine` works before any file is at hand.
//! src/samples/README.md says where they come from.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::{MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::common::exec_datafusion_err;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::prelude::SessionContext;

const TABLES: [(&str, &[u8]); 5] = [
    ("breast_cancer", include_bytes!("samples/breast_cancer.parquet")),
    ("diabetes", include_bytes!("samples/diabetes.parquet")),
    ("digits", include_bytes!("samples/digits.parquet")),
    ("iris", include_bytes!("samples/iris.parquet")),
    ("wine", include_bytes!("samples/wine.parquet")),
];

/// Adds the schema `sample` to the session's default catalog, which is made if the session has none.
pub(crate) fn register(ctx: &SessionContext) -> Result<()> {
    let schema = MemorySchemaProvider::new();
    for (name, file) in TABLES {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from_static(file))?.build()?;
        let batches = reader.collect::<Result<Vec<RecordBatch>, _>>()?;
        let first = batches.first().ok_or_else(|| exec_datafusion_err!("sample table {name} is empty"))?;
        schema.register_table(name.to_string(), Arc::new(MemTable::try_new(first.schema(), vec![batches])?))?;
    }
    let default = ctx.state().config_options().catalog.default_catalog.clone();
    let catalog = ctx.catalog(&default).unwrap_or_else(|| {
        let catalog = Arc::new(MemoryCatalogProvider::new());
        ctx.register_catalog(default, Arc::clone(&catalog) as _);
        catalog
    });
    catalog.register_schema("sample", Arc::new(schema))?;
    Ok(())
}
