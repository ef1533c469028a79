//! A whole table: its columns, its label, and what the one says of the other.

use std::collections::BTreeMap;

use crate::kernels::double::Double;
use crate::profile::association::{Labels, count};
use crate::profile::distinct::mixed;
use crate::profile::likeness::Likeness;
use crate::profile::values::{Cell, Gathered};
use crate::reading::bins;
use crate::reading::block::{Block, NO_LEVEL, is_value};
use crate::reading::plan::{Class, Plan};
use crate::run::hash;

/// Values of a number, and of a text, that are counted apart: in tables of many columns fewer, so that all of it stays small.
const NUMBERS_MOST: usize = 2048;
const TEXTS_MOST: usize = 16_384;
const CELLS_MOST: usize = 1 << 20;
/// Values that are taken together while they are in cache.
const CHUNK_VALUES: usize = 1 << 17;
const CHUNK_ROWS: usize = 4096;

/// What is gathered of a table.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub plan: Plan,
    pub rows: u64,
    pub columns: Vec<Column>,
    pub label: Option<OfLabel>,
    pub likeness: Likeness,
}

/// What is gathered of a feature.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub is_text: bool,
    pub gathered: Gathered,
    pub linear: Linear,
    /// The texts by their hashes, as long as each is counted apart.
    pub names: BTreeMap<u64, String>,
}

/// Sums over the rows that have both a number and a label that is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Linear {
    pub rows: u64,
    pub x: Double,
    pub y: Double,
    pub xx: Double,
    pub xy: Double,
    pub yy: Double,
}

/// What is gathered of the label.
#[derive(Debug, Clone)]
pub(crate) struct OfLabel {
    pub column: Column,
    /// The classes and their numbers; `None`: too many, or none at all.
    pub classes: Option<BTreeMap<Class, usize>>,
    pub keeps_number: bool,
    /// Sum of the squares.
    pub square: Double,
}

/// The label of some rows.
#[derive(Default)]
struct Answers {
    /// NaN: none.
    numbers: Vec<f64>,
    /// [`NO_LEVEL`]: none.
    classes: Vec<u32>,
}

impl Column {
    fn new(is_text: bool, columns: usize) -> Self {
        let most = if is_text { TEXTS_MOST } else { NUMBERS_MOST }.min((CELLS_MOST / columns.max(1)).max(64));
        Self { is_text, gathered: Gathered::new(most), linear: Linear::default(), names: BTreeMap::new() }
    }

    fn merge(&mut self, other: &Self, class: impl Fn(usize) -> usize + Copy) {
        self.gathered.merge(&other.gathered, class);
        self.linear.merge(&other.linear);
        self.names.extend(other.names.iter().map(|(hash, name)| (*hash, name.clone())));
        if !self.gathered.counted.is_exact() {
            self.names.clear();
        }
    }

    fn bytes(&self) -> usize {
        self.gathered.bytes() + self.names.values().map(|name| name.len() + 64).sum::<usize>()
    }
}

impl Linear {
    fn add(&mut self, x: f64, y: f64) {
        self.rows += 1;
        self.x += Double::from(x);
        self.y += Double::from(y);
        self.xx += Double::product(x, x);
        self.xy += Double::product(x, y);
        self.yy += Double::product(y, y);
    }

    fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.x += other.x;
        self.y += other.y;
        self.xx += other.xx;
        self.xy += other.xy;
        self.yy += other.yy;
    }

    /// Adjusted R² of the straight line.
    pub fn adjusted(&self) -> Option<f64> {
        if self.rows < 3 {
            return None;
        }
        let n = Double::from(self.rows as f64);
        let centred = |raw: Double, a: Double, b: Double| (raw - (a * b).divided_by(n)).value();
        let (xx, xy, yy) = (centred(self.xx, self.x, self.x), centred(self.xy, self.x, self.y), centred(self.yy, self.y, self.y));
        if xx <= 1e-20 * self.xx.value() || yy <= 1e-20 * self.yy.value() {
            return None;
        }
        let unexplained = (1.0 - xy / xx * (xy / yy)).max(0.0);
        Some((1.0 - unexplained * (self.rows - 1) as f64 / (self.rows - 2) as f64).max(0.0))
    }
}

impl Profile {
    pub fn new(plan: &Plan, has_label: bool) -> Self {
        let count = plan.features.len();
        let label = has_label.then(|| OfLabel {
            column: Column::new(plan.label_kind == crate::LabelKind::Class, count),
            classes: plan.counts_classes().then(BTreeMap::new),
            keeps_number: plan.keeps_number(),
            square: Double::default(),
        });
        let columns = plan.features.iter().map(|feature| Column::new(feature.is_text, count)).collect();
        Self { plan: plan.clone(), rows: 0, columns, label, likeness: Likeness::default() }
    }

    pub fn bytes(&self) -> usize {
        self.columns.iter().chain(self.label.iter().map(|label| &label.column)).map(Column::bytes).sum::<usize>()
            + self.likeness.bytes()
    }

    /// Adds some rows.
    pub fn push(&mut self, rows: usize, label: Option<Block<'_>>, features: &[Block<'_>]) {
        self.rows += rows as u64;
        let hashes: Vec<Vec<u64>> = features.iter().map(name_hashes).collect();
        let label_hashes = label.as_ref().map(name_hashes).unwrap_or_default();
        let chunk = (CHUNK_VALUES / features.len().max(1)).clamp(64, CHUNK_ROWS);
        let mut together = vec![0u64; features.len() * chunk];
        for start in (0..rows).step_by(chunk) {
            let count = chunk.min(rows - start);
            let mut of_rows = vec![0u64; count];
            let answers = match (&mut self.label, &label) {
                (Some(of_label), Some(block)) => {
                    let answers = of_label.read(&self.plan, block, start..start + count);
                    let mut own = vec![0; count];
                    of_label.column.gather(block, &label_hashes, start, &Answers::default(), &mut own);
                    of_rows.iter_mut().zip(&own).for_each(|(row, own)| *row = mixed(*own));
                    answers
                }
                _ => Answers::default(),
            };
            for (at, (column, block)) in self.columns.iter_mut().zip(features).enumerate() {
                let own = &mut together[at * chunk..at * chunk + count];
                column.gather(block, &hashes[at], start, &answers, own);
                let salt = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                of_rows.iter_mut().zip(own).for_each(|(row, own)| *row = row.wrapping_add(mixed(own.wrapping_add(salt))));
            }
            self.likeness.push(&of_rows, start, features);
            // A value counts with all that stands beside it in its row, so that columns are equal only row by row.
            for (at, column) in self.columns.iter_mut().enumerate() {
                let own = &together[at * chunk..at * chunk + count];
                let sum = own.iter().zip(&of_rows).fold(0u64, |sum, (own, row)| sum.wrapping_add(own.wrapping_mul(row | 1)));
                column.gathered.fingerprint = column.gathered.fingerprint.wrapping_add(sum);
            }
        }
        self.forget_classes();
    }

    /// With too many classes there are none.
    fn forget_classes(&mut self) {
        let Some(label) = &mut self.label else { return };
        if label.classes.as_ref().is_some_and(|classes| classes.len() > self.plan.classes_max()) {
            label.classes = None;
        }
        if label.classes.is_none() {
            for column in &mut self.columns {
                let gathered = &mut column.gathered;
                let cells = gathered.counted.cells.iter_mut().chain([&mut gathered.nulls]);
                cells.for_each(|cell| cell.labels.classes = Vec::new());
            }
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.likeness.merge(&other.likeness);
        let mut places = Vec::new();
        if let (Some(own), Some(theirs)) = (&mut self.label, &other.label) {
            own.square += theirs.square;
            own.column.merge(&theirs.column, |class| class);
            own.classes = match (own.classes.take(), &theirs.classes) {
                (Some(mut classes), Some(others)) => {
                    places = vec![0; others.len()];
                    for (class, at) in others {
                        let next = classes.len();
                        places[*at] = *classes.entry(class.clone()).or_insert(next);
                    }
                    Some(classes)
                }
                _ => None,
            };
        }
        for (own, theirs) in self.columns.iter_mut().zip(&other.columns) {
            own.merge(theirs, |class| places.get(class).copied().unwrap_or(0));
        }
        self.forget_classes();
    }
}

/// A hash for each name of a text.
fn name_hashes(block: &Block<'_>) -> Vec<u64> {
    match block {
        Block::Levels { names, .. } => names.iter().map(|name| mixed(hash(name))).collect(),
        Block::Numbers(_) => Vec::new(),
    }
}

impl OfLabel {
    /// The labels of some rows.
    fn read(&mut self, plan: &Plan, block: &Block<'_>, range: std::ops::Range<usize>) -> Answers {
        let mut answers = Answers::default();
        let mut class = |class: Class| match &mut self.classes {
            // One too many is enough to know.
            Some(classes) if classes.len() <= plan.classes_max() => {
                let next = classes.len();
                *classes.entry(class).or_insert(next) as u32
            }
            _ => NO_LEVEL,
        };
        match block {
            Block::Numbers(numbers) => {
                let mut values = vec![0.0; range.len()];
                numbers.fill(range.start, &mut values);
                values.iter_mut().filter(|value| !is_value(**value)).for_each(|value| *value = f64::NAN);
                let of = |value: &f64| if value.is_nan() { NO_LEVEL } else { class(Class::of_number(*value)) };
                if plan.counts_classes() {
                    answers.classes = values.iter().map(of).collect();
                }
                if self.keeps_number {
                    let known = values.iter().filter(|value| !value.is_nan());
                    self.square = known.fold(self.square, |sum, value| sum + Double::product(*value, *value));
                    answers.numbers = values;
                }
            }
            Block::Levels { codes, names } => {
                let codes = &codes[range];
                let mut places: Vec<Option<u32>> = vec![None; names.len()];
                let mut place = |code: u32| match places.get(code as usize) {
                    None => NO_LEVEL,
                    Some(Some(place)) => *place,
                    Some(None) => {
                        let found = class(Class::Text(names[code as usize].to_string()));
                        places[code as usize] = Some(found);
                        found
                    }
                };
                answers.classes = codes.iter().map(|code| place(*code)).collect();
            }
        }
        answers
    }
}

impl Answers {
    fn add(&self, row: usize, labels: &mut Labels) {
        let number = self.numbers.get(row).copied().filter(|number| !number.is_nan());
        let class = self.classes.get(row).copied().filter(|class| *class != NO_LEVEL);
        if number.is_none() && class.is_none() {
            return;
        }
        labels.rows += 1;
        if let Some(number) = number {
            labels.sum += Double::from(number);
        }
        if let Some(class) = class {
            count(&mut labels.classes, class as usize, 1);
        }
    }
}

/// The hash of NULL.
const NULL: u64 = 0x5851_f42d_4c95_7f2d;

impl Column {
    /// Adds some rows, and writes the hash of each value.
    fn gather(&mut self, block: &Block<'_>, name_hashes: &[u64], start: usize, answers: &Answers, hashes: &mut [u64]) {
        let Self { gathered, linear, names: known, .. } = self;
        let add = |cell: &mut Cell, row: usize| {
            cell.rows += 1;
            answers.add(row, &mut cell.labels);
        };
        match block {
            Block::Numbers(numbers) => {
                let mut values = vec![0.0; hashes.len()];
                numbers.fill(start, &mut values);
                for (row, (value, hash)) in values.iter().zip(hashes).enumerate() {
                    if !is_value(*value) {
                        *hash = NULL;
                        add(&mut gathered.nulls, row);
                        continue;
                    }
                    let key = bins::key(*value);
                    *hash = mixed(key);
                    gathered.distinct.add(*hash);
                    add(gathered.counted.cell(key), row);
                    gathered.sum += Double::from(*value);
                    gathered.square += Double::product(*value, *value);
                    gathered.least = gathered.least.min(*value);
                    gathered.greatest = gathered.greatest.max(*value);
                    gathered.is_whole &= value.fract() == 0.0;
                    if let Some(label) = answers.numbers.get(row).filter(|label| !label.is_nan()) {
                        linear.add(*value, *label);
                    }
                }
            }
            Block::Levels { codes, names } => {
                for (row, (code, hash)) in codes[start..].iter().zip(hashes).enumerate() {
                    let Some(own) = name_hashes.get(*code as usize) else {
                        *hash = NULL;
                        add(&mut gathered.nulls, row);
                        continue;
                    };
                    *hash = *own;
                    gathered.distinct.add(*own);
                    let cell = gathered.counted.cell(*own);
                    let is_new = cell.rows == 0;
                    add(cell, row);
                    if is_new && gathered.counted.is_exact() {
                        known.insert(*own, names[*code as usize].to_string());
                    }
                }
                if !gathered.counted.is_exact() {
                    known.clear();
                }
            }
        }
    }
}
