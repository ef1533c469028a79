//! The query that gives what the page shows.

use datafusion::scalar::ScalarValue;
use pursuit_udfs::{Settings, Value};

use super::ask::Asked;
use super::source::Source;

/// What a ranking is mostly read for; the page shows no more.
const COLUMNS: &str = "rank, feature, score, train_score, valid_score, coefficient";

/// NULL as the literal of a group.
const NULL: &str = "NULL";

/// The question as SQL.
pub(super) fn of(source: &Source, asked: &Asked) -> String {
    let mut arguments = vec![relation(source, asked), format!("label => {}", text(&asked.label))];
    let mut settings: Settings = asked.settings.clone();
    if let Some(split) = asked.split.as_ref().filter(|split| split.groups.is_none()) {
        // As a group it is no candidate.
        let excluded = settings.entry("exclude").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(excluded) = excluded {
            excluded.push(Value::from(split.by.clone()));
        }
    }
    let given = settings.iter().filter(|(_, value)| !is_empty(value));
    arguments.extend(given.map(|(name, value)| format!("{name} => {}", literal(value))));
    format!("SELECT {COLUMNS}\nFROM {}({})\nORDER BY rank", asked.selector, arguments.join(",\n  "))
}

/// The table, or those rows of it that are asked about.
fn relation(source: &Source, asked: &Asked) -> String {
    let Some((split, groups)) = asked.split.as_ref().and_then(|split| Some((split, split.groups.as_ref()?))) else {
        return source.relation.clone();
    };
    let by = format!("\"{}\"", split.by.replace('"', "\"\""));
    let named: Vec<&str> = groups.iter().map(String::as_str).filter(|group| *group != NULL).collect();
    let mut conditions = Vec::new();
    match named[..] {
        [] => {}
        [one] => conditions.push(format!("{by} = {one}")),
        _ => conditions.push(format!("{by} IN ({})", named.join(", "))),
    }
    if named.len() < groups.len() {
        conditions.push(format!("{by} IS NULL"));
    }
    let condition = if conditions.is_empty() { "FALSE".to_string() } else { conditions.join(" OR ") };
    format!("(SELECT * EXCLUDE ({by}) FROM {} WHERE {condition})", source.relation)
}

/// A value of a column by which rows are grouped, as SQL has it. `None`: it has no short literal.
pub(super) fn group(value: &ScalarValue) -> Option<String> {
    if value.is_null() {
        return Some(NULL.to_string());
    }
    match value.try_as_str() {
        Some(value) => value.map(text),
        None => match value {
            ScalarValue::Dictionary(_, value) => group(value),
            ScalarValue::Boolean(_) => Some(value.to_string()),
            number if number.data_type().is_integer() => Some(number.to_string()),
            _ => None,
        },
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
