//! The suite that judges every report.

use std::time::Duration;

use super::checks::{self, cancelled_after};
use super::outcome::reported;
use super::{Table, apply, planted, summary};
use crate::settings::common::Task;
use crate::{Error, Labels, Problem, Report, Result, Run, Settings, Spec, Values, Work};

/// Judges a report. Panics with the first promise that it breaks. Returns how many promises were looked at; none of a function that is no report.
pub fn check_report(spec: &Spec) -> usize {
    let mut promises = 0;
    let mut promise = |is_kept: bool, promise: &str, detail: String| {
        promises += 1;
        assert!(is_kept, "{} breaks a promise: {promise}: {detail}", spec.name);
    };
    promise(spec.documentation.len() >= 3, "it is documented", format!("{:?}", spec.documentation));
    checks::options(spec, &mut promise);
    match (spec.build)(&checks::short(spec)) {
        Ok(Work::Apply(apply)) => apply::check(spec, &*apply, &mut promise),
        Ok(Work::OnModel(report)) => apply::check_on_model(spec, &report, &mut promise),
        Ok(Work::Choose(choosing)) => {
            let known = crate::selectors();
            let is_known = known.iter().any(|other| other.name == choosing.selector);
            promise(is_known, "who chooses by default is a selector", choosing.selector.clone());
            let options: Vec<&str> = spec.all_options().iter().map(|option| option.name).collect();
            for option in ["k", "must_include", "groups"] {
                promise(options.contains(&option), "it has the options of all selectors", format!("{option}: {options:?}"));
            }
        }
        Ok(Work::Summarize(summarize)) => summary::check(spec, &*summarize, &mut promise),
        _ => {}
    }
    let build = |settings: &Settings| match (spec.build)(settings) {
        Ok(Work::Report(report)) => Some(report),
        Ok(_) => None,
        Err(error) => panic!("{}: {error}", spec.name),
    };
    let Some(report) = build(&checks::short(spec)) else { return promises };
    let ask = |table: &Table, label: &[f64], own: usize| question(spec, table, label, own);

    let (table, label) = planted(160, 5, &[1, 3], 0.5, 71);
    let problem = ask(&table, &label, 120);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        pool.install(|| answer(&*report, &problem))
    };
    let (one, four) = (with(1), with(4));
    promise(one == four, "one thread and four give the same bytes", format!("{one:?} {four:?}"));
    let values = one.unwrap_or_else(|error| panic!("{}: a sound problem is refused: {error}", spec.name));
    let declared = report.columns().len();
    promise(values.len() == declared, "as many columns as declared", format!("{} {declared}", values.len()));
    let lengths: Vec<usize> = values.iter().map(length).collect();
    promise(lengths.iter().all(|length| *length == lengths[0]), "columns are of one length", format!("{lengths:?}"));
    promise(values.iter().all(is_finite), "numbers are finite, or NULL", format!("{values:?}"));

    // Rows that cannot tell: one class, or one value, in those judged by.
    let mut same = label.clone();
    same[120..].fill(label[119]);
    match answer(&*report, &ask(&table, &same, 120)) {
        Ok(values) => promise(values.iter().all(is_finite), "what cannot be judged is NULL", format!("{values:?}")),
        Err(error) => promise(!error.to_string().contains('\n'), "what cannot be judged is said in a line", error.to_string()),
    }
    let (weighted, repeated, twice) = checks::weighted(&table, &label);
    // The first 120 rows are 240 with their repetitions; the rows judged by count twice as well.
    let (a, b) = (answer(&*report, &ask(&weighted, &label, 120)), answer(&*report, &ask(&repeated, &twice, 240)));
    promise(are_close(&a, &b), "row weights equal row repetition", format!("{a:?} {b:?}"));

    let full = build(&Settings::new()).expect("it was a report before");
    let (table, label) = planted(2000, 30, &[3, 7], 1.0, 73);
    let problem = ask(&table, &label, 1500);
    let (after, result) = cancelled_after(Duration::from_millis(20), |run| reported(&*full, &problem, run));
    let is_fine = after < Duration::from_secs(1) && result.as_ref().err().is_none_or(|error| *error == Error::cancelled());
    promise(is_fine, "it stops when it is cancelled in the middle", format!("{after:?} {:?}", result.err()));
    promises
}

/// The first `own` rows, and the others to judge by if the report takes a table for that.
fn question(spec: &Spec, table: &Table, label: &[f64], own: usize) -> Problem {
    let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    let of_classes = Table { task: Some(Task::Classification), ..table.clone() };
    let (table, label) = if spec.labels == Labels::Classes { (&of_classes, &classes[..]) } else { (table, label) };
    if spec.table.is_some() {
        table.problem_with_held_out(label, own)
    } else {
        table.problem_of_rows(&label[..own.min(label.len())])
    }
}

fn answer(report: &dyn Report, problem: &Problem) -> Result<Vec<Values>> {
    reported(report, problem, &Run::new(1))
}

fn length(values: &Values) -> usize {
    match values {
        Values::Text(values) => values.len(),
        Values::Number(values) => values.len(),
        Values::Whole(values) => values.len(),
        Values::Flag(values) => values.len(),
        Values::Texts(values) => values.len(),
    }
}

fn is_finite(values: &Values) -> bool {
    if let Values::Number(values) = values { values.iter().flatten().all(|value| value.is_finite()) } else { true }
}

fn are_close(a: &Result<Vec<Values>>, b: &Result<Vec<Values>>) -> bool {
    let close = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-5 * b.abs().max(1e-3),
        (a, b) => a == b,
    };
    let same = |(a, b): (&Values, &Values)| match (a, b) {
        (Values::Number(a), Values::Number(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        (a, b) => a == b,
    };
    match (a, b) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(same),
        (a, b) => a == b,
    }
}
