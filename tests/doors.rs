//! Ways into the engine that a query cannot show: sessions of all kinds, catalogs that take their time, what the sources may name.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use pursuit::Engine;

use crate::session::{error, query, session, texts};

const PROBLEM: &str = "SELECT feature FROM omp((SELECT * FROM sample_problem('linear', 100, 1)), label => label, k => 1)";

#[tokio::test]
async fn a_session_that_is_being_built_takes_all_functions() {
    // Before the default functions and after them.
    let engine = Engine::default();
    for builder in [
        engine.install(SessionStateBuilder::new().with_default_features()).unwrap(),
        engine.install(SessionStateBuilder::new()).unwrap().with_default_features(),
    ] {
        let ctx = SessionContext::new_with_state(builder.build());
        assert_eq!(texts(&query(&ctx, PROBLEM).await.unwrap(), "feature"), ["x1"]);
        let gram = "SELECT select_from(gram(label, x1, x2), 'omp') IS NULL FROM sample_problem('linear', 100, 1)";
        assert_eq!(query(&ctx, gram).await.unwrap()[0].num_rows(), 1);
        settings_hold(&ctx).await;
    }
    let message = Engine::default().with_samples().install(SessionStateBuilder::new()).err().unwrap().strip_backtrace();
    assert!(message.contains("sample tables need a catalog"), "{message}");
}

#[tokio::test]
async fn a_session_that_stands_takes_them_with_one_call() {
    let ctx = SessionContext::new();
    pursuit::register(&ctx).unwrap();
    assert_eq!(texts(&query(&ctx, PROBLEM).await.unwrap(), "feature"), ["x1"]);
    settings_hold(&ctx).await;
}

/// What is set for a session holds for its calls, and stays when another engine is registered.
async fn settings_hold(ctx: &SessionContext) {
    query(ctx, "SET pursuit.time_limit = 0.001").await.unwrap();
    let slow = "SELECT * FROM stability_selection((SELECT * FROM sample_problem('linear', 2000, 1)), label => label)";
    let message = error(ctx, slow).await;
    assert!(message.contains("stability_selection: the time_limit of 0.001 seconds is over"), "{message}");
    pursuit::register(ctx).unwrap();
    assert!(error(ctx, slow).await.contains("time_limit"));
    let unknown = error(ctx, "SET pursuit.time_limt = 5").await;
    assert!(unknown.contains("pursuit.time_limt: no such setting; did you mean `time_limit`?"), "{unknown}");
    query(ctx, "SET pursuit.time_limit = DEFAULT").await.unwrap();
    assert_eq!(texts(&query(ctx, PROBLEM).await.unwrap(), "feature"), ["x1"]);
}

#[tokio::test]
async fn sample_tables_make_a_catalog_where_there_is_none() {
    let config = SessionConfig::new().with_create_default_catalog_and_schema(false);
    let ctx = SessionContext::new_with_config(config);
    Engine::default().with_samples().register(&ctx).unwrap();
    let answer = query(&ctx, "SELECT feature FROM omp('sample.diabetes', 'label', 1)").await.unwrap();
    assert_eq!(texts(&answer, "feature"), ["bmi"]);
}

/// A catalog on the other side of a network: every look-up waits for a timer of the runtime.
#[derive(Debug)]
struct Slow(MemorySchemaProvider);

#[async_trait]
impl SchemaProvider for Slow {
    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if name == "broken" {
            return Err(DataFusionError::Execution("the network\nis down".to_string()));
        }
        self.0.table(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}

async fn slow_catalogs_answer() {
    let ctx = session();
    let table = ctx.table_provider("sample.diabetes").await.unwrap();
    let schema = Slow(MemorySchemaProvider::new());
    schema.0.register_table("patients".to_string(), table).unwrap();
    ctx.catalog("datafusion").unwrap().register_schema("far", Arc::new(schema)).unwrap();
    for call in ["omp('far.patients', 'label', 1)", "omp(far.patients, label => label, k => 1)"] {
        let answer = query(&ctx, &format!("SELECT feature FROM {call}")).await.unwrap();
        assert_eq!(texts(&answer, "feature"), ["bmi"]);
    }
    // A table that is an option is read while planning.
    let groups = "SELECT feature FROM omp('sample.diabetes', label => 'label', k => 1, groups => 'far.groups')";
    let message = error(&ctx, groups).await;
    assert!(message.contains("omp: no table or view named `far.groups`"), "{message}");
    let message = error(&ctx, "SELECT * FROM omp('far.broken', 'label', 1)").await;
    assert!(message.contains(r"omp: cannot look up `far.broken`: the network\nis down"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn slow_catalogs_answer_on_a_runtime_of_workers() {
    tokio::time::timeout(Duration::from_secs(60), SpawnedTask::spawn(slow_catalogs_answer())).await.unwrap().unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn slow_catalogs_answer_on_a_runtime_of_one_thread() {
    slow_catalogs_answer().await;
}

/// Serves one small file to everybody who asks, for as long as the test runs.
fn serve(body: &'static str) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let sent = if request[..read].starts_with(b"GET") { body } else { "" };
            let head = format!(
                "HTTP/1.1 200 OK\r\nlast-modified: Tue, 01 Oct 2024 00:00:00 GMT\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent.as_bytes()));
        }
    });
    address
}

/// Looking up such a table takes the network, while the query is planned.
#[test]
fn a_file_on_the_web_is_a_table() {
    let address = serve("a,b,label\n1,2,3\n2,1,4\n3,5,9\n4,4,8\n");
    let sql = format!("SELECT feature FROM omp('http://{address}/t.csv', 'label', 1)");
    let output = Command::new(env!("CARGO_BIN_EXE_pursuit")).args(["-q", "--format", "csv", "-c", &sql]).output().unwrap();
    let answer = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((answer.0.trim(), answer.1.trim()), ("feature\nb", ""));
}

/// A server that speaks S3 is one that hands out files.
#[test]
fn a_bucket_is_opened_as_options_say() {
    let address = serve("a,b,label\n1,2,3\n2,1,4\n3,5,9\n4,4,8\n");
    let run = |options: &str| {
        let sql = format!(
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 's3://bucket/t.csv' OPTIONS ('format.has_header' 'true', {options});\
             SELECT sum(a) AS a FROM t; SELECT count(*) AS n FROM 's3://bucket/t.csv'"
        );
        let mut pursuit = Command::new(env!("CARGO_BIN_EXE_pursuit"));
        let output =
            pursuit.args(["-q", "--format", "csv", "-c", &sql]).env("AWS_EC2_METADATA_DISABLED", "true").output().unwrap();
        (String::from_utf8_lossy(&output.stdout).trim().to_string(), String::from_utf8_lossy(&output.stderr).trim().to_string())
    };
    let endpoint = format!("'aws.endpoint' 'http://{address}'");
    assert_eq!(run(&format!("{endpoint}, 'aws.allow_http' 'true'")), ("a\n10\nn\n4".to_string(), String::new()));
    let signed =
        format!("{endpoint}, 'aws.allow_http' 'true', 'aws.access_key_id' 'k', 'aws.secret_access_key' 's', 'aws.region' 'r'");
    assert_eq!(run(&signed).1, "");
    let says = |options: &str, part: &str| {
        let error = run(options).1;
        assert!(error.contains(part) && error.lines().count() == 1, "{error}");
    };
    says(&endpoint, "does not encrypt");
    says(&format!("{endpoint}, 'aws.allow_htp' 'true'"), "did you mean `aws.allow_http`?");
    says(&format!("{endpoint}, 'gcp.service_account_key' 'x'"), "there is no option `gcp.service_account_key` here");
}

/// A wrong address is one line, which says what is wrong with it, and soon.
#[test]
fn what_is_not_on_the_web_is_said_in_a_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    for (table, part) in [
        (format!("http://{address}/t.csv"), format!("http://{address}/t.csv: access is denied")),
        (
            "s3://bucket/t.csv".to_string(),
            "s3://bucket/t.csv: access is denied; keys are read from AWS_ACCESS_KEY_ID".to_string(),
        ),
        ("ftp://host/t.csv".to_string(), "no table can be at ftp://; addresses begin with s3://".to_string()),
        ("s3:///t.csv".to_string(), "names no bucket".to_string()),
    ] {
        let mut pursuit = Command::new(env!("CARGO_BIN_EXE_pursuit"));
        pursuit.args(["-q", "-c", &format!("SELECT * FROM '{table}'")]).env("AWS_EC2_METADATA_DISABLED", "true");
        pursuit.env("AWS_ENDPOINT", format!("http://{address}")).env("AWS_ALLOW_HTTP", "true");
        let error = String::from_utf8_lossy(&pursuit.output().unwrap().stderr).to_string();
        assert!(error.contains(&part) && error.lines().count() == 1, "{table}: {error}");
    }
}

/// Nothing in `src/` depends on which selectors there are: the texts of the program name none.
#[test]
fn the_engine_names_no_selector() {
    let specs: Vec<_> = pursuit_udfs::selectors().into_iter().chain(pursuit_udfs::reports()).collect();
    let names: Vec<&str> = specs.iter().flat_map(|spec| spec.aliases.iter().copied().chain([spec.name])).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let program = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in program.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let quoted = line.split('"').skip(1).step_by(2);
            let words = quoted.flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
            // Some functions are called as people speak.
            for word in words.filter(|word| !["fit", "predict", "chosen"].contains(word)) {
                assert!(!names.contains(&word), "{} names `{word}`: {line}", file.display());
            }
        }
    }
}
