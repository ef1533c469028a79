use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::kernels::double::Double;
use crate::kernels::team::Team;
use crate::kernels::tiles::Tiles;
use crate::reading::block::{Block, NO_LEVEL, Numbers, is_out_of_range, is_value};
use crate::reading::plan::{Class, Plan};
use crate::reading::table::Seen;
use crate::{Error, Result};

mod bytes;
mod gram;
mod scratch;

pub(crate) use gram::CONSTANT;
pub use gram::Gram;
use scratch::Scratch;

/// Second moments of a table, gathered in one pass and mergeable: everything a linear selector needs.
///
/// The columns show themselves as the rows come: a NULL flag from a column's first NULL on, a column for each level
/// of a text, one for each class of the label. Before they appeared they were zero, so nothing is lost.
///
/// Within a batch every number is centred near its mean and summed in f64. Across batches the moments about an origin
/// (the first batch's centre) are summed as double-double numbers: their 32 digits outlast the change of origin when two passes are
/// merged and the centring at the end, even for timestamps in nanoseconds, and adding up in any order gives the same
/// answer, so that neither threads nor partitions show. Cutting the rows into other batches can move the last digit of a
/// sum, except of whole numbers, whose sums are exact.
#[derive(Debug, Clone)]
pub struct Moments {
    plan: Arc<Written>,
    columns: Vec<Column>,
    /// Moments about `origins`, the lower triangle row by row, so that a new column is a new row at the end.
    totals: Vec<Double>,
    /// What each number is measured from, once it has had a value. Flags are measured from 0.
    origins: Vec<Option<f64>>,
    seen: Seen,
    places: Places,
    scratch: Scratch,
}

/// Columns from which on a batch is worth waking another thread for.
const SHARED_COLUMNS: usize = 300;

/// One column of the moments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    One,
    Label,
    Class(Class),
    Number(usize),
    Null(usize),
    Level(usize, String),
}

/// Where each thing is among the columns. Derived from them.
#[derive(Debug, Clone, Default)]
struct Places {
    label: Option<usize>,
    /// `None` when classes are not counted, or were given up because an integer took too many values.
    classes: Option<BTreeMap<Class, usize>>,
    number: Vec<Option<usize>>,
    null: Vec<Option<usize>>,
    levels: Vec<BTreeMap<String, usize>>,
}

/// The plan, and how it is written, which many grams of one call share.
#[derive(Debug)]
struct Written {
    plan: Arc<Plan>,
    text: OnceLock<Vec<u8>>,
}

impl Moments {
    pub fn new(plan: impl Into<Arc<Plan>>) -> Self {
        let plan = plan.into();
        let mut columns = vec![Column::One];
        columns.extend(plan.keeps_number().then_some(Column::Label));
        let numbers = plan.features.iter().enumerate().filter(|(_, feature)| !feature.is_text);
        columns.extend(numbers.map(|(feature, _)| Column::Number(feature)));
        let seen = Seen { missing: vec![0; plan.features.len()], ..Seen::default() };
        let counts_classes = plan.counts_classes();
        Self::with_columns(Arc::new(Written { plan, text: OnceLock::new() }), columns, seen, counts_classes)
    }

    /// Nothing gathered yet, of the same columns.
    pub(crate) fn fresh(&self) -> Self {
        let empty = Self::new(Arc::clone(&self.plan.plan));
        Self { plan: Arc::clone(&self.plan), ..empty }
    }

    fn with_columns(plan: Arc<Written>, columns: Vec<Column>, seen: Seen, counts_classes: bool) -> Self {
        let places = Places::of(&columns, plan.plan.features.len(), counts_classes);
        Self { plan, columns, totals: Vec::new(), origins: Vec::new(), seen, places, scratch: Scratch::default() }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan.plan
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Bytes in use between batches. Nothing is allocated before the first row, so that an accountant sees all of it grow.
    pub fn bytes(&self) -> usize {
        self.totals.capacity() * size_of::<Double>() + self.columns.len() * 64
    }

    /// Adds a run of rows: its label, its weights, and one block for each feature.
    pub fn update(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        assert_eq!(features.len(), self.plan().features.len(), "one block for each feature of the plan");
        self.make_room(self.columns.len())?;
        if self.columns.len() < SHARED_COLUMNS {
            self.sum_up(rows, label, weights, features, None)?;
        } else {
            Team::gather(|team| self.sum_up(rows, label, weights, features, Some(team)))?;
        }
        self.fold();
        if self.scratch.classes_given_up {
            self.forget_classes();
        }
        // Made anew for each batch, which is nothing beside the batch, and much beside a group of many.
        self.scratch = Scratch::default();
        Ok(())
    }

    /// Packs the rows block by block, and adds up their products. A team helps: who reads is a thread of somebody else's, which must not wait
    /// for a pool.
    fn sum_up(
        &mut self,
        rows: usize,
        label: Block<'_>,
        weights: Option<&dyn Numbers>,
        features: &[Block<'_>],
        team: Option<&Team>,
    ) -> Result<()> {
        let mut codes = Codes::new(features);
        for start in (0..rows).step_by(Tiles::ROWS) {
            let block = Tiles::ROWS.min(rows - start);
            let scratch = &mut self.scratch;
            scratch.intake.keep(&self.plan.plan, start..start + block, label, weights, features, &mut self.seen)?;
            scratch.prepare();
            self.pack(start, block, label, features, &mut codes)?;
            match team {
                Some(team) => self.scratch.tiles.accumulate_shared(self.scratch.intake.kept.len(), team),
                None => self.scratch.tiles.accumulate(self.scratch.intake.kept.len()),
            }
        }
        Ok(())
    }

    /// Adds what another pass over other rows has gathered.
    pub fn merge(&mut self, other: &Moments) -> Result<()> {
        if !Arc::ptr_eq(&self.plan, &other.plan) && self.plan() != other.plan() {
            return Err(Error::call("grams of different columns, label or options cannot be merged"));
        }
        self.seen.add(&other.seen);
        if self.places.classes.is_some() && other.places.classes.is_none() {
            self.forget_classes();
        }
        let mut at = Vec::with_capacity(other.columns.len());
        for column in &other.columns {
            at.push(match column {
                Column::Class(_) if self.places.classes.is_none() => None,
                column => Some(self.place(column.clone())?),
            });
        }
        if self.places.classes.as_ref().is_some_and(|classes| classes.len() > self.plan().classes_max()) {
            if !self.plan().keeps_number() {
                return Err(self.plan().too_many_classes());
            }
            self.forget_classes();
            return self.merge_totals(other, &self.places_of(other));
        }
        self.merge_totals(other, &at)
    }

    fn places_of(&self, other: &Moments) -> Vec<Option<usize>> {
        other.columns.iter().map(|column| self.columns.iter().position(|mine| mine == column)).collect()
    }

    fn merge_totals(&mut self, other: &Moments, at: &[Option<usize>]) -> Result<()> {
        self.reserve(self.columns.len())?;
        if other.totals.is_empty() {
            return Ok(());
        }
        // Column of `other` for each of ours.
        let mut theirs = vec![None; self.columns.len()];
        at.iter().enumerate().for_each(|(theirs_at, mine)| {
            if let Some(mine) = mine {
                theirs[*mine] = Some(theirs_at)
            }
        });
        let origins: Vec<Option<f64>> = theirs.iter().map(|at| *other.origins.get((*at)?)?).collect();
        let sum = |i: usize, j: usize| match (theirs[i], theirs[j]) {
            (Some(i), Some(j)) => other.totals[entry(i, j)],
            _ => Double::default(),
        };
        self.add(&origins, |totals, shifts, nulls| fold(totals, sum, shifts, nulls));
        self.scratch = Scratch::default();
        Ok(())
    }

    /// Packs the kept rows of a block into the tiles.
    fn pack(&mut self, start: usize, block: usize, label: Block<'_>, features: &[Block<'_>], codes: &mut Codes) -> Result<()> {
        if self.scratch.intake.kept.is_empty() {
            return Ok(());
        }
        self.scratch.clear_flags(&self.columns);
        self.scratch.set_ones();
        self.pack_label(start, label, codes)?;
        for (feature, column) in features.iter().enumerate() {
            match *column {
                Block::Numbers(numbers) => self.pack_numbers(feature, start, block, numbers)?,
                Block::Levels { codes: levels, names } => self.pack_levels(feature, &levels[start..], names, codes)?,
            }
        }
        Ok(())
    }

    fn pack_label(&mut self, start: usize, label: Block<'_>, codes: &mut Codes) -> Result<()> {
        if let Some(column) = self.places.label {
            let Scratch { values, intake, .. } = &mut self.scratch;
            values[..intake.labels.len()].copy_from_slice(&intake.labels);
            self.scratch.set_numbers(column);
        }
        if self.places.classes.is_none() || self.scratch.classes_given_up {
            return Ok(());
        }
        for position in 0..self.scratch.intake.kept.len() {
            let row = self.scratch.intake.kept[position];
            let (class, code) = match label {
                Block::Numbers(_) => (None, self.scratch.intake.labels[row].to_bits()),
                Block::Levels { codes, names } => {
                    let code = codes[start + row];
                    (Some(names[code as usize]), u64::from(code))
                }
            };
            let column = match codes.label.get(&code) {
                Some(column) => *column,
                None => {
                    let class = match class {
                        Some(text) => Class::Text(text.to_string()),
                        None => Class::of_number(f64::from_bits(code)),
                    };
                    let column = self.place(Column::Class(class))?;
                    codes.label.insert(code, column);
                    if self.places.classes.as_ref().is_some_and(|classes| classes.len() > self.plan().classes_max()) {
                        if !self.plan().keeps_number() {
                            return Err(self.plan().too_many_classes());
                        }
                        self.scratch.classes_given_up = true;
                        return Ok(());
                    }
                    column
                }
            };
            self.scratch.flag(column, position);
        }
        Ok(())
    }

    fn pack_numbers(&mut self, feature: usize, start: usize, block: usize, numbers: &dyn Numbers) -> Result<()> {
        let column = self.places.number[feature].expect("a feature that is read as numbers has a column");
        numbers.fill(start, &mut self.scratch.values[..block]);
        if self.scratch.set_numbers(column) {
            return Ok(());
        }
        let null = self.place(Column::Null(feature))?;
        for position in 0..self.scratch.intake.kept.len() {
            let value = self.scratch.values[position];
            if !is_value(value) {
                self.scratch.flag(null, position);
                self.seen.missing[feature] += 1;
                self.seen.out_of_range += u64::from(is_out_of_range(value));
            }
        }
        Ok(())
    }

    fn pack_levels(&mut self, feature: usize, levels: &[u32], names: &[&str], codes: &mut Codes) -> Result<()> {
        for position in 0..self.scratch.intake.kept.len() {
            let code = levels[self.scratch.intake.kept[position]];
            let column = if code == NO_LEVEL {
                self.seen.missing[feature] += 1;
                self.place(Column::Null(feature))?
            } else {
                let known = codes.features[feature][code as usize];
                if known == UNKNOWN {
                    let column = self.place(Column::Level(feature, names[code as usize].to_string()))?;
                    codes.features[feature][code as usize] = column;
                    column
                } else {
                    known
                }
            };
            self.scratch.flag(column, position);
        }
        Ok(())
    }

    /// The index of a column, which is added if it is new.
    fn place(&mut self, column: Column) -> Result<usize> {
        if let Some(at) = self.places.find(&column) {
            return Ok(at);
        }
        let at = self.columns.len();
        if let Column::Level(feature, _) = &column
            && self.places.levels[*feature].len() == self.plan().max_levels
        {
            return Err(self.plan().too_many_levels(*feature));
        }
        self.make_room(at + 1)?;
        self.places.insert(&column, at);
        self.columns.push(column);
        Ok(at)
    }

    /// Grows the scratch space; the totals grow when a batch is folded in.
    fn make_room(&mut self, columns: usize) -> Result<()> {
        self.reserve(columns)?;
        self.scratch.tiles.grow(columns);
        Ok(())
    }

    fn reserve(&self, columns: usize) -> Result<()> {
        let bytes = triangle(columns) * size_of::<Double>() + Tiles::bytes_for(columns);
        if self.plan().bytes_max > 0 && bytes > self.plan().bytes_max {
            return Err(Error::limit(format!(
                "the second moments of {columns} columns need {} bytes and max_memory is {}; raise it, exclude columns, or set reads => 'rows'",
                bytes,
                self.plan().bytes_max
            )));
        }
        Ok(())
    }

    /// Adds the sums of the batch to the totals.
    fn fold(&mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        let mut centres = scratch.centres.clone();
        centres.resize(self.columns.len(), None);
        self.add(&centres, |totals, shifts, nulls| fold_tiles(totals, &scratch.tiles, shifts, nulls));
        self.scratch.classes_given_up = scratch.classes_given_up;
    }

    /// Adds moments about `centres` to the totals, which are about the origins.
    fn add(&mut self, centres: &[Option<f64>], fold: impl FnOnce(&mut [Double], &[Double], &[Option<usize>])) {
        self.totals.resize(triangle(self.columns.len()), Double::default());
        self.origins.resize(self.columns.len(), None);
        // A column's first centre becomes its origin: whatever was added before had no value in it.
        for (origin, centre) in self.origins.iter_mut().zip(centres) {
            *origin = origin.or(*centre);
        }
        let shift = |(centre, origin): (&Option<f64>, &Option<f64>)| match (centre, origin) {
            (Some(centre), Some(origin)) => Double::from(*centre) - Double::from(*origin),
            _ => Double::default(),
        };
        let shifts: Vec<Double> = centres.iter().zip(&self.origins).map(shift).collect();
        let nulls: Vec<Option<usize>> = self
            .columns
            .iter()
            .map(|column| match column {
                Column::Number(feature) => self.places.null[*feature],
                _ => None,
            })
            .collect();
        fold(&mut self.totals, &shifts, &nulls);
    }

    fn forget_classes(&mut self) {
        let kept: Vec<usize> = (0..self.columns.len()).filter(|i| !matches!(self.columns[*i], Column::Class(_))).collect();
        if !self.totals.is_empty() {
            // Columns that came with this merge have no totals yet: they stand at the end.
            let known = |i: &&usize| triangle(**i + 1) <= self.totals.len();
            let totals = kept.iter().take_while(known).enumerate().flat_map(|(n, i)| kept[..=n].iter().map(|j| entry(*i, *j)));
            self.totals = totals.map(|at| self.totals[at]).collect();
        }
        self.origins = kept.iter().filter_map(|i| self.origins.get(*i).copied()).collect();
        self.columns = kept.iter().map(|i| self.columns[*i].clone()).collect();
        self.places = Places::of(&self.columns, self.plan().features.len(), false);
        self.scratch = Scratch::default();
    }
}

/// Codes of this batch → columns, so that a text is looked up once and not once a row.
struct Codes {
    label: BTreeMap<u64, usize>,
    features: Vec<Vec<usize>>,
}

const UNKNOWN: usize = usize::MAX;

impl Codes {
    fn new(features: &[Block<'_>]) -> Self {
        let names = |block: &Block<'_>| match block {
            Block::Levels { names, .. } => vec![UNKNOWN; names.len()],
            Block::Numbers(_) => Vec::new(),
        };
        Self { label: BTreeMap::new(), features: features.iter().map(names).collect() }
    }
}

impl Places {
    fn of(columns: &[Column], features: usize, counts_classes: bool) -> Self {
        let mut places = Self {
            label: None,
            classes: counts_classes.then(BTreeMap::new),
            number: vec![None; features],
            null: vec![None; features],
            levels: vec![BTreeMap::new(); features],
        };
        columns.iter().enumerate().for_each(|(at, column)| places.insert(column, at));
        places
    }

    fn insert(&mut self, column: &Column, at: usize) {
        match column {
            Column::One => {}
            Column::Label => self.label = Some(at),
            Column::Class(class) => {
                self.classes.get_or_insert_default().insert(class.clone(), at);
            }
            Column::Number(feature) => self.number[*feature] = Some(at),
            Column::Null(feature) => self.null[*feature] = Some(at),
            Column::Level(feature, level) => {
                self.levels[*feature].insert(level.clone(), at);
            }
        }
    }

    fn find(&self, column: &Column) -> Option<usize> {
        match column {
            Column::One => Some(0),
            Column::Label => self.label,
            Column::Class(class) => self.classes.as_ref()?.get(class).copied(),
            Column::Number(feature) => self.number[*feature],
            Column::Null(feature) => self.null[*feature],
            Column::Level(feature, level) => self.levels[*feature].get(level).copied(),
        }
    }
}

const fn triangle(columns: usize) -> usize {
    columns * (columns + 1) / 2
}

const fn entry(i: usize, j: usize) -> usize {
    if i >= j { triangle(i) + j } else { triangle(j) + i }
}

/// [`fold`] for the sums of a batch, with the processor's exact products where it has them.
fn fold_tiles(totals: &mut [Double], tiles: &Tiles, shifts: &[Double], nulls: &[Option<usize>]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("fma") {
        #[target_feature(enable = "fma")]
        fn with_fma(totals: &mut [Double], tiles: &Tiles, shifts: &[Double], nulls: &[Option<usize>]) {
            fold(totals, |i, j| Double::from(tiles.sum(i, j)), shifts, nulls);
        }
        // SAFETY: the processor has the feature. With it an exact product is two instructions, not a call.
        return unsafe { with_fma(totals, tiles, shifts, nulls) };
    }
    fold(totals, |i, j| Double::from(tiles.sum(i, j)), shifts, nulls);
}

/// Adds moments about one point to totals about another, `shifts` away. With `p` = 1 where the value is there,
/// `x = z + c p` and `y = w + e q`, hence `Σ x y = Σ z w + c Σ p w + e Σ q z + c e Σ p q`.
#[inline(always)]
fn fold(totals: &mut [Double], sum: impl Fn(usize, usize) -> Double, shifts: &[Double], nulls: &[Option<usize>]) {
    // Σ over the rows in which column i is there, of column j.
    let present = |i: usize, j: usize| match nulls[i] {
        None => sum(0, j),
        Some(null) => sum(0, j) - sum(null, j),
    };
    let mut at = 0;
    for i in 0..shifts.len() {
        let c = shifts[i];
        for j in 0..=i {
            let e = shifts[j];
            let mut total = sum(i, j);
            if c.high != 0.0 {
                total += c * present(i, j);
            }
            if e.high != 0.0 {
                total += e * present(j, i);
                if c.high != 0.0 {
                    let both = match nulls[j] {
                        None => present(i, 0),
                        Some(null) => present(i, 0) - present(i, null),
                    };
                    total += c * e * both;
                }
            }
            totals[at] += total;
            at += 1;
        }
    }
}
