//! One statement after the other: planned, run, printed, and stopped when Ctrl-C is pressed.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::FormatOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use futures::StreamExt;
use pursuit_udfs::{did_you_mean, name_list, shown};

use super::completion::tables;
use super::format::Format;
use super::functions;
use super::interrupt::interrupts;
use super::plans;
use super::printing::{Answer, Printing, Written};
use super::session::Session;
use super::stores;
use super::words::in_words;
use crate::Progress;
use crate::measured::measured;

/// A session, how its answers are printed, and the last of them.
pub(super) struct Shell {
    pub session: Session,
    pub printing: Printing,
    /// For `\plot`.
    pub last: Option<Answer>,
}

/// Rows of an answer that are kept for a picture: the correlations of 300 columns are 90,000.
const KEPT_ROWS: usize = 100_000;

impl Shell {
    pub(super) fn new(session: Session, printing: Printing) -> Self {
        Self { session, printing, last: None }
    }

    /// The dialect that the session speaks now.
    pub(super) fn dialect(&self) -> Box<dyn Dialect> {
        dialect(&self.session.ctx)
    }

    /// Runs one statement and prints its answer. What is dropped before its end stops.
    pub(super) async fn run(&mut self, sql: &str) -> Result<()> {
        let Some(statement) = parsed(sql, &*self.dialect())? else { return Ok(()) };
        let statement = match functions_shown(&statement) {
            Some(like) => parsed(&functions::query(self.session.engine.specs(), like), &GenericDialect {})?.unwrap_or(statement),
            None => statement,
        };
        let running = Running {
            ctx: self.session.ctx.clone(),
            printing: self.printing.clone(),
            progress: self.session.engine.progress(),
            statement,
        };
        // In a task, so that whoever waits for it can stop waiting at any time, also while a query is planned.
        let task = SpawnedTask::spawn(running.run());
        let ran = task.join_unwind().await.map_err(|error| DataFusionError::Execution(format!("stopped: {error}")))?;
        if let Some(ran) = ran.map_err(|error| unknown_table(error, &self.session.ctx))? {
            if self.printing.is_table() && ran.is_plan {
                plans::print(&ran.answer)?;
            } else if self.printing.is_table() {
                let state = self.session.ctx.state();
                let options: FormatOptions = (&state.config_options().format).try_into()?;
                let mut out = std::io::stdout().lock();
                self.printing_of(&ran).table(&ran.answer, &options, &mut out)?;
                out.flush()?;
            }
            if !ran.is_count {
                self.last = Some(ran.answer);
            }
        }
        Ok(())
    }

    /// Plans and settings are shown to their end.
    fn printing_of(&self, answer: &Ran) -> Printing {
        let mut printing = self.printing.clone();
        if answer.is_whole {
            (printing.maxrows, printing.width) = (None, None);
        }
        printing
    }

    /// The same, until Ctrl-C is pressed. An error is printed; `false`: it was stopped or failed.
    pub(super) async fn run_until_interrupted(&mut self, sql: &str) -> bool {
        let begin = Instant::now();
        let (progress, selections) = (Arc::clone(&self.session.line), self.session.engine.progress());
        progress.begin();
        let pressed = interrupts();
        let interrupted = pressed.notified();
        tokio::select! {
            biased;
            _ = interrupted => {
                selections.stop();
                progress.end();
                // The terminal has written ^C.
                let line = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
                eprintln!("{line}stopped after {:.1} s", begin.elapsed().as_secs_f64());
                false
            }
            ran = self.run(sql) => match ran {
                Ok(()) => true,
                Err(error) => {
                    eprintln!("{}", in_words(&error));
                    false
                }
            },
        }
    }
}

pub(super) fn dialect(ctx: &SessionContext) -> Box<dyn Dialect> {
    dialect_from_str(ctx.state().config_options().sql_parser.dialect).unwrap_or_else(|| Box::new(GenericDialect {}))
}

/// The first statement of a text.
fn parsed(sql: &str, dialect: &dyn Dialect) -> Result<Option<Statement>> {
    Ok(DFParser::parse_sql_with_dialect(sql, dialect)?.pop_front())
}

/// The pattern of `SHOW FUNCTIONS LIKE …`; empty without one.
fn functions_shown(statement: &Statement) -> Option<&str> {
    let Statement::Statement(statement) = statement else { return None };
    match statement.as_ref() {
        ast::Statement::ShowFunctions { filter: None } => Some(""),
        ast::Statement::ShowFunctions { filter: Some(ast::ShowStatementFilter::Like(pattern)) } => Some(pattern),
        _ => None,
    }
}

/// DataFusion names a table that is not there in full; people want to know which there are.
fn unknown_table(error: DataFusionError, ctx: &SessionContext) -> DataFusionError {
    let text = in_words(&error);
    let Some(name) = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found")) else { return error };
    let config = ctx.state();
    let defaults = &config.config_options().catalog;
    let name = name.trim_start_matches(&format!("{}.", defaults.default_catalog));
    let name = name.trim_start_matches(&format!("{}.", defaults.default_schema));
    let known = tables(ctx);
    let in_schema = known.iter().find(|table| table.rsplit('.').next() == Some(name));
    let hint = in_schema.map_or_else(|| did_you_mean(name, &known), |table| format!("; did you mean `{table}`?"));
    DataFusionError::Plan(format!("no table or file named `{}`{hint} tables are {}", shown(name), name_list(&known)))
}

struct Running {
    ctx: SessionContext,
    printing: Printing,
    progress: Arc<Progress>,
    statement: Statement,
}

struct Ran {
    answer: Answer,
    /// A plan or a description, of which nobody wants the first rows only.
    is_whole: bool,
    is_plan: bool,
    /// How many rows were written, of which nobody wants a picture.
    is_count: bool,
}

impl Running {
    /// The answer, if there is one; what is not printed as a table is printed here, batch by batch.
    async fn run(self) -> Result<Option<Ran>> {
        let begin = Instant::now();
        let statement = self.statement;
        let (is_star, is_settings) = (is_star(&statement), is_settings(&statement));
        let mut plan = self.ctx.state().statement_to_plan(statement).await?;
        stores::open_named(&mut plan, &self.ctx.runtime_env()).await?;
        let is_count = matches!(plan, LogicalPlan::Copy(_) | LogicalPlan::Dml(_));
        let is_measured = matches!(plan, LogicalPlan::Analyze(_));
        let is_plan = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let is_whole = is_settings || is_plan || matches!(plan, LogicalPlan::DescribeTable(_));
        let frame = self.ctx.execute_logical_plan(plan).await?;
        let physical = frame.create_physical_plan().await?;
        let physical = if is_measured { measured(physical)? } else { physical };
        self.progress.expect_rows(rows_to_read(&physical));
        let (schema, context) = (physical.schema(), self.ctx.task_ctx());
        let memory = MemoryConsumer::new("shell").register(context.memory_pool());
        // A stream without an end is never a table.
        let format = match self.printing.format {
            Format::Table if physical.boundedness().is_unbounded() => Format::Csv,
            format => format,
        };
        let is_table = format == Format::Table;
        let most = match self.printing.maxrows {
            _ if is_whole => usize::MAX,
            most if is_table => most.map_or(usize::MAX, |most| most.max(KEPT_ROWS)),
            _ => KEPT_ROWS,
        };
        let mut stream: SendableRecordBatchStream = execute_stream(physical, context)?;
        let (mut batches, mut rows) = (Vec::new(), 0);
        let mut written = Written::new(format);
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if !is_table && batch.num_rows() > 0 {
                written.write(&batch)?;
            }
            if rows < most {
                memory.try_grow(batch.get_array_memory_size())?;
                batches.push(batch.clone());
            }
            rows += batch.num_rows();
        }
        // What defines or sets something answers with nothing.
        let is_silent = schema.fields().is_empty();
        if !is_table && !is_silent {
            // The names of the columns are an answer, too.
            if rows == 0 {
                written.write(&RecordBatch::new_empty(Arc::clone(&schema)))?;
            }
            written.finish()?;
        }
        let answer = Answer { schema, batches, rows, elapsed: begin.elapsed(), is_star };
        Ok((!is_silent).then_some(Ran { answer, is_whole, is_plan, is_count }))
    }
}

/// The rows of the tables that a plan reads, if all of them are known. What filters and joins leave is not.
fn rows_to_read(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let inputs = plan.children();
    if inputs.is_empty() {
        let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::default()).ok()?;
        return statistics.num_rows.get_value().map(|rows| *rows as u64);
    }
    if matches!(plan.name(), "FilterExec" | "HashJoinExec" | "NestedLoopJoinExec" | "SortMergeJoinExec" | "CrossJoinExec") {
        return None;
    }
    inputs.into_iter().map(rows_to_read).sum()
}

/// Whether a query asks for all columns without naming them.
fn is_star(statement: &Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    let ast::Statement::Query(query) = statement.as_ref() else { return false };
    fn of(body: &ast::SetExpr) -> bool {
        match body {
            ast::SetExpr::Select(select) => select
                .projection
                .iter()
                .any(|item| matches!(item, ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..))),
            ast::SetExpr::Query(query) => of(&query.body),
            ast::SetExpr::SetOperation { left, right, .. } => of(left) && of(right),
            _ => false,
        }
    }
    of(&query.body)
}

fn is_settings(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(statement) if matches!(statement.as_ref(), ast::Statement::ShowVariable { .. }))
}
