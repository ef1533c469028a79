use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use smartcore::error::Failed;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::tree::decision_tree_classifier::{DecisionTreeClassifier, DecisionTreeClassifierParameters};
use smartcore::tree::decision_tree_regressor::{DecisionTreeRegressor, DecisionTreeRegressorParameters};

use crate::{Check, Choice, Error, Label, Problem, Random, Ranking, Reads, Result, Rows, Run, Selector, selector};

selector! {
    /// Random forest importance.
    ///
    /// Grows trees on random samples of the rows and ranks features by how much their splits purify the label: the mean
    /// decrease of impurity, averaged over the trees and normalised to 1. Sees thresholds and interactions that linear methods
    /// do not, but shares the credit between features that say the same.
    ///
    /// Each tree is grown on as many rows as there are, drawn with replacement (in proportion to `weights`), and may split on any feature.
    /// A text column or a group has the sum of its columns' importances. `k => 'auto'` keeps what is above the mean.
    ///
    /// Cost: `trees × rows × features × log rows`, in parallel over trees. The trees are smartcore's.
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
    }
}

impl Selector for RandomForest {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let rows = problem.rows();
        let columns = distinct(rows);
        if columns.is_empty() {
            return Ok(Ranking::default());
        }
        let done = AtomicUsize::new(0);
        let grow = |tree: usize| -> Result<Vec<f64>> {
            run.step(done.fetch_add(1, Ordering::Relaxed), self.trees)?;
            let sample = sample(rows, &mut run.random("random_forest rows", tree as u64));
            let grown = match problem.label {
                Label::Numbers => self.regress(rows, &columns, &sample),
                Label::Classes(_) => self.classify(rows, &columns, &sample),
            };
            let grown = grown.map_err(|error| Error::data(format!("smartcore could not grow a tree: {error}")))?;
            let mut importances = vec![0.0; rows.columns.len()];
            columns.iter().zip(grown).for_each(|(column, importance)| importances[*column] = importance);
            Ok(importances)
        };
        // Collected in order before they are summed, so that the threads do not show.
        let trees: Vec<Vec<f64>> = (0..self.trees).into_par_iter().map(grow).collect::<Result<_>>()?;
        Ok(ranking(problem, &trees))
    }
}

impl RandomForest {
    fn regress(&self, rows: &Rows, columns: &[usize], sample: &[usize]) -> Result<Vec<f64>, Failed> {
        let y: Vec<f64> = sample.iter().map(|row| rows.targets[*row]).collect();
        let parameters = DecisionTreeRegressorParameters {
            max_depth: self.depth.map(|depth| depth as u16),
            min_samples_leaf: self.leaf_rows,
            min_samples_split: 2,
            seed: Some(0),
        };
        DecisionTreeRegressor::fit(&matrix(rows, columns, sample)?, &y, parameters)?.compute_feature_importances(false)
    }

    fn classify(&self, rows: &Rows, columns: &[usize], sample: &[usize]) -> Result<Vec<f64>, Failed> {
        let y: Vec<u32> = sample.iter().map(|row| rows.targets[*row] as u32).collect();
        let parameters = DecisionTreeClassifierParameters {
            max_depth: self.depth.map(|depth| depth as u16),
            min_samples_leaf: self.leaf_rows,
            min_samples_split: 2,
            seed: Some(0),
            ..DecisionTreeClassifierParameters::default()
        };
        // A sample that happens to hold one class has nothing to split.
        if y.iter().all(|class| *class == y[0]) {
            return Ok(vec![0.0; columns.len()]);
        }
        Ok(DecisionTreeClassifier::fit(&matrix(rows, columns, sample)?, &y, parameters)?.compute_feature_importances(false))
    }
}

/// Rows drawn with replacement, each as likely as its weight; as many as the weights add up to, so that a weight of 2 is
/// the row twice, but no fewer than there are and no more than ten times as many, whatever the unit of the weights.
fn sample(rows: &Rows, random: &mut Random) -> Vec<usize> {
    let mut ends: Vec<f64> = Vec::with_capacity(rows.rows());
    let mut total = 0.0;
    for row in 0..rows.rows() {
        total += rows.weights.get(row).copied().unwrap_or(1.0);
        ends.push(total);
    }
    let draws = total.round().clamp(rows.rows() as f64, 10.0 * rows.rows() as f64) as usize;
    (0..draws).map(|_| random.uniform() * total).map(|at| ends.partition_point(|end| *end <= at).min(rows.rows() - 1)).collect()
}

/// The columns that vary and repeat no earlier one. smartcore tries columns in random order, so that two equal ones would
/// share the credit by chance; the first is to have it.
fn distinct(rows: &Rows) -> Vec<usize> {
    let mut seen: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let is_new = |column: &usize| {
        let values = &rows.columns[*column];
        let hash = values.iter().fold(0u64, |hash, x| (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29));
        let alike = seen.entry(hash).or_default();
        let is_new = values.iter().any(|x| *x != 0.0) && alike.iter().all(|other| rows.columns[*other] != *values);
        alike.push(*column);
        is_new
    };
    (0..rows.columns.len()).filter(is_new).collect()
}

fn matrix(rows: &Rows, columns: &[usize], sample: &[usize]) -> Result<DenseMatrix<f64>, Failed> {
    let values = columns.iter().flat_map(|column| sample.iter().map(|row| rows.columns[*column][*row])).collect();
    DenseMatrix::new(sample.len(), columns.len(), values, true)
}

fn ranking(problem: &Problem, trees: &[Vec<f64>]) -> Ranking {
    let mut importances = vec![0.0; problem.units.len()];
    for tree in trees {
        let total: f64 = tree.iter().sum();
        for (unit, importance) in problem.units.iter().zip(&mut importances).filter(|_| total > 0.0) {
            *importance += unit.columns.iter().map(|column| tree[*column]).sum::<f64>() / total / trees.len() as f64;
        }
    }
    let free = |unit: &usize| !problem.must_include.contains(unit) && problem.why_never(*unit).is_none();
    let mut order: Vec<usize> = (0..problem.units.len()).filter(free).collect();
    order.sort_by(|a, b| importances[*b].total_cmp(&importances[*a]).then(a.cmp(b)));
    let mean = 1.0 / problem.units.len() as f64;
    let forced = problem.must_include.iter().copied().filter(|unit| problem.why_never(*unit).is_none());
    let most =
        problem.k.unwrap_or_else(|| problem.must_include.len() + order.iter().filter(|unit| importances[**unit] > mean).count());
    let chosen = forced.chain(order).take(most);
    let choices = chosen.enumerate().map(|(at, unit)| Choice::new(at + 1, unit, importances[unit])).collect();
    Ranking { choices, ..Ranking::default() }
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
        let ranking =
            RandomForest { trees: 10, ..Default::default() }.select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
        assert_eq!(ranking.choices[0].unit, 0);
        assert!((ranking.choices[0].score - 1.0).abs() < 1e-12 && ranking.choices[1].score == 0.0);
    }

    /// The product of two signs: neither feature correlates with it, and both are needed.
    #[test]
    fn finds_an_interaction_that_no_correlation_shows() {
        let table = Table::random(600, 6, 2);
        let label: Vec<f64> = (0..600).map(|row| f64::from(table.column(1)[row] * table.column(4)[row] > 0.0)).collect();
        let ranking =
            RandomForest { trees: 30, ..Default::default() }.select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
        let mut first: Vec<usize> = ranking.units()[..2].to_vec();
        first.sort_unstable();
        assert_eq!(first, [1, 4]);
    }
}
