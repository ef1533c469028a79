//! Which rows count: the one rule that every way of reading a table follows.

use std::ops::Range;

use crate::Result;
use crate::reading::block::{Block, NO_LEVEL, Numbers, is_value};
use crate::reading::plan::Plan;
use crate::reading::table::Seen;
use crate::settings::common::Nulls;

/// A row counts if it has a label, a weight above 0, and, where `nulls` asks for that, a value of every feature.
///
/// The buffers are kept from one run of rows to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Intake {
    /// The rows of the run that count, from its beginning, in order.
    pub kept: Vec<usize>,
    /// Their weights; empty where the table has none.
    pub weights: Vec<f64>,
    /// The label of every row of the run, where it is a number.
    pub labels: Vec<f64>,
    values: Vec<f64>,
    incomplete: Vec<bool>,
}

impl Intake {
    /// Decides about a run of rows, and counts in `seen` those that count and those that do not.
    pub fn keep(
        &mut self,
        plan: &Plan,
        run: Range<usize>,
        label: Block<'_>,
        weights: Option<&dyn Numbers>,
        features: &[Block<'_>],
        seen: &mut Seen,
    ) -> Result<()> {
        let count = run.len();
        self.kept.clear();
        self.weights.clear();
        match label {
            Block::Numbers(numbers) => {
                self.labels.resize(count, 0.0);
                numbers.fill(run.start, &mut self.labels);
                self.kept.extend((0..count).filter(|row| is_value(self.labels[*row])));
            }
            Block::Levels { codes, .. } => self.kept.extend((0..count).filter(|row| codes[run.start + row] != NO_LEVEL)),
        }
        seen.rows_without_label += (count - self.kept.len()) as u64;
        if let Some(weights) = weights {
            let values = filled(&mut self.values, weights, &run);
            if let Some(weight) = values.iter().find(|weight| **weight < 0.0) {
                return Err(Plan::negative_weight(*weight));
            }
            let labelled = self.kept.len();
            // A row of weight 0 is as if it were not there: it must not decide a constant or a class.
            self.kept.retain(|row| is_value(values[*row]) && values[*row] > 0.0);
            self.weights.extend(self.kept.iter().map(|row| values[*row]));
            seen.rows_without_weight += (labelled - self.kept.len()) as u64;
        }
        if matches!(plan.nulls, Nulls::Drop | Nulls::Error) {
            self.keep_complete(plan, &run, features, seen)?;
        }
        seen.rows += self.kept.len() as u64;
        Ok(())
    }

    fn keep_complete(&mut self, plan: &Plan, run: &Range<usize>, features: &[Block<'_>], seen: &mut Seen) -> Result<()> {
        self.incomplete.clear();
        self.incomplete.resize(run.len(), false);
        for (feature, block) in features.iter().enumerate() {
            let mut missing = false;
            let mut note = |row: usize, is_missing: bool| {
                self.incomplete[row] |= is_missing;
                missing |= is_missing;
            };
            match block {
                Block::Numbers(numbers) => {
                    let values = filled(&mut self.values, *numbers, run);
                    self.kept.iter().for_each(|row| note(*row, !is_value(values[*row])));
                }
                Block::Levels { codes, .. } => {
                    let codes = &codes[run.clone()];
                    self.kept.iter().for_each(|row| note(*row, codes[*row] == NO_LEVEL));
                }
            }
            if missing && plan.nulls == Nulls::Error {
                return Err(plan.null_refused(feature));
            }
        }
        let before = self.kept.len();
        let incomplete = &self.incomplete;
        let mut at = 0;
        self.weights.retain(|_| {
            at += 1;
            !incomplete[self.kept[at - 1]]
        });
        self.kept.retain(|row| !incomplete[*row]);
        seen.rows_with_null += (before - self.kept.len()) as u64;
        Ok(())
    }
}

/// The values of a run of rows, without copying them if they lie in one piece.
pub(crate) fn filled<'a>(values: &'a mut Vec<f64>, numbers: &'a dyn Numbers, run: &Range<usize>) -> &'a [f64] {
    if let Some(all) = numbers.as_slice() {
        return &all[run.clone()];
    }
    values.resize(run.len(), 0.0);
    numbers.fill(run.start, values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    #[test]
    fn label_weight_and_values_decide_in_this_order() {
        let none = f64::NAN;
        let mut table = Table::new().numbers("x", &[1.0, none, 3.0, 4.0, none]);
        table.weights = Some(vec![1.0, 2.0, 0.0, 0.5, none]);
        table.common.nulls = Nulls::Drop;
        let (label, x) = (vec![none, 1.0, 2.0, 3.0, 4.0], vec![1.0, none, 3.0, 4.0, none]);
        let (mut intake, mut seen) = (Intake::default(), Seen::default());
        let weights = table.weights.clone().unwrap();
        let mut keep = |run| {
            let features = [Block::Numbers(&x)];
            intake.keep(&table.plan(), run, Block::Numbers(&label), Some(&weights), &features, &mut seen).unwrap();
            (intake.kept.clone(), intake.weights.clone())
        };
        assert_eq!(keep(0..2), (vec![], vec![]));
        assert_eq!(keep(2..5), (vec![1], vec![0.5]));
        assert_eq!((seen.rows, seen.rows_without_label, seen.rows_without_weight, seen.rows_with_null), (1, 1, 2, 1));
    }
}
