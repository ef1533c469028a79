//! Log lines: one JSON object each, on standard error.

use tracing_subscriber::EnvFilter;

/// Begins to log. `RUST_LOG` says what, as everywhere.
pub fn start() {
    // The libraries warn of what is answered with an error anyway.
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("pursuit_server=info,warn,datafusion_postgres=error,pgwire=error"));
    let lines = tracing_subscriber::fmt().json().flatten_event(true).with_target(false).with_writer(std::io::stderr);
    // A test that starts two servers logs into the first one's.
    let _ = lines.with_env_filter(filter).try_init();
}
