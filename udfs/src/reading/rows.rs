use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rayon::prelude::*;

use crate::Result;
use crate::reading::block::{Block, NO_LEVEL, Numbers, is_out_of_range, is_value};
use crate::reading::coding::{Coding, NO_COLUMN, Origin};
use crate::reading::flags::Flags;
use crate::reading::intake::Intake;
use crate::reading::levels::{Fate, TextSeen, fate};
use crate::reading::names::Names;
use crate::reading::order::{self, Content};
use crate::reading::pieces::Pieces;
use crate::reading::plan::{Class, Plan};
use crate::reading::table::{DesignColumn, Label, Seen};
use crate::settings::common::Nulls;
use centre::centre;

mod centre;
mod kept;

/// Gathers rows as they come, column by column.
#[derive(Debug, Clone)]
pub struct RowsBuilder {
    plan: Plan,
    rows: usize,
    label: Raw,
    weights: Pieces<f64>,
    features: Vec<Raw>,
}

/// A column as it was read. NaN and [`NO_LEVEL`] are "no value".
#[derive(Debug, Clone)]
enum Raw {
    Numbers(Pieces<f64>),
    Levels { codes: Pieces<u32>, names: Names },
}

/// The rows of a table: every column of the design filled, and centred at its weighted mean.
#[derive(Debug, Clone)]
pub struct Rows {
    pub design: Vec<DesignColumn>,
    pub label: Label,
    pub seen: Seen,
    /// How each column of the design was made from the input.
    pub origins: Vec<Origin>,
    /// `columns[j][row]`; a constant column is all zeros.
    pub columns: Vec<Vec<f64>>,
    /// The label's columns: the number, or one of zeros and ones for each class (for two: of the second alone), centred.
    pub labels: Vec<Vec<f64>>,
    /// The label of each row: the number, or the position of the class.
    pub targets: Vec<f64>,
    /// One for each row; empty when all are 1.
    pub weights: Vec<f64>,
    /// For each feature of the table, the rows in which it was NULL before it was filled.
    pub nulls: Vec<Flags>,
}

impl Rows {
    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    pub fn weight(&self) -> f64 {
        if self.weights.is_empty() { self.rows() as f64 } else { self.weights.iter().sum() }
    }

    /// Some of the rows. They stay measured against all.
    pub(crate) fn take(&self, rows: &[usize]) -> Self {
        let take = |values: &Vec<f64>| -> Vec<f64> { rows.iter().filter_map(|row| values.get(*row)).copied().collect() };
        Self {
            design: self.design.clone(),
            label: self.label.clone(),
            seen: Seen { rows: rows.len() as u64, ..self.seen.clone() },
            origins: self.origins.clone(),
            columns: self.columns.iter().map(take).collect(),
            labels: self.labels.iter().map(take).collect(),
            targets: take(&self.targets),
            weights: take(&self.weights),
            nulls: self.nulls.iter().map(|nulls| nulls.take(rows.iter().copied())).collect(),
        }
    }

    /// Some of the rows, filled and centred by their own means, and others measured against them.
    pub(crate) fn part(&self, own: &[usize], others: &[usize]) -> (Self, Option<Self>) {
        let both: Vec<usize> = own.iter().chain(others).copied().collect();
        let mut part = self.take(&both);
        for (origin, column) in part.origins.iter_mut().zip(&mut part.columns) {
            origin.mean += centre(column, own.len(), &part.weights);
        }
        part.labels.iter_mut().for_each(|label| {
            centre(label, own.len(), &part.weights);
        });
        let held_out = (!others.is_empty()).then(|| part.split_off(own.len()));
        part.seen.rows = own.len() as u64;
        (part, held_out)
    }

    /// Parts with the rows from `at` on.
    fn split_off(&mut self, at: usize) -> Self {
        let split = |columns: &mut Vec<Vec<f64>>| columns.iter_mut().map(|column| column.split_off(at)).collect();
        let parts = |range: Range<usize>| self.nulls.iter().map(|nulls| nulls.take(range.clone())).collect();
        let (own_nulls, nulls) = (parts(0..at), parts(at..self.targets.len()));
        self.nulls = own_nulls;
        let (columns, labels, targets) = (split(&mut self.columns), split(&mut self.labels), self.targets.split_off(at));
        let weights = if self.weights.is_empty() { Vec::new() } else { self.weights.split_off(at) };
        let seen = Seen { rows: targets.len() as u64, ..Seen::default() };
        let (design, label, origins) = (self.design.clone(), self.label.clone(), self.origins.clone());
        Self { design, label, seen, origins, columns, labels, targets, weights, nulls }
    }

    pub(crate) fn label_varies(&self) -> bool {
        self.labels.iter().flatten().any(|value| *value != 0.0)
    }
}

impl RowsBuilder {
    pub fn new(plan: Plan) -> Self {
        let raw = |is_text: bool, names: Names| {
            if is_text { Raw::Levels { codes: Pieces::default(), names } } else { Raw::Numbers(Pieces::default()) }
        };
        let features = plan.features.iter().map(|feature| raw(feature.is_text, Names::default())).collect();
        let label = raw(plan.label_kind == crate::LabelKind::Class, Names::endless());
        Self { plan, rows: 0, label, weights: Pieces::default(), features }
    }

    /// Bytes that so many more rows will take, without the names of texts.
    pub fn bytes_for(plan: &Plan, rows: usize) -> usize {
        let text = plan.features.iter().filter(|feature| feature.is_text).count();
        let numbers = plan.features.len() - text + 1 + usize::from(plan.weighted);
        rows * (numbers * size_of::<f64>() + text * size_of::<u32>())
    }

    /// Bytes of the rows that were gathered.
    pub fn bytes(&self) -> usize {
        Self::bytes_for(&self.plan, self.rows) + self.name_bytes()
    }

    /// Bytes of the names of texts.
    pub fn name_bytes(&self) -> usize {
        self.features.iter().chain([&self.label]).map(Raw::name_bytes).sum()
    }

    /// Bytes that [`Self::finish`] will need on top: the order of the rows, the levels spelled out, the label's columns, and the
    /// standardised copy that the arithmetic works on.
    pub fn finish_bytes(&self) -> usize {
        let columns: usize = self
            .features
            .iter()
            .map(|raw| match raw {
                Raw::Numbers(_) => 1,
                // Those of the others and of NULL are two more.
                Raw::Levels { names, .. } => 2 * names.len().min(self.plan.max_levels).saturating_add(2),
            })
            .sum();
        // A label has a column for each class, and those are copied too.
        let labels = if self.plan.counts_classes() { 2 * self.plan.classes_max().min(self.label.names().max(33)) } else { 2 };
        self.rows * (columns + labels + 2) * size_of::<f64>() + order::bytes_for(self.rows)
    }

    /// Refuses a label as soon as it has many more classes than it may: their names are kept too.
    pub fn push(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        assert_eq!(features.len(), self.plan.features.len(), "one block for each feature of the plan");
        self.rows += rows;
        self.label.push(rows, label);
        if let Some(weights) = weights {
            self.weights.read(rows, weights);
        }
        self.features.iter_mut().zip(features).for_each(|(raw, block)| raw.push(rows, *block));
        if self.label.names() > many(self.plan.max_classes) {
            return Err(self.plan.too_many_classes());
        }
        Ok(())
    }

    /// Adds the rows of another builder after one's own.
    pub fn append(&mut self, other: RowsBuilder) {
        // Rows without a weight count once.
        if !other.weights.is_empty() && self.weights.is_empty() {
            self.weights.extend(std::iter::repeat_n(1.0, self.rows));
        }
        let unweighted = if other.weights.is_empty() && !self.weights.is_empty() { other.rows } else { 0 };
        self.rows += other.rows;
        self.label.append(other.label);
        self.weights.append(other.weights);
        if unweighted > 0 {
            self.weights.extend(std::iter::repeat_n(1.0, unweighted));
        }
        for (mine, theirs) in self.features.iter_mut().zip(other.features) {
            mine.append(theirs);
        }
    }

    /// Puts the pieces of each column together, one column at a time.
    fn join(&mut self) {
        self.weights.join();
        self.features.iter_mut().chain([&mut self.label]).for_each(Raw::join);
    }

    /// The rows that were gathered, all of them, in the order of their content.
    pub fn content_order(&mut self) -> Vec<u32> {
        self.join();
        let mut rows: Vec<usize> = (0..self.rows).collect();
        self.by_content(&mut rows);
        rows.into_iter().map(|row| row as u32).collect()
    }

    fn by_content(&self, rows: &mut [usize]) {
        let features = self.plan.features.iter().map(|feature| feature.name.as_str()).zip(&self.features);
        let columns = [(self.plan.label.as_str(), &self.label)].into_iter().chain(features);
        let columns: Vec<(&str, Content<'_>)> = columns.map(|(name, raw)| (name, raw.content())).collect();
        order::by_content(rows, &columns, self.weights.values());
    }

    pub fn finish(self) -> Result<Rows> {
        let rows = self.rows;
        self.finish_part(rows)
    }

    /// Finishes together with rows that are held out: these get the same columns, filled and centred by the means of one's own.
    pub fn finish_with(mut self, held_out: RowsBuilder) -> Result<(Rows, Rows)> {
        let rows = self.rows;
        self.append(held_out);
        let mut both = self.finish_part(rows)?;
        let at = both.seen.rows as usize;
        let held_out = both.split_off(at);
        Ok((both, held_out))
    }

    /// Finishes all rows; only the first `own` of them decide on means, and are counted in `seen`.
    fn finish_part(mut self, own: usize) -> Result<Rows> {
        self.join();
        let mut seen = Seen { missing: vec![0; self.features.len()], ..Seen::default() };
        let mut kept = self.kept_rows(&mut seen)?;
        let own = kept.partition_point(|row| *row < own);
        let (mine, held_out) = kept.split_at_mut(own);
        self.by_content(mine);
        self.by_content(held_out);
        self.label.retain(&kept);
        self.features.par_iter_mut().for_each(|raw| raw.retain(&kept));
        self.weights.retain(&kept);
        seen.rows = own as u64;
        let (label, targets, labels) = self.finish_label(&seen)?;
        let weights = self.weights.into_values();
        let plan = self.plan;
        let finish = |(feature, raw): (usize, Raw)| {
            let null = raw.missing();
            let missing = null[..own].iter().filter(|null| **null).count() as u64;
            let out_of_range = match &raw {
                Raw::Numbers(values) => values.values()[..own].iter().filter(|value| is_out_of_range(**value)).count() as u64,
                _ => 0,
            };
            let is_number = matches!(raw, Raw::Numbers(_));
            let (mut coded, text) = raw.into_columns(&plan, own, &weights);
            // NULL is a value of a text, unless the text is left out.
            let is_flagged = match &text {
                Some(text) => !text.is_left_out,
                None => plan.nulls == Nulls::Indicator,
            };
            if is_flagged && missing > 0 {
                coded.push((Coding::Missing, null.iter().map(|null| f64::from(*null)).collect()));
            }
            let mut columns = Vec::new();
            for (coding, mut column) in coded {
                let is_number = is_number && coding == Coding::Number;
                let origin = Origin { coding, mean: centre(&mut column, own, &weights) };
                columns.push((DesignColumn { feature, is_number }, origin, column));
            }
            (missing, out_of_range, columns, Flags::of(null.into_iter()), text)
        };
        let finished: Vec<_> = self.features.into_par_iter().enumerate().map(finish).collect();
        let (mut design, mut origins, mut columns, mut nulls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (feature, (missing, out_of_range, own_columns, flags, text)) in finished.into_iter().enumerate() {
            seen.texts.extend(text.map(|text| (feature, text)));
            seen.out_of_range += out_of_range;
            seen.missing[feature] = missing;
            nulls.push(flags);
            for (place, origin, column) in own_columns {
                design.push(place);
                origins.push(origin);
                columns.push(column);
            }
        }
        let mut labels = labels;
        labels.iter_mut().for_each(|column| {
            centre(column, own, &weights);
        });
        Ok(Rows { design, label, seen, origins, columns, labels, targets, weights, nulls })
    }

    /// The rows that count.
    fn kept_rows(&self, seen: &mut Seen) -> Result<Vec<usize>> {
        let features: Vec<Block<'_>> = self.features.iter().map(Raw::block).collect();
        let weights = (!self.weights.is_empty()).then_some(&self.weights as &dyn Numbers);
        let (mut intake, mut kept) = (Intake::default(), Vec::new());
        for start in (0..self.rows).step_by(RUN) {
            let run = start..self.rows.min(start + RUN);
            intake.keep(&self.plan, run, self.label.block(), weights, &features, seen)?;
            kept.extend(intake.kept.iter().map(|row| start + row));
        }
        Ok(kept)
    }

    /// What the label is, the label of each row, and its columns.
    #[allow(clippy::type_complexity)]
    fn finish_label(&self, seen: &Seen) -> Result<(Label, Vec<f64>, Vec<Vec<f64>>)> {
        let classes = if self.plan.counts_classes() { self.label.classes(&self.plan)? } else { None };
        let label = self.plan.decide(classes.as_ref().map(|(names, _)| names), seen.rows);
        Ok(match (&label, classes, &self.label) {
            (Label::Classes(_), Some((_, codes)), _) => {
                let flags = |class: usize| codes.iter().map(|code| f64::from(*code == class)).collect();
                let columns = label.columns().map(flags).collect();
                (label, codes.iter().map(|code| *code as f64).collect(), columns)
            }
            (_, _, Raw::Numbers(values)) => (label, values.values().to_vec(), vec![values.values().to_vec()]),
            (_, _, Raw::Levels { .. }) => unreachable!("text is always a class"),
        })
    }
}

/// Rows that are decided about together, while their values are in cache.
const RUN: usize = 4096;

impl Raw {
    /// All its values, as a reader hands them over. What the levels are called does not matter.
    fn block(&self) -> Block<'_> {
        match self {
            Raw::Numbers(values) => Block::Numbers(values),
            Raw::Levels { codes, .. } => Block::Levels { codes: codes.values(), names: &[] },
        }
    }

    fn join(&mut self) {
        match self {
            Raw::Numbers(values) => values.join(),
            Raw::Levels { codes, .. } => codes.join(),
        }
    }

    fn push(&mut self, rows: usize, block: Block<'_>) {
        match (self, block) {
            (Raw::Numbers(values), Block::Numbers(numbers)) => values.read(rows, numbers),
            (Raw::Levels { codes, names }, Block::Levels { codes: new, names: new_names }) => {
                names.push(codes, new, new_names);
            }
            _ => unreachable!("the plan fixes whether a column is text"),
        }
    }

    fn content(&self) -> Content<'_> {
        match self {
            Raw::Numbers(values) => Content::Numbers(values.values()),
            Raw::Levels { codes, names } => Content::Levels(codes.values(), names.hashes()),
        }
    }

    fn names(&self) -> usize {
        match self {
            Raw::Numbers(_) => 0,
            Raw::Levels { names, .. } => names.len(),
        }
    }

    fn name_bytes(&self) -> usize {
        match self {
            Raw::Numbers(_) => 0,
            Raw::Levels { names, .. } => names.bytes(),
        }
    }

    fn append(&mut self, other: Raw) {
        match (self, other) {
            (Raw::Numbers(mine), Raw::Numbers(theirs)) => mine.append(theirs),
            (Raw::Levels { codes, names }, Raw::Levels { codes: theirs, names: their_names }) => {
                names.append(codes, theirs, their_names);
            }
            _ => unreachable!("the plan fixes whether a column is text"),
        }
    }

    fn retain(&mut self, kept: &[usize]) {
        match self {
            Raw::Numbers(values) => values.retain(kept),
            Raw::Levels { codes, .. } => codes.retain(kept),
        }
    }

    fn missing(&self) -> Vec<bool> {
        match self {
            Raw::Numbers(values) => values.values().iter().map(|value| !is_value(*value)).collect(),
            Raw::Levels { codes, .. } => codes.values().iter().map(|code| *code == NO_LEVEL).collect(),
        }
    }

    /// A number as it is, a text as one column of zeros and ones for each level, in the order of the levels. Levels are those of the first `own` rows.
    fn into_columns(self, plan: &Plan, own: usize, row_weights: &[f64]) -> (Vec<(Coding, Vec<f64>)>, Option<TextSeen>) {
        let (codes, names) = match self {
            Raw::Numbers(values) => return (vec![(Coding::Number, values.into_values())], None),
            Raw::Levels { codes, names } => (codes.into_values(), names),
        };
        let (mut weight_of, mut known) = (vec![0.0; names.len()], 0);
        for (row, code) in codes[..own].iter().enumerate().filter(|(_, code)| **code != NO_LEVEL) {
            weight_of[*code as usize] += row_weights.get(row).copied().unwrap_or(1.0);
            known += 1;
        }
        let used: Vec<u32> = names.ordered().into_iter().filter(|code| weight_of[*code as usize] > 0.0).collect();
        let weights: Vec<f64> = used.iter().map(|code| weight_of[*code as usize]).collect();
        let (values, is_estimate) = names.values(used.len());
        let mut column_of = vec![NO_COLUMN; names.len()];
        let fate = fate(plan, values, weights.iter().sum::<f64>().max(known as f64), &weights);
        let apart = |kept: Vec<u32>, column_of: &mut [u32]| {
            (0..).zip(&kept).for_each(|(at, code)| column_of[*code as usize] = at);
            names.codings(&kept)
        };
        let mut codings = match &fate {
            Fate::Apart => apart(used, &mut column_of),
            Fate::Top(kept) => apart(kept.iter().map(|at| used[*at]).collect(), &mut column_of),
            Fate::Hashed => {
                let buckets = names.buckets(plan.max_levels);
                let occupied: BTreeSet<u32> = used.iter().map(|code| buckets[*code as usize]).collect();
                let place: BTreeMap<u32, u32> = occupied.iter().copied().zip(0..).collect();
                column_of
                    .iter_mut()
                    .zip(buckets)
                    .for_each(|(column, bucket)| *column = place.get(&bucket).copied().unwrap_or(NO_COLUMN));
                occupied.into_iter().map(|bucket| Coding::Bucket { bucket, of: plan.max_levels as u32 }).collect()
            }
            Fate::LeftOut => Vec::new(),
        };
        let is_left_out = fate == Fate::LeftOut;
        let text = TextSeen { values, is_estimate, known, told_apart: codings.len() as u64, is_left_out };
        if matches!(fate, Fate::Top(_)) {
            column_of.iter_mut().filter(|column| **column == NO_COLUMN).for_each(|column| *column = codings.len() as u32);
            codings.push(Coding::Others);
        }
        let mut columns: Vec<(Coding, Vec<f64>)> = codings.into_iter().map(|coding| (coding, vec![0.0; codes.len()])).collect();
        for (row, code) in codes.iter().enumerate().filter(|(_, code)| **code != NO_LEVEL) {
            if let Some((_, column)) = columns.get_mut(column_of[*code as usize] as usize) {
                column[row] = 1.0;
            }
        }
        (columns, Some(text))
    }

    /// The classes of a label in order, and the class of each row; `None` if an integer takes too many values.
    #[allow(clippy::type_complexity)]
    fn classes(&self, plan: &Plan) -> Result<Option<(BTreeMap<Class, usize>, Vec<usize>)>> {
        let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
        let of_row: Vec<Class> = match self {
            Raw::Numbers(values) => values.values().iter().map(|value| Class::of_number(*value)).collect(),
            Raw::Levels { codes, names } => {
                let mut by_code = vec![Class::Whole(0); names.len()];
                names.known().iter().for_each(|(name, code)| by_code[*code as usize] = Class::Text(name.clone()));
                codes.values().iter().map(|code| by_code[*code as usize].clone()).collect()
            }
        };
        for class in &of_row {
            if !classes.contains_key(class) {
                classes.insert(class.clone(), 0);
            }
            if classes.len() > plan.classes_max() {
                return if plan.keeps_number() { Ok(None) } else { Err(plan.too_many_classes()) };
            }
        }
        classes.values_mut().enumerate().for_each(|(at, class)| *class = at);
        let codes = of_row.iter().map(|class| classes[class]).collect();
        Ok(Some((classes, codes)))
    }
}

/// Many more than a limit.
fn many(limit: usize) -> usize {
    limit.saturating_mul(10).saturating_add(1000)
}

#[cfg(test)]
mod tests;
