//! Models as tables: what SQL makes of them, kept in files, in parts, in any order.

use datafusion::prelude::{SessionConfig, SessionContext};

use crate::session::{error, floats, query, session, session_with, texts};

/// Rows with NULLs, odd names and texts, and labels of every kind; `test` has levels that were not seen, NaN and infinity.
async fn tables(ctx: &SessionContext) {
    let table = |name: &str, rows: usize, step: usize, new: &str| {
        format!(
            r#"CREATE TABLE {name} AS SELECT *, CASE WHEN y > 3 THEN 'high' ELSE 'low' END AS two, CASE WHEN y < 0 THEN 0 WHEN y < 5 THEN 1 ELSE 2 END AS three FROM (
            SELECT value AS id, CASE (value * {step}) % 7 WHEN 0 THEN 'it''s' WHEN 1 THEN 'a "b"' WHEN 2 THEN {new} WHEN 3 THEN 'back\slash' WHEN 4 THEN '' END AS "odd ""name",
                   CASE WHEN value % 9 = 4 THEN NULL WHEN value % 31 = 5 THEN {new_number} ELSE sin(value * 0.37) * 10 END AS x,
                   CASE WHEN value % 5 > 0 THEN (value * {step}) % 23 END AS n,
                   10 * cos(value * 0.11) + (value * {step}) % 7 - 3.0 AS y
            FROM generate_series(1, {rows}))"#,
            new_number = if new == "'new'" {
                "CASE value % 3 WHEN 0 THEN double 'NaN' WHEN 1 THEN double '-inf' ELSE 1e200 END"
            } else {
                "77.0"
            }
        )
    };
    query(ctx, &table("train", 500, 13, "'plain'")).await.unwrap();
    query(ctx, &table("test", 300, 17, "'new'")).await.unwrap();
}

const KINDS: [(&str, &str); 6] =
    [("y", "linear"), ("two", "logistic"), ("three", "logistic"), ("y", "boosting"), ("two", "boosting"), ("three", "boosting")];

fn fit(label: &str, model: &str) -> String {
    let rounds = if model == "boosting" { ", rounds => 10" } else { "" };
    format!(r#"SELECT * FROM fit(train, label => {label}, model => '{model}', features => ['x', 'n', 'odd "name'] {rounds})"#)
}

/// The expression gives what predict does: numbers and classes to the last bit, probabilities but for rounding.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_as_sql_predicts_as_the_model_does() {
    let ctx = session();
    tables(&ctx).await;
    for (at, (label, model)) in KINDS.iter().enumerate() {
        query(&ctx, &format!("CREATE TABLE m{at} AS {}", fit(label, model))).await.unwrap();
        let written = query(&ctx, &format!("SELECT sql, array_to_string(probabilities, ' ;; ') AS shares FROM model_sql(m{at})"))
            .await
            .unwrap();
        let (sql, shares) = (texts(&written, "sql").remove(0), texts(&written, "shares").remove(0));
        let differing = format!(
            "SELECT count(*) * 1.0 AS rows, sum(CASE WHEN prediction = ({sql}) THEN 0.0 ELSE 1.0 END) AS others FROM predict(test, model => m{at})"
        );
        let answer = query(&ctx, &differing).await.unwrap();
        assert_eq!((floats(&answer, "rows"), floats(&answer, "others")), (vec![300.0], vec![0.0]), "{model} of {label}: {sql}");
        let classes =
            texts(&query(&ctx, &format!("SELECT class FROM m{at} WHERE part = 'class' ORDER BY node")).await.unwrap(), "class");
        for (class, share) in classes.iter().zip(shares.split(" ;; ")) {
            let worst =
                format!("SELECT max(abs(probabilities['{class}'] - ({share}))) AS worst FROM predict(test, model => m{at})");
            let worst = floats(&query(&ctx, &worst).await.unwrap(), "worst")[0];
            assert!(worst < 1e-14, "{model} of {label}, {class}: {worst}");
        }
    }
}

/// On one partition and on eight, from memory and from files, in any order of the model's rows, with all columns or with some.
#[tokio::test(flavor = "multi_thread")]
async fn predictions_do_not_depend_on_how_a_model_is_kept() {
    let folder = std::env::temp_dir().join(format!("pursuit-models-{}", std::process::id()));
    for (label, model) in KINDS.into_iter().chain([("three", "mlp")]) {
        let mut answers = Vec::new();
        for partitions in [1, 8] {
            let config =
                SessionConfig::new().with_target_partitions(partitions).with_batch_size(if partitions == 1 { 8192 } else { 37 });
            let ctx = session_with(config);
            tables(&ctx).await;
            query(&ctx, &format!("CREATE TABLE m AS {}", fit(label, model).replace("'mlp',", "'mlp', epochs => 3,")))
                .await
                .unwrap();
            let file = folder.join(format!("{label}-{model}-{partitions}.parquet"));
            query(&ctx, &format!("COPY (SELECT * FROM m ORDER BY value DESC, node) TO '{}'", file.display())).await.unwrap();
            for kept in ["m".to_string(), format!("'{}'", file.display())] {
                let sql = format!(
                    "SELECT arrow_cast(concat(id, ' ', CAST(prediction AS VARCHAR), ' ', coalesce(CAST(probability AS VARCHAR), ''), ' ', array_to_string(notes, ',')), 'Utf8') AS row
                     FROM predict(test, model => {kept}) ORDER BY id"
                );
                answers.push(texts(&query(&ctx, &sql).await.unwrap(), "row"));
            }
        }
        assert!(answers[0].len() == 300 && answers.iter().all(|answer| *answer == answers[0]), "{model} of {label}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A view over a model that has since become another: the type of its predictions was settled.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_was_planned_for_another_model_says_so() {
    let ctx = session();
    tables(&ctx).await;
    query(&ctx, &format!("CREATE TABLE m AS {}", fit("two", "logistic"))).await.unwrap();
    let planned = ctx.sql("SELECT prediction FROM predict(test, model => (SELECT * FROM m))").await.unwrap();
    assert_eq!(planned.clone().collect().await.unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>(), 300);
    query(&ctx, "CREATE VIEW predicted AS SELECT prediction FROM predict(test, model => m)").await.unwrap();
    query(&ctx, "DROP TABLE m").await.unwrap();
    query(&ctx, &format!("CREATE TABLE m AS {}", fit("y", "linear"))).await.unwrap();
    // The view has the table that it was made with.
    assert_eq!(query(&ctx, "SELECT * FROM predicted").await.unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>(), 300);
    let message = error(&ctx, "SELECT * FROM predict(test, model => (SELECT * FROM m WHERE feature = 'x'))").await;
    assert!(
        message.contains(
            "predict: the table given as `model` is not a whole answer of fit: it has 0 rows of `model` instead of one"
        ),
        "{message}"
    );
}

/// What a table holds is described alike on any number of partitions, and as plain SQL has it.
#[tokio::test(flavor = "multi_thread")]
async fn descriptions_do_not_depend_on_partitions() {
    let sql = "SELECT arrow_cast(concat(feature, ' ', coalesce(CAST(nulls AS VARCHAR), ''), ' ', CAST(distinct AS VARCHAR), ' ', coalesce(CAST(median AS VARCHAR), ''), ' ',
                             coalesce(CAST(round(association, 12) AS VARCHAR), ''), ' ', coalesce(top_value, ''), ' ', array_to_string(flags, ',')), 'Utf8') AS row
               FROM describe_features(big, label => y)";
    let mut answers = Vec::new();
    for partitions in [1, 7] {
        let config =
            SessionConfig::new().with_target_partitions(partitions).with_batch_size(if partitions == 1 { 8192 } else { 100 });
        let ctx = session_with(config);
        let make = "CREATE TABLE big AS SELECT value AS id, sin(value * 0.37) AS x, value % 3 AS few, concat('t', value * 7 % 50) AS text,
                    CASE WHEN value % 4 = 0 THEN NULL ELSE value % 100 END AS holes, sin(value * 0.37) + cos(value * 1.7) AS y FROM generate_series(1, 20000)";
        query(&ctx, make).await.unwrap();
        let order = if partitions == 1 { "id" } else { "id DESC" };
        query(&ctx, &format!("CREATE TABLE turned AS SELECT * FROM big ORDER BY {order}")).await.unwrap();
        answers.push(texts(&query(&ctx, &sql.replace("(big", "(turned")).await.unwrap(), "row"));
        if partitions == 7 {
            let plain =
                "SELECT CAST(count(DISTINCT text) AS DOUBLE) AS texts, CAST(count(*) - count(holes) AS DOUBLE) AS nulls FROM big";
            let plain = query(&ctx, plain).await.unwrap();
            let ours = "SELECT CAST(sum(CASE feature WHEN 'text' THEN distinct ELSE 0 END) AS DOUBLE) AS texts, CAST(sum(nulls) AS DOUBLE) AS nulls FROM describe_features(big)";
            let ours = query(&ctx, ours).await.unwrap();
            assert_eq!((floats(&plain, "texts"), floats(&plain, "nulls")), (floats(&ours, "texts"), floats(&ours, "nulls")));
        }
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].iter().any(|row| row.contains("id-like")));
}
