//! One statement, from its plan to its rows, whatever protocol it came by: checked, admitted, timed, stopped, counted and logged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use crate::allowed;
use crate::errors::{CANCELLED, Failure, LIMIT, SHUTTING_DOWN};
use crate::limits::{Kind, Place};
use crate::metrics::Metrics;
use crate::server::Session;

/// The answer of a statement, whose first rows are there.
pub struct Rows {
    pub schema: SchemaRef,
    pub stream: BoxStream<'static, Result<RecordBatch, Failure>>,
}

impl Rows {
    pub async fn collect(mut self) -> Result<Vec<RecordBatch>, Failure> {
        let mut batches = Vec::new();
        while let Some(batch) = self.stream.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    }
}

impl Session {
    /// Plans a statement on a task of its own: planning may wait for a table of options, and a client can cancel that, too.
    pub async fn plan(
        self: &Arc<Self>,
        sql: &str,
        planning: impl Future<Output = Result<LogicalPlan, DataFusionError>> + Send + 'static,
    ) -> Result<LogicalPlan, Failure> {
        let running = Running::start(self, sql, None)?;
        let session = Arc::clone(self);
        let planned = running.until_stopped(async move {
            let plan = planning.await?;
            allowed::check(&plan, &session.server.tables, session.server.is_writable)?;
            Ok(plan)
        });
        let planned = planned.await;
        match &planned {
            Ok(_) => running.forget(),
            Err(failure) => running.finish(Some(failure)),
        }
        planned
    }

    /// Runs a plan that [`Self::plan`] has checked, until its first rows are there.
    pub async fn run(self: &Arc<Self>, sql: &str, plan: LogicalPlan, timeout: Option<Duration>) -> Result<Rows, Failure> {
        let mut running = Running::start(self, sql, timeout)?;
        let begun = running.until_stopped(begin(Arc::clone(self), plan)).await;
        let begun = match begun {
            Ok(begun) => begun,
            Err(failure) => {
                running.finish(Some(&failure));
                return Err(failure);
            }
        };
        running.set_kind(begun.kind);
        let schema = begun.stream.schema();
        let stream = futures::stream::unfold(Some((running, begun)), |going| async move {
            let (mut running, mut begun) = going?;
            let next = match begun.first.take() {
                Some(first) => Ok(Some(first)),
                None => {
                    let stopped = running.stopped();
                    tokio::select! {
                        biased;
                        failure = stopped => {
                            running.session.stop_reading();
                            Err(failure)
                        }
                        next = begun.stream.next() => next.transpose().map_err(|error| Failure::from(&error)),
                    }
                }
            };
            match next {
                Ok(Some(batch)) => {
                    running.rows += batch.num_rows();
                    Some((Ok(batch), Some((running, begun))))
                }
                Ok(None) => {
                    running.finish(None);
                    None
                }
                Err(failure) => {
                    running.finish(Some(&failure));
                    Some((Err(failure), None))
                }
            }
        });
        Ok(Rows { schema, stream: stream.boxed() })
    }
}

/// A statement that has its place and its first rows.
struct Begun {
    kind: Kind,
    first: Option<RecordBatch>,
    stream: SendableRecordBatchStream,
    _place: Place,
}

async fn begin(session: Arc<Session>, plan: LogicalPlan) -> Result<Begun, DataFusionError> {
    let server = &session.server;
    // A table that is made from a query is made when the statement is handed over, so that its place must be there before.
    if let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) = &plan {
        let made_from = session.ctx.state().create_physical_plan(&create.input).await?;
        let kind = Kind::of(made_from.as_ref());
        let taken = place(&session, kind).await?;
        let frame = session.ctx.execute_logical_plan(plan).await?;
        return Ok(Begun { kind, first: None, stream: frame.execute_stream().await?, _place: taken });
    }
    let is_dml = matches!(plan, LogicalPlan::Dml(_));
    let frame = session.ctx.execute_logical_plan(plan).await?;
    let context = Arc::new(frame.task_ctx());
    let physical = frame.create_physical_plan().await?;
    let kind = Kind::of(physical.as_ref());
    let taken = place(&session, kind).await?;
    let mut stream = execute_stream(physical, context)?;
    let first = stream.next().await.transpose()?;
    if is_dml {
        server.tables.measure();
    }
    Ok(Begun { kind, first, stream, _place: taken })
}

/// Waits for a place, where whoever watches can see it.
async fn place(session: &Session, kind: Kind) -> Result<Place, Failure> {
    let _waiting = Waiting::start(&session.server.metrics);
    session.server.limits.place(kind, &session.user).await
}

/// Counts who waits, also if they give up.
struct Waiting<'a>(&'a Metrics);

impl<'a> Waiting<'a> {
    fn start(metrics: &'a Metrics) -> Self {
        metrics.waiting.fetch_add(1, Ordering::Relaxed);
        Self(metrics)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A statement from its beginning to its end, for whoever watches the server.
struct Running {
    session: Arc<Session>,
    id: u64,
    sql: String,
    since: Instant,
    until: Option<Instant>,
    cancel: CancellationToken,
    kind: Kind,
    rows: usize,
    is_open: bool,
}

/// Letters of a statement that are logged.
const SQL_SHOWN: usize = 2000;

impl Running {
    fn start(session: &Arc<Session>, sql: &str, timeout: Option<Duration>) -> Result<Self, Failure> {
        let server = &session.server;
        if server.stopping.is_cancelled() {
            return Err(shutting_down());
        }
        let since = Instant::now();
        // A client can ask for less time than the operator allows, and not for more.
        let timeout = timeout.into_iter().chain(server.statement_timeout).min();
        let cancel = session.begin();
        server.metrics.begin(Kind::Query);
        let sql = sql.chars().take(SQL_SHOWN).collect();
        let until = timeout.map(|timeout| since + timeout);
        let session = Arc::clone(session);
        Ok(Self { id: session.server.next(), session, sql, since, until, cancel, kind: Kind::Query, rows: 0, is_open: true })
    }

    fn set_kind(&mut self, kind: Kind) {
        let metrics = &self.session.server.metrics;
        metrics.end(self.kind);
        metrics.begin(kind);
        self.kind = kind;
    }

    /// Does the work on a task of its own, and drops that when the statement is stopped.
    async fn until_stopped<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, DataFusionError>> + Send + 'static,
    ) -> Result<T, Failure> {
        // Dropped, it is aborted.
        let task = SpawnedTask::spawn(work);
        tokio::select! {
            biased;
            failure = self.stopped() => {
                self.session.stop_reading();
                Err(failure)
            }
            done = task.join() => match done {
                Ok(done) => done.map_err(|error| Failure::from(&error)),
                Err(error) => Err(Failure::new("XX000", format!("internal error: {error}; please report it"))),
            },
        }
    }

    /// Waits until somebody stops the statement.
    fn stopped(&self) -> impl Future<Output = Failure> + Send + use<> {
        let (cancel, gone) = (self.cancel.clone(), self.session.gone.clone());
        let stopped = self.session.server.stopped.clone();
        let (since, until) = (self.since, self.until);
        async move {
            let time_is_up = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => Failure::new(CANCELLED, "canceling statement due to user request"),
                () = gone.cancelled() => Failure::new(CANCELLED, "the client went away"),
                () = stopped.cancelled() => shutting_down(),
                () = time_is_up => {
                    let seconds = until.map_or(0.0, |until| (until - since).as_secs_f64());
                    Failure::new(CANCELLED, format!("canceling statement due to statement timeout ({seconds} s)"))
                }
            }
        }
    }

    /// A step of a statement that goes on.
    fn forget(mut self) {
        self.close();
    }

    fn finish(mut self, failure: Option<&Failure>) {
        self.log(failure.map_or("ok", outcome), failure);
        self.close();
    }

    fn log(&self, outcome: &'static str, failure: Option<&Failure>) {
        let took = self.since.elapsed();
        let server = &self.session.server;
        server.metrics.statement(self.kind, outcome, took);
        let (code, message) = failure.map_or(("00000", ""), |failure| (failure.code, failure.message.as_str()));
        tracing::info!(
            query = self.id,
            session = self.session.id,
            user = self.session.user,
            protocol = self.session.protocol,
            kind = self.kind.name(),
            milliseconds = took.as_millis() as u64,
            rows = self.rows,
            outcome,
            code,
            // A message can quote a value, as the text itself can.
            error = if server.logs_sql { message } else { "" },
            sql = if server.logs_sql { self.sql.as_str() } else { "" },
            "statement"
        );
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.session.server.metrics.end(self.kind);
            self.session.end();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_open {
            self.log("dropped", None);
            self.close();
        }
    }
}

fn outcome(failure: &Failure) -> &'static str {
    match failure.code {
        CANCELLED | SHUTTING_DOWN => "stopped",
        LIMIT => "refused",
        _ => "error",
    }
}

pub fn shutting_down() -> Failure {
    Failure::new(SHUTTING_DOWN, "the server is shutting down")
}
