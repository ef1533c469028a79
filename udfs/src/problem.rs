use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::common::{Common, Nulls, Task};
use crate::moments::Gram;
use crate::options::Count;
use crate::rows::Rows;
use crate::{Error, Labels, Result};

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

    pub(crate) fn too_many_levels(&self, feature: usize) -> Error {
        Error::data(format!(
            "feature `{}` has more than {} distinct text values; exclude it, or raise max_levels",
            self.features[feature].name, self.max_levels
        ))
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

/// Values of one column for a run of rows.
#[derive(Clone, Copy)]
pub enum Block<'a> {
    Numbers(&'a dyn Numbers),
    /// `codes[row]` points into `names`; [`NO_LEVEL`] is NULL.
    Levels {
        codes: &'a [u32],
        names: &'a [&'a str],
    },
}

/// The code of a NULL among levels.
pub const NO_LEVEL: u32 = u32::MAX;

/// Whether a number is a value. NaN and infinity are not, and neither are numbers so large that their squares would be.
pub(crate) fn is_value(x: f64) -> bool {
    x.abs() <= 1e100
}

/// A column of numbers that can be copied out piece by piece. NULL, NaN and ±infinity are all "no value".
pub trait Numbers: Sync {
    /// Writes the values of rows `start..start + out.len()`; NaN where there is none.
    fn fill(&self, start: usize, out: &mut [f64]);

    /// All of them without copying, if that is how they are kept.
    fn as_slice(&self) -> Option<&[f64]> {
        None
    }
}

impl Numbers for Vec<f64> {
    fn as_slice(&self) -> Option<&[f64]> {
        Some(self)
    }

    fn fill(&self, start: usize, out: &mut [f64]) {
        out.copy_from_slice(&self[start..start + out.len()]);
    }
}

/// One column of the design: what the arithmetic sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DesignColumn {
    pub feature: usize,
    /// A number itself (not a level, not a NULL flag): its coefficient means something to the reader.
    pub is_number: bool,
}

/// What gets ranked: a numeric column, a text column with all its levels, or a group of columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    pub name: String,
    /// The columns of the table that it stands for.
    pub features: Vec<usize>,
    /// Its columns of the design.
    pub columns: Vec<usize>,
    /// Whether its one coefficient is worth reporting.
    pub is_number: bool,
}

/// Numbers, or the names of the classes in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    Numbers,
    Classes(Vec<String>),
}

impl Label {
    /// Columns that the label has in the arithmetic: two classes need only one.
    pub(crate) fn columns(&self) -> Range<usize> {
        match self {
            Label::Numbers => 0..1,
            Label::Classes(classes) if classes.len() == 2 => 1..2,
            Label::Classes(classes) => 0..classes.len(),
        }
    }
}

/// What was seen while reading.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Rows that count.
    pub rows: u64,
    /// Rows left out because the label was missing.
    pub rows_without_label: u64,
    /// Rows left out because the weight was missing or 0.
    pub rows_without_weight: u64,
    /// Rows left out by `nulls => 'drop'`.
    pub rows_with_null: u64,
    /// For each feature, the values that were missing.
    pub missing: Vec<u64>,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Seen) {
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        add(&mut self.rows, other.rows);
        add(&mut self.rows_without_label, other.rows_without_label);
        add(&mut self.rows_without_weight, other.rows_without_weight);
        add(&mut self.rows_with_null, other.rows_with_null);
        self.missing.iter_mut().zip(&other.missing).for_each(|(mine, theirs)| add(mine, *theirs));
    }

    /// Rows that were read and do not count.
    pub fn rows_dropped(&self) -> u64 {
        [self.rows_without_label, self.rows_without_weight, self.rows_with_null]
            .iter()
            .fold(0, |sum, rows| sum.saturating_add(*rows))
    }

    /// Values that were missing.
    pub fn values_missing(&self) -> u64 {
        self.missing.iter().fold(0, |sum, values| sum.saturating_add(*values))
    }
}

/// A table that has been read, in one of two forms.
#[derive(Debug)]
pub enum Data {
    Gram(Gram),
    Rows(Rows),
}

/// A checked question: these units, this label, so many choices. A selector need not doubt any of it.
#[derive(Debug)]
pub struct Problem {
    /// The names of the columns that units are made of.
    pub features: Vec<String>,
    /// The candidates, in the order of the input's columns.
    pub units: Vec<Unit>,
    pub label: Label,
    /// How many to choose; `None`: as many as an information criterion asks for.
    pub k: Option<usize>,
    /// Units to choose first, in this order.
    pub must_include: Vec<usize>,
    pub standardize: bool,
    pub seen: Seen,
    pub data: Data,
    /// The rows of a second table, measured as the first one's are.
    pub held_out: Option<Rows>,
    column_keys: Vec<u64>,
}

impl Problem {
    /// Puts the question to data that has been read, and checks what only the data can tell.
    pub fn new(data: Data, plan: &Plan, common: &Common, labels: Labels) -> Result<Self> {
        let (design, label, seen, label_varies) = match &data {
            Data::Gram(gram) => (&gram.design, &gram.label, &gram.seen, gram.label_varies()),
            Data::Rows(rows) => (&rows.design, &rows.label, &rows.seen, rows.label_varies()),
        };
        let name = &plan.label;
        if seen.rows == 0 {
            let dropped = [
                (seen.rows_without_label, format!("`{name}` is NULL")),
                (seen.rows_without_weight, "the weight is 0 or NULL".to_string()),
                (seen.rows_with_null, "a feature is NULL and nulls is 'drop'".to_string()),
            ];
            return Err(Error::data(match dropped.iter().max_by_key(|(rows, _)| *rows) {
                Some((rows, why)) if *rows > 0 => {
                    format!("no rows left: in {rows} {}, {why}", if *rows == 1 { "row" } else { "rows" })
                }
                _ => "the table has no rows".to_string(),
            }));
        }
        if seen.rows == 1 {
            return Err(Error::data("needs at least 2 rows with a label, got 1"));
        }
        if !label_varies {
            return Err(Error::data(format!(
                "label `{name}` has the same value in all {} rows; pick one that varies",
                seen.rows
            )));
        }
        if let (Labels::NumberOrTwoClasses, Label::Classes(classes)) = (labels, label)
            && classes.len() > 2
        {
            let number = if plan.keeps_number() { "set task => 'regression', or " } else { "" };
            return Err(Error::data(format!(
                "label `{name}` has {} classes, and this takes numbers or two classes; {number}use sequential_lasso",
                classes.len()
            )));
        }
        if let (Labels::Classes, Label::Numbers) = (labels, label) {
            return Err(Error::data(format!(
                "label `{name}` is a number, and this predicts classes; set task => 'classification' if its values are few, or use \
                 sequential_attention or random_forest"
            )));
        }
        let units = units(design, plan, &common.groups);
        let features: Vec<String> = plan.features.iter().map(|feature| feature.name.clone()).collect();
        common.check_units(&features)?;
        let at = |name: &String| units.iter().position(|unit| unit.name == *name);
        let must_include: Vec<usize> = common.must_include.iter().filter_map(at).collect();
        let k = match common.k {
            Count::Auto => None,
            Count::Exactly(k) => Some(k.min(units.len())),
            Count::Default => Some(units.len().min(10.max(must_include.len()))),
        };
        let (label, seen, column_keys) = (label.clone(), seen.clone(), column_keys(design, plan));
        let (standardize, held_out) = (common.standardize, None);
        let problem = Self { features, units, label, k, must_include, standardize, seen, data, held_out, column_keys };
        problem.can_be_answered()?;
        Ok(problem)
    }

    pub fn with_held_out(mut self, rows: Option<Rows>) -> Self {
        self.held_out = rows;
        self
    }

    fn can_be_answered(&self) -> Result<()> {
        if (0..self.units.len()).all(|unit| self.why_never(unit).is_some()) {
            return Err(Error::data("no feature to choose from: every one is constant or NULL throughout"));
        }
        for unit in &self.must_include {
            if let Some(why) = self.why_never(*unit) {
                return Err(Error::data(format!(
                    "`must_include` names `{}`, which cannot be chosen: {why}",
                    self.units[*unit].name
                )));
            }
        }
        Ok(())
    }

    /// A number for a column of the design that depends on its name and not on its place. Random numbers for a column are drawn
    /// with it, so that the order of a table's columns does not matter.
    pub fn column_key(&self, column: usize) -> u64 {
        self.column_keys[column]
    }

    /// Why a unit can never be chosen, if so: nothing varies in it.
    pub fn why_never(&self, unit: usize) -> Option<&'static str> {
        let varies = |column: usize| match &self.data {
            Data::Gram(gram) => gram.matrix[column * gram.design.len() + column] > 0.0,
            Data::Rows(rows) => rows.columns[column].iter().any(|value| *value != 0.0),
        };
        if self.units[unit].columns.iter().any(|column| varies(*column)) {
            return None;
        }
        let is_missing = |feature: &usize| self.seen.missing[*feature] == self.seen.rows;
        let all_missing = self.units[unit].features.iter().all(is_missing);
        Some(if all_missing { "all values are NULL" } else { "constant" })
    }
}

fn column_keys(design: &[DesignColumn], plan: &Plan) -> Vec<u64> {
    let mut keys: Vec<u64> = Vec::with_capacity(design.len());
    for (at, column) in design.iter().enumerate() {
        let follows = at > 0 && design[at - 1].feature == column.feature;
        keys.push(if follows { keys[at - 1].wrapping_add(1) } else { crate::run::hash(&plan.features[column.feature].name) });
    }
    keys
}

/// The features joined into units, a group standing where its first member stood.
fn units(design: &[DesignColumn], plan: &Plan, groups: &BTreeMap<String, Vec<String>>) -> Vec<Unit> {
    let group_of: BTreeMap<&str, &str> =
        groups.iter().flat_map(|(group, members)| members.iter().map(move |m| (m.as_str(), group.as_str()))).collect();
    let mut columns_of = vec![Vec::new(); plan.features.len()];
    for (column, design) in design.iter().enumerate() {
        columns_of[design.feature].push(column);
    }
    let mut units: Vec<Unit> = Vec::new();
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, (feature, columns)) in plan.features.iter().zip(columns_of).enumerate() {
        let group = group_of.get(feature.name.as_str());
        if let Some(&unit) = group.and_then(|group| at.get(group)) {
            units[unit].features.push(position);
            units[unit].columns.extend(columns);
            units[unit].is_number = false;
            continue;
        }
        if let Some(group) = group {
            at.insert(group, units.len());
        }
        let is_number = columns.len() == 1 && design[columns[0]].is_number;
        let name = group.map_or(&*feature.name, |group| group).to_string();
        units.push(Unit { name, features: vec![position], columns, is_number });
    }
    units
}
