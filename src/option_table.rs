//! Options given as tables: `groups`, `costs`, `related` and whatever else has a shape that a table can have.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::ident;
use pursuit_udfs::{Error, Settings, TableShape, Value, shown};

use crate::columns::{ColumnKind, kind};
use crate::error::named;
use crate::wait::wait;

/// A table as the value of an option. It is read now: groups name the units that planning must know, and the others are as small. A NULL says nothing, so
/// that its row is passed over.
pub(crate) fn read(function: &str, option: &str, shape: TableShape, table: LogicalPlan, session: &dyn Session) -> Result<Value> {
    let error = |message: String| named(function, Error::call(message));
    let schema = table.schema();
    let columns: Vec<Expr> = match shape.columns() {
        Some(columns) => {
            if let Some(missing) = columns.iter().find(|column| schema.index_of_column_by_name(None, column).is_none()) {
                let [first, second] = columns;
                return Err(error(format!(
                    "the table given as `{option}` has no column `{missing}`; it must have {first} and {second}"
                )));
            }
            columns.map(ident).to_vec()
        }
        None if schema.fields().len() == 2 => schema.columns().into_iter().map(Expr::Column).collect(),
        None => {
            let found = schema.fields().len();
            return Err(error(format!("the table given as `{option}` must have two columns of names, got {found}")));
        }
    };
    let plan = LogicalPlanBuilder::from(table).project(columns)?.build()?;
    if shape == TableShape::Numbers {
        let found = plan.schema().field(1).data_type();
        if !matches!(kind(found), ColumnKind::Number | ColumnKind::Integer) {
            let column = plan.schema().field(1).name();
            return Err(error(format!("column `{column}` of the table given as `{option}` must be a number, got {found}")));
        }
    }
    let mut value = match shape {
        TableShape::Pairs => Value::Array(Vec::new()),
        TableShape::Lists | TableShape::Numbers => Value::Object(Settings::new()),
    };
    for batch in collect(function, option, &plan, session)? {
        add(&mut value, shape, &batch, |message| error(format!("the table given as `{option}` {message}")))?;
    }
    Ok(value)
}

fn collect(function: &str, option: &str, plan: &LogicalPlan, session: &dyn Session) -> Result<Vec<RecordBatch>> {
    let read = || async {
        let plan = session.create_physical_plan(plan).await?;
        datafusion::physical_plan::collect(plan, session.task_ctx()).await
    };
    wait(read, || plan_err!("{function}: reading `{option}` failed"))
}

fn add(
    value: &mut Value,
    shape: TableShape,
    batch: &RecordBatch,
    error: impl Fn(String) -> datafusion::error::DataFusionError,
) -> Result<()> {
    let names = cast(batch.column(0), &DataType::Utf8)?;
    let names = names.as_string::<i32>();
    let second = if shape == TableShape::Numbers { DataType::Float64 } else { DataType::Utf8 };
    let second = cast(batch.column(1), &second)?;
    for row in (0..batch.num_rows()).filter(|row| names.is_valid(*row) && second.is_valid(*row)) {
        let name = names.value(row);
        match value {
            Value::Array(pairs) => pairs.push(vec![name, second.as_string::<i32>().value(row)].into()),
            Value::Object(map) if shape == TableShape::Numbers => {
                let number = second.as_primitive::<Float64Type>().value(row);
                if map.insert(name.into(), number.into()).is_some() {
                    return Err(error(format!("has `{}` twice", shown(name))));
                }
            }
            Value::Object(map) => {
                let members = map.entry(second.as_string::<i32>().value(row)).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(members) = members {
                    members.push(name.into());
                }
            }
            _ => unreachable!("the value is a list or a map"),
        }
    }
    Ok(())
}
