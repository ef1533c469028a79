//! Moments of some parts of a table, comparable with those of the whole.

use std::sync::Arc;

use super::super::scratch::Scratch;
use super::super::triangle;
use super::{Filled, Gram, Moments};
use crate::Result;
use crate::kernels::double::Double;
use crate::reading::table::Seen;

impl Moments {
    /// The sum of some parts of this table, with all of its columns: the design is the same whatever parts there are.
    pub(crate) fn sum_of<'a>(&self, parts: impl IntoIterator<Item = &'a Moments>) -> Result<Moments> {
        let mut sum = Self {
            plan: Arc::clone(&self.plan),
            columns: self.columns.clone(),
            totals: vec![Double::default(); triangle(self.columns.len())],
            origins: self.origins.clone(),
            seen: Seen { missing: vec![0; self.plan().features.len()], ..Seen::default() },
            places: self.places.clone(),
            scratch: Scratch::default(),
        };
        parts.into_iter().try_for_each(|part| sum.merge(part))?;
        Ok(sum)
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
        Gram { design, label, seen, weight: weight.value(), matrix, products, label_energy }
    }
}
