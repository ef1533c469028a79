use crate::datum_wise::policy::{Action, Decision, Step};

/// What is kept of how rows were decided. The more it is, the longer it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// What was predicted, and at what cost.
    #[default]
    Predictions,
    /// Which units were known, too.
    Units,
    /// And what reward was expected at every step.
    Steps,
}

/// How rows were decided: a list for each thing that there is to know of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decisions {
    pub classes: Vec<u32>,
    /// The expected reward of each prediction.
    pub scores: Vec<f64>,
    /// How many units were known, and what they cost.
    pub counts: Vec<u32>,
    pub costs: Vec<f64>,
    /// These units, one row after the other, in the order in which they became known.
    pub units: Vec<u32>,
    /// The score of each step, one row after the other.
    pub(crate) steps: Vec<f64>,
    /// How many units are given; they come first in each row, and are no steps.
    pub(crate) given: usize,
    pub(crate) detail: Detail,
}

impl Decisions {
    pub(crate) fn new(rows: usize, given: usize, detail: Detail) -> Self {
        let (classes, counts) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let (scores, costs) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        Self { classes, scores, counts, costs, given, detail, ..Self::default() }
    }

    pub(crate) fn push(&mut self, decision: &Decision) {
        self.classes.push(decision.class as u32);
        self.scores.push(decision.score);
        self.counts.push(decision.units.len() as u32);
        self.costs.push(decision.cost);
        if self.detail >= Detail::Units {
            self.units.extend(decision.units.iter().map(|unit| *unit as u32));
        }
        if self.detail >= Detail::Steps {
            self.steps.extend(decision.steps.iter().map(|step| step.score));
        }
    }

    /// One row after the other. Units and steps are there if they were kept.
    pub fn rows(&self) -> impl Iterator<Item = Decision> {
        let (mut units, mut scores) = (self.units.as_slice(), self.steps.as_slice());
        (0..self.classes.len()).map(move |row| {
            let class = self.classes[row] as usize;
            let known = units.split_off(..units.len().min(self.counts[row] as usize)).unwrap_or_default();
            let known: Vec<usize> = known.iter().map(|unit| *unit as usize).collect();
            let actions = known.iter().skip(self.given).map(|unit| Action::Ask(*unit)).chain([Action::Predict(class)]);
            let steps: Vec<Step> = actions.zip(scores).map(|(action, score)| Step { action, score: *score }).collect();
            scores = &scores[steps.len()..];
            Decision { steps, units: known, class, cost: self.costs[row], score: self.scores[row] }
        })
    }
}
