use crate::judging::apart::Apart;
use crate::judging::folds::Holding;
use crate::judging::metric::Criterion;
use crate::neural::candidates::Candidates;
use crate::predictors::probing::{Silence, rises};
use crate::predictors::wrapped::{Wrapped, Wrapping};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Permutation importance: what mixing up values spoils.
    ///
    /// Fits a model on all features, and asks how much worse it predicts rows that it has not seen (by default in five folds) when a feature's values are dealt out among them anew. A feature on
    /// which the model does not rely loses nothing, and may be a little below 0.
    ///
    /// The error is the squared one (of classes that of their 0/1 columns), as a share of the label's variance: what is lost of R². The columns of a text or of a group are dealt out
    /// together. Features that say the same stand in for each other, so that each alone seems to count little; of exact repetitions only the first takes part.
    /// `k => 'auto'` keeps what is above the mean.
    ///
    /// Cost: a fit for each fold, then `features × repeats` predictions of every row, in parallel over features.
    ///
    /// Source: Breiman, 2001. Random forests; Fisher, Rudin and Dominici, 2019. All models are wrong, but many are useful.
    #[selector(
        name = "permutation",
        aliases = [],
        labels = Any,
        score = "what R² on the rows held out loses when its values are mixed up",
        table = ("validation", "The rows to judge by, with the same columns."),
    )]
    pub struct Permutation {
        /// What predicts the label.
        model: Wrapped = Wrapped::Boosting;
        /// How often a feature's values are dealt out.
        repeats: usize = 5, Check::Between(1.0, 10000.0);
        ..apart: Apart;
        ..wrapping: Wrapping;
    }
}

impl Selector for Permutation {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        self.model.check(problem)?;
        let folds = self.apart.folds(problem, Holding::five(problem), Criterion::Squared, run)?;
        let model = self.wrapping.model(self.model, 0.0, &folds, run)?;
        let candidates = Candidates::new(problem, problem.rows(), run)?;
        let lost = rises(problem, &folds, &*model, &candidates.units, Silence::Mixed(self.repeats), run)?;
        Ok(candidates.ranking(problem, &lost))
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        self.model.unused(option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// With y = a x₁ + x₂ dealt-out values of x₁ cost 2 a² / (a² + 1) of the variance: the squared difference of two independent values is twice it.
    #[test]
    fn a_linear_model_loses_twice_the_part_of_a_feature() {
        let table = Table::random(2000, 3, 5);
        let label: Vec<f64> = (0..2000).map(|row| 2.0 * table.column(1)[row] + table.column(2)[row]).collect();
        let problem = table.k(3).problem_of_rows(&label);
        let ranking =
            Permutation { model: Wrapped::Linear, repeats: 20, ..Default::default() }.select(&problem, &Run::new(0)).unwrap();
        assert_eq!(ranking.units(), [1, 2, 0]);
        for (choice, expected) in ranking.choices.iter().zip([1.6, 0.4, 0.0]) {
            assert!((choice.score - expected).abs() < 0.06, "{ranking:?}");
        }
    }

    /// Every model sees that a feature which it relies on is gone, of numbers and of classes.
    #[test]
    fn every_model_misses_what_it_relies_on() {
        let table = Table::random(400, 4, 6);
        let numbers: Vec<f64> = table.column(2).iter().map(|x| 3.0 * x + 1.0).collect();
        let classes: Vec<f64> = table.column(2).iter().map(|x| f64::from(*x > 0.0) + f64::from(*x > 0.8)).collect();
        let of_classes = Table { task: Some(crate::Task::Classification), ..table.clone() };
        for model in [Wrapped::Linear, Wrapped::Logistic, Wrapped::Mlp, Wrapped::Forest, Wrapped::Boosting] {
            let selector = Permutation { model, ..Default::default() };
            for (table, label) in [(&table, &numbers), (&of_classes, &classes)] {
                match selector.select(&table.problem_of_rows(label), &Run::new(0)) {
                    Ok(ranking) => {
                        assert_eq!(ranking.choices[0].unit, 2, "{model:?}");
                        assert!(ranking.choices[0].score > 0.5 && ranking.choices[1].score < 0.1, "{model:?} {ranking:?}");
                    }
                    Err(error) => assert!(model == Wrapped::Logistic && error.to_string().contains("'logistic'"), "{error}"),
                }
            }
        }
    }
}
