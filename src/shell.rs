//! The shell: datafusion-cli's prompt and printing, with the selectors and the sample tables in its session.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{GreedyMemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_cli::catalog::DynamicObjectStoreCatalog;
use datafusion_cli::exec;
use datafusion_cli::object_storage::instrumented::InstrumentedObjectStoreRegistry;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};
use pursuit_udfs::OptionType;
use pursuit_udfs::options::Bytes;

use crate::{Engine, Progress};

/// Feature selection in SQL. Without a command or a file it opens a prompt.
#[derive(Debug, Parser)]
#[command(name = "pursuit", version)]
pub struct Arguments {
    /// Run this SQL and exit; may be given several times
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,

    /// Run the SQL in this file and exit; may be given several times
    #[arg(short, long, value_name = "FILE")]
    file: Vec<String>,

    /// How results are printed
    #[arg(long, value_enum, default_value_t = PrintFormat::Automatic)]
    format: PrintFormat,

    /// Print results and nothing else
    #[arg(short, long)]
    quiet: bool,

    /// Most rows to print of a table, or 'inf'
    #[arg(long, default_value = "40")]
    maxrows: MaxRows,

    /// Most memory that queries may take, such as 512MB or 4GB
    #[arg(short, long, value_parser = parse_size)]
    memory_limit: Option<usize>,

    /// Partitions that a query is cut into; all cores if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    partitions: Option<u16>,
}

fn parse_size(text: &str) -> Result<usize, String> {
    Bytes::parse(&text.into()).map(|Bytes(bytes)| bytes).ok_or_else(|| "write a size such as 512MB or 4GB".to_string())
}

/// Runs the shell to its end.
pub async fn run(arguments: Arguments) -> Result<()> {
    let stores = Arc::new(InstrumentedObjectStoreRegistry::new());
    let (ctx, engine) = session(&arguments, Arc::clone(&stores)).await?;
    let is_terminal = std::io::stdout().is_terminal();
    let mut print = PrintOptions {
        format: arguments.format,
        quiet: arguments.quiet || !is_terminal,
        maxrows: arguments.maxrows,
        color: is_terminal,
        instrumented_registry: stores,
    };
    show_progress(engine.progress(), std::io::stderr().is_terminal(), arguments.quiet);
    if arguments.command.is_empty() && arguments.file.is_empty() {
        if !arguments.quiet {
            println!("Pursuit {}: feature selection in SQL. \\? lists commands, \\q quits. Try", env!("CARGO_PKG_VERSION"));
            let example = pursuit_udfs::selectors().first().map_or("", |spec| spec.name);
            println!("  SELECT * FROM {example}('sample.diabetes', 'label', 5);");
            println!("  SELECT selector, summary FROM selectors();");
        }
        return exec::exec_from_repl(&ctx, &mut print).await.map_err(|error| DataFusionError::External(Box::new(error)));
    }
    // A file is one command: what fails in it ends the run, with an exit code that a script can see.
    for file in &arguments.file {
        let sql =
            std::fs::read_to_string(file).map_err(|error| DataFusionError::Execution(format!("cannot read {file}: {error}")))?;
        exec::exec_from_commands(&ctx, vec![sql], &print).await?;
    }
    exec::exec_from_commands(&ctx, arguments.command, &print).await
}

async fn session(arguments: &Arguments, stores: Arc<InstrumentedObjectStoreRegistry>) -> Result<(SessionContext, Engine)> {
    let mut config = SessionConfig::from_env()?.with_information_schema(true);
    if let Some(partitions) = arguments.partitions {
        config = config.with_target_partitions(partitions.into());
    }
    let mut runtime = RuntimeEnvBuilder::new().with_object_store_registry(stores);
    if let Some(limit) = arguments.memory_limit {
        let consumers_named = std::num::NonZeroUsize::new(3).expect("three is not zero");
        runtime = runtime.with_memory_pool(Arc::new(TrackConsumersPool::new(GreedyMemoryPool::new(limit), consumers_named)));
    }
    // A file's path is a table's name, also as an argument of a selector.
    let ctx = SessionContext::new_with_config_rt(config, runtime.build_arc()?).enable_url_table();
    let engine = Engine::default().with_samples();
    engine.register(&ctx)?;
    ctx.refresh_catalogs().await?;
    let catalogs = DynamicObjectStoreCatalog::new(Arc::clone(ctx.state().catalog_list()), ctx.state_weak_ref());
    ctx.register_catalog_list(Arc::new(catalogs));
    Ok((ctx, engine))
}

/// How long a selection runs before it says so.
const QUIET_FOR: Duration = Duration::from_secs(2);

/// Keeps one line on the terminal up to date while a long selection runs, wipes it away before the answer, and says in one line what is to be known
/// of that.
fn show_progress(progress: Arc<Progress>, is_terminal: bool, is_quiet: bool) {
    let is_shown = Arc::new(AtomicBool::new(false));
    let shown = Arc::clone(&is_shown);
    let watched = Arc::downgrade(&progress);
    progress.on_idle(move || {
        if shown.swap(false, Ordering::Relaxed) {
            eprint!("\r\x1b[K");
        }
        let remarks = watched.upgrade().map(|progress| progress.take_remarks()).unwrap_or_default();
        if let Some(line) = remark(&remarks).filter(|_| !is_quiet) {
            eprintln!("{line}");
        }
    });
    if !is_terminal {
        return;
    }
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            if let Some((line, elapsed)) = progress.line().filter(|(_, elapsed)| *elapsed >= QUIET_FOR) {
                is_shown.store(true, Ordering::Relaxed);
                eprint!("\r\x1b[K{line} ({} s, Ctrl-C stops)", elapsed.as_secs());
                let _ = std::io::stderr().flush();
            }
        }
    });
}

/// Remarks as one line of a length to read.
fn remark(remarks: &[String]) -> Option<String> {
    let first = remarks.first()?;
    let more = match remarks.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more: see the column note)"),
    };
    let cut: String = first.chars().take(LINE).collect();
    let dots = if cut.len() < first.len() { "…" } else { "" };
    Some(format!("note: {cut}{dots}{more}"))
}

/// Letters of a line of remarks.
const LINE: usize = 300;
