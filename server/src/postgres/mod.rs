//! PostgreSQL's wire protocol. pgwire speaks it; what a connection may do, and how long, is ours.

mod connection;
pub mod discovery;
mod parse;
mod queries;
mod startup;

pub use connection::serve;

use datafusion_postgres::pgwire::error::{ErrorInfo, PgWireError};

use crate::errors::Failure;

/// An error for a client.
pub(crate) fn info(failure: &Failure, is_fatal: bool) -> ErrorInfo {
    let severity = if is_fatal { "FATAL" } else { "ERROR" };
    let mut info = ErrorInfo::new(severity.to_string(), failure.code.to_string(), failure.message.clone());
    info.hint = failure.hint.clone();
    info
}

pub(crate) fn error(failure: &Failure) -> PgWireError {
    PgWireError::UserError(Box::new(info(failure, false)))
}

pub(crate) fn fatal(code: &'static str, message: impl Into<String>) -> PgWireError {
    PgWireError::UserError(Box::new(info(&Failure::new(code, message), true)))
}
