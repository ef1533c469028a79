//! The values of an answer as people read them: short floats, lists in brackets.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema};
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use serde_json::Value;
use std::sync::Arc;

/// A number with so many digits that count. Whole numbers keep all of theirs.
pub(super) fn short(x: f64, digits: usize) -> String {
    let whole = if x == 0.0 || !x.is_finite() { 0 } else { x.abs().log10().floor() as i32 + 1 };
    if !x.is_finite() || x == 0.0 {
        return format!("{x:?}");
    }
    if !(-3..=15).contains(&whole) {
        let text = format!("{x:.*e}", digits.saturating_sub(1));
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trimmed(mantissa));
    }
    let decimals = (digits as i32 - whole).max(0) as usize;
    let text = format!("{x:.decimals$}");
    let is_exact = text.parse() == Ok(x);
    match trimmed(&text) {
        // A float that is a whole number looks like one; what was rounded to it does not.
        whole if is_exact && !whole.contains('.') => format!("{whole}.0"),
        short => short.to_string(),
    }
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A column as texts; `None` digits: all of them.
pub(super) fn texts(column: &ArrayRef, digits: Option<usize>, options: &FormatOptions) -> Result<Vec<String>> {
    (0..column.len()).map(|row| cell(column, row, digits, options)).collect()
}

fn cell(column: &ArrayRef, row: usize, digits: Option<usize>, options: &FormatOptions) -> Result<String> {
    let plain = || -> Result<String> { Ok(ArrayFormatter::try_new(column, options)?.value(row).try_to_string()?) };
    let Some(digits) = digits.filter(|_| column.is_valid(row)) else { return plain() };
    match column.data_type() {
        DataType::Float64 => Ok(short(column.as_primitive::<Float64Type>().value(row), digits)),
        DataType::Float32 => Ok(short(column.as_primitive::<Float32Type>().value(row).into(), digits)),
        DataType::List(_) => Ok(format!("[{}]", texts(&column.as_list::<i32>().value(row), Some(digits), options)?.join(", "))),
        _ => plain(),
    }
}

/// Whether a value is there in no row.
pub(super) fn is_empty(column: &ArrayRef) -> bool {
    column.null_count() == column.len() || matches!(column.data_type(), DataType::Null)
}

/// Lists, structs and maps as JSON texts, because a CSV file has no other place for them.
pub(super) fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let is_nested = |kind: &DataType| kind.is_nested() && !matches!(kind, DataType::Dictionary(..) | DataType::RunEndEncoded(..));
    if batch.columns().iter().all(|column| !is_nested(column.data_type())) {
        return Ok(batch.clone());
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if is_nested(column.data_type()) {
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(Arc::new(json(column)?) as ArrayRef);
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn json(column: &ArrayRef) -> Result<StringArray> {
    let one = RecordBatch::try_from_iter_with_nullable([("value", Arc::clone(column), true)])?;
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(&one)?;
    writer.finish()?;
    let lines = writer.into_inner();
    let value = |line: Value| line.get("value").filter(|value| !value.is_null()).map(Value::to_string);
    Ok(serde_json::Deserializer::from_slice(&lines).into_iter::<Value>().map(|line| line.ok().and_then(value)).collect())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, ListArray};

    use super::*;

    #[test]
    fn floats_are_short_and_not_wrong() {
        let cases = [
            (0.586_512_345, "0.586512"),
            (0.6, "0.6"),
            (199.0, "199.0"),
            (55.661_234_5, "55.6612"),
            (1_234_567.89, "1234568"),
            (1_234_567.0, "1234567.0"),
            (-0.000_123_456_78, "-0.000123457"),
            (1e-9, "1e-9"),
            (1e300, "1e300"),
            (0.0, "0.0"),
            (999_999.96, "1000000"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ];
        for (x, expected) in cases {
            assert_eq!(short(x, 6), expected, "{x}");
        }
    }

    #[test]
    fn lists_are_shown_and_written() {
        let list = ListArray::from_iter_primitive::<Float64Type, _, _>([Some(vec![Some(1.0 / 3.0), None]), None]);
        let list = Arc::new(list) as ArrayRef;
        assert_eq!(texts(&list, Some(4), &FormatOptions::default()).unwrap(), ["[0.3333, ]", ""]);
        let batch =
            RecordBatch::try_from_iter([("a", Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef), ("l", list)]).unwrap();
        let flat = flat(&batch).unwrap();
        let texts: Vec<Option<&str>> = flat.column(1).as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("[0.3333333333333333,null]"), None]);
    }
}
