use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::Fields;
use pursuit_udfs::{
    Budget, Common, Compared, Count, Error, Options, Parting, Plan, Problem, Reads, Repeats, Report, Result, Run, Selector,
    Settings, Share, Spec, Value, Work,
};

use crate::engine::Registry;
use crate::gathered::Read;
use crate::lanes::{Lane, Threads};
use crate::progress::{Active, Progress};
use crate::{answer, panics};

/// A selector or report with all its options: what remains to be known is the data.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub spec: Arc<Spec>,
    pub common: Common,
    /// What it needs, given its options.
    pub reads: Reads,
    /// The columns of its answer.
    pub fields: Fields,
    /// Whether fewer choices would be the first of these.
    pub is_prefix: bool,
    /// The selector's own options.
    own: Settings,
    /// The selector that a report repeats, with its own options.
    repeated: Option<(Arc<Spec>, Settings)>,
    /// The selectors that a report compares.
    compared: Vec<(Arc<Spec>, Settings)>,
    /// What whoever asks should be told about the question.
    pub caution: Option<String>,
}

impl Question {
    /// Parts the common options from the selector's own, and checks both.
    pub(crate) fn new(spec: Arc<Spec>, settings: &Settings) -> Result<Self> {
        Self::of(spec, None, settings)
    }

    /// The same for a report that may repeat a selector of the registry.
    pub(crate) fn of(spec: Arc<Spec>, registry: Option<&Registry>, settings: &Settings) -> Result<Self> {
        let mut common = Common::default();
        let mut own = Settings::new();
        for (name, value) in settings {
            check_option(&spec, name)?;
            if let Some(result) = common.set(name, value) {
                result?;
            }
            // Some see to common options themselves.
            if (spec.options)().iter().any(|option| option.name == name) {
                own.insert(name.clone(), value.clone());
            }
        }
        common.check()?;
        let work = (spec.build)(&own)?;
        // Selectors take whatever all of them take; a report may have no use for it.
        let given = if let Work::Report(_) = work { settings } else { &own };
        if let Some((option, need)) = given.keys().find_map(|option| Some((option, work.unused(option)?))) {
            return Err(Error::call(format!("`{option}` needs {need}; add that, or leave `{option}` out")));
        }
        let (repeated, compared) = match (&work, registry) {
            (Work::Report(report), Some(registry)) => {
                (repeated(report.as_ref(), registry)?, compared(report.as_ref(), registry)?)
            }
            _ => (None, Vec::new()),
        };
        let (reads, fields, is_prefix) = match work {
            Work::Select(selector) => {
                if selector.has_size() && common.k == Count::Default {
                    common.k = Count::Auto;
                }
                let is_prefix = selector.is_prefix() && !common.spending.is_asked();
                (selector.reads(), answer::FIELDS.clone(), is_prefix)
            }
            Work::Report(report) => {
                let selector = repeated.as_ref().map(|(spec, own)| spec.selector(own)).transpose()?;
                let compares_rows =
                    compared.iter().any(|(spec, own)| spec.selector(own).is_ok_and(|selector| selector.reads() == Reads::Rows));
                let reads = if compares_rows { Reads::Rows } else { report.reads(selector.as_deref()) };
                (reads, answer::fields(&report.columns()), false)
            }
            // What is asked of the table is the model; src/apply.rs has rows decided by it.
            Work::Apply(apply) => (Reads::Rows, answer::fields(&apply.fit().columns()), false),
            Work::OnModel(report) => (Reads::Rows, answer::fields(&report.columns()), false),
            Work::Choose(_) => (Reads::Rows, Fields::empty(), false),
            Work::Summarize(summary) => (Reads::Rows, answer::fields(&summary.columns()), false),
        };
        if common.folds.is_some() && matches!(reads, Reads::Pass(_)) {
            return Err(Error::call("`folds` needs rows that are kept; leave it out with passes => 'one'"));
        }
        if common.spending.is_asked() && matches!(reads, Reads::Pass(_)) {
            return Err(Error::call("`costs` and `budget` need rows that are kept; leave them out with passes => 'one'"));
        }
        Ok(Self { spec, common, reads, fields, is_prefix, own, repeated, compared, caution: None })
    }

    /// Adds the groups that the selector's own options make of the columns.
    pub(crate) fn group(&mut self, features: &[String]) -> Result<()> {
        let selectors = match (self.spec.build)(&self.own)? {
            Work::Select(selector) => vec![selector],
            _ => self.repeated.iter().chain(&self.compared).map(|(spec, own)| spec.selector(own)).collect::<Result<_>>()?,
        };
        let mut groups = BTreeMap::new();
        for selector in selectors {
            groups.extend(selector.groups(features)?);
        }
        if !groups.is_empty() && !self.common.groups.is_empty() {
            return Err(Error::call("`groups` cannot be given beside an option that groups the columns itself; leave one out"));
        }
        self.common.groups.extend(groups);
        Ok(())
    }

    /// The parts in which moments of so many columns are gathered: for folds, and for what repeats selections.
    pub(crate) fn parting(&self, columns: usize) -> Result<Option<Parting>> {
        let seed = self.common.seed as u64;
        Ok(match (self.spec.build)(&self.own)? {
            Work::Report(report) => Some(report.parting(self.common.folds, columns, seed)),
            Work::Select(_) => self.common.folds.map(|folds| Parting::for_folds(folds, columns, seed)),
            _ => None,
        })
    }

    /// Selections that the answer needs, of the same rows, and that do not need each other.
    pub(crate) fn repetitions(&self) -> usize {
        let folds = self.common.folds;
        match (self.spec.build)(&self.own) {
            Ok(Work::Select(_)) => 1 + folds.unwrap_or(0),
            Ok(Work::Report(report)) => report.repetitions(folds, self.compared.len()),
            _ => 1,
        }
    }

    /// Begins a run of this question, on threads of a lane unless the call has a number of its own.
    pub(crate) fn start(&self, progress: &Arc<Progress>, budget: Option<Arc<dyn Budget>>, lane: Lane) -> Result<Running> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let cancel = CancelOnDrop(Arc::clone(&cancelled));
        let name = self.spec.name;
        // The run only borrows this: when the query is dropped it is over for whoever watches, even if a step is being
        // finished in the background.
        let active = Arc::new(progress.start());
        let watched = Arc::downgrade(&active);
        let mut run = Run::new(self.common.seed as u64).with_cancel(cancelled).with_progress(move |done, total, note| {
            if let Some(active) = watched.upgrade() {
                active.set_step(name, done, total, note);
            }
        });
        let progress = Arc::clone(progress);
        run = run.with_remarks(move |line| progress.remark(name, line));
        let begun = Instant::now();
        run = run.with_clock(move || begun.elapsed().as_secs_f64()).until(self.common.time_limit);
        if let Some(budget) = budget {
            run = run.with_budget(budget);
        }
        Ok(Running { run, threads: Threads::new(self.common.threads, lane)?, _cancel: cancel, _active: active })
    }

    /// The answer from data that has been read, as columns.
    pub(crate) fn columns(&self, read: Read, plan: &Plan, run: &Run) -> Result<Vec<ArrayRef>> {
        let work = (self.spec.build)(&self.own)?;
        let report: &dyn Report = match &work {
            Work::Report(report) => report.as_ref(),
            Work::Apply(apply) => apply.fit(),
            Work::OnModel(_) | Work::Summarize(_) | Work::Choose(_) => return Err(Error::call("keeps no rows")),
            Work::Select(_) => return Ok(answer::columns(&self.ranking(read, plan, run)?, self.spec.name)),
        };
        let problem = self.problem(read, plan)?;
        if !self.compared.is_empty() {
            let compared = self.compared.iter().map(|(spec, own)| Compared::new(spec, own)).collect::<Result<Vec<_>>>()?;
            return Ok(report.report_on_all(&compared, &problem, run)?.into_iter().map(answer::column).collect());
        }
        let selector = self.repeated.as_ref().map(|(spec, own)| spec.selector(own)).transpose()?;
        Ok(report.report_on(selector.as_deref(), &problem, run)?.into_iter().map(answer::column).collect())
    }

    /// The answer of a selector, row by row. With `partition_by` a group that data cannot answer for says why, and the others still have
    /// answers.
    pub(crate) fn ranking(&self, read: Read, plan: &Plan, run: &Run) -> Result<Vec<answer::Row>> {
        let ranking = || -> Result<_> { self.answered(&self.problem(read, plan)?, plan, run) };
        ranking().or_else(|error| {
            let is_about_data = error.kind() == pursuit_udfs::Kind::Data;
            let is_group = is_about_data && !self.common.partition_by.is_empty();
            if is_group { Ok(vec![answer::refused(error.to_string())]) } else { Err(error) }
        })
    }

    /// The answer of a selector to a problem that is put already.
    pub(crate) fn answered(&self, problem: &Problem, plan: &Plan, run: &Run) -> Result<Vec<answer::Row>> {
        let ranking = pursuit_udfs::answer(&*self.selector()?, problem, run)?;
        Ok(answer::rows(problem, &ranking, &self.common, plan))
    }

    /// Leaves out what columns cost that are none of the features: a list of prices may be that of the whole table.
    pub(crate) fn forget_costs(&mut self, is_forgotten: impl Fn(&str) -> bool) {
        self.common.spending.costs.retain(|name, _| !is_forgotten(name));
        forget_costs(&mut self.own, is_forgotten);
    }

    /// The function's own options.
    pub(crate) fn own(&self) -> &Settings {
        &self.own
    }

    fn problem(&self, read: Read, plan: &Plan) -> Result<Problem> {
        let labels = self.repeated.as_ref().map_or(self.spec.labels, |(spec, _)| spec.labels);
        let problem = Problem::new(read.data, plan, &self.common, labels)?;
        let problem = problem.with_held_out(read.held_out).with_parts(read.parts);
        Ok(Problem { caution: self.caution.clone(), ..problem })
    }

    pub(crate) fn selector(&self) -> Result<Arc<dyn Selector>> {
        self.spec.selector(&self.own)
    }
}

/// A run of a question. Dropping it cancels what is still at work.
pub(crate) struct Running {
    run: Run,
    threads: Threads,
    _cancel: CancelOnDrop,
    _active: Arc<Active>,
}

impl Running {
    /// The same, of a share of the work.
    pub(crate) fn sharing(mut self, share: &Option<Arc<Share>>) -> Self {
        if let Some(share) = share {
            self.run = self.run.with_share(Arc::clone(share));
        }
        self
    }

    /// Works on threads of our own, away from the runtime's. A job must not wait for anything that is read.
    pub(crate) async fn job<T: Send + 'static>(&self, work: impl FnOnce(&Run) -> Result<T> + Send + 'static) -> Result<T> {
        let run = self.run.clone();
        let work = move || {
            run.until(None).check()?;
            panics::caught(|| work(&run))
        };
        self.threads.run(work).await
    }

    /// For whoever needs memory outside of a job. It does not keep the run going.
    pub(crate) fn run(&self) -> Run {
        self.run.clone()
    }
}

/// The same of settings as they were given.
pub(crate) fn forget_costs(settings: &mut Settings, is_forgotten: impl Fn(&str) -> bool) {
    if let Some(Value::Object(costs)) = settings.get_mut("costs") {
        let kept: Settings = std::mem::take(costs).into_iter().filter(|(name, _)| !is_forgotten(name)).collect();
        *costs = kept;
    }
}

/// The selector that a report repeats.
fn repeated(report: &dyn Report, registry: &Registry) -> Result<Option<(Arc<Spec>, Settings)>> {
    report.repeats().map(|repeats| look_up(repeats, registry)).transpose()
}

/// The selectors that a report compares.
fn compared(report: &dyn Report, registry: &Registry) -> Result<Vec<(Arc<Spec>, Settings)>> {
    let known: Vec<&Spec> = registry.specs.iter().map(Arc::as_ref).collect();
    let all: Vec<_> = report.compares(&known)?.into_iter().map(|one| look_up(one, registry)).collect::<Result<_>>()?;
    let is_twice = |at: &usize| all[..*at].iter().any(|(spec, _)| spec.name == all[*at].0.name);
    match (0..all.len()).find(is_twice) {
        Some(at) => Err(Error::call(format!("`selectors` names {} twice", all[at].0.name))),
        None => Ok(all),
    }
}

/// A selector of the registry, and its options, which are checked.
fn look_up(repeats: Repeats, registry: &Registry) -> Result<(Arc<Spec>, Settings)> {
    let spec = registry.find(&repeats.selector).filter(|spec| spec.is_selector());
    let spec = spec.ok_or_else(|| registry.no_selector(&repeats.selector))?;
    let within = |error: Error| Error::call(format!("`selector_options`: {error}"));
    let work = (spec.build)(&repeats.options).map_err(within)?;
    if let Some((option, need)) = repeats.options.keys().find_map(|option| Some((option, work.unused(option)?))) {
        return Err(within(Error::call(format!("`{option}` needs {need}; add that, or leave `{option}` out"))));
    }
    if matches!(spec.selector(&repeats.options)?.reads(), Reads::Pass(_)) {
        return Err(within(Error::call("a selection in one pass cannot be repeated; leave passes => 'one' out")));
    }
    Ok((spec, repeats.options))
}

/// An unknown name is reported before its value is looked at.
pub(crate) fn check_option(spec: &Spec, name: &str) -> Result<()> {
    let options = spec.all_options();
    if options.iter().any(|option| option.name == name) { Ok(()) } else { Err(pursuit_udfs::options::unknown(name, &options)) }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
