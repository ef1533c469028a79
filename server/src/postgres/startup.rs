//! Logging in.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use datafusion_postgres::pgwire::api::auth::{
    DefaultServerParameterProvider, StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use datafusion_postgres::pgwire::api::{ClientInfo, METADATA_USER, PgWireConnectionState, PidSecretKeyGenerator};
use datafusion_postgres::pgwire::error::{PgWireError, PgWireResult};
use datafusion_postgres::pgwire::messages::startup::Authentication;
use datafusion_postgres::pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use futures::{Sink, SinkExt};
use tokio::sync::Mutex;

use super::connection::Connection;
use super::fatal;
use super::queries::Postgres;
use crate::errors::{Failure, SHUTTING_DOWN, TOO_MANY_CONNECTIONS};
use crate::scram::Exchange;

const MECHANISM: &str = "SCRAM-SHA-256";
const NOT_AUTHORIZED: &str = "28000";
const WRONG_PASSWORD: &str = "28P01";
/// Slows down whoever tries passwords.
const AFTER_FAILURE: Duration = Duration::from_millis(300);

pub(super) struct Startup {
    connection: Arc<Connection>,
    exchange: Mutex<Option<Exchange>>,
}

impl Startup {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, exchange: Mutex::default() }
    }

    /// The next message to the client; `None` when it is let in.
    async fn step(
        &self,
        client: &impl ClientInfo,
        message: &[u8],
        mechanism: Option<&str>,
    ) -> PgWireResult<(Authentication, bool)> {
        let user = client.metadata().get(METADATA_USER).cloned().unwrap_or_default();
        let server = &self.connection.shared.server;
        let Some(users) = &server.users else { return Err(fatal(NOT_AUTHORIZED, "no password was asked for")) };
        let mut exchange = self.exchange.lock().await;
        match (exchange.as_ref(), mechanism) {
            (None, Some(MECHANISM)) => {
                let (begun, challenge) = Exchange::begin(users.verifier(&user), message).map_err(|why| fatal("08P01", why))?;
                *exchange = Some(begun);
                Ok((Authentication::SASLContinue(challenge.into_bytes().into()), false))
            }
            (None, _) => Err(fatal(NOT_AUTHORIZED, format!("log in with {MECHANISM}"))),
            (Some(begun), _) => match begun.finish(message) {
                Ok(proof) => Ok((Authentication::SASLFinal(proof.into_bytes().into()), true)),
                Err(why) => {
                    server.metrics.logins_failed_total.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(user, address = %client.socket_addr(), why, "login refused");
                    tokio::time::sleep(AFTER_FAILURE).await;
                    Err(fatal(WRONG_PASSWORD, format!("password authentication failed for user \"{user}\"")))
                }
            },
        }
    }

    async fn let_in<C>(&self, client: &mut C) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let shared = &self.connection.shared;
        let user = client.metadata().get(METADATA_USER).cloned().unwrap_or_default();
        let session = shared.server.session(&user, "postgres").map_err(|error| fatal("XX000", Failure::from(&error).message))?;
        let (pid, key) = shared.keys.generate(client);
        shared.register(pid, &key, &session);
        client.set_pid_and_secret_key(pid, key);
        tracing::info!(session = session.id, user, address = %client.socket_addr(), tls = client.is_secure(), "login");
        if self.connection.postgres.set(Arc::new(Postgres::new(session))).is_err() {
            return Err(fatal("08P01", "a connection logs in once"));
        }
        let mut parameters = DefaultServerParameterProvider::default();
        parameters.is_superuser = false;
        parameters.default_transaction_read_only = !shared.server.is_writable;
        finish_authentication(client, &parameters).await
    }

    async fn on_message<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let shared = &self.connection.shared;
        match message {
            PgWireFrontendMessage::Startup(startup) => {
                protocol_negotiation(client, &startup).await?;
                save_startup_parameters_to_metadata(client, &startup);
                if shared.server.stopping.is_cancelled() {
                    return Err(fatal(SHUTTING_DOWN, "the server is shutting down"));
                }
                if self.connection.is_refused {
                    let most = shared.server.max_connections;
                    return Err(fatal(TOO_MANY_CONNECTIONS, format!("there are {most} connections already")));
                }
                if shared.needs_tls && !client.is_secure() {
                    return Err(fatal(NOT_AUTHORIZED, "this server takes TLS connections only; set sslmode=require"));
                }
                if client.metadata().get(METADATA_USER).is_none_or(String::is_empty) {
                    return Err(fatal(NOT_AUTHORIZED, "no user was named"));
                }
                if shared.server.users.is_none() {
                    return self.let_in(client).await;
                }
                client.set_state(PgWireConnectionState::AuthenticationInProgress);
                let mechanisms = Authentication::SASL(vec![MECHANISM.to_string()]);
                Ok(client.send(PgWireBackendMessage::Authentication(mechanisms)).await?)
            }
            PgWireFrontendMessage::PasswordMessageFamily(message) => {
                let is_first = self.exchange.lock().await.is_none();
                let (answer, is_in) = if is_first {
                    let message = message.into_sasl_initial_response()?;
                    self.step(client, message.data.as_deref().unwrap_or_default(), Some(&message.auth_method)).await?
                } else {
                    let message = message.into_sasl_response()?;
                    self.step(client, &message.data, None).await?
                };
                client.send(PgWireBackendMessage::Authentication(answer)).await?;
                if is_in { self.let_in(client).await } else { Ok(()) }
            }
            _ => Err(fatal("08P01", "log in first")),
        }
    }
}

#[async_trait]
impl StartupHandler for Startup {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let result = self.on_message(client, message).await;
        if result.is_err() {
            self.connection.doomed.cancel();
        }
        result
    }
}
