//! Agreement of filters and penalties with others: tests/reference/filters.json, penalties.json and classes.json, made once by filters.py, penalties.py and classes.py, which also say with which versions.

use std::collections::BTreeMap;

use datafusion::prelude::SessionContext;
use pursuit_udfs::Value;

use crate::reference::{assert_close, fixture, names, numbers};
use crate::session::{floats, query, session, texts};

/// What a filter says of every feature: score and p-value by name.
async fn scores(ctx: &SessionContext, call: &str) -> BTreeMap<String, (f64, f64)> {
    let answer = query(ctx, &format!("SELECT feature, score, coalesce(p_value, -1) AS p_value FROM {call}")).await.unwrap();
    let pairs = floats(&answer, "score").into_iter().zip(floats(&answer, "p_value"));
    texts(&answer, "feature").into_iter().zip(pairs).collect()
}

async fn chosen(ctx: &SessionContext, call: &str) -> Vec<String> {
    texts(&query(ctx, &format!("SELECT feature FROM {call} ORDER BY rank")).await.unwrap(), "feature")
}

fn part(name: &str) -> Value {
    fixture("filters").remove(0)[name].clone()
}

/// To seven digits: p-values of 1e-80 are powers of numbers that rounding has been in.
fn assert_p(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-7 * expected, "{what}: p-value {found} instead of {expected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_of_features_are_those_of_sklearn_and_statsmodels() {
    let ctx = session();
    for set in part("tests").as_array().unwrap() {
        let (table, columns) = (format!("sample.{}", set["dataset"].as_str().unwrap()), names(&set["names"]));
        for reads in ["moments", "rows"] {
            let found =
                scores(&ctx, &format!("f_test({table}, label => label, k => {}, reads => '{reads}')", columns.len())).await;
            for (at, name) in columns.iter().enumerate() {
                assert_close(found[name].0, numbers(&set["f"])[at], &format!("F of {table}.{name}"));
                assert_p(found[name].1, numbers(&set["p"])[at], &format!("{table}.{name}"));
            }
        }
        for correction in ["benjamini_hochberg", "bonferroni"] {
            let call = format!("f_test({table}, label => label, fdr => 0.001, correction => '{correction}')");
            let (mut found, mut expected) = (chosen(&ctx, &call).await, names(&set[correction]));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{table}, {correction}");
        }
        if set["chi2"].is_null() {
            continue;
        }
        let call = |name: &str, more: &str| format!("{name}({table}, label => label, k => {}{more})", columns.len());
        let chi2 = scores(&ctx, &call("chi2", ", numbers => 'counts'")).await;
        let fisher = scores(&ctx, &call("fisher_score", "")).await;
        for (at, name) in columns.iter().enumerate() {
            assert_close(chi2[name].0, numbers(&set["chi2"])[at], &format!("χ² of {table}.{name}"));
            assert_p(chi2[name].1, numbers(&set["chi2_p"])[at], &format!("χ² of {table}.{name}"));
            assert_close(fisher[name].0, numbers(&set["fisher"])[at], &format!("Fisher score of {table}.{name}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mrmr_chooses_what_mrmr_selection_does() {
    let ctx = session();
    for set in part("mrmr").as_array().unwrap() {
        let table = set["dataset"].as_str().unwrap();
        let found = chosen(&ctx, &format!("mrmr(sample.{table}, label => label, k => {})", set["k"])).await;
        assert_eq!(found, names(&set["mrmr"]), "{table}");
    }
}

/// Where every value is a bin, information is what scikit-learn counts, and the criteria choose by it.
#[tokio::test(flavor = "multi_thread")]
async fn information_is_that_of_sklearn() {
    let ctx = session();
    let set = part("information");
    let columns = names(&set["names"]);
    let options = "label => label, task => 'classification', bins => 255, bias => 'none'";
    let found = scores(&ctx, &format!("mutual_information(sample.digits, {options}, k => {})", columns.len())).await;
    for (name, expected) in columns.iter().zip(numbers(&set["alone"])) {
        assert!((found[name].0 - expected).abs() < 1e-12, "{name}: {} instead of {expected}", found[name].0);
    }
    let g_test = set["g_test"]["feature"].as_str().unwrap();
    assert_p(found[g_test].1, set["g_test"]["p"].as_f64().unwrap(), g_test);
    for (call, of) in [("cmim", "cmim"), ("jmi", "jmi"), ("mrmr", "mid")] {
        let scheme = if of == "mid" { ", scheme => 'mid'" } else { "" };
        let sql = format!("SELECT feature, score FROM {call}(sample.digits, {options}, k => 8{scheme}) ORDER BY rank");
        let answer = query(&ctx, &sql).await.unwrap();
        assert_eq!(texts(&answer, "feature"), names(&set[of]["features"]), "{of}");
        for (found, expected) in floats(&answer, "score").iter().zip(numbers(&set[of]["scores"])) {
            assert!((found - expected).abs() < 1e-10, "{of}: {found} instead of {expected}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nearest_neighbours_agree_with_sklearn() {
    let ctx = session();
    let set = part("neighbours");
    let (y, classes) = (numbers(&set["y"]), numbers(&set["classes"]));
    let row = |(at, x): (usize, &Value)| {
        let x: Vec<String> = numbers(x).iter().map(|x| format!("{x:e}")).collect();
        format!("({}, {:e}, 'c{}')", x.join(", "), y[at], classes[at])
    };
    let rows: Vec<String> = set["x"].as_array().unwrap().iter().enumerate().map(row).collect();
    query(
        &ctx,
        &format!(
            "CREATE TABLE near (x0 DOUBLE, x1 DOUBLE, x2 DOUBLE, x3 DOUBLE, y DOUBLE, c VARCHAR) AS VALUES {}",
            rows.join(", ")
        ),
    )
    .await
    .unwrap();
    for (label, other, expected) in [("y", "c", "regression"), ("c", "y", "classification")] {
        let call = format!("mutual_information(near, label => {label}, exclude => ['{other}'], estimator => 'knn')");
        let found = scores(&ctx, &call).await;
        for (at, expected) in numbers(&set[expected]).iter().enumerate() {
            let found = found[&format!("x{at}")].0;
            assert!((found - expected).abs() < 1e-9, "{label}, x{at}: {found} instead of {expected}");
        }
    }
}

/// By the definitions of the papers; distances are of single precision here.
#[tokio::test(flavor = "multi_thread")]
async fn relief_is_that_of_the_papers() {
    let ctx = session();
    for set in part("relief").as_array().unwrap() {
        let (table, columns) = (set["dataset"].as_str().unwrap(), names(&set["names"]));
        let call = format!("relief(sample.{table}, label => label, samples => 1000, k => {})", columns.len());
        let found = scores(&ctx, &call).await;
        for (name, expected) in columns.iter().zip(numbers(&set["scores"])) {
            assert!((found[name].0 - expected).abs() < 1e-5, "{table}.{name}: {} instead of {expected}", found[name].0);
        }
    }
}

/// Penalised models: which features are in, and the length of their coefficients, where features (and labels of numbers) are standardised.
async fn assert_models(ctx: &SessionContext, file: &str, tolerance: f64) {
    for case in fixture(file).remove(0)["models"].as_array().unwrap() {
        let (call, dataset, options) = (&case["call"], &case["dataset"], case["options"].as_str().unwrap());
        let (call, dataset) = (call.as_str().unwrap(), dataset.as_str().unwrap());
        let found = scores(ctx, &format!("{call}(sample.{dataset}, label => label, {options})")).await;
        let expected = case["lengths"].as_object().unwrap();
        let what = format!("{call} of {dataset}, {options}");
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            expected.keys().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
            "{what}"
        );
        for (name, expected) in expected {
            let (found, expected) = (found[name].0, expected.as_f64().unwrap());
            assert!((found - expected).abs() < tolerance, "{what}, {name}: {found} instead of {expected}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn penalised_models_are_those_of_sklearn() {
    assert_models(&session(), "penalties", 1e-6).await;
}

/// scikit-learn's solvers and cvxpy's stop earlier than ours.
#[tokio::test(flavor = "multi_thread")]
async fn penalised_models_of_classes_are_those_of_sklearn_and_of_a_convex_solver() {
    assert_models(&session(), "classes", 1e-5).await;
}

/// All rows in one block, so that nothing is left to chance.
#[tokio::test(flavor = "multi_thread")]
async fn hsic_lasso_chooses_what_py_hsic_lasso_does() {
    let ctx = session();
    for case in fixture("classes").remove(0)["hsic"].as_array().unwrap() {
        let (dataset, k) = (case["dataset"].as_str().unwrap(), case["k"].as_u64().unwrap());
        let found = chosen(&ctx, &format!("hsic_lasso(sample.{dataset}, label => label, k => {k}, block_rows => 0)")).await;
        assert_eq!(found, names(&case["order"]), "{dataset}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pfa_chooses_what_sklearns_components_and_groups_say() {
    let ctx = session();
    for case in fixture("classes").remove(0)["pfa"].as_array().unwrap() {
        let (dataset, k, variance) = (case["dataset"].as_str().unwrap(), &case["k"], &case["variance"]);
        let call = format!("pfa(sample.{dataset}, label => label, k => {k}, variance => {variance})");
        let mut found = chosen(&ctx, &call).await;
        found.sort();
        assert_eq!(found, names(&case["chosen"]), "{call}");
    }
}

/// Sets that explain as much as those of abess, or more.
#[tokio::test(flavor = "multi_thread")]
async fn best_subsets_are_as_good_as_those_of_abess() {
    let ctx = session();
    for case in fixture("penalties").remove(0)["subsets"].as_array().unwrap() {
        let (dataset, k, r2) = (case["dataset"].as_str().unwrap(), case["k"].as_u64().unwrap(), case["r2"].as_f64().unwrap());
        let sql = format!("SELECT max(train_score) AS r2 FROM best_subset(sample.{dataset}, label => label, k => {k})");
        let found = floats(&query(&ctx, &sql).await.unwrap(), "r2")[0];
        assert!(found > r2 - 1e-9, "{dataset}, {k}: {found} instead of {r2}");
    }
}
