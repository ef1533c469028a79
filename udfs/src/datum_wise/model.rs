//! A policy as the two functions apply it that decide rows: with a row of the answer for each row, or for each step of its way.

use crate::contract::model::{Applied, Made, Model};
use crate::datum_wise::decisions::{Decisions, Detail};
use crate::datum_wise::policy::{Action, Policy};
use crate::reading::block::{Block, NO_LEVEL};
use crate::reading::plan::Feature;
use crate::{Result, Run};

/// A policy that decides rows.
pub(crate) struct Decider {
    pub policy: Policy,
    /// A row of the answer for each step, instead of one for each row.
    pub shows_steps: bool,
}

impl Model for Decider {
    fn features(&self) -> Vec<Feature> {
        self.policy.features()
    }

    fn names(&self, output: &str) -> Vec<String> {
        names(&self.policy, output)
    }

    fn apply(&self, rows: usize, features: &[Block<'_>], wanted: &[&str], run: &Run) -> Result<Applied> {
        let detail = match wanted.contains(&"features") {
            _ if self.shows_steps => Detail::Steps,
            // Lists of names take longer than the decisions.
            true => Detail::Units,
            false => Detail::Predictions,
        };
        let decisions = self.policy.classify(rows, features, detail, run)?;
        Ok(if self.shows_steps { steps(&decisions) } else { rows_of(decisions, wanted) })
    }
}

fn rows_of(decisions: Decisions, wanted: &[&str]) -> Applied {
    let mut columns = Vec::new();
    if wanted.contains(&"n_features") {
        columns.push(("n_features", Made::Wholes(decisions.counts.iter().map(|count| i64::from(*count)).collect())));
    }
    if wanted.contains(&"features") {
        columns.push(("features", Made::Lists { lengths: decisions.counts, names: decisions.units }));
    }
    columns.push(("prediction", Made::Names(decisions.classes)));
    columns.push(("cost", Made::Numbers(decisions.costs)));
    columns.push(("score", Made::Numbers(decisions.scores)));
    Applied { rows: None, columns }
}

/// What the numbers of an output stand for.
fn names(policy: &Policy, output: &str) -> Vec<String> {
    match output {
        "prediction" => policy.classes.clone(),
        "feature" | "features" => policy.units.iter().map(|unit| unit.name.clone()).collect(),
        "action" => vec!["predict".into(), "ask".into()],
        _ => Vec::new(),
    }
}

fn steps(decisions: &Decisions) -> Applied {
    let (mut rows, mut places, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    let (mut actions, mut units, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    for (row, decision) in decisions.rows().enumerate() {
        for (at, step) in decision.steps.iter().enumerate() {
            rows.push(row as u32);
            places.push(at as i64 + 1);
            scores.push(step.score);
            let (action, unit, class) = match step.action {
                Action::Ask(unit) => (1, unit as u32, NO_LEVEL),
                Action::Predict(class) => (0, NO_LEVEL, class as u32),
            };
            actions.push(action);
            units.push(unit);
            classes.push(class);
        }
    }
    let columns = vec![
        ("step", Made::Wholes(places)),
        ("action", Made::Names(actions)),
        ("feature", Made::Names(units)),
        ("prediction", Made::Names(classes)),
        ("score", Made::Numbers(scores)),
    ];
    Applied { rows: Some(rows), columns }
}
