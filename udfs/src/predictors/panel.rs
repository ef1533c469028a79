//! Two judges of a set of features that see what the other misses: boosted trees and a network, each trained on the features alone and asked about rows held
//! out.

use std::sync::Arc;

use crate::judging::judge::{self, Verdict};
use crate::network::samples::{Inputs, Loss};
use crate::network::training::Training;
use crate::predictors::trees::{Others, Trees};
use crate::reading::bins::{BINS_MAX, Counts};
use crate::trees::boosting::Boosting;
use crate::trees::columns::Columns;
use crate::trees::forest::{Answer, LESSON_BYTES, Lesson};
use crate::{Error, Problem, Result, Rows, Run};

/// Trees of a judge. Of many classes, each of which has a tree in every round, there are fewer rounds of larger steps.
const TREES: usize = 300;
/// The fewest rounds, and the most.
const ROUNDS: (usize, usize) = (30, 100);

fn boosting(outputs: usize) -> Boosting {
    let rounds = (TREES / outputs.max(1)).clamp(ROUNDS.0, ROUNDS.1);
    Boosting { rounds, learning_rate: 10.0 / rounds as f64, ..Boosting::default() }
}

/// What the judges think of a set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Opinion {
    /// The share of the loss that the features save, against always predicting the same: of numbers that is R². The mean of both judges.
    pub skill: f64,
    /// Its standard error over the rows.
    pub error: f64,
}

/// Judges units of a problem on the rows that it holds out.
pub(crate) fn judge(problem: &Problem, units: &[usize], run: &Run) -> Result<Opinion> {
    let Some(test) = &problem.held_out else { return Err(Error::data("there are no rows to judge by")) };
    if units.is_empty() {
        return Ok(Opinion { skill: 0.0, error: 0.0 });
    }
    let rows = problem.rows();
    let some = problem.among(units);
    let all: Vec<usize> = (0..rows.rows()).collect();
    let bare = Inputs::new(&some, rows, Vec::new());
    // Places of rows, labels, predictions and what is counted of them.
    let _memory = run.reserve((rows.rows() + test.rows()) * (2 * bare.loss.outputs() + 40) * size_of::<f64>())?;
    let trees = Trees::Boosting(boosting(bare.loss.outputs()));
    let by_trees = trees.verdicts(&some, &bare, &all, Others::Table(test), run)?.remove(0);
    let constant = constant_loss(rows, test, &bare);
    let skills = [by_trees, by_network(&some, test, run)?].map(|verdict| {
        let error = verdict.loss_error / constant;
        (1.0 - verdict.loss / constant, error)
    });
    Ok(Opinion { skill: (skills[0].0 + skills[1].0) / 2.0, error: skills[0].1.min(skills[1].1) })
}

/// The mean skill of units over pieces of a table.
pub(crate) fn mean_skill(pieces: &[Problem], units: &[usize], run: &Run) -> Result<f64> {
    let skills = pieces.iter().map(|piece| Ok(judge(piece, units, run)?.skill)).collect::<Result<Vec<f64>>>()?;
    Ok(skills.iter().sum::<f64>() / skills.len().max(1) as f64)
}

/// What each unit gains in boosted trees that see all units, learnt from the problem's own rows.
pub(crate) fn gains(problem: &Problem, run: &Run) -> Result<Vec<f64>> {
    let rows = problem.rows();
    let bins = problem.bins(BINS_MAX, run)?;
    let _memory = run.reserve(rows.rows() * LESSON_BYTES)?;
    let lesson = Lesson {
        columns: Columns::of(problem, &bins),
        rows: (0..rows.rows() as u32).collect(),
        counts: Counts::of(rows),
        answer: Answer::of(rows),
    };
    let boosted = boosting(lesson.answer.outputs()).fit(&lesson, &[], run)?;
    Ok(lesson.columns.importances(problem, &boosted.gains(lesson.columns.len())))
}

fn by_network(problem: &Problem, test: &Rows, run: &Run) -> Result<Verdict> {
    let rows = problem.rows();
    let varies = |column: &usize| rows.columns[*column].iter().any(|x| *x != 0.0);
    let columns = problem.units.iter().flat_map(|unit| &unit.columns).copied().filter(varies).collect();
    let inputs = Inputs::new(problem, rows, columns);
    let samples = |rows: &Rows| inputs.samples(rows, &(0..rows.rows()).collect::<Vec<_>>(), run).map(Arc::new);
    let (own, others) = (samples(rows)?, samples(test)?);
    let training = Training::default();
    let steps = training.steps(own.pass_rows(&own.all()), judge::ROUNDS);
    let verdicts = judge::fit(&inputs, (&own, &own.all()), &[(&others, &others.all())], &training, steps, run)?;
    verdicts.into_iter().next().ok_or_else(|| Error::data("there are no rows to judge by"))
}

/// The mean loss on `test` of predicting the mean of the label's numbers, or the shares of its classes.
fn constant_loss(rows: &Rows, test: &Rows, inputs: &Inputs) -> f64 {
    let weight = |rows: &Rows, row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
    let mean = |of: &dyn Fn(f64) -> f64| {
        (0..test.rows()).map(|row| weight(test, row) * of(test.targets[row])).sum::<f64>() / test.weight()
    };
    let loss = match inputs.loss {
        Loss::Squared => mean(&|y| ((y - inputs.target.0) / inputs.target.1).powi(2)),
        Loss::Logistic | Loss::Softmax(_) => {
            let mut shares = vec![0.5; inputs.loss.outputs().max(2)];
            (0..rows.rows()).for_each(|row| shares[rows.targets[row] as usize] += weight(rows, row));
            let total: f64 = shares.iter().sum();
            mean(&|y| -(shares[y as usize] / total).ln())
        }
    };
    loss.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::Table;

    /// What carries the label has skill, what does not has none, for numbers and for classes, linear or not.
    #[test]
    fn signal_has_skill_and_noise_has_none() {
        for task in [Task::Regression, Task::Classification] {
            let table = Table { task: Some(task), ..Table::random(900, 3, 5) };
            let label: Vec<f64> =
                table.column(1).iter().map(|x| if task == Task::Regression { x * x } else { f64::from(x.abs() > 0.5) }).collect();
            let (problem, test) = table.problem_and_others(&label, 600);
            let problem = problem.with_held_out(Some(test));
            let skill = |units: &[usize]| judge(&problem, units, &Run::new(0)).unwrap().skill;
            assert!(skill(&[1]) > 0.85, "{task:?} {}", skill(&[1]));
            assert!(skill(&[0]) < 0.05, "{task:?} {}", skill(&[0]));
            assert!(skill(&[0, 1, 2]) > 0.6);
        }
    }
}
