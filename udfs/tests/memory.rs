//! Memory that grows with a table is asked for before it is taken: what every selector and report takes, counted by the allocator, against what it asked for.
//!
//! One test in a binary of its own, because the allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pursuit_udfs::testing::{Meter, Table, planted};
use pursuit_udfs::{Kind, Labels, Problem, Reads, Run, Settings, Spec, Task, Value, Work, answer, reports, selectors};

struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator; counting touches nothing of what it returns.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Until it has moved there are both.
        count(size);
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn count(bytes: usize) {
    let taken = TAKEN.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(taken, Ordering::Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MB: usize = 1 << 20;
/// What does not grow with the table: threads, small buffers.
const FREE: usize = MB;

/// A function with some options, ready to be asked.
struct Case {
    name: String,
    spec: Spec,
    settings: Settings,
}

impl Case {
    fn new(spec: &Spec, settings: &[(&str, Value)]) -> Self {
        let has = |name: &str| (spec.options)().iter().any(|option| option.name == name);
        let short = [("epochs", 1), ("trees", 4), ("iterations", 1), ("states", 1), ("neurons", 60)];
        let short = short.into_iter().filter(|(name, _)| has(name)).map(|(name, value)| (name.to_string(), Value::from(value)));
        let given = settings.iter().map(|(name, value)| (name.to_string(), value.clone()));
        let words: Vec<String> = settings.iter().map(|(name, value)| format!("{name} => {value}")).collect();
        Self { name: format!("{}({})", spec.name, words.join(", ")), spec: spec.clone(), settings: short.chain(given).collect() }
    }

    fn problem(&self) -> Problem {
        let wants_classes = self.spec.labels == Labels::Classes || self.name.contains("logistic");
        let (rows, columns) = if self.spec.labels == Labels::Classes { (4000, 6) } else { (20_000, 24) };
        let (table, label) = planted(rows, columns, &[1, 3], 1.0, 5);
        let table = Table { task: wants_classes.then_some(Task::Classification), ..table.k(3) };
        let label: Vec<f64> = if wants_classes { label.iter().map(|y| f64::from(*y > 0.0)).collect() } else { label };
        if self.spec.table.is_some() { table.problem_with_held_out(&label, rows * 3 / 4) } else { table.problem_of_rows(&label) }
    }

    /// The kind of error, if there was one; what was taken beside the problem, and what was asked for, at most.
    fn run(&self, problem: &Problem, meter: Meter) -> (Option<Kind>, usize, usize) {
        let meter = Arc::new(meter);
        let run = Run::new(1).with_budget(Arc::clone(&meter) as _);
        let work = (self.spec.build)(&self.settings).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let before = TAKEN.load(Ordering::SeqCst);
        MOST.store(before, Ordering::SeqCst);
        let result = match &work {
            Work::Select(selector) => answer(&**selector, problem, &run).map(drop),
            Work::Report(report) => {
                let repeated = report.repeats().map(|repeats| {
                    let spec = selectors().into_iter().find(|spec| spec.name == repeats.selector).expect("one of ours");
                    spec.selector(&repeats.options).expect("its defaults are fine")
                });
                report.report_on(repeated.as_deref(), problem, &run).map(drop)
            }
            Work::Apply(apply) => apply.fit().report(problem, &run).map(drop),
            // What it takes was asked for when the model was read.
            Work::OnModel(_) | Work::Summarize(_) | Work::Choose(_) => Ok(()),
        };
        let taken = MOST.load(Ordering::SeqCst) - before;
        (result.err().map(|error| error.kind()), taken, meter.most())
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for spec in selectors().iter().chain(&reports()) {
        cases.push(Case::new(spec, &[]));
        for option in
            (spec.options)().iter().filter(|option| ["model", "direction", "predictor", "readout"].contains(&option.name))
        {
            for word in option.allowed.split('\'').skip(1).step_by(2).filter(|word| !option.default.contains(word)) {
                // Who trains anew for every candidate takes minutes here.
                let refits = option.name == "predictor" || spec.name == "forward_selection";
                let is_slow = ["cnn", "knn", "mlp", "svm", "forest"].contains(&word) && refits;
                if !is_slow {
                    cases.push(Case::new(spec, &[(option.name, Value::from(word))]));
                }
            }
        }
    }
    let find = |name: &str| selectors().into_iter().chain(reports()).find(|spec| spec.name == name).unwrap();
    cases.push(Case::new(&find("evaluate"), &[("seeds", Value::from(4))]));
    cases.push(Case::new(&find("sequential_attention"), &[("validation", Value::from(0.2))]));
    cases
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let mut wrong = Vec::new();
    for case in cases() {
        let problem = case.problem();
        if (case.spec.build)(&case.settings)
            .is_ok_and(|work| matches!(work, Work::Select(s) if matches!(s.reads(), Reads::Pass(_))))
        {
            continue;
        }
        let (failed, taken, asked) = case.run(&problem, Meter::default());
        println!("{}: asked for {:.1} MB, took {:.1} MB", case.name, asked as f64 / MB as f64, taken as f64 / MB as f64);
        if failed.is_some_and(|kind| kind != Kind::Data && kind != Kind::Call) || taken as f64 > 1.1 * asked as f64 + FREE as f64
        {
            wrong.push(format!("{}: asked for {asked} bytes, took {taken}, {failed:?}", case.name));
        }
        let limit = asked / 2;
        if limit < MB {
            continue;
        }
        let (failed, taken, asked) = case.run(&problem, Meter::with_limit(limit));
        if failed != Some(Kind::Limit) || asked > limit || taken as f64 > 1.1 * limit as f64 + FREE as f64 {
            wrong.push(format!("{}: may take {limit} bytes, took {taken}, {failed:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
