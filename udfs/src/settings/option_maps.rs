//! Options that are maps or pairs of names, for which a table can be given.

use std::collections::BTreeMap;

use serde_json::Value;

use super::options::{OptionType, TableShape};

/// Group name → its columns.
impl OptionType for BTreeMap<String, Vec<String>> {
    const KIND: &'static str = "map of lists, or a table with columns feature and feature_group";
    const TABLE: Option<TableShape> = Some(TableShape::Lists);
    fn parse(value: &Value) -> Option<Self> {
        value.as_object()?.iter().map(|(name, columns)| Some((name.clone(), Vec::parse(columns)?))).collect()
    }
    fn print(&self) -> String {
        if self.is_empty() { "NULL".into() } else { format!("{self:?}") }
    }
}

/// Name → number.
impl OptionType for BTreeMap<String, f64> {
    const KIND: &'static str = "map of numbers, or a table with columns feature and cost";
    const TABLE: Option<TableShape> = Some(TableShape::Numbers);
    fn parse(value: &Value) -> Option<Self> {
        value.as_object()?.iter().map(|(name, number)| Some((name.clone(), f64::parse(number)?))).collect()
    }
    fn print(&self) -> String {
        if self.is_empty() { "NULL".into() } else { format!("{self:?}") }
    }
}

/// Name → names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists(pub BTreeMap<String, Vec<String>>);

impl OptionType for Lists {
    const KIND: &'static str = "map of lists, or a table with columns feature and feature_group";
    const TABLE: Option<TableShape> = Some(TableShape::Lists);
    fn parse(value: &Value) -> Option<Self> {
        BTreeMap::parse(value).map(Self)
    }
    fn print(&self) -> String {
        self.0.print()
    }
}

/// Pairs of names, or each name's partners: `[['a', 'b'], …]` or `MAP {'a': ['b', …], …}`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs(pub Vec<(String, String)>);

impl OptionType for Pairs {
    const KIND: &'static str = "list of pairs, or a table of two columns";
    const TABLE: Option<TableShape> = Some(TableShape::Pairs);
    fn allowed() -> String {
        "a list of pairs of names, a map from names to lists of names, or a table of two columns".into()
    }
    fn parse(value: &Value) -> Option<Self> {
        if let Some(lists) = value.as_object() {
            let pairs = |(name, partners)| Some((name, Vec::<String>::parse(partners)?));
            let lists: Vec<(&String, Vec<String>)> = lists.iter().map(pairs).collect::<Option<_>>()?;
            return Some(Self(lists.into_iter().flat_map(|(a, all)| all.into_iter().map(|b| (a.clone(), b))).collect()));
        }
        let pair = |pair: &Value| match &Vec::<String>::parse(pair)?[..] {
            [a, b] => Some((a.clone(), b.clone())),
            _ => None,
        };
        value.as_array()?.iter().map(pair).collect::<Option<_>>().map(Self)
    }
    fn print(&self) -> String {
        if self.0.is_empty() { "NULL".into() } else { format!("{:?}", self.0) }
    }
}
