use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::kernels::double::Double;
use crate::kernels::tiles::Tiles;
use crate::reading::levels::{Distinct, TextSeen};
use crate::reading::plan::{Class, Plan};
use crate::reading::table::Seen;
use crate::{Error, Result};

mod batch;
mod bytes;
mod gram;
mod scratch;
mod texts;

pub(crate) use gram::CONSTANT;
pub use gram::Gram;
use scratch::Scratch;

/// Second moments of a table, gathered in one pass and mergeable: everything a linear selector needs.
///
/// The columns show themselves as the rows come: a NULL flag from a column's first NULL on, a column for each level
/// of a text, one for each class of the label. Before they appeared they were zero, so nothing is lost. A row has one level of each text
/// and one class, so that only their products with the row's numbers and with each other are added, however many levels there are.
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
    /// Buckets of a text whose values are too many to be told apart.
    buckets: usize,
    /// Of each such text, how many different values there were.
    hashed: Vec<Option<Distinct>>,
    /// What was seen of texts, if it is settled which of their values have a column.
    texts: Option<BTreeMap<usize, TextSeen>>,
}

/// One column of the moments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    One,
    Label,
    Class(Class),
    Number(usize),
    Null(usize),
    Level(usize, String),
    /// Values of a text whose hash is the same.
    Bucket(usize, u32),
    /// Values of a text that have no column of their own, when all rows have been seen.
    Others(usize),
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
    buckets: Vec<BTreeMap<u32, usize>>,
    others: Vec<Option<usize>>,
    is_text: Vec<bool>,
    /// The columns that are numbers for every row, the first of them `One`. The others are 1 in the rows that they are about.
    lanes: Vec<usize>,
    /// The lane of each column.
    lane_of: Vec<Option<usize>>,
}

/// The plan, and how it is written, which many grams of one call share.
#[derive(Debug)]
struct Written {
    plan: Arc<Plan>,
    text: OnceLock<Vec<u8>>,
}

impl From<Plan> for Written {
    fn from(plan: Plan) -> Self {
        Self { plan: Arc::new(plan), text: OnceLock::new() }
    }
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
        let places = Places::of(&columns, &plan.plan, counts_classes);
        let (buckets, hashed) = (texts::buckets_at_first(&plan.plan), vec![None; plan.plan.features.len()]);
        let (totals, origins, scratch) = (Vec::new(), Vec::new(), Scratch::default());
        Self { plan, columns, totals, origins, seen, places, scratch, buckets, hashed, texts: None }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan.plan
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Bytes in use between batches. Nothing is allocated before the first row, so that an accountant sees all of it grow.
    pub fn bytes(&self) -> usize {
        let names = self.columns.len() * 64 + self.hashed.iter().flatten().map(Distinct::bytes).sum::<usize>();
        self.totals.capacity() * size_of::<Double>() + names
    }

    /// Adds what another pass over other rows has gathered.
    pub fn merge(&mut self, other: &Moments) -> Result<()> {
        if !Arc::ptr_eq(&self.plan, &other.plan) && self.plan() != other.plan() {
            return Err(Error::call("grams of different columns, label or options cannot be merged"));
        }
        let other = self.agree(other);
        self.seen.add(&other.seen);
        if self.places.classes.is_some() && other.places.classes.is_none() {
            self.forget_classes();
        }
        let mut at = Vec::with_capacity(other.columns.len());
        for column in &other.columns {
            at.push(match column {
                Column::Class(_) if self.places.classes.is_none() => None,
                column => Some(self.place(column.clone())),
            });
        }
        if self.places.classes.as_ref().is_some_and(|classes| classes.len() > self.plan().classes_max()) {
            if !self.plan().keeps_number() {
                return Err(self.plan().too_many_classes());
            }
            self.forget_classes();
            let at = self.places_of(&other);
            return self.merge_totals(&other, &at);
        }
        self.merge_totals(&other, &at)
    }

    fn places_of(&self, other: &Moments) -> Vec<Option<usize>> {
        other.columns.iter().map(|column| self.places.find(column)).collect()
    }

    fn merge_totals(&mut self, other: &Moments, at: &[Option<usize>]) -> Result<()> {
        self.reserve()?;
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
        let shifts = self.shifts(&origins);
        let null = |column: &Column| match column {
            Column::Number(feature) => self.places.null[*feature],
            _ => None,
        };
        let nulls: Vec<Option<usize>> = self.columns.iter().map(null).collect();
        fold(&mut self.totals, sum, &shifts, &nulls, entry);
        self.scratch = Scratch::default();
        Ok(())
    }

    /// The index of a column, which is added if it is new. The totals grow when something is added to them.
    fn place(&mut self, column: Column) -> usize {
        if let Some(at) = self.places.find(&column) {
            return at;
        }
        let at = self.columns.len();
        self.places.insert(&column, at);
        self.columns.push(column);
        at
    }

    /// Refuses columns whose moments would not fit.
    fn reserve(&self) -> Result<()> {
        let columns = self.columns.len();
        let bytes =
            triangle(columns).saturating_mul(size_of::<Double>()).saturating_add(Tiles::bytes_for(self.places.lanes.len()));
        let (most, which) = match self.plan().bytes_max {
            0 => (BYTES_MAX, "the most are"),
            bytes => (bytes, "max_memory is"),
        };
        if bytes <= most {
            return Ok(());
        }
        let raise = if self.plan().bytes_max > 0 { "raise it, " } else { "" };
        let instead = if self.plan().texts() > 0 {
            "lower max_levels, or exclude columns"
        } else {
            "exclude columns, or set reads => 'rows'"
        };
        Err(Error::limit(format!(
            "the second moments of {columns} columns need {bytes} bytes and {which} {most}; {raise}{instead}"
        )))
    }

    /// Makes room in the totals, and returns how far moments about `centres` have to be moved to be about the origins.
    fn shifts(&mut self, centres: &[Option<f64>]) -> Vec<Double> {
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
        centres.iter().zip(&self.origins).map(shift).collect()
    }

    fn forget_classes(&mut self) {
        self.regroup(|column| (!matches!(column, Column::Class(_))).then_some(Cow::Borrowed(column)));
        self.places.classes = None;
    }

    /// Lets columns become others, or go. Columns that become the same are added up: no row has two of them.
    fn regroup(&mut self, become_of: impl Fn(&Column) -> Option<Cow<'_, Column>>) {
        let mut columns: Vec<Column> = Vec::new();
        let mut known: BTreeMap<Column, usize> = BTreeMap::new();
        let at: Vec<Option<usize>> = self
            .columns
            .iter()
            .map(|column| {
                let column = become_of(column)?.into_owned();
                Some(*known.entry(column.clone()).or_insert_with(|| {
                    columns.push(column);
                    columns.len() - 1
                }))
            })
            .collect();
        if !self.totals.is_empty() {
            let mut totals = vec![Double::default(); triangle(columns.len())];
            // Columns that have just come have no totals yet: they stand at the end.
            let rows = (0..at.len()).take_while(|i| triangle(i + 1) <= self.totals.len());
            for (i, row) in rows.filter_map(|i| Some((i, at[i]?))) {
                for (j, column) in at[..=i].iter().enumerate() {
                    if let Some(column) = column.filter(|column| *column != row || i == j) {
                        totals[entry(row, column)] += self.totals[entry(i, j)];
                    }
                }
            }
            self.totals = totals;
        }
        let mut origins = vec![None; columns.len()];
        for (origin, at) in self.origins.iter().zip(&at) {
            if let Some(at) = at {
                origins[*at] = *origin;
            }
        }
        self.origins = origins;
        let classes = self.places.classes.is_some();
        self.places = Places::of(&columns, &self.plan.plan, classes);
        self.columns = columns;
    }
}

/// Most bytes of moments, unless the plan says otherwise: those of about 8,000 columns. Every partition has its own, and what is made of them takes as much again.
const BYTES_MAX: usize = 512 << 20;

impl Places {
    fn of(columns: &[Column], plan: &Plan, counts_classes: bool) -> Self {
        let features = plan.features.len();
        let mut places = Self {
            label: None,
            classes: counts_classes.then(BTreeMap::new),
            number: vec![None; features],
            null: vec![None; features],
            levels: vec![BTreeMap::new(); features],
            buckets: vec![BTreeMap::new(); features],
            others: vec![None; features],
            is_text: plan.features.iter().map(|feature| feature.is_text).collect(),
            lanes: Vec::new(),
            lane_of: Vec::new(),
        };
        columns.iter().enumerate().for_each(|(at, column)| places.insert(column, at));
        places
    }

    /// `at` is the place after the last.
    fn insert(&mut self, column: &Column, at: usize) {
        let is_lane = match column {
            Column::One | Column::Label | Column::Number(_) => true,
            Column::Null(feature) => !self.is_text[*feature],
            _ => false,
        };
        self.lane_of.push(is_lane.then_some(self.lanes.len()));
        self.lanes.extend(is_lane.then_some(at));
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
            Column::Bucket(feature, bucket) => {
                self.buckets[*feature].insert(*bucket, at);
            }
            Column::Others(feature) => self.others[*feature] = Some(at),
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
            Column::Bucket(feature, bucket) => self.buckets[*feature].get(bucket).copied(),
            Column::Others(feature) => self.others[*feature],
        }
    }
}

const fn triangle(columns: usize) -> usize {
    columns * (columns + 1) / 2
}

const fn entry(i: usize, j: usize) -> usize {
    if i >= j { triangle(i) + j } else { triangle(j) + i }
}

/// Adds moments about one point to totals about another, `shifts` away. With `p` = 1 where the value is there,
/// `x = z + c p` and `y = w + e q`, hence `Σ x y = Σ z w + c Σ p w + e Σ q z + c e Σ p q`.
/// `place` says where the total of two columns stands.
#[inline(always)]
fn fold(
    totals: &mut [Double],
    sum: impl Fn(usize, usize) -> Double,
    shifts: &[Double],
    nulls: &[Option<usize>],
    place: impl Fn(usize, usize) -> usize,
) {
    // Σ over the rows in which column i is there, of column j.
    let present = |i: usize, j: usize| match nulls[i] {
        None => sum(0, j),
        Some(null) => sum(0, j) - sum(null, j),
    };
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
            totals[place(i, j)] += total;
        }
    }
}
