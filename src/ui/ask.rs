//! A question of the page, answered from moments by the selector that SQL would call.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, Schema};
use pursuit_udfs::toolbox::Products;
use pursuit_udfs::{Common, Data, Error, Labels, OptionType, Problem, Result, Run, Settings, Spec, Value};
use serde_json::json;

use super::snapshot::Prepared;
use crate::answer;
use crate::question::Question;

/// What the page asks for.
#[derive(Debug, Clone, serde::Deserialize)]
pub(super) struct Asked {
    pub label: String,
    pub selector: String,
    /// As SQL would have them.
    pub settings: Settings,
    pub split: Option<Split>,
}

/// The rows in groups.
#[derive(Debug, Clone, serde::Deserialize)]
pub(super) struct Split {
    pub by: String,
    /// The groups that count, as literals of SQL; all of them if none is named.
    pub groups: Option<Vec<String>>,
}

impl Asked {
    pub(super) fn max_levels(&self) -> Option<usize> {
        self.settings.get("max_levels").and_then(usize::parse)
    }

    fn excluded(&self) -> Vec<&str> {
        self.settings.get("exclude").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Features of which all correlations are shown.
const CORRELATED: usize = 30;

/// The question put to a table: all that a selector needs.
pub(super) fn problem(asked: &Asked, spec: &Arc<Spec>, prepared: &Prepared) -> Result<(Question, Problem)> {
    let mut question = Question::new(Arc::clone(spec), &asked.settings)?;
    question.group(&prepared.table.features)?;
    let excluded = asked.excluded();
    let problem = Problem::of(Arc::clone(&prepared.table), &prepared.plan, &question.common, spec.labels)?;
    let mut problem = Problem { parts: Some(Arc::clone(&prepared.parts)), ..problem };
    if !excluded.is_empty() {
        let kept: Vec<usize> =
            (0..problem.units.len()).filter(|unit| !excluded.contains(&problem.units[*unit].name.as_str())).collect();
        if kept.is_empty() {
            return Err(Error::call("no feature to choose from: every column is left out"));
        }
        problem = problem.among(&kept);
    }
    Ok((question, problem))
}

/// The answer, as the page draws it.
pub(super) fn answer(asked: &Asked, spec: &Arc<Spec>, prepared: &Prepared, run: &Run) -> Result<Value> {
    let begun = Instant::now();
    let (question, problem) = problem(asked, spec, prepared)?;
    let rows = question.answered(&problem, &prepared.plan, run)?;
    let schema = Arc::new(Schema::new(answer::FIELDS.clone()));
    let batch = RecordBatch::try_new(schema, answer::columns(&rows, spec.name));
    let mut rows = rows_of(&batch.map_err(|error| Error::data(error.to_string()))?);
    standardize(&mut rows, &problem);
    let correlation = correlation(&problem, &chosen(&rows), run)?;
    Ok(json!({"rows": rows, "correlation": correlation, "milliseconds": begun.elapsed().as_secs_f64() * 1e3}))
}

/// What the page draws beside the rows of an answer that came from elsewhere.
pub(super) fn complete(mut rows: Vec<Settings>, prepared: &Prepared, run: &Run) -> Result<Value> {
    let problem = Problem::of(Arc::clone(&prepared.table), &prepared.plan, &Common::default(), Labels::Any)?;
    standardize(&mut rows, &problem);
    let correlation = correlation(&problem, &chosen(&rows), run)?;
    Ok(json!({"rows": rows, "correlation": correlation}))
}

fn chosen(rows: &[Settings]) -> Vec<&str> {
    rows.iter().filter(|row| row.contains_key("rank")).filter_map(|row| row.get("feature")?.as_str()).collect()
}

/// The rows of an answer as JSON; what is NULL is left out.
pub(super) fn rows_of(batch: &RecordBatch) -> Vec<Settings> {
    let mut rows = vec![Settings::new(); batch.num_rows()];
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        for (at, row) in rows.iter_mut().enumerate().filter(|(at, _)| column.is_valid(*at)) {
            let value = match field.data_type() {
                DataType::Float64 => Value::from(column.as_primitive::<Float64Type>().value(at)),
                DataType::Int64 => Value::from(column.as_primitive::<Int64Type>().value(at)),
                DataType::Utf8 => Value::from(column.as_string::<i32>().value(at)),
                _ => continue,
            };
            row.insert(field.name().clone(), value);
        }
    }
    rows
}

/// Adds what a coefficient is worth in standard deviations: of the label, for one of the feature.
fn standardize(rows: &mut [Settings], problem: &Problem) {
    let Data::Gram(gram) = &problem.table.data else { return };
    for row in rows {
        let Some(coefficient) = row.get("coefficient").and_then(Value::as_f64) else { continue };
        let unit =
            row.get("feature").and_then(|name| problem.units.iter().find(|unit| Some(unit.name.as_str()) == name.as_str()));
        let Some([column]) = unit.map(|unit| &unit.columns[..]) else { continue };
        let energy = gram.matrix[column * gram.design.len() + column];
        row.insert("standardized".into(), Value::from(coefficient * (energy / gram.label_energy).sqrt()));
    }
}

/// How the first of the chosen features hang together.
fn correlation(problem: &Problem, chosen: &[&str], run: &Run) -> Result<Value> {
    let units: Vec<usize> =
        chosen.iter().take(CORRELATED).filter_map(|name| problem.units.iter().position(|unit| unit.name == *name)).collect();
    let few = problem.among(&units);
    let products = Products::new(&few, run)?;
    let row = |a: usize| -> Vec<f64> { (0..units.len()).map(|b| rounded(association(&products, a, b))).collect() };
    let features: Vec<&str> = few.units.iter().map(|unit| unit.name.as_str()).collect();
    let label: Vec<f64> = (0..units.len()).map(|unit| rounded(with_label(&products, unit))).collect();
    Ok(json!({"features": features, "matrix": (0..units.len()).map(row).collect::<Vec<_>>(), "label": label}))
}

/// The correlation of two units: of single columns with its sign, of others the root of the mean square over the smaller basis.
pub(super) fn association(products: &Products, a: usize, b: usize) -> f64 {
    let (a, b) = (products.units[a].clone(), products.units[b].clone());
    let few = a.len().min(b.len());
    let length = |i: usize, j: usize| (products.energies[i] * products.energies[j]).sqrt();
    match few {
        0 => 0.0,
        1 if a.len() == b.len() => products.inner(a.start, b.start) / length(a.start, b.start),
        _ => {
            let squares =
                a.flat_map(|i| b.clone().map(move |j| (i, j))).map(|(i, j)| (products.inner(i, j) / length(i, j)).powi(2));
            (squares.sum::<f64>() / few as f64).sqrt()
        }
    }
}

/// The correlation of a unit with the label: its sign where there is one.
pub(super) fn with_label(products: &Products, unit: usize) -> f64 {
    let columns = products.units[unit].clone();
    let (labels, of) = (products.labels, |j: usize| products.energies[j].sqrt());
    if columns.len() == 1 && labels == 1 {
        return products.correlations[columns.start] / of(columns.start);
    }
    let squares = columns.flat_map(|j| (0..labels).map(move |q| (j, q)));
    squares.map(|(j, q)| (products.correlations[j * labels + q] / of(j)).powi(2)).sum::<f64>().sqrt()
}

/// Three digits are more than can be seen.
pub(super) fn rounded(x: f64) -> f64 {
    (x.clamp(-1.0, 1.0) * 1e3).round() / 1e3
}
