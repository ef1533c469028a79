//! The manual, as `\h` prints it: ours from the registry, DataFusion's from its own documentation.

use std::sync::Arc;

use datafusion::logical_expr::Documentation;
use datafusion::prelude::SessionContext;
use pursuit_udfs::{Spec, did_you_mean};

use super::syntax;
use crate::manual::{page_of, wrapped};

/// Statements of `sql_examples`, each with its question: `(question, statement)`. The tests run all of them.
static EXAMPLES: &str = include_str!(concat!(env!("OUT_DIR"), "/examples.sql"));

/// All functions, ours first.
pub(super) fn list(specs: &[Arc<Spec>], ctx: &SessionContext) -> String {
    let mut text = String::new();
    let mut section = |title: &str, is_in: &dyn Fn(&Spec) -> bool| {
        text.push_str(&format!("{title}\n"));
        let names = specs.iter().filter(|spec| is_in(spec)).map(|spec| names_of(spec));
        let width = names.map(|names| names.len()).max().unwrap_or(0);
        for spec in specs.iter().filter(|spec| is_in(spec)) {
            text.push_str(&format!("  {:<width$}  {}\n", names_of(spec), spec.summary()));
        }
        text.push('\n');
    };
    section("Rank the features of a table", &|spec| spec.is_selector());
    section("Ask more of it", &|spec| !spec.is_selector());
    let state = ctx.state();
    let theirs = state.scalar_functions().len() + state.aggregate_functions().len() + state.window_functions().len();
    text.push_str(&format!(
        "\\h name says how to call one, with its options and an example. DataFusion adds {theirs} functions of SQL: SHOW FUNCTIONS lists them.\n"
    ));
    text
}

fn names_of(spec: &Spec) -> String {
    [spec.name].iter().chain(spec.aliases).copied().collect::<Vec<_>>().join(", ")
}

/// The page of one function, or what there is instead.
pub(super) fn page(name: &str, specs: &[Arc<Spec>], ctx: &SessionContext, width: usize) -> Result<String, String> {
    let name = name.trim().trim_end_matches([';', '(', ')']).to_lowercase();
    let found = specs.iter().find(|spec| spec.name == name || spec.aliases.contains(&name.as_str()));
    if let Some(spec) = found {
        return Ok(ours(spec, width));
    }
    let state = ctx.state();
    let documented = state
        .scalar_functions()
        .get(&name)
        .and_then(|function| function.documentation())
        .or_else(|| state.aggregate_functions().get(&name).and_then(|function| function.documentation()))
        .or_else(|| state.window_functions().get(&name).and_then(|function| function.documentation()));
    if let Some(documentation) = documented {
        return Ok(theirs(&name, documentation, width));
    }
    if let Some(page) = syntax::page(&name, width) {
        return Ok(page);
    }
    let known: Vec<&str> = specs.iter().flat_map(|spec| [spec.name].into_iter().chain(spec.aliases.iter().copied())).collect();
    let hint = did_you_mean(&name, &known);
    Err(format!("no function named `{name}`{hint} \\h lists them"))
}

fn theirs(name: &str, documentation: &Documentation, width: usize) -> String {
    let mut text = format!("{name}\n\n{}\n  {}\n", wrapped(&documentation.description, 2, width), documentation.syntax_example);
    for (argument, meaning) in documentation.arguments.iter().flatten() {
        text.push_str(&format!("\n  {argument}\n{}", wrapped(meaning, 6, width)));
    }
    if let Some(example) = &documentation.sql_example {
        let lines = example.lines().filter(|line| !line.starts_with("```"));
        text.push_str(&format!("\nExample\n{}\n", lines.map(|line| format!("  {line}\n")).collect::<String>().trim_end()));
    }
    text
}

/// The page of one of ours, with an example.
fn ours(spec: &Spec, width: usize) -> String {
    let mut text = page_of(spec, width);
    if let Some((question, statement)) = example(spec) {
        let statement = statement.replace('\n', "\n  ");
        text.push_str(&format!("Example\n{}  {statement};\n", wrapped(&format!("-- {question}"), 2, width)));
    }
    text
}

/// The shortest statement among the examples that calls the function, first of all if there is one.
fn example(spec: &Spec) -> Option<(String, String)> {
    let dialect = datafusion::sql::sqlparser::dialect::GenericDialect {};
    let statements = super::statements::split(EXAMPLES, &dialect).ok()?;
    let is_called = |name: &str, sql: &str| {
        let call = format!("{name}(");
        sql.match_indices(&call).any(|(at, _)| !sql[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let calls = |sql: &str| std::iter::once(&spec.name).chain(spec.aliases).any(|name| is_called(name, sql));
    // One that makes a table shows nothing.
    let is_query = |sql: &str| sql.to_uppercase().starts_with("SELECT") || sql.to_uppercase().starts_with("WITH");
    // What is asked first is what an example is about.
    let leads = |sql: &str| {
        let first = sql.split_once("FROM ").map_or("", |(_, first)| first);
        std::iter::once(&spec.name).chain(spec.aliases).any(|name| first.starts_with(&format!("{name}(")))
    };
    let usable = statements.into_iter().filter(|statement| calls(&statement.sql) && !statement.question.is_empty());
    let best = usable.min_by_key(|statement| (!is_query(&statement.sql), !leads(&statement.sql), statement.sql.len()))?;
    Some((best.question.join(" "), best.sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documents promise it, and nobody else looks.
    #[test]
    fn every_function_has_a_page_with_an_example() {
        let ctx = SessionContext::new();
        let specs: Vec<Arc<Spec>> = pursuit_udfs::selectors().into_iter().chain(pursuit_udfs::reports()).map(Arc::new).collect();
        for spec in &specs {
            let page = page(spec.name, &specs, &ctx, 100).unwrap();
            let has = |part: &str| page.contains(part);
            assert!(has("\nCall\n") && has("\nExample\n") && has(&format!("{}(", spec.name)), "{page}");
            assert!(spec.all_options().iter().all(|option| has(&format!("\n  {}", option.name))), "{page}");
            assert!(page.lines().all(|line| line.chars().count() <= 160), "{page}");
        }
        // A line for each, headings, and how to go on.
        assert!(list(&specs, &ctx).lines().count() < specs.len() + 8);
        assert!(page("abs", &specs, &ctx, 100).unwrap().contains("absolute value"));
        assert!(page("SELECT", &specs, &ctx, 100).is_ok());
        assert!(page("ompp", &specs, &ctx, 100).unwrap_err().contains("did you mean `omp`?"));
    }
}
