//! A session: tables by name, and queries that can be watched and stopped.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use datafusion::catalog::MemTable;
use datafusion::common::TableReference;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::DFParserBuilder;
use pursuit::{Engine, Progress, ReadsFiles};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::errors::{caught, exception, of_panic};
use crate::table::Table;

/// How long a query runs before somebody looks whether it is to be stopped.
const TICK: Duration = Duration::from_millis(25);

#[pyclass(frozen, module = "pursuit._engine")]
pub struct Session {
    context: SessionContext,
    progress: Arc<Progress>,
}

#[pymethods]
impl Session {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        py.detach(|| caught(|| Self::open().map_err(|error| exception(&error))))
    }

    /// Makes a table known under a name. Names in SQL have small letters unless they are quoted, so that it is found either way.
    fn register(&self, name: &str, table: &Table) -> PyResult<()> {
        caught(|| self.add(name, table).map_err(|error| exception(&error)))
    }

    /// Runs statements one after the other and answers with the last one's table. `watch` is called with what is going on, for how many
    /// seconds, and the step and how many there are, if that is known.
    #[pyo3(signature = (sql, watch=None))]
    fn query(&self, py: Python<'_>, sql: String, watch: Option<Bound<'_, PyAny>>) -> PyResult<Table> {
        let runtime = runtime()?;
        let task = runtime.spawn(run(self.context.clone(), sql));
        let _stopped = Stopped(task.abort_handle());
        let interrupted = |error: PyErr| {
            // A dropped query ends, too, but where it sums up a table only at the next hundredth batch.
            self.progress.stop();
            error
        };
        let (done, mut answer) = mpsc::sync_channel(1);
        runtime.spawn(async move { done.send(task.await) });
        loop {
            // Not by the runtime's clock: that stands still while all of its threads compute.
            let ended;
            (ended, answer) = py.detach(move || (answer.recv_timeout(TICK), answer));
            match ended {
                Ok(Ok(answer)) => return answer.map_err(|error| exception(&error)),
                Ok(Err(failed)) if failed.is_panic() => return Err(of_panic(&*failed.into_panic())),
                Err(RecvTimeoutError::Timeout) => py.check_signals().map_err(interrupted)?,
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the query was cancelled"));
                }
            }
            if let (Some(watch), Some((line, elapsed))) = (&watch, self.progress.line()) {
                watch.call1((line, elapsed.as_secs_f64(), self.progress.steps())).map_err(interrupted)?;
            }
        }
    }

    /// What is to be known of the answers since this was last asked: a line for each.
    fn remarks(&self) -> Vec<String> {
        self.progress.take_remarks()
    }
}

impl Session {
    fn open() -> Result<Self> {
        let config = SessionConfig::from_env()?.with_information_schema(true).with_extension(Arc::new(ReadsFiles));
        // What a path or a glob names is a table too.
        let context = SessionContext::new_with_config(config).enable_url_table();
        let engine = Engine::default().with_samples();
        engine.register(&context)?;
        #[cfg(debug_assertions)]
        context.register_udf(panic_for_test());
        Ok(Self { context, progress: engine.progress() })
    }

    fn add(&self, name: &str, table: &Table) -> Result<()> {
        let partitions = self.context.state().config().target_partitions();
        let provider = Arc::new(MemTable::try_new(Arc::clone(&table.schema), table.partitions(partitions))?);
        let small = name.to_lowercase();
        let names = if small == name { vec![small] } else { vec![name.to_string(), small] };
        for name in names.into_iter().map(TableReference::bare) {
            // It takes the place of one that was there.
            self.context.deregister_table(name.clone())?;
            self.context.register_table(name, Arc::clone(&provider) as _)?;
        }
        Ok(())
    }
}

/// A query that stops when nobody waits for it any more.
struct Stopped(AbortHandle);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run(context: SessionContext, sql: String) -> Result<Table> {
    let statements = DFParserBuilder::new(sql.as_str()).build()?.parse_statements()?;
    let mut answer = Table::empty();
    for statement in statements {
        let plan = context.state().statement_to_plan(statement).await?;
        let frame = context.execute_logical_plan(plan).await?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        answer = Table { schema, batches: frame.collect().await? };
    }
    Ok(answer)
}

/// The threads that queries run on. A process that was forked has none of them, and would wait for ever.
fn runtime() -> PyResult<&'static Runtime> {
    static OWNER: OnceLock<u32> = OnceLock::new();
    static RUNTIME: LazyLock<std::io::Result<Runtime>> =
        LazyLock::new(|| Builder::new_multi_thread().enable_all().thread_name("pursuit").build());
    if *OWNER.get_or_init(std::process::id) != std::process::id() {
        return Err(PyRuntimeError::new_err(
            "pursuit was used before this process was forked, and its threads stayed behind; start processes with the method 'spawn'",
        ));
    }
    RUNTIME.as_ref().map_err(|error| PyRuntimeError::new_err(format!("no threads can be started: {error}")))
}

/// A function that panics where queries run, for the test that a panic does not cross the border.
#[cfg(debug_assertions)]
fn panic_for_test() -> datafusion::logical_expr::ScalarUDF {
    use datafusion::logical_expr::{Volatility, create_udf};
    create_udf(
        "panic_for_test",
        vec![],
        arrow::datatypes::DataType::Int64,
        Volatility::Volatile,
        Arc::new(|_| panic!("on purpose")),
    )
}
