use crate::contract::report::{Kind, Report, Values};
use crate::datum_wise::{Asking, POLICY_COLUMNS, Policy};
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
        Ok(values(&self.asking.learn(self.lambda, problem, run)?))
    }
}

fn values(policy: &Policy) -> Vec<Values> {
    let rows = policy.to_rows();
    vec![
        Values::texts(rows.iter().map(|row| row.part.clone())),
        Values::Whole(rows.iter().map(|row| row.action_id).collect()),
        Values::Text(rows.iter().map(|row| row.action.clone()).collect()),
        Values::Whole(rows.iter().map(|row| row.feature_id).collect()),
        Values::Text(rows.iter().map(|row| row.feature.clone()).collect()),
        Values::Text(rows.iter().map(|row| row.level.clone()).collect()),
        Values::Number(rows.iter().map(|row| row.value).collect()),
    ]
}
