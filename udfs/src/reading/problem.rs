//! A checked question to a table that has been read.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::reading::bins::Bins;
use crate::reading::moments::{Gram, Moments};
use crate::reading::order::mix;
use crate::reading::plan::Plan;
use crate::reading::rows::Rows;
use crate::reading::table::{Data, DesignColumn, Label, Seen, Table};
use crate::run::hash;
use crate::settings::common::{Common, Levels};
use crate::settings::options::Count;
use crate::{Error, Result, Run};

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

/// The labels that a selector can predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// Numbers and classes.
    Any,
    /// Numbers, and two classes as 0 and 1.
    NumberOrTwoClasses,
    /// Classes alone.
    Classes,
}

/// A checked question: these units, this label, so many choices. A selector need not doubt any of it.
///
/// The table behind it is shared: a question about fewer units ([`Problem::among`]) costs nothing, one about fewer rows
/// ([`Problem::on`]) a copy of those rows.
#[derive(Debug, Clone)]
pub struct Problem {
    pub table: Arc<Table>,
    /// The candidates, in the order of the input's columns.
    pub units: Vec<Unit>,
    pub label: Label,
    /// How many to choose; `None`: as many as the selector's criterion asks for.
    pub k: Option<usize>,
    /// Units to choose first, in this order.
    pub must_include: Vec<usize>,
    pub standardize: bool,
    /// The rows of a second table, measured as the first one's are.
    pub held_out: Option<Arc<Rows>>,
    /// How many folds judge the beginnings of a ranking, if any do.
    pub folds: Option<usize>,
    /// Whether fewer than the best number will do, if they are within a standard error of it.
    pub one_se: bool,
    /// The table in parts, if its moments were gathered so.
    pub parts: Option<Arc<Parts>>,
    /// What each unit costs, if that matters.
    pub costs: Option<Vec<f64>>,
    /// Most that the chosen units may cost together.
    pub budget: Option<f64>,
    /// What whoever asks should be told about the question.
    pub caution: Option<String>,
}

/// The moments of a table, and of parts that add up to it.
#[derive(Debug)]
pub struct Parts {
    pub whole: Moments,
    pub parts: Vec<Moments>,
}

impl Problem {
    /// Puts the question to data that has been read, and checks what only the data can tell.
    pub fn new(data: Data, plan: &Plan, common: &Common, labels: Labels) -> Result<Self> {
        Self::of(Arc::new(Table::new(data, plan)), plan, common, labels)
    }

    /// The same for a table that others have questions to as well.
    pub fn of(table: Arc<Table>, plan: &Plan, common: &Common, labels: Labels) -> Result<Self> {
        let data = &table.data;
        let (label, seen) = (data.label(), data.seen());
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
        if !data.label_varies() {
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
        let is_many = |feature: &usize| seen.texts.get(feature).is_some_and(|text| text.values > plan.max_levels as u64);
        let many: Vec<usize> = (0..plan.features.len()).filter(is_many).collect();
        if plan.levels == Levels::Error && !many.is_empty() {
            return Err(plan.too_many_levels(&many));
        }
        let units = units(data.design(), plan, &common.groups);
        let label = label.clone();
        common.check_units(&table.features)?;
        let at = |name: &String| units.iter().position(|unit| unit.name == *name);
        let must_include: Vec<usize> = common.must_include.iter().filter_map(at).collect();
        let k = match common.k {
            Count::Auto | Count::OneSe => None,
            Count::Exactly(k) => Some(k.min(units.len())),
            // With a budget the money decides.
            Count::Default if common.spending.budget.is_some() => Some(units.len()),
            Count::Default => Some(units.len().min(10.max(must_include.len()))),
        };
        let spending = &common.spending;
        let costs = spending.is_asked().then(|| units.iter().map(|unit| spending.cost(&unit.name)).collect());
        let (standardize, held_out) = (common.standardize, None);
        let (folds, one_se) = (common.folds, common.k == Count::OneSe);
        let (parts, budget, caution) = (None, spending.budget, None);
        let problem =
            Self { table, units, label, k, must_include, standardize, held_out, folds, one_se, parts, costs, budget, caution };
        problem.can_be_answered()?;
        Ok(problem)
    }

    pub fn with_held_out(mut self, rows: Option<Rows>) -> Self {
        self.held_out = rows.map(Arc::new);
        self
    }

    /// The parts that the table's moments were gathered in.
    pub fn with_parts(mut self, parts: Option<Parts>) -> Self {
        self.parts = parts.map(Arc::new);
        self
    }

    /// The rows, for a selector that declared to read them.
    ///
    /// # Panics
    /// If the table was read as moments: the declaration says otherwise.
    pub fn rows(&self) -> &Rows {
        match &self.table.data {
            Data::Rows(rows) => rows,
            Data::Gram(_) => panic!("a selector that reads rows declares it in `reads`"),
        }
    }

    /// The features cut into at most `most` bins each, which is made once of a table. For a selector that declared to read rows.
    pub fn bins(&self, most: usize, run: &Run) -> Result<Arc<Bins>> {
        self.table.bins(self.rows(), most, run)
    }

    /// The second moments, if that is how the table was read.
    pub fn gram(&self) -> Option<&Gram> {
        match &self.table.data {
            Data::Gram(gram) => Some(gram),
            Data::Rows(_) => None,
        }
    }

    /// The names of the columns that units are made of.
    pub fn features(&self) -> &[String] {
        &self.table.features
    }

    pub fn seen(&self) -> &Seen {
        self.table.data.seen()
    }

    /// The same question about some of the units; those that must be included stay so if they are among them.
    pub fn among(&self, units: &[usize]) -> Self {
        let place = |unit: &usize| units.iter().position(|kept| kept == unit);
        Self {
            units: units.iter().map(|unit| self.units[*unit].clone()).collect(),
            must_include: self.must_include.iter().filter_map(place).collect(),
            k: self.k.map(|k| k.min(units.len())),
            costs: self.costs.as_ref().map(|costs| units.iter().map(|unit| costs[*unit]).collect()),
            ..self.clone()
        }
    }

    /// The same question put to some of the rows, filled and centred by their own means, with the other rows held out if `judges` are given.
    /// Of a table that was read as moments it is `None`: they have no rows to take.
    pub fn on(&self, rows: &[usize], judges: &[usize]) -> Option<Self> {
        let Data::Rows(all) = &self.table.data else { return None };
        let (own, others) = all.part(rows, judges);
        let (features, column_keys) = (self.table.features.clone(), self.table.column_keys.clone());
        let table = Table { features, data: Data::Rows(own), column_keys, bins: Default::default() };
        let held_out = others.map(Arc::new);
        Some(Self { table: Arc::new(table), held_out, ..self.clone() })
    }

    /// The same question put to other moments of the same columns.
    pub(crate) fn on_moments(&self, gram: Gram, parts: Option<Parts>) -> Self {
        let (features, column_keys) = (self.table.features.clone(), self.table.column_keys.clone());
        let table = Table { features, data: Data::Gram(gram), column_keys, bins: Default::default() };
        Self { table: Arc::new(table), parts: parts.map(Arc::new), ..self.clone() }
    }

    /// A number for the question and its rows to the last bit: who was asked the same of the same table has the same.
    pub fn fingerprint(&self) -> u64 {
        let combine = |hash: u64, next: u64| mix(hash ^ next).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let numbers = |values: &[f64]| values.iter().fold(values.len() as u64, |hash, value| combine(hash, value.to_bits()));
        let of_rows = |rows: &Rows| {
            let columns: Vec<u64> = rows.columns.par_iter().map(|column| numbers(column)).collect();
            let others = rows.labels.iter().chain([&rows.targets, &rows.weights]).map(|values| numbers(values));
            columns.into_iter().chain(others).fold(0, combine)
        };
        let table = match &self.table.data {
            Data::Rows(rows) => of_rows(rows),
            Data::Gram(gram) => {
                let parts = [&gram.means, &gram.matrix, &gram.label_means, &gram.products];
                parts.into_iter().map(|values| numbers(values)).fold(0, combine)
            }
        };
        let held_out = self.held_out.as_deref().map_or(0, of_rows);
        let (size, folds) = (self.k.map_or(0, |k| k as u64 + 1), self.folds.unwrap_or(0) as u64);
        let names = self.units.iter().map(|unit| hash(&unit.name));
        [table, held_out, size, folds].into_iter().chain(names).fold(0, combine)
    }

    /// The label's variance, summed over its columns.
    pub(crate) fn label_variance(&self) -> f64 {
        match &self.table.data {
            Data::Gram(gram) => gram.label_energy / gram.weight,
            Data::Rows(rows) => {
                let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
                let squares = |label: &Vec<f64>| label.iter().enumerate().map(|(row, y)| weight(row) * y * y).sum::<f64>();
                rows.labels.iter().map(squares).sum::<f64>() / rows.weight()
            }
        }
    }

    /// The weight of the rows of each class, if there are more than two.
    pub(crate) fn class_weights(&self) -> Option<Vec<f64>> {
        let Label::Classes(classes) = &self.label else { return None };
        (classes.len() > 2).then(|| match &self.table.data {
            Data::Gram(gram) => gram.label_means.iter().map(|share| share * gram.weight).collect(),
            Data::Rows(rows) => {
                let mut weights = vec![0.0; classes.len()];
                let targets = rows.targets.iter().enumerate();
                targets.for_each(|(row, class)| weights[*class as usize] += rows.weights.get(row).copied().unwrap_or(1.0));
                weights
            }
        })
    }

    fn can_be_answered(&self) -> Result<()> {
        if (0..self.units.len()).all(|unit| self.why_never(unit).is_some()) {
            let is_left_out = self.seen().texts.values().any(|text| text.is_left_out);
            let or = if is_left_out {
                "constant, NULL throughout, or a text with nearly as many values as rows"
            } else {
                "constant or NULL throughout"
            };
            return Err(Error::data(format!("no feature to choose from: every one is {or}")));
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
        self.table.column_key(column)
    }

    /// Why a unit can never be chosen, if so: nothing varies in it, or all its texts are left out.
    pub fn why_never(&self, unit: usize) -> Option<String> {
        let unit = &self.units[unit];
        if unit.columns.iter().any(|column| self.table.varies(*column)) {
            return None;
        }
        let seen = self.seen();
        let is_missing = |feature: &usize| seen.missing[*feature] == seen.rows;
        if unit.features.iter().all(is_missing) {
            return Some("all values are NULL".into());
        }
        let left_out = unit.features.iter().find_map(|feature| seen.texts.get(feature)?.why_left_out());
        Some(left_out.unwrap_or_else(|| "constant".into()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Table, planted};

    #[test]
    fn a_fingerprint_is_that_of_question_and_rows() {
        let ask = |table: &Table, label: &[f64]| table.problem(label);
        let (table, label) = planted(50, 4, &[1], 1.0, 3);
        let one = ask(&table, &label);
        assert_eq!(one.fingerprint(), ask(&table, &label).fingerprint());
        let mut nearly = label.clone();
        nearly[7] = f64::from_bits(nearly[7].to_bits() + 1);
        let fewer = Problem { k: Some(1), ..one.clone() };
        let folded = Problem { folds: Some(3), ..one.clone() };
        let (others, _) = planted(50, 4, &[1], 1.0, 4);
        let changed = [ask(&table, &nearly), fewer, folded, one.among(&[0, 1, 2]), ask(&others, &label)];
        for (at, changed) in changed.iter().enumerate() {
            assert_ne!(one.fingerprint(), changed.fingerprint(), "{at}");
        }
    }
}
