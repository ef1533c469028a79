use std::any::Any;

use crate::contract::report::{Kind, Values};
use crate::contract::summary::{Summarize, Summary, Types};
use crate::reading::block::Block;
use crate::{Error, LabelKind, Moments, Plan, Result, Task, summary};

summary! {
    /// The correlations of all columns with each other.
    ///
    /// A row for each pair of columns that are numbers, and for each with itself: `feature`, `other` and their `correlation`, which is NULL where one of them is constant. Texts are
    /// left out. NULLs are filled with the mean of their column, as they are for linear selectors.
    ///
    /// Cost: one pass, `rows × columns²`, of at most 2,000 columns.
    #[summary(name = "correlation_matrix", aliases = [], asks = NoLabel)]
    pub struct CorrelationMatrix {}
}

const COLUMNS_MAX: usize = 2000;

impl Summarize for CorrelationMatrix {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        vec![("feature", Kind::Text), ("other", Kind::Text), ("correlation", Kind::Number)]
    }

    fn reads_texts(&self) -> bool {
        false
    }

    fn begin(&self, plan: &Plan, _: &Types) -> Result<Box<dyn Summary>> {
        let count = plan.features.len();
        if count > COLUMNS_MAX {
            return Err(Error::call(format!("takes at most {COLUMNS_MAX} columns, got {count}; name some with `features`")));
        }
        // Moments have a label, of which nobody asks anything.
        let plan = Plan { label_kind: LabelKind::Float, task: Task::Regression, ..plan.clone() };
        Ok(Box::new(Correlating { moments: Moments::new(plan) }))
    }
}

struct Correlating {
    moments: Moments,
}

impl Summary for Correlating {
    fn push(&mut self, rows: usize, _: Option<Block<'_>>, features: &[Block<'_>]) -> Result<()> {
        self.moments.update(rows, Block::Numbers(&vec![0.0; rows]), None, features)
    }

    fn merge(&mut self, other: Box<dyn Summary>) -> Result<()> {
        match other.into_any().downcast::<Correlating>() {
            Ok(other) => self.moments.merge(&other.moments),
            Err(_) => Ok(()),
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn bytes(&self) -> usize {
        self.moments.bytes()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Values>> {
        let gram = self.moments.finish();
        let d = gram.design.len();
        let name = |at: usize| self.moments.plan().features[gram.design[at].feature].name.clone();
        let energy = |at: usize| gram.matrix[at * d + at];
        let correlation = |(i, j): (usize, usize)| {
            let both = energy(i).sqrt() * energy(j).sqrt();
            (both > 0.0).then(|| if i == j { 1.0 } else { (gram.matrix[i * d + j] / both).clamp(-1.0, 1.0) })
        };
        let pairs = || (0..d).flat_map(|i| (0..d).map(move |j| (i, j)));
        Ok(vec![
            Values::texts(pairs().map(|(i, _)| name(i))),
            Values::texts(pairs().map(|(_, j)| name(j))),
            Values::Number(pairs().map(correlation).collect()),
        ])
    }
}
