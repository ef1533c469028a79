//! The suite that judges what is gathered while rows stream by.

use std::ops::Range;

use super::{Column, Table, planted};
use crate::{Asks, Result, Spec, Summarize, Types, Values};

/// The answer for a table whose rows come in some runs, each gathered by itself and merged in this order.
pub fn summarized(work: &dyn Summarize, table: &Table, label: Option<&[f64]>, runs: &[Range<usize>]) -> Result<Vec<Values>> {
    let plan = table.plan();
    let kind = |(_, column): &(String, Column)| if matches!(column, Column::Text(_)) { "text" } else { "number" }.to_string();
    let types = Types { label: label.map(|_| "number".to_string()), features: table.columns.iter().map(kind).collect() };
    let rows = match table.columns.first() {
        Some((_, Column::Numbers(values))) => values.len(),
        Some((_, Column::Text(values))) => values.len(),
        None => 0,
    };
    let nothing = vec![0.0; rows];
    let mut all = work.begin(&plan, &types)?;
    for run in runs {
        let mut one = work.begin(&plan, &types)?;
        table.feed(label.unwrap_or(&nothing), run.clone(), |rows, block, _, features| {
            one.push(rows, label.map(|_| block), features)
        })?;
        all.merge(one)?;
    }
    all.finish()
}

pub(super) fn check(spec: &Spec, work: &dyn Summarize, promise: &mut dyn FnMut(bool, &str, String)) {
    let (mut table, label) = planted(3000, 4, &[1, 3], 0.5, 71);
    let texts = (0..3000).map(|row| (row % 13 > 0).then(|| format!("level {}", row % 17))).collect();
    let holes: Vec<f64> = (0..3000).map(|row| if row % 5 == 0 { f64::NAN } else { (row % 7) as f64 }).collect();
    table = table.numbers("holes", &holes);
    if work.reads_texts() {
        table.columns.push(("text".into(), Column::Text(texts)));
    }
    let label = (spec.asks != Asks::NoLabel).then_some(&label[..]);
    let whole = summarized(work, &table, label, std::slice::from_ref(&(0..3000)));
    promise(whole.is_ok(), "a sound table is summarized", format!("{:?}", whole.as_ref().err()));
    let columns = work.columns().len();
    promise(whole.as_ref().is_ok_and(|values| values.len() == columns), "as many columns as declared", format!("{whole:?}"));
    let lengths: Vec<usize> = whole.iter().flatten().map(Values::rows).collect();
    promise(lengths.iter().all(|length| *length == lengths[0]), "columns are of one length", format!("{lengths:?}"));
    let parts = summarized(work, &table, label, &[2000..3000, 700..2000, 0..700]);
    promise(are_close(&whole, &parts), "any runs in any order give the same", format!("{whole:?} {parts:?}"));
    let none = summarized(work, &table, label, &[]);
    promise(none.is_ok(), "a table without rows is described, too", format!("{:?}", none.err()));
    if spec.asks == Asks::MaybeLabel {
        let without = summarized(work, &table, None, std::slice::from_ref(&(0..3000)));
        promise(without.is_ok(), "it does without a label", format!("{:?}", without.err()));
    }
}

/// But for the last digit, which cutting the rows otherwise can move.
fn are_close(a: &Result<Vec<Values>>, b: &Result<Vec<Values>>) -> bool {
    let close = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * b.abs().max(1e-3),
        (a, b) => a == b,
    };
    let same = |(a, b): (&Values, &Values)| match (a, b) {
        (Values::Number(a), Values::Number(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        (a, b) => a == b,
    };
    matches!((a, b), (Ok(a), Ok(b)) if a.iter().zip(b).all(same))
}
