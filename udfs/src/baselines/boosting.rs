use crate::reading::bins::{BINS_MAX, Counts};
use crate::trees::boosting;
use crate::trees::columns::{Columns, ranking};
use crate::trees::forest::{Answer, LESSON_BYTES, Lesson};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, Split, choice, selector};

choice! {
    /// What a feature's importance is.
    pub enum Importance {
        Gain = "gain",
        Permutation = "permutation",
        Splits = "splits",
    }
}

selector! {
    /// Gradient boosting importance: trees that mend each other.
    ///
    /// Grows small trees one after the other, each fitted to what those before it leave unexplained, and ranks features by what
    /// their splits gain: the share of the decrease of the loss. Sees thresholds and interactions, and, other than a forest, asks of a feature only what the ones
    /// before it have not said yet.
    ///
    /// The loss is the squared error of a number, the logistic loss of two classes, the softmax loss of more, with a tree for each class in each
    /// round. `importance => 'permutation'`: what the mean loss rises by when a feature's values are mixed up, on the rows held out with `validation`, and without it on
    /// the rows learnt from; `'splits'`: the share of the splits. `k => 'auto'` keeps what is above the mean.
    ///
    /// Numbers are cut into at most 255 bins of about equal weight. The levels of a text are ordered by their gradient before they are cut, and such cuts are held back
    /// a little, because an order that is chosen fits by chance. NULL is in a bin of its own, and each split decides on which side it is.
    ///
    /// Cost: `rounds × classes × rows × features × depth / 2`, in parallel over features and classes.
    ///
    /// Source: Friedman, 2001. Greedy function approximation; Chen, Guestrin, 2016. XGBoost; Ke et al., 2017. LightGBM.
    #[selector(
        name = "boosting",
        aliases = [],
        labels = Any,
        score = "share of the decrease of the loss",
    )]
    pub struct Boosting {
        /// How many rounds: trees one after the other, for each class.
        rounds: usize = 100, Check::Between(1.0, 100000.0);
        /// What share of a tree's advice is followed.
        learning_rate: f64 = 0.1, Check::Between(0.0001, 1.0);
        /// Longest way from the root of a tree to a leaf.
        depth: usize = 6, Check::Between(1.0, 30.0);
        /// Keeps the values of leaves small: so many rows more, of which nothing is known.
        l2: f64 = 1.0, Check::Between(0.0, 1e12);
        /// Least weight of a leaf: of numbers its rows, of classes the sum of p (1 − p).
        leaf_weight: f64 = 1.0, Check::Between(0.0, 1e12);
        /// The share of the rows that each round learns from.
        row_share: f64 = 1.0, Check::Between(0.01, 1.0);
        /// Hold out this share of the rows, and end when they are no longer predicted better.
        validation: Option<f64> = None, Check::Between(0.01, 0.99);
        /// Rounds without progress on the rows held out after which it ends.
        patience: usize = 10, Check::Between(1.0, 100000.0);
        /// What a feature's importance is: what its splits gain, what is lost when its values are mixed up, or how often it is split.
        importance: Importance = Importance::Gain;
    }
}

impl Selector for Boosting {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        (option == "patience" && self.validation.is_none()).then_some("`validation`")
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let rows = problem.rows();
        let bins = problem.bins(BINS_MAX, run)?;
        let columns = Columns::of(problem, &bins);
        let _lease = run.reserve(rows.rows() * (LESSON_BYTES + 2 * size_of::<usize>()))?;
        let split = self.validation.map_or_else(|| Split::none(rows.rows()), |share| Split::fraction(rows, share, run));
        let short = |rows: &[usize]| rows.iter().map(|row| *row as u32).collect::<Vec<_>>();
        let lesson = Lesson { columns, rows: short(&split.train), counts: Counts::of(rows), answer: Answer::of(rows) };
        let judges = short(&split.valid);
        let boosted = self.boosting().fit(&lesson, &judges, run)?;
        let d = lesson.columns.len();
        let mut importances = match self.importance {
            Importance::Gain => boosted.gains(d),
            Importance::Splits => boosted.splits(d),
            Importance::Permutation => {
                let (copies, is_once) = lesson.counts.copies(if judges.is_empty() { &lesson.rows } else { &judges });
                let weight = |row: u32| if is_once { f64::from(lesson.counts.get(row as usize)) } else { 1.0 };
                boosted.permuted(&lesson, &copies, weight, run)?
            }
        };
        if self.importance != Importance::Permutation {
            let total: f64 = importances.iter().sum();
            importances.iter_mut().filter(|_| total > 0.0).for_each(|importance| *importance /= total);
        }
        Ok(ranking(problem, &lesson.columns.importances(problem, &importances)))
    }
}

impl Boosting {
    fn boosting(&self) -> boosting::Boosting {
        boosting::Boosting {
            rounds: self.rounds,
            learning_rate: self.learning_rate,
            depth: self.depth,
            l2: self.l2,
            leaf_weight: self.leaf_weight,
            row_share: self.row_share,
            patience: self.patience,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::{Table, planted};

    /// The product of two signs: neither feature correlates with it, and both are needed.
    #[test]
    fn finds_an_interaction_by_every_importance() {
        let table = Table { task: Some(Task::Classification), ..Table::random(600, 6, 2) };
        let label: Vec<f64> = (0..600).map(|row| f64::from(table.column(1)[row] * table.column(4)[row] > 0.0)).collect();
        let problem = table.problem_of_rows(&label);
        for importance in [Importance::Gain, Importance::Permutation, Importance::Splits] {
            let ranking = Boosting { rounds: 30, importance, ..Default::default() }.select(&problem, &Run::new(0)).unwrap();
            let mut first: Vec<usize> = ranking.units()[..2].to_vec();
            first.sort_unstable();
            assert_eq!(first, [1, 4], "{importance:?}");
        }
    }

    /// Three classes, each told by a threshold of its own.
    #[test]
    fn many_classes_have_a_tree_each() {
        let table = Table { task: Some(Task::Classification), ..Table::random(400, 5, 3) };
        let class = |row: usize| {
            f64::from(table.column(0)[row] > 0.5) + f64::from(table.column(0)[row] > 0.5 && table.column(3)[row] > 0.0)
        };
        let label: Vec<f64> = (0..400).map(class).collect();
        let ranking = Boosting { rounds: 20, ..Default::default() }.select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
        let mut first: Vec<usize> = ranking.units()[..2].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 3]);
        assert!(ranking.choices.iter().map(|choice| choice.score).sum::<f64>() - 1.0 < 1e-12);
    }

    /// Weights are repetitions with permutation and with samples of the rows too.
    #[test]
    fn weights_are_repetitions_whatever_the_options() {
        let (table, label) = planted(80, 4, &[2, 0], 1.0, 7);
        let counts: Vec<usize> = (0..80).map(|row| 1 + row % 3).collect();
        let repeat = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(&counts).flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect()
        };
        let repeated = (0..4).fold(Table::new(), |all, j| all.numbers(&format!("x{j}"), &repeat(table.column(j))));
        let weighted = Table { weights: Some(counts.iter().map(|count| *count as f64).collect()), ..table.clone() };
        let selector = Boosting { rounds: 10, importance: Importance::Permutation, row_share: 0.7, ..Default::default() };
        let select = |table: &Table, label: &[f64]| selector.select(&table.problem_of_rows(label), &Run::new(1)).unwrap();
        let (a, b) = (select(&weighted, &label), select(&repeated, &repeat(&label)));
        assert_eq!(a.units(), b.units());
        assert!(a.choices.iter().zip(&b.choices).all(|(a, b)| (a.score - b.score).abs() < 1e-9), "{a:?} {b:?}");
    }

    /// Noise is not learnt by heart: with rows held out it ends early.
    #[test]
    fn held_out_rows_end_it() {
        let table = Table::random(200, 3, 8);
        let mut random = Run::new(9).random("noise", 0);
        let label: Vec<f64> = (0..200).map(|row| table.column(1)[row] + random.normal()).collect();
        let problem = table.problem_of_rows(&label);
        let rows = problem.rows();
        let bins = problem.bins(255, &Run::default()).unwrap();
        let split = Split::fraction(rows, 0.3, &Run::new(0));
        let short = |rows: &[usize]| rows.iter().map(|row| *row as u32).collect::<Vec<_>>();
        let lesson = Lesson {
            columns: Columns::of(&problem, &bins),
            rows: short(&split.train),
            counts: Counts::of(rows),
            answer: Answer::of(rows),
        };
        let boosted = Boosting { rounds: 500, ..Default::default() }.boosting().fit(&lesson, &short(&split.valid), &Run::new(0));
        let rounds = boosted.unwrap().rounds.len();
        assert!((2..100).contains(&rounds), "{rounds}");
    }
}
