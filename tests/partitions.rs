//! The answer is that of the rows: neither files, partitions, batches nor threads show in it.

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::session::{ints, query, session, session_with, texts};

/// Everything that reads rows, on a table of numbers with a column to be classified by. Short runs: what matters is whether they are alike.
const QUERIES: [&str; 12] = [
    "omp(TABLE, label => label, k => 5, reads => 'rows')",
    "omp(TABLE, label => label, k => 3, model => 'mlp', epochs => 2)",
    "sequential_lasso(TABLE, label => label, k => 5, reads => 'rows')",
    "sequential_attention(TABLE, label => label, k => 3, epochs => 3)",
    "sequential_attention(TABLE, label => label, k => 3, passes => 'one')",
    "sequential_attention(TABLE, label => label, k => 3, direction => 'backward', epochs => 3)",
    "group_lasso(TABLE, label => label, k => 3, epochs => 2)",
    "batch_attention(TABLE, label => label, k => 3, epochs => 2)",
    "random_forest(TABLE, label => label, k => 3, trees => 5)",
    "neural_greedy_pursuit(TABLE, label => label, k => 2)",
    "evaluate(TABLE, label => label, features => ['bmi', 's5'], seeds => 2)",
    "marginal_gains(TABLE, label => label, given => ['bmi'])",
];

async fn answer(ctx: &SessionContext, call: &str, table: &str, threads: usize) -> String {
    let call = call.replace("TABLE", table).replace("label => label", &format!("label => label, threads => {threads}"));
    let batches = query(ctx, &format!("SELECT * FROM {call}")).await.unwrap_or_else(|error| panic!("{call}: {error}"));
    // The shortest text that reads back as the same number: as good as the bytes.
    pretty_format_batches(&batches).unwrap().to_string()
}

/// A filter is what DataFusion deals rows out to partitions for; batches are small, so that there is something to deal out.
#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_table_has_one_answer() {
    for call in QUERIES {
        let mut answers = Vec::new();
        for (partitions, threads) in [(1, 1), (2, 8), (3, 1), (8, 8), (8, 1)] {
            let ctx = session_with(SessionConfig::new().with_target_partitions(partitions).with_batch_size(32));
            answers.push(answer(&ctx, call, "(SELECT * FROM sample.diabetes WHERE bmi > 0)", threads).await);
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{call}: {answers:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_several_files_has_one_answer() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = session();
    for part in 0..3 {
        let file = folder.path().join(format!("part{part}.parquet"));
        let rows = format!("SELECT * FROM sample.diabetes WHERE CAST(s1 AS INT) % 3 = {part}");
        query(&ctx, &format!("COPY ({rows}) TO '{}'", file.display())).await.unwrap();
    }
    for call in QUERIES {
        let mut answers = Vec::new();
        for (partitions, threads) in [(1, 8), (2, 1), (3, 8), (8, 1)] {
            let ctx = session_with(SessionConfig::new().with_target_partitions(partitions).with_batch_size(100));
            let location = folder.path().display();
            query(&ctx, &format!("CREATE EXTERNAL TABLE parts STORED AS PARQUET LOCATION '{location}/'")).await.unwrap();
            answers.push(answer(&ctx, call, "parts", threads).await);
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{call}: {answers:#?}");
    }
}

/// A pass over more rows than its buffer holds learns from them as they are stored, and not as partitions would deal them out.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_over_a_long_table_has_one_answer() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().display();
    for (name, rows) in [("few", 3000), ("many", 30_000)] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        for part in 0..3 {
            let file = folder.path().join(format!("{name}/part{part}.parquet"));
            let rows = format!("SELECT * FROM sample_problem('linear', {rows}, {part}, '{{\"columns\": 8}}')");
            query(&session(), &format!("COPY ({rows}) TO '{}'", file.display())).await.unwrap();
        }
    }
    let call = "sequential_attention(TABLE, label => label, k => 3, passes => 'one', shuffle_buffer => 256)";
    for (table, call) in [
        ("few", call),
        ("(SELECT * FROM few WHERE x1 > -1)", call),
        ("(SELECT p.* FROM few AS p JOIN (VALUES (1), (-1)) AS s(side) ON signum(p.x1) = s.side)", call),
        ("(SELECT * FROM few WHERE x1 > 0 UNION ALL SELECT * FROM few WHERE x1 < 0)", call),
        // More than the buffer holds that nobody chose.
        ("many", "sequential_attention(TABLE, label => label, k => 3, passes => 'one')"),
    ] {
        let mut answers = Vec::new();
        for (partitions, threads) in [(1, 8), (2, 1), (4, 8), (8, 1)] {
            let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(100);
            config.options_mut().optimizer.repartition_file_min_size = 1;
            let ctx = session_with(config);
            for name in ["few", "many"] {
                let table = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{location}/{name}/'");
                query(&ctx, &table).await.unwrap();
            }
            answers.push(answer(&ctx, call, table, threads).await);
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{table}: {answers:#?}");
    }
}

/// Groups that are answered side by side, by moments and by rows, have the answers that they have alone.
#[tokio::test(flavor = "multi_thread")]
async fn groups_have_the_answers_that_they_have_alone() {
    let ctx = session_with(SessionConfig::new().with_target_partitions(3).with_batch_size(16));
    let table =
        "(SELECT *, CAST(age AS INT) % 5 AS part, CASE WHEN sex > 1.5 THEN 'a' ELSE 'b' END AS kind FROM sample.diabetes)";
    for options in ["k => 4", "k => 4, reads => 'rows'", "k => 2, model => 'mlp', epochs => 2"] {
        let sql = format!(
            "SELECT part, feature, score FROM omp({table}, label => label, partition_by => part, {options}) ORDER BY part, rank"
        );
        let all = query(&ctx, &sql).await.unwrap();
        let (parts, features) = (ints_of(&all), texts(&all, "feature"));
        for part in 0..5 {
            let own = format!("(SELECT * FROM {table} AS t WHERE part = {part})");
            let sql = format!("SELECT feature FROM omp({own}, label => label, exclude => part, {options}) ORDER BY rank");
            let alone = texts(&query(&ctx, &sql).await.unwrap(), "feature");
            let of_part: Vec<String> =
                parts.iter().zip(&features).filter(|(at, _)| **at == part).map(|(_, feature)| feature.clone()).collect();
            assert_eq!(of_part, alone, "{options}, part {part}");
        }
    }
}

fn ints_of(batches: &[datafusion::arrow::array::RecordBatch]) -> Vec<i64> {
    use datafusion::arrow::compute::cast;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    let wide = batches.iter().map(|batch| {
        let column = cast(batch.column_by_name("part").unwrap(), &DataType::Int64).unwrap();
        let schema = Schema::new(vec![Field::new("part", DataType::Int64, true)]);
        datafusion::arrow::array::RecordBatch::try_new(schema.into(), vec![column]).unwrap()
    });
    ints(&wide.collect::<Vec<_>>(), "part")
}

/// The operator says that its answer is in order, so nobody sorts it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_ranking_comes_in_order_and_says_so() {
    let ctx = session();
    let ranked =
        "SELECT rank, feature FROM omp(sample.diabetes, label => label, k => 4, reads => 'rows', rows => 'all') ORDER BY rank";
    let plan = texts(&query(&ctx, &format!("EXPLAIN FORMAT INDENT {ranked}")).await.unwrap(), "plan").join("\n");
    assert!(!plan.contains("SortExec"), "{plan}");
    let grouped = "omp((SELECT *, CAST(age AS INT) % 7 AS part FROM sample.diabetes), label => label, k => 4, reads => 'rows', partition_by => part)";
    let sql = format!(
        "SELECT bool_and(o) FROM (SELECT part * 100 + rank >= lag(part * 100 + rank, 1, -1) OVER () AS o FROM {grouped}) AS t"
    );
    let is_sorted = pretty_format_batches(&query(&ctx, &sql).await.unwrap()).unwrap().to_string();
    assert!(is_sorted.contains("true"), "{is_sorted}");
}

/// A query that takes the first choices only has only those made, if nothing that it shows depends on the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_saves_steps() {
    let ctx = session();
    let all = "omp(sample.diabetes, label => label, k => 8, reads => 'rows')";
    let whole = texts(&query(&ctx, &format!("SELECT rank, feature FROM {all} ORDER BY rank")).await.unwrap(), "feature");
    for (rest, limit) in [
        ("LIMIT 3", "limit=3"),
        ("ORDER BY rank LIMIT 3", "limit=3"),
        ("WHERE rank <= 3", "limit=3"),
        ("WHERE 4 > rank", "limit=3"),
        ("WHERE rank < 4 ORDER BY rank LIMIT 3", "limit=3"),
    ] {
        let sql = format!("SELECT rank, feature, score FROM {all} {rest}");
        let plan = texts(&query(&ctx, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap(), "plan").join("\n");
        assert!(plan.contains(limit) && plan.contains("steps=3"), "{rest}: {plan}");
        assert_eq!(texts(&query(&ctx, &sql).await.unwrap(), "feature"), whole[..3], "{rest}");
    }
    for sql in [
        format!("SELECT feature, coefficient FROM {all} LIMIT 3"),
        "SELECT feature FROM random_forest(sample.diabetes, label => label, k => 8, trees => 3) LIMIT 3".to_string(),
        "SELECT feature FROM omp(sample.diabetes, label => label, k => 8, reads => 'rows', rows => 'all') LIMIT 3".to_string(),
    ] {
        let plan = texts(&query(&ctx, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap(), "plan").join("\n");
        assert!(!plan.contains("limit=3"), "{plan}");
        assert_eq!(texts(&query(&ctx, &sql).await.unwrap(), "feature").len(), 3);
    }
}
