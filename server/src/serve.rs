//! `pursuit serve`: what an operator says, checked before anything listens, and the end of it all.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pursuit_udfs::OptionType;
use pursuit_udfs::options::Bytes;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::server::{Server, Settings};
use crate::tls::Tls;
use crate::users::Users;
use crate::{flight, metrics, postgres};

/// Answers SQL over PostgreSQL's wire protocol and Flight SQL
#[derive(Debug, Args)]
pub struct Serve {
    /// Listen here for PostgreSQL's protocol; on 127.0.0.1:5432 if no address is given at all
    #[arg(long, value_name = "ADDRESS")]
    postgres: Option<SocketAddr>,

    /// Listen here for Flight SQL
    #[arg(long, value_name = "ADDRESS")]
    flight: Option<SocketAddr>,

    /// Answer /metrics and /healthz here
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// Users, a line name:password or name:SCRAM-verifier each; nobody else may be able to read the file
    #[arg(long, value_name = "FILE", required_unless_present = "trust")]
    users: Option<PathBuf>,

    /// Ask for no password; for addresses of this machine only
    #[arg(long, conflicts_with = "users")]
    trust: bool,

    /// Files and folders in this folder are tables; may be given several times
    #[arg(long, value_name = "FOLDER")]
    data: Vec<PathBuf>,

    /// Let clients make tables and views
    #[arg(long)]
    writable: bool,

    /// Certificate chain, as PEM; with it nobody connects without TLS
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// The certificate's key, as PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,

    /// Most memory of all queries and tables together
    #[arg(short, long, value_name = "SIZE", value_parser = size, default_value = "4GB")]
    memory_limit: usize,

    /// Most memory of one user's queries; all of it if not given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit_per_user: Option<usize>,

    /// Longest that a statement may take, in seconds; 0 is for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    statement_timeout: u64,

    /// Most clients at once
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    max_connections: usize,

    /// Most selections at once; those that read moments and those that read rows are counted apart
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = at_least_one)]
    max_selections: usize,

    /// Most selections at once of one user
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = at_least_one)]
    max_selections_per_user: usize,

    /// Longest that a selection waits for its turn, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,

    /// Partitions that a query is cut into; all cores if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    partitions: Option<u16>,

    /// Longest that running statements may go on when the server is told to end, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace: u64,

    /// Write the text of statements, and what errors say, into the log
    #[arg(long)]
    log_sql: bool,
}

pub(crate) fn size(text: &str) -> Result<usize, String> {
    Bytes::parse(&text.into()).map(|Bytes(bytes)| bytes).ok_or_else(|| "write a size such as 512MB or 4GB".to_string())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "write a number from 1".to_string())
}

/// Runs until it is told to end.
pub async fn run(mut arguments: Serve) -> Result<(), String> {
    crate::logs::start();
    if arguments.postgres.is_none() && arguments.flight.is_none() {
        arguments.postgres = Some(SocketAddr::from(([127, 0, 0, 1], 5432)));
    }
    // Of the two that are linked in. It is a mistake only if somebody chose before.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let tls = Tls::of(arguments.tls_cert.clone(), arguments.tls_key.clone())?;
    check(&arguments, tls.is_some())?;
    let acceptor = tls.as_ref().map(Tls::acceptor).transpose()?;
    let users = arguments.users.as_deref().map(Users::read).transpose()?;
    let server = Server::new(Settings {
        data: arguments.data.clone(),
        is_writable: arguments.writable,
        users,
        memory_limit: arguments.memory_limit,
        memory_limit_per_user: arguments.memory_limit_per_user,
        statement_timeout: (arguments.statement_timeout > 0).then(|| Duration::from_secs(arguments.statement_timeout)),
        max_connections: arguments.max_connections,
        max_selections: arguments.max_selections,
        max_selections_per_user: arguments.max_selections_per_user,
        wait: Duration::from_secs(arguments.wait),
        partitions: arguments.partitions.map(usize::from),
        logs_sql: arguments.log_sql,
    });
    let server = server.await.map_err(|error| error.strip_backtrace())?;
    let mut listening = Vec::new();
    if let Some(address) = arguments.postgres {
        let (listener, address) = listen(address).await?;
        tokio::spawn(postgres::serve(listener, acceptor, Arc::clone(&server)));
        listening.push(("postgres", address));
    }
    if let Some(address) = arguments.flight {
        let (listener, address) = listen(address).await?;
        let identity = tls.as_ref().map(Tls::identity).transpose()?;
        tokio::spawn(flight::serve(listener, identity, Arc::clone(&server)));
        listening.push(("flight", address));
    }
    if let Some(address) = arguments.metrics {
        let (listener, address) = listen(address).await?;
        tokio::spawn(metrics::serve(listener, Arc::clone(&server)));
        listening.push(("metrics", address));
    }
    // For whoever started it, and for tests that let the system choose a port.
    for (protocol, address) in &listening {
        println!("{protocol} {address}");
    }
    let (tables, tls) = (server.tables.count(), tls.is_some());
    tracing::info!(tables, tls, writable = server.is_writable, passwords = server.users.is_some(), "ready");
    told_to_end().await?;
    end(&server, Duration::from_secs(arguments.grace)).await;
    Ok(())
}

/// What would let strangers in is refused before anything listens.
fn check(arguments: &Serve, has_tls: bool) -> Result<(), String> {
    let is_far = |address: Option<SocketAddr>| address.filter(|address| !address.ip().is_loopback());
    if let Some(address) = is_far(arguments.postgres).or(is_far(arguments.flight)).filter(|_| arguments.trust) {
        return Err(format!("--trust lets everybody in who reaches {address}; give --users FILE, or listen on 127.0.0.1"));
    }
    if let Some(address) = is_far(arguments.flight).filter(|_| !has_tls) {
        return Err(format!("Flight SQL would send passwords to {address} in plain text; give --tls-cert and --tls-key"));
    }
    Ok(())
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let failed = |error: std::io::Error| format!("cannot listen on {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

async fn told_to_end() -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot wait for signals: {error}");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// For clients to read the last error.
const LAST_WORDS: Duration = Duration::from_secs(2);

async fn end(server: &Server, grace: Duration) {
    tracing::info!(grace = grace.as_secs(), "no new statements");
    server.stopping.cancel();
    if tokio::time::timeout(grace, server.connections.wait()).await.is_err() {
        tracing::info!(connections = server.connections.count(), "the time is up: stopping what runs");
        server.stopped.cancel();
        let _ = tokio::time::timeout(LAST_WORDS, server.connections.wait()).await;
    }
    tracing::info!("end");
}
