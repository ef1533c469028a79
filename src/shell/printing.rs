//! How answers are printed: tables for people, csv and json for programs.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::json::{ArrayWriter, LineDelimitedWriter};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;

use super::cells;
use super::format::Format;
use crate::answer;

/// What `\pset` can change.
#[derive(Debug, Clone)]
pub(super) struct Printing {
    pub format: Format,
    /// Most rows of a table; `None`: all.
    pub maxrows: Option<usize>,
    /// Digits of a float that count; `None`: all.
    pub digits: Option<usize>,
    /// Whether columns of a ranking are shown that have no value in any row.
    pub empty: bool,
    /// Letters of a line that a table fits into; `None`: as wide as it is.
    pub width: Option<usize>,
    pub quiet: bool,
    pub color: bool,
}

/// What was read of an answer, and how long that took.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    /// All there are; not all need to be in the batches.
    pub rows: usize,
    pub elapsed: Duration,
    /// The query says `SELECT *`, so that nobody has asked for a column by name.
    pub is_star: bool,
}

const DIGITS: usize = 6;
/// Letters that a cell keeps, however narrow the terminal.
const CELL_MIN: usize = 12;

impl Printing {
    pub(super) fn new(format: Format, maxrows: Option<usize>, quiet: bool, is_terminal: bool) -> Self {
        let width = is_terminal.then(terminal_width);
        Self { format, maxrows, digits: Some(DIGITS), empty: false, width, quiet, color: is_terminal }
    }

    pub(super) fn is_table(&self) -> bool {
        self.format == Format::Table
    }

    /// A table for people, cut to the rows and the width that they want to see.
    pub(super) fn table(&self, answer: &Answer, options: &FormatOptions, out: &mut dyn Write) -> Result<()> {
        let most = self.maxrows.unwrap_or(usize::MAX);
        let shown = first_rows(&answer.batches, most);
        let hidden = if self.empty { Vec::new() } else { empty_columns(answer) };
        let columns: Vec<usize> = (0..answer.schema.fields().len()).filter(|at| !hidden.contains(at)).collect();
        let names: Vec<&str> = columns.iter().map(|at| answer.schema.field(*at).name().as_str()).collect();
        let mut texts: Vec<Vec<String>> = Vec::new();
        for at in &columns {
            let mut column = Vec::new();
            for batch in &shown {
                column.extend(cells::texts(batch.column(*at), self.digits, options)?);
            }
            texts.push(column);
        }
        if let Some(width) = self.width {
            fit(&names, &mut texts, width);
        }
        if !names.is_empty() {
            writeln!(out, "{}", drawn(&names, texts)?)?;
        }
        if self.quiet {
            return Ok(());
        }
        let cut = if answer.rows > most { format!(", first {most} shown; \\pset maxrows inf shows all") } else { String::new() };
        let rows = if answer.rows == 1 { "row" } else { "rows" };
        writeln!(out, "({} {rows}{cut}; {:.3} s)", answer.rows, answer.elapsed.as_secs_f64())?;
        if !hidden.is_empty() {
            let names: Vec<&str> = hidden.iter().map(|at| answer.schema.field(*at).name().as_str()).collect();
            writeln!(out, "(empty and not shown: {}; \\pset empty on shows them)", names.join(", "))?;
        }
        writeln!(out)?;
        Ok(())
    }
}

/// Rows up to the most that are wanted.
fn first_rows(batches: &[RecordBatch], most: usize) -> Vec<RecordBatch> {
    let mut left = most;
    let take = |batch: &RecordBatch| {
        let rows = batch.num_rows().min(left);
        left -= rows;
        (rows > 0).then(|| batch.slice(0, rows))
    };
    batches.iter().map_while(take).collect()
}

/// Columns of a ranking without a value, where all columns were asked for.
fn empty_columns(answer: &Answer) -> Vec<usize> {
    let is_ranking = answer::FIELDS.iter().all(|field| answer.schema.column_with_name(field.name()).is_some());
    if !answer.is_star || !is_ranking || answer.rows == 0 {
        return Vec::new();
    }
    let is_ours = |at: &usize| answer::FIELDS.find(answer.schema.field(*at).name()).is_some();
    let is_empty = |at: &usize| answer.batches.iter().all(|batch| cells::is_empty(batch.column(*at)));
    (0..answer.schema.fields().len()).filter(is_ours).filter(is_empty).collect()
}

/// Cuts the longest texts until the table fits, or every text is short.
fn fit(names: &[&str], texts: &mut [Vec<String>], width: usize) {
    let letters = |text: &String| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = names
        .iter()
        .zip(texts.iter())
        .map(|(name, column)| column.iter().map(letters).max().unwrap_or(0).max(name.chars().count()))
        .collect();
    let frame = 3 * widths.len() + 1;
    loop {
        let total: usize = widths.iter().sum::<usize>() + frame;
        let floor = |at: usize| CELL_MIN.max(names[at].chars().count());
        let Some(widest) = (0..widths.len()).filter(|at| widths[*at] > floor(*at)).max_by_key(|at| widths[*at]) else { return };
        if total <= width {
            break;
        }
        widths[widest] =
            (widths[widest] - (total - width)).max(floor(widest)).max(widths[widest] * 3 / 4).min(widths[widest] - 1);
    }
    for (column, width) in texts.iter_mut().zip(widths) {
        for text in column.iter_mut().filter(|text| letters(text) > width) {
            let one_line: String = text.chars().map(|c| if c == '\n' { ' ' } else { c }).take(width.saturating_sub(1)).collect();
            *text = format!("{one_line}…");
        }
    }
}

/// Texts in a frame.
fn drawn(names: &[&str], texts: Vec<Vec<String>>) -> Result<String> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
    let columns = texts.into_iter().map(|column| Arc::new(StringArray::from(column)) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    Ok(pretty_format_batches(&[batch])?.to_string())
}

/// The columns of the terminal; 100 where there is none to ask.
pub(super) fn terminal_width() -> usize {
    terminal_size().map_or(100, |(columns, _)| columns)
}

/// Columns and lines of the terminal.
pub(super) fn terminal_size() -> Option<(usize, usize)> {
    let (columns, lines) = rustyline::DefaultEditor::new().ok()?.dimensions()?;
    (columns > 0).then_some((columns.into(), lines.into()))
}

/// Writes batches for programs, one after the other: nothing is rounded, cut or kept.
pub(super) enum Written {
    Separated { separator: u8, has_header: bool },
    Json(ArrayWriter<std::io::Stdout>),
    Lines,
}

impl Written {
    pub(super) fn new(format: Format) -> Self {
        match format {
            Format::Tsv => Written::Separated { separator: b'\t', has_header: true },
            Format::Json => Written::Json(ArrayWriter::new(std::io::stdout())),
            Format::NdJson => Written::Lines,
            Format::Csv | Format::Table => Written::Separated { separator: b',', has_header: true },
        }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Written::Separated { separator, has_header } => {
                let mut writer =
                    csv::WriterBuilder::new().with_header(*has_header).with_delimiter(*separator).build(std::io::stdout());
                writer.write(&cells::flat(batch)?)?;
                *has_header = false;
            }
            Written::Json(writer) => writer.write(batch)?,
            Written::Lines => {
                let mut writer = LineDelimitedWriter::new(std::io::stdout());
                writer.write(batch)?;
                writer.finish()?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<()> {
        if let Written::Json(mut writer) = self {
            writer.finish()?;
            println!();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_cut_to_the_terminal() {
        let mut texts = vec![vec!["1".to_string()], vec!["long ".repeat(40)], vec!["middle length".to_string()]];
        fit(&["rank", "note", "method"], &mut texts, 60);
        let drawn = drawn(&["rank", "note", "method"], texts).unwrap();
        assert!(drawn.lines().all(|line| line.chars().count() <= 60), "{drawn}");
        assert!(drawn.contains("middle length") && drawn.contains('…'), "{drawn}");
        // Nothing is cut where nothing would help.
        let mut texts = vec![vec!["123456".to_string()]; 30];
        fit(&["a"; 30], &mut texts, 60);
        assert!(texts.iter().all(|column| column[0] == "123456"));
    }
}
