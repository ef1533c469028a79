use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What the selections of an engine are doing right now, for whoever wants to show it.
#[derive(Default)]
pub struct Progress {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Parts of selections at work.
    active: usize,
    since: Option<Instant>,
    rows: u64,
    step: Option<String>,
    /// How much of all steps is done.
    share: Option<f64>,
    /// What is to be known of the answers, each once.
    remarks: Vec<String>,
    on_idle: Option<Arc<dyn Fn() + Send + Sync>>,
}

const REMARKS_MAX: usize = 20;

impl Progress {
    /// One line for a person, and for how long it has been going on; `None` when no selection is running.
    pub fn line(&self) -> Option<(String, Duration)> {
        let state = self.lock();
        let line = match &state.step {
            Some(step) => step.clone(),
            None => format!("reading: {} rows", thousands(state.rows)),
        };
        Some((line, state.since?.elapsed()))
    }

    /// How much of a selection is done, where that is known.
    pub fn share(&self) -> Option<f64> {
        self.lock().share
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

    /// Marks a part of a selection as at work until the guard is dropped.
    pub(crate) fn start(self: &Arc<Self>) -> Active {
        let mut state = self.lock();
        state.active += 1;
        state.since.get_or_insert_with(Instant::now);
        Active(Arc::clone(self))
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
pub(crate) struct Active(Arc<Progress>);

impl Active {
    pub(crate) fn add_rows(&self, rows: usize) {
        self.0.lock().rows += rows as u64;
    }

    pub(crate) fn set_step(&self, selector: &'static str, done: usize, total: usize, note: &str) {
        let comma = if note.is_empty() { "" } else { ", " };
        let mut state = self.0.lock();
        state.step = Some(format!("{selector}: step {} of {total}{comma}{note}", done + 1));
        state.share = Some(done as f64 / total.max(1) as f64);
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.active -= 1;
        if state.active > 0 {
            return;
        }
        (state.since, state.rows, state.step, state.share) = (None, 0, None, None);
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
        let selecting = progress.start();
        selecting.set_step("omp", 2, 10, "");
        drop(reading);
        assert_eq!(line().unwrap(), "omp: step 3 of 10");
        drop(selecting);
        assert_eq!(line(), None);
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
