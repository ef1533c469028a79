use std::any::Any;

use crate::contract::report::{Kind, Values};
use crate::reading::block::Block;
use crate::{Plan, Result};

/// A function whose answer is gathered while the rows of a table stream by, each partition by itself. Declared with [`summary!`](crate::summary!).
pub trait Summarize: Send + Sync {
    /// The columns of the answer.
    fn columns(&self) -> Vec<(&'static str, Kind)>;

    /// Whether text columns are read.
    fn reads_texts(&self) -> bool {
        true
    }

    /// Begins to gather. `types` are what the columns are called where they come from: the label's, then those of the features.
    fn begin(&self, plan: &Plan, types: &Types) -> Result<Box<dyn Summary>>;
}

/// What the types of the columns are called.
#[derive(Debug, Clone, Default)]
pub struct Types {
    /// `None`: the call names no label.
    pub label: Option<String>,
    pub features: Vec<String>,
}

/// What has been gathered so far. The answer must not depend on the order of rows or on which of them were gathered together.
pub trait Summary: Send {
    /// Adds some rows.
    fn push(&mut self, rows: usize, label: Option<Block<'_>>, features: &[Block<'_>]) -> Result<()>;

    /// Adds what another of the same call has gathered.
    fn merge(&mut self, other: Box<dyn Summary>) -> Result<()>;

    fn into_any(self: Box<Self>) -> Box<dyn Any>;

    /// Bytes in use.
    fn bytes(&self) -> usize;

    /// The answer.
    fn finish(self: Box<Self>) -> Result<Vec<Values>>;
}

/// Declares such a function: its documentation, its name in SQL, whether it takes a label, and its options.
#[macro_export]
macro_rules! summary {
    ($(#[doc = $doc:expr])* #[summary(name = $name:literal, aliases = $aliases:tt, asks = $asks:ident)] $($item:tt)*) => {
        $crate::declare! {
            Summarize(asks = $crate::Asks::$asks, name = $name, aliases = $aliases)
            $(#[doc = $doc])*
            $($item)*
        }
    };
}
