//! Forests, a single tree and boosted trees: as predictors of a pursuit, and as judges of a set of columns.

use crate::judging::folds::Folds;
use crate::judging::judge::{Verdict, judge};
use crate::network::samples::{Inputs, Loss, Samples};
use crate::predictors::model::{Instead, Learnt, Model, Probe};
use crate::predictors::refit::Learner;
use crate::reading::bins::{BINS_MAX, Bins, Counts};
use crate::trees::boosting::{Boosted, Boosting};
use crate::trees::columns::Columns;
use crate::trees::forest::{self, Answer, Forest, LESSON_BYTES, Lesson};
use crate::trees::tree::{LEAF, Tree};
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

    fn grow(&self, lesson: &Lesson<'_>, run: &Run) -> Result<Grown> {
        let (outputs, is_number) = (lesson.answer.outputs(), matches!(lesson.answer, Answer::Numbers(_)));
        let kind = match self {
            Trees::Forest(forest) => Kind::Forest(forest.fit(lesson, run)?),
            Trees::Boosting(boosting) => Kind::Boosted(boosting.fit(lesson, &[], run)?),
        };
        Ok(Grown { kind, outputs, is_number })
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
        let grown = self.grow(&lesson, run)?;
        let predicted = [(&columns, &judges), (&lesson.columns, &lesson.rows)];
        let predicted = predicted.map(|(columns, rows)| grown.predict(columns, rows, run));
        let verdict = |(predicted, samples): (Vec<f64>, &Samples)| {
            let all: Vec<u32> = (0..samples.rows() as u32).collect();
            judge(inputs, &self.outputs(inputs, &predicted), (samples, &all))
        };
        let parts = [&judged, &samples(inputs, rows, learn)];
        predicted.into_iter().zip(parts).map(|(predicted, part)| Ok(verdict((predicted?, part)))).collect()
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

/// Trees that have learnt.
pub(super) struct Grown {
    kind: Kind,
    pub outputs: usize,
    is_number: bool,
}

enum Kind {
    Forest(Vec<forest::Fitted>),
    Boosted(Boosted),
}

impl Grown {
    /// Predicts rows: numbers as they are, of classes the share of the second, or of each.
    pub fn predict(&self, columns: &Columns<'_>, rows: &[u32], run: &Run) -> Result<Vec<f64>> {
        match &self.kind {
            Kind::Forest(trees) => forest::predict(trees, columns, rows, self.outputs, run),
            Kind::Boosted(boosted) => {
                let mut predicted = boosted.predict(columns, rows, run)?;
                predicted.chunks_mut(self.outputs).for_each(|row| match self.is_number {
                    true => row[0] = boosted.scale.0 + boosted.scale.1 * row[0],
                    false => shares(row),
                });
                Ok(predicted)
            }
        }
    }

    /// Which of so many columns a split asks for.
    pub fn asked(&self, columns: usize) -> Vec<bool> {
        let mut asked = vec![false; columns];
        let mut note = |tree: &Tree| {
            tree.nodes.iter().filter(|node| node.column != LEAF).for_each(|node| asked[node.column as usize] = true);
        };
        match &self.kind {
            Kind::Forest(trees) => trees.iter().for_each(|fitted| note(&fitted.tree)),
            Kind::Boosted(boosted) => boosted.rounds.iter().flatten().for_each(|correction| note(&correction.tree)),
        }
        asked
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

impl Model for TreeLearner {
    fn learn<'a>(&'a self, folds: &'a Folds, columns: &[usize], learn: &[usize], run: &Run) -> Result<Box<dyn Learnt + 'a>> {
        let _lease = run.reserve(folds.rows() * (LESSON_BYTES + size_of::<f32>()))?;
        let short = |rows: &[usize]| rows.iter().map(|row| *row as u32).collect::<Vec<_>>();
        let answer = match folds.classes {
            None => Answer::Numbers(folds.targets.clone()),
            Some(classes) => Answer::classes(&folds.targets, classes),
        };
        // In the order in which they were chosen, so that the order of the table's columns does not matter.
        let columns = Columns::among(&self.bins, columns);
        let lesson = Lesson { columns, rows: short(learn), counts: Counts::new(&folds.weights), answer };
        let grown = self.trees.grow(&lesson, run)?;
        let asked = grown.asked(lesson.columns.len());
        Ok(Box::new(LearntTrees { folds, columns: lesson.columns, asked, grown }))
    }
}

impl Learner for TreeLearner {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        self.learn(folds, columns, learn, run)?.predict(rows, run)
    }
}

/// Trees that have learnt from folds.
struct LearntTrees<'a> {
    folds: &'a Folds,
    columns: Columns<'a>,
    /// Whether a split asks for each of the columns.
    asked: Vec<bool>,
    grown: Grown,
}

impl LearntTrees<'_> {
    fn ask(&self, columns: &Columns<'_>, rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let rows: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
        let predicted = self.grown.predict(columns, &rows, run)?;
        let centred = |row: &[f64]| row.iter().zip(&self.folds.offsets).map(|(value, offset)| value - offset).collect();
        Ok(predicted.chunks(self.grown.outputs).map(centred).collect())
    }
}

impl Learnt for LearntTrees<'_> {
    fn predict(&self, rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        self.ask(&self.columns, rows, run)
    }

    fn uses(&self, column: usize) -> bool {
        self.columns.features.iter().position(|feature| *feature == column).is_some_and(|at| self.asked[at])
    }

    fn probe<'b>(&'b self, rows: &'b [usize], _: &Run) -> Result<Box<dyn Probe + 'b>> {
        Ok(Box::new(ProbedTrees { learnt: self, rows }))
    }
}

struct ProbedTrees<'a> {
    learnt: &'a LearntTrees<'a>,
    rows: &'a [usize],
}

impl Probe for ProbedTrees<'_> {
    fn altered(&self, altered: &[usize], instead: &Instead<'_>, run: &Run) -> Result<Vec<Vec<f64>>> {
        let columns = &self.learnt.columns;
        // Only what these rows say of the columns that trees ask for; each of them stands by itself, because a row may come several times.
        let asked: Vec<usize> = (0..columns.len()).filter(|at| self.learnt.asked[*at]).collect();
        let _memory = run.reserve(asked.len() * self.rows.len())?;
        let code = |at: usize, place: usize| {
            let is_altered = altered.contains(&columns.features[at]);
            match instead {
                Instead::Rows(others) if is_altered => columns.codes[at][others[place]],
                Instead::Mean if is_altered => columns.binned[at].borders().partition_point(|border| *border < 0.0) as u8,
                _ => columns.codes[at][self.rows[place]],
            }
        };
        let mut codes = vec![Vec::new(); columns.len()];
        for at in asked {
            codes[at] = (0..self.rows.len()).map(|place| code(at, place)).collect::<Vec<u8>>();
        }
        let other = Columns { codes: codes.iter().map(Vec::as_slice).collect(), ..columns.clone() };
        self.learnt.ask(&other, &(0..self.rows.len()).collect::<Vec<_>>(), run)
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
