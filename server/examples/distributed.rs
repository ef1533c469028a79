//! Pursuit in a service that runs its queries on [datafusion-distributed](https://docs.rs/datafusion-distributed): a coordinator, which is an ordinary session, and workers.
//!
//! ```sh
//! cargo run --manifest-path server/Cargo.toml --example distributed
//! ```
//!
//! Starts two workers on loopback, selects from a table of many files on them and in a plain session, and ends with an error if the answers differ. There is no retry here: a
//! worker that dies ends the query. Selections that read moments run on the workers. Those that read rows have no way to them, and say so: gather the rows into a table of the
//! coordinator first.

use std::error::Error;
use std::path::Path;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_distributed::{
    DistributedExt, SessionStateBuilderExt, Worker, WorkerQueryContext, WorkerResolver, display_plan_ascii,
};
use pursuit::Engine;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use url::Url;

type Any = Box<dyn Error + Send + Sync>;

const FILES: usize = 4;

/// Where the workers are.
struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>, DataFusionError> {
        Ok(self.0.clone())
    }
}

/// A worker with our functions.
async fn worker() -> Result<Url, Any> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
    let worker = Worker::from_session_builder(|context: WorkerQueryContext| async move {
        let ctx = SessionContext::new_with_state(context.builder.build());
        Engine::default().register(&ctx)?;
        Ok(ctx.state())
    });
    let serving = Server::builder().add_service(worker.into_worker_server()).serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(serving);
    Ok(url)
}

/// A session that plans for the workers.
async fn coordinator(workers: Vec<Url>) -> Result<SessionContext, Any> {
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(FILES))
        .with_distributed_worker_resolver(Workers(workers))
        .with_distributed_planner()
        // A small table is worth sending out only in an example.
        .with_distributed_file_scan_config_bytes_per_partition(1)?
        .build();
    Ok(SessionContext::from(state))
}

async fn write(folder: &Path) -> Result<(), Any> {
    let ctx = SessionContext::new();
    for file in 0..FILES {
        let (first, last, path) = (file * 1000 + 1, file * 1000 + 1000, folder.join(format!("{file}.parquet")));
        let features = "sin(i) AS a, sin(i * 1.7) AS b, sin(i * 0.3) AS c";
        let rows = format!("SELECT i, {features} FROM (SELECT value AS i FROM generate_series({first}, {last}))");
        let sql = format!("COPY (SELECT *, a + 0.5 * b AS y, i % 3 AS g FROM ({rows})) TO '{}'", path.display());
        ctx.sql(&sql).await?.collect().await?;
    }
    Ok(())
}

async fn answer(ctx: &SessionContext, sql: &str) -> Result<String, DataFusionError> {
    Ok(pretty_format_batches(&ctx.sql(sql).await?.collect().await?)?.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Any> {
    let folder = tempfile::tempdir()?;
    write(folder.path()).await?;
    let path = folder.path().to_str().ok_or("the path is no text")?;
    let plain = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(FILES));
    let spread = coordinator(vec![worker().await?, worker().await?]).await?;
    for ctx in [&plain, &spread] {
        Engine::default().register(ctx)?;
        ctx.register_parquet("t", path, ParquetReadOptions::default()).await?;
    }
    for sql in [
        "SELECT * FROM omp(t, label => y, k => 3, exclude => ['i'])",
        "SELECT * FROM sequential_lasso(t, label => y, k => 2, exclude => ['i'])",
        "SELECT * FROM omp(t, label => y, k => 2, exclude => ['i'], partition_by => 'g') ORDER BY g, rank",
    ] {
        let (here, there) = (answer(&plain, sql).await?, answer(&spread, sql).await?);
        println!("{sql}\n{there}");
        if here != there {
            return Err(format!("the workers answer otherwise than a plain session:\n{here}").into());
        }
        let plan = spread.sql(sql).await?.create_physical_plan().await?;
        let plan = display_plan_ascii(plan.as_ref(), false);
        if !plan.contains("DistributedExec") {
            return Err(format!("the workers were not asked:\n{plan}").into());
        }
    }
    let forest = |table: &str| format!("SELECT * FROM random_forest({table}, label => y, k => 2, exclude => ['i'])");
    let expected = answer(&plain, &forest("t")).await?;
    match answer(&spread, &forest("t")).await {
        Ok(there) => return Err(format!("a selection that reads rows found a way to the workers:\n{there}").into()),
        Err(error) => println!("as announced: {}\n", error.strip_backtrace()),
    }
    answer(&spread, "CREATE TABLE gathered AS SELECT * FROM t").await?;
    if answer(&spread, &forest("gathered")).await? != expected {
        return Err("gathered rows are answered otherwise".into());
    }
    println!("{expected}");
    Ok(())
}
