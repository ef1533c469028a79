//! The prompt: lines are read until a statement is complete, run, and kept in a history.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::PathBuf;

use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::dialect::Dialect;
use rustyline::completion::{Completer as Complete, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::commands::{self, Next};
use super::completion::Completer;
use super::highlight::coloured;
use super::interrupt::interrupts;
use super::running::Shell;
use super::statements::{Missing, missing, split};
use super::stores::stdin;

/// The lines of a statement after the first, and those inside of a quote.
const PROMPT: &str = "pursuit> ";
const MORE: &str = "    ...> ";
const QUOTE: &str = "    ..'> ";

/// Reads and runs until the end.
pub(super) async fn prompt(shell: &mut Shell) -> Result<()> {
    let unusable = |error: ReadlineError| DataFusionError::External(Box::new(error));
    let config = Config::builder().completion_type(CompletionType::List).completion_prompt_limit(200).auto_add_history(false);
    let mut editor: Editor<Typing, FileHistory> = Editor::with_config(config.build()).map_err(unusable)?;
    editor.set_helper(Some(Typing::new(shell)));
    let history = history();
    if let Some(history) = &history {
        // There is none before the first time.
        let _ = editor.load_history(history);
    }
    interrupts();
    stdin::has_sql();
    let is_terminal = std::io::stdin().is_terminal();
    let mut text = String::new();
    loop {
        let prompt = match (text.is_empty(), missing(&text, &*shell.dialect())) {
            (true, _) => PROMPT,
            (false, Missing::End) => QUOTE,
            (false, _) => MORE,
        };
        if let Some(helper) = editor.helper_mut() {
            helper.before = text.clone();
        }
        // Without a terminal rustyline shows no prompt, and a script's statements come one line after the other.
        match editor.readline(if is_terminal { prompt } else { "" }) {
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) if text.trim().is_empty() => break,
            Err(ReadlineError::Eof) => text.push(';'),
            Err(error) => return Err(unusable(error)),
        }
        let typed = text.trim();
        if typed.is_empty() {
            text.clear();
            continue;
        }
        let is_command = typed.starts_with('\\') || commands::spoken(typed).is_some();
        if !is_command && missing(&text, &*shell.dialect()) != Missing::Nothing {
            continue;
        }
        let _ = editor.add_history_entry(typed);
        if let Some(history) = &history {
            let _ = editor.append_history(history);
        }
        let typed = std::mem::take(&mut text);
        if is_command {
            let line = commands::spoken(&typed).map_or(typed.as_str(), |command| command);
            match commands::run(shell, line).await {
                Ok(Next::Quit) => break,
                Ok(Next::Prompt) => {}
                Err(error) => eprintln!("{error}"),
            }
            continue;
        }
        match split(&typed, &*shell.dialect()) {
            Ok(statements) => {
                for statement in statements {
                    if !shell.run_until_interrupted(&statement.sql).await {
                        break;
                    }
                }
            }
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}

/// A file in the user's own folder, wherever the shell was started.
fn history() -> Option<PathBuf> {
    let file = match std::env::var_os("PURSUIT_HISTORY") {
        Some(file) => PathBuf::from(file),
        None => dirs::data_dir()?.join("pursuit").join("history"),
    };
    std::fs::create_dir_all(file.parent()?).ok()?;
    Some(file)
}

/// What happens while someone types.
struct Typing {
    completer: Completer,
    /// Colours are those of this dialect; without it there are none.
    colours: Option<Box<dyn Dialect>>,
    /// The lines of the statement that stand already.
    before: String,
}

impl Typing {
    fn new(shell: &Shell) -> Self {
        let ctx = shell.session.ctx.clone();
        let color = shell.printing.color && std::env::var_os("NO_COLOR").is_none();
        let colours = color.then(|| shell.dialect());
        let specs = shell.session.engine.specs().to_vec();
        Self { completer: Completer { ctx, specs }, colours, before: String::new() }
    }
}

impl Complete for Typing {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (begin, offers) = self.completer.complete(&self.before, &line[..at]);
        Ok((begin, offers.into_iter().map(|offer| Pair { display: offer.shown, replacement: offer.word }).collect()))
    }
}

impl Highlighter for Typing {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match &self.colours {
            Some(dialect) if !line.starts_with('\\') => coloured(line, dialect.as_ref()),
            _ => Cow::Borrowed(line),
        }
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        self.colours.is_some() && !line.is_empty()
    }
}

impl Hinter for Typing {
    type Hint = String;
}

impl Validator for Typing {}

impl Helper for Typing {}
