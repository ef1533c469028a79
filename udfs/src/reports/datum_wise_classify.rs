use crate::contract::selector::{Decides, Work};
use crate::datum_wise::Asking;
use crate::{Check, Declared, Labels, Options, Result, Settings, Spec, options};

options! {
    /// The options of `datum_wise_classify` and `datum_wise_steps`.
    pub struct DatumWiseClassify {
        /// Columns that tell the rows apart; they come first in the answer.
        key: Vec<String> = Vec::new();
        /// A table that datum_wise_policy made, to decide by instead of learning.
        policy: Option<String> = None;
        /// What asking for a feature costs, where a mistake costs 1.
        lambda: f64 = 0.01, Check::AtLeast(0.0);
        ..asking: Asking;
    }
}

/// `datum_wise_steps`: the same decisions, a row for each step.
pub struct DatumWiseSteps;

impl Declared for DatumWiseClassify {
    fn spec() -> Spec {
        Spec {
            name: "datum_wise_classify",
            aliases: &[],
            documentation: &[
                " Datum-wise sparse classification of every row.",
                "",
                " Learns from the first table, as datum_wise does, and decides the rows of the table given as `test` one by one: asks for a",
                " feature, looks at its value, asks for another or predicts the class. Answers with a row for each: the columns of `key`,",
                " `prediction`, the `features` in the order in which they were asked for, `n_features`, `cost`, `score` (the expected reward of",
                " the prediction: minus the chance of a mistake), and `correct` where the label is known. Without `test` the rows of the first",
                " table are decided.",
                "",
                " With `policy`, a table that datum_wise_policy made, nothing is learnt: the rows of the first table are decided by it.",
                " Rows stream through, a batch at a time.",
            ],
            build: |settings| build(settings, false),
            ..common()
        }
    }
}

impl Declared for DatumWiseSteps {
    fn spec() -> Spec {
        Spec {
            name: "datum_wise_steps",
            aliases: &[],
            documentation: &[
                " The steps of a datum-wise sparse classification.",
                "",
                " Decides rows as datum_wise_classify does, and answers with a row for each step: the columns of `key`, `step`, `action`",
                " ('ask' or 'predict'), the `feature` that was asked for, the `prediction` at the end, and `score`, the expected reward from there on.",
            ],
            build: |settings| build(settings, true),
            ..common()
        }
    }
}

fn common() -> Spec {
    Spec {
        name: "",
        aliases: &[],
        documentation: &[],
        labels: Labels::Classes,
        score: "",
        table: Some(("test", "The rows to decide, with the same columns; the label may be missing.")),
        options: <DatumWiseClassify as Options>::specs,
        build: |settings| build(settings, false),
    }
}

fn build(settings: &Settings, shows_steps: bool) -> Result<Work> {
    let classify: DatumWiseClassify = crate::settings::options::read(settings)?;
    Ok(Work::Decide(Decides { key: classify.key, shows_steps }))
}
