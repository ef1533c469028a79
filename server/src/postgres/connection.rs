//! Connections: accepted, watched while a statement runs, and closed when the server ends.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion_postgres::pgwire::api::auth::StartupHandler;
use datafusion_postgres::pgwire::api::cancel::CancelHandler;
use datafusion_postgres::pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use datafusion_postgres::pgwire::api::{ClientInfo, ErrorHandler, PgWireServerHandlers, RandomPidSecretKeyGenerator};
use datafusion_postgres::pgwire::error::PgWireError;
use datafusion_postgres::pgwire::messages::cancel::CancelRequest;
use datafusion_postgres::pgwire::messages::startup::SecretKey;
use datafusion_postgres::pgwire::tokio::process_socket;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::error;
use super::queries::{Postgres, Queries};
use super::startup::Startup;
use crate::errors::{Failure, SYNTAX};
use crate::server::{Server, Session};

/// How often it is looked whether a client whose statement runs is still there.
const WATCH: Duration = Duration::from_millis(50);
/// For answers that are on their way when the server ends.
const LINGER: Duration = Duration::from_millis(100);

/// A process id and a key, which only the client knows.
type Secret = (i32, Vec<u8>);

/// What the connections of this protocol share.
pub(super) struct Shared {
    pub server: Arc<Server>,
    pub needs_tls: bool,
    pub keys: RandomPidSecretKeyGenerator,
    /// Who can be cancelled.
    sessions: Mutex<HashMap<Secret, Weak<Session>>>,
}

impl Shared {
    pub(super) fn register(&self, pid: i32, key: &SecretKey, session: &Arc<Session>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.strong_count() > 0);
        sessions.insert((pid, key.to_bytes().to_vec()), Arc::downgrade(session));
    }
}

/// One connection.
pub(super) struct Connection {
    pub shared: Arc<Shared>,
    /// There once the client has proved who it is. pgwire goes on reading after a failed login, so that whoever answers statements looks here.
    pub postgres: OnceLock<Arc<Postgres>>,
    /// It is one too many.
    pub is_refused: bool,
    /// The login failed; the client has a moment to read why.
    pub doomed: CancellationToken,
}

/// Accepts connections until the server stops.
pub async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, server: Arc<Server>) {
    let shared = Arc::new(Shared {
        needs_tls: tls.is_some(),
        keys: RandomPidSecretKeyGenerator::default(),
        sessions: Mutex::default(),
        server: Arc::clone(&server),
    });
    loop {
        let accepted = tokio::select! {
            () = server.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, tls.clone(), Arc::clone(&shared)));
            }
            // Out of file handles, for one: a moment later there may be some.
            Err(problem) => {
                tracing::warn!(%problem, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let server = Arc::clone(&shared.server);
    let _open = server.connections.open();
    let metrics = &server.metrics;
    let open = metrics.connections.fetch_add(1, Ordering::Relaxed) + 1;
    metrics.connections_total.fetch_add(1, Ordering::Relaxed);
    let is_refused = open as usize > server.max_connections;
    let connection = Arc::new(Connection { shared, postgres: OnceLock::new(), is_refused, doomed: CancellationToken::new() });
    // A client that vanished without a word is noticed in a minute or two.
    let keepalive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));
    let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    match second_handle(&stream) {
        Ok(watched) => {
            let handlers = Arc::new(Handlers { connection: Arc::clone(&connection) });
            tokio::select! {
                _ = process_socket(stream, tls, handlers) => {}
                () = watch(watched, &connection) => {}
                () = doomed(&connection) => {}
                () = ended(&connection) => {}
            }
        }
        Err(problem) => tracing::warn!(%problem, "cannot watch a connection"),
    }
    if let Some(postgres) = connection.postgres.get() {
        postgres.session.gone.cancel();
    }
    metrics.connections.fetch_sub(1, Ordering::Relaxed);
}

/// The same socket once more: pgwire does not read while it answers.
fn second_handle(stream: &TcpStream) -> std::io::Result<TcpStream> {
    let socket = socket2::SockRef::from(stream).try_clone()?;
    TcpStream::from_std(socket.into())
}

/// Returns when a client went away while its statement ran.
async fn watch(stream: TcpStream, connection: &Connection) {
    loop {
        tokio::time::sleep(WATCH).await;
        let Some(postgres) = connection.postgres.get().filter(|postgres| !postgres.session.is_idle()) else { continue };
        let ready = tokio::time::timeout(Duration::ZERO, stream.ready(Interest::READABLE)).await;
        if let Ok(Ok(ready)) = ready
            && ready.is_read_closed()
        {
            postgres.session.gone.cancel();
            return;
        }
    }
}

async fn doomed(connection: &Connection) {
    connection.doomed.cancelled().await;
    tokio::time::sleep(LINGER).await;
}

/// Returns when the server ends and the client has its answer.
async fn ended(connection: &Connection) {
    connection.shared.server.stopping.cancelled().await;
    let is_idle = || connection.postgres.get().is_none_or(|postgres| postgres.session.is_idle());
    loop {
        tokio::time::sleep(LINGER).await;
        if is_idle() {
            return;
        }
    }
}

struct Handlers {
    connection: Arc<Connection>,
}

impl PgWireServerHandlers for Handlers {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::new(Queries::new(&self.connection))
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::new(Queries::new(&self.connection))
    }

    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        Arc::new(Startup::new(Arc::clone(&self.connection)))
    }

    fn error_handler(&self) -> Arc<impl ErrorHandler> {
        Arc::new(Errors)
    }

    fn cancel_handler(&self) -> Arc<impl CancelHandler> {
        Arc::new(Cancel(Arc::clone(&self.connection.shared)))
    }
}

struct Cancel(Arc<Shared>);

#[async_trait]
impl CancelHandler for Cancel {
    async fn on_cancel_request(&self, request: CancelRequest) {
        let key = (request.pid, request.secret_key.to_bytes().to_vec());
        let session = self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&key).and_then(Weak::upgrade);
        if let Some(session) = session {
            session.cancel();
        }
    }
}

/// Gives errors of the libraries their codes.
struct Errors;

impl ErrorHandler for Errors {
    fn on_error<C: ClientInfo>(&self, _: &C, problem: &mut PgWireError) {
        let PgWireError::ApiError(inner) = problem else { return };
        let failure = if let Some(error) = inner.downcast_ref::<DataFusionError>() {
            Failure::from(error)
        } else if let Some(error) = inner.downcast_ref::<Failure>() {
            error.clone()
        } else if let Some(error) = inner.downcast_ref::<ParserError>() {
            Failure::new(SYNTAX, error.to_string())
        } else {
            return;
        };
        *problem = error(&failure);
    }
}
