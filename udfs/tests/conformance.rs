//! Every selector and report of the registry keeps the promises of the contract. A new one is judged without a line here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use pursuit_udfs::{Spec, reports, selectors, testing};

/// As many promises as scikit-learn has checks for an estimator.
const PROMISES_MIN: usize = 45;

/// Judges all of them, so that a change that breaks several shows at once. Who breaks a promise says so on the way. PURSUIT_SELECTOR=omp judges one.
#[allow(clippy::disallowed_methods, reason = "how long it takes is only printed")]
fn judge(specs: Vec<Spec>, check: impl Fn(&Spec) -> usize, least: usize) {
    let mut broken = Vec::new();
    let only = std::env::var("PURSUIT_SELECTOR").ok();
    for spec in specs.into_iter().filter(|spec| only.as_ref().is_none_or(|only| spec.name == only)) {
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| check(&spec))) {
            Ok(promises) => {
                println!("{}: {promises} promises in {:.1?}", spec.name, start.elapsed());
                assert!(promises >= least, "{}: only {promises} promises were looked at", spec.name);
            }
            Err(_) => broken.push(spec.name),
        }
    }
    assert!(broken.is_empty(), "these break a promise: {}", broken.join(", "));
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
