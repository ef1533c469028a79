//! Folds, resamples and seeds of one call on several machines: each makes a share of the selections, and one of them puts all together.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::{Error, Result};

/// What one machine does of the repetitions of a call.
#[derive(Debug)]
pub struct Share(Mutex<State>);

#[derive(Debug)]
enum State {
    /// Every `of`th repetition, from the one with the number `first` on.
    Some { first: usize, of: usize },
    /// A share is done, as far as it could be.
    Done(Option<Done>),
    /// Those that nobody else has done.
    Rest(Vec<Done>),
}

/// Repetitions that were made, by their numbers, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    /// Of which rows, and of how many repetitions.
    fingerprint: u64,
    count: usize,
    results: BTreeMap<usize, String>,
}

impl Share {
    /// Every `of`th repetition, from the one with the number `first` on. The run ends with them; [`Share::done`] has what came out.
    pub fn some(first: usize, of: usize) -> Self {
        Self(Mutex::new(State::Some { first, of }))
    }

    /// What is left when others have done their shares. What cannot be used of them is done again.
    pub fn rest<'a>(done: impl IntoIterator<Item = &'a str>) -> Self {
        Self(Mutex::new(State::Rest(done.into_iter().filter_map(|done| serde_json::from_str(done).ok()).collect())))
    }

    /// What came out of a share; `None`: the run ended before a repetition, with an answer or an error that it will meet again where all is put together.
    pub fn done(&self) -> Option<String> {
        match &*self.state() {
            State::Done(done) => serde_json::to_string(done.as_ref()?).ok(),
            State::Some { .. } | State::Rest(_) => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever is repeated later is no longer shared.
    fn take(&self) -> State {
        std::mem::replace(&mut self.state(), State::Done(None))
    }
}

impl Run {
    /// Makes `count` repetitions that do not need each other: `work` makes those with the given numbers, in ascending order. On several machines each makes some of the
    /// outermost ones, and all but one end with that; `work` must use the run that it is handed. Only what was made with the same fingerprint, that of
    /// the problem ([`Problem::fingerprint`](crate::Problem::fingerprint)), is put together.
    pub fn repeat<T: Serialize + DeserializeOwned>(
        &self,
        fingerprint: impl FnOnce() -> u64,
        count: usize,
        work: impl FnOnce(&[usize], &Run) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let all: Vec<usize> = (0..count).collect();
        let Some(share) = &self.share else { return work(&all, self) };
        let run = self.alone();
        let fingerprint = fingerprint();
        match share.take() {
            State::Some { first, of } => {
                let mine: Vec<usize> = all.into_iter().skip(first).step_by(of).collect();
                let made = if mine.is_empty() { Vec::new() } else { work(&mine, &run)? };
                let results =
                    mine.iter().zip(&made).filter_map(|(at, made)| Some((*at, serde_json::to_string(made).ok()?))).collect();
                *share.state() = State::Done(Some(Done { fingerprint, count, results }));
                // Nobody asks for more of this run.
                Err(Error::cancelled())
            }
            State::Done(_) => work(&all, &run),
            State::Rest(done) => {
                let is_ours = |done: &&Done| (done.fingerprint, done.count) == (fingerprint, count);
                let results = done.iter().filter(is_ours).flat_map(|done| &done.results);
                let mut made: BTreeMap<usize, T> = results
                    .filter(|(at, _)| **at < count)
                    .filter_map(|(at, text)| Some((*at, serde_json::from_str(text).ok()?)))
                    .collect();
                let missing: Vec<usize> = all.into_iter().filter(|at| !made.contains_key(at)).collect();
                if !missing.is_empty() {
                    made.extend(missing.iter().copied().zip(work(&missing, &run)?));
                }
                Ok(made.into_values().collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Thirds of squares, and which of them were worked out here.
    fn squares(run: &Run, fingerprint: u64, count: usize) -> (Result<Vec<f64>>, Vec<usize>) {
        let mut worked = Vec::new();
        let made = run.repeat(
            || fingerprint,
            count,
            |mine, _| {
                worked = mine.to_vec();
                Ok(mine.iter().map(|at| (*at as f64).powi(2) / 3.0).collect())
            },
        );
        (made, worked)
    }

    fn share(first: usize, of: usize) -> String {
        let share = Arc::new(Share::some(first, of));
        let (made, worked) = squares(&Run::new(1).with_share(Arc::clone(&share)), 5, 7);
        assert_eq!(made, Err(Error::cancelled()));
        assert_eq!(worked, (first..7).step_by(of).collect::<Vec<_>>());
        share.done().unwrap()
    }

    #[test]
    fn shares_put_together_are_the_whole() {
        let here = squares(&Run::new(1), 5, 7).0;
        for of in [1, 2, 3, 7, 9] {
            let done: Vec<String> = (0..of).map(|first| share(first, of)).collect();
            let put =
                |done: &[String]| squares(&Run::new(1).with_share(Arc::new(Share::rest(done.iter().map(String::as_str)))), 5, 7);
            assert_eq!(put(&done), (here.clone(), Vec::new()));
            // A share that is lost, or that nobody can read, is done where all is put together.
            let (all, worked) = put(&done[1..]);
            assert_eq!((all, worked), (here.clone(), (0..7).step_by(of).collect()));
            assert_eq!(put(&["?".to_string()]), (here.clone(), (0..7).collect()));
        }
    }

    #[test]
    fn what_was_made_of_others_is_made_again() {
        let done = share(0, 1);
        let rest = || Run::new(1).with_share(Arc::new(Share::rest([done.as_str()])));
        assert_eq!(squares(&rest(), 5, 7).1, Vec::<usize>::new());
        assert_eq!((squares(&rest(), 6, 7).1.len(), squares(&rest(), 5, 6).1.len()), (7, 6));
        // Only what is repeated first is shared.
        let run = rest();
        assert_eq!((squares(&run, 5, 7).1.len(), squares(&run, 5, 7).1.len()), (0, 7));
    }
}
