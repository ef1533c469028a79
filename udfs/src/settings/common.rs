use std::collections::{BTreeMap, BTreeSet};

use crate::settings::options::{Bytes, Count, unknown_names};
use crate::settings::spending::Spending;
use crate::{Check, Error, Result, choice, options};

choice! {
    /// What kind of label it is.
    pub enum Task {
        Auto = "auto",
        Regression = "regression",
        Classification = "classification",
    }
}

choice! {
    /// What a NULL in a feature means.
    pub enum Nulls {
        Mean = "mean",
        Indicator = "indicator",
        Drop = "drop",
        Error = "error",
    }
}

choice! {
    /// What becomes of a text column with more values than are told apart.
    pub enum Levels {
        Top = "top",
        Hash = "hash",
        Error = "error",
    }
}

choice! {
    /// Which rows the answer has.
    pub enum Shown {
        Chosen = "chosen",
        All = "all",
    }
}

choice! {
    /// How the table is read.
    pub enum Reading {
        Auto = "auto",
        Moments = "moments",
        Rows = "rows",
    }
}

options! {
    /// The options that every selector has.
    pub struct Common {
        /// How many features to choose. 'auto': as many as the selector's own criterion asks for, or, with `folds`, as many as predict the rows held out
        /// best. 'one_se', which needs `folds`: the fewest within one standard error of that.
        k: Count = Count::Default, Check::AtLeast(1.0);
        /// Repeat the selection without each of so many folds of the rows, and judge its beginnings by the rows left out: `valid_score` is the share of
        /// the label's variance that least squares explains there, `valid_error` its standard error.
        folds: Option<usize> = None, Check::Between(2.0, 1000.0);
        /// Only these columns are candidates; `*` stands for any letters. A table or subquery with a column `feature`, such as
        /// another selection, is read first.
        features: Vec<String> = Vec::new();
        /// These columns are no candidates; `*` stands for any letters.
        exclude: Vec<String> = Vec::new();
        /// Chosen first, in this order, and counted in `k`.
        must_include: Vec<String> = Vec::new();
        /// A numeric column: how often each row counts.
        weights: Option<String> = None;
        /// Columns that are chosen together, as one feature of the group's name.
        groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        /// One selection for each combination of these columns' values.
        partition_by: Vec<String> = Vec::new();
        /// Whether the label is a number or a class. 'auto': text and booleans are classes, floats are numbers,
        /// integers are classes when they take at most 32 values with five or more rows each on average.
        task: Task = Task::Auto;
        /// NULL, NaN and infinity in a number: filled with the mean, filled with the mean and flagged by an extra
        /// column, the row dropped, or an error. In a text 'mean' and 'indicator' make NULL a level of its own. Rows without a label are always dropped.
        nulls: Nulls = Nulls::Mean;
        /// Most values of a text column that are told apart; NULL is one more.
        max_levels: usize = 50, Check::Between(1.0, 1e6);
        /// A text column with more values: 'top' keeps the most frequent and joins the others, 'hash' deals all values out to `max_levels`
        /// buckets, 'error' refuses. The first two leave a column out if it has fewer than two rows a value.
        levels: Levels = Levels::Top;
        /// Most distinct values of a label that is a class.
        max_classes: usize = 100, Check::Between(2.0, 1e5);
        /// Scale every feature to unit length first. Correlations and trees are the same either way.
        standardize: bool = true;
        /// 'all' also lists the features that were not chosen, and why.
        rows: Shown = Shown::Chosen;
        /// Where random numbers start.
        seed: usize = 0;
        /// Threads for the selection; 0: all.
        threads: usize = 0, Check::Between(0.0, 1024.0);
        /// Seconds after which a selection ends: with an error, or, where one is made by trying several, with the best so far. NULL: none.
        time_limit: Option<f64> = None, Check::Between(0.001, 1e6);
        /// Most memory for what is kept of the table.
        max_memory: Option<Bytes> = None;
        /// Learn from so many different rows at most, drawn by a hash of their content and the seed; equal rows count as one with their weights added up. Of each group
        /// with `partition_by`. The rows drawn are kept, whatever `reads` says. NULL: all rows.
        sample_rows: Option<usize> = None, Check::Between(2.0, 1e9);
        /// One pass that keeps second moments, or the rows themselves. 'auto': moments where they suffice, up to 1000 columns.
        reads: Reading = Reading::Auto;
        ..spending: Spending;
    }
}

/// Common options that can be given once for a session: those that say how to work, and not what is asked.
pub const OF_SESSIONS: [&str; 9] =
    ["seed", "threads", "time_limit", "max_memory", "sample_rows", "nulls", "levels", "max_levels", "max_classes"];

impl Common {
    /// Checks what options ask of each other.
    pub fn check(&self) -> Result<()> {
        if self.k == Count::OneSe && self.folds.is_none() {
            return Err(Error::call("`k` must be a whole number or 'auto' without folds, got 'one_se'; add folds => 5"));
        }
        Ok(())
    }

    /// Checks groups and forced features against the columns that may be chosen, and returns the names of the units.
    pub fn check_units(&self, features: &[String]) -> Result<Vec<String>> {
        let mut group_of = BTreeMap::new();
        for (group, members) in &self.groups {
            for member in members {
                if !features.contains(member) {
                    return Err(unknown_names("groups", member, features));
                }
                if group_of.insert(member.as_str(), group).is_some() {
                    return Err(Error::call(format!("`groups` has `{member}` twice; a feature belongs to one group")));
                }
            }
            if members.is_empty() {
                return Err(Error::call(format!("`groups` has no feature in `{group}`; name some, or leave it out")));
            }
        }
        let single = features.iter().filter(|name| !group_of.contains_key(name.as_str()));
        let units: Vec<String> = single.chain(self.groups.keys()).cloned().collect();
        if let Some(group) = self.groups.keys().find(|group| units.iter().filter(|unit| unit == group).count() > 1) {
            return Err(Error::call(format!(
                "two features are named `{group}`: a group and a column outside of it; rename the group"
            )));
        }
        let mut forced = BTreeSet::new();
        for name in &self.must_include {
            if let Some(group) = group_of.get(name.as_str()) {
                return Err(Error::call(format!(
                    "`must_include` names `{name}`, which is part of the group `{group}`; name the group"
                )));
            }
            if !units.contains(name) {
                return Err(unknown_names("must_include", name, &units));
            }
            if !forced.insert(name) {
                return Err(Error::call(format!("`must_include` names `{name}` twice")));
            }
        }
        for name in self.spending.costs.keys() {
            if let Some(group) = group_of.get(name.as_str()) {
                return Err(Error::call(format!("`costs` names `{name}`, which is part of the group `{group}`; name the group")));
            }
            if !units.contains(name) {
                return Err(unknown_names("costs", name, &units));
            }
        }
        if let Some(budget) = self.spending.budget {
            let forced: f64 = self.must_include.iter().map(|name| self.spending.cost(name)).sum();
            if forced > budget {
                return Err(Error::call(format!(
                    "`budget` must be at least {forced} to pay for what must_include names, got {budget}"
                )));
            }
        }
        Ok(units)
    }
}
