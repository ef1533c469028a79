//! Moments of some parts of a table, comparable with those of the whole.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::scratch::Scratch;
use super::super::triangle;
use super::{Column, Filled, Gram, Moments};
use crate::Result;
use crate::kernels::double::Double;
use crate::reading::table::Seen;

impl Moments {
    /// The sum of some parts of this table, with all of its columns: the design is the same whatever parts there are.
    pub(crate) fn sum_of<'a>(&self, parts: impl IntoIterator<Item = &'a Moments>) -> Result<Moments> {
        let (whole, texts) = self.settled();
        let mut sum = Self {
            plan: Arc::clone(&self.plan),
            columns: whole.columns.clone(),
            totals: vec![Double::default(); triangle(whole.columns.len())],
            origins: whole.origins.clone(),
            seen: Seen { missing: vec![0; self.plan().features.len()], ..Seen::default() },
            places: whole.places.clone(),
            scratch: Scratch::default(),
            buckets: whole.buckets,
            hashed: whole.hashed.clone(),
            texts: Some(texts),
        };
        for part in parts {
            let part = part.coded_as(&sum);
            sum.seen.add(&part.seen);
            let at = sum.places_of(&part);
            sum.merge_totals(&part, &at)?;
        }
        Ok(sum)
    }

    /// A part of a table with the columns that the whole has: its values are in the same buckets, and among the same others.
    fn coded_as(&self, whole: &Moments) -> Moments {
        let mut part = self.clone();
        let hashed: Vec<usize> = (0..whole.hashed.len()).filter(|feature| whole.hashed[*feature].is_some()).collect();
        part.hash_values(&hashed, whole.buckets);
        part.regroup(|column| match column {
            Column::Level(feature, _) | Column::Bucket(feature, _) if whole.places.find(column).is_none() => {
                whole.places.others[*feature].map(|_| Cow::Owned(Column::Others(*feature)))
            }
            column => whole.places.find(column).map(|_| Cow::Borrowed(column)),
        });
        part
    }

    /// The sum of the row weights.
    pub(crate) fn weight(&self) -> f64 {
        self.total(0, 0).value()
    }

    /// The moments of rows that were held out, about the means of the rows learnt from, which fill their NULLs as well. Both are sums of parts of one
    /// table. A column that does not vary where it is learnt from is all zeros.
    pub(crate) fn finish_about(&self, own: &Moments, learnt: &Gram) -> Gram {
        let (columns, design) = own.filled();
        let labels = own.label_columns(&learnt.label);
        let (weight, own_weight) = (self.total(0, 0), own.total(0, 0));
        let one = Filled { column: 0, null: None };
        // The mean where it is learnt from, and the sum here.
        let measured = |column: &Filled| (own.product(column, &one).divided_by(own_weight), self.product(column, &one));
        let about = |a: &Filled, b: &Filled, (mean_a, sum_a): (Double, Double), (mean_b, sum_b): (Double, Double)| {
            (self.product(a, b) - mean_a * sum_b - mean_b * sum_a + mean_a * mean_b * weight).value()
        };
        let of_columns: Vec<_> = columns.iter().map(measured).collect();
        let of_labels: Vec<_> = labels.iter().map(measured).collect();
        let (d, q) = (columns.len(), labels.len());
        let (mut matrix, mut products) = (vec![0.0; d * d], vec![0.0; d * q]);
        let varies = |i: usize| learnt.matrix[i * d + i] > 0.0;
        for i in (0..d).filter(|i| varies(*i)) {
            for j in (0..=i).filter(|j| varies(*j)) {
                let value = about(&columns[i], &columns[j], of_columns[i], of_columns[j]);
                matrix[i * d + j] = value;
                matrix[j * d + i] = value;
            }
            for at in 0..q {
                products[i * q + at] = about(&columns[i], &labels[at], of_columns[i], of_labels[at]);
            }
        }
        let label_energy = labels.iter().zip(&of_labels).map(|(label, of)| about(label, label, *of, *of)).sum();
        let (label, seen) = (learnt.label.clone(), self.seen.clone());
        let (means, label_means) = (learnt.means.clone(), learnt.label_means.clone());
        Gram { design, label, seen, weight: weight.value(), means, label_means, matrix, products, label_energy }
    }
}
