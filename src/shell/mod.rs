//! The `pursuit` program: a prompt, scripts, and the commands that are given by name.
//!
//! Another program can have all of it: [`Arguments`] is a `clap::Parser` that it can put beside its own, and [`main_with`] runs the shell on a session
//! that a [`Hook`] has added to.

mod plot;
mod progress_line;
mod session;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use datafusion::error::{DataFusionError, Result};
use datafusion_cli::exec;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};

use crate::ui;
pub use session::{Hook, Session, SessionArguments};

/// Feature selection in SQL. Without a command or a file it opens a prompt.
#[derive(Debug, Parser)]
#[command(name = "pursuit", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command_by_name: Option<Command>,

    /// Run this SQL and exit; may be given several times
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,

    /// Run the SQL in this file and exit; may be given several times
    #[arg(short, long, value_name = "FILE")]
    file: Vec<String>,

    /// How results are printed
    #[arg(long, value_enum, default_value_t = PrintFormat::Automatic)]
    format: PrintFormat,

    /// Most rows to print of a table, or 'inf'
    #[arg(long, default_value = "40")]
    maxrows: MaxRows,

    #[command(flatten)]
    session: SessionArguments,
}

/// What the program does when its first argument is a name.
#[derive(Debug, Subcommand)]
enum Command {
    /// Draw the answer to a query
    Plot(plot::Arguments),
    /// Explore a table in the browser: what predicts a column, and what would change the answer
    Ui(ui::Arguments),
}

/// The whole program: reads its arguments, of which the first is its own name, and says what went wrong.
pub async fn main_with(arguments: impl IntoIterator<Item = OsString>, hooks: Vec<Hook>) -> ExitCode {
    let arguments = Arguments::try_parse_from(arguments).unwrap_or_else(|error| error.exit());
    match run(arguments, hooks).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.strip_backtrace());
            ExitCode::FAILURE
        }
    }
}

/// Runs the shell to its end, on a session that the hooks have added to.
pub async fn run(arguments: Arguments, hooks: Vec<Hook>) -> Result<()> {
    match arguments.command_by_name {
        Some(Command::Plot(plot)) => plot::run(plot, &hooks).await,
        Some(Command::Ui(page)) => ui::run(page, &hooks).await,
        None => prompt_or_scripts(arguments, &hooks).await,
    }
}

async fn prompt_or_scripts(arguments: Arguments, hooks: &[Hook]) -> Result<()> {
    let session = Session::new(&arguments.session, hooks).await?;
    let is_quiet = arguments.session.quiet;
    let is_terminal = std::io::stdout().is_terminal();
    let mut print = PrintOptions {
        format: arguments.format,
        quiet: is_quiet || !is_terminal,
        maxrows: arguments.maxrows,
        color: is_terminal,
        instrumented_registry: Arc::clone(&session.stores),
    };
    let ctx = &session.ctx;
    if arguments.command.is_empty() && arguments.file.is_empty() {
        if !is_quiet {
            println!("Pursuit {}: feature selection in SQL. \\? lists commands, \\q quits. Try", env!("CARGO_PKG_VERSION"));
            let example = pursuit_udfs::selectors().first().map_or("", |spec| spec.name);
            println!("  SELECT * FROM {example}('sample.diabetes', 'label', 5);");
            println!("  SELECT selector, summary FROM selectors();");
        }
        return exec::exec_from_repl(ctx, &mut print).await.map_err(|error| DataFusionError::External(Box::new(error)));
    }
    // A file is one command: what fails in it ends the run, with an exit code that a script can see.
    for file in &arguments.file {
        let sql =
            std::fs::read_to_string(file).map_err(|error| DataFusionError::Execution(format!("cannot read {file}: {error}")))?;
        exec::exec_from_commands(ctx, vec![sql], &print).await?;
    }
    exec::exec_from_commands(ctx, arguments.command, &print).await
}
