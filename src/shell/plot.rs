//! `\plot` and `pursuit plot`: an answer as a picture.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion::error::{DataFusionError, Result};

use super::printing::terminal_width;
use super::running::Shell;
use super::session::{Hook, Session, SessionArguments};
use crate::plot::{Kind, Picture, Wish, picture, save, text};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The query whose answer is drawn
    #[arg(short, long, value_name = "SQL")]
    command: String,

    /// The file to write; its ending says how: svg, png, html or vl.json. Without it the picture is drawn here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// bars, curve, path, points or grid, where an answer can be drawn in more than one way
    #[arg(short, long)]
    kind: Option<Kind>,

    /// Features are the pixels of an image: 28x28
    #[arg(long, value_name = "ROWSxCOLUMNS", value_parser = pixels)]
    image: Option<(usize, usize)>,

    /// What stands above the picture
    #[arg(short, long)]
    title: Option<String>,

    #[command(flatten)]
    session: SessionArguments,
}

/// `28x28`, or two numbers written in another way.
fn pixels(text: &str) -> Result<(usize, usize), String> {
    let numbers: Vec<usize> = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    match numbers[..] {
        [rows, columns] => Ok((rows, columns)),
        _ => Err("write the rows and the columns of the image, such as 28x28".to_string()),
    }
}

pub(super) async fn run(arguments: Arguments, hooks: &[Hook]) -> Result<()> {
    let session = Session::new(&arguments.session, hooks).await?;
    let mut answer = None;
    let statements = super::statements::split(&arguments.command, &*super::running::dialect(&session.ctx));
    // What comes before the last statement makes the tables that it needs.
    for statement in statements.map_err(DataFusionError::Execution)? {
        let frame = session.ctx.sql(&statement.sql).await?;
        let schema = std::sync::Arc::new(frame.schema().as_arrow().clone());
        answer = Some((schema, frame.collect().await?));
    }
    let (schema, batches) = answer.ok_or_else(|| DataFusionError::Execution("plot: there is no query".to_string()))?;
    let wish = Wish { kind: arguments.kind, image: arguments.image, title: arguments.title };
    let drawn = picture(&schema, &batches, &wish)
        .and_then(|picture| show(&picture, arguments.output.as_deref(), arguments.session.quiet));
    drawn.map_err(|error| DataFusionError::Execution(format!("plot: {error}")))
}

/// Draws the last answer of a shell: `\plot [kind] [image => [28, 28]] [file]`.
pub(super) fn last(shell: &Shell, arguments: &str) -> Result<(), String> {
    let answer = shell.last.as_ref().ok_or("\\plot draws the last answer, and there is none yet")?;
    let (mut wish, mut file, mut image) = (Wish::default(), None, String::new());
    for word in arguments.split_whitespace() {
        match word {
            word if !image.is_empty() && word.trim_matches(['[', ']', '(', ')', ',']).parse::<usize>().is_ok() => {
                image.push_str(word)
            }
            word if word.starts_with("image") => image.push_str(&format!("{word} ")),
            "=>" | "=" => {}
            word if word.contains('.') => file = Some(PathBuf::from(word.trim_matches('\''))),
            word => wish.kind = Some(word.parse()?),
        }
    }
    if !image.is_empty() {
        wish.image = Some(pixels(&image)?);
    }
    let picture = picture(&answer.schema, &answer.batches, &wish)?;
    show(&picture, file.as_deref(), shell.printing.quiet)
}

fn show(picture: &Picture, file: Option<&Path>, is_quiet: bool) -> Result<(), String> {
    match file {
        Some(file) => {
            save(picture, file)?;
            if !is_quiet {
                println!("drawn into {}", file.display());
            }
        }
        None => {
            let is_terminal = std::io::stdout().is_terminal();
            let columns = if is_terminal { terminal_width().saturating_sub(1).clamp(40, 160) } else { 100 };
            print!("{}", text(picture, columns, is_terminal)?);
        }
    }
    Ok(())
}
