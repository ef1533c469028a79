//! What there is, as tables: `functions()`, `selectors()`, `selector_options(name)` and `manual(name)`.
//!
//! The columns of the lists are short, so that SELECT * fits a terminal; whatever is longer than a line is in the manual.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::plan_err;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use pursuit_udfs::{Asks, Common, Labels, OptionSpec, Options, Reads, Settings, Spec, Work};

use crate::engine::Registry;
use crate::error::named;
use crate::manual::page_of;

/// Declares table functions that have nothing but the registry.
macro_rules! of_registry {
    ($($Name:ident),*) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $Name {
                registry: Arc<Registry>,
            }

            impl $Name {
                pub(crate) fn new(registry: Arc<Registry>) -> Self {
                    Self { registry }
                }
            }
        )*
    };
}

of_registry!(FunctionsFunction, SelectorsFunction, SelectorOptionsFunction, ManualFunction);

/// A function that has no declaration of its own: name, kind, what it is for, and how it is called.
type Other = (&'static str, &'static str, &'static str, &'static str);

const OTHERS: [Other; 10] = [
    ("gram", "aggregate", "Second moments of columns, to keep and to select from", "SELECT gram(y, a, b) FROM t"),
    ("gram_merge", "aggregate", "Many grams as one", "SELECT gram_merge(g) FROM grams"),
    ("gram_summary", "scalar", "What went into a gram", "SELECT gram_summary(g) FROM grams"),
    ("select_from", "scalar", "A ranking from a gram, without the table", "SELECT select_from(g, '*') FROM grams"),
    ("sample_problem", "generator", "A table whose right answer is known", "sample_problem('linear', 100, 1)"),
    ("functions", "catalog", "What there is: this list", "functions()"),
    ("selectors", "catalog", "Which selectors there are, and what they take", "selectors()"),
    ("selector_options", "catalog", "The options of a function", "selector_options('*')"),
    ("manual", "catalog", "All that there is to know about a function", "manual('*')"),
    ("which_selector", "catalog", "Which selector is for what", "which_selector()"),
];

impl TableFunctionImpl for FunctionsFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        if !args.exprs().is_empty() {
            return plan_err!("functions: takes no arguments; manual('{}') tells all about one", self.registry.example());
        }
        let specs = &self.registry.specs;
        let column = |of: &dyn Fn(&Arc<Spec>) -> String, other: &dyn Fn(&Other) -> String| {
            specs.iter().map(of).chain(OTHERS.iter().map(other)).collect()
        };
        table(
            &["function", "kind", "summary", "aliases", "example"],
            vec![
                column(&|spec| spec.name.to_string(), &|(name, ..)| name.to_string()),
                column(&|spec| kind(spec, &self.registry).to_string(), &|(_, kind, ..)| kind.to_string()),
                column(&|spec| spec.summary(), &|(_, _, summary, _)| summary.to_string()),
                column(&|spec| spec.aliases.join(", "), &|_| String::new()),
                column(&|spec| example(spec), &|(.., example)| example.replace('*', self.registry.example())),
            ],
        )
    }
}

/// What a function answers with.
fn kind(spec: &Spec, registry: &Registry) -> &'static str {
    match (spec.build)(&Settings::new()) {
        Ok(Work::Select(_)) => "selector",
        Ok(Work::Apply(_) | Work::OnModel(_)) => "model",
        Ok(Work::Choose(_)) => "table",
        Ok(Work::Summarize(_)) => "summary",
        _ if registry.makes_models(spec) => "model",
        _ => "report",
    }
}

/// A call in one line.
fn example(spec: &Spec) -> String {
    let name = spec.name;
    match (spec.asks, spec.model) {
        (Asks::MaybeLabel | Asks::NoLabel, None) => format!("{name}(t)"),
        (Asks::Model, _) => format!("{name}(m)"),
        (_, Some(model)) if !model.fits => format!("{name}(t, {} => m)", model.option),
        (_, Some(_)) => format!("{name}(t, label => y, key => id)"),
        _ if spec.is_selector() || spec.asks == Asks::Choice => format!("{name}(t, label => y, k => 5)"),
        _ => format!("{name}(t, label => y)"),
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
            &["selector", "summary", "labels", "reads", "aliases"],
            vec![
                specs.iter().map(|spec| spec.name.to_string()).collect(),
                specs.iter().map(|spec| spec.summary()).collect(),
                specs.iter().map(|spec| labels(spec.labels).to_string()).collect(),
                specs.iter().map(|spec| reads(spec).to_string()).collect(),
                specs.iter().map(|spec| spec.aliases.join(", ")).collect(),
            ],
        )
    }
}

/// The one argument: the name of a function.
fn name_of(args: &TableFunctionArgs) -> Option<String> {
    match args.exprs() {
        [Expr::Literal(value, _)] => value.try_as_str().flatten().map(str::to_string),
        [Expr::Column(column)] => Some(column.name.clone()),
        _ => None,
    }
}

impl TableFunctionImpl for SelectorOptionsFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let Some(name) = name_of(&args) else {
            return plan_err!("selector_options: write selector_options('{}')", self.registry.example());
        };
        let spec = self.registry.find(&name).ok_or_else(|| self.registry.unknown("selector_options", &name))?;
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

impl TableFunctionImpl for ManualFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let Some(name) = name_of(&args) else {
            return plan_err!("manual: write manual('{}'); functions() lists what there is", self.registry.example());
        };
        if let Some((name, _, summary, example)) = OTHERS.iter().find(|(other, ..)| other.eq_ignore_ascii_case(&name)) {
            let example = example.replace('*', self.registry.example());
            let lines = [name.to_string(), String::new(), format!("{summary}."), String::new(), format!("  {example}")];
            return table(&["manual"], vec![lines.to_vec()]);
        }
        let spec = self.registry.find(&name).ok_or_else(|| named("manual", self.registry.no_function(&name)))?;
        table(&["manual"], vec![page_of(&spec, WIDTH).lines().map(str::to_string).collect()])
    }
}

/// Letters of a line of the manual.
const WIDTH: usize = 110;

pub(crate) fn table(names: &[&str], columns: Vec<Vec<String>>) -> Result<Arc<dyn TableProvider>> {
    let schema = Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, DataType::Utf8, false)).collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|column| Arc::new(StringArray::from(column)) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}
