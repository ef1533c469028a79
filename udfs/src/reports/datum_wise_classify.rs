use crate::contract::model::{Apply, Model, Output};
use crate::contract::report::{Kind, Report, Values};
use crate::datum_wise::{Decider, Policy};
use crate::reports::datum_wise_policy::DatumWisePolicy;
use crate::{Result, apply};

apply! {
    /// Datum-wise sparse classification of every row.
    ///
    /// Learns a policy from the first table, as datum_wise does, and decides the rows of the table given as `test`, each by itself: it asks for a
    /// feature, looks at its value, and asks for another or predicts the class. Answers with a row for each: the columns of `key`,
    /// `prediction`, the `features` in the order in which they were asked for, `n_features`, `cost`, `score` (the expected reward of
    /// the prediction: minus the expected cost of a mistake), and `correct` where the label is known. Without `test` the rows of the first
    /// table are decided.
    ///
    /// With `policy`, a table that datum_wise_policy made, nothing is learnt: the rows of the first table are decided by it.
    /// Rows stream through, a batch at a time.
    #[apply(name = "datum_wise_classify", aliases = [], labels = Classes, model = "policy", made_by = "datum_wise_policy")]
    pub struct DatumWiseClassify {
        ..learning: DatumWisePolicy;
    }
}

impl Apply for DatumWiseClassify {
    fn fit(&self) -> &dyn Report {
        &self.learning
    }

    fn outputs(&self) -> Vec<(&'static str, Output)> {
        vec![
            ("prediction", Output::Class),
            ("features", Output::Of(Kind::Texts)),
            ("n_features", Output::Of(Kind::Whole)),
            ("cost", Output::Of(Kind::Number)),
            ("score", Output::Of(Kind::Number)),
            ("correct", Output::Correct),
        ]
    }

    fn read(&self, table: &[Values]) -> Result<Box<dyn Model>> {
        Ok(Box::new(Decider { policy: Policy::from_table(table)?, shows_steps: false }))
    }
}

apply! {
    /// The steps of a datum-wise sparse classification.
    ///
    /// Decides rows as datum_wise_classify does, and answers with a row for each step: the columns of `key`, `step`, `action`
    /// ('ask' or 'predict'), the `feature` that was asked for, the `prediction` at the end, and `score`, the expected reward from there on.
    #[apply(name = "datum_wise_steps", aliases = [], labels = Classes, model = "policy", made_by = "datum_wise_policy")]
    pub struct DatumWiseSteps {
        ..learning: DatumWisePolicy;
    }
}

impl Apply for DatumWiseSteps {
    fn fit(&self) -> &dyn Report {
        &self.learning
    }

    fn outputs(&self) -> Vec<(&'static str, Output)> {
        vec![
            ("step", Output::Of(Kind::Whole)),
            ("action", Output::Of(Kind::Text)),
            ("feature", Output::Of(Kind::Text)),
            ("prediction", Output::Class),
            ("score", Output::Of(Kind::Number)),
        ]
    }

    fn needs_key(&self) -> bool {
        true
    }

    fn read(&self, table: &[Values]) -> Result<Box<dyn Model>> {
        Ok(Box::new(Decider { policy: Policy::from_table(table)?, shows_steps: true }))
    }
}
