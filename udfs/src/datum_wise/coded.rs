use std::rc::Rc;

use crate::datum_wise::policy::{Policy, PolicyColumn};
use crate::reading::block::{Block, NO_LEVEL, Numbers, is_value};
use crate::reading::coding::{Coding, TextColumns};
use crate::reading::plan::Feature;

/// Rows that are coded together.
pub(crate) const BLOCK: usize = 256;

/// Where a column of a policy comes from.
enum Source<'a> {
    Number(&'a dyn Numbers),
    /// Which of the policy's columns each code stands for, and which of them this is.
    Level {
        codes: &'a [u32],
        column_of: Rc<[u32]>,
        column: u32,
    },
    MissingNumber(&'a dyn Numbers),
    MissingLevel(&'a [u32]),
}

/// The columns of a policy in a block of rows: coded values less their mean, 0 where a number is NULL. A column is coded when it is first asked for.
pub(crate) struct Coded<'a> {
    sources: Vec<(Source<'a>, f64)>,
    start: usize,
    rows: usize,
    is_coded: Vec<bool>,
    values: Vec<[f64; BLOCK]>,
}

impl<'a> Coded<'a> {
    /// From blocks for each of [`Policy::features`].
    pub fn new(policy: &Policy, features: &[Block<'a>]) -> Self {
        let names = policy.features();
        // A level that training did not see is among the others, and where there are none it is no level.
        let columns_of = |(feature, block): (&Feature, &Block<'_>)| -> Rc<[u32]> {
            let Block::Levels { names, .. } = block else { return Rc::default() };
            let own = (0..).zip(&policy.columns).filter(|(_, column)| column.feature == feature.name);
            let columns = TextColumns::new(own.map(|(at, column)| (at, &column.coding)));
            names.iter().map(|name| columns.find(name)).collect()
        };
        let columns_of: Vec<Rc<[u32]>> = names.iter().zip(features).map(columns_of).collect();
        let source = |(column, of): (u32, &PolicyColumn)| {
            let at = names.iter().position(|feature| feature.name == of.feature).expect("a feature for each column");
            let source = match (features[at], &of.coding) {
                (Block::Numbers(numbers), Coding::Number) => Source::Number(numbers),
                (Block::Numbers(numbers), _) => Source::MissingNumber(numbers),
                (Block::Levels { codes, .. }, Coding::Missing) => Source::MissingLevel(codes),
                (Block::Levels { codes, .. }, _) => Source::Level { codes, column_of: Rc::clone(&columns_of[at]), column },
            };
            (source, of.mean)
        };
        let columns = policy.columns.len();
        let sources = (0..).zip(&policy.columns).map(source).collect();
        Self { sources, start: 0, rows: 0, is_coded: vec![false; columns], values: vec![[0.0; BLOCK]; columns] }
    }

    /// Goes on to the block that begins at a row.
    pub fn start(&mut self, row: usize, rows: usize) {
        (self.start, self.rows) = (row, rows);
        self.is_coded.fill(false);
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The value of a column in a row of the block.
    pub fn value(&mut self, column: usize, row: usize) -> f64 {
        self.code(column);
        self.values[column][row]
    }

    /// The values of all columns that were coded.
    pub fn values(&self) -> &[[f64; BLOCK]] {
        &self.values
    }

    /// Codes a column, unless it is.
    pub fn code(&mut self, column: usize) {
        if self.is_coded[column] {
            return;
        }
        let ((source, mean), out) = (&self.sources[column], &mut self.values[column][..self.rows]);
        match source {
            Source::Number(numbers) => {
                numbers.fill(self.start, out);
                out.iter_mut().for_each(|x| *x = if is_value(*x) { *x - mean } else { 0.0 });
            }
            Source::MissingNumber(numbers) => {
                numbers.fill(self.start, out);
                out.iter_mut().for_each(|x| *x = f64::from(!is_value(*x)) - mean);
            }
            Source::Level { codes, column_of, column } => {
                let value = |code: u32| f64::from(code != NO_LEVEL && column_of[code as usize] == *column) - mean;
                out.iter_mut().zip(&codes[self.start..]).for_each(|(out, code)| *out = value(*code));
            }
            Source::MissingLevel(codes) => {
                out.iter_mut().zip(&codes[self.start..]).for_each(|(out, code)| *out = f64::from(*code == NO_LEVEL) - mean);
            }
        }
        self.is_coded[column] = true;
    }
}
