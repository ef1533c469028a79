//! `sample_problem(name, rows, seed, options)`: a table made up so that the answer is known. It is made when it is read.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use pursuit_udfs::options::show;
use pursuit_udfs::{Error, SampleProblem, Settings, Value, shown};

use crate::error::named;
use crate::function::{settings_of, value_of};

#[derive(Debug)]
pub(crate) struct SampleProblemFunction;

const NAME: &str = "sample_problem";
const USAGE: &str = "write sample_problem('ohm', 1000, 1), or with options sample_problem('ohm', 1000, 1, '{\"noise\": 0.1}')";

impl TableFunctionImpl for SampleProblemFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let values = args.exprs().iter().map(value).collect::<Result<Vec<Value>, Error>>().map_err(|error| named(NAME, error))?;
        let problem = problem(&values).map_err(|error| named(NAME, error))?;
        let made = Made::new(problem);
        Ok(Arc::new(StreamingTable::try_new(Arc::clone(&made.schema), vec![Arc::new(made)])?))
    }
}

fn value(expr: &Expr) -> Result<Value, Error> {
    let constant = || Error::call(format!("arguments must be constants, got {}; {USAGE}", shown(&expr.to_string())));
    match expr {
        Expr::Literal(value, _) => value_of(value)?.ok_or_else(constant),
        Expr::Column(column) => Ok(Value::from(column.name.clone())),
        _ => Err(constant()),
    }
}

/// Name, rows, seed and options; the last two may be left out.
fn problem(values: &[Value]) -> Result<SampleProblem, Error> {
    let whole = |at: usize, what: &str, least: f64| match values.get(at) {
        None | Some(Value::Null) => Ok(None),
        Some(value) if value.as_f64().is_some_and(|number| number < least) => {
            Err(Error::call(format!("{what} must be at least {least}, got {}", show(value))))
        }
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(Error::call(format!("{what} must be a whole number, got {}; {USAGE}", show(value)))),
        },
    };
    if values.len() > 4 {
        return Err(Error::call(format!("takes a name, rows, a seed and options, got {} arguments; {USAGE}", values.len())));
    }
    let Some(name) = values.first().and_then(Value::as_str) else {
        return Err(Error::call(format!("missing the problem's name; {USAGE}")));
    };
    let Some(rows) = whole(1, "rows", 1.0)? else { return Err(Error::call(format!("missing the number of rows; {USAGE}"))) };
    let seed = whole(2, "seed", 0.0)?.unwrap_or(0);
    let mut settings = values.get(3).cloned().map_or(Ok(Settings::new()), settings_of)?;
    settings.retain(|_, value| !value.is_null());
    SampleProblem::new(name, usize::try_from(rows).unwrap_or(usize::MAX), seed, &settings)
}

/// The table as a stream of batches, made as they are asked for.
#[derive(Debug)]
struct Made {
    problem: SampleProblem,
    schema: SchemaRef,
}

impl Made {
    fn new(problem: SampleProblem) -> Self {
        let run = problem.runs.map(|_| Field::new("run", DataType::Int64, false));
        let columns = problem.names.iter().map(|name| Field::new(name, DataType::Float64, false));
        let schema = Arc::new(Schema::new(run.into_iter().chain(columns).collect::<Vec<_>>()));
        Self { problem, schema }
    }
}

impl PartitionStream for Made {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (problem, schema) = (self.problem.clone(), Arc::clone(&self.schema));
        let runs = problem.runs.unwrap_or(1);
        let batch = move |run: usize, table: Vec<Vec<f64>>| {
            let rows = table.first().map_or(0, Vec::len);
            let number = problem.runs.map(|_| Arc::new(Int64Array::from(vec![run as i64 + 1; rows])) as ArrayRef);
            let columns = table.into_iter().map(|column| Arc::new(Float64Array::from(column)) as ArrayRef);
            RecordBatch::try_new(Arc::clone(&schema), number.into_iter().chain(columns).collect()).map_err(DataFusionError::from)
        };
        let problem = self.problem.clone();
        let pieces = (0..runs).flat_map(move |run| problem.pieces(run).map(move |piece| (run, piece)));
        let batches = futures::stream::iter(pieces.map(move |(run, piece)| batch(run, piece)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
