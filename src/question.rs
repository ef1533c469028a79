use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::Fields;
use pursuit_udfs::{
    Budget, Common, Data, Error, Options, Plan, Problem, Reads, Result, Rows, Run, Selector, Settings, Spec, Work,
};

use crate::answer;
use crate::progress::Progress;

/// A selector or report with all its options: what remains to be known is the data.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub spec: Arc<Spec>,
    pub common: Common,
    /// What it needs, given its options.
    pub reads: Reads,
    /// The columns of its answer.
    pub fields: Fields,
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
        let (reads, fields) = match (spec.build)(&own)? {
            Work::Select(selector) => {
                if let Some((option, need)) = own.keys().find_map(|option| Some((option, selector.unused(option)?))) {
                    return Err(Error::call(format!("`{option}` needs {need}; add that, or leave `{option}` out")));
                }
                (selector.reads(), answer::FIELDS.clone())
            }
            Work::Report(report) => (Reads::Rows, answer::fields(&report.columns())),
            Work::Decide(_) => return Err(Error::call("decides rows, which only its own operator can do")),
        };
        Ok(Self { spec, common, reads, fields, own })
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

    /// The columns of the answer, from data that has been read.
    pub(crate) async fn answer(
        &self,
        progress: Arc<Progress>,
        budget: Option<Arc<dyn Budget>>,
        data: impl FnOnce() -> Result<(Data, Option<Rows>, Plan)> + Send + 'static,
    ) -> Result<Vec<ArrayRef>> {
        let question = self.clone();
        let work = move |run: &Run| {
            // What is wrong with the whole table ends the query; what is wrong with one group is that group's answer.
            let (data, held_out, plan) = data()?;
            question.work(data, held_out, &plan, run).or_else(|error| question.refused(error))
        };
        self.run(progress, budget, work).await
    }

    /// Works on rayon, away from the runtime's threads. Dropping the future cancels the run.
    pub(crate) async fn run(
        &self,
        progress: Arc<Progress>,
        budget: Option<Arc<dyn Budget>>,
        work: impl FnOnce(&Run) -> Result<Vec<ArrayRef>> + Send + 'static,
    ) -> Result<Vec<ArrayRef>> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let _cancel = CancelOnDrop(Arc::clone(&cancelled));
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
        if let Some(budget) = budget {
            run = run.with_budget(budget);
        }
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let job = move || {
            // A panic would end the process from a thread of rayon's; here it ends the query.
            let result = catch_unwind(AssertUnwindSafe(|| work(&run)));
            let _ = sender.send(result.unwrap_or_else(|_| Err(Error::data("internal error in the selector; please report it"))));
        };
        match self.common.threads {
            0 => rayon::spawn(job),
            threads => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.map_err(|error| Error::limit(format!("cannot start {threads} threads: {error}")))?.spawn(job);
            }
        }
        receiver.await.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    pub(crate) fn selector(&self) -> Result<Arc<dyn Selector>> {
        self.spec.selector(&self.own)
    }

    fn work(&self, data: Data, held_out: Option<Rows>, plan: &Plan, run: &Run) -> Result<Vec<ArrayRef>> {
        let problem = Problem::new(data, plan, &self.common, self.spec.labels)?.with_held_out(held_out);
        Ok(match (self.spec.build)(&self.own)? {
            Work::Select(selector) => {
                let ranking = pursuit_udfs::answer(&*selector, &problem, run)?;
                answer::columns(&answer::rows(&problem, &ranking, &self.common, plan), self.spec.name)
            }
            Work::Report(report) => report.report(&problem, run)?.into_iter().map(answer::column).collect(),
            Work::Decide(_) => unreachable!("refused when the question was put"),
        })
    }

    /// What a group's failure means: with `partition_by` the other groups still have answers.
    fn refused(&self, error: Error) -> Result<Vec<ArrayRef>> {
        let is_about_data = error.kind() == pursuit_udfs::Kind::Data;
        if is_about_data && !self.common.partition_by.is_empty() && self.spec.is_selector() {
            Ok(answer::columns(&[answer::refused(error.to_string())], self.spec.name))
        } else {
            Err(error)
        }
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
