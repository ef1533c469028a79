//! Moments of a table in parts, gathered in one pass: any sum of them is the moments of a part of the rows, so that folds and halves need no second reading.
//!
//! A row's part is drawn with a hash of its content. So it depends neither on the order of rows, nor on partitions, threads or the order of columns, and
//! rows that are equal are in one part, as a row of weight 2 is.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::reading::block::{Block, NO_LEVEL, Numbers, is_value};
use crate::reading::intake::filled;
use crate::reading::moments::Moments;
use crate::reading::order::{MISSING, mix};
use crate::reading::plan::{LabelKind, Plan};
use crate::run::{Run, hash};
use crate::{Error, Result};

/// How rows are dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting {
    /// How many parts there are.
    pub parts: usize,
    seed: u64,
}

/// Bytes that the moments of all parts may take of one thread.
const BYTES: usize = 64 << 20;
/// Parts from which halves are drawn: 64 have 10¹⁸ halves, and 16 still have 12,870.
const PARTS_OF_HALVES: Range<usize> = 16..64;
/// Parts of a fold: several, so that folds can be made of one size.
const PARTS_OF_A_FOLD: usize = 4;

impl Parting {
    /// Parts for so many folds of a table of so many columns.
    pub fn for_folds(folds: usize, columns: usize, seed: u64) -> Self {
        let most = BYTES / Self::bytes_of(columns);
        Self::new(folds * (most / folds).clamp(1, PARTS_OF_A_FOLD), seed)
    }

    /// Parts from which many halves can be drawn.
    pub fn for_halves(columns: usize, seed: u64) -> Self {
        Self::new((BYTES / Self::bytes_of(columns)).clamp(PARTS_OF_HALVES.start, PARTS_OF_HALVES.end), seed)
    }

    fn new(parts: usize, seed: u64) -> Self {
        Self { parts, seed: Run::new(seed).random("parts", 0).next_u64() }
    }

    /// About what the moments of one part take.
    fn bytes_of(columns: usize) -> usize {
        8 * (columns + 2) * (columns + 3)
    }

    fn part(&self, key: u64) -> u32 {
        ((u128::from(mix(key ^ self.seed)) * self.parts as u128) >> 64) as u32
    }
}

/// The moments of each part of a table, while it is read.
#[derive(Debug, Clone)]
pub struct PartedMoments {
    parting: Parting,
    parts: Vec<Moments>,
    waiting: Vec<Waiting>,
    /// The levels of each column that is text, the label first.
    names: Vec<BTreeMap<String, u32>>,
    /// For each column what tells its values from another's.
    seeds: Vec<u64>,
    order: Vec<u32>,
    keys: Vec<u64>,
    values: Vec<f64>,
}

/// Rows of a part that wait to be added up together.
#[derive(Debug, Clone, Default)]
struct Waiting {
    rows: usize,
    /// The label, then the features.
    columns: Vec<Column>,
    weights: Vec<f64>,
}

#[derive(Debug, Clone)]
enum Column {
    Numbers(Vec<f64>),
    Levels(Vec<u32>),
}

/// Rows that are added up together: adding a part's moments up costs as much as some hundred rows.
const TOGETHER: usize = 1024;

impl PartedMoments {
    pub fn new(plan: Plan, parting: Parting) -> Self {
        let is_text =
            [plan.label_kind == LabelKind::Class].into_iter().chain(plan.features.iter().map(|feature| feature.is_text));
        let columns: Vec<Column> =
            is_text.map(|is_text| if is_text { Column::Levels(Vec::new()) } else { Column::Numbers(Vec::new()) }).collect();
        let names = [plan.label.as_str()].into_iter().chain(plan.features.iter().map(|feature| feature.name.as_str()));
        let seeds: Vec<u64> = names.map(|name| mix(hash(name)) | 1).collect();
        let empty = Moments::new(plan);
        Self {
            parts: (0..parting.parts).map(|_| empty.fresh()).collect(),
            waiting: vec![Waiting { columns, ..Waiting::default() }; parting.parts],
            names: vec![BTreeMap::new(); seeds.len()],
            seeds,
            parting,
            order: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    pub fn plan(&self) -> &Plan {
        self.parts[0].plan()
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        let column = |column: &Column| match column {
            Column::Numbers(values) => values.capacity() * size_of::<f64>(),
            Column::Levels(codes) => codes.capacity() * size_of::<u32>(),
        };
        let waiting =
            |waiting: &Waiting| waiting.columns.iter().map(column).sum::<usize>() + waiting.weights.capacity() * size_of::<f64>();
        let names: usize = self.names.iter().map(|names| 64 * names.len()).sum();
        self.parts.iter().map(Moments::bytes).sum::<usize>() + self.waiting.iter().map(waiting).sum::<usize>() + names
    }

    /// Adds a run of rows, each to its part.
    pub fn update(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        assert_eq!(features.len(), self.plan().features.len(), "one block for each feature of the plan");
        self.keys.clear();
        self.keys.resize(rows, 0);
        for (block, seed) in [&label].into_iter().chain(features).zip(&self.seeds) {
            match block {
                Block::Numbers(numbers) => {
                    let values = filled(&mut self.values, *numbers, &(0..rows));
                    self.keys.iter_mut().zip(values).for_each(|(key, x)| *key = key.wrapping_add(number(*x).wrapping_mul(*seed)));
                }
                Block::Levels { codes, names } => {
                    let hashes: Vec<u64> = names.iter().map(|name| hash(name).wrapping_mul(*seed)).collect();
                    let of = |code: u32| hashes.get(code as usize).copied().unwrap_or(MISSING.wrapping_mul(*seed));
                    self.keys.iter_mut().zip(*codes).for_each(|(key, code)| *key = key.wrapping_add(of(*code)));
                }
            }
        }
        let starts = self.sort();
        for (at, block) in [&label].into_iter().chain(features).enumerate() {
            match block {
                Block::Numbers(numbers) => {
                    let values = filled(&mut self.values, *numbers, &(0..rows));
                    let taken: Vec<f64> = self.order.iter().map(|row| values[*row as usize]).collect();
                    for (waiting, rows) in self.waiting.iter_mut().zip(starts.windows(2)) {
                        let Column::Numbers(column) = &mut waiting.columns[at] else {
                            unreachable!("the plan fixes what is text")
                        };
                        column.extend_from_slice(&taken[rows[0]..rows[1]]);
                    }
                }
                Block::Levels { codes, names } => {
                    let known = &mut self.names[at];
                    let code = |name: &&str| match known.get(*name) {
                        Some(code) => *code,
                        None => {
                            known.insert(name.to_string(), known.len() as u32);
                            known.len() as u32 - 1
                        }
                    };
                    let map: Vec<u32> = names.iter().map(code).collect();
                    let code = |row: &u32| map.get(codes[*row as usize] as usize).copied().unwrap_or(NO_LEVEL);
                    let taken: Vec<u32> = self.order.iter().map(code).collect();
                    for (waiting, rows) in self.waiting.iter_mut().zip(starts.windows(2)) {
                        let Column::Levels(column) = &mut waiting.columns[at] else {
                            unreachable!("the plan fixes what is text")
                        };
                        column.extend_from_slice(&taken[rows[0]..rows[1]]);
                    }
                }
            }
        }
        if let Some(weights) = weights {
            let values = filled(&mut self.values, weights, &(0..rows));
            for (waiting, rows) in self.waiting.iter_mut().zip(starts.windows(2)) {
                waiting.weights.extend(self.order[rows[0]..rows[1]].iter().map(|row| values[*row as usize]));
            }
        }
        for (part, rows) in starts.windows(2).enumerate() {
            self.waiting[part].rows += rows[1] - rows[0];
            if self.waiting[part].rows >= TOGETHER {
                self.flush(part)?;
            }
        }
        Ok(())
    }

    /// Puts the rows of a run into the order of their parts, and returns where each part begins.
    fn sort(&mut self) -> Vec<usize> {
        let parts: Vec<u32> = self.keys.iter().map(|key| self.parting.part(*key)).collect();
        let mut starts = vec![0usize; self.parting.parts + 1];
        parts.iter().for_each(|part| starts[*part as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let mut next = starts.clone();
        self.order.resize(parts.len(), 0);
        for (row, part) in parts.iter().enumerate() {
            self.order[next[*part as usize]] = row as u32;
            next[*part as usize] += 1;
        }
        starts
    }

    /// Adds the rows up that wait for a part.
    fn flush(&mut self, part: usize) -> Result<()> {
        let waiting = &mut self.waiting[part];
        let rows = std::mem::take(&mut waiting.rows);
        if rows == 0 {
            return Ok(());
        }
        let names: Vec<Vec<&str>> = self
            .names
            .iter()
            .map(|names| {
                let mut by_code = vec![""; names.len()];
                names.iter().for_each(|(name, code)| by_code[*code as usize] = name);
                by_code
            })
            .collect();
        let block = |at: usize| match &waiting.columns[at] {
            Column::Numbers(values) => Block::Numbers(values),
            Column::Levels(codes) => Block::Levels { codes, names: &names[at] },
        };
        let features: Vec<Block<'_>> = (1..waiting.columns.len()).map(block).collect();
        let weights = (!waiting.weights.is_empty()).then_some(&waiting.weights as &dyn Numbers);
        self.parts[part].update(rows, block(0), weights, &features)?;
        waiting.weights.clear();
        waiting.columns.iter_mut().for_each(|column| match column {
            Column::Numbers(values) => values.clear(),
            Column::Levels(codes) => codes.clear(),
        });
        Ok(())
    }

    /// Adds what another pass over other rows has gathered.
    pub fn merge(&mut self, mut other: PartedMoments) -> Result<()> {
        if self.parting != other.parting {
            return Err(Error::call("parts that were drawn differently cannot be merged"));
        }
        for part in 0..self.parts.len() {
            self.flush(part)?;
            other.flush(part)?;
            self.parts[part].merge(&other.parts[part])?;
        }
        Ok(())
    }

    /// The moments of all rows, and those of each part.
    pub fn finish(mut self) -> Result<(Moments, Vec<Moments>)> {
        (0..self.parts.len()).try_for_each(|part| self.flush(part))?;
        let mut whole = self.parts[0].fresh();
        self.parts.iter().try_for_each(|part| whole.merge(part))?;
        Ok((whole, self.parts))
    }
}

/// A number's bits. The upper half is where small whole numbers differ, and a product with an odd number carries differences upwards only, so that it
/// is folded into the lower half.
fn number(x: f64) -> u64 {
    // 0 and −0 are equal.
    let bits = (x + 0.0).to_bits();
    if is_value(x) { bits ^ (bits >> 32) } else { MISSING }
}

#[cfg(test)]
mod tests;
