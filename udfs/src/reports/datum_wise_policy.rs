use crate::contract::report::{Kind, Report, Values};
use crate::datum_wise::{Asking, POLICY_COLUMNS};
use crate::{Check, Problem, Result, Run, report};

report! {
    /// The policy of a datum-wise sparse classifier.
    ///
    /// Trains as `datum_wise` does and answers with what was learnt: for every action, a class or a feature, the score before anything is known
    /// (`start`), what it gains when a feature becomes known (`known`), and what by its value (`weight`, in the input's units, above the `mean`).
    /// Prices and rules are rows too, so that the table is all that `datum_wise_classify(…, policy => …)` needs: keep it, read it, serve it.
    ///
    /// Source: Dulac-Arnold, Denoyer, Preux and Gallinari, 2012. Sequential approaches for learning datum-wise sparse representations.
    #[report(name = "datum_wise_policy", aliases = [], labels = Classes)]
    pub struct DatumWisePolicy {
        /// What asking for a feature costs, where a mistake costs 1.
        lambda: f64 = 0.01, Check::AtLeast(0.0);
        ..asking: Asking;
    }
}

impl Report for DatumWisePolicy {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        POLICY_COLUMNS.to_vec()
    }

    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let policy = self.asking.learn(self.lambda, problem, run)?;
        let _memory = run.reserve(policy.table_bytes())?;
        Ok(policy.to_table())
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        self.asking.unused(option)
    }
}
