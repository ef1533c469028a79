//! Agreement with scikit-learn: tests/reference/*.json, made once by make_fixtures.py, which also says with which versions.

use datafusion::prelude::SessionContext;
use pursuit_udfs::Value;

use crate::session::{floats, ints, query, session, texts};

pub(crate) fn fixture(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/reference/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    fixture["sets"].as_array().unwrap().clone()
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

pub(crate) fn names(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_string()).collect()
}

/// The fixture's set as a subquery, with its label as the fixture's script made it a number.
fn input(set: &Value) -> String {
    let table = format!("sample.{}", set["dataset"].as_str().unwrap());
    if set["label"] == "number" {
        return format!("(SELECT * EXCLUDE (label), CAST(label AS DOUBLE) AS label FROM {table})");
    }
    let index = format!(
        "(SELECT label AS name, row_number() OVER (ORDER BY label) - 1.0 AS number FROM (SELECT DISTINCT label FROM {table}))"
    );
    format!("(SELECT t.* EXCLUDE (label), i.number AS label FROM {table} t JOIN {index} i ON t.label = i.name)")
}

pub(crate) fn assert_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-8 * expected.abs().max(1e-3), "{what}: {found} instead of {expected}");
}

async fn assert_omp(ctx: &SessionContext, function: &str, reads: &str) {
    for set in fixture("omp") {
        let (n, label_norm) = (set["dataset"].as_str().unwrap(), set["label_norm"].as_f64().unwrap());
        for case in set["cases"].as_array().unwrap() {
            let k = case["k"].as_u64().unwrap();
            let sql = format!(
                "SELECT * FROM {function}({}, label => label, k => {k}, task => 'regression', reads => '{reads}') ORDER BY rank",
                input(&set)
            );
            let answer = query(ctx, &sql).await.unwrap();
            let what = format!("{function} on {n}, k = {k}, {reads}");
            assert_eq!(texts(&answer, "feature"), names(&case["features"]), "{what}");
            let (coefficients, scores) = (floats(&answer, "coefficient"), floats(&answer, "train_score"));
            for (at, (coefficient, r2)) in numbers(&case["coef"]).iter().zip(numbers(&case["r2"])).enumerate() {
                assert_close(coefficients[at], *coefficient, &format!("{what}, coefficient {at}"));
                assert_close(scores[at], r2, &format!("{what}, R² {at}"));
            }
            if function != "sequential_attention" {
                let correlations = numbers(&set["correlation"]);
                for (at, score) in floats(&answer, "score").iter().enumerate() {
                    assert_close(*score, correlations[at] / label_norm, &format!("{what}, score {at}"));
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn omp_chooses_and_fits_what_sklearn_does() {
    let ctx = session();
    assert_omp(&ctx, "omp", "moments").await;
    assert_omp(&ctx, "omp", "rows").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sequential_lasso_and_linear_attention_choose_what_sklearns_omp_does() {
    let ctx = session();
    assert_omp(&ctx, "sequential_lasso", "moments").await;
    assert_omp(&ctx, "sequential_attention", "moments', model => 'linear").await;
}

/// The whole path, knot by knot: penalties, the active set in order of entry, coefficients, drops.
#[tokio::test(flavor = "multi_thread")]
async fn lasso_walks_the_path_that_sklearns_lars_path_does() {
    let ctx = session();
    for set in fixture("lars") {
        let (columns, label_norm) = (names(&set["names"]), set["label_norm"].as_f64().unwrap());
        let alphas = numbers(&set["alphas"]);
        let coefficients: Vec<Vec<f64>> = set["coef"].as_array().unwrap().iter().map(numbers).collect();
        let active: Vec<Vec<String>> = set["active_after_knot"].as_array().unwrap().iter().map(names).collect();
        let dataset = set["dataset"].as_str().unwrap();
        // Enough features that the path is as long as the fixture's.
        let k = if dataset == "diabetes" { 10 } else { active.iter().map(Vec::len).max().unwrap() };
        let sql = format!("SELECT * FROM lasso({}, label => label, k => {k}, task => 'regression', path => true)", input(&set));
        let answer = query(&ctx, &sql).await.unwrap();
        let (steps, features) = (ints(&answer, "rank"), texts(&answer, "feature"));
        let (scores, found) = (floats(&answer, "score"), floats(&answer, "coefficient"));
        let last = *steps.iter().max().unwrap() as usize;
        assert!(last + 1 >= alphas.len().min(13), "{dataset}: {last} steps");
        for step in 1..alphas.len().min(last + 1) {
            let rows: Vec<usize> = (0..steps.len()).filter(|row| steps[*row] as usize == step).collect();
            let what = format!("{dataset}, step {step}");
            assert_eq!(rows.iter().map(|row| features[*row].clone()).collect::<Vec<_>>(), active[step - 1], "{what}");
            for row in rows {
                assert!((scores[row] - alphas[step] / label_norm).abs() < 1e-9, "{what}: penalty {}", scores[row]);
                let column = columns.iter().position(|name| *name == features[row]).unwrap();
                let scale = numbers(&set["feature_norm"])[column] / label_norm;
                let error = (found[row] - coefficients[step][column]).abs() * scale;
                assert!(error < 1e-8, "{what}: {} has {} instead of {}", features[row], found[row], coefficients[step][column]);
            }
        }
    }
}

/// `lasso(…, k)` is the path where one feature more would enter.
#[tokio::test(flavor = "multi_thread")]
async fn lasso_ends_where_one_feature_more_would_enter() {
    let ctx = session();
    let set = fixture("lars").remove(0);
    let answer =
        query(&ctx, &format!("SELECT * FROM lasso({}, label => label, k => 4) ORDER BY rank", input(&set))).await.unwrap();
    let columns = names(&set["names"]);
    let knot = numbers(&set["coef"][4]);
    assert_eq!(texts(&answer, "feature"), names(&set["active_after_knot"][3]));
    for (feature, coefficient) in texts(&answer, "feature").iter().zip(floats(&answer, "coefficient")) {
        assert_close(coefficient, knot[columns.iter().position(|name| name == feature).unwrap()], feature);
    }
}

/// Coefficients in the units of the table: least squares, ridge, and logistic regression of two classes and of three.
#[tokio::test(flavor = "multi_thread")]
async fn fit_finds_the_coefficients_that_sklearn_does() {
    let ctx = session();
    for set in fixture("fit") {
        let (dataset, model, features) =
            (set["dataset"].as_str().unwrap(), set["model"].as_str().unwrap(), names(&set["features"]));
        let sql = format!(
            "SELECT * FROM fit(sample.{dataset}, label => label, model => '{model}', penalty => {}, features => [{}])",
            set["penalty"],
            features.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
        );
        let answer = query(&ctx, &sql).await.unwrap();
        let (parts, classes, of) = (texts(&answer, "part"), texts(&answer, "class"), texts(&answer, "feature"));
        let values = floats(&answer, "value");
        let find = |part: &str, class: &str, feature: &str| {
            let found = (0..parts.len()).find(|row| parts[*row] == part && classes[*row] == class && of[*row] == feature);
            values[found.unwrap_or_else(|| panic!("{dataset}: no {part} of {class} {feature}"))]
        };
        for (at, class) in set["classes"].as_array().unwrap().iter().enumerate() {
            let class = class.as_str().unwrap_or("");
            let what = format!("{model} of {dataset} {class}");
            let expected = set["intercept"][at].as_f64().unwrap();
            assert!((find("intercept", class, "") - expected).abs() < 1e-7 * expected.abs().max(1.0), "{what}");
            for (feature, expected) in features.iter().zip(numbers(&set["coef"][at])) {
                let found = find("coefficient", class, feature);
                assert!((found - expected).abs() <= 1e-7 * expected.abs().max(1e-3), "{what}, {feature}: {found} {expected}");
            }
        }
    }
}
