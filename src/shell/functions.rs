//! `SHOW FUNCTIONS`: ours first, then DataFusion's, each with what it is for and how it is called.

use std::sync::Arc;

use pursuit_udfs::Spec;

use crate::function::usage;

/// The query that lists them, of those whose names are like the pattern.
pub(super) fn query(specs: &[Arc<Spec>], like: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let row = |spec: &Arc<Spec>| {
        let usage = usage(spec);
        let call = usage.trim_start_matches("write ").split(" or ").next().unwrap_or_default();
        format!("({}, 'TABLE', {}, {})", quoted(spec.name), quoted(&spec.summary()), quoted(call))
    };
    let ours = specs.iter().map(row).collect::<Vec<_>>().join(", ");
    let names = specs
        .iter()
        .flat_map(|spec| spec.aliases.iter().chain([&spec.name]))
        .map(|name| quoted(name))
        .collect::<Vec<_>>()
        .join(", ");
    let filter = if like.is_empty() { String::new() } else { format!(" WHERE function_name LIKE {}", quoted(like)) };
    format!(
        "SELECT function_name, function_type, description, syntax_example FROM (\
         SELECT 0 AS part, * FROM (VALUES {ours}) AS ours (function_name, function_type, description, syntax_example) \
         UNION ALL SELECT DISTINCT 1, routine_name, function_type, description, syntax_example FROM information_schema.routines \
         WHERE routine_name NOT IN ({names})){filter} ORDER BY part, function_name"
    )
}
