//! Flight SQL, for ADBC and JDBC clients that want Arrow.

mod login;
mod metadata;
mod service;
mod statements;

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server as Grpc, ServerTlsConfig};
use tonic::{Code, Status};

use crate::errors::{self, Failure};
use crate::server::Server;

/// Most bytes of one message, which carries a batch of parameters at most.
const MESSAGE_MAX: usize = 64 << 20;

/// Answers until the server stops, and then what is on its way.
pub async fn serve(listener: TcpListener, identity: Option<Identity>, server: Arc<Server>) {
    let stopping = server.stopping.clone();
    let service = FlightServiceServer::new(service::Flight::new(Arc::clone(&server))).max_decoding_message_size(MESSAGE_MAX);
    let mut grpc = Grpc::builder();
    if let Some(identity) = identity {
        grpc = match grpc.tls_config(ServerTlsConfig::new().identity(identity)) {
            Ok(grpc) => grpc,
            Err(problem) => {
                tracing::error!(%problem, "Flight SQL cannot use the certificate");
                return server.stopping.cancel();
            }
        };
    }
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = grpc.add_service(service).serve_with_incoming_shutdown(incoming, stopping.cancelled_owned());
    // gRPC has many statements on one connection, and ends when the last is answered.
    let _open = server.connections.open();
    if let Err(problem) = serving.await {
        tracing::error!(%problem, "Flight SQL ended");
    }
}

/// An error for a client, with its SQLSTATE beside it.
fn status(failure: &Failure) -> Status {
    let code = match failure.code {
        errors::CANCELLED => Code::Cancelled,
        errors::SHUTTING_DOWN => Code::Unavailable,
        errors::NO_MEMORY | errors::LIMIT => Code::ResourceExhausted,
        errors::NOT_ALLOWED | errors::READ_ONLY => Code::PermissionDenied,
        errors::NO_TABLE | errors::NO_FUNCTION => Code::NotFound,
        errors::NOT_SUPPORTED => Code::Unimplemented,
        code if code.starts_with("42") || code.starts_with("22") => Code::InvalidArgument,
        _ => Code::Internal,
    };
    let mut status = Status::new(code, failure.to_string());
    if let Ok(code) = failure.code.parse() {
        status.metadata_mut().insert("sqlstate", code);
    }
    status
}
