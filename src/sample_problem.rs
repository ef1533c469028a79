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
use pursuit_udfs::{Error, SampleProblem, Settings, Value};

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
    let constant = || Error::call(format!("arguments must be constants, got {expr}; {USAGE}"));
    match expr {
        Expr::Literal(value, _) => value_of(value).ok_or_else(constant),
        Expr::Column(column) => Ok(Value::from(column.name.clone())),
        _ => Err(constant()),
    }
}

/// Name, rows, seed and options; the last two may be left out.
fn problem(values: &[Value]) -> Result<SampleProblem, Error> {
    let whole = |at: usize, what: &str| match values.get(at) {
        None | Some(Value::Null) => Ok(None),
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
    let Some(rows) = whole(1, "rows")? else { return Err(Error::call(format!("missing the number of rows; {USAGE}"))) };
    let seed = whole(2, "seed")?.unwrap_or(0);
    let mut settings = values.get(3).cloned().map_or(Ok(Settings::new()), settings_of)?;
    settings.retain(|_, value| !value.is_null());
    SampleProblem::new(name, rows as usize, seed, &settings)
}

/// The table as a stream of batches, one for each run.
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
        let batch = move |run: usize| {
            let table = problem.table(run);
            let rows = table.first().map_or(0, Vec::len);
            let number = problem.runs.map(|_| Arc::new(Int64Array::from(vec![run as i64 + 1; rows])) as ArrayRef);
            let columns = table.into_iter().map(|column| Arc::new(Float64Array::from(column)) as ArrayRef);
            RecordBatch::try_new(Arc::clone(&schema), number.into_iter().chain(columns).collect()).map_err(DataFusionError::from)
        };
        let batches = futures::stream::iter((0..self.problem.runs.unwrap_or(1)).map(batch));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
