//! The positional door: `omp('table', 'label', 10, '{"exclude": ["id"]}')`, as any DataFusion host can call it.
//! The named door (planner.rs) ends here too, so that both build the same call.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::scalar::ScalarValue;
use futures::FutureExt;
use pursuit_udfs::{Asks, Error, ModelTable, Reads, Settings, Spec, Value, Work, did_you_mean, name_list, parse_options, shown};

use crate::ReadsFiles;
use crate::apply;
use crate::call::{Call, Input};
use crate::chosen;
use crate::defaults::Defaults;
use crate::engine::Registry;
use crate::error::named;
use crate::expand::expand;
use crate::on_model;
use crate::option_table;
use crate::progress::Progress;
use crate::question::check_option;
use crate::same_rows::has_seen;
use crate::summarize;
use crate::table::SelectTable;
use crate::wait::wait;

/// A selector as a table function.
#[derive(Debug)]
pub(crate) struct SelectFunction {
    spec: Arc<Spec>,
    registry: Arc<Registry>,
    progress: Arc<Progress>,
}

impl SelectFunction {
    pub(crate) fn new(spec: Arc<Spec>, registry: Arc<Registry>, progress: Arc<Progress>) -> Self {
        Self { spec, registry, progress }
    }

    fn error(&self, message: impl Into<String>) -> DataFusionError {
        named(self.spec.name, Error::call(message))
    }
}

impl TableFunctionImpl for SelectFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let name = self.spec.name;
        let usage = match self.spec.asks {
            Asks::Label | Asks::Choice => {
                format!("write {name}('table', 'label', 10) or {name}(table, label => column, k => 10)")
            }
            _ => usage(&self.spec),
        };
        let exprs = args.exprs();
        let planned = planned_relations(exprs.get(4..).unwrap_or_default()).ok_or_else(|| {
            self.error(format!("takes a table, a label, k and options, got {} arguments; {usage}", exprs.len()))
        })?;
        let Some(input) = exprs.first() else { return Err(self.error(format!("missing the table; {usage}"))) };
        let label = self.label(exprs.get(1), &usage)?;
        let mut settings = match exprs.get(3) {
            Some(options) => settings_of(self.value(options)?).map_err(|error| named(name, error))?,
            None => Settings::new(),
        };
        if let Some(k) = exprs.get(2) {
            let k = self.value(k)?;
            if !k.is_null() && settings.insert("k".into(), k).is_some() {
                return Err(self.error("`k` is given twice, as the third argument and among the options"));
            }
        }
        settings.retain(|_, value| !value.is_null());
        let (plan, table) = self.input(input, args.session())?;
        let mut relation = |option: &str| -> Result<Option<LogicalPlan>> {
            let found = match (planned.iter().find(|(name, _)| name == option), settings.get(option)) {
                (Some((_, plan)), _) => Some(plan.clone()),
                (None, Some(Value::String(name))) => Some(self.look_up(name, args.session())?.0),
                _ => None,
            };
            if found.is_some() {
                settings.remove(option);
            }
            Ok(found)
        };
        let tables: Vec<_> =
            self.spec.all_options().into_iter().filter_map(|option| Some((option.name, option.table?))).collect();
        let tables =
            tables.into_iter().map(|(option, shape)| Ok((option, shape, relation(option)?))).collect::<Result<Vec<_>>>()?;
        let model = self.spec.model.filter(|_| self.spec.asks != Asks::Model);
        let model = model.map(|model| relation(model.option)).transpose()?.flatten();
        let held_out = self.spec.table.map(|(option, _)| relation(option)).transpose()?.flatten();
        let features = planned.iter().find(|(name, _)| name == "features").map(|(_, plan)| plan.clone());
        for (option, shape, table) in tables {
            if let Some(table) = table {
                settings.insert(option.into(), option_table::read(name, option, shape, table, args.session())?);
            }
        }
        match (self.spec.build)(&Settings::new()) {
            Ok(Work::OnModel(_)) => return on_model::provider(&self.spec, plan, &settings),
            Ok(Work::Summarize(_)) => {
                Defaults::fill(args.session().config_options(), &self.spec, &mut settings);
                if let Some(parameter) = first_parameter([&plan].into_iter())? {
                    return Err(
                        self.error(format!("`{parameter}` cannot be used where rows are gathered; write the value itself"))
                    );
                }
                return summarize::provider(&self.spec, &self.progress, plan, table.as_deref(), label.as_deref(), &settings);
            }
            Ok(Work::Apply(_)) => {
                let tables = apply::Tables { first: plan, name: table, test: held_out, model, features };
                return apply::provider(&self.spec, &self.progress, tables, label.as_deref(), settings, args.session());
            }
            _ => {}
        }
        let label = label.unwrap_or_default();
        if self.spec.asks == Asks::Choice {
            return self.choose(plan, table, &label, settings, features, args.session());
        }
        self.selection(&self.spec, plan, table.as_deref(), &label, settings, held_out, features, args.session())
    }
}

impl SelectFunction {
    /// A call that ranks or reports, as a table.
    #[allow(clippy::too_many_arguments)]
    fn selection(
        &self,
        spec: &Arc<Spec>,
        plan: LogicalPlan,
        table: Option<&str>,
        label: &str,
        mut settings: Settings,
        held_out: Option<LogicalPlan>,
        features: Option<LogicalPlan>,
        session: &dyn Session,
    ) -> Result<Arc<dyn TableProvider>> {
        Defaults::fill(session.config_options(), spec, &mut settings);
        let ours = |error| named(self.spec.name, error);
        let input = Input { schema: plan.schema(), table };
        let call = Call::of(Arc::clone(spec), Some(&self.registry), &input, label, settings).map_err(ours)?;
        let saw = held_out.is_none() && features.as_ref().is_some_and(|features| has_seen(features, &plan));
        let mut call = call.with_relations(held_out, features).map_err(ours)?;
        call.question.caution = saw.then(|| OPTIMISTIC.to_string());
        Ok(match call.reads {
            Reads::Moments if call.parting.is_none() => {
                Arc::new(ViewTable::new(expand(plan, &call, &self.registry, &self.progress)?, None))
            }
            _ => {
                // The plan is out of sight inside the operator, where nobody would ever fill the parameter in.
                let plans = [Some(&plan), call.held_out.as_ref().map(|held_out| &held_out.plan), call.features.as_ref()];
                if let Some(parameter) = first_parameter(plans.into_iter().flatten())? {
                    let instead = if call.question.reads == Reads::Moments { "; set reads => 'moments'" } else { "" };
                    return Err(self.error(format!("`{parameter}` cannot be used where rows are kept{instead}")));
                }
                Arc::new(SelectTable::new(plan, call, Arc::clone(&self.progress)))
            }
        })
    }

    /// The columns that a selector chooses, or the query for them.
    fn choose(
        &self,
        plan: LogicalPlan,
        table: Option<String>,
        label: &str,
        mut settings: Settings,
        features: Option<LogicalPlan>,
        session: &dyn Session,
    ) -> Result<Arc<dyn TableProvider>> {
        let own: Vec<&str> = (self.spec.options)().iter().map(|option| option.name).collect();
        for option in settings.keys() {
            check_option(&self.spec, option).map_err(|error| named(self.spec.name, error))?;
        }
        let given: Settings = own.iter().filter_map(|option| settings.remove_entry(*option)).collect();
        let Work::Choose(choosing) = (self.spec.build)(&given).map_err(|error| named(self.spec.name, error))? else {
            return Err(self.error("chooses nothing"));
        };
        let spec = self.registry.find(&choosing.selector).filter(|spec| spec.is_selector());
        let spec = spec.ok_or_else(|| self.registry.unknown(self.spec.name, &choosing.selector))?;
        let groups = settings.get("groups").cloned();
        let ranking = match features {
            Some(features) if !given.contains_key("selector") && settings.is_empty() => features,
            features => {
                let selected = self.selection(&spec, plan.clone(), table.as_deref(), label, settings, None, features, session)?;
                LogicalPlanBuilder::scan(spec.name, provider_as_source(selected), None)?.build()?
            }
        };
        let source = chosen::Source { function: self.spec.name, table: plan, label: label.to_string(), groups };
        if choosing.as_sql { chosen::sql(source, ranking) } else { chosen::table(&source, ranking, session) }
    }
}

/// Said where features were chosen with a look at all rows.
const OPTIMISTIC: &str = "optimistic: the features were chosen with a look at the rows that judge them; name the selector as `selector`, or give other rows as `test`";

/// Options that can be tables: those of a shape that a table has, features, the second table of those that take one, and a model's.
pub(crate) fn takes_relation(spec: &Spec, option: &str) -> bool {
    spec.all_options().iter().any(|other| other.name == option && other.table.is_some())
        || option == "features"
        || spec.table.is_some_and(|(table, _)| table == option)
        || spec.model.is_some_and(|model| model.option == option && spec.asks != Asks::Model)
}

fn first_parameter<'a>(plans: impl Iterator<Item = &'a LogicalPlan>) -> Result<Option<String>> {
    for plan in plans {
        if let Some(parameter) = plan.get_parameter_names()?.into_iter().next() {
            return Ok(Some(parameter));
        }
    }
    Ok(None)
}

/// What the named door hands over behind the four arguments: pairs of an option's name and its plan.
fn planned_relations(exprs: &[Expr]) -> Option<Vec<(String, LogicalPlan)>> {
    let (pairs, rest) = exprs.as_chunks::<2>();
    let pair = |[name, plan]: &[Expr; 2]| match (name, plan) {
        (Expr::Literal(name, _), Expr::ScalarSubquery(plan)) => {
            Some((name.try_as_str()??.to_string(), plan.subquery.as_ref().clone()))
        }
        _ => None,
    };
    if rest.is_empty() { pairs.iter().map(pair).collect() } else { None }
}

/// How a function is called, for a message.
pub(crate) fn usage(spec: &Spec) -> String {
    let name = spec.name;
    match (spec.asks, spec.model) {
        (Asks::Label | Asks::Choice, _) => {
            format!("write {name}(table, label => column, k => 10) or {name}((SELECT …), label => column)")
        }
        (Asks::MaybeLabel, _) => format!("write {name}(table) or {name}(table, label => column)"),
        (Asks::Model, Some(ModelTable { made_by, .. })) => {
            format!("write {name}(model), where model is a table that {made_by} made")
        }
        (_, Some(ModelTable { option, made_by, .. })) => {
            format!("write {name}(table, {option} => m), where m is a table that {made_by} made")
        }
        _ => format!("write {name}(table)"),
    }
}

impl SelectFunction {
    /// The second argument, of those who ask for one.
    fn label(&self, given: Option<&Expr>, usage: &str) -> Result<Option<String>> {
        let asks = self.spec.asks;
        match given.map(|label| self.value(label)).transpose()? {
            None if matches!(asks, Asks::Label | Asks::Choice) => Err(self.error(format!("missing `label`; {usage}"))),
            None | Some(Value::Null) if !matches!(asks, Asks::Label | Asks::Choice) => Ok(None),
            Some(Value::String(_)) if matches!(asks, Asks::NoLabel | Asks::Model) => {
                Err(self.error(format!("takes no `label`; {usage}")))
            }
            Some(Value::String(label)) => Ok(Some(label)),
            other => {
                let shown = pursuit_udfs::options::show(&other.unwrap_or_default());
                Err(self.error(format!("`label` must be the name of a column, got {shown}")))
            }
        }
    }

    /// A literal argument as a value. A bare word is its own text.
    fn value(&self, expr: &Expr) -> Result<Value> {
        match expr {
            Expr::Literal(value, _) => value_of(value)
                .map_err(|error| named(self.spec.name, error))?
                .ok_or_else(|| self.error(format!("cannot read the argument {}", shown(&value.to_string())))),
            Expr::Column(column) => Ok(Value::from(column.name.clone())),
            Expr::Alias(alias) => self.value(&alias.expr),
            Expr::Placeholder(placeholder) => Err(self.error(format!(
                "`{}` cannot be an argument; write the value itself, or use it inside the subquery",
                placeholder.id
            ))),
            other => Err(self.error(format!("arguments must be constants, got {}", shown(&other.to_string())))),
        }
    }

    /// The plan of the first argument, and its name if it has one.
    fn input(&self, expr: &Expr, session: &dyn Session) -> Result<(LogicalPlan, Option<String>)> {
        if let Expr::ScalarSubquery(subquery) = expr {
            if !subquery.outer_ref_columns.is_empty() {
                return Err(self.error(
                    "the subquery must not refer to columns outside of it; partition_by gives one selection for each group",
                ));
            }
            return Ok((subquery.subquery.as_ref().clone(), None));
        }
        match self.value(expr)? {
            Value::String(name) => self.look_up(&name, session).map(|(plan, name)| (plan, Some(name))),
            other => Err(self
                .error(format!("the first argument must be a table or a subquery, got {}", pursuit_udfs::options::show(&other)))),
        }
    }

    /// A table, a view or a file, by name.
    fn look_up(&self, name: &str, session: &dyn Session) -> Result<(LogicalPlan, String)> {
        if name.trim_start().to_lowercase().starts_with("select ") || name.trim_start().to_lowercase().starts_with("with ") {
            return Err(self.error(format!(
                "the first argument is a table's name, not SQL text; write {}((SELECT …), label => …) without the quotes",
                self.spec.name
            )));
        }
        if name.trim().is_empty() {
            return Err(self.error("the table's name is empty"));
        }
        let failed = |why: String| self.error(format!("cannot look up `{}`: {why}", shown(name)));
        // Catalogs in memory answer at once.
        let found = find_table(session, name).now_or_never().unwrap_or_else(|| {
            wait(|| find_table(session, name), || Err(failed("internal error; please report it".to_string())))
        });
        let found = found.map_err(|error| failed(why_unread(&error)))?;
        let Some((reference, provider)) = found else { return Err(self.no_such_table(name, session)) };
        Ok((LogicalPlanBuilder::scan(reference, provider_as_source(provider), None)?.build()?, name.to_string()))
    }

    fn no_such_table(&self, name: &str, session: &dyn Session) -> DataFusionError {
        let defaults = &session.config_options().catalog;
        let mut names = Vec::new();
        if let Some(catalog) = session.catalog_list().catalog(&defaults.default_catalog) {
            let is_shown = |schema: &&String| !["information_schema", "pg_catalog"].contains(&schema.as_str());
            for schema in catalog.schema_names().iter().filter(is_shown) {
                let prefix = if *schema == defaults.default_schema { String::new() } else { format!("{schema}.") };
                let tables = catalog.schema(schema).map(|schema| schema.table_names()).unwrap_or_default();
                names.extend(tables.iter().map(|table| format!("{prefix}{table}")));
            }
        }
        names.sort();
        if session.config().get_extension::<ReadsFiles>().is_some()
            && let Some(why) = no_such_file(name)
        {
            return self.error(why);
        }
        // The name alone, without the schema that it is in.
        let in_schema = names.iter().find(|known| known.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(name)));
        let hint = in_schema.map_or_else(|| did_you_mean(name, &names), |known| format!("; did you mean `{}`?", shown(known)));
        let list =
            if names.is_empty() { " there are no tables yet".to_string() } else { format!(" tables are {}", name_list(&names)) };
        self.error(format!("no table or view named `{}`{hint}{list}", shown(name)))
    }
}

/// What is wrong with a name that is meant to be a file, which shows in its ending or its folder.
fn no_such_file(name: &str) -> Option<String> {
    const ENDINGS: [&str; 5] = ["parquet", "csv", "json", "ndjson", "arrow"];
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_lowercase();
    let is_known = ENDINGS.contains(&ending.as_str());
    if !is_known && !name.contains('/') {
        return None;
    }
    if name.contains("://") {
        return Some(format!("cannot find `{}`; is the address right?", shown(name)));
    }
    if path.exists() {
        return Some(match is_known {
            true => format!("cannot read `{}` as a table; is it what its ending says?", shown(name)),
            false => format!("cannot read `{}` as a table; files end in {}", shown(name), ENDINGS.join(", ")),
        });
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let beside: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().to_string()).collect();
    let file = path.file_name().map(|file| file.to_string_lossy().to_string()).unwrap_or_default();
    let hint = match did_you_mean(&file, &beside).as_str() {
        ";" if !folder.exists() => format!("; there is no folder `{}`", shown(&folder.to_string_lossy())),
        ";" => String::new(),
        hint => hint.to_string(),
    };
    Some(format!("no file named `{}`{hint}", shown(name)))
}

/// First as SQL reads the name, then as it stands: a path to a file has dots of its own.
async fn find_table(session: &dyn Session, name: &str) -> Result<Option<(TableReference, Arc<dyn TableProvider>)>> {
    let defaults = &session.config_options().catalog;
    for reference in [TableReference::parse_str(name), TableReference::bare(name)] {
        let resolved = reference.clone().resolve(&defaults.default_catalog, &defaults.default_schema);
        let schema = session.catalog_list().catalog(&resolved.catalog).and_then(|catalog| catalog.schema(&resolved.schema));
        if let Some(schema) = schema
            && let Some(table) = schema.table(&resolved.table).await?
        {
            return Ok(Some((reference, table)));
        }
    }
    Ok(None)
}

/// Options as a JSON text, or as the STRUCT or MAP that has become an object already.
pub(crate) fn settings_of(options: Value) -> Result<Settings, Error> {
    match options {
        Value::Null => Ok(Settings::new()),
        Value::Object(settings) => Ok(settings),
        Value::String(json) => parse_options(&json),
        other => Err(Error::call(format!(
            "options must be a JSON object such as '{{\"exclude\": [\"id\"]}}', got {}",
            pursuit_udfs::options::show(&other)
        ))),
    }
}

/// A literal as JSON: numbers, text, booleans, and lists, structs and maps of them. `None`: it is none of these.
pub(crate) fn value_of(value: &ScalarValue) -> Result<Option<Value>, Error> {
    if value.is_null() {
        return Ok(Some(Value::Null));
    }
    if let Some(text) = value.try_as_str() {
        return Ok(Some(text.map_or(Value::Null, Value::from)));
    }
    let item = |array: &dyn Array, at: usize| match ScalarValue::try_from_array(array, at) {
        Ok(item) => value_of(&item),
        Err(_) => Ok(None),
    };
    let items = |array: &dyn Array| (0..array.len()).map(|at| item(array, at)).collect::<Result<Option<Vec<Value>>, Error>>();
    match value {
        ScalarValue::Boolean(Some(value)) => Ok(Some(Value::from(*value))),
        ScalarValue::List(list) => Ok(items(&list.value(0))?.map(Value::Array)),
        ScalarValue::LargeList(list) => Ok(items(&list.value(0))?.map(Value::Array)),
        ScalarValue::FixedSizeList(list) => Ok(items(&list.value(0))?.map(Value::Array)),
        ScalarValue::Struct(fields) => {
            let values = fields.columns().iter().map(|column| item(column, 0)).collect::<Result<Option<Vec<_>>, Error>>()?;
            values.map(|values| object(fields.column_names().into_iter().map(str::to_string), values)).transpose()
        }
        ScalarValue::Map(map) => {
            let entries = map.value(0);
            let (Some(keys), Some(values)) = (items(entries.column(0))?, items(entries.column(1))?) else { return Ok(None) };
            let keys = keys.iter().map(|key| key.as_str().map(str::to_string)).collect::<Option<Vec<_>>>();
            keys.map(|keys| object(keys.into_iter(), values)).transpose()
        }
        // A number of 64 bits may be a seed: every digit counts.
        ScalarValue::Int64(Some(number)) => Ok(Some(Value::from(*number))),
        ScalarValue::UInt64(Some(number)) => Ok(Some(Value::from(*number))),
        number => Ok(match number.cast_to(&DataType::Float64).ok() {
            Some(ScalarValue::Float64(Some(x))) if x.fract() == 0.0 && x.abs() < 9e15 => Some(Value::from(x as i64)),
            Some(ScalarValue::Float64(Some(x))) if x.is_finite() => Some(Value::from(x)),
            _ => None,
        }),
    }
}

/// Names and their values; a name that stands twice is refused.
fn object(names: impl Iterator<Item = String>, values: Vec<Value>) -> Result<Value, Error> {
    let mut object = Settings::new();
    for (name, value) in names.zip(values) {
        if object.contains_key(&name) {
            return Err(Error::call(format!("`{}` is given twice", shown(&name))));
        }
        object.insert(name, value);
    }
    Ok(Value::Object(object))
}

/// What a source of tables says is wrong, on one line.
fn why_unread(error: &DataFusionError) -> String {
    let why = match error {
        // Said in our words.
        DataFusionError::Plan(why) | DataFusionError::Execution(why) => why.clone(),
        error => error.strip_backtrace().replace("\ncaused by\n", ": "),
    };
    let hint = if why.contains("unequal lengths between records") {
        "; where values have line breaks in them, name the columns: CREATE EXTERNAL TABLE t (x DOUBLE, …) STORED AS CSV LOCATION '…' OPTIONS ('format.has_header' 'true', 'format.newlines_in_values' 'true')"
    } else {
        ""
    };
    format!("{why}{hint}")
}
