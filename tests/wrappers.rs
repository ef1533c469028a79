//! Agreement of wrappers with scikit-learn's and BorutaPy's: tests/reference/wrappers.json and cart.json, made once by wrappers.py and cart.py, which also say with which
//! versions.

use std::collections::BTreeMap;

use pursuit_udfs::Value;

use crate::session::{floats, query, session, texts};

fn cases(of: &str) -> Vec<Value> {
    cases_in("wrappers", of)
}

pub(crate) fn cases_in(file: &str, of: &str) -> Vec<Value> {
    let path = format!("{}/tests/reference/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    fixture[of].as_array().unwrap().clone()
}

pub(crate) fn names(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The last to go first, down to the last feature.
#[tokio::test(flavor = "multi_thread")]
async fn rfe_eliminates_in_the_order_that_sklearn_does() {
    let ctx = session();
    for case in cases("rfe") {
        let (dataset, model, expected) = (text(&case["dataset"]), text(&case["model"]), names(&case["order"]));
        let sql = format!(
            "SELECT feature FROM rfe(sample.{dataset}, label => label, k => {}, model => '{model}') ORDER BY rank",
            expected.len()
        );
        assert_eq!(texts(&query(&ctx, &sql).await.unwrap(), "feature"), expected, "{model} of {dataset}");
    }
}

/// Judged by R² on the rows themselves, features come in and go out as they do there.
#[tokio::test(flavor = "multi_thread")]
async fn steps_choose_the_sets_that_sklearn_does() {
    let ctx = session();
    for case in cases("sequential") {
        let (dataset, direction) = (text(&case["dataset"]), text(&case["direction"]));
        let function = match direction {
            "forward" => "forward_selection",
            _ => "drop_one_out",
        };
        let mode = if direction == "forward" { "" } else { ", mode => 'retrain', model => 'linear'" };
        for (k, expected) in case["sizes"].as_array().unwrap().iter().zip(case["sets"].as_array().unwrap()) {
            let sql =
                format!("SELECT feature FROM {function}(sample.{dataset}, label => label, k => {k}{mode}) ORDER BY feature");
            assert_eq!(texts(&query(&ctx, &sql).await.unwrap(), "feature"), names(expected), "{function} of {dataset}, {k}");
        }
    }
}

/// Least squares learnt from some rows and judged by others, five hundred times dealt out here and there: what is left is chance.
#[tokio::test(flavor = "multi_thread")]
async fn permutation_loses_what_it_does_in_sklearn() {
    let ctx = session();
    for case in cases("permutation") {
        let (dataset, split) = (text(&case["dataset"]), text(&case["split"]));
        let rows = |odd: u8| format!("(SELECT * FROM sample.{dataset} WHERE CAST({split} AS BIGINT) % 2 = {odd})");
        let sql = format!(
            "SELECT feature, score FROM permutation({}, label => label, k => 10, model => 'linear', repeats => 500, validation => {})",
            rows(0),
            rows(1)
        );
        let answer = query(&ctx, &sql).await.unwrap();
        let found: BTreeMap<String, f64> = texts(&answer, "feature").into_iter().zip(floats(&answer, "score")).collect();
        let lost = case["lost"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap());
        for (name, lost) in names(&case["names"]).iter().zip(lost) {
            assert!((found[name] - lost).abs() < 0.004 + 0.02 * lost.abs(), "{name}: {} instead of {lost}", found[name]);
        }
    }
}

/// What BorutaPy confirms is confirmed, and what it rejects is not.
#[tokio::test(flavor = "multi_thread")]
async fn boruta_confirms_what_boruta_py_does() {
    let ctx = session();
    for case in cases("boruta") {
        let dataset = text(&case["dataset"]);
        let sql = format!(
            "SELECT feature, reason FROM boruta(sample.{dataset}, label => label, k => 100, iterations => 60, trees => 100)"
        );
        let sql = sql.replace("k => 100", &format!("k => {}", names(&case["confirmed"]).len() + names(&case["rejected"]).len()));
        let answer = query(&ctx, &sql).await.unwrap();
        let found: BTreeMap<String, String> = texts(&answer, "feature").into_iter().zip(texts(&answer, "reason")).collect();
        for name in names(&case["confirmed"]) {
            assert!(found.get(&name).is_some_and(|reason| reason != "rejected"), "{dataset}: {name} is {:?}", found.get(&name));
        }
        for name in names(&case["rejected"]) {
            assert!(found.get(&name).is_none_or(|reason| reason != "confirmed"), "{dataset}: {name} is {:?}", found.get(&name));
        }
    }
}

/// The share of the rows that are asked for a feature on their way through the pruned tree.
#[tokio::test(flavor = "multi_thread")]
async fn cart_asks_rows_for_what_sklearns_tree_does() {
    let ctx = session();
    for case in cases_in("cart", "sets") {
        let (dataset, complexity, features) = (text(&case["dataset"]), &case["complexity"], names(&case["names"]));
        let listed = features.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT feature, score FROM cart(sample.{dataset}, label => label, k => {}, complexity => {complexity}, features => [{listed}])",
            features.len()
        );
        let answer = query(&ctx, &sql).await.unwrap();
        let found: BTreeMap<String, f64> = texts(&answer, "feature").into_iter().zip(floats(&answer, "score")).collect();
        for (name, usage) in features.iter().zip(case["usage"].as_array().unwrap()) {
            let usage = usage.as_f64().unwrap();
            assert!((found[name] - usage).abs() < 1e-9, "{dataset}, {complexity}, {name}: {} instead of {usage}", found[name]);
        }
    }
}
