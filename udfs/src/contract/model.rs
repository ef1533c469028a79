//! Models as tables: what is learnt from one table is a table itself. It can be kept, read with SQL, and applied to the rows of others.
//!
//! Two functions make a model. A [`Report`] fits it: its answer is the model's table. An [`Apply`] reads such a table back into a [`Model`], and has rows
//! decided by it as they stream by. The rows of the table may come back in any order, so that each must say what it is:
//! `part, class, feature, level, value` suits whatever is linear.

use crate::contract::report::{Kind, Report, Values};
use crate::reading::block::Block;
use crate::reading::plan::Feature;
use crate::{Result, Run};

/// A function that applies a model to rows. Declared with [`apply!`](crate::apply!), which adds the options that all of them have: `key`, the model's table
/// and `test`.
pub trait Apply: Send + Sync {
    /// What fits the model where no table of one is given. Its columns are those of the model's table.
    fn fit(&self) -> &dyn Report;

    /// The columns of the answer, behind those of `key`.
    fn outputs(&self) -> Vec<(&'static str, Output)>;

    /// Whether one row can have several in the answer, which only a `key` tells apart.
    fn needs_key(&self) -> bool {
        false
    }

    /// The model that a table holds, given its columns in the order of the report's. The table may have been edited: whatever is wrong with it is an error.
    fn read(&self, table: &[Values]) -> Result<Box<dyn Model>>;
}

/// What a column of an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// One of the classes, in the label's own type; made as [`Made::Names`].
    Class,
    /// Whether that class is the row's label, where it has one. The model need not make it.
    Correct,
    /// What the model makes: names for a text, lists for texts.
    Of(Kind),
}

/// A model that has been read, ready for rows.
pub trait Model: Send + Sync {
    /// The columns that it asks for.
    fn features(&self) -> Vec<Feature>;

    /// What the numbers of an output stand for that is made of names. Asked for once.
    fn names(&self, output: &str) -> Vec<String>;

    /// Applies the model to some rows: a block for each of [`Self::features`]. Only the outputs in `wanted` are looked at.
    fn apply(&self, rows: usize, features: &[Block<'_>], wanted: &[&str], run: &Run) -> Result<Applied>;
}

/// What a model made of some rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Applied {
    /// The row that each row of the answer is about; `None`: one for each, in their order.
    pub rows: Option<Vec<u32>>,
    /// Outputs by name.
    pub columns: Vec<(&'static str, Made)>,
}

/// A column that a model makes.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    Numbers(Vec<f64>),
    Wholes(Vec<i64>),
    Flags(Vec<bool>),
    /// Places in [`Model::names`]; [`NO_LEVEL`](crate::NO_LEVEL): none.
    Names(Vec<u32>),
    /// Lists of names: how long each row's is, and all of them one after the other.
    Lists {
        lengths: Vec<u32>,
        names: Vec<u32>,
    },
}

/// The table of a model as an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTable {
    /// What the option is called.
    pub option: &'static str,
    /// The function whose answer it takes.
    pub made_by: &'static str,
}

/// Declares a function that applies a model: its documentation, its name in SQL, the option that is the model's table and what makes such a table, and the
/// options of its own, which are those of fitting.
#[macro_export]
macro_rules! apply {
    (
        $(#[doc = $doc:expr])*
        #[apply(
            name = $name:literal,
            aliases = [$($alias:literal),*],
            labels = $labels:ident,
            model = $model:literal,
            made_by = $made_by:literal $(,)?
        )]
        $vis:vis struct $Name:ident { $($options:tt)* }
    ) => {
        $crate::declare! {
            $(#[doc = $doc])*
            $vis struct $Name { $($options)* }
            Apply {
                name: $name,
                aliases: &[$($alias),*],
                labels: $crate::Labels::$labels,
                score: "",
                table: Some(("test", "The rows to decide, with the same columns; the label may be missing.")),
                model: Some($crate::ModelTable { option: $model, made_by: $made_by }),
            }
        }
    };
}
