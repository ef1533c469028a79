//! The rows as predictors see them: features comparable, and rows set apart to judge by.

use std::ops::Range;

use crate::judging::metric::Criterion;
use crate::reading::order::mix;
use crate::reading::split::parts;
use crate::{Error, Label, Lease, Problem, Result, Rows, Run};

/// Which rows are held out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Holding {
    /// A share of the rows, once.
    Share(f64),
    /// Every row once, a fold at a time.
    Folds(usize),
    /// Five folds, ten of a few rows, or as many as there are different rows.
    Default,
}

impl Holding {
    /// Five folds however few rows there are, if there are more than folds: for models that are fitted from the beginning.
    pub fn five(problem: &Problem) -> Self {
        if problem.seen().rows > 5 { Self::Folds(5) } else { Self::Default }
    }
}

/// Of few rows a fold takes many from those that are learnt from, and its fits cost little.
fn default_folds(rows: usize) -> usize {
    if rows <= FEW_ROWS { 10 } else { 5 }
}

pub(crate) const FEW_ROWS: usize = 500;

/// A table's rows, in segments.
#[derive(Debug)]
pub(crate) struct Folds {
    /// Design columns of unit variance (or, unscaled, of unit variance on average), centred.
    pub columns: Vec<Vec<f64>>,
    /// The label's columns, centred.
    pub labels: Vec<Vec<f64>>,
    /// What was taken off the label's columns to centre them.
    pub offsets: Vec<f64>,
    /// The label: the number, or the position of the class.
    pub targets: Vec<f64>,
    /// How often each row counts.
    pub weights: Vec<f64>,
    pub is_weighted: bool,
    /// How many classes the label has, if it has.
    pub classes: Option<usize>,
    pub segments: Vec<Range<usize>>,
    /// For each fit, the segment held out; it learns from the others.
    pub held_out: Vec<usize>,
    /// Whether the rows held out judge by the absolute error, not by its square.
    pub is_absolute: bool,
    _memory: Lease,
}

impl Folds {
    pub fn new(problem: &Problem, holding: Holding, criterion: Criterion, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        run.check()?;
        let deviations = deviations(rows);
        let parts = segments(rows, &alike(problem, rows, &deviations, run)?, holding, "inner_folds")?;
        let order: Vec<usize> = parts.concat();
        let mut start = 0;
        let segments: Vec<Range<usize>> = parts
            .iter()
            .map(|part| {
                start += part.len();
                start - part.len()..start
            })
            .collect();
        let held_out = if let Holding::Share(_) = holding { vec![1] } else { (0..segments.len()).collect() };
        let memory = run.reserve(Self::bytes_for(rows, rows.rows()))?;
        let mut folds = Self::empty(problem, rows, segments, held_out, criterion, memory);
        folds.add(rows, &order, &factors(&deviations, problem.standardize));
        Ok(folds)
    }

    /// All rows to learn from, and other rows, measured against them, to judge by.
    pub fn judged_by(problem: &Problem, judges: &Rows, criterion: Criterion, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let (own, others) = (rows.rows(), judges.rows());
        let memory = run.reserve(Self::bytes_for(rows, own + others))?;
        let mut folds = Self::empty(problem, rows, vec![0..own, own..own + others], vec![1], criterion, memory);
        let factors = factors(&deviations(rows), problem.standardize);
        folds.add(rows, &(0..own).collect::<Vec<_>>(), &factors);
        folds.add(judges, &(0..others).collect::<Vec<_>>(), &factors);
        Ok(folds)
    }

    /// Bytes that so many rows of a table take, and what decides which are held out.
    fn bytes_for(table: &Rows, rows: usize) -> usize {
        rows * (table.columns.len() + table.labels.len() + 6) * size_of::<f64>()
    }

    fn empty(
        problem: &Problem,
        rows: &Rows,
        segments: Vec<Range<usize>>,
        held_out: Vec<usize>,
        criterion: Criterion,
        memory: Lease,
    ) -> Self {
        Self {
            _memory: memory,
            columns: vec![Vec::new(); rows.columns.len()],
            labels: vec![Vec::new(); rows.labels.len()],
            offsets: offsets(rows),
            targets: Vec::new(),
            weights: Vec::new(),
            is_weighted: !rows.weights.is_empty(),
            classes: if let Label::Classes(classes) = &problem.label { Some(classes.len()) } else { None },
            segments,
            held_out,
            is_absolute: criterion.is_absolute(matches!(problem.label, Label::Classes(_))),
        }
    }

    /// Adds rows in an order, every column of the design times its factor.
    fn add(&mut self, rows: &Rows, order: &[usize], factors: &[f64]) {
        for ((to, from), factor) in self.columns.iter_mut().zip(&rows.columns).zip(factors) {
            to.reserve_exact(order.len());
            to.extend(order.iter().map(|row| from[*row] * factor));
        }
        for (to, from) in self.labels.iter_mut().zip(&rows.labels) {
            to.extend(order.iter().map(|row| from[*row]));
        }
        self.targets.extend(order.iter().map(|row| rows.targets[*row]));
        self.weights.extend(order.iter().map(|row| rows.weights.get(*row).copied().unwrap_or(1.0)));
    }

    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    /// Whether any fit learns from a segment.
    pub fn is_learnt(&self, segment: usize) -> bool {
        self.held_out.iter().any(|held_out| *held_out != segment)
    }

    /// The rows that a fit learns from.
    pub fn learnt_rows(&self, fit: usize) -> Vec<usize> {
        let others = self.segments.iter().enumerate().filter(|(segment, _)| *segment != self.held_out[fit]);
        others.flat_map(|(_, rows)| rows.clone()).collect()
    }

    /// The rows that a fit is judged by.
    pub fn held_out_rows(&self, fit: usize) -> Range<usize> {
        self.segments[self.held_out[fit]].clone()
    }

    /// The class that a prediction of the label's columns stands for.
    pub fn class(&self, prediction: &[f64]) -> usize {
        if let [second] = prediction {
            return usize::from(second + self.offsets[0] > 0.5);
        }
        let value = |class: usize| prediction[class] + self.offsets[class];
        (1..prediction.len()).fold(0, |best, class| if value(class) > value(best) { class } else { best })
    }
}

/// What centring took off the label's columns.
fn offsets(rows: &Rows) -> Vec<f64> {
    let raw = |q: usize, target: f64| match &rows.label {
        Label::Numbers => target,
        Label::Classes(_) => f64::from(target as usize == rows.label.columns().start + q),
    };
    rows.labels.iter().enumerate().map(|(q, label)| raw(q, rows.targets[0]) - label[0]).collect()
}

/// What makes every column's variance 1; without scaling one factor for all, which brings the numbers near 1, where the random weights are.
pub(crate) fn factors(deviations: &[f64], standardize: bool) -> Vec<f64> {
    let mean = deviations.iter().map(|deviation| deviation * deviation).sum::<f64>() / deviations.len().max(1) as f64;
    let scale = |deviation: f64| if standardize { deviation } else { mean.sqrt() };
    let factor = |deviation: &f64| if scale(*deviation) > 0.0 { 1.0 / scale(*deviation) } else { 0.0 };
    deviations.iter().map(factor).collect()
}

/// Standard deviations of the design's columns.
pub(crate) fn deviations(rows: &Rows) -> Vec<f64> {
    let weight = rows.weight();
    let square = |(row, value): (usize, &f64)| rows.weights.get(row).copied().unwrap_or(1.0) * value * value;
    rows.columns.iter().map(|column| (column.iter().enumerate().map(square).sum::<f64>() / weight).sqrt()).collect()
}

/// A number for each row that equal rows share and that says nothing else: it decides on which side a row is. So a row twice is on one side,
/// as a row of weight 2 is, and neither the order of the rows nor that of the columns matters.
pub(crate) fn alike(problem: &Problem, rows: &Rows, deviations: &[f64], run: &Run) -> Result<Vec<u64>> {
    let mut keys: Vec<u64> = rows.targets.iter().map(|target| mix(target.to_bits())).collect();
    for unit in &problem.units {
        run.check()?;
        let name = run.random(&unit.name, 0).next_u64();
        for column in unit.columns.iter().filter(|column| deviations[**column] > 0.0) {
            // Rounded, because the last bit of a mean depends on the order of a sum.
            let digits = |value: f64| (value / deviations[*column] * 1e6).round() as i64 as u64;
            let values = keys.iter_mut().zip(&rows.columns[*column]);
            values.for_each(|(key, value)| *key = key.wrapping_add(mix(name ^ mix(digits(*value)))));
        }
    }
    let seed = run.random("split", 0).next_u64();
    Ok(keys.into_iter().map(|key| mix(key ^ seed)).collect())
}

/// The rows of each segment, of every class alike; of a share, the first segment is to learn from. A mistake is that of an option.
pub(super) fn segments(rows: &Rows, keys: &[u64], holding: Holding, option: &str) -> Result<Vec<Vec<usize>>> {
    let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
    let mut bundles: Vec<Vec<Vec<usize>>> = Vec::new();
    for mut members in parts(rows).into_iter().filter(|members| !members.is_empty()) {
        members.sort_by_key(|row| (keys[*row], *row));
        let equal = members.chunk_by(|a, b| keys[*a] == keys[*b]).map(<[usize]>::to_vec);
        bundles.push(equal.collect());
    }
    let different: usize = bundles.iter().map(Vec::len).sum();
    let folds = match holding {
        Holding::Share(_) => 2,
        Holding::Folds(folds) if folds > different => {
            return Err(Error::data(format!(
                "`{option}` must be at most {different}, because there are only {different} different rows; got {folds}"
            )));
        }
        Holding::Folds(folds) => folds,
        Holding::Default => default_folds(keys.len()).min(different).max(2),
    };
    let mut segments = vec![Vec::new(); folds];
    let mut filled = vec![0.0; folds];
    for bundles in bundles {
        let of = |bundle: &[usize]| bundle.iter().map(|row| weight(*row)).sum::<f64>();
        let total: f64 = bundles.iter().map(|bundle| of(bundle)).sum();
        let (mut held_out, last) = (0.0, bundles.len() - 1);
        for (at, bundle) in bundles.into_iter().enumerate() {
            let weight = of(&bundle);
            let segment = match holding {
                // As near to the share as whole bundles come, with one at least on either side.
                Holding::Share(share) => {
                    let fits = held_out + weight / 2.0 <= share * total || (held_out == 0.0 && at + 1 == last);
                    usize::from(fits && at < last)
                }
                _ => (1..folds).fold(0, |least, fold| if filled[fold] < filled[least] { fold } else { least }),
            };
            held_out += if segment == 1 { weight } else { 0.0 };
            filled[segment] += weight;
            segments[segment].extend(bundle);
        }
    }
    // A few rows of as many classes: whoever is alone in his class stays to be learnt from, unless nobody would be left to judge.
    if let Some(empty) = segments.iter().position(Vec::is_empty) {
        let largest = (0..folds).fold(0, |a, b| if segments[b].len() > segments[a].len() { b } else { a });
        let half = segments[largest].len() / 2;
        segments[empty] = segments[largest].split_off(half);
    }
    segments.iter_mut().for_each(|segment| segment.sort_unstable());
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::Table;

    fn folds_of(table: &Table, label: &[f64], holding: Holding) -> Folds {
        Folds::new(&table.problem_of_rows(label), holding, Criterion::Auto, &Run::new(3)).unwrap()
    }

    #[test]
    fn a_share_of_every_class_is_held_out() {
        let classes: Vec<f64> = (0..100).map(|row| if row < 90 { 0.0 } else { 1.0 }).collect();
        let table = Table { task: Some(Task::Classification), ..Table::random(100, 2, 1) };
        let folds = folds_of(&table, &classes, Holding::Share(0.2));
        assert_eq!((folds.learnt_rows(0).len(), folds.held_out_rows(0)), (80, 80..100));
        assert_eq!(folds.targets[80..].iter().filter(|class| **class == 1.0).count(), 2);
        assert!(folds.is_learnt(0) && !folds.is_learnt(1));
    }

    #[test]
    fn folds_are_of_one_size_and_equal_rows_stay_together() {
        let table = Table::random(50, 3, 1);
        let label: Vec<f64> = (0..50).map(f64::from).collect();
        let plain = folds_of(&table, &label, Holding::Folds(4));
        assert!(plain.segments.iter().all(|segment| (12..=13).contains(&segment.len())));
        let twice = |values: &[f64]| [values, values].concat();
        let doubled = (0..3).fold(Table::new(), |doubled, j| doubled.numbers(&format!("x{j}"), &twice(table.column(j))));
        let doubled = folds_of(&doubled, &twice(&label), Holding::Folds(4));
        for (once, both) in plain.segments.iter().zip(&doubled.segments) {
            let mut expected = twice(&plain.targets[once.clone()]);
            let mut found = doubled.targets[both.clone()].to_vec();
            expected.sort_by(f64::total_cmp);
            found.sort_by(f64::total_cmp);
            assert_eq!(expected, found);
        }
    }

    #[test]
    fn few_rows_have_more_folds() {
        for (rows, expected) in [(3, 3), (500, 10), (501, 5)] {
            let label: Vec<f64> = (0..rows).map(|row| row as f64).collect();
            assert_eq!(folds_of(&Table::random(rows, 1, 1), &label, Holding::Default).segments.len(), expected);
        }
    }

    #[test]
    fn more_folds_than_rows_is_refused() {
        let problem = Table::random(4, 1, 1).problem_of_rows(&[1.0, 2.0, 3.0, 4.0]);
        let error = Folds::new(&problem, Holding::Folds(5), Criterion::Auto, &Run::new(0)).unwrap_err();
        assert_eq!(error.to_string(), "`inner_folds` must be at most 4, because there are only 4 different rows; got 5");
    }
}
