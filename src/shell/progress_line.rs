//! One line on the terminal that says how far a long selection is.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Progress;

/// How long a selection runs before it says so.
const QUIET_FOR: Duration = Duration::from_secs(2);

/// The line, which two threads write: the one that keeps it up to date, and the one that ends a selection.
#[derive(Default)]
pub(super) struct ProgressLine(Mutex<State>);

#[derive(Default)]
struct State {
    is_shown: bool,
    /// Nobody waits for the selection any more. It ends a little later, when the terminal shows the prompt already.
    is_over: bool,
}

impl ProgressLine {
    /// Keeps one line on the terminal up to date while a long selection runs, wipes it away before the answer, and says in one line what is to be known
    /// of that.
    pub(super) fn show(progress: Arc<Progress>, is_terminal: bool, is_quiet: bool) -> Arc<Self> {
        let line = Arc::new(Self::default());
        let (shown, watched) = (Arc::clone(&line), Arc::downgrade(&progress));
        progress.on_idle(move || {
            let remarks = watched.upgrade().map(|progress| progress.take_remarks()).unwrap_or_default();
            let mut state = shown.state();
            state.wipe();
            if let Some(line) = remark(&remarks).filter(|_| !is_quiet && !state.is_over) {
                eprintln!("{line}");
            }
        });
        if is_terminal && !is_quiet {
            let shown = Arc::clone(&line);
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(Duration::from_millis(200));
                    shown.update(&progress);
                }
            });
        }
        line
    }

    fn update(&self, progress: &Progress) {
        let Some((line, elapsed)) = progress.line().filter(|(_, elapsed)| *elapsed >= QUIET_FOR) else { return };
        let bar = progress.share().map(|(share, took)| bar(share, took)).unwrap_or_default();
        let mut state = self.state();
        if !state.is_over {
            state.is_shown = true;
            eprint!("\r\x1b[K{line} {bar}({} s, Ctrl-C stops)", elapsed.as_secs());
            let _ = std::io::stderr().flush();
        }
    }

    /// A statement begins.
    pub(super) fn begin(&self) {
        self.state().is_over = false;
    }

    /// Nobody waits for it any more, so that nothing is said of it from now on.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.wipe();
        state.is_over = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wipe(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            eprint!("\r\x1b[K");
        }
    }
}

/// How much is done, as a bar, and when the rest may be.
fn bar(share: f64, took: Duration) -> String {
    const CELLS: usize = 20;
    let full = ((share * CELLS as f64).round() as usize).min(CELLS);
    let left = match share {
        // Too little is done to say.
        share if share < 0.02 => String::new(),
        share => format!(", about {} left", spoken(took.mul_f64((1.0 - share) / share))),
    };
    format!("[{}{}] {:.0} %{left} ", "#".repeat(full), "-".repeat(CELLS - full), 100.0 * share)
}

fn spoken(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// Remarks as one line of a length to read.
fn remark(remarks: &[String]) -> Option<String> {
    let first = remarks.first()?;
    let more = match remarks.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more: see the column note)"),
    };
    let cut: String = first.chars().take(LINE).collect();
    let dots = if cut.len() < first.len() { "…" } else { "" };
    Some(format!("note: {cut}{dots}{more}"))
}

/// Letters of a line of remarks.
const LINE: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_much_and_how_long() {
        assert_eq!(bar(0.25, Duration::from_secs(5)), "[#####---------------] 25 %, about 15 s left ");
        assert_eq!(bar(0.0, Duration::from_secs(5)), "[--------------------] 0 % ");
        assert!(bar(0.5, Duration::from_secs(600)).contains("about 10 min left"));
    }
}
