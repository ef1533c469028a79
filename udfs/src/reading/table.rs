//! A table that has been read: kept once, and shared by all the questions that are put to it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::reading::bins::Bins;
use crate::reading::levels::TextSeen;
use crate::reading::moments::Gram;
use crate::reading::plan::Plan;
use crate::reading::rows::Rows;
use crate::{Result, Run};

/// One column of the design: what the arithmetic sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DesignColumn {
    pub feature: usize,
    /// A number itself (not a level, not a NULL flag): its coefficient means something to the reader.
    pub is_number: bool,
}

/// Numbers, or the names of the classes in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    Numbers,
    Classes(Vec<String>),
}

impl Label {
    /// Columns that the label has in the arithmetic: two classes need only one.
    pub(crate) fn columns(&self) -> Range<usize> {
        match self {
            Label::Numbers => 0..1,
            Label::Classes(classes) if classes.len() == 2 => 1..2,
            Label::Classes(classes) => 0..classes.len(),
        }
    }
}

/// What was seen while reading.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Rows that count.
    pub rows: u64,
    /// Rows left out because the label was missing.
    pub rows_without_label: u64,
    /// Rows left out because the weight was missing or 0.
    pub rows_without_weight: u64,
    /// Rows left out by `nulls => 'drop'`.
    pub rows_with_null: u64,
    /// Rows that count and were not drawn, where a sample was asked for.
    #[serde(default)]
    pub not_drawn: u64,
    /// How many rows a sample was drawn from; 0 without one.
    #[serde(default)]
    pub sampled_from: u64,
    /// For each feature, the values that were missing.
    pub missing: Vec<u64>,
    /// How many of these were numbers beyond 1e100, whose squares could not be added up.
    #[serde(default)]
    pub out_of_range: u64,
    /// The texts by their features, once all rows have been seen.
    #[serde(default)]
    pub texts: BTreeMap<usize, TextSeen>,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Seen) {
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        add(&mut self.rows, other.rows);
        add(&mut self.rows_without_label, other.rows_without_label);
        add(&mut self.rows_without_weight, other.rows_without_weight);
        add(&mut self.rows_with_null, other.rows_with_null);
        add(&mut self.out_of_range, other.out_of_range);
        self.missing.iter_mut().zip(&other.missing).for_each(|(mine, theirs)| add(mine, *theirs));
    }

    /// Adds what was seen of rows that were not kept.
    pub(crate) fn add_unread(&mut self, other: &Seen) {
        self.rows_without_label += other.rows_without_label;
        self.rows_without_weight += other.rows_without_weight;
        self.rows_with_null += other.rows_with_null;
        (self.not_drawn, self.sampled_from) = (other.not_drawn, other.sampled_from);
    }

    /// Rows that were read and do not count.
    pub fn rows_dropped(&self) -> u64 {
        [self.rows_without_label, self.rows_without_weight, self.rows_with_null]
            .iter()
            .fold(0, |sum, rows| sum.saturating_add(*rows))
    }
}

/// A table that has been read, in one of two forms.
#[derive(Debug)]
pub enum Data {
    Gram(Gram),
    Rows(Rows),
}

/// The table itself: what was read, in one of its forms, and the names of its columns.
#[derive(Debug)]
pub struct Table {
    /// The names of the columns that units are made of.
    pub features: Vec<String>,
    pub data: Data,
    pub(super) column_keys: Vec<u64>,
    /// Its features cut into bins, by how many at most.
    pub(super) bins: Mutex<Vec<(usize, Arc<Bins>)>>,
}

impl Table {
    pub fn new(data: Data, plan: &Plan) -> Self {
        let features = plan.features.iter().map(|feature| feature.name.clone()).collect();
        let column_keys = column_keys(data.design(), plan);
        Self { features, data, column_keys, bins: Mutex::default() }
    }

    /// Moments of columns that were made up, under these names.
    pub(crate) fn of_gram(features: Vec<String>, gram: Gram) -> Self {
        let column_keys = gram.design.iter().map(|column| crate::run::hash(&features[column.feature])).collect();
        Self { features, data: Data::Gram(gram), column_keys, bins: Mutex::default() }
    }

    /// The features cut into at most `most` bins each, once for all who ask. No lock is held while they are cut: whoever waited for
    /// it might be the one who is to do the cutting.
    pub(crate) fn bins(&self, rows: &Rows, most: usize, run: &Run) -> Result<Arc<Bins>> {
        let known = || self.bins.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |all: &[(usize, Arc<Bins>)]| all.iter().find(|(of, _)| *of == most).map(|(_, bins)| Arc::clone(bins));
        if let Some(bins) = find(&known()) {
            return Ok(bins);
        }
        let bins = Arc::new(Bins::of(rows, &self.column_keys, most, run)?);
        let mut all = known();
        Ok(find(&all).unwrap_or_else(|| {
            all.push((most, Arc::clone(&bins)));
            bins
        }))
    }

    /// A number for a column of the design that depends on its name and not on its place.
    pub(crate) fn column_key(&self, column: usize) -> u64 {
        self.column_keys[column]
    }

    /// Whether the values of a column of the design differ.
    pub(crate) fn varies(&self, column: usize) -> bool {
        match &self.data {
            Data::Gram(gram) => gram.matrix[column * gram.design.len() + column] > 0.0,
            Data::Rows(rows) => rows.columns[column].iter().any(|value| *value != 0.0),
        }
    }
}

impl Data {
    pub(crate) fn design(&self) -> &[DesignColumn] {
        match self {
            Data::Gram(gram) => &gram.design,
            Data::Rows(rows) => &rows.design,
        }
    }

    pub(crate) fn label(&self) -> &Label {
        match self {
            Data::Gram(gram) => &gram.label,
            Data::Rows(rows) => &rows.label,
        }
    }

    pub fn seen(&self) -> &Seen {
        match self {
            Data::Gram(gram) => &gram.seen,
            Data::Rows(rows) => &rows.seen,
        }
    }

    /// Adds what was seen of rows that were not kept.
    pub fn add_unread(&mut self, unread: &Seen) {
        match self {
            Data::Gram(gram) => gram.seen.add_unread(unread),
            Data::Rows(rows) => rows.seen.add_unread(unread),
        }
    }

    pub(crate) fn label_varies(&self) -> bool {
        match self {
            Data::Gram(gram) => gram.label_varies(),
            Data::Rows(rows) => rows.label_varies(),
        }
    }
}

fn column_keys(design: &[DesignColumn], plan: &Plan) -> Vec<u64> {
    let mut keys: Vec<u64> = Vec::with_capacity(design.len());
    for (at, column) in design.iter().enumerate() {
        let follows = at > 0 && design[at - 1].feature == column.feature;
        keys.push(if follows { keys[at - 1].wrapping_add(1) } else { crate::run::hash(&plan.features[column.feature].name) });
    }
    keys
}
