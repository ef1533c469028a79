//! Who does the work of a step.

use std::sync::Arc;

use rayon::prelude::*;

pub(crate) use crate::kernels::team::Team;

/// Who does a piece of work.
#[derive(Debug, Clone)]
pub(crate) enum Hands {
    /// This thread.
    One,
    /// Whoever of rayon's threads is free.
    Pool,
    Team(Arc<Team>),
}

impl Hands {
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Hands::One)
    }

    /// Does something to every item, in any order.
    pub(crate) fn each<T: Send>(&self, items: &mut [T], work: impl Fn(usize, &mut T) + Send + Sync) {
        match self {
            Hands::One => items.iter_mut().enumerate().for_each(|(at, item)| work(at, item)),
            Hands::Pool => items.par_iter_mut().enumerate().for_each(|(at, item)| work(at, item)),
            Hands::Team(team) => team.each(items, work),
        }
    }
}
