//! What the suites for selectors and reports share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Table;
use crate::{Budget, Error, OptionSpec, Result, Run, Settings, Spec, Value};

/// Some rows two and three times: as weights, and spelled out, with the label to that.
pub(super) fn weighted(table: &Table, label: &[f64]) -> (Table, Table, Vec<f64>) {
    let counts: Vec<usize> = (0..label.len()).map(|row| 1 + row % 3).collect();
    let repeat = |values: &[f64]| -> Vec<f64> {
        values.iter().zip(&counts).flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect()
    };
    let empty = Table { columns: Vec::new(), ..table.clone() };
    let columns = table.columns.iter().enumerate();
    let repeated = columns.fold(empty, |repeated, (at, (name, _))| repeated.numbers(name, &repeat(table.column(at))));
    let weights = Some(counts.iter().map(|count| *count as f64).collect());
    (Table { weights, ..table.clone() }, repeated, repeat(label))
}

/// A limit on memory that remembers the most that was asked for.
#[derive(Debug, Default)]
pub struct Meter {
    used: AtomicUsize,
    most: AtomicUsize,
    limit: Option<usize>,
}

impl Meter {
    pub fn with_limit(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// The most that was in use at a time.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }
}

impl Budget for Meter {
    fn grow(&self, bytes: usize) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::SeqCst) + bytes;
        if self.limit.is_some_and(|limit| used > limit) {
            self.used.fetch_sub(bytes, Ordering::SeqCst);
            return Err(Error::limit("more memory than there may be"));
        }
        self.most.fetch_max(used, Ordering::SeqCst);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// How long work goes on after it was cancelled in the middle, and what it said.
#[allow(clippy::disallowed_methods, reason = "no answer depends on it")]
pub(super) fn cancelled_after<T>(wait: Duration, work: impl FnOnce(&Run) -> Result<T>) -> (Duration, Result<T>) {
    let flag = Arc::new(AtomicBool::new(false));
    let run = Run::new(1).with_cancel(Arc::clone(&flag));
    let at = Arc::new(Mutex::new(None));
    let canceller = {
        let at = Arc::clone(&at);
        std::thread::spawn(move || {
            std::thread::sleep(wait);
            *at.lock().expect("nobody panics with it") = Some(Instant::now());
            flag.store(true, Ordering::SeqCst);
        })
    };
    let result = work(&run);
    let end = Instant::now();
    canceller.join().expect("it only sleeps");
    let cancelled = at.lock().expect("nobody panics with it").unwrap_or(end);
    (end.saturating_duration_since(cancelled), result)
}

/// Options that make a training short, of those that a function has.
pub(super) fn short(spec: &Spec) -> Settings {
    let wanted = [("epochs", 1), ("trees", 8), ("iterations", 1), ("states", 1), ("neurons", 24), ("rounds", 8)];
    let has = |name: &str| (spec.options)().iter().any(|option| option.name == name);
    wanted.iter().filter(|(name, _)| has(name)).map(|(name, value)| (name.to_string(), Value::from(*value))).collect()
}

/// Values of an option that are just outside of what it says it accepts, and just inside.
pub(super) fn borders(option: &OptionSpec) -> (Vec<Value>, Vec<Value>) {
    let numbers: Vec<f64> = option.allowed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let is_whole = option.kind.contains("whole");
    let of_map = |value: Value| if option.kind.starts_with("map") { serde_json::json!({ "x0": value }) } else { value };
    let value = |x: f64| of_map(if is_whole && x >= 0.0 { Value::from(x as u64) } else { Value::from(x) });
    let beyond = |x: f64, sign: f64| if is_whole { value(x + sign) } else { value(x + sign * f64::max(1e-9, 1e-6 * x.abs())) };
    match (option.allowed.as_str(), &numbers[..]) {
        (text, [low]) if text.starts_with("at least") => (vec![beyond(*low, -1.0)], vec![value(*low)]),
        (text, [low]) if text.starts_with("above") => (vec![value(*low)], vec![beyond(*low, 1.0)]),
        (text, [low, high]) if text.starts_with("between") => {
            (vec![beyond(*low, -1.0), beyond(*high, 1.0)], vec![value(*low), value(*high)])
        }
        _ => (Vec::new(), Vec::new()),
    }
}

/// What is wrong with the way a function takes its options, if anything: a promise and what broke it.
pub(super) fn options(spec: &Spec, promise: &mut dyn FnMut(bool, &str, String)) {
    let build = |name: &str, value: Value| {
        let built = (spec.build)(&Settings::from_iter([(name.to_string(), value)]));
        built.map(|_| ()).map_err(|error| error.to_string())
    };
    let is_named = |built: &Result<(), String>, name: &str| {
        built.as_ref().is_err_and(|error| error.contains(&format!("`{name}`")) && !error.contains('\n'))
    };
    for option in (spec.options)() {
        let name = option.name;
        let is_text = option.kind.contains("text") || option.kind == "boolean";
        let wrong = if is_text { Value::from(17) } else { Value::from("no such value") };
        let built = build(name, wrong);
        promise(is_named(&built, name), "a wrong option is refused by name", format!("{name}: {built:?}"));
        let (outside, inside) = borders(&option);
        for value in outside {
            let built = build(name, value.clone());
            promise(is_named(&built, name), "a value out of range is refused by name", format!("{name} => {value}: {built:?}"));
        }
        for value in inside {
            let built = build(name, value.clone());
            promise(built.is_ok(), "a value at the border of the range is taken", format!("{name} => {value}: {built:?}"));
        }
        if option.default == "NULL" && option.table.is_none() && option.kind != "table" {
            let built = build(name, Value::Null);
            promise(built.is_ok(), "an option that is NULL may be NULL", format!("{name}: {built:?}"));
        }
    }
    promise(build("no_such_option", Value::from(1)).is_err(), "an unknown option is refused", String::new());
}
