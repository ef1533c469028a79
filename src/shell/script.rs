//! SQL in files and on the command line.

use std::io::IsTerminal;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};

use super::interrupt::interrupts;
use super::running::Shell;
use super::statements::split;
use super::stores::stdin;
use super::words::in_words;

/// Runs the SQL in a file. What fails in it ends the run, with a line that says where.
pub(super) async fn file(shell: &mut Shell, name: &str) -> Result<()> {
    let text = read(name).map_err(DataFusionError::Execution)?;
    let asks = std::io::stdout().is_terminal() && !shell.printing.quiet;
    let failed = |line: u64, error: String| DataFusionError::Execution(format!("{name}:{line}: {error}"));
    let statements = split(&text, &*shell.dialect()).map_err(|error| failed(1, error))?;
    let all = statements.len();
    for (at, statement) in statements.into_iter().enumerate() {
        if asks {
            statement.question.iter().for_each(|line| println!("-- {line}"));
        }
        let ran = shell.run(&statement.sql).await;
        ran.map_err(|error| failed(statement.line, format!("statement {} of {all}: {}", at + 1, in_words(&error))))?;
    }
    Ok(())
}

/// `\i`: the same from a prompt, which Ctrl-C brings back.
pub(super) async fn include(shell: &mut Shell, name: &str) -> Result<(), String> {
    let (progress, selections) = (Arc::clone(&shell.session.line), shell.session.engine.progress());
    progress.begin();
    let pressed = interrupts();
    tokio::select! {
        biased;
        _ = pressed.notified() => {
            selections.stop();
            progress.end();
            Err("stopped".to_string())
        }
        ran = file(shell, name) => ran.map_err(|error| in_words(&error)),
    }
}

fn read(name: &str) -> Result<String, String> {
    let is_stdin = name == "-" || stdin::is_stdin(name);
    if is_stdin {
        stdin::has_sql();
    }
    let text = if is_stdin { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(name) };
    text.map_err(|error| format!("cannot read {name}: {error}"))
}

/// Runs SQL that was given on the command line.
pub(super) async fn commands(shell: &mut Shell, commands: &[String]) -> Result<()> {
    for command in commands {
        for statement in split(command, &*shell.dialect()).map_err(DataFusionError::Execution)? {
            shell.run(&statement.sql).await?;
        }
    }
    Ok(())
}
