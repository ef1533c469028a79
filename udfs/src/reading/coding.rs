//! How columns of the design are made from values of the input.

use std::collections::BTreeMap;

use crate::reading::levels::bucket;

/// How a column of the design is made from a value of the input: coded, and the mean subtracted. A number without a value is 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    pub coding: Coding,
    pub mean: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coding {
    /// The number itself.
    Number,
    /// 1 where a text is this level, else 0.
    Level(String),
    /// 1 where a text is in this bucket out of so many, by its hash, else 0.
    Bucket { bucket: u32, of: u32 },
    /// 1 where a text is in none of the levels and buckets that its other columns stand for, else 0.
    Others,
    /// 1 where there is no value, else 0.
    Missing,
}

impl Coding {
    /// Whether only a text can be coded so.
    pub(crate) fn is_of_text(&self) -> bool {
        matches!(self, Coding::Level(_) | Coding::Bucket { .. } | Coding::Others)
    }
}

/// No column.
pub(crate) const NO_COLUMN: u32 = u32::MAX;

/// The columns of a text, to find that of a value.
#[derive(Debug, Default)]
pub(crate) struct TextColumns<'a> {
    levels: BTreeMap<&'a str, u32>,
    buckets: BTreeMap<u32, u32>,
    of: usize,
    others: Option<u32>,
}

impl<'a> TextColumns<'a> {
    /// Of columns with their codings.
    pub fn new(columns: impl Iterator<Item = (u32, &'a Coding)>) -> Self {
        let mut found = Self::default();
        for (column, coding) in columns {
            match coding {
                Coding::Level(level) => {
                    found.levels.insert(level, column);
                }
                Coding::Bucket { bucket, of } => {
                    found.buckets.insert(*bucket, column);
                    found.of = *of as usize;
                }
                Coding::Others => found.others = Some(column),
                Coding::Number | Coding::Missing => {}
            }
        }
        found
    }

    /// The column that is 1 for a value; [`NO_COLUMN`] if all are 0.
    pub fn find(&self, value: &str) -> u32 {
        let column = match self.of {
            0 => self.levels.get(value),
            of => self.buckets.get(&bucket(value, of)),
        };
        column.copied().or(self.others).unwrap_or(NO_COLUMN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_a_column_is_among_the_others() {
        let codings = [Coding::Level("a".into()), Coding::Missing, Coding::Others];
        let columns = |codings: &[Coding]| -> Vec<u32> {
            let columns = TextColumns::new((0..).zip(codings));
            ["a", "b"].iter().map(|value| columns.find(value)).collect()
        };
        assert_eq!(columns(&codings), [0, 2]);
        assert_eq!(columns(&codings[..2]), [0, NO_COLUMN]);
        let buckets: Vec<Coding> = (0..4).map(|bucket| Coding::Bucket { bucket, of: 4 }).collect();
        assert_eq!(columns(&buckets), ["a", "b"].map(|value| bucket(value, 4)));
    }
}
