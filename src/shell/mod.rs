//! The `pursuit` program: a prompt, scripts, and the commands that are given by name.
//!
//! Another program can have all of it: [`Arguments`] is a `clap::Parser` that it can put beside its own, and [`main_with`] runs the shell on a session
//! that a [`Hook`] has added to.

mod cells;
mod commands;
mod completion;
mod format;
mod functions;
mod highlight;
mod interrupt;
mod manual;
mod plans;
mod plot;
mod printing;
mod progress_line;
mod repl;
mod running;
mod script;
mod session;
mod statements;
mod stores;
mod syntax;
mod thrift;
mod words;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use datafusion::common::config_err;
use datafusion::error::Result;

use format::{Format, MaxRows};
use printing::Printing;
use running::Shell;
use words::in_words;

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
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Most rows to print of a table, or 'inf'; 60 on a terminal, all elsewhere
    #[arg(long)]
    maxrows: Option<MaxRows>,

    #[command(flatten)]
    session: SessionArguments,
}

/// Rows of a table that a terminal shows: as many as the list of selectors has, and some more.
const ROWS: usize = 60;

/// What the program does when its first argument is a name.
#[derive(Debug, Subcommand)]
enum Command {
    /// Draw the answer to a query
    Plot(plot::Arguments),
    /// Explore a table in the browser: what predicts a column, and what would change the answer
    Ui(ui::Arguments),

    /// Answer SQL over PostgreSQL's wire protocol and Flight SQL (the program of server/)
    #[command(disable_help_flag = true)]
    Serve(Elsewhere),

    /// Run a cluster's scheduler (the program of server/)
    #[command(disable_help_flag = true)]
    Scheduler(Elsewhere),

    /// Run a cluster's executor (the program of server/)
    #[command(disable_help_flag = true)]
    Executor(Elsewhere),
}

/// Arguments of a command that another program has.
#[derive(Debug, Args)]
struct Elsewhere {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// Wire protocols and a cluster take as long to build as all the rest, so that they are a program of their own, which has the shell in it, too.
fn elsewhere<T>(command: &str) -> Result<T> {
    config_err!(
        "{command} is not in this program; build the one that has it: cargo run --release --manifest-path server/Cargo.toml -- {command}"
    )
}

/// The whole program: reads its arguments, of which the first is its own name, and says what went wrong.
pub async fn main_with(arguments: impl IntoIterator<Item = OsString>, hooks: Vec<Hook>) -> ExitCode {
    let arguments = Arguments::try_parse_from(arguments).unwrap_or_else(|error| error.exit());
    match run(arguments, hooks).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", in_words(&error));
            ExitCode::FAILURE
        }
    }
}

/// Runs the shell to its end, on a session that the hooks have added to.
pub async fn run(arguments: Arguments, hooks: Vec<Hook>) -> Result<()> {
    match arguments.command_by_name {
        Some(Command::Plot(plot)) => plot::run(plot, &hooks).await,
        Some(Command::Ui(page)) => ui::run(page, &hooks).await,
        Some(Command::Serve(_)) => elsewhere("serve"),
        Some(Command::Scheduler(_)) => elsewhere("scheduler"),
        Some(Command::Executor(_)) => elsewhere("executor"),
        None => prompt_or_scripts(arguments, &hooks).await,
    }
}

async fn prompt_or_scripts(arguments: Arguments, hooks: &[Hook]) -> Result<()> {
    let session = Session::new(&arguments.session, hooks).await?;
    let is_quiet = arguments.session.quiet;
    let is_terminal = std::io::stdout().is_terminal();
    // Who looks on can ask for the rest; who reads a file later cannot.
    let maxrows = arguments.maxrows.map_or(is_terminal.then_some(ROWS), |MaxRows(most)| most);
    let printing = Printing::new(arguments.format, maxrows, is_quiet || !is_terminal, is_terminal);
    let mut shell = Shell::new(session, printing);
    if arguments.command.is_empty() && arguments.file.is_empty() {
        if !is_quiet {
            println!(
                "Pursuit {}: feature selection in SQL. help lists commands, \\h functions, \\q quits. Try",
                env!("CARGO_PKG_VERSION")
            );
            let example = shell.session.engine.specs().first().map_or("", |spec| spec.name);
            println!("  SELECT * FROM {example}('sample.diabetes', 'label', 5);");
            println!("  \\plot");
        }
        return repl::prompt(&mut shell).await;
    }
    for file in &arguments.file {
        script::file(&mut shell, file).await?;
    }
    script::commands(&mut shell, &arguments.command).await
}
