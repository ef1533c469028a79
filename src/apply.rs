//! Rows through a model, as they stream by: any function that applies one.
//!
//! The model is a table, stored or fitted on the spot, so that there is one way from its rows to predictions, and a model that was kept decides as it did when
//! it was fitted.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, ident};
use pursuit_udfs::options::{parse_checked, show};
use pursuit_udfs::{Apply, Error, KEY, ModelTable, Output, Settings, Spec, Value, Work, did_you_mean, name_list_near, shown};

use crate::answer;
use crate::apply_exec::Applying;
use crate::call::{Call, Input};
use crate::classes::predicted_type;
use crate::defaults::Defaults;
use crate::error::named;
use crate::function::usage;
use crate::operator_table::OperatorTable;
use crate::predicted;
use crate::progress::Progress;
use crate::question::check_option;
use crate::table::SelectTable;

/// The tables of a call.
pub(crate) struct Tables {
    pub first: LogicalPlan,
    pub name: Option<String>,
    pub test: Option<LogicalPlan>,
    pub model: Option<LogicalPlan>,
    pub features: Option<LogicalPlan>,
}

/// The call as a table: its model, read or fitted, and the rows to decide.
pub(crate) fn provider(
    spec: &Arc<Spec>,
    progress: &Arc<Progress>,
    tables: Tables,
    label: Option<&str>,
    mut settings: Settings,
    session: &dyn Session,
) -> Result<Arc<dyn TableProvider>> {
    let error = |error: Error| named(spec.name, error);
    let key = key(spec, &mut settings).map_err(error)?;
    let model = check_model(spec, &tables, &settings).map_err(error)?;
    let apply = build(spec, &settings).map_err(error)?;
    let Tables { first, name, test, model: given, features } = tables;
    let rows = test.unwrap_or_else(|| first.clone());
    let label = label.unwrap_or_default();
    let table = match given {
        Some(table) => table,
        None if !model.fits => return Err(error(Error::call(format!("missing `{}`; {}", model.option, usage(spec))))),
        None => {
            let mut settings = without_keys(&first, &key, settings).map_err(error)?;
            Defaults::fill(session.config_options(), spec, &mut settings);
            let input = Input { schema: first.schema(), table: name.as_deref() };
            let call = Call::new(Arc::clone(spec), &input, label, settings).map_err(error)?;
            let call = call.with_relations(None, features).map_err(error)?;
            let table = Arc::new(SelectTable::new(first.clone(), call, Arc::clone(progress)));
            LogicalPlanBuilder::scan(model.option, provider_as_source(table), None)?.build()?
        }
    };
    let columns = apply.fit().columns();
    let has = |name: &str| table.schema().index_of_column_by_name(None, name).is_some();
    if let Some((missing, _)) = columns.iter().find(|(name, _)| !has(name)) {
        let ModelTable { option, made_by, .. } = model;
        let message = format!("the table given as `{option}` has no column `{missing}`; make it with {made_by}");
        return Err(error(Error::call(message)));
    }
    let table = LogicalPlanBuilder::from(table).project(columns.iter().map(|(name, _)| ident(*name)))?.build()?;
    let keeps_all = apply.keeps_columns() && key.is_empty();
    let keys = match keeps_all {
        true => (0..rows.schema().fields().len()).collect(),
        false => find_keys(&rows, &key, apply.as_ref()).map_err(error)?,
    };
    let label_at = rows.schema().index_of_column_by_name(None, label);
    let label_type = first.schema().field_with_unqualified_name(label).ok().map(|field| field.data_type());
    let label_type = match apply.outputs().iter().any(|(_, output)| *output == Output::Predicted) {
        true => predicted::data_type(spec, model, apply.as_ref(), &table, session)?,
        false => predicted_type(label_type),
    };
    let fields = fields(&rows, &keys, &label_type, apply.as_ref());
    let is_twice = |name: &&str| fields.iter().filter(|field| field.name() == name).count() > 1;
    if let Some(name) = keys.iter().map(|at| rows.schema().field(*at).name().as_str()).find(is_twice) {
        return Err(error(Error::call(match keeps_all {
            true => format!("two columns of the answer are named `{}`; rename the table's with AS, or leave it out", shown(name)),
            false => format!("`key` names `{name}`, which is given twice or is a column of the answer; rename it with AS"),
        })));
    }
    let (schema, model) = (Arc::new(Schema::new(fields)), model.option);
    let applying = Applying { name: spec.name, model, apply, keys, label: label_at, label_type, schema };
    let schema = Arc::clone(&applying.schema);
    Ok(Arc::new(OperatorTable::new(applying, &schema, vec![table, rows])))
}

/// The names given as `key`, taken out of the settings.
fn key(spec: &Spec, settings: &mut Settings) -> pursuit_udfs::Result<Vec<String>> {
    for option in settings.keys() {
        check_option(spec, option)?;
    }
    settings.remove(KEY).map_or(Ok(Vec::new()), |value| parse_checked(KEY, &value, None))
}

/// What a table of a model excludes, and what deciding rows does.
fn check_model(spec: &Spec, tables: &Tables, settings: &Settings) -> pursuit_udfs::Result<ModelTable> {
    let model = spec.model.ok_or_else(|| Error::call("applies no model"))?;
    let ModelTable { option, made_by, .. } = model;
    if let Some(value) = settings.get(option) {
        return Err(Error::call(format!("`{option}` must be a table that {made_by} made, got {}", show(value))));
    }
    if tables.model.is_some() {
        if tables.test.is_some() {
            let test = spec.table.map_or("test", |(test, _)| test);
            return Err(Error::call(format!(
                "`{option}` and `{test}` cannot be used together: with a {option}, the first table is decided"
            )));
        }
        let features = tables.features.as_ref().map(|_| "features");
        if let Some(other) = settings.keys().map(String::as_str).chain(features).next() {
            return Err(Error::call(format!(
                "`{other}` belongs to the training, which `{option}` has behind it; leave one of them out"
            )));
        }
    }
    if settings.contains_key("partition_by") {
        return Err(Error::call(format!(
            "`partition_by` cannot be used here, because all rows are decided by one {option}; filter the table, once for each group"
        )));
    }
    Ok(model)
}

/// The function with its own options. Common ones are checked where the model is fitted.
fn build(spec: &Spec, settings: &Settings) -> pursuit_udfs::Result<Arc<dyn Apply>> {
    let own: Vec<&str> = (spec.options)().iter().map(|option| option.name).collect();
    let own = settings.iter().filter(|(name, _)| own.contains(&name.as_str()));
    match (spec.build)(&own.map(|(name, value)| (name.clone(), value.clone())).collect())? {
        Work::Apply(apply) => Ok(apply),
        _ => Err(Error::call("applies no model")),
    }
}

/// Keys tell rows apart and say nothing about the label: they are no features.
fn without_keys(first: &LogicalPlan, key: &[String], mut settings: Settings) -> pursuit_udfs::Result<Settings> {
    let mut exclude: Vec<String> =
        settings.get("exclude").map_or(Ok(Vec::new()), |given| parse_checked("exclude", given, None))?;
    exclude.extend(key.iter().filter(|key| first.schema().index_of_column_by_name(None, key).is_some()).cloned());
    if !exclude.is_empty() {
        settings.insert("exclude".into(), Value::from(exclude));
    }
    Ok(settings)
}

/// Where the columns of `key` are in the rows.
fn find_keys(rows: &LogicalPlan, key: &[String], apply: &dyn Apply) -> pursuit_udfs::Result<Vec<usize>> {
    let names: Vec<&str> = rows.schema().fields().iter().map(|field| field.name().as_str()).collect();
    let find = |key: &String| {
        names.iter().position(|name| name == key).ok_or_else(|| {
            let hint = did_you_mean(key, &names);
            Error::call(format!("`key` names `{key}`, which is not a column{hint} columns are {}", name_list_near(key, &names)))
        })
    };
    if apply.needs_key() && key.is_empty() {
        return Err(Error::call("missing `key`; without it the steps of one row cannot be told from another's"));
    }
    key.iter().map(find).collect()
}

fn fields(rows: &LogicalPlan, keys: &[usize], label: &DataType, apply: &dyn Apply) -> Vec<FieldRef> {
    let keys = keys.iter().map(|at| Arc::clone(&rows.schema().fields()[*at]));
    let output = |(name, output): (&'static str, Output)| {
        let data_type = match output {
            Output::Class | Output::Predicted => label.clone(),
            Output::Probabilities => answer::shares_type(),
            Output::Correct => DataType::Boolean,
            Output::Of(kind) => answer::data_type(kind),
        };
        Arc::new(Field::new(name, data_type, true))
    };
    keys.chain(apply.outputs().into_iter().map(output)).collect()
}
