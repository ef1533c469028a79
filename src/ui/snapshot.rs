//! What was gathered of a table at some moment, and the tables that questions are put to.

use std::sync::{Arc, Mutex, PoisonError};

use pursuit_udfs::{Data, Error, Moments, Parts, Plan, Result, Table};

/// The moments of the rows that have one value of the column to group by; of all rows, if there is no such column.
pub(super) struct Group {
    /// The value as SQL has it.
    pub literal: String,
    pub whole: Moments,
    pub parts: Vec<Moments>,
}

pub(super) struct Snapshot {
    pub rows: u64,
    pub groups: Vec<Group>,
    /// Those asked for last.
    prepared: Mutex<Vec<(Wanted, Arc<Prepared>)>>,
}

/// Which rows, and how many values of a text are told apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub groups: Option<Vec<String>>,
    pub max_levels: Option<usize>,
}

/// A table that questions can be put to.
pub(super) struct Prepared {
    pub plan: Plan,
    pub table: Arc<Table>,
    pub parts: Arc<Parts>,
}

/// Tables that are kept for the next question: two methods side by side, and where the hand came from.
const KEPT: usize = 4;

impl Snapshot {
    pub(super) fn new(rows: u64, groups: Vec<Group>) -> Self {
        Self { rows, groups, prepared: Mutex::default() }
    }

    /// The table for a question. `None`: another number of levels needs another pass.
    pub(super) fn table(&self, wanted: &Wanted) -> Result<Option<Arc<Prepared>>> {
        let known = || self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, prepared)) = known().iter().find(|(of, _)| of == wanted) {
            return Ok(Some(Arc::clone(prepared)));
        }
        let Some(prepared) = self.prepare(wanted)?.map(Arc::new) else { return Ok(None) };
        let mut all = known();
        all.insert(0, (wanted.clone(), Arc::clone(&prepared)));
        all.truncate(KEPT);
        Ok(Some(prepared))
    }

    fn prepare(&self, wanted: &Wanted) -> Result<Option<Prepared>> {
        let is_wanted = |group: &&Group| wanted.groups.as_ref().is_none_or(|literals| literals.contains(&group.literal));
        let mut groups = self.groups.iter().filter(is_wanted);
        let Some(first) = groups.next() else { return Err(Error::data("no rows are left; tick at least one group")) };
        let (mut whole, mut parts) = (first.whole.clone(), first.parts.clone());
        for group in groups {
            whole.merge(&group.whole)?;
            parts.iter_mut().zip(&group.parts).try_for_each(|(part, other)| part.merge(other))?;
        }
        if let Some(max_levels) = wanted.max_levels {
            let changed = [&whole].into_iter().chain(&parts).map(|moments| moments.with_max_levels(max_levels));
            let Some(mut changed) = changed.collect::<Option<Vec<_>>>() else { return Ok(None) };
            whole = changed.remove(0);
            parts = changed;
        }
        let plan = whole.plan().clone();
        let table = Arc::new(Table::new(Data::Gram(whole.finish()), &plan));
        Ok(Some(Prepared { plan, table, parts: Arc::new(Parts { whole, parts }) }))
    }
}
