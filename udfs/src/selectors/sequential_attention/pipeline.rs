//! Work handed on in order: by a thread of the pool if one is free, and otherwise by whoever brings it.
//!
//! Who reads rows and who learns from them do not wait for each other as long as something lies between them. Nobody waits for a task that has
//! not begun, so that a pool whose threads are all taken cannot stop it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Error, Result};

/// Does a piece of work at a time.
pub(super) trait Worker: Send + 'static {
    type Piece: Send;

    fn work(&mut self, piece: &Self::Piece) -> Result<()>;
}

pub(super) struct Pipeline<W: Worker>(Arc<Shared<W>>);

struct Shared<W: Worker> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

struct State<W: Worker> {
    /// Absent while it works.
    worker: Option<W>,
    waiting: VecDeque<W::Piece>,
    /// For whoever brings the next ones: they have space.
    done: Vec<W::Piece>,
    failure: Option<Error>,
    helper: Helper,
}

/// A thread of the pool that lets the worker work, so that whoever brings pieces can bring more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Helper {
    /// Nobody was asked, or who was asked is gone again.
    None,
    /// Somebody was asked, and will come when a thread is free. Nobody waits for that.
    Asked,
    /// Somebody is here, and works or waits for the worker.
    Here,
}

/// Pieces that may wait.
pub(super) const WAITING: usize = 64;

impl<W: Worker> Pipeline<W> {
    pub(super) fn new(worker: W) -> Self {
        let (waiting, done) = (VecDeque::new(), Vec::new());
        let state = State { worker: Some(worker), waiting, done, failure: None, helper: Helper::None };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Hands pieces on, and returns some that are done. An error is that of an earlier piece.
    pub(super) fn push(&self, pieces: impl IntoIterator<Item = W::Piece>) -> Result<Vec<W::Piece>> {
        let mut state = self.0.lock();
        state.waiting.extend(pieces);
        // Only from within the pool: a helper waits for the worker, which may be waiting for threads of the pool that helpers have not taken.
        let has_others = rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1;
        if state.helper == Helper::None && !state.waiting.is_empty() && has_others {
            state.helper = Helper::Asked;
            let shared = Arc::clone(&self.0);
            rayon::spawn(move || shared.help());
        }
        state = self.0.wait_for(state, WAITING);
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(std::mem::take(&mut state.done)),
        }
    }

    /// The worker, when nothing waits any more.
    pub(super) fn finish(self) -> Result<W> {
        let mut state = self.0.wait_for(self.0.lock(), 0);
        while state.worker.is_none() {
            state = self.0.wait(state);
        }
        match (state.failure.take(), state.worker.take()) {
            (None, Some(worker)) => Ok(worker),
            (failure, _) => Err(failure.unwrap_or_else(|| Error::data("a worker got lost"))),
        }
    }
}

impl<W: Worker> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<W>>) -> MutexGuard<'a, State<W>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Until no more than `rest` pieces wait. If nobody is at work it is done here, until a helper comes.
    fn wait_for<'a>(&'a self, mut state: MutexGuard<'a, State<W>>, rest: usize) -> MutexGuard<'a, State<W>> {
        while state.waiting.len() > rest {
            state = match state.worker {
                Some(_) if state.helper != Helper::Here => {
                    self.work(state, |state| state.waiting.len() > rest && state.helper != Helper::Here)
                }
                _ => self.wait(state),
            };
        }
        state
    }

    /// Works as long as something waits. Somebody else who is at work hands over, and is then free to bring more.
    fn help(&self) {
        let mut state = self.lock();
        state.helper = Helper::Here;
        while !state.waiting.is_empty() {
            state = match state.worker {
                Some(_) => self.work(state, |_| true),
                None => self.wait(state),
            };
        }
        state.helper = Helper::None;
        self.changed.notify_all();
    }

    /// Works as long as something waits and nothing else has to be done.
    fn work<'a>(&'a self, mut state: MutexGuard<'a, State<W>>, goes_on: impl Fn(&State<W>) -> bool) -> MutexGuard<'a, State<W>> {
        let Some(mut worker) = state.worker.take() else { return state };
        while goes_on(&state)
            && let Some(piece) = state.waiting.pop_front()
        {
            drop(state);
            let result = catch_unwind(AssertUnwindSafe(|| worker.work(&piece)));
            state = self.lock();
            state.done.push(piece);
            if let Err(failure) = result.unwrap_or_else(|_| Err(Error::data("training panicked"))) {
                state.failure = Some(failure);
                state.waiting.clear();
            }
            self.changed.notify_all();
        }
        state.worker = Some(worker);
        self.changed.notify_all();
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers what it was given, and fails at a number.
    struct Memory(Vec<usize>, usize);

    impl Worker for Memory {
        type Piece = usize;

        fn work(&mut self, piece: &usize) -> Result<()> {
            self.0.push(*piece);
            if *piece == self.1 { Err(Error::data("enough")) } else { Ok(()) }
        }
    }

    fn pipeline(threads: usize, pieces: usize, fails_at: usize) -> Result<Memory> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let pipeline = Pipeline::new(Memory(Vec::new(), fails_at));
            let mut next = 0;
            while next < pieces {
                let end = pieces.min(next + 1 + next % 37);
                let done = pipeline.push(next..end)?;
                assert!(done.len() <= pieces);
                next = end;
            }
            pipeline.finish()
        })
    }

    #[test]
    fn every_piece_is_worked_on_once_and_in_order() {
        for (threads, pieces) in [(1, 1000), (2, 5000), (4, 20_000), (2, 0)] {
            assert_eq!(pipeline(threads, pieces, usize::MAX).unwrap().0, (0..pieces).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failure_ends_it() {
        for threads in [1, 2] {
            assert!(pipeline(threads, 1000, 333).is_err_and(|error| error.to_string().contains("enough")));
        }
    }

    /// Both threads of the pool bring work and are never free to do it for each other.
    #[test]
    fn taken_threads_do_the_work_themselves() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let run = || {
            let pipeline = Pipeline::new(Memory(Vec::new(), usize::MAX));
            (0..50).for_each(|at| drop(pipeline.push(at * 100..(at + 1) * 100).unwrap()));
            pipeline.finish().unwrap().0.len()
        };
        assert_eq!(pool.install(|| rayon::join(run, run)), (5000, 5000));
    }
}
