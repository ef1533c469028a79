//! A ranking as Arrow: the columns that every selector's answer has.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, ListBuilder, StringArray, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use pursuit_udfs::{ColumnKind, Common, Plan, Problem, Ranking, Shown, Values};

/// `rank, feature, score, …`: the same for every selector, so that `UNION ALL` compares them.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        Field::new("rank", DataType::Int64, true),
        Field::new("feature", DataType::Utf8, true),
        Field::new("score", DataType::Float64, true),
        Field::new("gain", DataType::Float64, true),
        Field::new("train_score", DataType::Float64, true),
        Field::new("valid_score", DataType::Float64, true),
        Field::new("valid_error", DataType::Float64, true),
        Field::new("coefficient", DataType::Float64, true),
        Field::new("p_value", DataType::Float64, true),
        Field::new("cost", DataType::Float64, true),
        Field::new("reason", DataType::Utf8, true),
        Field::new("method", DataType::Utf8, false),
        Field::new("note", DataType::Utf8, true),
    ])
});

/// One row of an answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Row {
    rank: Option<i64>,
    feature: Option<String>,
    score: Option<f64>,
    gain: Option<f64>,
    train_score: Option<f64>,
    valid_score: Option<f64>,
    valid_error: Option<f64>,
    p_value: Option<f64>,
    cost: Option<f64>,
    coefficient: Option<f64>,
    reason: Option<String>,
    note: Option<String>,
}

/// The chosen units in order; with `rows => 'all'` then the others, in the order of the input, and why.
pub(crate) fn rows(problem: &Problem, ranking: &Ranking, common: &Common, plan: &Plan) -> Vec<Row> {
    let mut rows: Vec<Row> = ranking
        .choices
        .iter()
        .map(|choice| Row {
            rank: Some(choice.rank as i64),
            feature: Some(problem.units[choice.unit].name.clone()),
            score: Some(choice.score),
            gain: choice.gain,
            train_score: choice.train_score,
            valid_score: choice.valid_score,
            valid_error: choice.valid_error,
            p_value: choice.p_value,
            cost: choice.cost,
            coefficient: choice.coefficient,
            reason: choice.reason.clone(),
            note: choice.note.clone(),
        })
        .collect();
    if common.rows == Shown::All {
        let chosen = ranking.units();
        // A path names a unit once for each step.
        let distinct: std::collections::BTreeSet<usize> = chosen.iter().copied().collect();
        let is_full = problem.k.is_some_and(|k| distinct.len() >= k);
        for (unit, name) in problem.units.iter().map(|unit| &unit.name).enumerate().filter(|(unit, _)| !chosen.contains(unit)) {
            let passed_over = ranking.passed_over.iter().find(|(other, _)| *other == unit).map(|(_, reason)| reason.clone());
            let known = problem.why_never(unit).or(passed_over);
            let reason = known.unwrap_or_else(|| {
                if is_full { format!("not among the first {}", distinct.len()) } else { "adds too little".into() }
            });
            rows.push(Row { feature: Some(name.clone()), reason: Some(reason), ..Row::default() });
        }
        let left_out = plan.left_out.iter();
        rows.extend(left_out.map(|out| Row {
            feature: Some(out.feature.clone()),
            reason: Some(out.reason.clone()),
            ..Row::default()
        }));
    }
    rows
}

/// The type of a column of an answer.
pub(crate) fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Text => DataType::Utf8,
        ColumnKind::Number => DataType::Float64,
        ColumnKind::Whole => DataType::Int64,
        ColumnKind::Flag => DataType::Boolean,
        ColumnKind::Texts => DataType::new_list(DataType::Utf8, true),
    }
}

/// The type of numbers by name.
pub(crate) fn shares_type() -> DataType {
    let entries = vec![Field::new("keys", DataType::Utf8, false), Field::new("values", DataType::Float64, true)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)), false)
}

/// The columns of a report's answer.
pub(crate) fn fields(columns: &[(&'static str, ColumnKind)]) -> Fields {
    let field = |(name, kind): &(&'static str, ColumnKind)| Field::new(*name, data_type(*kind), true);
    columns.iter().map(field).collect()
}

/// A column of a report's answer as Arrow has it.
pub(crate) fn column(values: Values) -> ArrayRef {
    match values {
        Values::Text(values) => Arc::new(StringArray::from(values)),
        Values::Number(values) => Arc::new(Float64Array::from(values)),
        Values::Whole(values) => Arc::new(Int64Array::from(values)),
        Values::Flag(values) => Arc::new(BooleanArray::from(values)),
        Values::Texts(lists) => {
            let mut builder = ListBuilder::new(StringBuilder::new());
            for list in lists {
                builder.append_value(list.into_iter().map(Some));
            }
            Arc::new(builder.finish())
        }
    }
}

/// The row of a group from which nothing can be learnt: no rank, and why.
pub(crate) fn refused(reason: String) -> Row {
    Row { reason: Some(reason), ..Row::default() }
}

/// The rows as columns, in the order of [`FIELDS`].
pub(crate) fn columns(rows: &[Row], method: &'static str) -> Vec<ArrayRef> {
    columns_of(rows, &vec![method; rows.len()])
}

/// The same for rows of several selectors.
pub(crate) fn columns_of(rows: &[Row], methods: &[&'static str]) -> Vec<ArrayRef> {
    let floats = |of: fn(&Row) -> Option<f64>| Arc::new(rows.iter().map(of).collect::<Float64Array>()) as ArrayRef;
    let texts = |of: fn(&Row) -> Option<&String>| Arc::new(rows.iter().map(of).collect::<StringArray>()) as ArrayRef;
    vec![
        Arc::new(rows.iter().map(|row| row.rank).collect::<Int64Array>()),
        texts(|row| row.feature.as_ref()),
        floats(|row| row.score),
        floats(|row| row.gain),
        floats(|row| row.train_score),
        floats(|row| row.valid_score),
        floats(|row| row.valid_error),
        floats(|row| row.coefficient),
        floats(|row| row.p_value),
        floats(|row| row.cost),
        texts(|row| row.reason.as_ref()),
        Arc::new(StringArray::from_iter_values(methods)),
        texts(|row| row.note.as_ref()),
    ]
}
