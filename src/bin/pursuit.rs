use std::process::ExitCode;

use clap::Parser;
use pursuit::shell::{Arguments, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.strip_backtrace());
            ExitCode::FAILURE
        }
    }
}
