//! Some of a table's rows, drawn by their content: neither their order, nor partitions, threads or the order of columns show in who is drawn.
//!
//! Every row that counts has a number, made of its label, its features and the seed, and the rows of the smallest numbers are drawn. Rows that are equal have one number, so that
//! they are drawn together or not at all; what is kept is one of them with the weights of all. So a table of few different rows is kept as a whole, however long it is, and a
//! weight of 2 is a row seen twice here too.

use std::collections::BTreeMap;

use crate::reading::block::{Block, Numbers};
use crate::reading::intake::{Intake, filled};
use crate::reading::order::{Hash, MISSING, add, mix, number};
use crate::reading::plan::Plan;
use crate::reading::rows::{Rows, RowsBuilder};
use crate::reading::table::Seen;
use crate::run::{Run, hash};
use crate::{Error, Result};

/// Which rows are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// How many different rows, at most.
    pub rows: usize,
    seed: u64,
}

impl Draw {
    pub fn new(rows: usize, seed: u64) -> Self {
        Self { rows, seed: Run::new(seed).random("sample", 0).next_u64() }
    }

    /// The number of each row.
    fn keys(&self, plan: &Plan, rows: usize, label: Block<'_>, features: &[Block<'_>]) -> Vec<Hash> {
        let names = [plan.label.as_str()].into_iter().chain(plan.features.iter().map(|feature| feature.name.as_str()));
        let keys = content_keys(names.zip([&label].into_iter().chain(features)), rows);
        keys.into_iter().map(|[a, b]| [mix(a ^ self.seed), b]).collect()
    }

    /// Who is drawn of some rows of a table of `all`, where none can be kept to be compared: about as many as are asked for, with all that are equal to them.
    pub fn streamed(&self, all: u64, plan: &Plan, rows: usize, label: Block<'_>, features: &[Block<'_>]) -> Vec<bool> {
        let share = self.rows as f64 / all.max(1) as f64;
        let limit = if share >= 1.0 { u64::MAX } else { (share * u64::MAX as f64) as u64 };
        self.keys(plan, rows, label, features).into_iter().map(|[key, _]| key <= limit).collect()
    }
}

/// A number for each row that equal rows share, whatever the order of the columns.
fn content_keys<'a>(columns: impl Iterator<Item = (&'a str, &'a Block<'a>)>, rows: usize) -> Vec<Hash> {
    let (mut keys, mut values) = (vec![[0; 2]; rows], Vec::new());
    for (name, block) in columns {
        let seed = mix(hash(name));
        match block {
            Block::Numbers(numbers) => {
                let values = filled(&mut values, *numbers, &(0..rows));
                // 0 and −0 are equal.
                keys.iter_mut().zip(values).for_each(|(key, x)| add(key, number(*x + 0.0), seed));
            }
            Block::Levels { codes, names } => {
                let hashes: Vec<u64> = names.iter().map(|name| hash(name)).collect();
                let of = |code: u32| hashes.get(code as usize).copied().unwrap_or(MISSING);
                keys.iter_mut().zip(*codes).for_each(|(key, code)| add(key, of(*code), seed));
            }
        }
    }
    keys
}

/// The rows drawn so far, while a table is read.
#[derive(Debug, Clone)]
pub struct Sampled {
    draw: Draw,
    plan: Plan,
    kept: RowsBuilder,
    keys: Vec<Hash>,
    weights: Vec<f64>,
    /// How many rows each of them stands for.
    counts: Vec<u64>,
    place: BTreeMap<Hash, u32>,
    /// Numbers from here on are not drawn any more.
    limit: Option<Hash>,
    seen: Seen,
    intake: Intake,
}

/// Rows that are read beyond those asked for before the last are dropped: often enough to stay small, seldom enough to cost nothing.
const SLACK: usize = 4096;
/// What a row takes beside its values.
const ROW_BYTES: usize = 80;

impl Sampled {
    pub fn new(plan: Plan, draw: Draw) -> Self {
        let seen = Seen { missing: vec![0; plan.features.len()], ..Seen::default() };
        let kept = RowsBuilder::with_all_names(plan.clone());
        let (keys, weights, counts, place, limit, intake) = Default::default();
        Self { draw, plan, kept, keys, weights, counts, place, limit, seen, intake }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.kept.bytes() + ROW_BYTES * self.keys.capacity()
    }

    /// Bytes that [`Self::finish`] will need on top.
    pub fn finish_bytes(&self) -> usize {
        self.kept.finish_bytes() + ROW_BYTES * self.keys.len()
    }

    /// Looks at a run of rows, and keeps those that are drawn so far.
    pub fn push(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        assert_eq!(features.len(), self.plan.features.len(), "one block for each feature of the plan");
        self.intake.keep(&self.plan, 0..rows, label, weights, features, &mut self.seen)?;
        let keys = self.draw.keys(&self.plan, rows, label, features);
        let mut fresh = Vec::new();
        for (at, row) in self.intake.kept.iter().enumerate() {
            let (key, weight) = (keys[*row], self.intake.weights.get(at).copied().unwrap_or(1.0));
            if self.limit.is_some_and(|limit| key >= limit) {
                continue;
            }
            let place = *self.place.entry(key).or_insert_with(|| {
                fresh.push(*row);
                self.keys.push(key);
                self.weights.push(0.0);
                self.counts.push(0);
                (self.keys.len() - 1) as u32
            }) as usize;
            self.weights[place] += weight;
            self.counts[place] += 1;
        }
        let columns: Vec<Taken<'_>> = [&label].into_iter().chain(features).map(|block| Taken::new(block, rows, &fresh)).collect();
        let blocks: Vec<Block<'_>> = columns.iter().map(Taken::block).collect();
        self.kept.push(fresh.len(), blocks[0], None, &blocks[1..])?;
        if self.keys.len() > 2 * self.draw.rows + SLACK { self.prune() } else { Ok(()) }
    }

    /// Drops all rows but those of the smallest numbers.
    fn prune(&mut self) -> Result<()> {
        if self.keys.len() <= self.draw.rows {
            return Ok(());
        }
        let mut keys = self.keys.clone();
        let (_, limit, _) = keys.select_nth_unstable(self.draw.rows);
        let limit = *limit;
        self.limit = Some(limit);
        self.retain(|key| key < limit);
        Ok(())
    }

    fn retain(&mut self, is_kept: impl Fn(Hash) -> bool) {
        let kept: Vec<usize> = (0..self.keys.len()).filter(|at| is_kept(self.keys[*at])).collect();
        self.kept.retain(&kept);
        self.keys = kept.iter().map(|at| self.keys[*at]).collect();
        self.weights = kept.iter().map(|at| self.weights[*at]).collect();
        self.counts = kept.iter().map(|at| self.counts[*at]).collect();
        self.place = self.keys.iter().copied().zip(0..).collect();
    }

    /// Adds what was drawn from other rows of the same table.
    pub fn merge(&mut self, mut other: Sampled) -> Result<()> {
        if self.draw != other.draw {
            return Err(Error::call("samples that were drawn differently cannot be merged"));
        }
        self.seen.add(&other.seen);
        self.limit = match (self.limit, other.limit) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        for (at, key) in other.keys.iter().enumerate() {
            if let Some(place) = self.place.get(key) {
                self.weights[*place as usize] += other.weights[at];
                self.counts[*place as usize] += other.counts[at];
            }
        }
        let (place, limit) = (std::mem::take(&mut self.place), self.limit);
        other.retain(|key| !place.contains_key(&key) && limit.is_none_or(|limit| key < limit));
        self.kept.append(other.kept);
        self.keys.extend(other.keys);
        self.weights.extend(other.weights);
        self.counts.extend(other.counts);
        self.retain(|key| limit.is_none_or(|limit| key < limit));
        self.prune()
    }

    /// The rows drawn, ready to be put back together with others.
    pub fn into_builder(mut self) -> Result<(RowsBuilder, Seen)> {
        self.prune()?;
        let drawn: u64 = self.counts.iter().sum();
        let is_weighted = self.plan.weighted || self.weights.iter().any(|weight| *weight != 1.0);
        let Self { mut kept, weights, mut seen, .. } = self;
        if is_weighted {
            kept.weigh(weights);
        }
        (seen.sampled_from, seen.not_drawn) = (seen.rows, seen.rows - drawn);
        Ok((kept, seen))
    }

    pub fn finish(self) -> Result<Rows> {
        let (kept, seen) = self.into_builder()?;
        let mut rows = kept.finish()?;
        rows.seen.add_unread(&seen);
        Ok(rows)
    }
}

/// Some values of a column, as a block again.
enum Taken<'a> {
    Numbers(Vec<f64>),
    Levels(Vec<u32>, Vec<&'a str>),
}

impl<'a> Taken<'a> {
    fn new(block: &Block<'a>, rows: usize, taken: &[usize]) -> Self {
        match block {
            Block::Numbers(numbers) => {
                let mut values = Vec::new();
                let values = filled(&mut values, *numbers, &(0..rows));
                Taken::Numbers(taken.iter().map(|row| values[*row]).collect())
            }
            Block::Levels { codes, names } => {
                // Only the names that are used: those of an id would be as many as there are rows.
                let mut of = vec![u32::MAX; names.len()];
                let mut used = Vec::new();
                let mut code = |code: u32| match of.get(code as usize).copied() {
                    None => code,
                    Some(u32::MAX) => {
                        of[code as usize] = used.len() as u32;
                        used.push(names[code as usize]);
                        used.len() as u32 - 1
                    }
                    Some(known) => known,
                };
                let codes = taken.iter().map(|row| code(codes[*row])).collect();
                Taken::Levels(codes, used)
            }
        }
    }

    fn block(&self) -> Block<'_> {
        match self {
            Taken::Numbers(values) => Block::Numbers(values),
            Taken::Levels(codes, names) => Block::Levels { codes, names },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    fn sample(table: &Table, label: &[f64], most: usize, ranges: &[std::ops::Range<usize>]) -> Rows {
        let draw = Draw::new(most, 7);
        let parts = ranges.iter().map(|range| {
            let mut part = Sampled::new(table.plan(), draw);
            // In runs, as a reader hands them over.
            for start in range.clone().step_by(100) {
                let run = start..range.end.min(start + 100);
                table.feed(label, run, |rows, label, weights, features| part.push(rows, label, weights, features)).unwrap();
            }
            part
        });
        let mut whole = Sampled::new(table.plan(), draw);
        parts.for_each(|part| whole.merge(part).unwrap());
        whole.finish().unwrap()
    }

    fn mixed(rows: usize) -> (Table, Vec<f64>) {
        let table = Table::random(rows, 2, 5);
        let names: Vec<String> = (0..rows).map(|row| format!("n{}", row % 17)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let label = table.column(1).to_vec();
        (table.text("name", &names), label)
    }

    #[test]
    fn neither_order_nor_partitions_nor_columns_show() {
        let (table, label) = mixed(20_000);
        let one = sample(&table, &label, 500, std::slice::from_ref(&(0..20_000)));
        assert_eq!((one.rows(), one.seen.sampled_from, one.seen.not_drawn), (500, 20_000, 19_500));
        assert!(one.weights.is_empty());
        let three = sample(&table, &label, 500, &[9000..20_000, 0..4000, 4000..9000]);
        assert_eq!((&one.targets, &one.columns), (&three.targets, &three.columns));
        let permuted = sample(&table.permuted(&[2, 1, 0]), &label, 500, std::slice::from_ref(&(0..20_000)));
        assert_eq!(one.targets, permuted.targets);
    }

    /// The draw is blind: what is drawn has the mean of all, and every seed draws others.
    #[test]
    fn what_is_drawn_is_a_fair_sample() {
        let (table, label) = mixed(20_000);
        let rows = sample(&table, &label, 2000, std::slice::from_ref(&(0..20_000)));
        let mean = rows.targets.iter().sum::<f64>() / 2000.0;
        let all = label.iter().sum::<f64>() / 20_000.0;
        assert!((mean - all).abs() < 4.0 / 2000f64.sqrt(), "{mean} {all}");
    }

    #[test]
    fn equal_rows_are_one_with_their_weights() {
        let x: Vec<f64> = (0..3000).map(|row| f64::from(row % 30)).collect();
        let table = Table::new().numbers("x", &x);
        let all = sample(&table, &x, 50, &[0..1000, 1000..3000]);
        assert_eq!((all.rows(), all.weight(), all.seen.not_drawn), (30, 3000.0, 0));
        let some = sample(&table, &x, 10, std::slice::from_ref(&(0..3000)));
        assert_eq!((some.rows(), some.weight(), some.seen.not_drawn), (10, 1000.0, 2000));
        let mut weighted = Table::new().numbers("x", &x[..30]);
        weighted.weights = Some(vec![100.0; 30]);
        let weighted = sample(&weighted, &x[..30], 10, std::slice::from_ref(&(0..30)));
        assert_eq!((&some.targets, &some.weights), (&weighted.targets, &weighted.weights), "a weight is a repetition");
    }

    #[test]
    fn rows_that_do_not_count_are_not_drawn() {
        let (table, mut label) = mixed(1000);
        label.iter_mut().step_by(2).for_each(|y| *y = f64::NAN);
        let rows = sample(&table, &label, 100, std::slice::from_ref(&(0..1000)));
        assert_eq!((rows.rows(), rows.seen.rows_without_label, rows.seen.sampled_from), (100, 500, 500));
    }

    #[test]
    fn a_stream_is_thinned_to_about_as_many() {
        let (table, label) = mixed(20_000);
        let draw = Draw::new(2000, 7);
        let of = |all: u64| {
            let plan = table.plan();
            let drawn =
                table.feed(&label, 0..20_000, |rows, label, _, features| draw.streamed(all, &plan, rows, label, features));
            drawn.into_iter().filter(|drawn| *drawn).count()
        };
        assert!((1800..2200).contains(&of(20_000)), "{}", of(20_000));
        assert_eq!(of(1000), 20_000, "fewer than are asked for are all drawn");
    }
}
