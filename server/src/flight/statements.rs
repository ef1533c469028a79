//! Statements between their plan and their rows: a client asks for both in turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use arrow_flight::FlightData;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::ParamValues;
use datafusion::logical_expr::LogicalPlan;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::login::Login;
use super::status;
use crate::errors::{CANCELLED, Failure, LIMIT};
use crate::statement::Rows;

/// Statements that a session may have open.
const OPEN_MAX: usize = 1000;

/// A statement that is planned.
#[derive(Clone)]
pub(super) struct Stored {
    pub sql: String,
    pub plan: LogicalPlan,
    pub parameters: Option<ParamValues>,
    pub cancel: CancellationToken,
    /// Nobody closes it, so that it goes when its rows were fetched.
    pub is_once: bool,
}

/// Those of a session, by handle.
#[derive(Default)]
pub(super) struct Statements(Mutex<HashMap<String, Stored>>);

impl Statements {
    pub(super) fn add(&self, stored: Stored) -> Result<String, Status> {
        let handle: String = rand::random::<[u8; 16]>().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut statements = self.lock();
        if statements.len() >= OPEN_MAX {
            return Err(status(&Failure::new(LIMIT, format!("{OPEN_MAX} statements are open")).hint("close some")));
        }
        statements.insert(handle.clone(), stored);
        Ok(handle)
    }

    pub(super) fn get(&self, handle: &[u8]) -> Result<Stored, Status> {
        let handle = std::str::from_utf8(handle).unwrap_or_default();
        let mut statements = self.lock();
        let found = statements.get_mut(handle).ok_or_else(|| Status::not_found("there is no such statement (any more)"))?;
        // What was cancelled can be run again.
        if found.cancel.is_cancelled() {
            found.cancel = CancellationToken::new();
        }
        Ok(found.clone())
    }

    pub(super) fn bind(&self, handle: &[u8], parameters: ParamValues) -> Result<(), Status> {
        let handle = std::str::from_utf8(handle).unwrap_or_default();
        let mut statements = self.lock();
        let found = statements.get_mut(handle).ok_or_else(|| Status::not_found("there is no such statement"))?;
        found.parameters = Some(parameters);
        Ok(())
    }

    pub(super) fn cancel(&self, handle: &[u8]) -> bool {
        let found = self.lock().get(std::str::from_utf8(handle).unwrap_or_default()).map(|stored| stored.cancel.clone());
        found.inspect(CancellationToken::cancel).is_some()
    }

    pub(super) fn close(&self, handle: &[u8]) {
        self.lock().remove(std::str::from_utf8(handle).unwrap_or_default());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Stored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    /// The columns of the answer as they are announced and sent. Whether a NULL can be among the values is known better when the query is planned to
    /// its end, and a client that was told otherwise refuses the rows.
    pub(super) fn schema(&self) -> SchemaRef {
        match &self.plan {
            // A table that is made has the columns of its query, and its making has none.
            LogicalPlan::Ddl(_) => Arc::new(Schema::empty()),
            plan => plain(plan.schema().as_arrow()),
        }
    }

    /// Runs it, up to its first rows.
    async fn run(&self, login: &Login) -> Result<Rows, Status> {
        let plan = match &self.parameters {
            Some(parameters) => self.plan.clone().replace_params_with_values(parameters),
            None => Ok(self.plan.clone()),
        };
        let plan = plan.map_err(|error| status(&Failure::from(&error)))?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(status(&cancelled())),
            rows = login.session.run(&self.sql, plan, None) => rows.map_err(|failure| status(&failure)),
        }
    }

    /// Its rows, for a client.
    pub(super) async fn rows(
        &self,
        login: &Arc<Login>,
        handle: &[u8],
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        let rows = self.run(login).await?;
        let schema = plain(&rows.schema);
        let of_batches = Arc::clone(&schema);
        let closed = self.is_once.then(|| Closed { login: Arc::clone(login), handle: handle.to_vec() });
        let batches = until(self.cancel.clone(), rows).map(move |batch| {
            let _with_the_stream = &closed;
            let batch = batch?;
            // There are rows without columns.
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(Arc::clone(&of_batches), batch.columns().to_vec(), &options)
                .map_err(|error| Failure::new("XX000", error.to_string()))
        });
        let encoded = FlightDataEncoderBuilder::new()
            .with_schema(schema)
            .with_dictionary_handling(DictionaryHandling::Resend)
            .build(batches.map_err(|failure| FlightError::from(status(&failure))));
        Ok(encoded.map_err(Status::from).boxed())
    }

    /// Runs it for what it does, and returns the number of rows that it is about.
    pub(super) async fn update(&self, login: &Login) -> Result<i64, Status> {
        use datafusion::arrow::array::AsArray;
        use datafusion::arrow::datatypes::UInt64Type;
        let batches = self.run(login).await?.collect().await.map_err(|failure| status(&failure))?;
        let first = batches.first().filter(|batch| batch.num_columns() == 1 && batch.num_rows() == 1);
        let count = first.and_then(|batch| batch.column(0).as_primitive_opt::<UInt64Type>());
        Ok(count.map_or(-1, |count| count.value(0) as i64))
    }
}

/// Closes a statement when it is dropped.
struct Closed {
    login: Arc<Login>,
    handle: Vec<u8>,
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.login.statements.close(&self.handle);
    }
}

fn plain(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(
        schema.fields().iter().map(|field| Field::new(field.name(), field.data_type().clone(), true)).collect::<Vec<_>>(),
    ))
}

fn cancelled() -> Failure {
    Failure::new(CANCELLED, "canceling statement due to user request")
}

/// The rows, and an error instead of the rest when the statement is cancelled.
fn until(
    cancel: CancellationToken,
    mut rows: Rows,
) -> impl futures::Stream<Item = Result<RecordBatch, Failure>> + Send + 'static {
    let mut stopped = Box::pin(cancel.cancelled_owned());
    let mut is_over = false;
    stream::poll_fn(move |context| {
        if is_over {
            return Poll::Ready(None);
        }
        if stopped.as_mut().poll(context).is_ready() {
            is_over = true;
            return Poll::Ready(Some(Err(cancelled())));
        }
        rows.stream.poll_next_unpin(context)
    })
}
