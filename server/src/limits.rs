//! How many selections run at once, on the server and for one user.
//!
//! Selections that read moments and those that read rows have places of their own: the first take milliseconds, and would otherwise wait until a
//! network is trained.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::{Failure, LIMIT};

/// What a statement has the server do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// No function of ours.
    Query,
    /// Nothing but moments, in standard nodes.
    Moments,
    /// An operator of ours, which may train for minutes.
    Rows,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Query, Kind::Moments, Kind::Rows];

    /// The heaviest that is in the plan.
    pub fn of(plan: &dyn ExecutionPlan) -> Self {
        let own = match plan.name() {
            "SelectExec" | "ApplyExec" | "SummarizeExec" | "ModelExec" => Kind::Rows,
            // Of asynchronous functions there are only ours.
            "async_func" => Kind::Moments,
            _ => Kind::Query,
        };
        plan.children().into_iter().map(|child| Self::of(child.as_ref())).fold(own, Kind::max)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Query => "query",
            Kind::Moments => "moments",
            Kind::Rows => "rows",
        }
    }
}

/// Places for selections.
#[derive(Debug)]
pub struct Limits {
    server: usize,
    user: usize,
    wait: Duration,
    places: [Arc<Semaphore>; 2],
    of_users: Mutex<HashMap<String, [Arc<Semaphore>; 2]>>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct Place {
    _places: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Limits {
    pub fn new(server: usize, user: usize, wait: Duration) -> Self {
        Self { server, user, wait, places: places(server), of_users: Mutex::default() }
    }

    /// Waits for a place. Whoever waits too long is told which limit it was.
    pub async fn place(&self, kind: Kind, user: &str) -> Result<Place, Failure> {
        let at = match kind {
            Kind::Query => return Ok(Place { _places: None }),
            Kind::Moments => 0,
            Kind::Rows => 1,
        };
        let own = {
            let mut of_users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&of_users.entry(user.to_string()).or_insert_with(|| places(self.user))[at])
        };
        // First among those of the user, so that one who asks a hundred times does not stand before everybody else.
        let until = tokio::time::Instant::now() + self.wait;
        let refused = |whose: &str, limit: usize, option: &str| {
            let (kind, waited) = (kind.name(), self.wait.as_secs());
            Failure::new(LIMIT, format!("{whose} {limit} selections from {kind} are running; none ended within {waited} s"))
                .hint(format!("try again later, or ask for a higher {option}"))
        };
        let place = |semaphore: Arc<Semaphore>| tokio::time::timeout_at(until, semaphore.acquire_owned());
        let of_user = place(own).await.map_err(|_| refused("your", self.user, "--max-selections-per-user"))?;
        let of_server =
            place(Arc::clone(&self.places[at])).await.map_err(|_| refused("the server's", self.server, "--max-selections"))?;
        let closed = |_| Failure::new(LIMIT, "the server takes no selections any more");
        Ok(Place { _places: Some((of_user.map_err(closed)?, of_server.map_err(closed)?)) })
    }
}

fn places(number: usize) -> [Arc<Semaphore>; 2] {
    [(); 2].map(|()| Arc::new(Semaphore::new(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_finds_no_place_is_told_whose_limit_it_is() {
        let limits = Limits::new(2, 1, Duration::from_millis(20));
        let first = limits.place(Kind::Rows, "ada").await.unwrap();
        let refused = limits.place(Kind::Rows, "ada").await.unwrap_err();
        assert_eq!((refused.code, refused.message.starts_with("your 1 ")), (LIMIT, true), "{refused}");
        let _quick = limits.place(Kind::Moments, "ada").await.unwrap();
        let _free = limits.place(Kind::Query, "ada").await.unwrap();
        let _second = limits.place(Kind::Rows, "bob").await.unwrap();
        let refused = limits.place(Kind::Rows, "eve").await.unwrap_err();
        assert!(refused.message.starts_with("the server's 2 "), "{refused}");
        drop(first);
        limits.place(Kind::Rows, "eve").await.unwrap();
    }
}
