mod sums;

use crate::kernels::double::Double;
use crate::reading::table::{DesignColumn, Label, Seen};
use crate::settings::common::Nulls;

use super::{Moments, entry};

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
            for column in self.places.levels[feature].values() {
                add(*column, null, feature, false);
            }
            if let (Nulls::Indicator, Some(null)) = (self.plan().nulls, null) {
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
        let mut label_energy = 0.0;
        for (column, sum) in label_columns.iter().zip(&label_sums) {
            let raw = product(column, column);
            let energy = if weight.value() > 0.0 { centred(raw, *sum, *sum) } else { 0.0 };
            let origin = self.origin(column.column);
            let size = raw.value() + weight.value() * origin * origin;
            label_energy += if energy <= CONSTANT * size { 0.0 } else { energy };
        }
        Gram { design, label, seen: self.seen.clone(), weight: weight.value(), matrix, products, label_energy }
    }
}
