//! The calls of Flight SQL.

use std::pin::Pin;
use std::sync::Arc;

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTableTypes,
    CommandGetTables, CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, IpcMessage, SchemaAsIpc, Ticket,
};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::common::{ParamValues, ScalarValue};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use prost::Message;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::login::{Login, Logins};
use super::metadata::{SQL_INFO, catalogs, schemas, table_types, tables};
use super::statements::Stored;
use super::status;
use crate::errors::{BAD_ARGUMENT, Failure};
use crate::server::Server;

pub(super) struct Flight {
    server: Arc<Server>,
    logins: Logins,
}

type Rows = Response<<Flight as FlightService>::DoGetStream>;

impl Flight {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, logins: Logins::default() }
    }

    fn login<T>(&self, request: &Request<T>) -> Result<Arc<Login>, Status> {
        self.logins.of(&self.server, request)
    }

    async fn planned(&self, login: &Login, sql: &str, is_once: bool) -> Result<Stored, Status> {
        let (state, text) = (login.session.ctx.state(), sql.to_string());
        let plan = login.session.plan(sql, async move { state.create_logical_plan(&text).await }).await;
        let plan = plan.map_err(|failure| status(&failure))?;
        Ok(Stored { sql: sql.to_string(), plan, parameters: None, cancel: CancellationToken::new(), is_once })
    }
}

/// Where the rows of a command are to be had: here, by this ticket.
fn info(schema: &Schema, ticket: Vec<u8>, descriptor: FlightDescriptor) -> Result<Response<FlightInfo>, Status> {
    let endpoint = FlightEndpoint::new().with_ticket(Ticket { ticket: ticket.into() });
    let info = FlightInfo::new().try_with_schema(schema).map_err(|error| Status::internal(error.to_string()))?;
    Ok(Response::new(info.with_endpoint(endpoint).with_descriptor(descriptor)))
}

fn one(batch: RecordBatch) -> Rows {
    let encoded = FlightDataEncoderBuilder::new().with_schema(batch.schema()).build(stream::iter([Ok(batch)]));
    Response::new(encoded.map_err(Status::from).boxed())
}

fn ipc(schema: &Schema) -> Result<prost::bytes::Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    Ok(message.map_err(|error| Status::internal(error.to_string()))?.0)
}

#[tonic::async_trait]
impl FlightSqlService for Flight {
    type FlightService = Flight;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>>, Status> {
        let token = self.logins.log_in(&self.server, request.metadata()).await?;
        let answer = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let answers: BoxStream<'static, _> = stream::iter([Ok(answer)]).boxed();
        let mut response = Response::new(answers as Pin<Box<dyn Stream<Item = _> + Send>>);
        let bearer = format!("Bearer {token}").parse().map_err(|_| Status::internal("the token is no header"))?;
        response.metadata_mut().insert("authorization", bearer);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let login = self.login(&request)?;
        let stored = self.planned(&login, &query.query, true).await?;
        let schema = stored.schema();
        let handle = login.statements.add(stored)?;
        let ticket = TicketStatementQuery { statement_handle: handle.into() };
        info(&schema, ticket.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, request: Request<Ticket>) -> Result<Rows, Status> {
        let login = self.login(&request)?;
        let stored = login.statements.get(&ticket.statement_handle)?;
        Ok(Response::new(stored.rows(&login, &ticket.statement_handle).await?))
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let login = self.login(&request)?;
        let stored = self.planned(&login, &query.query, false).await?;
        let failed = |error| status(&Failure::from(&error));
        let mut parameters: Vec<(String, Option<DataType>)> =
            stored.plan.get_parameter_types().map_err(failed)?.into_iter().collect();
        parameters.sort_by_key(|(name, _)| name.trim_start_matches('$').parse::<usize>().unwrap_or(usize::MAX));
        let parameters = parameters.into_iter().map(|(name, kind)| Field::new(name, kind.unwrap_or(DataType::Null), true));
        let (dataset, parameters) = (ipc(&stored.schema())?, ipc(&Schema::new(parameters.collect::<Vec<_>>()))?);
        let handle = login.statements.add(stored)?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle.into(),
            dataset_schema: dataset,
            parameter_schema: parameters,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        self.login(&request)?.statements.close(&query.prepared_statement_handle);
        Ok(())
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let stored = self.login(&request)?.statements.get(&query.prepared_statement_handle)?;
        info(&stored.schema(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        let login = self.login(&request)?;
        let stored = login.statements.get(&query.prepared_statement_handle)?;
        Ok(Response::new(stored.rows(&login, &query.prepared_statement_handle).await?))
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let login = self.login(&request)?;
        let parameters = parameters(request.into_inner()).await?;
        login.statements.bind(&query.prepared_statement_handle, parameters)?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(query.prepared_statement_handle) })
    }

    async fn do_put_prepared_statement_update(
        &self,
        query: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let login = self.login(&request)?;
        login.statements.get(&query.prepared_statement_handle)?.update(&login).await
    }

    async fn do_put_statement_update(
        &self,
        query: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let login = self.login(&request)?;
        self.planned(&login, &query.query, true).await?.update(&login).await
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let info = FlightInfo::decode(query.info).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let is_found = self.cancel(&*self.login(&request)?, &info);
        // 1 is cancelled, 3 is not cancellable.
        Ok(ActionCancelQueryResult { result: if is_found { 1 } else { 3 } })
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let login = self.login(&request)?;
        let action = request.into_inner();
        if action.r#type != "CancelFlightInfo" {
            return Err(Status::unimplemented(format!("there is no action {}", action.r#type)));
        }
        let cancel = CancelFlightInfoRequest::decode(action.body).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let is_found = cancel.info.is_some_and(|info| self.cancel(&login, &info));
        let result = CancelFlightInfoResult {
            status: if is_found { CancelStatus::Cancelled } else { CancelStatus::NotCancellable } as i32,
        };
        let answer = arrow_flight::Result { body: result.encode_to_vec().into() };
        Ok(Response::new(stream::iter([Ok(answer)]).boxed()))
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.login(&request)?;
        info(&query.into_builder().schema(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, request: Request<Ticket>) -> Result<Rows, Status> {
        catalogs(&self.login(&request)?.session.ctx, query).map(one)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.login(&request)?;
        info(&query.clone().into_builder().schema(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, request: Request<Ticket>) -> Result<Rows, Status> {
        schemas(&self.login(&request)?.session.ctx, query).map(one)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.login(&request)?;
        info(&query.clone().into_builder().schema(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_tables(&self, query: CommandGetTables, request: Request<Ticket>) -> Result<Rows, Status> {
        tables(&self.login(&request)?.session.ctx, query).await.map(one)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.login(&request)?;
        info(&query.into_builder().schema(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_table_types(&self, query: CommandGetTableTypes, request: Request<Ticket>) -> Result<Rows, Status> {
        self.login(&request)?;
        table_types(query).map(one)
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.login(&request)?;
        let data = SQL_INFO.as_ref().map_err(Status::internal)?;
        info(&query.clone().into_builder(data).schema(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, request: Request<Ticket>) -> Result<Rows, Status> {
        self.login(&request)?;
        let data = SQL_INFO.as_ref().map_err(Status::internal)?;
        query.into_builder(data).build().map(one).map_err(|error| Status::internal(error.to_string()))
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}

impl Flight {
    /// Cancels the statement whose rows the tickets are for.
    fn cancel(&self, login: &Login, info: &FlightInfo) -> bool {
        let handles = info.endpoint.iter().filter_map(|endpoint| {
            let ticket = arrow_flight::sql::Any::decode(&*endpoint.ticket.as_ref()?.ticket).ok()?;
            let query = ticket.unpack::<TicketStatementQuery>().ok().flatten().map(|ticket| ticket.statement_handle);
            let prepared = || Some(ticket.unpack::<CommandPreparedStatementQuery>().ok()??.prepared_statement_handle);
            query.or_else(prepared)
        });
        // All of them, not only the first that is found.
        handles.filter(|handle| login.statements.cancel(handle)).count() > 0
    }
}

/// The one row of parameters that a client has bound.
async fn parameters(stream: PeekableFlightDataStream) -> Result<ParamValues, Status> {
    let data = stream.map_err(|error| arrow_flight::error::FlightError::Tonic(Box::new(error)));
    let batches: Vec<RecordBatch> =
        arrow_flight::decode::FlightRecordBatchStream::new_from_flight_data(data).try_collect().await?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if rows != 1 {
        return Err(status(&Failure::new(BAD_ARGUMENT, format!("parameters must be one row, got {rows}"))));
    }
    let row = batches.iter().filter(|batch| batch.num_rows() == 1).flat_map(|batch| batch.columns());
    let values: Result<Vec<ScalarValue>, _> = row.map(|column| ScalarValue::try_from_array(column, 0)).collect();
    Ok(ParamValues::from(values.map_err(|error| status(&Failure::from(&error)))?))
}
