//! Runs tests/slt/*.slt. `PURSUIT_SLT=omp` runs one file; `PURSUIT_SLT_ACCEPT=1` writes the answers of today into the
//! files, to be read before they are committed.

use std::path::PathBuf;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use crate::session::session;

struct Database(SessionContext);

#[derive(Debug)]
struct Failed(DataFusionError);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.strip_backtrace())
    }
}

impl std::error::Error for Failed {}

#[async_trait]
impl AsyncDB for Database {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        let frame = self.0.sql(sql).await.map_err(Failed)?;
        let types: Vec<DefaultColumnType> = frame.schema().fields().iter().map(|field| column_type(field.data_type())).collect();
        let batches = frame.collect().await.map_err(Failed)?;
        if types.is_empty() || (batches.is_empty() && types.is_empty()) {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows { types, rows: batches.iter().flat_map(rows).collect() })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "pursuit"
    }
}

fn column_type(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        t if t.is_integer() => DefaultColumnType::Integer,
        t if t.is_floating() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let formatters: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).expect("every type prints")).collect();
    let cell = |row: usize, column: usize| {
        let text = formatters[column].value(row).to_string();
        if text.is_empty() { "(empty)".to_string() } else { text }
    };
    let row = |row: usize| -> Vec<Vec<String>> {
        let mut cells: Vec<String> = (0..batch.num_columns()).map(|column| cell(row, column)).collect();
        // A text of several lines (a plan, a description) is a row for each: an empty line would end the answer.
        let last = cells.pop().unwrap_or_default();
        let mut lines = last.lines().filter(|line| !line.is_empty()).map(str::to_string);
        cells.extend(lines.next());
        [cells].into_iter().chain(lines.map(|line| vec![line])).collect()
    };
    (0..batch.num_rows()).flat_map(row).collect()
}

fn files() -> Vec<PathBuf> {
    let only = std::env::var("PURSUIT_SLT").ok();
    let mut files: Vec<PathBuf> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slt"))
        .expect("the folder is part of the repository")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter(|path| only.as_deref().is_none_or(|only| path.file_stem().is_some_and(|stem| stem == only)))
        .collect();
    files.sort();
    files
}

/// What is wrong with a file, if anything.
async fn failure(file: PathBuf) -> Option<String> {
    let mut runner = Runner::new(|| async { Ok(Database(session())) });
    if std::env::var_os("PURSUIT_SLT_ACCEPT").is_some() {
        let column_validator = sqllogictest::default_column_validator;
        let (validator, normalizer) = (sqllogictest::default_validator, sqllogictest::default_normalizer);
        let written = runner.update_test_file(&file, "\t", validator, normalizer, column_validator).await;
        written.expect("answers can be written");
        return None;
    }
    runner.run_file_async(&file).await.err().map(|error| format!("{}: {error}", file.display()))
}

/// Two files at a time: many a query keeps one core busy.
#[tokio::test(flavor = "multi_thread")]
async fn every_query_has_the_answer_in_its_file() {
    let files = files();
    assert!(!files.is_empty(), "no file in tests/slt fits PURSUIT_SLT");
    let failures = futures::stream::iter(files).map(|file| SpawnedTask::spawn(failure(file))).buffered(2);
    let failures: Vec<String> = failures.filter_map(|failure| async { failure.expect("no query panics") }).collect().await;
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// A selector without a test file, an example, or a line in the documents is not finished.
#[test]
fn every_selector_has_its_files() {
    for spec in pursuit_udfs::selectors() {
        for path in [format!("tests/slt/{}.slt", spec.name), format!("sql_examples/{}.sql", spec.name)] {
            assert!(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&path).exists(), "missing {path}");
        }
    }
}
