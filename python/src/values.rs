//! Values of an answer as Python has them, for those who have no Arrow library.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Adds the values of a column to a list.
pub fn python_values(py: Python<'_>, column: &dyn Array, values: &Bound<'_, PyList>) -> PyResult<()> {
    (0..column.len()).try_for_each(|row| values.append(value(py, column, row)?))
}

fn value<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    macro_rules! number {
        ($type:ty) => {
            Ok(column.as_primitive::<$type>().value(row).into_pyobject(py)?.into_any())
        };
    }
    // An array of nothing but NULL has no bits that say so.
    if column.is_null(row) || column.data_type() == &DataType::Null {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Boolean => Ok(column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any()),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float16 => Ok(column.as_primitive::<Float16Type>().value(row).to_f64().into_pyobject(py)?.into_any()),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Utf8 => Ok(column.as_string::<i32>().value(row).into_pyobject(py)?.into_any()),
        DataType::LargeUtf8 => Ok(column.as_string::<i64>().value(row).into_pyobject(py)?.into_any()),
        DataType::Utf8View => Ok(column.as_string_view().value(row).into_pyobject(py)?.into_any()),
        DataType::List(_) => listed(py, &column.as_list::<i32>().value(row)),
        DataType::LargeList(_) => listed(py, &column.as_list::<i64>().value(row)),
        DataType::Struct(fields) => {
            let parts = PyDict::new(py);
            for (field, part) in fields.iter().zip(column.as_struct().columns()) {
                parts.set_item(field.name(), value(py, part, row)?)?;
            }
            Ok(parts.into_any())
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let parts = PyDict::new(py);
            for at in 0..entries.len() {
                parts.set_item(value(py, entries.column(0), at)?, value(py, entries.column(1), at)?)?;
            }
            Ok(parts.into_any())
        }
        DataType::Dictionary(..) => {
            let keys = column.as_any_dictionary();
            value(py, keys.values(), keys.normalized_keys()[row])
        }
        DataType::FixedSizeList(..) => listed(py, &column.as_fixed_size_list().value(row)),
        DataType::Binary => Ok(PyBytes::new(py, column.as_binary::<i32>().value(row)).into_any()),
        DataType::LargeBinary => Ok(PyBytes::new(py, column.as_binary::<i64>().value(row)).into_any()),
        DataType::BinaryView => Ok(PyBytes::new(py, column.as_binary_view().value(row)).into_any()),
        DataType::FixedSizeBinary(_) => Ok(PyBytes::new(py, column.as_fixed_size_binary().value(row)).into_any()),
        kind => {
            let text = printed(column, row)?.into_pyobject(py)?.into_any();
            // A year that Python's calendar does not have stays a text.
            Ok(of_text(py, kind, &text)?.unwrap_or(text))
        }
    }
}

/// A value as SQL prints it.
fn printed(column: &dyn Array, row: usize) -> PyResult<String> {
    let format = FormatOptions::default();
    let format = ArrayFormatter::try_new(column, &format).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(format.value(row).to_string())
}

/// Days, times and decimals, which Python reads as SQL prints them; `None` for what else there is.
fn of_text<'py>(py: Python<'py>, kind: &DataType, text: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let class = match kind {
        DataType::Date32 => "date",
        // At midnight, as it is printed.
        DataType::Date64 | DataType::Timestamp(..) => "datetime",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            return py.import("decimal")?.getattr("Decimal")?.call1((text,)).map(Some);
        }
        _ => return Ok(None),
    };
    Ok(py.import("datetime")?.getattr(class)?.call_method1("fromisoformat", (text,)).ok())
}

fn listed<'py>(py: Python<'py>, items: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let values = PyList::empty(py);
    python_values(py, items, &values)?;
    Ok(values.into_any())
}
