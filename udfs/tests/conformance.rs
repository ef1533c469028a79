//! Every selector of the registry keeps the promises of the contract. A new one is judged without a line here.

use pursuit_udfs::{selectors, testing};

#[test]
fn every_selector_keeps_the_contract() {
    for spec in selectors() {
        testing::check_selector(&spec);
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
