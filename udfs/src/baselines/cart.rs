use crate::reading::bins::{BINS_MAX, Counts};
use crate::trees::columns::Columns;
use crate::trees::forest::{Answer, Forest, LESSON_BYTES, Lesson};
use crate::trees::pruning::Pruned;
use crate::{Check, Error, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// A pruned tree (CART), and the features on its paths.
    ///
    /// Grows one tree on all rows, each split the one that purifies the label most (by Gini's impurity, or the squared error of numbers), and cuts it back to where its splits pay for
    /// themselves. Each row is decided by the few features on its path; the next row may need others. Features are ranked by the share of the rows that are asked for them, as those of
    /// `datum_wise` are. It is the simplest rival of that.
    ///
    /// A split goes, with all below it, if what it saves is no more than `complexity` of the error without any split for each leaf more. `note` of
    /// the first says how many features a row needs on average. Numbers are cut into at most 255 bins; NULL is in a bin of its own.
    ///
    /// Cost: `rows × features × depth`.
    ///
    /// Source: Breiman, Friedman, Olshen and Stone, 1984. Classification and regression trees.
    #[selector(
        name = "cart",
        aliases = [],
        labels = Any,
        score = "share of rows that ask for the feature",
    )]
    pub struct Cart {
        /// What a leaf must save, as a share of the error without any split.
        complexity: f64 = 0.01, Check::Between(0.0, 1.0);
        /// Longest way from the root to a leaf.
        depth: usize = 100, Check::Between(1.0, 1000.0);
        /// Fewest rows of a leaf.
        leaf_rows: usize = 1, Check::AtLeast(1.0);
    }
}

impl Selector for Cart {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let rows = problem.rows();
        let bins = problem.bins(BINS_MAX, run)?;
        let _lease = run.reserve(rows.rows() * LESSON_BYTES)?;
        let lesson = Lesson {
            columns: Columns::of(problem, &bins),
            rows: (0..rows.rows() as u32).collect(),
            counts: Counts::of(rows),
            answer: Answer::of(rows),
        };
        let forest = Forest {
            trees: 1,
            depth: Some(self.depth),
            leaf_rows: self.leaf_rows,
            features_per_split: Some(usize::MAX),
            samples: false,
            is_random: false,
            purpose: "cart",
        };
        let tree = forest.fit(&lesson, run)?.pop().ok_or_else(|| Error::data("no tree could be grown"))?.tree;
        let pruned = Pruned::new(tree, &lesson, self.complexity, run)?;
        // Counted by unit: a path may ask for several columns of a group.
        let mut unit_of = vec![usize::MAX; lesson.columns.len()];
        for (at, feature) in lesson.columns.features.iter().enumerate() {
            unit_of[at] = problem.units.iter().position(|unit| unit.features.contains(feature)).unwrap_or(usize::MAX);
        }
        let (mut usage, mut early, mut needed) = (vec![0.0; problem.units.len()], vec![0.0; problem.units.len()], 0.0);
        for row in 0..rows.rows() {
            if row % 64 == 0 {
                run.check()?;
            }
            let mut units: Vec<usize> = Vec::new();
            for column in pruned.asked(&lesson.columns, row) {
                if !units.contains(&unit_of[column]) {
                    units.push(unit_of[column]);
                }
            }
            let weight = rows.weights.get(row).copied().unwrap_or(1.0) / rows.weight();
            for (place, unit) in units.iter().enumerate() {
                usage[*unit] += weight;
                early[*unit] += weight / (place + 1) as f64;
            }
            needed += weight * units.len() as f64;
        }
        // Of two that all rows are asked for, the one that is asked for first is first.
        let mut units: Vec<usize> = (0..problem.units.len()).filter(|unit| problem.why_never(*unit).is_none()).collect();
        units.sort_by(|a, b| early[*b].total_cmp(&early[*a]));
        let mut ranking = Ranking::by_importance(problem, units.into_iter(), |unit| usage[unit]);
        if let Some(first) = ranking.choices.first_mut() {
            first.note = Some(format!("a row needs {needed:.2} features on average"));
        }
        Ok(ranking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::Table;

    /// One threshold parts all rows, another only those on one side of it: 400 rows on a grid, half of which are asked twice.
    #[test]
    fn rows_are_asked_for_what_is_on_their_path() {
        let at = |row: usize| ((row % 20) as f64, (row / 20) as f64);
        let column = |of: &dyn Fn(usize) -> f64| (0..400).map(of).collect::<Vec<f64>>();
        let label = column(&|row| if at(row).0 < 10.0 { 0.0 } else { 1.0 + f64::from(at(row).1 < 5.0) });
        let noise = Table::random(400, 1, 3).column(0).to_vec();
        let table =
            Table::new().numbers("noise", &noise).numbers("a", &column(&|row| at(row).0)).numbers("b", &column(&|row| at(row).1));
        for task in [Task::Classification, Task::Regression] {
            let table = Table { task: Some(task), ..table.clone().k(3) };
            let ranking = Cart::default().select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
            assert_eq!(ranking.units(), [1, 2, 0], "{task:?}");
            let scores: Vec<f64> = ranking.choices.iter().map(|choice| choice.score).collect();
            assert!((scores[0] - 1.0).abs() < 1e-12 && (scores[1] - 0.5).abs() < 1e-12 && scores[2] == 0.0, "{scores:?}");
            assert_eq!(ranking.choices[0].note.as_deref(), Some("a row needs 1.50 features on average"));
        }
    }

    /// Nothing is left of a tree that has learnt noise by heart; without a price it stays.
    #[test]
    fn noise_is_pruned_away() {
        let table = Table::random(200, 3, 8);
        let label = Table::random(200, 1, 9).column(0).to_vec();
        let of = |complexity: f64| {
            Cart { complexity, ..Default::default() }.select(&table.clone().k(3).problem_of_rows(&label), &Run::new(0)).unwrap()
        };
        assert!(of(0.0).choices.iter().all(|choice| choice.score > 0.5));
        assert!(of(0.1).choices.iter().all(|choice| choice.score == 0.0));
    }
}
