use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pursuit_udfs::{Error, Result};

/// What the selections of an engine are doing right now, for whoever wants to show it.
#[derive(Default)]
pub struct Progress {
    state: Mutex<State>,
    /// How often everything was stopped.
    stops: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Parts of selections at work.
    active: usize,
    since: Option<Instant>,
    rows: u64,
    /// Rows that there are to be read, where somebody knows.
    rows_expected: Option<u64>,
    step: Option<Step>,
    /// What is to be known of the answers, each once.
    remarks: Vec<String>,
    on_idle: Option<Arc<dyn Fn() + Send + Sync>>,
}

#[derive(Debug)]
struct Step {
    selector: &'static str,
    done: usize,
    total: usize,
    note: String,
    /// Since when this selector has been counting its steps.
    since: Instant,
}

const REMARKS_MAX: usize = 20;

impl Progress {
    /// One line for a person, and for how long it has been going on; `None` when no selection is running.
    pub fn line(&self) -> Option<(String, Duration)> {
        let state = self.lock();
        let line = match &state.step {
            Some(Step { selector, done, total, note, .. }) => {
                let comma = if note.is_empty() { "" } else { ", " };
                format!("{selector}: step {} of {total}{comma}{note}", done + 1)
            }
            None => format!("reading: {} rows", thousands(state.rows)),
        };
        Some((line, state.since?.elapsed()))
    }

    /// Which share is done of what is going on, and how long that took; `None` where nobody knows how much there is.
    pub fn share(&self) -> Option<(f64, Duration)> {
        let state = self.lock();
        let (done, total, since) = match &state.step {
            Some(step) => (step.done as f64, step.total as f64, step.since),
            None => (state.rows as f64, state.rows_expected? as f64, state.since?),
        };
        (total > 0.0 && done <= total).then(|| (done / total, since.elapsed()))
    }

    /// Says how many rows the next selection will read, if that is known.
    pub fn expect_rows(&self, rows: Option<u64>) {
        self.lock().rows_expected = rows;
    }

    /// The step that is being done, from 1, and how many there are, for a bar; `None` while rows are read and when no selection is running.
    pub fn steps(&self) -> Option<(usize, usize)> {
        self.lock().step.as_ref().map(|step| (step.done + 1, step.total))
    }

    /// What is to be known of the answers since this was last asked: a line for each.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().remarks)
    }

    pub(crate) fn remark(&self, function: &str, line: &str) {
        let line = format!("{function}: {line}");
        let mut state = self.lock();
        // A selection for each of many groups would fill the memory with remarks that nobody takes.
        if state.remarks.len() < REMARKS_MAX && !state.remarks.contains(&line) {
            state.remarks.push(line);
        }
    }

    /// Calls `then` whenever the last selection ends, before its answer is shown.
    pub fn on_idle(&self, then: impl Fn() + Send + Sync + 'static) {
        self.lock().on_idle = Some(Arc::new(then));
    }

    /// Ends what the engine's selections are reading right now, for a host whose user has pressed Ctrl-C. Whoever drops a query ends it too, but what DataFusion
    /// sums up hears of that only when a hundred batches have passed.
    pub fn stop(&self) {
        self.stops.fetch_add(1, Ordering::Relaxed);
    }

    /// Marks a part of a selection as at work until the guard is dropped.
    pub(crate) fn start(self: &Arc<Self>) -> Active {
        let mut state = self.lock();
        state.active += 1;
        state.since.get_or_insert_with(Instant::now);
        Active { progress: Arc::clone(self), stops: self.stops.load(Ordering::Relaxed) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.line()).finish()
    }
}

/// A part of a selection at work.
#[derive(Debug)]
pub(crate) struct Active {
    progress: Arc<Progress>,
    /// As it was when this began.
    stops: u64,
}

impl Active {
    pub(crate) fn add_rows(&self, rows: usize) {
        self.progress.lock().rows += rows as u64;
    }

    /// An error if everything was stopped since this began.
    pub(crate) fn check(&self) -> Result<()> {
        if self.progress.stops.load(Ordering::Relaxed) == self.stops { Ok(()) } else { Err(Error::cancelled()) }
    }

    pub(crate) fn set_step(&self, selector: &'static str, done: usize, total: usize, note: &str) {
        let mut state = self.progress.lock();
        let goes_on = state.step.as_ref().filter(|step| step.selector == selector && step.total == total && step.done <= done);
        let since = goes_on.map_or_else(Instant::now, |step| step.since);
        state.step = Some(Step { selector, done, total, note: note.to_string(), since });
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let mut state = self.progress.lock();
        state.active -= 1;
        if state.active > 0 {
            return;
        }
        (state.since, state.rows, state.rows_expected, state.step) = (None, 0, None, None);
        // What others do may take long, ask for the progress, or panic: not while it is locked.
        let on_idle = state.on_idle.clone();
        drop(state);
        if let Some(on_idle) = on_idle {
            on_idle();
        }
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).expect("digits are ASCII")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_going_on_while_it_goes_on() {
        let progress = Arc::new(Progress::default());
        let line = || progress.line().map(|(line, _)| line);
        assert_eq!(line(), None);
        let reading = progress.start();
        reading.add_rows(1_234_567);
        assert_eq!(line().unwrap(), "reading: 1,234,567 rows");
        assert_eq!(progress.share(), None);
        progress.expect_rows(Some(2_469_134));
        assert_eq!(progress.share().unwrap().0, 0.5);
        let selecting = progress.start();
        selecting.set_step("omp", 2, 10, "");
        drop(reading);
        assert_eq!(line().unwrap(), "omp: step 3 of 10");
        assert_eq!(progress.share().unwrap().0, 0.2);
        assert_eq!(progress.steps(), Some((3, 10)));
        drop(selecting);
        assert_eq!((line(), progress.steps()), (None, None));
    }

    #[test]
    fn what_began_before_a_stop_ends() {
        let progress = Arc::new(Progress::default());
        let before = progress.start();
        assert!(before.check().is_ok());
        progress.stop();
        assert!(before.check().is_err() && progress.start().check().is_ok());
    }

    #[test]
    fn a_remark_is_made_once() {
        let progress = Progress::default();
        ["a", "b", "a"].iter().for_each(|line| progress.remark("omp", line));
        assert_eq!(progress.take_remarks(), ["omp: a", "omp: b"]);
        assert!(progress.take_remarks().is_empty());
        (0..100).for_each(|at| progress.remark("omp", &format!("{at}")));
        assert_eq!(progress.take_remarks().len(), REMARKS_MAX);
    }

    #[test]
    fn who_is_told_may_ask_again() {
        let progress = Arc::new(Progress::default());
        let (sender, receiver) = std::sync::mpsc::channel();
        let asked = Arc::downgrade(&progress);
        progress.on_idle(move || sender.send(asked.upgrade().unwrap().line().is_none()).unwrap());
        drop(progress.start());
        assert_eq!(receiver.try_recv(), Ok(true));
    }
}
