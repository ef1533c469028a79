//! Agreement of additive models, group LASSO, knockoffs, BART and LassoNet with others: tests/reference/rivals.json and lassonet.json, made once by rivals.py and lasso_net.py, which also
//! say with which versions.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::prelude::SessionContext;
use pursuit_udfs::Value;

use crate::session::{floats, query, session, texts};
use crate::wrappers::{cases_in, names, text};

fn numbers(value: &Value) -> BTreeMap<String, f64> {
    value.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.as_f64().unwrap())).collect()
}

/// Features in the order of a number, the largest first.
fn falling(of: &BTreeMap<String, f64>) -> Vec<String> {
    let mut order: Vec<&String> = of.keys().collect();
    order.sort_by(|a, b| of[*b].total_cmp(&of[*a]));
    order.into_iter().cloned().collect()
}

async fn scores(ctx: &SessionContext, call: &str, score: &str) -> BTreeMap<String, f64> {
    let answer = query(ctx, &format!("SELECT feature, {score} FROM {call}")).await.unwrap();
    texts(&answer, "feature").into_iter().zip(floats(&answer, score)).collect()
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// pyGAM solves for all functions at once, ours in turns: the same splines, bends that cost the same, the same variances.
#[tokio::test(flavor = "multi_thread")]
async fn smooth_functions_vary_as_those_of_pygam() {
    let ctx = session();
    for case in cases_in("rivals", "gam") {
        let (shares, smoothness) = (numbers(&case["shares"]), &case["smoothness"]);
        let call = format!(
            "gam(sample.{}, label => label, k => {}, features => [{}], splines => 8, smoothness => {smoothness}, iterations => 10000)",
            text(&case["dataset"]),
            shares.len(),
            quoted(shares.keys())
        );
        let found = scores(&ctx, &call, "score").await;
        for (name, share) in &shares {
            assert!((found[name] - share).abs() < 1e-5, "{name} at {smoothness}: {} instead of {share}", found[name]);
        }
    }
}

/// Penalties of the path are a hundred to a thousandth of the first, so that a score is at most one step above where skglm sees a group come in.
#[tokio::test(flavor = "multi_thread")]
async fn groups_come_in_where_skglm_sees_them() {
    let ctx = session();
    let step = 1e-3_f64.powf(0.01);
    for case in cases_in("rivals", "group_lasso") {
        let (dataset, enters) = (text(&case["dataset"]), numbers(&case["enters"]));
        let groups = case["groups"].as_object().unwrap();
        let listed: Vec<String> =
            groups.iter().map(|(name, members)| format!("'{name}': [{}]", quoted(&names(members)))).collect();
        let features: Vec<String> = groups.values().flat_map(names).collect();
        let call = format!(
            "group_lasso(sample.{dataset}, label => label, model => 'linear', k => {}, features => [{}], groups => MAP {{{}}})",
            enters.len(),
            quoted(&features),
            listed.join(", ")
        );
        let found = scores(&ctx, &call, "score").await;
        assert_eq!(falling(&found), falling(&enters), "{dataset}");
        for (name, penalty) in &enters {
            let is_near = *penalty <= found[name] * 1.001 && *penalty >= found[name] * step * 0.999;
            assert!(is_near, "{dataset}, {name}: {} instead of {penalty}", found[name]);
        }
    }
}

/// How often a feature comes before its knockoff, of so many draws here and there: what is left is chance.
#[tokio::test(flavor = "multi_thread")]
async fn features_come_before_their_knockoffs_as_often_as_in_knockpy() {
    const DRAWS: u64 = 150;
    let ctx = session();
    for case in cases_in("rivals", "knockoffs") {
        let (expected, draws) = (numbers(&case["first"]), case["draws"].as_f64().unwrap());
        let mut first: BTreeMap<String, f64> = BTreeMap::new();
        for seed in 0..DRAWS {
            let call = format!(
                "knockoffs(sample.{}, label => label, features => [{}], selector => 'elastic_net', selector_options => MAP {{'l1_ratio': 1.0}}, seed => {seed})",
                text(&case["dataset"]),
                quoted(expected.keys())
            );
            for (name, statistic) in scores(&ctx, &call, "statistic").await {
                *first.entry(name).or_default() += f64::from(u8::from(statistic > 0.0)) / DRAWS as f64;
            }
        }
        for (name, share) in &expected {
            let likely = share.clamp(0.02, 0.98);
            let chance = (likely * (1.0 - likely) * (1.0 / draws + 1.0 / DRAWS as f64)).sqrt();
            assert!((first[name] - share).abs() < 3.5 * chance, "{name}: {} instead of {share}", first[name]);
        }
    }
}

/// The features that make the label have more splits than all others, in BART and here.
#[tokio::test(flavor = "multi_thread")]
async fn splits_are_by_the_features_that_barts_are() {
    let ctx = session();
    for case in cases_in("rivals", "bart") {
        let shares = numbers(&case["shares"]);
        let (dataset, features) = (text(&case["dataset"]), shares.keys().collect::<Vec<_>>());
        let unit = |name: &&String| {
            format!("CAST({name} - min({name}) OVER () AS DOUBLE) / (max({name}) OVER () - min({name}) OVER ()) AS u_{name}")
        };
        let listed = features.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let units = features.iter().map(unit).collect::<Vec<_>>().join(", ");
        let table =
            format!("(SELECT {listed}, {} AS label FROM (SELECT {listed}, {units} FROM sample.{dataset}))", text(&case["label"]));
        for counting in ["splits", "evidence"] {
            let call = format!("bart({table}, label => label, k => {}, counting => '{counting}')", features.len());
            let found = falling(&scores(&ctx, &call, "score").await);
            let first = |order: &[String]| order[..5].iter().cloned().collect::<BTreeSet<_>>();
            assert_eq!(first(&found), first(&falling(&shares)), "{counting}");
        }
    }
}

/// The features that its path drops last, in whatever order.
#[tokio::test(flavor = "multi_thread")]
async fn lassonet_keeps_what_its_package_does() {
    let ctx = session();
    for (case, k) in cases_in("lassonet", "orders").iter().zip([3, 6]) {
        let dataset = text(&case["dataset"]);
        let expected: BTreeSet<String> = names(&case["order"]).into_iter().take(k).collect();
        let sql = format!("SELECT feature FROM lassonet(sample.{dataset}, label => label, k => {k})");
        let found: BTreeSet<String> = texts(&query(&ctx, &sql).await.unwrap(), "feature").into_iter().collect();
        assert_eq!(found, expected, "{dataset}");
    }
}
