//! The suite that judges every function that applies a model or reports on one.

use std::sync::Arc;

use super::{Table, planted};
use crate::settings::common::Task;
use crate::{Applied, Apply, Block, Error, Labels, Output, ReportOnModel, Result, Run, Settings, Spec, Values, Work};

/// Judges what applies a model.
pub(super) fn check(spec: &Spec, apply: &dyn Apply, promise: &mut dyn FnMut(bool, &str, String)) {
    let (table, label) = planted(120, 4, &[1, 3], 0.5, 71);
    let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    let is_classes = spec.labels == Labels::Classes;
    let asked = if is_classes { Table { task: Some(Task::Classification), ..table.clone() } } else { table.clone() };
    let problem = asked.problem_of_rows(if is_classes { &classes } else { &label });
    let model = apply.fit().report(&problem, &Run::new(1)).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    let wanted: Vec<&str> =
        apply.outputs().iter().filter(|(_, output)| *output != Output::Correct).map(|(name, _)| *name).collect();
    let all: Vec<usize> = (0..120).collect();
    let first = applied(apply, &model, &table, &all, &wanted);
    promise(first.is_ok(), "what it fits it can read", format!("{:?}", first.as_ref().err()));
    let made: Vec<&str> = first.iter().flat_map(|applied| applied.columns.iter().map(|(name, _)| *name)).collect();
    promise(wanted.iter().all(|name| made.contains(name)), "what is asked for is made", format!("{wanted:?} {made:?}"));
    let order: Vec<usize> = (0..model[0].rows()).rev().collect();
    let reversed: Vec<Values> = model.iter().map(|column| taken(column, &order)).collect();
    let same = applied(apply, &reversed, &table, &all, &wanted);
    promise(first == same, "the rows of a model can stand in any order", format!("{:?}", same.err()));
    let alone = applied(apply, &model, &table, &[7], &wanted);
    let among = applied(apply, &model, &table, &[7, 3, 7], &wanted);
    promise(alone.is_ok() && among.is_ok(), "a row is decided by itself", format!("{alone:?} {among:?}"));
    broken(&model, promise, |model| applied(apply, model, &table, &[0], &wanted).map(drop));
}

/// Judges what reports on a model, on one of the kind that it takes.
pub(super) fn check_on_model(spec: &Spec, report: &Arc<dyn ReportOnModel>, promise: &mut dyn FnMut(bool, &str, String)) {
    let made_by = spec.model.map_or("", |model| model.made_by);
    let Some(fit) = crate::reports().into_iter().find(|other| other.name == made_by) else { return };
    let Ok(Work::Report(fit)) = (fit.build)(&Settings::new()) else { return };
    let (table, label) = planted(120, 4, &[1, 3], 0.5, 71);
    let model = fit.report(&table.problem_of_rows(&label), &Run::new(1)).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    promise(report.reads() == fit.columns(), "it reads what is made", format!("{:?}", report.reads()));
    let values = report.report(&model);
    let declared = report.columns().len();
    promise(values.as_ref().is_ok_and(|values| values.len() == declared), "as many columns as declared", format!("{values:?}"));
    broken(&model, promise, |model| report.report(model).map(drop));
}

/// Tables that are no model are refused in a line.
fn broken(model: &[Values], promise: &mut dyn FnMut(bool, &str, String), read: impl Fn(&[Values]) -> Result<()>) {
    let empty: Vec<Values> = model.iter().map(|column| taken(column, &[])).collect();
    let is_line = |read: &Result<(), Error>| read.as_ref().is_err_and(|error| !error.to_string().contains('\n'));
    let refused = read(&empty);
    promise(is_line(&refused), "a table without rows is no model", format!("{refused:?}"));
    let half: Vec<usize> = (0..model[0].rows()).step_by(2).collect();
    let refused = read(&model.iter().map(|column| taken(column, &half)).collect::<Vec<_>>());
    promise(is_line(&refused), "half of a table is no model", format!("{refused:?}"));
    let twice: Vec<usize> = (0..2 * model[0].rows()).map(|at| at / 2).collect();
    let read = read(&model.iter().map(|column| taken(column, &twice)).collect::<Vec<_>>());
    promise(read.is_ok() || is_line(&read), "a table twice is a model or refused in a line", format!("{read:?}"));
}

/// Some rows of a table of numbers through a model.
fn applied(apply: &dyn Apply, model: &[Values], table: &Table, rows: &[usize], wanted: &[&str]) -> Result<Applied> {
    let model = apply.read(model)?;
    let column =
        |name: &String| table.columns.iter().position(|(column, _)| column == name).expect("it asks for what it was fitted on");
    let columns: Vec<Vec<f64>> = model
        .features()
        .iter()
        .map(|feature| rows.iter().map(|row| table.column(column(&feature.name))[*row]).collect())
        .collect();
    let blocks: Vec<Block<'_>> = columns.iter().map(|values| Block::Numbers(values)).collect();
    model.apply(rows.len(), &blocks, wanted, &Run::default())
}

fn taken(column: &Values, rows: &[usize]) -> Values {
    match column {
        Values::Text(values) => Values::Text(rows.iter().map(|row| values[*row].clone()).collect()),
        Values::Number(values) => Values::Number(rows.iter().map(|row| values[*row]).collect()),
        Values::Whole(values) => Values::Whole(rows.iter().map(|row| values[*row]).collect()),
        Values::Flag(values) => Values::Flag(rows.iter().map(|row| values[*row]).collect()),
        Values::Texts(values) => Values::Texts(rows.iter().map(|row| values[*row].clone()).collect()),
    }
}
