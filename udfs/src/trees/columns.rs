//! The features that trees may split.

use std::collections::BTreeMap;

use crate::{Binned, Bins, Codes, Problem, Ranking};

/// Binned features that vary and differ from each other. Random numbers are drawn in their order, and of equal splits the first is taken.
#[derive(Debug, Clone)]
pub(crate) struct Columns<'a> {
    /// The features' places among the bins.
    pub features: Vec<usize>,
    pub binned: Vec<&'a Binned>,
    /// The codes of the rows.
    pub codes: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    /// The features of a problem's units, in an order that depends on their names alone, not on their places.
    pub fn of(problem: &Problem, bins: &'a Bins) -> Self {
        let open = |unit: &usize| problem.why_never(*unit).is_none();
        let units = (0..problem.units.len()).filter(open).map(|unit| &problem.units[unit]);
        let mut features: Vec<usize> = units.flat_map(|unit| unit.features.iter().copied()).collect();
        features.sort_unstable();
        let mut columns = Self::among(bins, &features);
        // An order that depends on names alone.
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|at| columns.binned[*at].key);
        columns.features = order.iter().map(|at| columns.features[*at]).collect();
        columns.binned = order.iter().map(|at| columns.binned[*at]).collect();
        columns.codes = order.iter().map(|at| columns.codes[*at]).collect();
        columns
    }

    /// Some features. Of those that a tree cannot tell apart the first is kept, so that it has the credit.
    pub fn among(bins: &'a Bins, features: &[usize]) -> Self {
        let mut seen: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let codes = |feature: usize| &bins.codes.of_feature[feature];
        let is_new = |feature: &usize| {
            let same = |other: &usize| {
                bins.features[*other].is_ordered == bins.features[*feature].is_ordered && codes(*other) == codes(*feature)
            };
            let alike = seen.entry(hash(codes(*feature))).or_default();
            let is_new = bins.features[*feature].varies && !alike.iter().any(same);
            alike.push(*feature);
            is_new
        };
        let features: Vec<usize> = features.iter().copied().filter(is_new).collect();
        let binned = features.iter().map(|feature| &bins.features[*feature]).collect();
        let codes = features.iter().map(|feature| &codes(*feature)[..]).collect();
        Self { features, binned, codes }
    }

    /// The same features of other rows.
    pub fn on(&self, codes: &'a Codes) -> Self {
        Self { codes: self.features.iter().map(|feature| &codes.of_feature[*feature][..]).collect(), ..self.clone() }
    }

    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// What each unit has of the columns' importances.
    pub fn importances(&self, problem: &Problem, of_column: &[f64]) -> Vec<f64> {
        let mut of_feature = BTreeMap::new();
        self.features.iter().zip(of_column).for_each(|(feature, importance)| {
            of_feature.insert(*feature, *importance);
        });
        let of_unit = |features: &[usize]| features.iter().filter_map(|feature| of_feature.get(feature)).sum();
        problem.units.iter().map(|unit| of_unit(&unit.features)).collect()
    }
}

/// Units by their importance, the most important first; with `k => 'auto'` those above the mean.
pub(crate) fn ranking(problem: &Problem, importances: &[f64]) -> Ranking {
    let can_be = |unit: &usize| problem.why_never(*unit).is_none();
    Ranking::by_importance(problem, (0..problem.units.len()).filter(can_be), |unit| importances[unit])
}

fn hash(codes: &[u8]) -> u64 {
    codes.chunks(8).fold(0, |hash, chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}
