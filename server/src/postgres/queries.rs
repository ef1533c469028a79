//! Statements of a connection: read, planned, run, and answered as rows or as a word.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::common::{DFSchema, ParamValues};
use datafusion::logical_expr::{DdlStatement, EmptyRelation, LogicalPlan, Statement as PlanStatement};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Declare, Statement};
use datafusion_postgres::arrow_pg::datatypes::{arrow_schema_to_pg_fields, df, encode_recordbatch};
use datafusion_postgres::datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use datafusion_postgres::hooks::cursor::CursorStatementHook;
use datafusion_postgres::hooks::set_show::SetShowHook;
use datafusion_postgres::hooks::transactions::TransactionStatementHook;
use datafusion_postgres::hooks::{HookClient, QueryHook};
use datafusion_postgres::pgwire::api::portal::{Format, Portal};
use datafusion_postgres::pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use datafusion_postgres::pgwire::api::results::{FieldInfo, QueryResponse, Response, Tag};
use datafusion_postgres::pgwire::api::stmt::{QueryParser, StoredStatement};
use datafusion_postgres::pgwire::api::store::PortalStore;
use datafusion_postgres::pgwire::api::{ClientInfo, ClientPortalStore, Type};
use datafusion_postgres::pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use datafusion_postgres::pgwire::messages::PgWireBackendMessage;
use datafusion_postgres::{DfSessionService, Parser};
use futures::stream::{self, BoxStream};
use futures::{Sink, StreamExt};

use super::connection::Connection;
use super::parse::{ast, parse};
use super::{error, fatal, info};
use crate::allowed::no_copy;
use crate::errors::{Failure, SYNTAX};
use crate::server::Session;
use crate::statement::Rows;

static SQL: LazyLock<PostgresCompatibilityParser> = LazyLock::new(PostgresCompatibilityParser::new);

/// What pgwire keeps of a prepared statement.
type Prepared = (String, Option<(Statement, LogicalPlan)>);

/// The session of a client that has logged in.
pub(super) struct Postgres {
    pub session: Arc<Session>,
    /// Knows the types of parameters.
    types: Arc<Parser>,
}

impl Postgres {
    pub(super) fn new(session: Arc<Session>) -> Self {
        let types = DfSessionService::new(Arc::new(session.ctx.clone())).query_parser();
        Self { session, types }
    }
}

/// Answers the statements of a connection.
pub(super) struct Queries {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    connection: Arc<Connection>,
}

impl Queries {
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        Self { inner: Arc::new(Inner { connection: Arc::clone(connection) }) }
    }
}

impl Inner {
    /// pgwire would answer statements after a login that failed.
    fn postgres(&self) -> PgWireResult<&Arc<Postgres>> {
        self.connection.postgres.get().ok_or_else(|| {
            self.connection.doomed.cancel();
            fatal("28000", "log in first")
        })
    }

    async fn plan(&self, sql: &str, parsed: Parsed) -> PgWireResult<LogicalPlan> {
        let session = &self.postgres()?.session;
        if let Parsed::CopyTo(_) = parsed {
            return Err(error(&no_copy()));
        }
        let state = session.ctx.state();
        let planned = session.plan(sql, async move { state.statement_to_plan(parsed).await }).await;
        planned.map_err(|failure| error(&failure))
    }

    /// What is about the protocol and not about data: transactions, settings of the connection, cursors.
    async fn of_protocol(&self, client: &mut dyn HookClient, statement: &Statement) -> PgWireResult<Option<Response>> {
        let ctx = &self.postgres()?.session.ctx;
        if let Some(answer) = TransactionStatementHook.handle_simple_query(statement, ctx, client).await {
            return answer.map(Some);
        }
        match statement {
            Statement::Declare { stmts } => self.declare(client, stmts).await.map(Some),
            Statement::Fetch { .. } | Statement::Close { .. } => {
                CursorStatementHook.handle_simple_query(statement, ctx, client).await.transpose()
            }
            Statement::Discard { .. } => Ok(Some(Response::Execution(Tag::new("DISCARD ALL")))),
            other if is_of_connection(other) => SetShowHook.handle_simple_query(other, ctx, client).await.transpose(),
            _ => Ok(None),
        }
    }

    /// A plan that stands for a statement which has none.
    async fn stand_in(
        &self,
        client: &(dyn ClientInfo + Send + Sync),
        statement: &Statement,
    ) -> PgWireResult<Option<LogicalPlan>> {
        let ctx = &self.postgres()?.session.ctx;
        if is_of_connection(statement) {
            return SetShowHook.handle_extended_parse_query(statement, ctx, client).await.transpose();
        }
        let is_of_protocol = matches!(
            statement,
            Statement::StartTransaction { .. }
                | Statement::Commit { .. }
                | Statement::Rollback { .. }
                | Statement::Declare { .. }
                | Statement::Fetch { .. }
                | Statement::Close { .. }
                | Statement::Discard { .. }
        );
        Ok(is_of_protocol.then(nothing))
    }

    /// A cursor has all its rows when it is declared: one that nobody fetches from must not keep a selection's place.
    async fn declare(&self, client: &mut dyn HookClient, declared: &[Declare]) -> PgWireResult<Response> {
        let session = &self.postgres()?.session;
        for declare in declared {
            let (Some(name), Some(query)) = (declare.names.first(), &declare.for_query) else {
                return Err(error(&Failure::new(SYNTAX, "write DECLARE name CURSOR FOR SELECT …")));
            };
            let sql = query.to_string();
            let query = Statement::Query(query.clone());
            let plan = self.plan(&sql, Parsed::Statement(Box::new(query.clone()))).await?;
            let rows = session.run(&sql, plan.clone(), timeout(client)).await.map_err(|failure| error(&failure))?;
            let schema = Arc::clone(&rows.schema);
            let batches = rows.collect().await.map_err(|failure| error(&failure))?;
            let rows = Rows { schema, stream: stream::iter(batches.into_iter().map(Ok)).boxed() };
            // With its plan: clients ask for the columns of a cursor before they fetch from it.
            let statement = Arc::new(StoredStatement::new(name.value.clone(), (sql, Some((query, plan))), vec![]));
            let portal = Portal::new_cursor(name.value.clone(), statement);
            portal.start(response(rows, &Format::UnifiedText)?).await;
            client.portal_store().put_portal(Arc::new(portal));
        }
        Ok(Response::Execution(Tag::new("DECLARE CURSOR")))
    }

    /// Runs a plan; `is_kept` has all rows read at once.
    async fn run(
        &self,
        client: &mut dyn HookClient,
        sql: &str,
        plan: LogicalPlan,
        format: &Format,
        is_kept: bool,
    ) -> PgWireResult<Response> {
        let session = &self.postgres()?.session;
        let command = command(&plan);
        let ran = session.run(sql, plan, timeout(client)).await;
        for remark in session.progress.take_remarks() {
            let notice = ErrorInfo::new("NOTICE".to_string(), "00000".to_string(), remark);
            client.send_message(PgWireBackendMessage::NoticeResponse(notice.into())).await?;
        }
        let mut rows = ran.map_err(|failure| error(&failure))?;
        if let Some(command) = command {
            let batches = rows.collect().await.map_err(|failure| error(&failure))?;
            return Ok(Response::Execution(command.tag(&batches)));
        }
        if is_kept {
            let schema = Arc::clone(&rows.schema);
            let batches = rows.collect().await.map_err(|failure| error(&failure))?;
            rows = Rows { schema, stream: stream::iter(batches.into_iter().map(Ok)).boxed() };
        }
        response(rows, format).map(Response::Query)
    }

    async fn answer(&self, client: &mut dyn HookClient, parsed: Parsed, is_last: bool) -> PgWireResult<Response> {
        if let Some(statement) = ast(&parsed)
            && let Some(answer) = self.of_protocol(client, statement).await?
        {
            return Ok(answer);
        }
        let sql = parsed.to_string();
        let plan = self.plan(&sql, parsed).await?;
        self.run(client, &sql, plan, &Format::UnifiedText, !is_last).await
    }
}

#[async_trait]
impl SimpleQueryHandler for Queries {
    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        self.inner.postgres()?;
        let statements = parse(&SQL, query).map_err(|failure| error(&failure))?;
        let mut answers = Vec::new();
        let last = statements.len().saturating_sub(1);
        for (at, statement) in statements.into_iter().enumerate() {
            match self.inner.answer(client, statement, at == last).await {
                Ok(answer) => answers.push(answer),
                Err(problem) if answers.is_empty() => return Err(problem),
                // What came before it is answered all the same.
                Err(problem) => {
                    answers.push(Response::Error(Box::new(problem.into())));
                    break;
                }
            }
        }
        if answers.is_empty() {
            answers.push(Response::EmptyQuery);
        }
        Ok(answers)
    }
}

#[async_trait]
impl ExtendedQueryHandler for Queries {
    type Statement = Prepared;
    type QueryParser = Inner;

    fn query_parser(&self) -> Arc<Inner> {
        Arc::clone(&self.inner)
    }

    async fn do_query<C>(&self, client: &mut C, portal: &Portal<Prepared>, _: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let postgres = self.inner.postgres()?;
        let (sql, Some((statement, plan))) = &portal.statement.statement else { return Ok(Response::EmptyQuery) };
        if let Some(answer) = self.inner.of_protocol(client, statement).await? {
            return Ok(answer);
        }
        let parameters = parameters(portal, plan, &postgres.types.get_parameter_types(&portal.statement.statement)?)?;
        let plan = plan.clone().replace_params_with_values(&parameters);
        let plan = plan.map_err(|problem| error(&Failure::from(&problem)))?;
        self.inner.run(client, sql, plan, &portal.result_column_format, false).await
    }
}

#[async_trait]
impl QueryParser for Inner {
    type Statement = Prepared;

    async fn parse_sql<C>(&self, client: &C, sql: &str, _: &[Option<Type>]) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        self.postgres()?;
        let mut statements = parse(&SQL, sql).map_err(|failure| error(&failure))?;
        if statements.len() > 1 {
            return Err(error(&Failure::new(SYNTAX, "cannot insert multiple commands into a prepared statement")));
        }
        let Some(parsed) = statements.pop() else { return Ok(None) };
        if let Some(statement) = ast(&parsed)
            && let Some(plan) = self.stand_in(client, statement).await?
        {
            return Ok(Some((parsed.to_string(), Some((statement.clone(), plan)))));
        }
        let text = parsed.to_string();
        // Statements of DataFusion's own stand as one that nobody answers, with their plan.
        let statement = ast(&parsed).cloned().unwrap_or_else(nobody);
        let plan = self.plan(&text, parsed).await?;
        Ok(Some((text, Some((statement, plan)))))
    }

    fn get_parameter_types(&self, statement: &Prepared) -> PgWireResult<Vec<Type>> {
        self.postgres()?.types.get_parameter_types(statement)
    }

    fn get_result_schema(&self, statement: &Prepared, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        match statement {
            (_, Some((_, plan))) if command(plan).is_some() => Ok(vec![]),
            _ => self.postgres()?.types.get_result_schema(statement, format),
        }
    }
}

/// Settings of the connection, such as the form of dates. Those of DataFusion and ours are looked at before they are set, like any plan.
fn is_of_connection(statement: &Statement) -> bool {
    let text = || statement.to_string().to_lowercase();
    let is_ours = |text: String| text.contains("datafusion") || text.contains("pursuit");
    match statement {
        Statement::Set(_) | Statement::ShowVariable { .. } => !is_ours(text()),
        Statement::ShowStatus { .. } | Statement::ShowCatalogs { .. } => true,
        _ => false,
    }
}

/// A word of another database's.
fn nobody() -> Statement {
    Statement::UnlockTables
}

fn nothing() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) })
}

/// What the client asked for with `SET statement_timeout`.
fn timeout(client: &dyn HookClient) -> Option<Duration> {
    let milliseconds = client.metadata().get("statement_timeout_ms")?.parse().ok()?;
    Some(Duration::from_millis(milliseconds))
}

/// A statement that is answered with a word.
struct Command {
    word: &'static str,
    counts: bool,
}

impl Command {
    fn tag(&self, batches: &[RecordBatch]) -> Tag {
        let tag = Tag::new(self.word);
        if !self.counts {
            return tag;
        }
        let count = batches.first().and_then(|batch| batch.column(0).as_primitive_opt::<UInt64Type>());
        let rows = count.filter(|count| !count.is_empty()).map_or(0, |count| count.value(0) as usize);
        if self.word == "INSERT" { tag.with_oid(0).with_rows(rows) } else { tag.with_rows(rows) }
    }
}

fn command(plan: &LogicalPlan) -> Option<Command> {
    let (word, counts) = match plan {
        LogicalPlan::Ddl(DdlStatement::CreateView(_)) => ("CREATE VIEW", false),
        LogicalPlan::Ddl(DdlStatement::DropTable(_)) => ("DROP TABLE", false),
        LogicalPlan::Ddl(DdlStatement::DropView(_)) => ("DROP VIEW", false),
        LogicalPlan::Ddl(_) => ("CREATE TABLE", false),
        LogicalPlan::Dml(dml) => match dml.op {
            datafusion::logical_expr::WriteOp::Delete => ("DELETE", true),
            datafusion::logical_expr::WriteOp::Update => ("UPDATE", true),
            _ => ("INSERT", true),
        },
        LogicalPlan::Statement(PlanStatement::SetVariable(_)) => ("SET", false),
        LogicalPlan::Statement(PlanStatement::ResetVariable(_)) => ("RESET", false),
        LogicalPlan::Statement(PlanStatement::Prepare(_)) => ("PREPARE", false),
        LogicalPlan::Statement(PlanStatement::Deallocate(_)) => ("DEALLOCATE", false),
        _ => return None,
    };
    Some(Command { word, counts })
}

/// Parameters as values. A column of small whole numbers can be compared with a large one, and with a fraction: the client says what it sends, and
/// DataFusion compares them.
fn parameters(portal: &Portal<Prepared>, plan: &LogicalPlan, server: &[Type]) -> PgWireResult<ParamValues> {
    let types = plan.get_parameter_types().map_err(|problem| error(&Failure::from(&problem)))?;
    let mut types: Vec<(usize, Option<DataType>)> = types
        .into_iter()
        .map(|(name, inferred)| (name.trim_start_matches('$').parse().unwrap_or(usize::MAX), inferred))
        .collect();
    types.sort_by_key(|(at, _)| *at);
    let given = |at: usize| portal.statement.parameter_types.get(at).cloned().flatten();
    let inferred: Vec<Option<DataType>> = types
        .into_iter()
        .enumerate()
        .map(|(at, (_, inferred))| match given(at) {
            Some(Type::FLOAT4 | Type::FLOAT8) if inferred.as_ref().is_some_and(DataType::is_integer) => Some(DataType::Float64),
            Some(Type::INT2 | Type::INT4 | Type::INT8) if inferred.as_ref().is_some_and(DataType::is_integer) => {
                Some(DataType::Int64)
            }
            _ => inferred,
        })
        .collect();
    let inferred: Vec<Option<&DataType>> = inferred.iter().map(Option::as_ref).collect();
    let server: Vec<Option<&Type>> = server.iter().map(Some).collect();
    df::deserialize_parameters_with_server_types(portal, &inferred, &server)
}

/// Rows as PostgreSQL's.
fn response(rows: Rows, format: &Format) -> PgWireResult<QueryResponse> {
    let fields = Arc::new(arrow_schema_to_pg_fields(&rows.schema, format, None)?);
    let of_batches = Arc::clone(&fields);
    type Encoded = BoxStream<'static, PgWireResult<datafusion_postgres::pgwire::messages::data::DataRow>>;
    let encoded = rows.stream.flat_map(move |batch| -> Encoded {
        match batch {
            Ok(batch) => stream::iter(encode_recordbatch(Arc::clone(&of_batches), batch)).boxed(),
            Err(failure) => stream::iter([Err(PgWireError::UserError(Box::new(info(&failure, false))))]).boxed(),
        }
    });
    Ok(QueryResponse::new(fields, encoded))
}
