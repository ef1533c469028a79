//! How a table is to be read: fixed before the first row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::reading::table::{Label, Seen};
use crate::settings::common::{Levels, Nulls, Task};

/// How a table is to be read: which columns, and what to make of them. Fixed before the first row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub label: String,
    pub label_kind: LabelKind,
    pub features: Vec<Feature>,
    pub weighted: bool,
    pub task: Task,
    pub nulls: Nulls,
    pub max_levels: usize,
    pub levels: Levels,
    pub max_classes: usize,
    /// Most bytes of state; 0: no limit.
    pub bytes_max: usize,
    /// Columns of the table that are no candidates, and why, for those who ask to see all.
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub feature: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    pub name: String,
    /// Text has levels; everything else is a number.
    pub is_text: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelKind {
    Float,
    Integer,
    /// Text and booleans.
    Class,
}

impl Plan {
    /// Whether classes are to be counted while reading.
    pub(crate) fn counts_classes(&self) -> bool {
        match self.task {
            Task::Regression => false,
            Task::Classification => true,
            Task::Auto => self.label_kind != LabelKind::Float,
        }
    }

    /// Whether the label is kept as a number while reading.
    pub(crate) fn keeps_number(&self) -> bool {
        self.label_kind != LabelKind::Class && self.task != Task::Classification
    }

    /// How many features are texts.
    pub fn texts(&self) -> usize {
        self.features.iter().filter(|feature| feature.is_text).count()
    }

    /// The most classes worth counting: beyond it an integer is a number, and anything else is an error.
    pub(crate) fn classes_max(&self) -> usize {
        if self.keeps_number() { CLASSES_OF_INTEGERS_MAX } else { self.max_classes }
    }

    /// Numbers or classes, once all rows have been seen.
    pub(crate) fn decide(&self, classes: Option<&BTreeMap<Class, usize>>, rows: u64) -> Label {
        match classes {
            Some(classes) if !self.keeps_number() || rows >= ROWS_PER_CLASS_MIN * classes.len() as u64 => {
                Label::Classes(classes.keys().map(Class::to_string).collect())
            }
            _ => Label::Numbers,
        }
    }

    /// All texts that have more values than they may, in one message.
    pub(crate) fn too_many_levels(&self, features: &[usize]) -> Error {
        let names: Vec<String> = features.iter().map(|feature| format!("`{}`", self.features[*feature].name)).collect();
        let (subject, them) = match &names[..] {
            [name] => (format!("feature {name} has"), "it"),
            names => (format!("features {} have", names.join(", ")), "them"),
        };
        let (max, instead) = (self.max_levels, "raise max_levels, or set levels => 'top'");
        Error::data(format!("{subject} more than {max} distinct text values; exclude {them}, {instead}"))
    }

    /// Values that were filled: of numbers, because NULL is a value of a text.
    pub fn values_filled(&self, seen: &Seen) -> u64 {
        if self.nulls == Nulls::Drop {
            return 0;
        }
        let numbers = self.features.iter().zip(&seen.missing).filter(|(feature, _)| !feature.is_text);
        numbers.fold(0, |sum, (_, missing)| sum.saturating_add(*missing))
    }

    pub(crate) fn too_many_classes(&self) -> Error {
        let instead = if self.label_kind == LabelKind::Class { "pick" } else { "set task => 'regression', or pick" };
        Error::data(format!(
            "label `{}` has more than {} distinct values; raise max_classes, or {instead} a label with fewer",
            self.label, self.max_classes
        ))
    }

    pub(crate) fn null_refused(&self, feature: usize) -> Error {
        Error::data(format!(
            "feature `{}` has a NULL; set nulls to 'mean', 'indicator' or 'drop', or exclude it",
            self.features[feature].name
        ))
    }

    pub(crate) fn negative_weight(weight: f64) -> Error {
        let weight = if weight.abs() < 1e9 { weight.to_string() } else { format!("{weight:e}") };
        Error::data(format!("weights must be at least 0, got {weight}"))
    }
}

const CLASSES_OF_INTEGERS_MAX: usize = 32;
const ROWS_PER_CLASS_MIN: u64 = 5;

/// A value of a label that is a class. Whole numbers sort as numbers, everything else as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    Whole(i64),
    Text(String),
}

impl Class {
    pub(crate) fn of_number(value: f64) -> Self {
        if value.fract() == 0.0 && value.abs() < 9e15 { Class::Whole(value as i64) } else { Class::Text(value.to_string()) }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Class::Whole(value) => value.fmt(f),
            Class::Text(text) => f.write_str(text),
        }
    }
}
