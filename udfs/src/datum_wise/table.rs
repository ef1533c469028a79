use std::ops::Range;

use crate::contract::report::{Kind, Values};
use crate::datum_wise::rewards::{Bits, has, insert, words};
use crate::datum_wise::{Discount, Neighbours, Policy, PolicyColumn, PolicyUnit, Relation, Rewards, Weights};
use crate::reading::coding::Coding;
use crate::{Error, Result};

/// The columns of a policy's table. Actions are numbered, classes first, then features; `action` is the name of one. So that a table can be in
/// any order, `part` says what a row is:
///
/// | part | `value` |
/// |---|---|
/// | `start` | an action's score before anything is known |
/// | `known` | what it gains when `feature` becomes known |
/// | `weight` | what it gains by each unit of `feature` above its mean, or by being `level` |
/// | `mean` | of a number, or the share of a level; `missing`: the share of NULLs; `others`: of texts that are none of the levels; `bucket`: of a bucket of texts, whose `level` is its number and how many there are |
/// | `price`, `next_price` | of a feature; next to one of those it is `shared` with |
/// | `mistake` | what predicting a class costs where `feature` is true |
/// | `budget`, `cost` | what a row may spend, and what a feature counts of it; 1 where it is not said |
/// | `class`, `given`, `near`, `far`, `relation` | the rest of the rules |
pub const POLICY_COLUMNS: [(&str, Kind); 7] = [
    ("part", Kind::Text),
    ("action_id", Kind::Whole),
    ("action", Kind::Text),
    ("feature_id", Kind::Whole),
    ("feature", Kind::Text),
    ("level", Kind::Text),
    ("value", Kind::Number),
];

/// A row of a policy's table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyRow {
    pub part: String,
    pub action_id: Option<i64>,
    pub action: Option<String>,
    pub feature_id: Option<i64>,
    pub feature: Option<String>,
    pub level: Option<String>,
    pub value: Option<f64>,
}

impl PolicyRow {
    fn new(part: &str, value: impl Into<Option<f64>>) -> Self {
        Self { part: part.into(), value: value.into(), ..Self::default() }
    }

    fn action(self, at: usize, name: &str) -> Self {
        Self { action_id: Some(at as i64), action: Some(name.into()), ..self }
    }

    fn feature(self, at: usize, name: &str) -> Self {
        Self { feature_id: Some(at as i64), feature: Some(name.into()), ..self }
    }

    fn column(self, at: usize, column: &PolicyColumn) -> Self {
        let level = match &column.coding {
            Coding::Level(level) => Some(level.clone()),
            Coding::Bucket { bucket, of } => Some(format!("{bucket} of {of}")),
            Coding::Number | Coding::Others | Coding::Missing => None,
        };
        Self { level, ..self.feature(at, &column.feature) }
    }
}

impl Policy {
    /// The policy as rows of a table.
    pub fn to_rows(&self) -> Vec<PolicyRow> {
        let classes = self.classes.len();
        let names: Vec<&str> = self.classes.iter().map(String::as_str).chain(self.units.iter().map(|unit| &*unit.name)).collect();
        let mut rows = Vec::new();
        for (class, name) in self.classes.iter().enumerate() {
            rows.push(PolicyRow::new("class", None).action(class, name));
        }
        for (at, unit) in self.units.iter().enumerate() {
            rows.push(PolicyRow::new("price", self.rewards.prices[at]).action(classes + at, &unit.name));
            for column in unit.columns.clone() {
                let part = match self.columns[column].coding {
                    Coding::Number | Coding::Level(_) => "mean",
                    Coding::Bucket { .. } => "bucket",
                    Coding::Others => "others",
                    Coding::Missing => "missing",
                };
                let row = PolicyRow::new(part, self.columns[column].mean).action(classes + at, &unit.name);
                rows.push(row.column(column, &self.columns[column]));
            }
        }
        for (at, cost) in self.rewards.mistakes.iter().enumerate() {
            let (said, truth) = (at / classes, at % classes);
            rows.push(PolicyRow::new("mistake", *cost).action(said, names[said]).feature(truth, names[truth]));
        }
        self.rules(&names, &mut rows);
        for (action, name) in names.iter().enumerate() {
            rows.push(PolicyRow::new("start", self.weights.start[action]).action(action, name));
            for (at, unit) in self.units.iter().enumerate() {
                let value = self.weights.known[at * names.len() + action];
                rows.push(PolicyRow::new("known", value).action(action, name).feature(at, &unit.name));
            }
            for (at, column) in self.columns.iter().enumerate() {
                let value = self.weights.values[at * names.len() + action];
                rows.push(PolicyRow::new("weight", value).action(action, name).column(at, column));
            }
        }
        rows
    }

    /// The policy as columns of a table, in the order of [`POLICY_COLUMNS`].
    pub fn to_table(&self) -> Vec<Values> {
        let rows = self.to_rows();
        vec![
            Values::texts(rows.iter().map(|row| row.part.clone())),
            Values::Whole(rows.iter().map(|row| row.action_id).collect()),
            Values::Text(rows.iter().map(|row| row.action.clone()).collect()),
            Values::Whole(rows.iter().map(|row| row.feature_id).collect()),
            Values::Text(rows.iter().map(|row| row.feature.clone()).collect()),
            Values::Text(rows.iter().map(|row| row.level.clone()).collect()),
            Values::Number(rows.iter().map(|row| row.value).collect()),
        ]
    }

    /// The policy that the columns of a table hold.
    pub fn from_table(table: &[Values]) -> Result<Self> {
        let [part, action_id, action, feature_id, feature, level, value] = table else {
            return Err(broken("it has other columns"));
        };
        let text = |values: &Values, row: usize| values.text(row).map(str::to_string);
        let row = |row: usize| PolicyRow {
            part: text(part, row).unwrap_or_default(),
            action_id: action_id.whole(row),
            action: text(action, row),
            feature_id: feature_id.whole(row),
            feature: text(feature, row),
            level: text(level, row),
            value: value.number(row),
        };
        Self::from_rows(&(0..part.rows()).map(row).collect::<Vec<_>>())
    }

    /// What may be asked for when, and at what other prices.
    fn rules(&self, names: &[&str], rows: &mut Vec<PolicyRow>) {
        let classes = self.classes.len();
        let mut sets = |part: &str, sets: &[Bits]| {
            for (a, set) in sets.iter().enumerate() {
                for b in (0..self.units.len()).filter(|b| has(set, *b)) {
                    rows.push(PolicyRow::new(part, None).action(classes + a, names[classes + a]).feature(b, names[classes + b]));
                }
            }
        };
        if let Some(discount) = &self.rewards.discount {
            sets("shared", &discount.shared);
        }
        if let Some(near) = &self.rewards.neighbours {
            sets("near", &near.related);
            rows.push(PolicyRow { action: Some(word(near.relation).into()), ..PolicyRow::new("relation", None) });
            rows.push(PolicyRow::new("far", near.far));
        }
        for (unit, price) in self.rewards.discount.iter().flat_map(|discount| discount.prices.iter().enumerate()) {
            rows.push(PolicyRow::new("next_price", *price).action(classes + unit, names[classes + unit]));
        }
        if let Some(budget) = self.rewards.budget {
            rows.push(PolicyRow::new("budget", self.rewards.purse.as_ref().map_or(budget as f64, |purse| purse.budget)));
        }
        for (unit, cost) in self.rewards.purse.iter().flat_map(|purse| purse.costs.iter().enumerate()) {
            rows.push(PolicyRow::new("cost", *cost).action(classes + unit, names[classes + unit]));
        }
        for (order, unit) in self.given.iter().enumerate() {
            rows.push(PolicyRow {
                feature_id: Some(order as i64),
                ..PolicyRow::new("given", None).action(classes + unit, names[classes + unit])
            });
        }
    }

    /// The policy that a table holds, whatever the order of its rows.
    pub fn from_rows(rows: &[PolicyRow]) -> Result<Self> {
        let classes = names(rows, "class", 0)?;
        let unit_names = names(rows, "price", classes.len())?;
        let (c, u) = (classes.len(), unit_names.len());
        if c < 2 || u == 0 {
            return Err(broken("it has no class or no price"));
        }
        let (columns, ranges) = columns(rows, c, u)?;
        let d = columns.len();
        let prices = numbers(rows, "price", 1, u, |row| Some((0, action(row)?.checked_sub(c)?)))?;
        let mistakes = numbers(rows, "mistake", c, c, |row| Some((action(row)?, feature(row)?)))?;
        let start = numbers(rows, "start", 1, c + u, |row| Some((0, action(row)?)))?;
        let known = numbers(rows, "known", u, c + u, |row| Some((feature(row)?, action(row)?)))?;
        let values = numbers(rows, "weight", d, c + u, |row| Some((feature(row)?, action(row)?)))?;
        let has_part = |part: &str| rows.iter().any(|row| row.part == part);
        let discount = if has_part("next_price") {
            let prices = numbers(rows, "next_price", 1, u, |row| Some((0, action(row)?.checked_sub(c)?)))?;
            Some(Discount { prices, shared: sets(rows, "shared", c, u)? })
        } else {
            None
        };
        let neighbours = match rows.iter().find(|row| row.part == "far") {
            Some(far) => Some(Neighbours { related: sets(rows, "near", c, u)?, relation: relation(rows)?, far: far.value }),
            None => None,
        };
        let budget = rows.iter().find(|row| row.part == "budget").and_then(|row| row.value);
        let costs = match has_part("cost") {
            true => numbers(rows, "cost", 1, u, |row| Some((0, action(row)?.checked_sub(c)?)))?,
            false => vec![1.0; u],
        };
        if has_part("cost") && budget.is_none() {
            return Err(broken("it has costs, and no budget"));
        }
        let mut given: Vec<&PolicyRow> = rows.iter().filter(|row| row.part == "given").collect();
        given.sort_by_key(|row| row.feature_id);
        let unit = |row: &PolicyRow| action(row).and_then(|at| at.checked_sub(c)).filter(|at| *at < u);
        let given =
            given.into_iter().map(|row| unit(row).ok_or_else(|| broken("`given` names no feature"))).collect::<Result<_>>()?;
        let rewards = Rewards { classes: c, mistakes, prices, budget: None, purse: None, discount, neighbours };
        let rewards = if let Some(budget) = budget { rewards.within(budget, costs) } else { rewards };
        let weights = Weights { actions: c + u, start, known, values };
        let units = unit_names.into_iter().zip(ranges).map(|(name, columns)| PolicyUnit { name, columns }).collect();
        Ok(Self { classes, units, columns, weights, rewards, given })
    }
}

fn broken(why: &str) -> Error {
    Error::data(format!("the table given as `policy` is not a whole answer of datum_wise_policy: {why}"))
}

fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Any => "any",
        Relation::All => "all",
    }
}

fn relation(rows: &[PolicyRow]) -> Result<Relation> {
    let word = rows.iter().find(|row| row.part == "relation").and_then(|row| row.action.as_deref());
    match word {
        Some("any") => Ok(Relation::Any),
        Some("all") => Ok(Relation::All),
        _ => Err(broken("`relation` is missing")),
    }
}

fn action(row: &PolicyRow) -> Option<usize> {
    row.action_id.and_then(|at| usize::try_from(at).ok())
}

fn feature(row: &PolicyRow) -> Option<usize> {
    row.feature_id.and_then(|at| usize::try_from(at).ok())
}

/// The names of the actions of a part, which must be numbered from `first` on without a gap.
fn names(rows: &[PolicyRow], part: &str, first: usize) -> Result<Vec<String>> {
    let mut named: Vec<(Option<usize>, &Option<String>)> =
        rows.iter().filter(|row| row.part == part).map(|row| (action(row), &row.action)).collect();
    named.sort();
    let name = |(at, (id, name)): (usize, (Option<usize>, &Option<String>))| match name {
        Some(name) if id == Some(first + at) => Ok(name.clone()),
        _ => Err(broken(&format!("its rows of `{part}` do not count from {first} on"))),
    };
    named.into_iter().enumerate().map(name).collect()
}

/// The columns in order, and each unit's.
fn columns(rows: &[PolicyRow], classes: usize, units: usize) -> Result<(Vec<PolicyColumn>, Vec<Range<usize>>)> {
    let is_column = |row: &&PolicyRow| ["mean", "bucket", "others", "missing"].contains(&row.part.as_str());
    let mut parts: Vec<&PolicyRow> = rows.iter().filter(is_column).collect();
    parts.sort_by_key(|row| row.feature_id);
    let mut columns = Vec::new();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, row) in parts.into_iter().enumerate() {
        let coding = match (&row.level, row.part.as_str()) {
            (_, "missing") => Coding::Missing,
            (_, "others") => Coding::Others,
            (level, "bucket") => {
                let numbers = level.as_ref().and_then(|level| level.split_once(" of "));
                let numbers = numbers.and_then(|(bucket, of)| Some((bucket.parse().ok()?, of.parse().ok()?)));
                match numbers {
                    Some((bucket, of)) if bucket < of => Coding::Bucket { bucket, of },
                    _ => return Err(broken("the `level` of a bucket is its number `of` how many there are")),
                }
            }
            (Some(level), _) => Coding::Level(level.clone()),
            (None, _) => Coding::Number,
        };
        let unit = action(row).and_then(|at| at.checked_sub(classes));
        match (unit, &row.feature, row.value, feature(row)) {
            (Some(unit), Some(feature), Some(mean), Some(id)) if id == at && unit < units && mean.is_finite() => {
                // A unit's columns stand together, in the order of the units.
                if unit == ranges.len() {
                    ranges.push(at..at);
                }
                if unit + 1 != ranges.len() {
                    return Err(broken("its columns are not in the order of their features"));
                }
                ranges[unit].end = at + 1;
                columns.push(PolicyColumn { feature: feature.clone(), coding, mean });
            }
            _ => return Err(broken(&format!("its rows of `{}` do not count from 0 on", row.part))),
        }
    }
    if ranges.len() != units {
        return Err(broken("a feature has no `mean`"));
    }
    Ok((columns, ranges))
}

/// `of` lists of `each` numbers, by the places that `place` gives; all must be there.
fn numbers(
    rows: &[PolicyRow],
    part: &str,
    of: usize,
    each: usize,
    place: impl Fn(&PolicyRow) -> Option<(usize, usize)>,
) -> Result<Vec<f64>> {
    let mut values = vec![f64::NAN; of * each];
    for row in rows.iter().filter(|row| row.part == part) {
        match place(row) {
            Some((list, at)) if list < of && at < each => values[list * each + at] = row.value.unwrap_or(f64::NAN),
            _ => return Err(broken(&format!("a row of `{part}` is about an action or feature that it does not have"))),
        }
    }
    if values.iter().all(|value| value.is_finite()) { Ok(values) } else { Err(broken(&format!("rows of `{part}` are missing"))) }
}

fn sets(rows: &[PolicyRow], part: &str, classes: usize, units: usize) -> Result<Vec<Bits>> {
    let mut sets = vec![vec![0; words(units)]; units];
    for row in rows.iter().filter(|row| row.part == part) {
        match (action(row).and_then(|at| at.checked_sub(classes)), feature(row)) {
            (Some(a), Some(b)) if a < units && b < units => insert(&mut sets[a], b),
            _ => return Err(broken(&format!("a row of `{part}` is about a feature that it does not have"))),
        }
    }
    Ok(sets)
}
