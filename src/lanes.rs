//! Where selections run: on pools of threads of their own, never on a thread of the runtime.
//!
//! Two lanes, so that a selection of a few milliseconds does not stand behind one of minutes: the pools have as many threads each as the
//! machine has cores, and the operating system divides the cores between them. In a lane as many jobs are at work as there are
//! threads, and the others wait for their turn in order, without a thread.

use std::sync::{Arc, LazyLock};

use pursuit_udfs::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::{Semaphore, oneshot};

/// How long a job may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Moments to be solved, or a batch of rows to be learnt from.
    Short,
    /// A selection on all rows.
    Long,
}

static SHORT: LazyLock<std::result::Result<ThreadPool, String>> = LazyLock::new(|| {
    let pool = ThreadPoolBuilder::new().num_threads(rayon::current_num_threads()).thread_name(|at| format!("pursuit-{at}"));
    pool.build().map_err(|error| error.to_string())
});
static TURNS: LazyLock<[Arc<Semaphore>; 2]> =
    LazyLock::new(|| [(); 2].map(|()| Arc::new(Semaphore::new(rayon::current_num_threads()))));

/// Threads for the jobs of one selection.
#[derive(Debug, Clone)]
pub(crate) enum Threads {
    /// Those that all selections share.
    Lane(Lane),
    /// A number of its own.
    Own(Arc<ThreadPool>),
}

impl Threads {
    /// A pool of `threads`, or the lane if that is 0.
    pub(crate) fn new(threads: usize, lane: Lane) -> Result<Self> {
        if threads == 0 {
            return Ok(Threads::Lane(lane));
        }
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Error::limit(format!("cannot start {threads} threads: {error}; lower `threads`")))?;
        Ok(Threads::Own(Arc::new(pool)))
    }

    /// Does the job when it is its turn, and waits for it without holding a thread of the runtime's.
    pub(crate) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        match self {
            Threads::Own(pool) => {
                pool.spawn(move || {
                    let _ = sender.send(job());
                });
                receiver.await
            }
            Threads::Lane(lane) => {
                let turn = Arc::clone(&TURNS[*lane as usize]).acquire_owned().await.map_err(|_| Error::cancelled())?;
                let job = move || {
                    let result = job();
                    // Given back when the work is over, which after a cancellation is later than the query.
                    drop(turn);
                    let _ = sender.send(result);
                };
                match lane {
                    Lane::Long => rayon::spawn(job),
                    Lane::Short => {
                        let pool = SHORT.as_ref().map_err(|error| Error::limit(format!("cannot start threads: {error}")))?;
                        pool.spawn(job);
                    }
                }
                receiver.await
            }
        }
        .unwrap_or_else(|_| Err(Error::cancelled()))
    }
}
