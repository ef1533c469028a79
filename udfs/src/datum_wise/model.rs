//! A policy as the two functions apply it that decide rows: with a row of the answer for each row, or for each step of its way.

use crate::contract::model::{Applied, Made, Model};
use crate::datum_wise::decisions::{Decisions, Detail};
use crate::datum_wise::policy::{Action, Policy};
use crate::reading::block::{Block, NO_LEVEL};
use crate::reading::plan::Feature;
use crate::{Result, Run};

/// How a row was decided, in one row.
pub(crate) struct Classifier(pub Policy);

/// How a row was decided, step by step.
pub(crate) struct Stepper(pub Policy);

impl Model for Classifier {
    fn features(&self) -> Vec<Feature> {
        self.0.features()
    }

    fn names(&self, output: &str) -> Vec<String> {
        names(&self.0, output)
    }

    fn apply(&self, rows: usize, features: &[Block<'_>], wanted: &[&str], run: &Run) -> Result<Applied> {
        // Lists of names take longer than the decisions.
        let detail = if wanted.contains(&"features") { Detail::Units } else { Detail::Predictions };
        let decisions = self.0.classify(rows, features, detail, run)?;
        let wholes = |counts: &[u32]| Made::Wholes(counts.iter().map(|count| i64::from(*count)).collect());
        let mut columns = Vec::new();
        if wanted.contains(&"n_features") {
            columns.push(("n_features", wholes(&decisions.counts)));
        }
        if detail == Detail::Units {
            columns.push(("features", Made::Lists { lengths: decisions.counts, names: decisions.units }));
        }
        columns.push(("prediction", Made::Names(decisions.classes)));
        columns.push(("cost", Made::Numbers(decisions.costs)));
        columns.push(("score", Made::Numbers(decisions.scores)));
        Ok(Applied { rows: None, columns })
    }
}

impl Model for Stepper {
    fn features(&self) -> Vec<Feature> {
        self.0.features()
    }

    fn names(&self, output: &str) -> Vec<String> {
        names(&self.0, output)
    }

    fn apply(&self, rows: usize, features: &[Block<'_>], _: &[&str], run: &Run) -> Result<Applied> {
        Ok(steps(&self.0.classify(rows, features, Detail::Steps, run)?))
    }
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
