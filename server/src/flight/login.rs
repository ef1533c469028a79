//! Who asks: a token for a name and a password, and a session for each token.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::statements::Statements;
use crate::errors::Failure;
use crate::server::{Server, Session};

/// A session that was not used for so long is forgotten.
const IDLE: Duration = Duration::from_secs(3600);
const AFTER_FAILURE: Duration = Duration::from_millis(300);

/// A client that has logged in.
pub(super) struct Login {
    pub session: Arc<Session>,
    pub statements: Statements,
}

/// All of them, by token.
#[derive(Default)]
pub(super) struct Logins(Mutex<HashMap<String, (Arc<Login>, Instant)>>);

impl Logins {
    /// Checks a name and a password, and returns a token.
    pub(super) async fn log_in(&self, server: &Arc<Server>, headers: &MetadataMap) -> Result<String, Status> {
        let given =
            headers.get("authorization").and_then(|value| value.to_str().ok()).and_then(|value| value.strip_prefix("Basic "));
        let given = given.and_then(|encoded| STANDARD.decode(encoded).ok()).and_then(|bytes| String::from_utf8(bytes).ok());
        let (user, password) = given.as_deref().and_then(|text| text.split_once(':')).unwrap_or_default();
        if let Some(users) = &server.users
            && !users.check(user, password)
        {
            server.metrics.logins_failed_total.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(user, "login refused");
            tokio::time::sleep(AFTER_FAILURE).await;
            return Err(Status::unauthenticated("the name or the password is wrong"));
        }
        let token: String = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
        self.add(server, token.clone(), user)?;
        Ok(token)
    }

    /// Whose request this is.
    pub(super) fn of<T>(&self, server: &Arc<Server>, request: &Request<T>) -> Result<Arc<Login>, Status> {
        let token = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer ").or(value.strip_prefix("bearer ")));
        // Who is trusted is told apart by the connection.
        let token = match (token, request.remote_addr()) {
            (Some(token), _) => token.to_string(),
            (None, Some(address)) if server.users.is_none() => address.to_string(),
            _ => return Err(Status::unauthenticated("log in with a name and a password")),
        };
        if let Some((login, used)) = self.lock().get_mut(&token) {
            *used = Instant::now();
            return Ok(Arc::clone(login));
        }
        if server.users.is_some() {
            return Err(Status::unauthenticated("the session is over; log in again"));
        }
        self.add(server, token, "")
    }

    fn add(&self, server: &Arc<Server>, token: String, user: &str) -> Result<Arc<Login>, Status> {
        let session = server.session(user, "flight").map_err(|error| super::status(&Failure::from(&error)))?;
        tracing::info!(session = session.id, user, "login");
        let login = Arc::new(Login { session, statements: Statements::default() });
        let mut logins = self.lock();
        logins.retain(|_, (login, used)| used.elapsed() < IDLE || !login.session.is_idle());
        if logins.len() >= server.max_connections {
            return Err(Status::resource_exhausted(format!("there are {} sessions already", server.max_connections)));
        }
        logins.insert(token, (Arc::clone(&login), Instant::now()));
        Ok(login)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Arc<Login>, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
