//! What a query and its answer cannot show.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use pursuit::Engine;
use pursuit_udfs::{Choice, Problem, Ranking, Result, Run, Selector, selector};

use crate::session::{error, floats, query, session, session_with, texts};

/// Columns c0, c1, … of noise and a label made of the 3rd and the last.
fn wide_table(rows: usize, columns: usize) -> MemTable {
    let mut random = Run::new(5).random("wide", 0);
    let data: Vec<Vec<f64>> = (0..columns).map(|_| (0..rows).map(|_| random.normal()).collect()).collect();
    let label: Vec<f64> = (0..rows).map(|row| data[2][row] * 2.0 - data[columns - 1][row] + 0.1 * random.normal()).collect();
    let mut fields: Vec<Field> = (0..columns).map(|j| Field::new(format!("c{j}"), DataType::Float64, true)).collect();
    fields.push(Field::new("label", DataType::Float64, true));
    let arrays: Vec<ArrayRef> =
        data.into_iter().chain([label]).map(|values| Arc::new(Float64Array::from(values)) as ArrayRef).collect();
    let schema = Arc::new(Schema::new(fields));
    MemTable::try_new(Arc::clone(&schema), vec![vec![RecordBatch::try_new(schema, arrays).unwrap()]]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn seven_thousand_columns_are_read_as_rows() {
    let ctx = session();
    ctx.register_table("wide", Arc::new(wide_table(72, 7000))).unwrap();
    let plan = query(&ctx, "EXPLAIN FORMAT INDENT SELECT rank, feature FROM omp('wide', 'label', 2)").await.unwrap();
    assert!(texts(&plan, "plan").join("\n").contains("SelectExec: selector=omp, label=label, features=7000, reads=rows"));
    let answer = query(&ctx, "SELECT * FROM omp('wide', 'label', 2)").await.unwrap();
    assert_eq!(texts(&answer, "feature"), ["c2", "c6999"]);
}

/// Four files, any number of partitions, work stealing on, batches cut where they fall: the moments of whole numbers are the
/// same to the last bit.
#[tokio::test(flavor = "multi_thread")]
async fn partitions_do_not_show_in_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = session();
    for part in 0..4 {
        let file = folder.path().join(format!("part{part}.parquet"));
        let sql = format!(
            "COPY (SELECT * FROM sample.digits WHERE pixel_10 % 4 = {part} OR pixel_10 % 4 = {part} - 8) TO '{}'",
            file.display()
        );
        query(&ctx, &sql).await.unwrap();
    }
    let mut answers = Vec::new();
    for partitions in [1, 2, 4, 8, 4, 4, 4, 4] {
        for threads in [1, 4] {
            let ctx = session_with(SessionConfig::new().with_target_partitions(partitions).with_batch_size(64));
            let location = folder.path().display();
            query(&ctx, &format!("CREATE EXTERNAL TABLE parts STORED AS PARQUET LOCATION '{location}/'")).await.unwrap();
            let sql =
                format!("SELECT feature, score FROM omp('parts', label => 'label', k => 30, threads => {threads}) ORDER BY rank");
            let answer = query(&ctx, &sql).await.unwrap();
            let bits: Vec<u64> = floats(&answer, "score").iter().map(|score| score.to_bits()).collect();
            answers.push((texts(&answer, "feature"), bits));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    // Rows come in the order of their partitions, so that for a given number of them nothing moves.
    let mut answers = Vec::new();
    for _ in 0..6 {
        let location = folder.path().display();
        let ctx = session();
        query(&ctx, &format!("CREATE EXTERNAL TABLE parts STORED AS PARQUET LOCATION '{location}/'")).await.unwrap();
        let answer = query(&ctx, "SELECT score FROM omp('parts', label => 'label', k => 30, reads => 'rows') ORDER BY rank")
            .await
            .unwrap();
        answers.push(floats(&answer, "score").iter().map(|score| score.to_bits()).collect::<Vec<_>>());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

/// The partitions of a scan share its files among them; every row is decided once all the same.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_files_are_decided_once() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = session();
    for part in 0..4 {
        let file = folder.path().join(format!("part{part}.parquet"));
        query(&ctx, &format!("COPY (SELECT * FROM sample.iris) TO '{}'", file.display())).await.unwrap();
    }
    query(&ctx, "CREATE TABLE policy AS SELECT * FROM datum_wise_policy(sample.iris, label => label, iterations => 2)")
        .await
        .unwrap();
    let table = format!("CREATE EXTERNAL TABLE parts STORED AS PARQUET LOCATION '{}/'", folder.path().display());
    query(&ctx, &table).await.unwrap();
    let sql = "SELECT CAST(count(*) AS DOUBLE) AS n FROM datum_wise_classify(parts, label => label, policy => policy)";
    assert_eq!(floats(&query(&ctx, sql).await.unwrap(), "n"), [600.0]);
}

/// Where fitting fails, every partition gets that error: a plan whose input was run once must not be run again.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_fitted_is_an_error_for_every_partition() {
    for _ in 0..12 {
        let message = error(
            &session_with(SessionConfig::new().with_target_partitions(8).with_batch_size(32)),
            "SELECT * FROM datum_wise_classify((SELECT * FROM sample.diabetes WHERE bmi > 0), label => label)",
        )
        .await;
        assert!(message.contains("datum_wise_classify: label `label` is a number, and this predicts classes"), "{message}");
    }
}

/// Filters and joins put batches together whose dictionaries differ, and leave names in them twice.
#[tokio::test(flavor = "multi_thread")]
async fn dictionaries_decide_as_texts_do() {
    let ctx = session_with(SessionConfig::new().with_target_partitions(2).with_batch_size(16));
    let words = "SELECT row_number() OVER () AS id, CASE WHEN petal_width < 0.8 THEN 'thin' WHEN petal_width < 1.7 THEN 'medium' ELSE 'wide' END AS petal, \
                 CASE WHEN sepal_length < 5.5 THEN 'short' ELSE 'long' END AS sepal, label FROM sample.iris";
    query(&ctx, &format!("CREATE TABLE words AS {words}")).await.unwrap();
    let coded = ["petal", "sepal", "label"].map(|name| format!("arrow_cast({name}, 'Dictionary(Int32, Utf8)') AS {name}"));
    let part = |rest: usize| format!("SELECT id, {} FROM words WHERE id % 3 = {rest}", coded.join(", "));
    query(&ctx, &format!("CREATE TABLE coded AS {} UNION ALL {} UNION ALL {}", part(0), part(1), part(2))).await.unwrap();
    query(&ctx, "CREATE TABLE policy AS SELECT * FROM datum_wise_policy(words, label => label, exclude => id, iterations => 3)")
        .await
        .unwrap();
    let decided = |table: &str| {
        format!(
            "SELECT avg(CASE WHEN correct THEN 1.0 ELSE 0.0 END) AS accuracy, CAST(count(*) AS DOUBLE) AS n FROM \
             datum_wise_classify((SELECT a.* FROM {table} AS a JOIN words AS b ON a.id = b.id WHERE a.id > 3), label => label, policy => policy)"
        )
    };
    let plain = query(&ctx, &decided("words")).await.unwrap();
    let dictionaries = query(&ctx, &decided("coded")).await.unwrap();
    assert_eq!(floats(&plain, "n"), floats(&dictionaries, "n"));
    assert_eq!(floats(&plain, "accuracy"), floats(&dictionaries, "accuracy"));
    assert!(floats(&plain, "accuracy")[0] > 0.9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_is_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("big.parquet").display().to_string();
    let ctx = session();
    query(&ctx, &format!("COPY sample.diabetes TO '{file}'")).await.unwrap();
    for reads in ["moments", "rows"] {
        let sql = format!(
            "SELECT feature FROM omp('{file}', 'label', 2, '{{\"exclude\": [\"bmi\"], \"must_include\": [\"age\"], \"reads\": \"{reads}\"}}')"
        );
        assert_eq!(texts(&query(&ctx, &sql).await.unwrap(), "feature"), ["age", "s5"]);
    }
}

/// What a reader says of a file comes in one line, with what can be done about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_is_told_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ragged.csv");
    std::fs::write(&file, "a,y\n1,2\n2,3,4\n3,5\n").unwrap();
    let message = error(&session(), &format!("SELECT * FROM omp('{}', label => y)", file.display())).await;
    assert!(message.contains("found 3 records at line 3; where values have line breaks in them, name the columns"), "{message}");
    assert!(!message.contains('\n') && !message.contains("\\n"), "{message}");
}

fn limited(bytes: usize) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes))).build_arc().unwrap();
    let ctx = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), runtime);
    Engine::default().register(&ctx).unwrap();
    ctx.register_table("wide", Arc::new(wide_table(500, 400))).unwrap();
    ctx
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_limit_is_an_error_and_not_a_crash() {
    for reads in ["moments", "rows"] {
        let sql = format!("SELECT feature FROM omp('wide', label => 'label', k => 2, reads => '{reads}')");
        let failure = query(&limited(1_000_000), &sql).await.unwrap_err();
        assert!(matches!(failure.find_root(), DataFusionError::ResourcesExhausted(_)), "{reads}: {failure}");
        assert_eq!(texts(&query(&limited(100_000_000), &sql).await.unwrap(), "feature"), ["c2", "c399"]);
    }
    let message = error(&limited(1_000_000), "SELECT feature FROM omp('wide', label => 'label', k => 2, reads => 'rows')").await;
    assert!(
        message.contains(
            "omp: the rows of 400 features do not fit into memory; exclude columns, set sample_rows, raise the limit, or set reads => 'moments'"
        ),
        "{message}"
    );
}

/// What waits to be learnt from is asked for too.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_pass_keeps_to_a_memory_limit() {
    let sql = "SELECT feature FROM sa('wide', label => 'label', k => 2, passes => 'one')";
    let failure = query(&limited(1_000_000), sql).await.unwrap_err();
    assert!(matches!(failure.find_root(), DataFusionError::ResourcesExhausted(_)), "{failure}");
    assert!(failure.to_string().contains("or lower shuffle_buffer"), "{failure}");
    assert_eq!(texts(&query(&limited(100_000_000), sql).await.unwrap(), "feature").len(), 2);
}

/// A partition that cannot be read ends a single pass, with what was wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_pass_says_what_could_not_be_read() {
    let ctx = session();
    let part =
        |bad: i64| format!("SELECT 1 / (value - {bad}) AS x, value % 7 AS y, value AS label FROM generate_series(1, 100000)");
    let sql = format!("SELECT * FROM sa(({} UNION ALL {}), label => label, k => 1, passes => 'one')", part(0), part(70_000));
    let message = error(&ctx, &sql).await;
    assert!(message.contains("Divide by zero"), "{message}");
}

static STARTED: Mutex<Option<mpsc::Sender<()>>> = Mutex::new(None);
static STOPPED: Mutex<Option<mpsc::Sender<()>>> = Mutex::new(None);

selector! {
    /// Never done.
    ///
    /// Waits to be cancelled, and says when it was.
    #[selector(name = "patience", aliases = [], labels = Any, score = "none")]
    pub struct Patience {}
}

impl Selector for Patience {
    fn reads(&self) -> pursuit_udfs::Reads {
        pursuit_udfs::Reads::Moments
    }

    fn select(&self, _: &Problem, run: &Run) -> Result<Ranking> {
        STARTED.lock().unwrap().take().unwrap().send(()).unwrap();
        loop {
            if let Err(cancelled) = run.step(0, 1) {
                STOPPED.lock().unwrap().take().unwrap().send(()).unwrap();
                return Err(cancelled);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Dropping a query stops its selection, on both paths, within a tenth of a second.
#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_query_stops_the_selection() {
    for reads in ["moments", "rows"] {
        let (start, started) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        *STARTED.lock().unwrap() = Some(start);
        *STOPPED.lock().unwrap() = Some(stop);
        let ctx = SessionContext::new();
        Engine::default().with::<Patience>().with_samples().register(&ctx).unwrap();
        let sql = format!("SELECT * FROM patience('sample.iris', label => 'label', k => 1, reads => '{reads}')");
        let running = SpawnedTask::spawn(async move { query(&ctx, &sql).await.map(|_| ()) });
        SpawnedTask::spawn_blocking(move || started.recv().unwrap()).await.unwrap();
        drop(running);
        let stopped = SpawnedTask::spawn_blocking(move || stopped.recv_timeout(Duration::from_millis(100))).await.unwrap();
        assert!(stopped.is_ok(), "{reads}: still running");
    }
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

selector! {
    /// Breaks down.
    ///
    /// Panics, as no selector should.
    #[selector(name = "breakdown", aliases = [], labels = Any, score = "none")]
    pub struct Breakdown {}
}

impl Selector for Breakdown {
    fn reads(&self) -> pursuit_udfs::Reads {
        pursuit_udfs::Reads::Moments
    }

    fn select(&self, _: &Problem, _: &Run) -> Result<Ranking> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        panic!("on purpose");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_selector_ends_the_query_and_not_the_process() {
    let ctx = SessionContext::new();
    Engine::default().with::<Breakdown>().with_samples().register(&ctx).unwrap();
    let message = error(&ctx, "SELECT * FROM breakdown('sample.iris', 'label', 1)").await;
    assert!(message.contains("breakdown: internal error: on purpose (tests/behaviour.rs:"), "{message}");
    assert!(message.ends_with("; please report it"), "{message}");
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
}

selector! {
    /// The first columns.
    ///
    /// Takes the place of ours.
    #[selector(name = "correlation", aliases = ["first"], labels = Any, score = "none")]
    pub struct First {}
}

impl Selector for First {
    fn reads(&self) -> pursuit_udfs::Reads {
        pursuit_udfs::Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        run.step(0, 1)?;
        Ok(Ranking {
            choices: (0..problem.k.unwrap_or(1)).map(|unit| Choice::new(unit + 1, unit, 0.0)).collect(),
            ..Ranking::default()
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_of_ones_own_may_take_the_place_of_ours() {
    let ctx = SessionContext::new();
    Engine::default().with::<First>().with_samples().register(&ctx).unwrap();
    assert_eq!(
        texts(&query(&ctx, "SELECT * FROM first('sample.diabetes', 'label', 2)").await.unwrap(), "feature"),
        ["age", "sex"]
    );
    let message = error(&ctx, "SELECT * FROM correlation('sample.diabetes', label => 'label', reads => 'moments')").await;
    assert!(
        message.contains("correlation: `reads` must be 'rows' or 'auto', because moments do not tell enough; got 'moments'"),
        "{message}"
    );
}

/// The rows path says what it did.
#[tokio::test(flavor = "multi_thread")]
async fn explain_analyze_counts_rows_and_time() {
    let ctx = session();
    let sql = "EXPLAIN ANALYZE SELECT * FROM omp((SELECT bmi, CASE WHEN age > 40 THEN bp END AS bp, CASE WHEN age > 30 THEN label END AS label FROM sample.diabetes), label => 'label', k => 2, reads => 'rows')";
    let plan = texts(&query(&ctx, sql).await.unwrap(), "plan").join("\n");
    for metric in [
        "rows_read=442",
        "rows_dropped=",
        "values_filled=",
        "values_out_of_range=",
        "read_time=",
        "select_time=",
        "peak_memory=",
        "steps=2",
    ] {
        assert!(plan.contains(metric), "{metric} is missing in\n{plan}");
    }
}
