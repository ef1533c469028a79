//! The table that every model is.

use std::collections::BTreeMap;

use crate::contract::report::{Kind, Values};
use crate::reading::plan::Feature;
use crate::{Error, Result};

/// The columns of a model's table. `part` says what a row is, so that the rows can stand in any order:
///
/// | part | what it says |
/// |---|---|
/// | `model` | in `level` what kind of model it is |
/// | `class` | a class of the label, `node` is its place; without any the model predicts a number |
/// | `feature` | a column that the model asks for, `node` is its place, `level` is 'number' or 'text' |
/// | `intercept`, `coefficient` | of a linear model, in the units of the table: what is added at first, for each unit of a number, and for a level of a text |
/// | `missing`, `new` | what a linear model adds where a feature is NULL, and where a text is a level that is not listed |
/// | `others` | of a text with levels that are not told apart: what is not listed is one of them. In a network it is their input, as `mean` is |
/// | `label_mean`, `label_spread` | trees and networks predict `label_mean` and so many times `label_spread` |
/// | `base` | what trees begin with |
/// | `split` | a node of tree `step`: up to `value` a number goes to `node` + 1, above it to `link` |
/// | `left` | what goes left there although it is no number: a level of a text, or (where `level` is NULL) NULL and new levels; `left_others`: the others |
/// | `leaf` | what a tree adds there |
/// | `level` | a level of a text that trees know |
/// | `mean`, `flag`, `factor` | an input of a network, `node` is its place: what is subtracted from a number or a level's 0 or 1; the same of a NULL's 0 or 1; and what it is multiplied by |
/// | `weight`, `bias` | of neuron `node` in layer `step`, from neuron or input `link` |
pub(crate) const COLUMNS: [(&str, Kind); 8] = [
    ("part", Kind::Text),
    ("class", Kind::Text),
    ("feature", Kind::Text),
    ("level", Kind::Text),
    ("step", Kind::Whole),
    ("node", Kind::Whole),
    ("link", Kind::Whole),
    ("value", Kind::Number),
];

/// A row of a model's table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Row {
    pub part: String,
    pub class: Option<String>,
    pub feature: Option<String>,
    pub level: Option<String>,
    pub step: Option<i64>,
    pub node: Option<i64>,
    pub link: Option<i64>,
    pub value: Option<f64>,
}

/// Bytes that a row takes, with texts of some length.
const ROW_BYTES: usize = size_of::<Row>() + 64;

/// Bytes that so many rows take, and once more as columns.
pub(crate) fn bytes_for(rows: usize) -> usize {
    2 * rows * ROW_BYTES
}

impl Row {
    pub fn new(part: &str) -> Self {
        Self { part: part.into(), ..Self::default() }
    }

    pub fn class(self, class: Option<&String>) -> Self {
        Self { class: class.cloned(), ..self }
    }

    pub fn feature(self, feature: &str) -> Self {
        Self { feature: Some(feature.into()), ..self }
    }

    pub fn level(self, level: Option<&str>) -> Self {
        Self { level: level.map(str::to_string), ..self }
    }

    pub fn step(self, step: usize) -> Self {
        Self { step: Some(step as i64), ..self }
    }

    pub fn node(self, node: usize) -> Self {
        Self { node: Some(node as i64), ..self }
    }

    pub fn link(self, link: usize) -> Self {
        Self { link: Some(link as i64), ..self }
    }

    pub fn value(self, value: f64) -> Self {
        Self { value: Some(value), ..self }
    }
}

/// The first rows of every model: its kind, its classes and the columns that it asks for.
pub(crate) fn head(kind: &str, classes: &[String], features: &[Feature]) -> Vec<Row> {
    let mut rows = vec![Row::new("model").level(Some(kind))];
    rows.extend(classes.iter().enumerate().map(|(at, class)| Row::new("class").class(Some(class)).node(at)));
    let word = |feature: &Feature| if feature.is_text { "text" } else { "number" };
    let feature =
        |(at, feature): (usize, &Feature)| Row::new("feature").feature(&feature.name).level(Some(word(feature))).node(at);
    rows.extend(features.iter().enumerate().map(feature));
    rows
}

/// Rows as columns, in the order of [`COLUMNS`].
pub(crate) fn to_columns(rows: Vec<Row>) -> Vec<Values> {
    let text = |of: fn(&Row) -> &Option<String>| Values::Text(rows.iter().map(|row| of(row).clone()).collect());
    let whole = |of: fn(&Row) -> Option<i64>| Values::Whole(rows.iter().map(of).collect());
    vec![
        Values::texts(rows.iter().map(|row| row.part.clone())),
        text(|row| &row.class),
        text(|row| &row.feature),
        text(|row| &row.level),
        whole(|row| row.step),
        whole(|row| row.node),
        whole(|row| row.link),
        Values::Number(rows.iter().map(|row| row.value).collect()),
    ]
}

/// The rows of a model by their parts, as they were read.
#[derive(Debug)]
pub(crate) struct Parts {
    pub kind: String,
    pub classes: Vec<String>,
    pub features: Vec<Feature>,
    rows: BTreeMap<String, Vec<Row>>,
}

impl Parts {
    pub fn read(table: &[Values]) -> Result<Self> {
        let [part, class, feature, level, step, node, link, value] = table else { return Err(broken("it has other columns")) };
        let text = |values: &Values, row: usize| values.text(row).map(str::to_string);
        let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in 0..part.rows() {
            let Some(part) = text(part, row) else { return Err(broken("a row has no `part`")) };
            let known = Row {
                part,
                class: text(class, row),
                feature: text(feature, row),
                level: text(level, row),
                step: step.whole(row),
                node: node.whole(row),
                link: link.whole(row),
                value: value.number(row),
            };
            if known.value.is_some_and(|value| !value.is_finite()) {
                return Err(broken(&format!("a value of `{}` is no number", known.part)));
            }
            rows.entry(known.part.clone()).or_default().push(known);
        }
        let mut parts = Self { kind: String::new(), classes: Vec::new(), features: Vec::new(), rows };
        let kinds: Vec<&str> = parts.of("model").iter().filter_map(|row| row.level.as_deref()).collect();
        let [kind] = kinds[..] else { return Err(broken(&format!("it has {} rows of `model` instead of one", kinds.len()))) };
        parts.kind = kind.to_string();
        let class = |row: &Row| row.class.clone();
        parts.classes = parts.in_order("class", class)?;
        if parts.classes.len() == 1 {
            return Err(broken("it has one class"));
        }
        let feature = |row: &Row| {
            let is_text = match row.level.as_deref()? {
                "text" => true,
                "number" => false,
                _ => return None,
            };
            Some(Feature { name: row.feature.clone()?, is_text })
        };
        parts.features = parts.in_order("feature", feature)?;
        let mut names: Vec<&str> = parts.features.iter().map(|feature| feature.name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(broken("a feature is there twice"));
        }
        Ok(parts)
    }

    pub fn of(&self, part: &str) -> &[Row] {
        self.rows.get(part).map_or(&[], Vec::as_slice)
    }

    /// Whether a text has levels that are not told apart.
    pub fn has_others(&self, feature: usize) -> bool {
        self.of("others").iter().any(|row| row.feature.as_ref() == Some(&self.features[feature].name))
    }

    /// What the rows of a part say, by their nodes, which count from 0.
    pub fn in_order<T>(&self, part: &str, of: impl Fn(&Row) -> Option<T>) -> Result<Vec<T>> {
        let mut rows: Vec<&Row> = self.of(part).iter().collect();
        rows.sort_by_key(|row| row.node);
        let one = |(at, row): (usize, &Row)| {
            if row.node != Some(at as i64) {
                return Err(broken(&format!("its rows of `{part}` do not count from 0 on")));
            }
            of(row).ok_or_else(|| broken(&format!("row {at} of `{part}` lacks something")))
        };
        rows.into_iter().enumerate().map(one).collect()
    }

    /// How many scores a row of the data has: one, or one for each of three and more classes.
    pub fn outputs(&self) -> usize {
        if self.classes.len() > 2 { self.classes.len() } else { 1 }
    }

    /// Which of the scores a row is about. Of two classes it is the log odds of the second.
    pub fn output(&self, row: &Row) -> Result<usize> {
        let none = || broken(&format!("a row of `{}` is about a class that it does not have", row.part));
        match (self.classes.len(), &row.class) {
            (0, None) => Ok(0),
            (2, Some(class)) if *class == self.classes[1] => Ok(0),
            (3.., Some(class)) => self.classes.iter().position(|other| other == class).ok_or_else(none),
            _ => Err(none()),
        }
    }

    /// Which of the features a row is about.
    pub fn feature(&self, row: &Row) -> Result<usize> {
        let found = row.feature.as_ref().and_then(|name| self.features.iter().position(|feature| feature.name == *name));
        found.ok_or_else(|| broken(&format!("a row of `{}` is about a feature that it does not have", row.part)))
    }

    /// One value for each score; every one must be there.
    pub fn of_outputs(&self, part: &str) -> Result<Vec<f64>> {
        let mut values = vec![None; self.outputs()];
        for row in self.of(part) {
            set(&mut values[self.output(row)?], row)?;
        }
        whole(part, values)
    }

    /// The value of a part that has one row, if it is there.
    pub fn single(&self, part: &str) -> Result<Option<f64>> {
        match self.of(part) {
            [] => Ok(None),
            [row] => Ok(Some(value(row)?)),
            rows => Err(broken(&format!("it has {} rows of `{part}` instead of one", rows.len()))),
        }
    }

    /// Mean and spread of a label of numbers.
    pub fn target(&self) -> Result<(f64, f64)> {
        Ok((self.single("label_mean")?.unwrap_or(0.0), self.single("label_spread")?.unwrap_or(1.0)))
    }
}

/// The rows that say how a label of numbers is measured.
pub(crate) fn target_rows((mean, spread): (f64, f64)) -> [Row; 2] {
    [Row::new("label_mean").value(mean), Row::new("label_spread").value(spread)]
}

/// The class of a score, as its rows have it.
pub(crate) fn class_of(classes: &[String], output: usize) -> Option<&String> {
    if classes.len() == 2 { classes.get(1) } else { classes.get(output) }
}

/// What the classes of a label are, by their names: whole numbers, booleans, or texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassKind {
    Whole,
    Flag,
    Text,
}

impl ClassKind {
    pub fn of(classes: &[String]) -> Self {
        let is_whole = |class: &String| class.parse::<i64>().is_ok_and(|whole| whole.to_string() == *class);
        if classes.iter().all(is_whole) {
            ClassKind::Whole
        } else if classes.iter().all(|class| class == "true" || class == "false") {
            ClassKind::Flag
        } else {
            ClassKind::Text
        }
    }
}

/// The value of a row that must have one.
pub(crate) fn value(row: &Row) -> Result<f64> {
    row.value.ok_or_else(|| broken(&format!("a row of `{}` has no value", row.part)))
}

/// Puts the value of a row where none is yet.
pub(crate) fn set(place: &mut Option<f64>, row: &Row) -> Result<()> {
    match place.replace(value(row)?) {
        None => Ok(()),
        Some(_) => Err(broken(&format!("a row of `{}` is there twice", row.part))),
    }
}

/// Values of which none may be missing.
pub(crate) fn whole(part: &str, values: Vec<Option<f64>>) -> Result<Vec<f64>> {
    values.into_iter().collect::<Option<_>>().ok_or_else(|| broken(&format!("rows of `{part}` are missing")))
}

/// A whole number of a row as a place.
pub(crate) fn place(row: &Row, of: Option<i64>) -> Result<usize> {
    let place = of.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < u32::MAX as usize);
    place.ok_or_else(|| broken(&format!("a row of `{}` lacks its `step`, `node` or `link`", row.part)))
}

pub(crate) fn broken(why: &str) -> Error {
    Error::data(format!("the table given as `model` is not a whole answer of fit: {why}"))
}
