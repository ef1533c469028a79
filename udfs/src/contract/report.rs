use std::sync::Arc;

use crate::contract::selector::{Reads, Selector, Spec};
use crate::settings::options::Settings;
use crate::settings::repeated::Repeated;
use crate::{Error, Label, Labels, Parting, Problem, Result, Run};

/// A function on tables that answers with columns of its own rather than with a ranking.
pub trait Report: Send + Sync {
    /// The columns of the answer.
    fn columns(&self) -> Vec<(&'static str, Kind)>;

    /// Their values, in the same order.
    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>>;

    /// The selector that it repeats, if it does.
    fn repeats(&self) -> Option<Repeats> {
        None
    }

    /// What it must be given, with the selector that it repeats.
    fn reads(&self, _selector: Option<&dyn Selector>) -> Reads {
        Reads::Rows
    }

    /// In which parts moments are gathered, where moments are what it is given.
    fn parting(&self, folds: Option<usize>, columns: usize, seed: u64) -> Parting {
        Parting::for_folds(folds.unwrap_or(1), columns, seed)
    }

    /// The selectors that it compares, of those that there are, if it does.
    fn compares(&self, _known: &[&Spec]) -> Result<Vec<Repeats>> {
        Ok(Vec::new())
    }

    /// The values of the answer, with the selectors that it compares.
    fn report_on_all(&self, _selectors: &[Compared], problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        self.report(problem, run)
    }

    /// The values of the answer, with the selector that it repeats.
    fn report_on(&self, _selector: Option<&dyn Selector>, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        self.report(problem, run)
    }

    /// How many selections or trainings it makes that do not need each other: different machines may make them. It makes them with [`Run::repeat`]; 1 if it
    /// has no such repetitions.
    fn repetitions(&self, _folds: Option<usize>, _compared: usize) -> usize {
        1
    }

    /// What an option needs to mean anything, if with the other options as they are it means nothing: `related or image`. Such an option is
    /// refused when it is given.
    fn unused(&self, _option: &str) -> Option<&'static str> {
        None
    }
}

/// A selector by its name, and its own options.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeats {
    pub selector: String,
    pub options: Settings,
}

/// One of several selectors that are compared.
pub struct Compared {
    pub name: String,
    pub labels: Labels,
    pub selector: Arc<dyn Selector>,
}

impl Compared {
    pub fn new(spec: &Spec, options: &Settings) -> Result<Self> {
        Ok(Self { name: spec.name.to_string(), labels: spec.labels, selector: spec.selector(options)? })
    }

    /// Refuses a label that the selector cannot predict.
    pub fn check_label(&self, label: &Label) -> Result<()> {
        match (self.labels, label) {
            (Labels::NumberOrTwoClasses, Label::Classes(classes)) if classes.len() > 2 => {
                Err(Error::data(format!("takes numbers or two classes, and the label has {} classes", classes.len())))
            }
            (Labels::Classes, Label::Numbers) => Err(Error::data("takes classes, and the label is a number")),
            _ => Ok(()),
        }
    }
}

impl Repeated {
    /// What was asked for.
    pub fn repeats(&self) -> Repeats {
        Repeats { selector: self.selector.clone(), options: self.selector_options.clone() }
    }
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

    /// How many there are.
    pub fn rows(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Flag(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// The text in a row, if it has one.
    pub fn text(&self, row: usize) -> Option<&str> {
        match self {
            Values::Text(values) => values.get(row)?.as_deref(),
            _ => None,
        }
    }

    /// The number in a row, if it has one.
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Values::Number(values) => *values.get(row)?,
            _ => None,
        }
    }

    /// The whole number in a row, if it has one.
    pub fn whole(&self, row: usize) -> Option<i64> {
        match self {
            Values::Whole(values) => *values.get(row)?,
            _ => None,
        }
    }

    pub fn wholes(values: impl IntoIterator<Item = usize>) -> Self {
        Values::Whole(values.into_iter().map(|value| Some(value as i64)).collect())
    }
}
