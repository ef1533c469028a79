//! Many selections at once, nested ones, and what is still at work after a cancellation.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::prelude::{SessionConfig, SessionContext};
use pursuit::{Engine, Progress};

use crate::session::{query, session, texts};

/// Much longer than any of these takes, and shorter than a person would wait.
const PATIENCE: Duration = Duration::from_secs(300);

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what} hangs"))
}

/// Every level reads the one below while it learns: on few threads, whoever waits for rows must not hold one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_pass_over_one_pass_over_one_pass_ends() {
    let ctx = session();
    let numbers =
        "SELECT score, coalesce(gain, 0) AS gain, coalesce(train_score, 0) AS train_score, CAST(rank AS DOUBLE) AS label FROM";
    for threads in [0, 1] {
        let mut call = format!("omp(sample.diabetes, label => label, k => 10, threads => {threads})");
        for _ in 0..3 {
            call = format!("sa(({numbers} {call}), label => label, k => 2, passes => 'one', threads => {threads})");
        }
        let answer = in_time("a nested selection", query(&ctx, &format!("SELECT feature FROM {call}"))).await;
        assert!(answer.is_ok() || answer.unwrap_err().to_string().contains("needs at least 2 rows"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_single_passes_over_a_selection_end() {
    let ctx = session();
    let chosen = "(SELECT score, train_score, CAST(rank AS DOUBLE) AS label FROM omp(sample.diabetes, label => label, k => 10))";
    let call = format!("SELECT feature FROM sa({chosen}, label => label, k => 1, passes => 'one')");
    let sql = vec![call; 4].join(" UNION ALL ");
    assert_eq!(texts(&in_time("a union", query(&ctx, &sql)).await.unwrap(), "feature").len(), 4);
}

fn neural(seed: usize, epochs: usize) -> String {
    format!("SELECT feature FROM sa(sample.diabetes, label => label, k => 3, epochs => {epochs}, seed => {seed})")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_networks_and_two_hundred_pursuits_end() {
    let ctx = Arc::new(session());
    let mut all = JoinSet::new();
    for at in 0..216 {
        let (ctx, sql) = (
            Arc::clone(&ctx),
            match at {
                0..16 => neural(at, 3),
                _ => "SELECT feature FROM omp(sample.diabetes, label => label, k => 5)".to_string(),
            },
        );
        all.spawn(async move { query(&ctx, &sql).await.map(|answer| texts(&answer, "feature").len()) });
    }
    let ended = in_time("one of many", async {
        let mut ended = 0;
        while let Some(answer) = all.join_next().await {
            assert!(answer.unwrap().unwrap() >= 3);
            ended += 1;
        }
        ended
    });
    assert_eq!(ended.await, 216);
}

/// A selection of milliseconds does not stand behind sixteen that take minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_selection_passes_long_ones() {
    let ctx = Arc::new(session());
    let mut long = JoinSet::new();
    for seed in 0..16 {
        let ctx = Arc::clone(&ctx);
        long.spawn(async move { query(&ctx, &neural(seed, 500_000)).await.is_ok() });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for reads in ["moments", "rows"] {
        let begun = Instant::now();
        query(&ctx, &format!("SELECT feature FROM omp(sample.diabetes, label => label, k => 5, reads => '{reads}')"))
            .await
            .unwrap();
        // A second where the machine has nothing else to do; tests have company.
        assert!(begun.elapsed() < Duration::from_secs(10), "{reads}: {:?}", begun.elapsed());
    }
    assert!(long.try_join_next().is_none(), "the others should still be at work");
}

const CHILD: &str = "PURSUIT_TEST_CANCEL";

/// In a process of its own, because it is the time of the process that tells what is at work.
#[test]
fn after_a_cancel_nothing_is_at_work() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "threads::cancelled_in_a_process_of_its_own", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_in_a_process_of_its_own() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let engine = Engine::default().with_samples();
    let (ctx, progress) = (SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2)), engine.progress());
    engine.register(&ctx).unwrap();
    let columns: Vec<String> = (0..60).map(|at| format!("random() AS x{at}")).collect();
    let make = format!("CREATE TABLE noise AS SELECT {}, random() AS label FROM generate_series(1, 40000)", columns.join(", "));
    query(&ctx, &make).await.unwrap();
    let mut failures = Vec::new();
    for call in [
        "sa(noise, label => label, k => 30, epochs => 1000)",
        "sa(noise, label => label, k => 30, epochs => 1000, threads => 2)",
        "sa((SELECT a.* FROM noise AS a CROSS JOIN generate_series(1, 500) AS b), label => label, k => 30, passes => 'one')",
        "omp(noise, label => label, k => 30, model => 'mlp', epochs => 1000)",
        "group_lasso(noise, label => label, k => 30, epochs => 1000)",
        "neural_greedy_pursuit(noise, label => label, k => 30)",
        "neural_greedy_pursuit(noise, label => label, k => 30, predictor => 'svm')",
        "random_forest(noise, label => label, k => 30, trees => 100000)",
        "boosting(noise, label => label, k => 30, rounds => 100000)",
        "evaluate(noise, label => label, seeds => 100, epochs => 100)",
        "evaluate(noise, label => label, selector => 'ngp', k => 30, folds => 5)",
        "select_features(noise, label => label, k => 30)",
        "compare_selectors(noise, label => label, k => 30, selectors => ['sa', 'ngp'])",
        "stability_selection(noise, label => label, k => 30, selector => 'boosting')",
        "fit(noise, label => label, model => 'mlp', epochs => 1000)",
        "(SELECT * FROM predict(noise, model => (SELECT * FROM fit(noise, label => label, model => 'boosting', rounds => 100000))))",
    ] {
        let cpu = cancelled(&ctx, &progress, call, false).await;
        // Half a second on two cores: one core at work would show as 0.5.
        if cpu > Duration::from_millis(200) {
            failures.push(format!("{call}: {cpu:?} of the half second after the cancel"));
        }
    }
    // Texts of many values: what is slow there is reading. No more of them, because DataFusion ends the batch that it casts, which takes its time where
    // it is not optimised.
    let texts: Vec<String> = (0..60).map(|at| format!("CAST(value * {} % {} AS TEXT) AS t{at}", at + 3, 700 + at)).collect();
    let texts = format!("(SELECT {}, value % 17 AS label FROM generate_series(1, 20000000))", texts.join(", "));
    for call in ["boosting(TEXTS, label => label)", "describe_features(TEXTS, label => label)"] {
        let cpu = cancelled(&ctx, &progress, &call.replace("TEXTS", &texts), true).await;
        if cpu > Duration::from_millis(200) {
            failures.push(format!("{call}: {cpu:?} of the half second after the cancel"));
        }
    }
    // The same from a file, which is read without a pause.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("texts.parquet");
    let texts: Vec<String> =
        (0..26).map(|at| format!("CAST(value * {} % {} AS TEXT) AS t{at}", 7919 + 2 * at, 3000 + 500 * at)).collect();
    let rows = format!("SELECT {}, value % 7 AS label FROM generate_series(1, 200000)", texts.join(", "));
    query(&ctx, &format!("COPY ({rows}) TO '{}'", file.display())).await.unwrap();
    ctx.register_parquet("texts", file.to_str().unwrap(), Default::default()).await.unwrap();
    for call in ["omp(texts, label => label)", "mutual_information(texts, label => label)"] {
        let cpu = cancelled(&ctx, &progress, call, true).await;
        if cpu > Duration::from_millis(200) {
            failures.push(format!("{call} of a file: {cpu:?} of the half second after the cancel"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Begins a query, drops it while it selects, or while it reads, gives it a tenth of a second, and returns the processor time of the next half second.
async fn cancelled(ctx: &SessionContext, progress: &Progress, call: &str, while_reading: bool) -> Duration {
    // What was cancelled before may have its line a little longer.
    while progress.line().is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (running, sql) = (ctx.clone(), format!("SELECT * FROM {call}"));
    let running = SpawnedTask::spawn(async move { query(&running, &sql).await.map(|_| ()) });
    let begun = Instant::now();
    while progress.line().is_none_or(|(line, _)| line.starts_with("reading") && !while_reading) && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(progress.line().is_some(), "{call} has ended by itself");
    // As a shell does when Ctrl-C is pressed.
    drop(running);
    progress.stop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = process_time();
    tokio::time::sleep(Duration::from_millis(500)).await;
    process_time() - before
}

/// Processor time that this process has had, as Linux tells it; elsewhere nothing is measured.
fn process_time() -> Duration {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return Duration::ZERO };
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap_or(0)).sum();
    Duration::from_millis(ticks * 10)
}
