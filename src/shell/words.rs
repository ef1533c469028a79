//! Errors as people read them: one line, without the name of the layer that found it.

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

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
