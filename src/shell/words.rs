//! Errors as people read them: one line, without the name of the layer that found it.

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use pursuit_udfs::{did_you_mean, name_list_near, shown};

pub(super) fn in_words(error: &DataFusionError) -> String {
    let text = match error {
        DataFusionError::Diagnostic(_, inner) => return in_words(inner),
        DataFusionError::Shared(inner) => return in_words(inner),
        DataFusionError::Plan(message) | DataFusionError::Execution(message) => message.clone(),
        DataFusionError::SQL(syntax, _) => match syntax.as_ref() {
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                format!("syntax error: {}", message.trim_start_matches("sql parser error: "))
            }
            other => format!("syntax error: {other}"),
        },
        DataFusionError::SchemaError(unknown, _) => match unknown.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => unknown_column(field, valid_fields),
            _ => error.strip_backtrace(),
        },
        other => other.strip_backtrace(),
    };
    // A function of ours where a value is expected; DataFusion knows it as a table only.
    if let Some(name) = text.strip_prefix("Invalid function '").and_then(|rest| rest.split('\'').next()) {
        let specs = pursuit_udfs::selectors().into_iter().chain(pursuit_udfs::reports());
        let mut names = specs.flat_map(|spec| spec.aliases.iter().copied().chain([spec.name]));
        if names.any(|known| known.eq_ignore_ascii_case(name)) {
            return format!("{name}: answers with a table; write SELECT * FROM {name}(…)");
        }
    }
    // A backtrace, if the build makes any, follows the message.
    let text = text.split("\n\nbacktrace: ").next().unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A column that no table of the query has. DataFusion lists all there are, however many, each with its table.
fn unknown_column(field: &Column, valid: &[Column]) -> String {
    let unknown = format!("no column `{}`", shown(&field.flat_name()));
    if valid.is_empty() {
        return format!("{unknown}; the query reads no table");
    }
    // The table needs no mention where there is one, and nobody has mentioned it.
    let is_short = field.relation.is_none() && valid.windows(2).all(|pair| pair[0].relation == pair[1].relation);
    let known: Vec<Column> =
        valid.iter().map(|column| if is_short { Column::from_name(&column.name) } else { column.clone() }).collect();
    let names: Vec<String> = known.iter().map(Column::flat_name).collect();
    let wrong = field.flat_name();
    // Without quotes SQL takes all letters for small ones.
    let hint = match known.iter().find(|column| column.flat_name().eq_ignore_ascii_case(&wrong)) {
        Some(capital) => format!("; write it in double quotes, {};", capital.quoted_flat_name()),
        None => did_you_mean(&wrong, &names),
    };
    format!("{unknown}{hint} columns are {}", name_list_near(&wrong, &names))
}
