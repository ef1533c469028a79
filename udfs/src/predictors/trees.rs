//! Forests, a single tree and boosted trees: as predictors of a pursuit, and as judges of a set of columns.

use crate::judging::folds::Folds;
use crate::judging::judge::{Verdict, judge};
use crate::network::samples::{Inputs, Loss, Samples};
use crate::predictors::refit::Learner;
use crate::reading::bins::{BINS_MAX, Bins, Counts};
use crate::trees::boosting::Boosting;
use crate::trees::columns::Columns;
use crate::trees::forest::{self, Answer, Forest, LESSON_BYTES, Lesson};
use crate::{Problem, Result, Rows, Run};

/// What is grown.
#[derive(Debug, Clone)]
pub(crate) enum Trees {
    Forest(Forest),
    Boosting(Boosting),
}

impl Trees {
    /// A random forest.
    pub fn forest(trees: usize) -> Self {
        Self::Forest(Forest {
            trees,
            depth: None,
            leaf_rows: 1,
            features_per_split: None,
            samples: true,
            is_random: false,
            purpose: "forest",
        })
    }

    /// One tree of all rows. A leaf has five of them at least: one with a row apiece only remembers.
    pub fn tree() -> Self {
        Self::Forest(Forest {
            trees: 1,
            depth: None,
            leaf_rows: 5,
            features_per_split: Some(usize::MAX),
            samples: false,
            is_random: false,
            purpose: "tree",
        })
    }

    /// So many rounds of small trees.
    pub fn boosting(rounds: usize) -> Self {
        Self::Boosting(Boosting { rounds, learning_rate: 0.3, depth: 4, ..Boosting::default() })
    }

    /// Learns, and predicts rows of each of several sets of columns: numbers as they are, of classes the share of the second, or of each.
    fn predict(&self, lesson: &Lesson<'_>, asked: &[(&Columns<'_>, &[u32])], run: &Run) -> Result<Vec<Vec<f64>>> {
        let outputs = lesson.answer.outputs();
        match self {
            Trees::Forest(forest) => {
                let trees = forest.fit(lesson, run)?;
                asked.iter().map(|(columns, rows)| forest::predict(&trees, columns, rows, outputs, run)).collect()
            }
            Trees::Boosting(boosting) => {
                let boosted = boosting.fit(lesson, &[], run)?;
                let predict = |(columns, rows): &(&Columns<'_>, &[u32])| -> Result<Vec<f64>> {
                    let mut outputs_of_rows = boosted.predict(columns, rows, run)?;
                    outputs_of_rows.chunks_mut(outputs).for_each(|row| match &lesson.answer {
                        Answer::Numbers(_) => row[0] = boosted.scale.0 + boosted.scale.1 * row[0],
                        Answer::Classes { .. } => shares(row),
                    });
                    Ok(outputs_of_rows)
                };
                asked.iter().map(predict).collect()
            }
        }
    }

    /// Least share of a class that is believed: with a few trees none is impossible.
    fn least_share(&self) -> f64 {
        match self {
            Trees::Forest(forest) => 0.5 / (forest.trees + 1) as f64,
            Trees::Boosting(_) => 1e-9,
        }
    }

    /// Learns from some rows of a problem, and judges other rows, which are measured against them, and those learnt from.
    pub fn verdicts(
        &self,
        problem: &Problem,
        inputs: &Inputs,
        learn: &[usize],
        others: Others<'_>,
        run: &Run,
    ) -> Result<Vec<Verdict>> {
        let rows = problem.rows();
        let bins = problem.bins(BINS_MAX, run)?;
        let _lease = run.reserve(rows.rows() * (LESSON_BYTES + size_of::<f32>()))?;
        let short = |rows: &[usize]| rows.iter().map(|row| *row as u32).collect::<Vec<_>>();
        let lesson = Lesson {
            columns: Columns::of(problem, &bins),
            rows: short(learn),
            counts: Counts::of(rows),
            answer: Answer::of(rows),
        };
        let (codes, judges, judged) = match others {
            Others::Rows(judged) => (None, short(judged), samples(inputs, rows, judged)),
            Others::Table(test) => {
                let all: Vec<usize> = (0..test.rows()).collect();
                (Some(bins.codes_of(test, run)?), short(&all), samples(inputs, test, &all))
            }
        };
        let columns = codes.as_ref().map_or_else(|| lesson.columns.clone(), |codes| lesson.columns.on(codes));
        let predicted = self.predict(&lesson, &[(&columns, &judges), (&lesson.columns, &lesson.rows)], run)?;
        let verdict = |(predicted, samples): (Vec<f64>, &Samples)| {
            let all: Vec<u32> = (0..samples.rows() as u32).collect();
            judge(inputs, &self.outputs(inputs, &predicted), (samples, &all))
        };
        Ok(predicted.into_iter().zip([&judged, &samples(inputs, rows, learn)]).map(verdict).collect())
    }

    /// Predictions as a network's outputs: standardised numbers, log odds, or the logarithms of shares.
    fn outputs(&self, inputs: &Inputs, predicted: &[f64]) -> Vec<f32> {
        let least = self.least_share();
        let output = |value: &f64| match inputs.loss {
            Loss::Squared => (value - inputs.target.0) / inputs.target.1,
            Loss::Logistic => {
                let share = value.clamp(least, 1.0 - least);
                (share / (1.0 - share)).ln()
            }
            Loss::Softmax(_) => value.max(least).ln(),
        };
        predicted.iter().map(|value| output(value) as f32).collect()
    }
}

/// Rows that judge.
pub(crate) enum Others<'a> {
    /// Of the same table.
    Rows(&'a [usize]),
    Table(&'a Rows),
}

/// Log odds as shares: of one output that of the second class, of several that of each.
fn shares(odds: &mut [f64]) {
    if let [odds] = odds {
        *odds = 1.0 / (1.0 + (-*odds).exp());
        return;
    }
    let most = odds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    odds.iter_mut().for_each(|odds| *odds = (*odds - most).exp());
    let total: f64 = odds.iter().sum();
    odds.iter_mut().for_each(|odds| *odds /= total);
}

/// Labels and weights of rows, without their values.
fn samples(inputs: &Inputs, rows: &Rows, chosen: &[usize]) -> Samples {
    let target = |row: &usize| match inputs.loss {
        Loss::Squared => ((rows.targets[*row] - inputs.target.0) / inputs.target.1) as f32,
        _ => rows.targets[*row] as f32,
    };
    let weights = if rows.weights.is_empty() { Vec::new() } else { chosen.iter().map(|row| rows.weights[*row]).collect() };
    Samples { targets: chosen.iter().map(target).collect(), weights, ..Samples::default() }
}

/// Trees that predict the rows of folds, whose columns are cut once.
pub(crate) struct TreeLearner {
    trees: Trees,
    bins: Bins,
}

impl TreeLearner {
    pub fn new(trees: Trees, folds: &Folds, run: &Run) -> Result<Self> {
        Ok(Self { trees, bins: Bins::of_columns(&folds.columns, &folds.weights, BINS_MAX, run)? })
    }
}

impl Learner for TreeLearner {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let _lease = run.reserve(folds.rows() * (LESSON_BYTES + size_of::<f32>()))?;
        let short = |rows: &[usize]| rows.iter().map(|row| *row as u32).collect::<Vec<_>>();
        let answer = match folds.classes {
            None => Answer::Numbers(folds.targets.clone()),
            Some(classes) => Answer::classes(&folds.targets, classes),
        };
        // In the order in which they were chosen, so that the order of the table's columns does not matter.
        let columns = Columns::among(&self.bins, columns);
        let lesson = Lesson { columns, rows: short(learn), counts: Counts::new(&folds.weights), answer };
        let predicted = self.trees.predict(&lesson, &[(&lesson.columns, &short(rows))], run)?.remove(0);
        let centred = |row: &[f64]| row.iter().zip(&folds.offsets).map(|(value, offset)| value - offset).collect();
        Ok(predicted.chunks(lesson.answer.outputs()).map(centred).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;
    use crate::{Split, Task};

    fn metric(verdict: &Verdict, name: &str) -> f64 {
        verdict.metrics.iter().find(|(metric, _)| *metric == name).unwrap().1.unwrap()
    }

    /// A threshold, judged on rows of the same table and on those of another.
    #[test]
    fn judges_see_what_was_learnt() {
        let run = Run::new(0);
        for classes in [0, 2, 3] {
            let task = if classes == 0 { Task::Regression } else { Task::Classification };
            let table = Table { task: Some(task), ..Table::random(300, 3, 5) };
            let label: Vec<f64> = match classes {
                0 => table.column(1).iter().map(|x| 10.0 + 3.0 * f64::from(*x > 0.0)).collect(),
                classes => table.column(1).iter().map(|x| (x + 1.0).floor().clamp(0.0, f64::from(classes - 1))).collect(),
            };
            let (problem, test) = table.problem_and_others(&label, 200);
            let inputs = Inputs::new(&problem, problem.rows(), Vec::new());
            for trees in [Trees::forest(30), Trees::tree(), Trees::boosting(60)] {
                let all = Split::none(200).train;
                let by_table = trees.verdicts(&problem, &inputs, &all, Others::Table(&test), &run).unwrap();
                let by_rows = trees.verdicts(&problem, &inputs, &all[..150], Others::Rows(&all[150..]), &run).unwrap();
                for verdicts in [by_table, by_rows] {
                    assert!(verdicts.iter().all(|verdict| verdict.score().unwrap() > 0.93), "{classes} {trees:?} {verdicts:?}");
                    if classes == 2 {
                        assert!(metric(&verdicts[0], "auc") > 0.97 && metric(&verdicts[0], "log_loss") < 0.3);
                    }
                }
            }
        }
    }
}
