use crate::baselines::random_forest::{Importance, rank};
use crate::trees::forest::Forest;
use crate::{Check, Label, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Extremely randomized trees: a forest that cuts at random.
    ///
    /// A forest whose trees see all rows and cut each feature at random: of a few features, each cut anywhere between its least and greatest value in
    /// the node, the split takes the one that purifies the label most. Ranks features by the mean decrease of impurity, averaged over the trees and normalised to 1. Trees
    /// differ more than those of `random_forest`, so that features which say nearly the same share the credit more evenly.
    ///
    /// Numbers are cut between their at most 255 bins, the levels of a text are thrown to either side one by one; NULL is in a bin of its own. A text column is one feature,
    /// a group has the sum of its columns' importances. `k => 'auto'` keeps what is above the mean.
    ///
    /// Cost: `trees × rows × features_per_split × depth`, in parallel over trees.
    ///
    /// Source: Geurts, Ernst, Wehenkel, 2006. Extremely randomized trees.
    #[selector(
        name = "extra_trees",
        aliases = [],
        labels = Any,
        score = "share of the decrease of impurity",
    )]
    pub struct ExtraTrees {
        /// How many trees.
        trees: usize = 100, Check::Between(1.0, 100000.0);
        /// Longest way from the root to a leaf; NULL: until the leaves are pure.
        depth: Option<usize> = None, Check::Between(1.0, 1000.0);
        /// Fewest rows of a leaf.
        leaf_rows: usize = 1, Check::AtLeast(1.0);
        /// Features that each split is chosen among. NULL: the root of their number for classes, all of them for numbers.
        features_per_split: Option<usize> = None, Check::AtLeast(1.0);
    }
}

impl Selector for ExtraTrees {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let all = if problem.label == Label::Numbers { Some(usize::MAX) } else { None };
        let forest = Forest {
            trees: self.trees,
            depth: self.depth,
            leaf_rows: self.leaf_rows,
            features_per_split: self.features_per_split.or(all),
            samples: false,
            is_random: true,
            purpose: "extra_trees",
        };
        rank(&forest, Importance::Impurity, problem, run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    #[test]
    fn finds_an_interaction_that_no_correlation_shows() {
        let table = Table::random(600, 6, 2);
        let label: Vec<f64> = (0..600).map(|row| f64::from(table.column(1)[row] * table.column(4)[row] > 0.0)).collect();
        let ranking =
            ExtraTrees { trees: 30, ..Default::default() }.select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
        let mut first: Vec<usize> = ranking.units()[..2].to_vec();
        first.sort_unstable();
        assert_eq!(first, [1, 4]);
    }
}
