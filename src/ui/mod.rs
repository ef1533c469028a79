//! `pursuit ui`: a page in the browser on which a selection moves under the hand.
//!
//! The table is read once (`reading`), and every question is answered from its moments by the selector that SQL would call (`ask`). What needs the
//! rows runs as a query in the background (`runs`). The server listens on the loopback address alone and answers only who knows its token (`server`).

mod ask;
mod features;
mod http;
mod page;
mod reading;
mod runs;
mod server;
mod snapshot;
mod source;
mod sql;

use std::process::{Command, Stdio};

use datafusion::error::{DataFusionError, Result};

use crate::shell::{Hook, Session, SessionArguments};
pub use page::Page;
pub use server::Server;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A table such as sample.wine, a file, or a query
    #[arg(value_name = "TABLE")]
    input: String,

    /// The column to predict; if not given, one called label, target, class or y, or the last
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,

    /// The port to listen on; if not given, any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Only print the address
    #[arg(long)]
    no_open: bool,

    #[command(flatten)]
    session: SessionArguments,
}

/// Serves the page until the program ends.
pub(crate) async fn run(arguments: Arguments, hooks: &[Hook]) -> Result<()> {
    let session = Session::new(&arguments.session, hooks).await?;
    let page = Page::open(&session.ctx, &session.engine, &arguments.input, arguments.label.as_deref()).await?;
    let server = Server::start(page, arguments.port).map_err(|error| {
        DataFusionError::Execution(format!(
            "ui: cannot listen on port {}: {error}; leave --port out for any that is free",
            arguments.port
        ))
    })?;
    println!("{}", server.address());
    if !arguments.no_open && !open(server.address()) {
        eprintln!("no browser was found: open the address yourself");
    }
    if !arguments.session.quiet {
        eprintln!("Ctrl-C stops");
    }
    tokio::signal::ctrl_c().await.map_err(|error| DataFusionError::External(Box::new(error)))
}

/// A mistake as the page says it: one line, without the kind of error that the engine gives it.
fn line(error: DataFusionError) -> String {
    let text = error.strip_backtrace();
    ["Error during planning: ", "Execution error: ", "Resources exhausted: "]
        .iter()
        .find_map(|kind| text.strip_prefix(kind))
        .unwrap_or(&text)
        .to_string()
}

/// Asks the system to show an address.
fn open(address: &str) -> bool {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(target_os = "windows") {
        "explorer"
    } else {
        "xdg-open"
    };
    Command::new(program).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}
