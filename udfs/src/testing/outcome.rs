use crate::{Compared, Problem, Ranking, Report, Result, Run, Values, Work};

/// What a function says of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Ranking(Ranking),
    Values(Vec<Values>),
    /// It needs rows that stream by, or a model.
    Nothing,
}

/// Runs a function, with our own selectors where it repeats or compares some.
pub fn outcome(work: &Work, problem: &Problem, run: &Run) -> Result<Outcome> {
    match work {
        Work::Select(selector) => crate::answer(&**selector, problem, run).map(Outcome::Ranking),
        Work::Report(report) => reported(&**report, problem, run).map(Outcome::Values),
        Work::Apply(apply) => reported(apply.fit(), problem, run).map(Outcome::Values),
        Work::OnModel(_) | Work::Summarize(_) | Work::Choose(_) => Ok(Outcome::Nothing),
    }
}

/// With the selector that it repeats, or those that it compares, if it does.
pub(super) fn reported(report: &dyn Report, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
    let known = crate::selectors();
    let find = |name: &str| known.iter().find(|spec| spec.name == name).expect("selectors of ours are repeated");
    let compares = report.compares(&known.iter().collect::<Vec<_>>())?;
    if !compares.is_empty() {
        let compared: Vec<Compared> =
            compares.iter().map(|repeats| Compared::new(find(&repeats.selector), &repeats.options)).collect::<Result<_>>()?;
        return report.report_on_all(&compared, problem, run);
    }
    let selector = report.repeats().map(|repeats| find(&repeats.selector).selector(&repeats.options)).transpose()?;
    report.report_on(selector.as_deref(), problem, run)
}
