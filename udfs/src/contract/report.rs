use crate::{Problem, Result, Run};

/// A function on tables that answers with columns of its own rather than with a ranking.
pub trait Report: Send + Sync {
    /// The columns of the answer.
    fn columns(&self) -> Vec<(&'static str, Kind)>;

    /// Their values, in the same order.
    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>>;
}

/// What a column of an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Whole,
    Flag,
    /// A list of texts.
    Texts,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    Text(Vec<Option<String>>),
    Number(Vec<Option<f64>>),
    Whole(Vec<Option<i64>>),
    Flag(Vec<Option<bool>>),
    Texts(Vec<Vec<String>>),
}

impl Values {
    pub fn texts<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Values::Text(values.into_iter().map(|value| Some(value.into())).collect())
    }

    pub fn numbers(values: impl IntoIterator<Item = f64>) -> Self {
        Values::Number(values.into_iter().map(Some).collect())
    }

    pub fn wholes(values: impl IntoIterator<Item = usize>) -> Self {
        Values::Whole(values.into_iter().map(|value| Some(value as i64)).collect())
    }
}
