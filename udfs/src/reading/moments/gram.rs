mod sums;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::kernels::double::Double;
use crate::reading::levels::{Distinct, Fate, SMALLEST, TextSeen, fate};
use crate::reading::table::{DesignColumn, Label, Seen};
use crate::settings::common::Nulls;

use super::{Column, Moments, entry};

/// Relative spread below which a column is constant: a hundred times the rounding of an f64, squared.
pub(crate) const CONSTANT: f64 = 1e-28;

/// Centred second moments of the design and of the label.
#[derive(Debug, Clone)]
pub struct Gram {
    pub design: Vec<DesignColumn>,
    pub label: Label,
    pub seen: Seen,
    /// Sum of the row weights.
    pub weight: f64,
    /// The mean of each column of the design; of a level, its share of the weight.
    pub means: Vec<f64>,
    /// The mean of each column of the label; of a class, its share of the weight.
    pub label_means: Vec<f64>,
    /// `matrix[i * columns + j]` = Σ w (xᵢ − x̄ᵢ)(xⱼ − x̄ⱼ); a constant column is all zeros.
    pub matrix: Vec<f64>,
    /// `products[i * label columns + q]` = Σ w (xᵢ − x̄ᵢ)(y_q − ȳ_q)
    pub products: Vec<f64>,
    /// Σ_q Σ w (y_q − ȳ_q)²
    pub label_energy: f64,
}

impl Gram {
    pub(crate) fn label_varies(&self) -> bool {
        self.label_energy > 0.0
    }
}

struct Filled {
    column: usize,
    null: Option<(usize, Double)>,
}

impl Moments {
    fn origin(&self, column: usize) -> f64 {
        self.origins.get(column).copied().flatten().unwrap_or(0.0)
    }

    fn total(&self, i: usize, j: usize) -> Double {
        self.totals.get(entry(i, j)).copied().unwrap_or_default()
    }

    /// The columns of the design, each with the mean that NULLs are filled with. A filled column is `x + mean · null`, and its moments follow from
    /// those of `x` and `null`.
    fn filled(&self) -> (Vec<Filled>, Vec<DesignColumn>) {
        let weight = self.total(0, 0);
        let mut filled: Vec<Filled> = Vec::new();
        let mut design = Vec::new();
        let mut add = |column: usize, null: Option<usize>, feature: usize, is_number: bool| {
            let known = null.map_or(weight, |null| weight - self.total(0, null));
            let mean = if known.value() > 0.0 { self.total(0, column).divided_by(known) } else { Double::default() };
            filled.push(Filled { column, null: null.map(|null| (null, mean)) });
            design.push(DesignColumn { feature, is_number });
        };
        for feature in 0..self.plan().features.len() {
            let null = self.places.null[feature];
            if let Some(column) = self.places.number[feature] {
                add(column, null, feature, true);
            }
            let values = self.places.levels[feature].values().chain(self.places.buckets[feature].values());
            values.chain(&self.places.others[feature]).for_each(|column| add(*column, None, feature, false));
            // NULL is a value of a text.
            if let Some(null) = null
                && (self.places.is_text[feature] || self.plan().nulls == Nulls::Indicator)
            {
                add(null, None, feature, false);
            }
        }
        (filled, design)
    }

    fn label_columns(&self, label: &Label) -> Vec<Filled> {
        let columns: Vec<usize> = match (label, &self.places.classes) {
            (Label::Classes(_), Some(classes)) => classes.values().copied().collect(),
            _ => self.places.label.into_iter().collect(),
        };
        let used = columns.get(label.columns()).unwrap_or(&[]);
        used.iter().map(|column| Filled { column: *column, null: None }).collect()
    }

    /// Σ w a b of two columns as they were filled.
    fn product(&self, a: &Filled, b: &Filled) -> Double {
        let mut sum = self.total(a.column, b.column);
        if let Some((null, mean)) = a.null {
            sum += mean * self.total(null, b.column);
        }
        if let Some((null, mean)) = b.null {
            sum += mean * self.total(a.column, null);
        }
        if let (Some((null_a, mean_a)), Some((null_b, mean_b))) = (a.null, b.null) {
            sum += mean_a * mean_b * self.total(null_a, null_b);
        }
        sum
    }

    /// The moments centred, NULLs filled, levels and classes in order: ready for a selector.
    pub fn finish(&self) -> Gram {
        self.finish_as(self.plan().decide(self.places.classes.as_ref(), self.seen.rows))
    }

    /// The same where it is known already what the label is: a part of a table has too few rows to tell.
    pub(crate) fn finish_as(&self, label: Label) -> Gram {
        let (settled, texts) = self.settled();
        let mut gram = settled.centred(label);
        gram.seen.texts = texts;
        gram
    }

    /// The same with the columns of texts as the rows decide them, and what was seen of these texts.
    fn settled(&self) -> (Cow<'_, Moments>, BTreeMap<usize, TextSeen>) {
        if let Some(texts) = &self.texts {
            return (Cow::Borrowed(self), texts.clone());
        }
        let (texts, others) = self.decide_texts();
        if others.iter().all(BTreeSet::is_empty) {
            return (Cow::Borrowed(self), texts);
        }
        let mut joined = self.clone();
        joined.join(&texts, &others);
        (Cow::Owned(joined), texts)
    }

    /// Decides what becomes of the values of texts, and which columns of each have none of their own.
    fn decide_texts(&self) -> (BTreeMap<usize, TextSeen>, Vec<BTreeSet<usize>>) {
        // Not from a sum of products of square roots: equal weights must be equal to the last bit.
        let total = |column: &usize| self.totals.get(entry(*column, *column)).map_or(0.0, |total| total.value());
        let (mut texts, mut others) = (BTreeMap::new(), vec![BTreeSet::new(); self.plan().features.len()]);
        for feature in (0..others.len()).filter(|feature| self.places.is_text[*feature]) {
            let columns: Vec<usize> = match self.hashed[feature] {
                None => self.places.levels[feature].values().copied().collect(),
                Some(_) => self.places.buckets[feature].values().copied().collect(),
            };
            let values = self.hashed[feature].as_ref().map_or(columns.len() as u64, Distinct::estimate);
            let known = self.seen.rows - self.seen.missing[feature];
            let weights: Vec<f64> = columns.iter().map(total).collect();
            let fate = fate(self.plan(), values, weights.iter().sum::<f64>().max(known as f64), &weights);
            let kept: BTreeSet<usize> = match &fate {
                Fate::Apart | Fate::Hashed => columns.iter().copied().collect(),
                Fate::Top(kept) => kept.iter().map(|at| columns[*at]).collect(),
                Fate::LeftOut => BTreeSet::new(),
            };
            let is_left_out = fate == Fate::LeftOut;
            let (is_estimate, told_apart) = (values >= SMALLEST as u64 && self.hashed[feature].is_some(), kept.len() as u64);
            texts.insert(feature, TextSeen { values, is_estimate, known, told_apart, is_left_out });
            others[feature].extend(columns.into_iter().filter(|column| !kept.contains(column)));
        }
        (texts, others)
    }

    /// Adds up the columns of the others, and drops texts that are left out.
    fn join(&mut self, texts: &BTreeMap<usize, TextSeen>, others: &[BTreeSet<usize>]) {
        let places = self.places.clone();
        let is_out = |feature: &usize| texts.get(feature).is_some_and(|text| text.is_left_out);
        self.regroup(|column| match column {
            Column::Null(feature) | Column::Level(feature, _) | Column::Bucket(feature, _) if is_out(feature) => None,
            Column::Level(feature, _) | Column::Bucket(feature, _) => {
                let is_other = places.find(column).is_some_and(|at| others[*feature].contains(&at));
                Some(if is_other { Cow::Owned(Column::Others(*feature)) } else { Cow::Borrowed(column) })
            }
            column => Some(Cow::Borrowed(column)),
        });
    }

    fn centred(&self, label: Label) -> Gram {
        let weight = self.total(0, 0);
        let (filled, design) = self.filled();
        let label_columns = self.label_columns(&label);
        let product = |a: &Filled, b: &Filled| self.product(a, b);
        let one = Filled { column: 0, null: None };
        let sums: Vec<Double> = filled.iter().map(|column| product(column, &one)).collect();
        let label_sums: Vec<Double> = label_columns.iter().map(|column| product(column, &one)).collect();
        let centred = |raw: Double, a: Double, b: Double| (raw - (a * b).divided_by(weight)).value();
        let d = filled.len();
        let mut matrix = vec![0.0; d * d];
        let mut products = vec![0.0; d * label_columns.len()];
        if weight.value() > 0.0 {
            for i in 0..d {
                let raw = product(&filled[i], &filled[i]);
                let energy = centred(raw, sums[i], sums[i]);
                // No more spread than rounding would give a constant.
                let origin = self.origin(filled[i].column);
                if energy <= CONSTANT * (raw.value() + weight.value() * origin * origin) {
                    continue;
                }
                matrix[i * d + i] = energy;
                for j in 0..i {
                    if matrix[j * d + j] > 0.0 {
                        let value = centred(product(&filled[i], &filled[j]), sums[i], sums[j]);
                        matrix[i * d + j] = value;
                        matrix[j * d + i] = value;
                    }
                }
                for (q, column) in label_columns.iter().enumerate() {
                    products[i * label_columns.len() + q] = centred(product(&filled[i], column), sums[i], label_sums[q]);
                }
            }
        }
        let mean =
            |(column, sum): (&Filled, &Double)| self.origin(column.column) + sum.value() / weight.value().max(f64::MIN_POSITIVE);
        let means = filled.iter().zip(&sums).map(mean).collect();
        let label_means = label_columns.iter().zip(&label_sums).map(mean).collect();
        let mut label_energy = 0.0;
        for (column, sum) in label_columns.iter().zip(&label_sums) {
            let raw = product(column, column);
            let energy = if weight.value() > 0.0 { centred(raw, *sum, *sum) } else { 0.0 };
            let origin = self.origin(column.column);
            let size = raw.value() + weight.value() * origin * origin;
            label_energy += if energy <= CONSTANT * size { 0.0 } else { energy };
        }
        let seen = self.seen.clone();
        Gram { design, label, seen, weight: weight.value(), means, label_means, matrix, products, label_energy }
    }
}
