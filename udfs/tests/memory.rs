//! Memory that grows with a table is asked for before it is taken: what every selector and report takes, counted by the allocator, against what it asked for.
//!
//! One test in a binary of its own, because the allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pursuit_udfs::testing::{Meter, Table, Variant, outcome, planted, variants};
use pursuit_udfs::{Kind, Labels, Problem, Reads, Run, Settings, Task, Value, Work};

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

/// Options that keep a training short, where the function takes them.
const SHORT: [(&str, u64); 7] =
    [("epochs", 1), ("trees", 4), ("rounds", 4), ("iterations", 1), ("states", 1), ("neurons", 60), ("repeats", 1)];

fn settings(variant: &Variant) -> Settings {
    let mut settings = variant.settings();
    for (name, value) in SHORT {
        let mut with = settings.clone();
        with.insert(name.to_string(), Value::from(value));
        if (variant.spec.build)(&with).is_ok_and(|work| work.unused(name).is_none()) {
            settings = with;
        }
    }
    settings
}

/// Large enough that what grows with the table outweighs what does not.
fn problem(variant: &Variant) -> Problem {
    let (rows, columns) = if variant.spec.labels == Labels::Classes { (4000, 6) } else { (10_000, 24) };
    let (table, label) = planted(rows, columns, &[1, 3], 1.0, 5);
    let table = Table { task: variant.wants_classes().then_some(Task::Classification), ..table.k(3) };
    let label: Vec<f64> = if variant.wants_classes() { label.iter().map(|y| f64::from(*y > 0.0)).collect() } else { label };
    match variant.spec.table {
        Some(_) => table.problem_with_held_out(&label, rows * 3 / 4),
        None => table.problem_of_rows(&label),
    }
}

/// The kind of error, if there was one; what was taken beside the problem, and what was asked for, at most.
fn run(work: &Work, problem: &Problem, meter: Meter) -> (Option<Kind>, usize, usize) {
    let meter = Arc::new(meter);
    let run = Run::new(1).with_budget(Arc::clone(&meter) as _);
    let before = TAKEN.load(Ordering::SeqCst);
    MOST.store(before, Ordering::SeqCst);
    let result = outcome(work, problem, &run).map(drop);
    let taken = MOST.load(Ordering::SeqCst) - before;
    (result.err().map(|error| error.kind()), taken, meter.most())
}

/// Who trains anew for every candidate takes minutes here.
fn is_slow(variant: &Variant) -> bool {
    let trains = ["cnn", "knn", "mlp", "svm", "forest", "boosting", "logistic"];
    let refits = ["neural_greedy_pursuit", "forward_selection"].contains(&variant.spec.name);
    let takes_time = variant.given.iter().any(|(_, value)| trains.iter().any(|slow| value == slow));
    (refits && takes_time) || variant.given.iter().any(|(_, value)| value == "retrain")
}

fn cases() -> Vec<Variant> {
    let mut cases: Vec<Variant> = variants().into_iter().filter(|variant| !is_slow(variant)).collect();
    let mut more = |name: &str, option: &'static str, value: Value| {
        let spec = cases.iter().find(|case| case.spec.name == name).expect("it is in the registry").spec.clone();
        cases.push(Variant { spec, given: vec![(option, value)] });
    };
    more("evaluate", "seeds", Value::from(4));
    more("sequential_attention", "validation", Value::from(0.2));
    cases
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (name, problem) = (case.name(), problem(&case));
        let work = (case.spec.build)(&settings(&case)).unwrap_or_else(|error| panic!("{name}: {error}"));
        if matches!(&work, Work::Select(selector) if matches!(selector.reads(), Reads::Pass(_))) {
            continue;
        }
        let (failed, taken, asked) = run(&work, &problem, Meter::default());
        println!("{name}: asked for {:.1} MB, took {:.1} MB", asked as f64 / MB as f64, taken as f64 / MB as f64);
        if failed.is_some_and(|kind| kind != Kind::Data && kind != Kind::Call) || taken as f64 > 1.1 * asked as f64 + FREE as f64
        {
            wrong.push(format!("{name}: asked for {asked} bytes, took {taken}, {failed:?}"));
        }
        let limit = asked / 2;
        if limit < MB {
            continue;
        }
        let (failed, taken, asked) = run(&work, &problem, Meter::with_limit(limit));
        if failed != Some(Kind::Limit) || asked > limit || taken as f64 > 1.1 * limit as f64 + FREE as f64 {
            wrong.push(format!("{name}: may take {limit} bytes, took {taken}, {failed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
