//! Columns cut into bins: the form of a table that trees read.

use rayon::prelude::*;

use crate::reading::coding::Coding;
use crate::reading::rows::Rows;
use crate::{Lease, Result, Run};

/// Most bins for the values of a feature. NULL has one more, and a code still fits into a byte.
pub const BINS_MAX: usize = 255;

/// The features of a table, each cut into bins. A number has a bin for each of its values, or where there are too many, bins of
/// about equal weight. A text has a bin for each of its levels; where there are too many, the rarest share the last. NULL is in a bin of its own.
#[derive(Debug)]
pub struct Bins {
    /// One for each column of the table.
    pub features: Vec<Binned>,
    /// The rows that the bins were made for.
    pub codes: Codes,
}

/// How one feature is cut.
#[derive(Debug, Clone)]
pub struct Binned {
    /// Bins that hold values. NULL has the next one, and so has a level that was not seen.
    pub bins: usize,
    /// Whether the bins stand in the order of the values; those of a text stand in no order.
    pub is_ordered: bool,
    /// Whether there are rows in more than one bin.
    pub varies: bool,
    /// A number from the feature's name, to draw random numbers with.
    pub key: u64,
    source: Source,
}

/// The bin of every row, feature by feature.
#[derive(Debug)]
pub struct Codes {
    pub of_feature: Vec<Vec<u8>>,
    /// The memory of the codes.
    _lease: Lease,
}

/// Where codes come from.
#[derive(Debug, Clone)]
enum Source {
    /// A column of the design, and where one bin ends and the next begins. A value on the border is in the lower bin.
    Numbers { column: usize, borders: Vec<f64> },
    /// The columns of the levels, each with its bin; the last, if any, is the level of every row that is not NULL.
    Levels { columns: Vec<(usize, u8)>, always: Option<u8> },
}

impl Binned {
    /// The bin of NULL.
    pub fn null(&self) -> u8 {
        self.bins as u8
    }

    /// Codes in use: those of the values, and that of NULL.
    pub fn width(&self) -> usize {
        self.bins + 1
    }

    /// Where bins of numbers end, in the units of the design; there is no border above the last.
    pub(crate) fn borders(&self) -> &[f64] {
        match &self.source {
            Source::Numbers { borders, .. } => borders,
            Source::Levels { .. } => &[],
        }
    }

    /// What was subtracted from a number before it was cut.
    pub(crate) fn mean(&self, rows: &Rows) -> f64 {
        match &self.source {
            Source::Numbers { column, .. } => rows.origins[*column].mean,
            Source::Levels { .. } => 0.0,
        }
    }

    /// The levels of a text, and the bin of each.
    pub(crate) fn levels<'a>(&self, rows: &'a Rows, feature: usize) -> Vec<(&'a str, u8)> {
        let Source::Levels { columns, always } = &self.source else { return Vec::new() };
        let own = (0..rows.design.len()).filter(|column| rows.design[*column].feature == feature);
        let bin = |column: usize| {
            let found = columns.iter().find(|(of, _)| *of == column).map(|(_, bin)| *bin);
            found.or(always.filter(|_| rows.origins[column].mean > 0.5))
        };
        let level = |column: usize| match &rows.origins[column].coding {
            Coding::Level(level) => Some((level.as_str(), bin(column)?)),
            _ => None,
        };
        own.filter_map(level).collect()
    }

    /// The bin of the others, if the text has any.
    pub(crate) fn others(&self, rows: &Rows, feature: usize) -> Option<u8> {
        let Source::Levels { columns, .. } = &self.source else { return None };
        let is_others = |column: usize| rows.design[column].feature == feature && rows.origins[column].coding == Coding::Others;
        columns.iter().find(|(column, _)| is_others(*column)).map(|(_, bin)| *bin)
    }

    fn codes(&self, rows: &Rows, feature: usize, run: &Run) -> Result<Vec<u8>> {
        let nulls = &rows.nulls[feature];
        let fill = |code: u8| (0..rows.rows()).map(|row| if nulls.get(row) { self.null() } else { code }).collect::<Vec<u8>>();
        Ok(match &self.source {
            Source::Numbers { column, borders } => {
                let mut codes = coded(&rows.columns[*column], borders);
                if nulls.any() {
                    codes.iter_mut().enumerate().filter(|(row, _)| nulls.get(*row)).for_each(|(_, code)| *code = self.null());
                }
                codes
            }
            Source::Levels { columns, always } => {
                let mut codes = fill(always.unwrap_or(self.null()));
                for (column, code) in columns {
                    run.check()?;
                    // Centred, a level is above 0 where it is and below where it is not.
                    let values = codes.iter_mut().zip(&rows.columns[*column]);
                    values.filter(|(_, value)| **value > 0.0).for_each(|(at, _)| *at = *code);
                }
                codes
            }
        })
    }
}

impl Bins {
    /// Cuts every feature of some rows; `keys` has a number for each column of the design, from its name.
    pub(crate) fn of(rows: &Rows, keys: &[u64], most: usize, run: &Run) -> Result<Self> {
        let features = rows.nulls.len();
        let lease = run.reserve(rows.rows() * features)?;
        let counts = Counts::of(rows);
        let cut = |feature: usize| -> Result<(Binned, Vec<u8>)> {
            run.check()?;
            let mut binned = cut(rows, feature, &counts, most.clamp(1, BINS_MAX), run)?;
            let first = rows.design.iter().position(|column| column.feature == feature);
            binned.key = first.map_or(0, |column| keys[column]);
            let codes = binned.codes(rows, feature, run)?;
            binned.varies = codes.iter().any(|code| *code != codes[0]);
            Ok((binned, codes))
        };
        let (features, of_feature) = (0..features).into_par_iter().map(cut).collect::<Result<(Vec<_>, Vec<_>)>>()?;
        Ok(Self { features, codes: Codes { of_feature, _lease: lease } })
    }

    /// Columns of numbers, none of them NULL, and their keys.
    pub(crate) fn of_columns(columns: &[Vec<f64>], weights: &[f64], most: usize, run: &Run) -> Result<Self> {
        let lease = run.reserve(columns.iter().map(Vec::len).sum())?;
        let counts = Counts::new(weights);
        let cut = |(at, column): (usize, &Vec<f64>)| -> Result<(Binned, Vec<u8>)> {
            let borders = borders(column, |_| false, &counts, most.clamp(1, BINS_MAX), run)?;
            let codes = coded(column, &borders);
            let varies = codes.iter().any(|code| *code != codes[0]);
            let bins = borders.len() + 1;
            Ok((
                Binned { bins, is_ordered: true, varies, key: at as u64, source: Source::Numbers { column: at, borders } },
                codes,
            ))
        };
        let (features, of_feature) = columns.par_iter().enumerate().map(cut).collect::<Result<(Vec<_>, Vec<_>)>>()?;
        Ok(Self { features, codes: Codes { of_feature, _lease: lease } })
    }

    /// Other rows of the same table, measured as the first ones are, in the same bins.
    pub fn codes_of(&self, rows: &Rows, run: &Run) -> Result<Codes> {
        let lease = run.reserve(rows.rows() * self.features.len())?;
        let features = self.features.par_iter().enumerate();
        let of_feature = features.map(|(at, binned)| binned.codes(rows, at, run)).collect::<Result<_>>()?;
        Ok(Codes { of_feature, _lease: lease })
    }
}

fn cut(rows: &Rows, feature: usize, counts: &Counts, most: usize, run: &Run) -> Result<Binned> {
    let columns = || (0..rows.design.len()).filter(|column| rows.design[*column].feature == feature);
    let (source, bins, is_ordered) = match columns().find(|column| rows.origins[*column].coding == Coding::Number) {
        Some(column) => {
            let borders = borders(&rows.columns[column], |row| rows.nulls[feature].get(row), counts, most, run)?;
            let bins = borders.len() + 1;
            (Source::Numbers { column, borders }, bins, true)
        }
        None => {
            let levels: Vec<usize> = columns().filter(|column| rows.origins[*column].coding != Coding::Missing).collect();
            // Centred, a level that every row has is 0 throughout, as is one that no row has.
            let varies = |column: &usize| rows.columns[*column].iter().any(|value| *value != 0.0);
            let always = levels.iter().any(|column| !varies(column) && rows.origins[*column].mean > 0.5).then_some(0);
            let mut varying: Vec<usize> = levels.into_iter().filter(varies).collect();
            let bins = (varying.len() + usize::from(always.is_some())).min(most);
            if varying.len() > most {
                varying = by_weight(rows, varying, counts, run)?;
            }
            let columns = varying.into_iter().enumerate().map(|(at, column)| (column, at.min(most - 1) as u8)).collect();
            (Source::Levels { columns, always }, bins, false)
        }
    };
    Ok(Binned { bins, is_ordered, varies: false, key: 0, source })
}

/// Levels, the heaviest first.
fn by_weight(rows: &Rows, levels: Vec<usize>, counts: &Counts, run: &Run) -> Result<Vec<usize>> {
    let mut weighed = Vec::with_capacity(levels.len());
    for column in levels {
        run.check()?;
        let on = rows.columns[column].iter().enumerate().filter(|(_, value)| **value > 0.0);
        weighed.push((std::cmp::Reverse(on.map(|(row, _)| u64::from(counts.get(row))).sum::<u64>()), column));
    }
    weighed.sort_unstable();
    Ok(weighed.into_iter().map(|(_, column)| column).collect())
}

fn coded(column: &[f64], borders: &[f64]) -> Vec<u8> {
    column.iter().map(|value| borders.partition_point(|border| border < value) as u8).collect()
}

/// Row weights as whole numbers, whose sums depend on no order.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    /// None when all are 1.
    of_row: Vec<u32>,
    /// What a weight of 1 counts.
    pub unit: f64,
}

/// What the largest of weights that are not whole counts.
const LARGEST: f64 = (1u32 << 20) as f64;

impl Counts {
    pub fn of(rows: &Rows) -> Self {
        Self::new(&rows.weights)
    }

    /// Whole weights count as they are; others as shares of the largest.
    pub fn new(weights: &[f64]) -> Self {
        if weights.iter().all(|weight| *weight == 1.0) {
            return Self { of_row: Vec::new(), unit: 1.0 };
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let whole = largest <= LARGEST && weights.iter().all(|weight| weight.fract() == 0.0);
        let unit = if whole { 1.0 } else { LARGEST / largest };
        Self { of_row: weights.iter().map(|weight| (weight * unit).round().max(1.0) as u32).collect(), unit }
    }

    pub fn get(&self, row: usize) -> u32 {
        self.of_row.get(row).copied().unwrap_or(1)
    }

    /// Whether a count is how often a row counts.
    pub fn is_whole(&self) -> bool {
        self.unit == 1.0
    }

    /// Some rows as often as they count, if that is not much longer; otherwise once each, which the second says.
    pub fn copies(&self, rows: &[u32]) -> (Vec<u32>, bool) {
        let total: u64 = rows.iter().map(|row| u64::from(self.get(*row as usize))).sum();
        if !self.is_whole() || total > 10 * rows.len() as u64 {
            return (rows.to_vec(), true);
        }
        (rows.iter().flat_map(|row| std::iter::repeat_n(*row, self.get(*row as usize) as usize)).collect(), false)
    }
}

/// Where bins end: between any two values if these are few, otherwise where about equal weights are reached.
fn borders(column: &[f64], is_null: impl Fn(usize) -> bool, counts: &Counts, most: usize, run: &Run) -> Result<Vec<f64>> {
    let known = || column.iter().enumerate().filter(|(row, _)| !is_null(*row));
    if let Some(values) = few(known().map(|(_, value)| *value), most) {
        return Ok(values.windows(2).map(|pair| between(pair[0], pair[1])).collect());
    }
    // Twice the keys to sort them, and the values that differ.
    let _lease = run.reserve(3 * column.len() * size_of::<(u64, u32)>())?;
    let mut keyed: Vec<(u64, u32)> = known().map(|(row, value)| (key(*value), counts.get(row))).collect();
    sort(&mut keyed, run)?;
    let mut values: Vec<(f64, u64)> = Vec::new();
    for same in keyed.chunk_by(|a, b| a.0 == b.0) {
        values.push((value(same[0].0), same.iter().map(|(_, count)| u64::from(*count)).sum()));
    }
    let mut left: u64 = values.iter().map(|(_, count)| count).sum();
    let (mut borders, mut filled) = (Vec::new(), 0);
    for pair in values.windows(2) {
        let ((low, count), (high, next)) = (pair[0], pair[1]);
        filled += count;
        let share = left / (most - borders.len()) as u64;
        // A value that fills a bin by itself does not share it with smaller ones.
        if borders.len() + 1 < most && (filled >= share || next >= share) {
            borders.push(between(low, high));
            left -= filled;
            filled = 0;
        }
    }
    Ok(borders)
}

/// The different values in order, if there are no more than `most`.
fn few(values: impl Iterator<Item = f64>, most: usize) -> Option<Vec<f64>> {
    const SLOTS: usize = 1024;
    let (mut slots, mut found) = (vec![None; SLOTS], Vec::new());
    let mut last = f64::NAN;
    for value in values {
        if value == last {
            continue;
        }
        last = value;
        let key = key(value);
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
        while slots[at].is_some_and(|other| other != key) {
            at = (at + 1) % SLOTS;
        }
        if slots[at].is_none() {
            if found.len() == most {
                return None;
            }
            slots[at] = Some(key);
            found.push(value);
        }
    }
    found.sort_unstable_by(f64::total_cmp);
    Some(found)
}

/// A number between two, and below the higher one.
fn between(low: f64, high: f64) -> f64 {
    let middle = low + (high - low) / 2.0;
    if middle < high { middle } else { low }
}

/// A whole number that stands in the order of its value.
pub(crate) fn key(value: f64) -> u64 {
    // -0 is 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The value of a key.
pub(crate) fn value(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

/// Sorts by keys, byte by byte, so that no single step takes long whatever the number of rows.
fn sort(keyed: &mut Vec<(u64, u32)>, run: &Run) -> Result<()> {
    let mut other = vec![(0, 0); keyed.len()];
    for byte in 0..8 {
        run.check()?;
        let digit = |key: u64| (key >> (8 * byte)) as usize & 255;
        let mut starts = [0usize; 256];
        keyed.iter().for_each(|(key, _)| starts[digit(*key)] += 1);
        if starts.contains(&keyed.len()) {
            continue;
        }
        let mut start = 0;
        for count in &mut starts {
            start += std::mem::replace(count, start);
        }
        for pair in keyed.iter() {
            let at = &mut starts[digit(pair.0)];
            other[*at] = *pair;
            *at += 1;
        }
        std::mem::swap(keyed, &mut other);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;
    use crate::testing::Table;

    fn bins(problem: &Problem, most: usize) -> std::sync::Arc<Bins> {
        problem.bins(most, &Run::default()).unwrap()
    }

    /// The codes of a feature in the order of the table's rows.
    fn codes(table: &Table, label: &[f64], most: usize, feature: usize) -> Vec<u8> {
        let binned = bins(&table.problem_of_rows(label), most);
        let mut codes = vec![0; label.len()];
        table.content_order(label).iter().zip(&binned.codes.of_feature[feature]).for_each(|(row, code)| codes[*row] = *code);
        codes
    }

    #[test]
    fn few_values_have_a_bin_each_and_null_has_its_own() {
        let table = Table::new().numbers("x", &[3.0, f64::NAN, 1.0, 2.0, 2.0]).text("t", &["b", "a", "c", "a", "b"]);
        let label = [0.0, 1.0, 2.0, 3.0, 4.0];
        let bins = bins(&table.problem_of_rows(&label), 255);
        assert_eq!(codes(&table, &label, 255, 0), [2, 3, 0, 1, 1]);
        assert_eq!(codes(&table, &label, 255, 1), [1, 0, 2, 0, 1]);
        assert_eq!((bins.features[0].bins, bins.features[0].null(), bins.features[0].is_ordered), (3, 3, true));
        assert_eq!((bins.features[1].bins, bins.features[1].is_ordered), (3, false));
    }

    /// The mean is a value of its own, though a NULL that was filled looks the same.
    #[test]
    fn null_is_not_the_mean() {
        let table = Table::new().numbers("x", &[1.0, 2.0, 3.0, f64::NAN]);
        assert_eq!(codes(&table, &[0.0, 1.0, 2.0, 3.0], 255, 0), [0, 1, 2, 3]);
    }

    #[test]
    fn many_values_are_cut_where_equal_weights_are_reached() {
        let values: Vec<f64> = (0..1000).map(|at| f64::from(at * 7919 % 1000)).collect();
        let binned = codes(&Table::new().numbers("x", &values), &values, 10, 0);
        for bin in 0..10 {
            assert_eq!(binned.iter().filter(|code| **code == bin).count(), 100);
        }
        let ordered = values.iter().zip(&binned).all(|(value, code)| *code == (value / 100.0) as u8);
        assert!(ordered);
        // Half of the rows have one value, which fills a bin alone.
        let heavy: Vec<f64> = values.iter().map(|value| if *value < 500.0 { *value } else { 600.0 }).collect();
        let binned = codes(&Table::new().numbers("x", &heavy), &values, 10, 0);
        let code = |row: usize| binned[row];
        let top = code(heavy.iter().position(|value| *value == 600.0).unwrap());
        assert!((0..1000).all(|row| (code(row) == top) == (heavy[row] == 600.0)));
    }

    /// A weight of 3 is a row seen three times, and the order of rows does not matter.
    #[test]
    fn weights_are_repetitions_and_order_does_not_matter() {
        let mut random = Run::new(3).random("bins", 0);
        let values: Vec<f64> = (0..700).map(|_| random.normal()).collect();
        let counts: Vec<usize> = (0..700).map(|_| 1 + random.below(4)).collect();
        let weighted = Table { weights: Some(counts.iter().map(|c| *c as f64).collect()), ..Table::new().numbers("x", &values) };
        let weighted = codes(&weighted, &values, 50, 0);
        let mut repeated: Vec<(f64, u8)> = Vec::new();
        for (row, count) in counts.iter().enumerate() {
            repeated.extend(vec![(values[row], weighted[row]); *count]);
        }
        random.shuffle(&mut repeated);
        let values: Vec<f64> = repeated.iter().map(|(value, _)| *value).collect();
        let codes = codes(&Table::new().numbers("x", &values), &values, 50, 0);
        assert_eq!(codes, repeated.iter().map(|(_, code)| *code).collect::<Vec<_>>());
    }

    #[test]
    fn rare_levels_share_the_last_bin() {
        let levels = ["a", "b", "b", "c", "c", "c", "d", "d", "d", "d"];
        let label: Vec<f64> = (0..10).map(f64::from).collect();
        let table = Table::new().text("t", &levels);
        let bins = bins(&table.problem_of_rows(&label), 3);
        assert_eq!(codes(&table, &label, 3, 0), [2, 2, 2, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(bins.features[0].bins, 3);
    }

    /// A text that is one level or NULL: its column is constant where it is known, and its bins differ.
    #[test]
    fn one_level_and_null_are_two_bins() {
        let mut table = Table::new().numbers("x", &[1.0, 2.0, 3.0]);
        let text = [Some("a".to_string()), None, Some("a".to_string())];
        table.columns.push(("t".into(), crate::testing::Column::Text(text.to_vec())));
        let bins = bins(&table.problem_of_rows(&[0.0, 1.0, 2.0]), 255);
        assert_eq!(codes(&table, &[0.0, 1.0, 2.0], 255, 1), [0, 1, 0]);
        assert!(bins.features[1].varies);
    }

    #[test]
    fn other_rows_get_the_bins_of_the_first() {
        let table = Table::new().numbers("x", &[1.0, 3.0, 5.0, 10.0, f64::NAN, 1.9]).text("t", &["a", "b", "a", "c", "b", "a"]);
        let (problem, others) = table.problem_and_others(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 3);
        let codes = bins(&problem, 255).codes_of(&others, &Run::default()).unwrap();
        // Codes of x and t, in the order of x: 1.9, 10 and NULL.
        let mut pairs: Vec<(u8, u8)> = codes.of_feature[0].iter().copied().zip(codes.of_feature[1].iter().copied()).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(0, 0), (2, 2), (3, 1)], "`c` was not seen, and goes with NULL");
    }

    #[test]
    fn a_table_is_cut_once() {
        let problem = Table::random(50, 2, 1).problem_of_rows(&(0..50).map(f64::from).collect::<Vec<_>>());
        let first = bins(&problem, 255);
        assert!(std::sync::Arc::ptr_eq(&first, &bins(&problem.among(&[1]), 255)));
        assert!(!std::sync::Arc::ptr_eq(&first, &bins(&problem, 16)));
    }

    #[test]
    fn keys_stand_in_the_order_of_values() {
        let values = [-1e100, -2.5, -1e-300, 0.0, 1e-300, 1.0, 1e100];
        assert!(values.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert!(values.iter().all(|x| value(key(*x)) == *x) && key(-0.0) == key(0.0));
    }
}
