use std::cell::RefCell;

use crate::datum_wise::coded::{BLOCK, Coded};
use crate::datum_wise::decisions::{Decisions, Detail};
use crate::datum_wise::policy::{Decision, Policy};
use crate::datum_wise::rounds::Rounds;
use crate::datum_wise::walk::Walk;
use crate::reading::block::Block;
use crate::reading::plan::Feature;
use crate::{Result, Run};

impl Policy {
    /// The columns of a table that the policy may ask for, and whether each is text.
    pub fn features(&self) -> Vec<Feature> {
        let mut features: Vec<Feature> = Vec::new();
        for column in &self.columns {
            let is_level = column.coding.is_of_text();
            match features.iter_mut().find(|feature| feature.name == column.feature) {
                Some(feature) => feature.is_text |= is_level,
                None => features.push(Feature { name: column.feature.clone(), is_text: is_level }),
            }
        }
        features
    }

    /// Decides rows: a block for each of [`Self::features`].
    pub fn classify(&self, rows: usize, features: &[Block<'_>], detail: Detail, run: &Run) -> Result<Decisions> {
        let (mut coded, mut decisions) =
            (RefCell::new(Coded::new(self, features)), Decisions::new(rows, self.given.len(), detail));
        let (opening, mut walk, mut decision) = (self.opening(), Walk::default(), Decision::default());
        let mut rounds = Rounds::of(self);
        for start in (0..rows).step_by(BLOCK) {
            run.check()?;
            let rows = BLOCK.min(rows - start);
            coded.get_mut().start(start, rows);
            if let Some(rounds) = &mut rounds {
                rounds.decide(coded.get_mut(), &mut decisions);
                continue;
            }
            for row in 0..rows {
                self.decide(&opening, &mut walk, |column| coded.borrow_mut().value(column, row), &mut decision);
                decisions.push(&decision);
            }
        }
        Ok(decisions)
    }
}
