//! What features cost, and how much may be spent.

use std::collections::BTreeMap;

use crate::{Check, options};

options! {
    /// What features cost, and how much may be spent: the same options of every selector.
    pub struct Spending {
        /// What a feature costs, by feature or group; 1 unless it is named here. Features are taken in the order of their gain for the money. A row of `datum_wise` pays it for asking.
        costs: BTreeMap<String, f64> = BTreeMap::new(), Check::AtLeast(0.0);
        /// Most that may be spent: the sum of the costs, and where none are given the number of features. A row of `datum_wise` may spend it. NULL: no limit.
        budget: Option<f64> = None, Check::Above(0.0);
    }
}

impl Spending {
    /// Whether anything is said about money.
    pub fn is_asked(&self) -> bool {
        !self.costs.is_empty() || self.budget.is_some()
    }

    /// What a feature or group costs.
    pub fn cost(&self, name: &str) -> f64 {
        self.costs.get(name).copied().unwrap_or(1.0)
    }
}
