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

    /// Whether the answer has all columns of the rows, and not only those of `key`.
    fn keeps_columns(&self) -> bool {
        false
    }

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
    /// A class or a number, whatever the model predicts; made as [`Made::Names`] or [`Made::Numbers`].
    Predicted,
    /// The probability of every class, by its name; made as [`Made::Shares`].
    Probabilities,
    /// Whether that class is the row's label, where it has one. The model need not make it.
    Correct,
    /// What the model makes: names for a text, lists for texts.
    Of(Kind),
}

/// A model that has been read, ready for rows.
pub trait Model: Send + Sync {
    /// The columns that it asks for.
    fn features(&self) -> Vec<Feature>;

    /// What it predicts: a number, or classes that are whole numbers, booleans or texts.
    fn predicts(&self) -> Kind {
        Kind::Text
    }

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
    /// A number for each of [`Model::names`], row by row.
    Shares(Vec<f64>),
    /// So many NULLs.
    Nothing(usize),
    /// Lists of names: how long each row's is, and all of them one after the other.
    Lists {
        lengths: Vec<u32>,
        names: Vec<u32>,
    },
}

/// A function that says something of a model: it has the model's table before it, and nothing else. Declared with
/// [`report_on_model!`](crate::report_on_model!).
pub trait ReportOnModel: Send + Sync {
    /// The columns of the model's table.
    fn reads(&self) -> Vec<(&'static str, Kind)>;

    /// The columns of the answer.
    fn columns(&self) -> Vec<(&'static str, Kind)>;

    /// Their values, in the same order, given the columns of the model's table.
    fn report(&self, table: &[Values]) -> Result<Vec<Values>>;
}

/// Declares a function on the table of a model: its documentation, its name in SQL, what makes such a table, and its options.
#[macro_export]
macro_rules! report_on_model {
    (
        $(#[doc = $doc:expr])*
        #[report(name = $name:literal, aliases = $aliases:tt, made_by = $made_by:literal)]
        $($item:tt)*
    ) => {
        $crate::declare! {
            OnModel(
                asks = $crate::Asks::Model,
                name = $name,
                aliases = $aliases,
                model = $crate::ModelTable { option: "model", made_by: $made_by, fits: false },
            )
            $(#[doc = $doc])*
            $($item)*
        }
    };
}

/// The table of a model as an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTable {
    /// What the option is called.
    pub option: &'static str,
    /// The function whose answer it takes.
    pub made_by: &'static str,
    /// Whether the function fits a model itself where no table of one is given.
    pub fits: bool,
}

/// Declares a function that applies a model: its documentation, its name in SQL, the option that is the model's table and what makes such a table, and the
/// options of its own, which are those of fitting.
#[macro_export]
macro_rules! apply {
    (
        $(#[doc = $doc:expr])*
        #[apply(
            name = $name:literal,
            aliases = $aliases:tt,
            labels = $labels:ident,
            model = $model:literal,
            made_by = $made_by:literal
            $(, fits = $fits:literal)? $(,)?
        )]
        $($item:tt)*
    ) => {
        $crate::declare! {
            Apply(
                asks = [$(if $fits { $crate::Asks::Label } else { $crate::Asks::NoLabel },)? $crate::Asks::Label][0],
                name = $name,
                aliases = $aliases,
                labels = $labels,
                table = Some(("test", "The rows to decide, with the same columns; the label may be missing."))
                    .filter(|_| [$($fits,)? true][0]),
                model = $crate::ModelTable { option: $model, made_by: $made_by, fits: [$($fits,)? true][0] },
            )
            $(#[doc = $doc])*
            $($item)*
        }
    };
}
