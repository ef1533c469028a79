//! The suite's limits: options, threads at sizes at which they are used, cancellation, memory.

use std::sync::Arc;
use std::time::Duration;

use super::checks::{self, Meter, cancelled_after};
use super::contract::Checker;
use super::planted;
use crate::{Kind, Labels, Reads, Run, Spec};

/// How long a cancelled run may go on here. What is promised is a tenth of this, on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(1);

/// Documentation and options.
pub(super) fn options(checker: &Checker<'_>, spec: &Spec) {
    checker.documentation();
    checks::options(spec, &mut |is_kept, promise, detail| checker.promise(is_kept, promise, detail));
}

pub(super) fn run(checker: &Checker<'_>) {
    let spec = checker.spec;
    // Who predicts classes one by one takes time in the square of the columns.
    let (rows, columns) = if spec.labels == Labels::Classes { (1000, 40) } else { (5000, 400) };
    let selector = match spec.selector(&checks::short(spec)) {
        Ok(selector) => selector,
        Err(error) => checker.fail("short trainings are taken", error),
    };
    let large = Checker { spec, selector: &*selector, from_rows: checker.from_rows, promises: Default::default() };
    let (table, label) = planted(rows, columns, &[3, columns - 2], 1.0, 61);
    let problem = large.ask(&table.k(2), &label);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        pool.install(|| crate::answer(&*selector, &problem, &Run::new(1)))
    };
    checker.promise(with(1) == with(4), "a large table has the same answer on one thread and four", ());

    let (after, result) = cancelled_after(Duration::from_millis(20), |run| crate::answer(checker.selector, &problem, run));
    let is_fine = after < PATIENCE && (result.is_ok() || Checker::is_cancelled(&result));
    checker.promise(is_fine, "it stops when it is cancelled in the middle", (after, result.map(|ranking| ranking.units())));
    let (_, result) = cancelled_after(Duration::ZERO, |run| {
        while run.check().is_ok() {
            std::thread::yield_now();
        }
        checker.selector.select(&problem, run)
    });
    checker.promise(Checker::is_cancelled(&result), "it does not begin when it is cancelled", result);

    let (table, label) = planted(3000, 20, &[3, 7], 1.0, 67);
    let table = table.k(2);
    // A table of its own each time, because a table keeps what was made of it for the next question.
    let ask = |meter: &Arc<Meter>| {
        crate::answer(&*selector, &large.ask(&table, &label), &Run::new(1).with_budget(Arc::clone(meter) as _))
    };
    let meter = Arc::new(Meter::default());
    let metered = ask(&meter);
    let free = crate::answer(&*selector, &large.ask(&table, &label), &Run::new(1));
    checker.promise(metered == free, "asking for memory changes no answer", (metered, free));
    checker.promise(meter.used() == 0, "memory is given back", meter.used());
    let asks = meter.most() > 0;
    // Second moments are the table itself; rows are worked on in copies.
    checker.promise(asks || selector.reads() == Reads::Moments, "memory that grows with rows is asked for", ());
    if asks {
        let refused = ask(&Arc::new(Meter::with_limit(meter.most() / 2)));
        let is_limit = refused.as_ref().is_err_and(|error| error.kind() == Kind::Limit);
        checker.promise(is_limit, "less memory than it needs is refused", refused);
    }
}
