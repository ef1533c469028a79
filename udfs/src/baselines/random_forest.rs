use crate::reading::bins::{BINS_MAX, Counts};
use crate::trees::columns::{Columns, ranking};
use crate::trees::forest::{Answer, Forest, LESSON_BYTES, Lesson};
use crate::trees::importance;
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What a feature's importance is.
    pub enum Importance {
        Impurity = "impurity",
        Permutation = "permutation",
    }
}

selector! {
    /// Random forest importance: what many trees split by.
    ///
    /// Grows trees on random samples of the rows and ranks features by how much their splits purify the label: the mean
    /// decrease of impurity, averaged over the trees and normalised to 1. Sees thresholds and interactions that linear methods
    /// do not, but shares the credit between features that say nearly the same; of features that a tree cannot tell apart the first has it all.
    ///
    /// `importance => 'permutation'`: how much more often a tree is wrong about the rows that it has not seen (for numbers: how much more of the label's variance it
    /// misses) when a feature's values are mixed up among them. It does not favour features of many values, as impurity does, and may be below 0.
    ///
    /// Each tree is grown on as many rows as there are, drawn with replacement (in proportion to `weights`). Each split is chosen among a few features, drawn at
    /// random. Numbers are cut into at most 255 bins of about equal weight; the levels of a text are ordered by their mean label before they are cut (with many classes: by the share
    /// of each of the four heaviest); NULL is in a bin of its own. `k => 'auto'` keeps what is above the mean.
    ///
    /// Cost: `trees × rows × features_per_split × depth`, in parallel over trees.
    ///
    /// Source: Breiman, 2001. Random forests.
    #[selector(
        name = "random_forest",
        aliases = ["forest"],
        labels = Any,
        score = "share of the decrease of impurity",
    )]
    pub struct RandomForest {
        /// How many trees.
        trees: usize = 100, Check::Between(1.0, 100000.0);
        /// Longest way from the root to a leaf; NULL: until the leaves are pure.
        depth: Option<usize> = None, Check::Between(1.0, 1000.0);
        /// Fewest rows of a leaf.
        leaf_rows: usize = 1, Check::AtLeast(1.0);
        /// Features that each split is chosen among. NULL: the root of their number for classes, a third of it for numbers.
        features_per_split: Option<usize> = None, Check::AtLeast(1.0);
        /// What a feature's importance is: what its splits do for the purity of the label, or what is lost when its values are mixed up.
        importance: Importance = Importance::Impurity;
    }
}

impl Selector for RandomForest {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let forest = Forest {
            trees: self.trees,
            depth: self.depth,
            leaf_rows: self.leaf_rows,
            features_per_split: self.features_per_split,
            samples: true,
            is_random: false,
            purpose: "random_forest",
        };
        rank(&forest, self.importance, problem, run)
    }
}

/// Ranks the units by what they are worth to a forest.
pub(super) fn rank(forest: &Forest, importance: Importance, problem: &Problem, run: &Run) -> Result<Ranking> {
    let rows = problem.rows();
    let bins = problem.bins(BINS_MAX, run)?;
    let columns = Columns::of(problem, &bins);
    let _lease = run.reserve(rows.rows() * LESSON_BYTES)?;
    let (counts, answer) = (Counts::of(rows), Answer::of(rows));
    let lesson = Lesson { columns, rows: (0..rows.rows() as u32).collect(), counts, answer };
    let trees = match importance {
        Importance::Impurity => forest.grow(&lesson, false, run, |_, mut grown, _, _| {
            let total: f64 = grown.gains.iter().sum();
            grown.gains.iter_mut().filter(|_| total > 0.0).for_each(|gain| *gain /= total);
            Ok(grown.gains)
        })?,
        Importance::Permutation => {
            let weight = |row: u32| if lesson.counts.is_whole() { 1.0 } else { f64::from(lesson.counts.get(row as usize)) };
            let unit = match &lesson.answer {
                Answer::Numbers(_) => rows.weight() / energy(problem),
                Answer::Classes { .. } => 1.0,
            };
            forest.grow(&lesson, true, run, |tree, grown, values, left_out| {
                let random = &mut run.random("permutation", tree as u64);
                let (columns, answer) = (&lesson.columns, &lesson.answer);
                let lost = importance::of_permutation(&grown.tree, &values, columns, &left_out, weight, answer, random);
                Ok(lost.into_iter().map(|lost| lost * unit).collect())
            })?
        }
    };
    // Summed in the order of the trees, so that the threads do not show.
    let mut mean = vec![0.0; lesson.columns.len()];
    for tree in &trees {
        mean.iter_mut().zip(tree).for_each(|(mean, importance)| *mean += importance / trees.len() as f64);
    }
    Ok(ranking(problem, &lesson.columns.importances(problem, &mean)))
}

/// Weighted squares of a label of numbers around its mean.
fn energy(problem: &Problem) -> f64 {
    let rows = problem.rows();
    let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
    rows.labels[0].iter().enumerate().map(|(row, y)| weight(row) * y * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// y = 1 where x0 > 0: one split of one feature explains everything.
    #[test]
    fn a_threshold_is_all_importance() {
        let table = Table::random(100, 3, 1);
        let label: Vec<f64> = table.column(0).iter().map(|x| f64::from(*x > 0.0)).collect();
        let forest = RandomForest { trees: 10, features_per_split: Some(3), ..Default::default() };
        let ranking = forest.select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
        assert_eq!(ranking.choices[0].unit, 0);
        assert!((ranking.choices[0].score - 1.0).abs() < 1e-12 && ranking.choices[1].score == 0.0);
    }

    /// The product of two signs: neither feature correlates with it, and both are needed.
    #[test]
    fn finds_an_interaction_that_no_correlation_shows() {
        let table = Table::random(600, 6, 2);
        let label: Vec<f64> = (0..600).map(|row| f64::from(table.column(1)[row] * table.column(4)[row] > 0.0)).collect();
        for importance in [Importance::Impurity, Importance::Permutation] {
            let forest = RandomForest { trees: 30, importance, ..Default::default() };
            let ranking = forest.select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
            let mut first: Vec<usize> = ranking.units()[..2].to_vec();
            first.sort_unstable();
            assert_eq!(first, [1, 4], "{importance:?}");
        }
    }

    /// Mixing up a feature that the label does not depend on loses nothing; mixing up the one that it is loses everything.
    #[test]
    fn permutation_measures_what_is_lost() {
        let table = Table::random(400, 4, 5);
        // Every split may use the one feature that matters, so that the trees predict it as it is.
        let features_per_split = Some(4);
        let forest = RandomForest { trees: 40, importance: Importance::Permutation, features_per_split, ..Default::default() };
        let ranking = forest.select(&table.problem_of_rows(table.column(2)), &Run::new(0)).unwrap();
        assert_eq!(ranking.choices[0].unit, 2);
        // Of two independent values of one variance the squared difference is twice that variance.
        assert!((ranking.choices[0].score - 2.0).abs() < 0.5, "{:?}", ranking.choices);
        assert!(ranking.choices[1..].iter().all(|choice| choice.score.abs() < 0.1), "{:?}", ranking.choices);
    }
}
