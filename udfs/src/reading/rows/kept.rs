//! Rows that are kept for a while, as a sample of a table is: fewer of them, weighed, or handed over again.

use super::{Raw, RowsBuilder};
use crate::reading::block::{Block, Numbers};
use crate::reading::names::Names;
use crate::reading::plan::Plan;

impl RowsBuilder {
    /// The same with all names of texts told apart, where somebody else watches their number.
    pub(crate) fn with_all_names(plan: Plan) -> Self {
        let mut builder = Self::new(plan);
        for raw in &mut builder.features {
            if let Raw::Levels { names, .. } = raw {
                *names = Names::endless();
            }
        }
        builder
    }

    /// Keeps some of the rows.
    pub(crate) fn retain(&mut self, kept: &[usize]) {
        self.rows = kept.len();
        self.label.retain(kept);
        self.features.iter_mut().for_each(|raw| raw.retain(kept));
        self.weights.retain(kept);
    }

    /// Hands the rows over as blocks. All names of texts must have been told apart.
    pub fn hand_over<T>(&mut self, receive: impl FnOnce(usize, Block<'_>, Option<&dyn Numbers>, &[Block<'_>]) -> T) -> T {
        self.join();
        let names: Vec<Vec<&str>> = [&self.label].into_iter().chain(&self.features).map(Raw::spelled).collect();
        let columns = [&self.label].into_iter().chain(&self.features).zip(&names);
        let blocks: Vec<Block<'_>> = columns.map(|(raw, names)| raw.named_block(names)).collect();
        let weights = (!self.weights.is_empty()).then_some(&self.weights as &dyn Numbers);
        receive(self.rows, blocks[0], weights, &blocks[1..])
    }

    /// Says how often each row counts.
    pub(crate) fn weigh(&mut self, weights: Vec<f64>) {
        self.weights = weights.into();
    }
}

impl Raw {
    /// The names of its codes, in their order.
    fn spelled(&self) -> Vec<&str> {
        let Raw::Levels { names, .. } = self else { return Vec::new() };
        let mut spelled = vec![""; names.len()];
        names.known().iter().for_each(|(name, code)| spelled[*code as usize] = name);
        spelled
    }

    fn named_block<'a>(&'a self, names: &'a [&'a str]) -> Block<'a> {
        match self {
            Raw::Numbers(values) => Block::Numbers(values),
            Raw::Levels { codes, .. } => Block::Levels { codes: codes.values(), names },
        }
    }
}
