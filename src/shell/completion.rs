//! What Tab offers: commands, functions, the options of the call that is being written, tables, columns, keywords and files.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use datafusion::prelude::SessionContext;
use pursuit_udfs::{OptionSpec, Spec};

use super::commands::{COMMANDS, SETTINGS};
use crate::answer;
use crate::wait::wait;

/// A word to put in the place of what was typed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    pub word: String,
    /// What is shown in the list.
    pub shown: String,
}

fn offer(word: impl Into<String>) -> Offer {
    let word = word.into();
    Offer { shown: word.clone(), word }
}

pub(super) struct Completer {
    pub ctx: SessionContext,
    pub specs: Vec<Arc<Spec>>,
}

/// Where the cursor is: what of a call has been written.
#[derive(Debug, Default, PartialEq)]
struct Place {
    /// Where in the text the word begins that is completed.
    begin: usize,
    /// Inside a text in single quotes.
    is_quoted: bool,
    /// The innermost call that is open, and its arguments as far as they are written.
    call: Option<(String, Vec<String>)>,
}

/// Looks at the text before the cursor.
fn place(text: &str) -> Place {
    let mut open: Vec<(String, Vec<String>)> = Vec::new();
    let (mut word, mut quote, mut begin): (String, Option<char>, usize) = (String::new(), None, 0);
    let mut before_word = 0;
    for (at, c) in text.char_indices() {
        if let Some((_, arguments)) = open.last_mut()
            && (quote.is_some() || !matches!(c, '(' | ')' | ','))
            && let Some(argument) = arguments.last_mut()
        {
            argument.push(c);
        }
        if let Some(end) = quote {
            if c == end {
                (quote, begin) = (None, at + 1);
            }
            continue;
        }
        match c {
            '\'' | '"' => (quote, begin) = (Some(c), at + 1),
            '(' => {
                open.push((std::mem::take(&mut word), vec![String::new()]));
                begin = at + 1;
            }
            ')' => {
                let closed = open.pop();
                if let (Some((name, arguments)), Some((_, outer))) = (closed, open.last_mut())
                    && let Some(argument) = outer.last_mut()
                {
                    // What was in brackets is part of the argument around it.
                    argument.push_str(&format!("({})", arguments.join(",")));
                    let _ = name;
                }
                begin = at + 1;
            }
            ',' => {
                if let Some((_, arguments)) = open.last_mut() {
                    arguments.push(String::new());
                }
                begin = at + 1;
            }
            c if c.is_alphanumeric() || c == '_' || c == '.' => {
                if begin != before_word || word.is_empty() {
                    word.clear();
                    before_word = begin;
                }
                word.push(c);
                continue;
            }
            _ => begin = at + c.len_utf8(),
        }
        word.clear();
        before_word = begin;
    }
    // A list is no call: `exclude => [a, b` and `(a, b` belong to what is around them.
    Place { begin, is_quoted: quote == Some('\''), call: open.pop().filter(|(name, _)| !name.is_empty()) }
}

/// Looking a table up may take the network; nobody waits longer for a list of words.
const LOOK_UP: Duration = Duration::from_millis(500);
const COLUMNS_MAX: usize = 2_000;

impl Completer {
    /// Where the word begins, and what could stand there. `before` is what was typed on earlier lines.
    pub(super) fn complete(&self, before: &str, line: &str) -> (usize, Vec<Offer>) {
        if before.is_empty() && line.starts_with('\\') {
            return self.command(line);
        }
        let text = format!("{before}{line}");
        let place = place(&text);
        let word = &text[place.begin..];
        let begin = place.begin.saturating_sub(before.len());
        let offers = match &place.call {
            _ if place.begin < before.len() => return (line.len(), Vec::new()),
            Some((name, arguments)) if self.spec(name).is_some() => {
                let spec = self.spec(name).expect("it was just found");
                self.in_call(spec, arguments, place.is_quoted, word)
            }
            _ if place.is_quoted => files(word),
            _ if text[..place.begin].trim_end().is_empty() || text[..place.begin].trim_end().ends_with(';') => keywords(word),
            _ => self.anywhere(&text, word),
        };
        let is_match = |offer: &Offer| offer.word.to_lowercase().starts_with(&word.to_lowercase());
        let mut seen = BTreeSet::new();
        let offers = offers.into_iter().filter(is_match).filter(|offer| seen.insert(offer.word.clone())).collect();
        (begin, offers)
    }

    fn spec(&self, name: &str) -> Option<&Arc<Spec>> {
        let name = name.to_lowercase();
        self.specs.iter().find(|spec| spec.name == name || spec.aliases.contains(&name.as_str()))
    }

    fn command(&self, line: &str) -> (usize, Vec<Offer>) {
        let begin = line.rfind([' ', '\\']).map_or(0, |at| at + usize::from(line.as_bytes()[at] == b' '));
        let word = &line[begin..];
        let all: Vec<Offer> = match line.split_whitespace().next().filter(|_| begin > 0) {
            None => COMMANDS.iter().map(|(name, ..)| offer(format!("\\{name}"))).collect(),
            Some("\\h") => self.functions().map(offer).collect(),
            Some("\\d") => self.tables().into_iter().map(offer).collect(),
            Some("\\pset") => SETTINGS.iter().map(|(name, _)| offer(*name)).collect(),
            Some("\\i" | "\\plot") => files(word),
            Some(_) => Vec::new(),
        };
        let offers = all.into_iter().filter(|offer| offer.word.starts_with(word)).collect();
        (begin, offers)
    }

    /// Inside a call of one of our functions.
    fn in_call(&self, spec: &Spec, arguments: &[String], is_quoted: bool, word: &str) -> Vec<Offer> {
        let current = arguments.last().map_or("", String::as_str);
        let named = current.split_once("=>").map(|(name, _)| name.trim().to_lowercase());
        let columns = || self.columns(arguments.first().map_or("", String::as_str)).into_iter().map(offer).collect::<Vec<_>>();
        let tables = || self.tables().into_iter().map(offer).collect::<Vec<_>>();
        let options = spec.all_options();
        match named {
            // The value of an option.
            Some(name) if name == "label" => columns(),
            Some(name) => match options.iter().find(|option| option.name == name) {
                Some(option) => {
                    let words =
                        words_of(option).into_iter().map(|word| offer(if is_quoted { word } else { format!("'{word}'") }));
                    let mut all: Vec<Offer> = words.collect();
                    if all.is_empty() && option.kind.contains("text") {
                        all.extend(columns());
                    }
                    if option.kind == "table" || option.table.is_some() {
                        all.extend(tables());
                    }
                    all
                }
                None => Vec::new(),
            },
            None if arguments.len() == 1 && is_quoted => tables().into_iter().chain(files(word)).collect(),
            None if arguments.len() == 1 => tables(),
            None if is_quoted => columns(),
            // The name of an option that was not given yet.
            None => {
                let is_given = |name: &str| {
                    arguments.iter().any(|argument| argument.split_once("=>").is_some_and(|(given, _)| given.trim() == name))
                };
                let names = ["label"].into_iter().chain(options.iter().map(|option| option.name));
                let names =
                    names.filter(|name| !is_given(name)).map(|name| Offer { word: format!("{name} => "), shown: name.into() });
                names.collect()
            }
        }
    }

    /// Anywhere else: functions that are ours first, then tables, columns of those that were named, functions and keywords of SQL.
    fn anywhere(&self, text: &str, word: &str) -> Vec<Offer> {
        let mut all: Vec<Offer> = Vec::new();
        all.extend(self.functions().map(|name| Offer { word: format!("{name}("), shown: name.to_string() }));
        let tables = self.tables();
        for table in tables.iter().filter(|table| text.contains(table.as_str())) {
            all.extend(self.columns(table).into_iter().map(offer));
        }
        if self.specs.iter().any(|spec| text.contains(&format!("{}(", spec.name))) {
            all.extend(answer::FIELDS.iter().map(|field| offer(field.name().clone())));
        }
        all.extend(tables.into_iter().map(offer));
        if !word.is_empty() {
            let state = self.ctx.state();
            let names = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
            let mut names: Vec<&String> = names.chain(state.window_functions().keys()).collect();
            names.sort();
            all.extend(names.into_iter().map(|name| Offer { word: format!("{name}("), shown: name.clone() }));
            all.extend(keywords(word));
        }
        all
    }

    fn functions(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.specs.iter().flat_map(|spec| [spec.name].into_iter().chain(spec.aliases.iter().copied()))
    }

    fn tables(&self) -> Vec<String> {
        tables(&self.ctx)
    }

    /// The columns of a table that is given as in a call: a name, a file in quotes. A subquery has none that are known yet.
    fn columns(&self, table: &str) -> Vec<String> {
        let table = table.trim().trim_matches('\'').to_string();
        if table.is_empty() || table.starts_with('(') {
            return Vec::new();
        }
        let ctx = self.ctx.clone();
        let looked_up = wait(
            || async move {
                let frame = tokio::time::timeout(LOOK_UP, ctx.table(table)).await;
                let schema = frame.ok().and_then(|frame| frame.ok()).map(|frame| frame.schema().field_names_short());
                Ok(schema.unwrap_or_default())
            },
            || Ok(Vec::new()),
        );
        looked_up.unwrap_or_default()
    }
}

/// Tables by the name that a query needs.
pub(super) fn tables(ctx: &SessionContext) -> Vec<String> {
    let state = ctx.state();
    let (catalog, schema) = (&state.config_options().catalog.default_catalog, &state.config_options().catalog.default_schema);
    let Some(provider) = ctx.catalog(catalog) else { return Vec::new() };
    let mut names = Vec::new();
    for found in provider.schema_names().into_iter().filter(|name| name != "information_schema") {
        let tables = provider.schema(&found).map(|schema| schema.table_names()).unwrap_or_default();
        names.extend(tables.into_iter().map(|table| if found == *schema { table } else { format!("{found}.{table}") }));
    }
    names.sort();
    names
}

/// Names without the table that they belong to.
trait ShortNames {
    fn field_names_short(&self) -> Vec<String>;
}

impl ShortNames for datafusion::common::DFSchema {
    fn field_names_short(&self) -> Vec<String> {
        self.fields().iter().take(COLUMNS_MAX).map(|field| field.name().clone()).collect()
    }
}

/// Words that an option takes, as its manual lists them: `one of 'a', 'b'`.
fn words_of(option: &OptionSpec) -> Vec<String> {
    let quoted = option.allowed.split('\'').skip(1).step_by(2).map(str::to_string);
    quoted.filter(|word| word.chars().all(|c| c.is_alphanumeric() || c == '_')).collect()
}

/// Files and folders that begin like the path.
fn files(path: &str) -> Vec<Offer> {
    let (folder, begin) = path.rsplit_once('/').map_or(("", path), |(folder, begin)| (folder, begin));
    let inside = match (folder, path.starts_with('/')) {
        ("", true) => "/".to_string(),
        ("", false) => ".".to_string(),
        (folder, _) => folder.to_string(),
    };
    let Ok(entries) = std::fs::read_dir(inside) else { return Vec::new() };
    let mut found: Vec<Offer> = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().to_string();
        // What is hidden is meant only by those who type the dot.
        if !name.starts_with(begin) || (name.starts_with('.') && !begin.starts_with('.')) {
            continue;
        }
        let end = if entry.path().is_dir() { "/" } else { "" };
        let slash = if folder.is_empty() && !path.starts_with('/') { "" } else { "/" };
        found.push(Offer { word: format!("{folder}{slash}{name}{end}"), shown: format!("{name}{end}") });
    }
    found.sort_by(|a, b| a.word.cmp(&b.word));
    found
}

/// Keywords in the letters that somebody writes them in. A statement begins with one of them.
fn keywords(word: &str) -> Vec<Offer> {
    let is_lower = word.chars().all(|c| !c.is_uppercase());
    KEYWORDS.iter().map(|word| offer(if is_lower { word.to_lowercase() } else { word.to_string() })).collect()
}

/// What queries here are made of.
const KEYWORDS: [&str; 52] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "HAVING",
    "JOIN",
    "LEFT JOIN",
    "INNER JOIN",
    "CROSS JOIN",
    "ON",
    "USING",
    "AS",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "LIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "DISTINCT",
    "UNION ALL",
    "EXCEPT",
    "INTERSECT",
    "WITH",
    "VALUES",
    "CREATE TABLE",
    "CREATE VIEW",
    "CREATE EXTERNAL TABLE",
    "STORED AS",
    "LOCATION",
    "OPTIONS",
    "DROP TABLE",
    "DROP VIEW",
    "INSERT INTO",
    "COPY",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "DESCRIBE",
    "SHOW TABLES",
    "SHOW FUNCTIONS",
    "SET",
    "EXCLUDE",
    "FILTER",
    "OVER",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;

    fn words(before: &str, line: &str) -> Vec<String> {
        let ctx = SessionContext::new();
        let engine = Engine::default().with_samples();
        engine.register(&ctx).unwrap();
        let completer = Completer { ctx, specs: engine.specs().to_vec() };
        let (begin, offers) = completer.complete(before, line);
        assert!(offers.iter().all(|offer| offer.word.to_lowercase().starts_with(&line[begin..].to_lowercase())), "{line}");
        offers.into_iter().map(|offer| offer.word).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_place_has_its_words() {
        let has = |line: &str, word: &str| {
            let found = words("", line);
            assert!(found.iter().any(|found| found == word), "{line}: {found:?}");
        };
        has("SELECT * FROM sequential_l", "sequential_lasso(");
        has("sel", "select");
        // No function begins a statement.
        assert_eq!(words("", "sele"), ["select"]);
        assert_eq!(words("", "SELECT 1; SELE"), ["SELECT"]);
        has("SEL", "SELECT");
        has("SELECT * FROM sample.dia", "sample.diabetes");
        has("SELECT * FROM omp(sample.dia", "sample.diabetes");
        has("SELECT * FROM omp('sample.dia", "sample.diabetes");
        has("SELECT * FROM omp('sample.diabetes', 'la", "label");
        has("SELECT * FROM omp(sample.diabetes, fo", "folds => ");
        has("SELECT * FROM omp(sample.diabetes, label => la", "label");
        has("SELECT * FROM omp(sample.diabetes, label => label, exclude => [bm", "bmi");
        has("SELECT * FROM omp(sample.diabetes, label => label, exclude => ['bm", "bmi");
        has("SELECT * FROM omp(sample.diabetes, task => '", "regression");
        has("SELECT bm FROM sample.diabetes WHERE bm", "bmi");
        has("\\h om", "omp");
        has("\\pl", "\\plot");
        has("\\pset ma", "maxrows");
        has("\\d sample.w", "sample.wine");
        has("SELECT * FROM 'Cargo.to", "Cargo.toml");
        has("SELECT * FROM omp('sr", "src/");
        has("SELECT co", "coalesce(");
        assert_eq!(words("SELECT *\nFROM omp(sample.wine,\n", "label => label, must_in"), ["must_include => "]);
        // What was given is not offered again.
        assert!(!words("", "SELECT * FROM omp(sample.wine, label => label, ").contains(&"label => ".to_string()));
    }
}
