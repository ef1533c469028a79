//! The `pursuit` that serves. All that it does not know is the shell's.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pursuit_server::cluster::{self, Executor, Scheduler};
use pursuit_server::serve::{self, Serve};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Feature selection in SQL, for a team. All other arguments are the shell's: see `pursuit --help`; with --cluster df://HOST:PORT its queries run on a cluster
#[derive(Debug, Parser)]
#[command(name = "pursuit", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<Serve>),
    Scheduler(Scheduler),
    Executor(Executor),
}

const OURS: [&str; 3] = ["serve", "scheduler", "executor"];

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if !arguments.get(1).is_some_and(|first| OURS.iter().any(|ours| first == ours)) {
        return shell(&mut arguments).await;
    }
    let result = match Arguments::parse().command {
        Command::Serve(serve) => serve::run(*serve).await,
        Command::Scheduler(scheduler) => scheduler.run().await,
        Command::Executor(executor) => executor.run().await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The shell, on this machine or as the client of a cluster.
async fn shell(arguments: &mut Vec<OsString>) -> ExitCode {
    let mut hooks = Vec::new();
    if let Some(at) = arguments.iter().position(|argument| argument == "--cluster") {
        let url = arguments.drain(at..(at + 2).min(arguments.len())).nth(1).unwrap_or_default();
        match cluster::hook(&url.to_string_lossy()) {
            Ok(hook) => hooks.push(hook),
            Err(error) => {
                eprintln!("{}", error.strip_backtrace());
                return ExitCode::FAILURE;
            }
        }
    }
    pursuit::shell::main_with(std::mem::take(arguments), hooks).await
}
