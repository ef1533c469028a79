//! Selections that read the rows themselves: in the background, with progress, until somebody cancels them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use pursuit_udfs::{Settings, Value};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::ask::rows_of;
use super::line;
use crate::{Engine, Progress};

/// All that were begun, the last of them last.
#[derive(Default)]
pub(super) struct Runs {
    runs: Mutex<Vec<Run>>,
}

struct Run {
    id: usize,
    sql: String,
    begun: Instant,
    progress: Arc<Progress>,
    task: AbortHandle,
    end: Arc<Mutex<Option<End>>>,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How a run ended, and after how many seconds.
struct End {
    seconds: f64,
    rows: Result<Vec<Settings>, String>,
}

/// Runs that are remembered.
const REMEMBERED: usize = 20;

const CANCELLED: &str = "cancelled";

impl Runs {
    /// Begins a query. It has a session of its own with the same tables, so that its progress is told from others'.
    pub(super) fn start(&self, ctx: &SessionContext, engine: &Engine, sql: String, runtime: &Handle) -> Result<usize> {
        let ctx = SessionContext::new_with_state(ctx.state());
        let engine = engine.watched();
        engine.register(&ctx)?;
        let (begun, end) = (Instant::now(), Arc::new(Mutex::new(None)));
        let (query, told) = (sql.clone(), Arc::clone(&end));
        let task = runtime.spawn(async move {
            let rows = rows(&ctx, &query).await.map_err(line);
            lock(&told).get_or_insert(End { seconds: begun.elapsed().as_secs_f64(), rows });
        });
        let mut runs = lock(&self.runs);
        let id = runs.last().map_or(1, |run| run.id + 1);
        runs.push(Run { id, sql, begun, progress: engine.progress(), task: task.abort_handle(), end });
        let spare = runs.len().saturating_sub(REMEMBERED);
        runs.drain(..spare);
        Ok(id)
    }

    /// Ends a run: dropping a query stops its selection.
    pub(super) fn cancel(&self, id: usize) {
        if let Some(run) = lock(&self.runs).iter().find(|run| run.id == id) {
            run.task.abort();
            lock(&run.end).get_or_insert(End { seconds: run.begun.elapsed().as_secs_f64(), rows: Err(CANCELLED.to_string()) });
        }
    }

    /// How a run goes, or went.
    pub(super) fn state(&self, id: usize) -> Value {
        let runs = lock(&self.runs);
        let Some(run) = runs.iter().find(|run| run.id == id) else { return Value::Null };
        let end = lock(&run.end);
        let seconds = end.as_ref().map_or_else(|| run.begun.elapsed().as_secs_f64(), |end| end.seconds);
        let (rows, error) = match end.as_ref().map(|end| &end.rows) {
            Some(Ok(rows)) => (Some(rows), None),
            Some(Err(error)) => (None, Some(error.as_str())),
            None => (None, None),
        };
        let (line, share) = match end.is_none() {
            true => (run.progress.line().map(|(line, _)| line), run.progress.share().map(|(share, _)| share)),
            false => (None, None),
        };
        json!({
            "id": id,
            "sql": run.sql,
            "seconds": seconds,
            "line": line,
            "share": share,
            "is_over": end.is_some(),
            "is_cancelled": error == Some(CANCELLED),
            "error": error.filter(|error| *error != CANCELLED),
            "rows": rows,
        })
    }
}

async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<Settings>> {
    let batches = ctx.sql(sql).await?.collect().await?;
    Ok(batches.iter().flat_map(rows_of).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
