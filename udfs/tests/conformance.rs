//! Every selector and report of the registry keeps the promises of the contract. A new one is judged without a line here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::Instant;

use pursuit_udfs::{Spec, reports, selectors, testing};

/// As many promises as scikit-learn has checks for an estimator.
const PROMISES_MIN: usize = 45;

/// Judges all of them, so that a change that breaks several shows at once, some at a time, because a single one rarely needs all cores. Who breaks a promise says so on the way.
/// PURSUIT_SELECTOR=omp judges one.
#[allow(clippy::disallowed_methods, reason = "how long it takes is only printed")]
fn judge(mut specs: Vec<Spec>, check: impl Fn(&Spec) -> usize + Sync, least: usize) {
    if let Ok(only) = std::env::var("PURSUIT_SELECTOR") {
        specs.retain(|spec| spec.name == only);
    }
    // The last ones ask others, and take the longest.
    let left = Mutex::new(specs);
    let broken = Mutex::new(Vec::new());
    let work = || {
        while let Some(spec) = { left.lock().unwrap().pop() } {
            let start = Instant::now();
            match catch_unwind(AssertUnwindSafe(|| check(&spec))) {
                Ok(promises) if promises >= least => println!("{}: {promises} promises in {:.1?}", spec.name, start.elapsed()),
                Ok(promises) => broken.lock().unwrap().push(format!("{} ({promises} promises)", spec.name)),
                Err(_) => broken.lock().unwrap().push(spec.name.to_string()),
            }
        }
    };
    std::thread::scope(|scope| (0..available_parallelism().map_or(1, usize::from)).for_each(|_| drop(scope.spawn(work))));
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "these break a promise, or were asked for less than {least}: {}", broken.join(", "));
}

#[test]
fn every_selector_keeps_the_contract() {
    judge(selectors(), testing::check_selector, PROMISES_MIN);
}

#[test]
fn every_report_keeps_the_contract() {
    judge(reports(), testing::check_report, 5);
}

#[test]
fn no_two_selectors_share_a_name() {
    let specs = selectors();
    let mut names: Vec<&str> = specs.iter().flat_map(|spec| spec.aliases.iter().chain([&spec.name])).copied().collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
