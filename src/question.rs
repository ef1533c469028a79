use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::Fields;
use pursuit_udfs::{
    Budget, Common, Data, Error, Options, Plan, Problem, Reads, Report, Result, Rows, Run, Selector, Settings, Spec, Work,
};

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
}

impl Question {
    /// Parts the common options from the selector's own, and checks both.
    pub(crate) fn new(spec: Arc<Spec>, settings: &Settings) -> Result<Self> {
        let mut common = Common::default();
        let mut own = Settings::new();
        for (name, value) in settings {
            check_option(&spec, name)?;
            if let Some(result) = common.set(name, value) {
                result?;
            } else if (spec.options)().iter().any(|option| option.name == name) {
                own.insert(name.clone(), value.clone());
            }
        }
        let work = (spec.build)(&own)?;
        if let Some((option, need)) = own.keys().find_map(|option| Some((option, work.unused(option)?))) {
            return Err(Error::call(format!("`{option}` needs {need}; add that, or leave `{option}` out")));
        }
        let (reads, fields, is_prefix) = match work {
            Work::Select(selector) => (selector.reads(), answer::FIELDS.clone(), selector.is_prefix()),
            Work::Report(report) => (Reads::Rows, answer::fields(&report.columns()), false),
            // What is asked of the table is the model; src/apply.rs has rows decided by it.
            Work::Apply(apply) => (Reads::Rows, answer::fields(&apply.fit().columns()), false),
        };
        Ok(Self { spec, common, reads, fields, is_prefix, own })
    }

    /// Adds the groups that the selector's own options make of the columns.
    pub(crate) fn group(&mut self, features: &[String]) -> Result<()> {
        let Work::Select(selector) = (self.spec.build)(&self.own)? else { return Ok(()) };
        let groups = selector.groups(features)?;
        if !groups.is_empty() && !self.common.groups.is_empty() {
            return Err(Error::call("`groups` cannot be given beside an option that groups the columns itself; leave one out"));
        }
        self.common.groups.extend(groups);
        Ok(())
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
        if let Some(budget) = budget {
            run = run.with_budget(budget);
        }
        Ok(Running { run, threads: Threads::new(self.common.threads, lane)?, _cancel: cancel, _active: active })
    }

    /// The answer from data that has been read, as columns.
    pub(crate) fn columns(&self, data: Data, held_out: Option<Rows>, plan: &Plan, run: &Run) -> Result<Vec<ArrayRef>> {
        let work = (self.spec.build)(&self.own)?;
        let report: &dyn Report = match &work {
            Work::Report(report) => report.as_ref(),
            Work::Apply(apply) => apply.fit(),
            Work::Select(_) => return Ok(answer::columns(&self.ranking(data, held_out, plan, run)?, self.spec.name)),
        };
        let problem = Problem::new(data, plan, &self.common, self.spec.labels)?.with_held_out(held_out);
        Ok(report.report(&problem, run)?.into_iter().map(answer::column).collect())
    }

    /// The answer of a selector, row by row. With `partition_by` a group that data cannot answer for says why, and the others still have
    /// answers.
    pub(crate) fn ranking(&self, data: Data, held_out: Option<Rows>, plan: &Plan, run: &Run) -> Result<Vec<answer::Row>> {
        let ranking = || -> Result<_> {
            let problem = Problem::new(data, plan, &self.common, self.spec.labels)?.with_held_out(held_out);
            let ranking = pursuit_udfs::answer(&*self.selector()?, &problem, run)?;
            Ok(answer::rows(&problem, &ranking, &self.common, plan))
        };
        ranking().or_else(|error| {
            let is_about_data = error.kind() == pursuit_udfs::Kind::Data;
            let is_group = is_about_data && !self.common.partition_by.is_empty();
            if is_group { Ok(vec![answer::refused(error.to_string())]) } else { Err(error) }
        })
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
    /// Works on threads of our own, away from the runtime's. A job must not wait for anything that is read.
    pub(crate) async fn job<T: Send + 'static>(&self, work: impl FnOnce(&Run) -> Result<T> + Send + 'static) -> Result<T> {
        let run = self.run.clone();
        let work = move || {
            run.check()?;
            panics::caught(|| work(&run))
        };
        self.threads.run(work).await
    }

    /// For whoever needs memory outside of a job. It does not keep the run going.
    pub(crate) fn run(&self) -> Run {
        self.run.clone()
    }
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
