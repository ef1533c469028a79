use std::fmt;

/// Why a run did not give a ranking. The message never names the selector: the engine adds it, once.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    kind: Kind,
    message: String,
}

/// Who must act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub fn call(message: impl Into<String>) -> Self {
        Self { kind: Kind::Call, message: message.into() }
    }

    pub fn data(message: impl Into<String>) -> Self {
        Self { kind: Kind::Data, message: message.into() }
    }

    pub fn limit(message: impl Into<String>) -> Self {
        Self { kind: Kind::Limit, message: message.into() }
    }

    pub fn cancelled() -> Self {
        Self { kind: Kind::Cancelled, message: "cancelled".into() }
    }

    pub fn kind(&self) -> Kind {
        self.kind
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
    const SHOWN: usize = 12;
    let mut text = names.iter().take(SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", … (+{})", names.len() - SHOWN));
    }
    text
}

/// What stands between a name that is unknown and the list of those that are: ``; did you mean `label`?`` when one of `names` is
/// close to `word`, otherwise a semicolon.
pub fn did_you_mean<S: AsRef<str>>(word: &str, names: &[S]) -> String {
    let near = names
        .iter()
        .map(|name| (distance(&word.to_lowercase(), &name.as_ref().to_lowercase()), name.as_ref()))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.chars().count().min(word.chars().count()) / 4);
    match near {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None => ";".to_string(),
    }
}

/// Edit distance in which swapping two neighbours is one edit, as it is for fingers.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let above = rows[i - 1][j];
            let diagonal = rows[i - 1][j - 1];
            let mut best = (above + 1).min(row[j - 1] + 1).min(diagonal + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..15).map(|i| format!("c{i}")).collect();
        assert!(name_list(&names).ends_with("c11, … (+3)"));
        assert_eq!(name_list(&["a", "b"]), "a, b");
    }
}
