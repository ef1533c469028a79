//! Threads that stay awake between the pieces of work that they share.
//!
//! A step of training has three parallel parts of a tenth of a millisecond or less. A thread of rayon's that finds nothing to do falls asleep, and
//! to wake it costs a good part of that.
//!
//! Nobody waits for a thread to come, be it the leader or somebody else: a piece is done by whoever comes first, the leader does all that
//! nobody has begun, and members take up other work of the pool as soon as there is some.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// More threads than that find nothing to do in a step.
const MEMBERS_MAX: usize = 8;
/// Pieces after which a member looks whether others have work for it too.
const PIECES: u32 = 64;
/// Looks for work before a thread lets others have its core.
const SPINS: u32 = 2000;

/// Threads of the pool that wait for pieces of the leader's work. The leader may be a thread of any kind.
#[derive(Debug, Default)]
pub(crate) struct Team {
    /// The pieces that nobody has begun.
    open: AtomicU64,
    done: AtomicUsize,
    /// Lives until all its pieces are done.
    job: AtomicPtr<Job<'static>>,
    is_over: AtomicBool,
    /// What a member's piece panicked with.
    failure: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The pieces `from..to` of the job of a number. In one word, so that a piece is never taken from a job that is over.
#[derive(Clone, Copy)]
struct Open {
    job: u32,
    from: u16,
    to: u16,
}

impl Open {
    fn of(word: u64) -> Self {
        Self { job: (word >> 32) as u32, from: (word >> 16) as u16, to: word as u16 }
    }

    fn word(self) -> u64 {
        u64::from(self.job) << 32 | u64::from(self.from) << 16 | u64::from(self.to)
    }
}

/// Where a thread takes its pieces from. The leader begins with the first and members with the last, so that on two cores each has the
/// same weights in its cache from step to step.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

/// Work on the piece of a number.
struct Job<'a>(&'a (dyn Fn(usize) + Sync));

impl Team {
    /// Runs `work` with a team of the pool's threads, as far as they have nothing else to do.
    pub(crate) fn gather<R>(work: impl FnOnce(&Arc<Team>) -> R) -> R {
        /// Sends the members home, also when the work panics.
        struct Dismissal<'a>(&'a Team);
        impl Drop for Dismissal<'_> {
            fn drop(&mut self) {
                self.0.is_over.store(true, Ordering::Release);
            }
        }
        let team = Arc::new(Team::default());
        for _ in 1..rayon::current_num_threads().min(MEMBERS_MAX) {
            let team = team.clone();
            rayon::spawn(move || team.help());
        }
        let _dismissal = Dismissal(&team);
        work(&team)
    }

    /// Does something to every item, in any order.
    pub(crate) fn each<T: Send>(&self, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        struct Items<T>(*mut T);
        // SAFETY: the pointer goes to other threads only to make references to different items, which are `Send`.
        unsafe impl<T: Send> Sync for Items<T> {}
        impl<T> Items<T> {
            /// # Safety
            /// `at` must be the place of an item that nobody else has.
            #[allow(clippy::mut_from_ref)]
            unsafe fn item(&self, at: usize) -> &mut T {
                // SAFETY: by the contract of this function.
                unsafe { &mut *self.0.add(at) }
            }
        }
        let pieces = items.len();
        let items = Items(items.as_mut_ptr());
        // SAFETY: every number below `pieces` is given to one thread once.
        self.share(pieces, &|at| work(at, unsafe { items.item(at) }));
    }

    fn share(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        assert!(pieces <= usize::from(u16::MAX), "too many pieces for one job");
        let job = Job(work);
        self.job.store(std::ptr::from_ref(&job).cast_mut().cast(), Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        let number = Open::of(self.open.load(Ordering::Relaxed)).job.wrapping_add(1);
        self.open.store(Open { job: number, from: 0, to: pieces as u16 }.word(), Ordering::Release);
        // Whatever happens in here, the job must not go before its last piece is done.
        let own = catch_unwind(AssertUnwindSafe(|| while self.do_piece(End::First) {}));
        while own.is_err() && self.skip_piece() {}
        wait(|| self.done.load(Ordering::Acquire) == pieces);
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        if let Some(panic) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            std::panic::resume_unwind(panic);
        }
    }

    /// Takes a piece, if there is one: its number.
    fn take_piece(&self, end: End) -> Option<usize> {
        let mut word = self.open.load(Ordering::Acquire);
        loop {
            let open = Open::of(word);
            if open.from == open.to {
                return None;
            }
            let (piece, rest) = match end {
                End::First => (open.from, Open { from: open.from + 1, ..open }),
                End::Last => (open.to - 1, Open { to: open.to - 1, ..open }),
            };
            match self.open.compare_exchange_weak(word, rest.word(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(usize::from(piece)),
                Err(other) => word = other,
            }
        }
    }

    fn do_piece(&self, end: End) -> bool {
        /// Counts a piece, also when the work panics.
        struct Done<'a>(&'a Team);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.done.fetch_add(1, Ordering::Release);
            }
        }
        let Some(piece) = self.take_piece(end) else { return false };
        let _done = Done(self);
        // SAFETY: the leader keeps the job until every piece that was taken is done.
        let job = unsafe { &*self.job.load(Ordering::Relaxed) };
        match end {
            End::First => (job.0)(piece),
            // The leader is told: a member's own panic would end the process.
            End::Last => {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (job.0)(piece))) {
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
                }
            }
        }
        true
    }

    fn skip_piece(&self) -> bool {
        self.take_piece(End::First).is_some_and(|_| {
            self.done.fetch_add(1, Ordering::Release);
            true
        })
    }

    fn help(&self) {
        let (mut spins, mut pieces) = (0, 0);
        while !self.is_over.load(Ordering::Acquire) {
            let open = Open::of(self.open.load(Ordering::Relaxed));
            if open.from < open.to && self.do_piece(End::Last) {
                (spins, pieces) = (0, pieces + 1);
                if pieces % PIECES == 0 {
                    rayon::yield_now();
                }
                continue;
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else if rayon::yield_now() != Some(rayon::Yield::Executed) {
                std::thread::yield_now();
            }
        }
    }
}

fn wait(mut is_ready: impl FnMut() -> bool) {
    let mut spins = 0;
    while !is_ready() {
        spins += 1;
        if spins < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    }

    /// Many short jobs of changing sizes: every item is worked on once in each.
    #[test]
    fn every_piece_is_done_once() {
        for threads in [1, 2, 5] {
            on_threads(threads, || {
                Team::gather(|team| {
                    for round in 0..20_000usize {
                        let mut items = vec![0usize; round % 11];
                        team.each(&mut items, |at, item| *item += at + round);
                        assert!(items.iter().enumerate().all(|(at, item)| *item == at + round), "{round} {items:?}");
                    }
                });
            });
        }
    }

    /// The pool's threads are busy with something that waits for the team's work to end: it must not wait for them.
    #[test]
    fn a_team_whose_members_never_come_does_the_work_alone() {
        on_threads(2, || {
            let is_over = AtomicBool::new(false);
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| wait(|| is_over.load(Ordering::Acquire)));
                std::thread::sleep(std::time::Duration::from_millis(20));
                let mut items = [0; 9];
                Team::gather(|team| {
                    team.each(&mut items, |at, item| *item = at);
                    is_over.store(true, Ordering::Release);
                });
                assert_eq!(items, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
            });
        });
    }

    /// A long job that comes while a team is at work is begun before the team is dismissed.
    #[test]
    fn members_take_up_other_work() {
        on_threads(2, || {
            Team::gather(|team| {
                // The member has come.
                let came = AtomicBool::new(false);
                let leader = std::thread::current().id();
                while !came.load(Ordering::Relaxed) {
                    team.each(&mut [0; 64], |_, _| {
                        came.fetch_or(std::thread::current().id() != leader, Ordering::Relaxed);
                    });
                }
                let (sender, receiver) = std::sync::mpsc::channel();
                rayon::spawn(move || sender.send(()).unwrap());
                assert!(receiver.recv_timeout(std::time::Duration::from_secs(20)).is_ok());
            });
        });
    }

    #[test]
    fn a_panic_ends_the_work_and_not_the_process() {
        for threads in [1, 3] {
            let caught = on_threads(threads, || {
                std::panic::catch_unwind(|| {
                    Team::gather(|team| {
                        for round in 0..1000 {
                            team.each(&mut [0; 7], |at, _| assert!(round < 500 || at != 3, "piece 3"));
                        }
                    })
                })
            });
            let panic = caught.unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"piece 3"));
        }
    }
}
