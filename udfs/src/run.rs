use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};
use shares::Share;

pub(crate) mod shares;

/// One execution of a selector: how to stop it, whom to tell, and where its random numbers come from.
#[derive(Clone, Default)]
pub struct Run {
    cancelled: Arc<AtomicBool>,
    progress: Option<Arc<Report>>,
    remarks: Option<Arc<Remarks>>,
    budget: Option<Arc<dyn Budget>>,
    clock: Option<Arc<Clock>>,
    deadline: Option<f64>,
    pub(crate) share: Option<Arc<Share>>,
    seed: u64,
}

/// Where memory is asked for before it is used.
pub trait Budget: Send + Sync {
    fn grow(&self, bytes: usize) -> Result<()>;

    fn shrink(&self, bytes: usize);
}

/// Memory that was granted; it is given back when the lease is dropped.
#[must_use = "the memory is given back when the lease is dropped"]
pub struct Lease {
    budget: Option<Arc<dyn Budget>>,
    bytes: usize,
}

impl Lease {
    /// Asks for more.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        if let Some(budget) = &self.budget {
            budget.grow(bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Gives all but so many bytes back.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(budget) = &self.budget
            && bytes < self.bytes
        {
            budget.shrink(self.bytes - bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.shrink(self.bytes);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} bytes)", self.bytes)
    }
}

/// Seconds since the run began.
type Clock = dyn Fn() -> f64 + Send + Sync;

/// Told what is to be known of an answer.
type Remarks = dyn Fn(&str) + Send + Sync;

/// Told how many steps are done, of how many, and a word on how it goes.
type Report = dyn Fn(usize, usize, &str) + Send + Sync;

impl Run {
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The same run with other random numbers.
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { seed: self.seed.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)), ..self.clone() }
    }

    /// Set the flag from any thread, and the run ends at its next step.
    pub fn with_cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancelled = flag;
        self
    }

    pub fn with_progress(mut self, progress: impl Fn(usize, usize, &str) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Told what a person should know of the answer, a line at a time.
    pub fn with_remarks(mut self, remarks: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.remarks = Some(Arc::new(remarks));
        self
    }

    pub fn remark(&self, line: &str) {
        if let Some(remarks) = &self.remarks {
            remarks(line);
        }
    }

    /// The same run for a part of the work, whose progress is nobody's concern.
    pub(crate) fn quiet(&self) -> Self {
        Self { progress: None, ..self.clone() }
    }

    /// Of what is repeated only a share is done here, or what is left of it.
    pub fn with_share(mut self, share: Arc<Share>) -> Self {
        self.share = Some(share);
        self
    }

    /// The same run with all repetitions done here.
    pub(crate) fn alone(&self) -> Self {
        Self { share: None, ..self.clone() }
    }

    /// Tells the time, in seconds since the run began; without it no time passes.
    pub fn with_clock(mut self, clock: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// The same run with another time at which it ends, in seconds after it began.
    pub fn until(&self, deadline: Option<f64>) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// When the run ends, in seconds after it began, if it must.
    pub fn deadline(&self) -> Option<f64> {
        self.deadline
    }

    /// Seconds since the run began.
    pub fn seconds(&self) -> f64 {
        self.clock.as_ref().map_or(0.0, |clock| clock())
    }

    /// Whether the time is over.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.seconds() > deadline)
    }

    /// Memory is asked for here; without it there is no limit.
    pub fn with_budget(mut self, budget: Arc<dyn Budget>) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Asks for memory that grows with rows or columns, before it is allocated. Keep the lease as long as the memory.
    pub fn reserve(&self, bytes: usize) -> Result<Lease> {
        let mut lease = Lease { budget: self.budget.clone(), bytes: 0 };
        lease.grow(bytes)?;
        Ok(lease)
    }

    /// Every selector calls this before each step: it reports progress and honours cancellation.
    pub fn step(&self, done: usize, total: usize) -> Result<()> {
        self.step_with(done, total, String::new)
    }

    /// A step with a word on how it goes: `loss 0.213`.
    pub fn step_with(&self, done: usize, total: usize, note: impl FnOnce() -> String) -> Result<()> {
        self.check()?;
        if let Some(progress) = &self.progress {
            progress(done, total, &note());
        }
        Ok(())
    }

    /// Cancellation and the time limit alone, for the inside of a long step.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::cancelled());
        }
        match self.deadline {
            Some(deadline) if self.is_late() => {
                Err(Error::limit(format!("the time_limit of {deadline} seconds is over; raise it, or ask for less")))
            }
            _ => Ok(()),
        }
    }

    /// The random stream for one purpose. Named, so that a new user of random numbers never shifts
    /// another's; numbered, so that parallel tasks each have their own whatever thread runs them.
    pub fn random(&self, purpose: &str, task: u64) -> Random {
        let mut random = Random(self.seed ^ hash(purpose));
        random.0 = random.next_u64() ^ task.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        random.next_u64();
        random
    }
}

/// FNV-1a: the same on every platform and in every version.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// SplitMix64: small, fast, and the same on every platform and in every version.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Puts the items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_purpose_task_and_seed() {
        let first = |run: &Run, purpose, task| run.random(purpose, task).next_u64();
        let run = Run::new(1);
        assert_eq!(first(&run, "trees", 0), first(&Run::new(1), "trees", 0));
        assert_ne!(first(&run, "trees", 0), first(&run, "trees", 1));
        assert_ne!(first(&run, "trees", 0), first(&run, "split", 0));
        assert_ne!(first(&run, "trees", 0), first(&Run::new(2), "trees", 0));
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let mut random = Run::new(3).random("normal", 0);
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    struct Limit(std::sync::Mutex<usize>);

    impl Budget for Limit {
        fn grow(&self, bytes: usize) -> Result<()> {
            let mut left = self.0.lock().unwrap();
            *left = left.checked_sub(bytes).ok_or_else(|| Error::limit("too much"))?;
            Ok(())
        }

        fn shrink(&self, bytes: usize) {
            *self.0.lock().unwrap() += bytes;
        }
    }

    #[test]
    fn memory_is_granted_up_to_the_limit_and_given_back() {
        let limit = Arc::new(Limit(std::sync::Mutex::new(100)));
        let run = Run::new(0).with_budget(Arc::clone(&limit) as _);
        let mut first = run.reserve(60).unwrap();
        assert!(run.reserve(50).is_err());
        first.grow(40).unwrap();
        assert!(first.grow(1).is_err());
        drop(first);
        assert_eq!(*limit.0.lock().unwrap(), 100);
        assert!(Run::new(0).reserve(usize::MAX).is_ok(), "without a budget there is no limit");
    }

    #[test]
    fn cancelling_stops_at_the_next_step() {
        let flag = Arc::new(AtomicBool::new(false));
        let run = Run::new(0).with_cancel(Arc::clone(&flag));
        assert!(run.step(0, 2).is_ok());
        flag.store(true, Ordering::Relaxed);
        assert_eq!(run.step(1, 2), Err(Error::cancelled()));
    }
}
