//! Whether a subquery has looked at the rows of a table: features that were chosen so are praised by these rows.

use std::collections::BTreeSet;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use crate::table::SelectTable;

/// The tables that a plan reads, and what of them it leaves out.
#[derive(Default)]
struct Reads {
    tables: BTreeSet<String>,
    filters: BTreeSet<String>,
}

/// Whether a plan reads a table of another one, and leaves no more of it out. Where it cannot be told, it says no.
pub(crate) fn has_seen(features: &LogicalPlan, input: &LogicalPlan) -> bool {
    let (mut theirs, mut ours) = (Reads::default(), Reads::default());
    if theirs.look(features, false).is_err() || ours.look(input, true).is_err() {
        return false;
    }
    !theirs.tables.is_disjoint(&ours.tables) && theirs.filters.is_subset(&ours.filters)
}

impl Reads {
    /// What is left out above a selection is left out of its answer, and not of what it has seen.
    fn look(&mut self, plan: &LogicalPlan, is_below: bool) -> Result<()> {
        plan.apply(|node| {
            match node {
                LogicalPlan::Aggregate(aggregate) if !is_below => {
                    self.look(&aggregate.input, true)?;
                    return Ok(TreeNodeRecursion::Jump);
                }
                LogicalPlan::Filter(filter) if is_below => {
                    self.filters.insert(filter.predicate.to_string());
                }
                LogicalPlan::Limit(_) if is_below => {
                    self.filters.insert(node.display().to_string());
                }
                LogicalPlan::TableScan(scan) => {
                    let provider = source_as_provider(&scan.source)?;
                    match (provider.downcast_ref::<SelectTable>(), provider.get_logical_plan()) {
                        (Some(selection), _) => self.look(selection.input(), true)?,
                        (None, Some(view)) => self.look(&view, is_below)?,
                        (None, None) => {
                            self.tables.insert(scan.table_name.to_string());
                        }
                    }
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }
}
