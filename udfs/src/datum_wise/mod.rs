//! Datum-wise sparse classification: a policy that asks for the features of a row one by one, and predicts its class when it knows
//! enough. [`learn`] trains one, [`Policy`] decides rows with it.

mod classify;
mod coded;
mod decisions;
mod memo;
mod model;
mod options;
mod policy;
mod regress;
mod rewards;
mod rollouts;
mod rounds;
mod sample;
mod states;
mod table;
mod train;
mod walk;

pub use decisions::{Decisions, Detail};
pub(crate) use model::Decider;
pub use options::Asking;
pub use policy::{Action, Decision, Policy, PolicyColumn, PolicyUnit, Step, Weights};
pub use rewards::{Discount, Neighbours, Purse, Relation, Rewards};
pub use table::{POLICY_COLUMNS, PolicyRow};
pub use train::Training;

use crate::{Error, Label, Problem, Result, Rows, Run};
use sample::Sample;
use walk::Walk;

impl Policy {
    /// Decides the rows that a policy was trained on, or others measured against them. The unit of each of the policy's columns is looked up by name.
    pub fn decide_rows(
        &self,
        problem: &Problem,
        rows: &Rows,
        run: &Run,
        mut receive: impl FnMut(usize, &Decision),
    ) -> Result<()> {
        let find = |column: &PolicyColumn| {
            let fits = |at: &usize| {
                problem.features()[rows.design[*at].feature] == column.feature && rows.origins[*at].coding == column.coding
            };
            (0..rows.design.len()).find(fits).expect("the policy was trained on these columns")
        };
        let columns: Vec<usize> = self.columns.iter().map(find).collect();
        let (opening, mut walk, mut decision) = (self.opening(), Walk::default(), Decision::default());
        for row in 0..rows.rows() {
            if row.is_multiple_of(ROWS_BETWEEN_CHECKS) {
                run.check()?;
            }
            self.decide(&opening, &mut walk, |column| rows.columns[columns[column]][row], &mut decision);
            receive(row, &decision);
        }
        Ok(())
    }
}

/// Rows that are decided between two looks at whether the run goes on.
const ROWS_BETWEEN_CHECKS: usize = 256;

/// Trains a policy on rows. `rewards` is asked for once the candidates are known: it gets the problem's unit of each.
pub fn learn(
    problem: &Problem,
    rows: &Rows,
    rewards: impl FnOnce(&[usize]) -> Result<Rewards>,
    training: &Training,
    run: &Run,
) -> Result<Policy> {
    let classes = classes(&rows.label)?;
    let twins = sample::twins(problem, rows, run)?;
    let must = |unit: &usize| problem.must_include.contains(unit);
    let candidates: Vec<usize> = (0..problem.units.len())
        .filter(|unit| problem.why_never(*unit).is_none() && (twins[*unit].is_none() || must(unit)))
        .collect();
    let columns: usize = candidates.iter().map(|unit| problem.units[*unit].columns.len()).sum();
    let _memory = run.reserve(Sample::bytes_for(rows.rows(), columns))?;
    let sample = Sample::new(problem, rows, &candidates, run)?;
    let rewards = rewards(&sample.unit_of)?;
    let given: Vec<usize> =
        problem.must_include.iter().filter_map(|unit| sample.unit_of.iter().position(|other| other == unit)).collect();
    let mut weights = train::train(&sample, &rewards, &given, training, run)?;
    let is_sound = |values: &[f64]| values.iter().all(|value| value.is_finite());
    if !(is_sound(&weights.start) && is_sound(&weights.known) && is_sound(&weights.values)) {
        return Err(Error::call("costs or weights of rows are too large to be added up; divide them all by the same number"));
    }
    // From the scaled values to the input's units.
    for (weights, (_, scale)) in weights.values.chunks_mut(weights.actions).zip(&sample.columns) {
        weights.iter_mut().for_each(|weight| *weight *= scale);
    }
    Ok(policy(problem, rows, &sample, classes, weights, rewards, given))
}

/// The classes of a label. Those who declare that they predict classes are given no other.
fn classes(label: &Label) -> Result<&[String]> {
    match label {
        Label::Classes(classes) => Ok(classes),
        Label::Numbers => Err(Error::data("the label is a number, and a policy predicts classes; set task => 'classification'")),
    }
}

fn policy(
    problem: &Problem,
    rows: &Rows,
    sample: &Sample,
    classes: &[String],
    weights: Weights,
    rewards: Rewards,
    given: Vec<usize>,
) -> Policy {
    let unit = |(unit, columns): (&usize, &std::ops::Range<usize>)| PolicyUnit {
        name: problem.units[*unit].name.clone(),
        columns: columns.clone(),
    };
    let column = |(column, _): &(usize, f64)| {
        let origin = &rows.origins[*column];
        let feature = problem.features()[rows.design[*column].feature].clone();
        PolicyColumn { feature, coding: origin.coding.clone(), mean: origin.mean }
    };
    let units = sample.unit_of.iter().zip(&sample.units).map(unit).collect();
    let columns = sample.columns.iter().map(column).collect();
    Policy { classes: classes.to_vec(), units, columns, weights, rewards, given }
}
