//! `selectors()` and `selector_options(name)`: the manual as tables.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::plan_err;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use pursuit_udfs::{Common, Labels, OptionSpec, Options, Reads, Settings, Spec, Work};

use crate::engine::Registry;

#[derive(Debug)]
pub(crate) struct SelectorsFunction {
    registry: Arc<Registry>,
}

impl SelectorsFunction {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }
}

impl TableFunctionImpl for SelectorsFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        if !args.exprs().is_empty() {
            let example = self.registry.example();
            return plan_err!("selectors: takes no arguments; selector_options('{example}') lists the options of one");
        }
        let specs: Vec<&Arc<Spec>> = self.registry.specs.iter().filter(|spec| spec.is_selector()).collect();
        let labels = |labels| match labels {
            Labels::Any => "numbers, classes",
            Labels::NumberOrTwoClasses => "numbers, two classes",
            Labels::Classes => "classes",
        };
        let reads = |spec: &Arc<Spec>| match (spec.build)(&Settings::new()) {
            Ok(Work::Select(selector)) if selector.reads() == Reads::Moments => "moments",
            _ => "rows",
        };
        table(
            &["selector", "aliases", "summary", "labels", "reads", "score", "description"],
            vec![
                specs.iter().map(|spec| spec.name.to_string()).collect(),
                specs.iter().map(|spec| spec.aliases.join(", ")).collect(),
                specs.iter().map(|spec| spec.summary()).collect(),
                specs.iter().map(|spec| labels(spec.labels).to_string()).collect(),
                specs.iter().map(|spec| reads(spec).to_string()).collect(),
                specs.iter().map(|spec| spec.score.to_string()).collect(),
                specs.iter().map(|spec| spec.description()).collect(),
            ],
        )
    }
}

#[derive(Debug)]
pub(crate) struct SelectorOptionsFunction {
    registry: Arc<Registry>,
}

impl SelectorOptionsFunction {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }
}

impl TableFunctionImpl for SelectorOptionsFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let name = match args.exprs() {
            [Expr::Literal(value, _)] => value.try_as_str().flatten(),
            [Expr::Column(column)] => Some(column.name.as_str()),
            _ => None,
        };
        let Some(name) = name else {
            return plan_err!("selector_options: write selector_options('{}')", self.registry.example());
        };
        let spec = self.registry.find(name).ok_or_else(|| self.registry.unknown("selector_options", name))?;
        let common = Common::specs();
        let scope = |option: &OptionSpec| if common.iter().any(|other| other.name == option.name) { "common" } else { "own" };
        let options: Vec<(OptionSpec, &str)> =
            spec.all_options().into_iter().map(|option| (option.clone(), scope(&option))).collect();
        let column = |of: fn(&OptionSpec) -> String| options.iter().map(|(option, _)| of(option)).collect();
        table(
            &["option", "type", "default", "allowed", "scope", "description"],
            vec![
                column(|option| option.name.to_string()),
                column(|option| option.kind.to_string()),
                column(|option| option.default.clone()),
                column(|option| option.allowed.clone()),
                options.iter().map(|(_, scope)| scope.to_string()).collect(),
                column(|option| option.description.clone()),
            ],
        )
    }
}

fn table(names: &[&str], columns: Vec<Vec<String>>) -> Result<Arc<dyn TableProvider>> {
    let schema = Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, DataType::Utf8, false)).collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|column| Arc::new(StringArray::from(column)) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}
