//! Every selector and report of the registry keeps the promises of the contract. A new one is judged without a line here.

use pursuit_udfs::{reports, selectors, testing};

/// As many promises as scikit-learn has checks for an estimator.
const PROMISES_MIN: usize = 45;

#[test]
fn every_selector_keeps_the_contract() {
    for spec in selectors() {
        let start = std::time::Instant::now();
        let promises = testing::check_selector(&spec);
        println!("{}: {promises} promises in {:.1?}", spec.name, start.elapsed());
        assert!(promises >= PROMISES_MIN, "{}: only {promises} promises were looked at", spec.name);
    }
}

#[test]
fn every_report_keeps_the_contract() {
    for spec in reports() {
        let start = std::time::Instant::now();
        println!("{}: {} promises in {:.1?}", spec.name, testing::check_report(&spec), start.elapsed());
    }
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
