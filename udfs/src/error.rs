use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a run did not give a ranking. The message never names the selector: the engine adds it, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Error {
    kind: Kind,
    message: String,
}

/// Who must act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The person who wrote the call: an option is unknown, out of range, or contradicts another.
    Call,
    /// The owner of the table: the data cannot answer the question.
    Data,
    /// Whoever set the limits: memory ran out.
    Limit,
    /// Nobody: the run was cancelled.
    Cancelled,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What is wrong with the call.
    pub fn call(message: impl Into<String>) -> Self {
        Self::new(Kind::Call, message.into())
    }

    /// What is wrong with the data.
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(Kind::Data, message.into())
    }

    /// Which limit was reached.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Kind::Limit, message.into())
    }

    /// The run was stopped from outside.
    pub fn cancelled() -> Self {
        Self::new(Kind::Cancelled, "cancelled".into())
    }

    /// Who must act on it.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// A message is one line of a length that a person reads, whatever names and values it quotes.
    fn new(kind: Kind, message: String) -> Self {
        const HEAD: usize = 1400;
        const TAIL: usize = 600;
        let mut message = escaped(message);
        if let (Some((head, _)), Some((tail, _))) = (message.char_indices().nth(HEAD), message.char_indices().rev().nth(TAIL - 1))
            && head < tail
        {
            message.replace_range(head..tail, " … ");
        }
        Self { kind, message }
    }
}

/// Line breaks and other control characters as they are written in source text.
fn escaped(text: String) -> String {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
    if text.chars().all(is_plain) {
        return text;
    }
    text.chars().flat_map(|c| if is_plain(c) { vec![c] } else { c.escape_default().collect() }).collect()
}

/// A name or a value as a message shows it: enough of it to recognise it, on one line.
pub fn shown(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => escaped(format!("{}…", &text[..end])),
        None => escaped(text.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// ``a, b, c, … (+12)``: enough names to recognise a list, never a screenful.
pub fn name_list<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = names.iter().take(SHOWN).map(|name| shown(name.as_ref())).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", … (+{})", names.len() - SHOWN));
    }
    text
}

/// The same, with those first that are likely to be meant by `word`, where not all are shown.
pub fn name_list_near<S: AsRef<str>>(word: &str, names: &[S]) -> String {
    let mut near: Vec<&str> = names.iter().map(AsRef::as_ref).take(NAMES_MAX).collect();
    if near.len() > SHOWN {
        let word: String = word.chars().take(LETTERS_MAX).collect::<String>().to_lowercase();
        let parts: Vec<&str> = word.split(|c: char| !c.is_alphanumeric()).filter(|part| part.len() > 2).collect();
        near.sort_by_cached_key(|name| {
            let name = name.chars().take(LETTERS_MAX).collect::<String>().to_lowercase();
            // A word in common counts for more than letters.
            let shares = parts.iter().any(|part| name.contains(part)) || (name.len() > 2 && word.contains(&name));
            (!shares, (100.0 * (1.0 - strsim::jaro_winkler(&word, &name))) as u32)
        });
    }
    let mut text = near.iter().take(SHOWN).map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", … (+{})", names.len() - SHOWN));
    }
    text
}

/// What other programs call an option of ours.
pub fn also_called(name: &str) -> Option<&'static str> {
    Some(match name {
        "n_features"
        | "num_features"
        | "n_features_to_select"
        | "max_features"
        | "n_selected"
        | "top_k"
        | "top"
        | "n"
        | "num" => "k",
        "target" | "y" | "outcome" | "response" | "dependent" | "label_column" | "target_column" => "label",
        "x" | "columns" | "cols" | "feature_names" | "include" => "features",
        "random_state" | "random_seed" => "seed",
        "cv" | "n_splits" | "n_folds" => "folds",
        "sample_weight" | "sample_weights" | "weight" => "weights",
        "drop" | "ignore" | "skip" | "omit" => "exclude",
        "force" | "keep" | "always" => "must_include",
        "group_by" | "by" | "partition" => "partition_by",
        "timeout" | "max_time" => "time_limit",
        "alpha" | "penalty" => "lambda",
        "n_estimators" | "num_trees" | "n_trees" => "trees",
        "lr" | "eta" => "learning_rate",
        "memory" | "memory_limit" => "max_memory",
        _ => return None,
    })
}

/// Names that a list shows.
const SHOWN: usize = 12;
/// Nobody misspells a longer name, and comparing takes the product of both lengths.
const LETTERS_MAX: usize = 64;
/// Enough for a table; more would take longer than reading the list.
const NAMES_MAX: usize = 10_000;

/// What stands between a name that is unknown and the list of those that are: ``; did you mean `label`?`` when one of `names` is
/// close to `word`, otherwise a semicolon.
pub fn did_you_mean<S: AsRef<str>>(word: &str, names: &[S]) -> String {
    let letters = |text: &str| text.chars().take(LETTERS_MAX + 1).count();
    let (own, folded) = (letters(word), word.chars().take(LETTERS_MAX).collect::<String>().to_lowercase());
    let compare = |name: &S| {
        let name = name.as_ref();
        let allowed = 1 + own.min(letters(name)) / 4;
        let comparable = own.max(letters(name)) <= LETTERS_MAX && own.abs_diff(letters(name)) <= allowed;
        // An exchange of two neighbours is one mistake, as it is for fingers.
        let distance = comparable.then(|| strsim::osa_distance(&folded, &name.to_lowercase()))?;
        (distance <= allowed).then(|| (distance, name.to_string()))
    };
    match names.iter().take(NAMES_MAX).filter_map(compare).min() {
        Some((_, name)) => format!("; did you mean `{}`?", shown(&name)),
        None => ";".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_what_is_close() {
        assert_eq!(did_you_mean("lable", &["age", "label"]), "; did you mean `label`?");
        assert_eq!(did_you_mean("kk", &["k", "seed"]), "; did you mean `k`?");
        assert_eq!(did_you_mean("colour", &["age", "label"]), ";");
    }

    #[test]
    fn messages_are_one_line_of_a_length_to_read() {
        let error = Error::call(format!("no column `{}`; columns are a, b", shown("two\nlines\u{2028}\u{7}")));
        assert_eq!(error.to_string(), r"no column `two\nlines\u{2028}\u{7}`; columns are a, b");
        assert_eq!(Error::data("a\r\nb").to_string(), r"a\r\nb");
        let long = Error::call(format!("unknown option `{}`; options are k, seed", "é".repeat(1_000_000))).to_string();
        assert!(
            long.chars().count() < 2_100 && long.starts_with("unknown option `éé") && long.ends_with("é`; options are k, seed")
        );
        assert_eq!(shown(&"x".repeat(1_000)).chars().count(), 61);
    }

    #[test]
    fn a_name_of_any_length_is_compared() {
        let names: Vec<String> = (0..1_000).map(|i| format!("{i}{}", "y".repeat(10_000))).collect();
        assert_eq!(did_you_mean(&"x".repeat(1_000_000), &names), ";");
        assert_eq!(did_you_mean(&"y".repeat(10_000), &names), ";");
    }

    #[test]
    fn likely_names_come_first() {
        let names: Vec<String> = (0..40).map(|i| format!("column_{i}")).chain(["house_price".to_string()]).collect();
        assert!(name_list_near("price_of_house", &names).starts_with("house_price, "));
        assert_eq!(name_list_near("b", &["a", "b"]), "a, b");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..15).map(|i| format!("c{i}")).collect();
        assert!(name_list(&names).ends_with("c11, … (+3)"));
        assert_eq!(name_list(&["a", "b"]), "a, b");
    }
}
