//! `pursuit plot`: the answer to a query as a picture.

use std::path::PathBuf;

use clap::Args;
use datafusion::common::not_impl_err;
use datafusion::error::Result;

use super::session::{Hook, Session, SessionArguments};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The query whose answer is drawn
    #[arg(short, long, value_name = "SQL")]
    command: String,

    /// The file to write; its ending says how: svg, png, html or vl.json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    session: SessionArguments,
}

pub(super) async fn run(arguments: Arguments, hooks: &[Hook]) -> Result<()> {
    let session = Session::new(&arguments.session, hooks).await?;
    let answer = session.ctx.sql(&arguments.command).await?.collect().await?;
    let (rows, file) = (answer.iter().map(|batch| batch.num_rows()).sum::<usize>(), arguments.output);
    not_impl_err!("plot: drawing is not there yet ({rows} rows, {file:?})")
}
