use std::any::Any;

use crate::contract::report::{Kind, Values};
use crate::contract::summary::{Summarize, Summary, Types};
use crate::kernels::double::Double;
use crate::profile::association::{Labels, adjusted};
use crate::profile::table::{Column, Profile};
use crate::reading::bins;
use crate::reading::block::Block;
use crate::{Label, Plan, Result, summary};

summary! {
    /// What is in a table: its columns, and what is odd in them.
    ///
    /// A row for each column: its `type` and `role`, how many `rows`, `nulls` and `distinct` values there are; of numbers the least, the quartiles, the greatest, mean and
    /// standard deviation; the most frequent value (`top_value`) and its rows; with a label the `association` with it; and `flags`, what a person would warn of.
    ///
    /// `association` is the share of the label's variance that the column explains alone, less what it would explain by chance (adjusted R²), so that numbers and texts can be
    /// compared: a number is cut into up to 32 groups of about equal size and ten rows at least, or is a straight line if that explains more; a text is grouped by its levels, and NULLs are a
    /// group. Of classes it is the variance of their 0/1 columns together.
    ///
    /// Flags: 'constant', 'all NULL', 'mostly NULL' (more than half), 'id-like' (a text that is nearly always another, running numbers, or whole numbers that are called an id
    /// and are always others), 'duplicate of x' (equal in every row), 'x in other units' and 'nearly x' (a squared correlation of 1, or of
    /// 0.998 and more, with an earlier number, in 1,024 rows that are kept), 'leak?' (explains 0.99 and more of the label alone).
    ///
    /// One pass, in memory that does not grow with the rows. Up to 2,048 different numbers and 16,384 texts of a column (fewer in tables of more than 500 columns) all of it is exact. With
    /// more, `distinct` is an estimate, good to some percent, quartiles are read off 2,048 groups of neighbours, and texts have no `top_value`. The answer does not depend on the order of the
    /// rows.
    #[summary(name = "describe_features", aliases = [], asks = MaybeLabel)]
    pub struct DescribeFeatures {}
}

/// Groups that numbers are cut into, and the rows of one at least.
const GROUPS: usize = 32;
const GROUP_ROWS: u64 = 10;
/// Association from which on a column knows too much.
const LEAK: f64 = 0.99;
/// Share of different values from which on a text is an id, and rows below which nothing is.
const ID_SHARE: f64 = 0.9;
const ID_ROWS: u64 = 20;

impl Summarize for DescribeFeatures {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        let numbers = ["min", "q1", "median", "q3", "max", "mean", "std"].map(|name| (name, Kind::Number));
        [("feature", Kind::Text), ("type", Kind::Text), ("role", Kind::Text), ("rows", Kind::Whole), ("nulls", Kind::Whole)]
            .into_iter()
            .chain([("distinct", Kind::Whole)])
            .chain(numbers)
            .chain([("top_value", Kind::Text), ("top_rows", Kind::Whole), ("association", Kind::Number), ("flags", Kind::Texts)])
            .collect()
    }

    fn begin(&self, plan: &Plan, types: &Types) -> Result<Box<dyn Summary>> {
        Ok(Box::new(Describing { profile: Profile::new(plan, types.label.is_some()), types: types.clone() }))
    }
}

struct Describing {
    profile: Profile,
    types: Types,
}

impl Summary for Describing {
    fn push(&mut self, rows: usize, label: Option<Block<'_>>, features: &[Block<'_>]) -> Result<()> {
        self.profile.push(rows, label, features);
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Summary>) -> Result<()> {
        if let Ok(other) = other.into_any().downcast::<Describing>() {
            self.profile.merge(&other.profile);
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn bytes(&self) -> usize {
        self.profile.bytes()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Values>> {
        let Describing { profile, types } = *self;
        let (square, alike) = (profile.square(), profile.likeness.found(&profile.plan));
        let mut rows: Vec<Described> = Vec::new();
        if let (Some(label), Some(name)) = (&profile.label, types.label) {
            let column = Described::of(&label.column, &profile.plan.label, name, "label", profile.rows);
            rows.push(column);
        }
        for (at, (column, name)) in profile.columns.iter().zip(types.features).enumerate() {
            let feature = &profile.plan.features[at].name;
            let mut described = Described::of(column, feature, name, "feature", profile.rows);
            if let Some(square) = square {
                described.association = association(column, square);
            }
            let is_leak = described.association.is_some_and(|association| association >= LEAK);
            described.flags.extend(is_leak.then(|| "leak?".to_string()));
            let is_same = |other: &usize| profile.columns[*other].gathered.fingerprint == column.gathered.fingerprint;
            let twin = (0..at).find(is_same).filter(|_| column.gathered.distinct() > 1);
            let like = alike[at].filter(|_| twin.is_none());
            described.flags.extend(twin.map(|twin| format!("duplicate of {}", profile.plan.features[twin].name)));
            described.flags.extend(like.map(|(other, is_exact)| {
                let other = &profile.plan.features[other].name;
                if is_exact { format!("{other} in other units") } else { format!("nearly {other}") }
            }));
            rows.push(described);
        }
        for left_out in &profile.plan.left_out {
            let flags = vec![left_out.reason.clone()];
            rows.push(Described { feature: left_out.feature.clone(), role: "left out", flags, ..Described::default() });
        }
        Ok(columns(rows))
    }
}

impl Profile {
    /// How the label is measured: the sum of its squares if it is a number, `Some(None)` if it has classes; `None` if there is nothing to measure.
    fn square(&self) -> Option<Option<Double>> {
        let label = self.label.as_ref()?;
        let rows = label.column.gathered.counted.cells.iter().map(|cell| cell.rows).sum();
        match self.plan.decide(label.classes.as_ref(), rows) {
            Label::Classes(_) => Some(None),
            Label::Numbers => label.keeps_number.then_some(Some(label.square)),
        }
    }
}

/// What the column explains of the label.
fn association(column: &Column, square: Option<Double>) -> Option<f64> {
    let gathered = &column.gathered;
    let mut groups: Vec<Labels> = Vec::new();
    if column.is_text {
        groups.extend(gathered.counted.cells.iter().map(|cell| cell.labels.clone()));
    } else {
        let cells = gathered.counted.in_order();
        let all: u64 = cells.iter().map(|(.., cell)| cell.rows).sum();
        let share = if cells.len() <= GROUPS { 1 } else { all.div_ceil(GROUPS as u64).max(GROUP_ROWS) };
        let mut filled = share;
        for (.., cell) in cells {
            // A value that fills a group by itself does not share it with smaller ones.
            if filled >= share || cell.rows >= share {
                groups.push(Labels::default());
                filled = 0;
            }
            filled += cell.rows;
            if let Some(group) = groups.last_mut() {
                group.add(&cell.labels, |class| class);
            }
        }
    }
    groups.push(gathered.nulls.labels.clone());
    let grouped = adjusted(&groups.iter().collect::<Vec<_>>(), square);
    let straight = if square.is_some() && gathered.nulls.rows == 0 { column.linear.adjusted() } else { None };
    grouped.into_iter().chain(straight).reduce(f64::max)
}

/// A row of the answer.
#[derive(Debug, Default)]
struct Described {
    feature: String,
    data_type: Option<String>,
    role: &'static str,
    rows: Option<u64>,
    nulls: Option<u64>,
    distinct: Option<u64>,
    /// Least, quartiles, greatest, mean and standard deviation.
    numbers: [Option<f64>; 7],
    top: Option<(String, u64)>,
    association: Option<f64>,
    flags: Vec<String>,
}

impl Described {
    fn of(column: &Column, feature: &str, data_type: String, role: &'static str, rows: u64) -> Self {
        let gathered = &column.gathered;
        let nulls = gathered.nulls.rows;
        let known = rows - nulls;
        // An estimate may be above what there can be.
        let distinct = gathered.distinct().min(known);
        let mut numbers = [None; 7];
        if !column.is_text && known > 0 {
            let n = Double::from(known as f64);
            let mean = gathered.sum.divided_by(n);
            let spread = (gathered.square - gathered.sum * mean).value().max(0.0);
            let std = (known > 1).then(|| (spread / (known - 1) as f64).sqrt());
            let [q1, median, q3] = quartiles(column, known);
            numbers = [Some(gathered.least), q1, median, q3, Some(gathered.greatest), Some(mean.value()), std];
        }
        let top = top(column);
        let mut flags = Vec::new();
        let mut flag = |is_so: bool, text: &str| flags.extend(is_so.then(|| text.to_string()));
        flag(known == 0 && rows > 0, "all NULL");
        flag(known > 0 && nulls > known, "mostly NULL");
        flag(distinct == 1 && nulls == 0, "constant");
        flag(is_id(column, feature, known, distinct), "id-like");
        let (rows, nulls, distinct) = (Some(rows), Some(nulls), Some(distinct));
        let (feature, data_type) = (feature.to_string(), Some(data_type));
        Self { feature, data_type, role, rows, nulls, distinct, numbers, top, association: None, flags }
    }
}

/// Whether a column only tells rows apart.
fn is_id(column: &Column, name: &str, known: u64, distinct: u64) -> bool {
    let gathered = &column.gathered;
    let all_differ = match gathered.counted.is_exact() {
        true => distinct == known,
        // An estimate is good to some percent.
        false => distinct as f64 >= 0.92 * known as f64,
    };
    if known < ID_ROWS {
        return false;
    }
    if column.is_text {
        return distinct as f64 >= ID_SHARE * known as f64;
    }
    let is_running = gathered.greatest - gathered.least < 1.5 * known as f64;
    let name = name.to_lowercase();
    let is_called_id = name.split(|c: char| !c.is_alphanumeric()).any(|word| ["id", "uuid", "guid", "key"].contains(&word));
    let mostly_differ = distinct as f64 >= ID_SHARE * known as f64;
    gathered.is_whole && (all_differ && is_running || mostly_differ && is_called_id)
}

/// The most frequent value, if each is counted apart; of equally frequent ones the first in order.
fn top(column: &Column) -> Option<(String, u64)> {
    let gathered = &column.gathered;
    if !gathered.counted.is_exact() {
        return None;
    }
    let cells = gathered.counted.in_order();
    let name = |key: u64| match column.is_text {
        true => column.names.get(&key).cloned(),
        false => Some(bins::value(key).to_string()),
    };
    let most = cells.iter().map(|(.., cell)| cell.rows).max()?;
    let first = cells.iter().filter(|(.., cell)| cell.rows == most).filter_map(|(key, ..)| name(*key));
    let first = if column.is_text { first.min() } else { first.take(1).next() };
    first.map(|name| (name, most))
}

/// The quartiles of numbers: between two values as far as there are rows between them.
fn quartiles(column: &Column, known: u64) -> [Option<f64>; 3] {
    let gathered = &column.gathered;
    let cells = gathered.counted.in_order();
    let is_exact = gathered.counted.is_exact();
    // The value of a row, counted from the least.
    let value = |row: u64| {
        let mut before = 0;
        for (low, high, cell) in &cells {
            if row < before + cell.rows {
                let (low, high) = (bins::value(*low).max(gathered.least), bins::value(*high).min(gathered.greatest));
                let share = if is_exact { 0.0 } else { ((row - before) as f64 + 0.5) / cell.rows as f64 };
                return low + share * (high - low);
            }
            before += cell.rows;
        }
        gathered.greatest
    };
    [0.25, 0.5, 0.75].map(|share| {
        let at = share * (known - 1) as f64;
        let (low, rest) = (at.floor(), at.fract());
        let (low, high) = (value(low as u64), value(at.ceil() as u64));
        Some(low + rest * (high - low))
    })
}

fn columns(rows: Vec<Described>) -> Vec<Values> {
    let whole =
        |of: fn(&Described) -> Option<u64>| Values::Whole(rows.iter().map(|row| of(row).map(|count| count as i64)).collect());
    let mut columns = vec![
        Values::texts(rows.iter().map(|row| row.feature.clone())),
        Values::Text(rows.iter().map(|row| row.data_type.clone()).collect()),
        Values::texts(rows.iter().map(|row| row.role)),
        whole(|row| row.rows),
        whole(|row| row.nulls),
        whole(|row| row.distinct),
    ];
    columns.extend((0..7).map(|at| Values::Number(rows.iter().map(|row| row.numbers[at]).collect())));
    columns.push(Values::Text(rows.iter().map(|row| row.top.as_ref().map(|(top, _)| top.clone())).collect()));
    columns.push(whole(|row| row.top.as_ref().map(|(_, rows)| *rows)));
    columns.push(Values::Number(rows.iter().map(|row| row.association).collect()));
    columns.push(Values::Texts(rows.into_iter().map(|row| row.flags).collect()));
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Column as TableColumn, Table, summarized};
    use crate::{Run, Task};

    fn describe(table: &Table, label: Option<&[f64]>, rows: usize) -> Vec<Values> {
        summarized(&DescribeFeatures {}, table, label, &[0..rows / 3, rows / 3..rows]).unwrap()
    }

    fn at(answer: &[Values], feature: &str) -> usize {
        (0..answer[0].rows()).find(|row| answer[0].text(*row) == Some(feature)).unwrap()
    }

    fn flags(answer: &[Values], feature: &str) -> Vec<String> {
        let Values::Texts(flags) = &answer[16] else { panic!() };
        flags[at(answer, feature)].clone()
    }

    fn number(answer: &[Values], feature: &str, column: usize) -> f64 {
        answer[column].number(at(answer, feature)).unwrap()
    }

    /// Every kind of trouble, planted among columns that are all right: each is flagged, and nothing else is.
    #[test]
    fn planted_trouble_is_found_and_nothing_else() {
        let rows = 4000;
        let mut random = Run::new(7).random("trouble", 0);
        let mut table = Table { task: Some(Task::Classification), ..Table::random(rows, 3, 5) };
        let label: Vec<f64> = (0..rows).map(|row| f64::from(table.column(0)[row] + random.normal() > -0.5)).collect();
        let whole: Vec<f64> = (0..rows).map(|_| random.below(90) as f64).collect();
        let text = |of: &mut dyn FnMut(usize) -> Option<String>| TableColumn::Text((0..rows).map(of).collect());
        let again = table.column(1).to_vec();
        let swapped: Vec<f64> = again.iter().rev().copied().collect();
        let leak: Vec<f64> = label.iter().map(|y| if *y > 0.5 { 3.0 } else { 8.0 }).collect();
        table = table.numbers("whole", &whole).numbers("again", &again).numbers("swapped", &swapped).numbers("leak", &leak);
        let cents: Vec<f64> = table.column(0).iter().map(|x| 100.0 * x).collect();
        let rounded: Vec<f64> = table.column(1).iter().map(|x| (10.0 * x).round()).collect();
        table = table.numbers("cents", &cents).numbers("rounded", &rounded);
        table = table.numbers("running", &(0..rows).map(|row| (row + 17) as f64).collect::<Vec<_>>());
        table = table.numbers("customer_id", &(0..rows).map(|row| (row * row) as f64).collect::<Vec<_>>());
        table = table.numbers("same", &vec![2.5; rows]).numbers("nothing", &vec![f64::NAN; rows]);
        let rare: Vec<f64> = (0..rows).map(|row| if row % 4 == 0 { random.normal() } else { f64::NAN }).collect();
        table = table.numbers("rare", &rare);
        table.columns.push(("code".into(), text(&mut |row| Some(format!("c{row}")))));
        table.columns.push(("city".into(), text(&mut |row| Some(format!("city {}", row * 31 % 40)))));
        // NULL exactly where the label is 0: nothing but that tells.
        let told = |row: usize| (label[row] > 0.5).then(|| format!("t{}", row % 3));
        table.columns.push(("told".into(), text(&mut |row| told(row))));
        let answer = describe(&table, Some(&label), rows);
        let expected: [(&str, &[&str]); 17] = [
            ("x0", &[]),
            ("x1", &[]),
            ("x2", &[]),
            ("whole", &[]),
            ("again", &["duplicate of x1"]),
            ("swapped", &[]),
            ("cents", &["x0 in other units"]),
            ("rounded", &["nearly x1"]),
            ("leak", &["leak?"]),
            ("running", &["id-like"]),
            ("customer_id", &["id-like"]),
            ("same", &["constant"]),
            ("nothing", &["all NULL"]),
            ("rare", &["mostly NULL"]),
            ("code", &["id-like"]),
            ("city", &[]),
            ("told", &["leak?"]),
        ];
        for (feature, expected) in expected {
            assert_eq!(flags(&answer, feature), expected, "{feature}");
        }
        // What noise explains is nothing, whatever its type; what carries the label explains some.
        assert!(number(&answer, "city", 15) < 0.01 && number(&answer, "whole", 15) < 0.01 && number(&answer, "x1", 15) < 0.01);
        assert!((0.15..0.5).contains(&number(&answer, "x0", 15)));
    }

    /// A number that the label follows in a curve is as good as one that it follows in a line, and a heavy tail does not hide a line.
    #[test]
    fn curves_and_lines_are_both_seen() {
        let rows = 5000;
        let table = Table::random(rows, 2, 9);
        let square: Vec<f64> = table.column(0).iter().map(|x| x * x).collect();
        assert!(number(&describe(&table, Some(&square), rows), "x0", 15) > 0.85);
        let tail: Vec<f64> = table.column(0).iter().map(|x| (3.0 * x).exp()).collect();
        let copy = Table::new().numbers("copy", &tail);
        let label: Vec<f64> = tail.iter().map(|y| 1000.0 - 2.0 * y).collect();
        let answer = describe(&copy, Some(&label), rows);
        assert!(number(&answer, "copy", 15) > 0.999999);
        assert_eq!(flags(&answer, "copy"), ["leak?"]);
    }

    /// Quartiles, mean and deviation against sorting: exact where values are few, close where they are many, near zero or far from it.
    #[test]
    fn quartiles_are_those_of_sorting() {
        let rows = 30_000;
        let mut random = Run::new(3).random("quartiles", 0);
        let normal: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
        let seconds: Vec<f64> = (0..rows).map(|_| 1.7e18 + 3.0e16 * random.uniform()).collect();
        let few: Vec<f64> = (0..rows).map(|_| random.below(500) as f64 / 8.0).collect();
        let table = Table::new().numbers("normal", &normal).numbers("seconds", &seconds).numbers("few", &few);
        let answer = describe(&table, None, rows);
        for (name, values, error) in [("normal", &normal, 0.01), ("seconds", &seconds, 3e14), ("few", &few, 0.0)] {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            for (column, share) in [(7, 0.25), (8, 0.5), (9, 0.75)] {
                let at = share * (rows - 1) as f64;
                let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
                let expected = low + at.fract() * (high - low);
                let found = number(&answer, name, column);
                assert!((found - expected).abs() <= error, "{name} {share}: {found} instead of {expected}");
            }
            let mean = values.iter().sum::<f64>() / rows as f64;
            assert!((number(&answer, name, 11) - mean).abs() <= 1e-9 * mean.abs().max(1.0));
        }
        let distinct = answer[5].whole(at(&answer, "normal")).unwrap() as f64;
        assert!((distinct - rows as f64).abs() < 0.08 * rows as f64, "{distinct}");
        assert_eq!(answer[5].whole(at(&answer, "few")), Some(500));
        let many = Table::random(5000, 12, 3);
        let answer = describe(&many, None, 5000);
        let distinct: Vec<i64> = (0..12).map(|j| answer[5].whole(at(&answer, &format!("x{j}"))).unwrap()).collect();
        // About half of all estimates are too high.
        assert!(distinct.iter().all(|distinct| *distinct <= 5000) && distinct.contains(&5000), "{distinct:?}");
    }
}
