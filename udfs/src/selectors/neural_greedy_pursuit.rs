use std::collections::BTreeMap;

mod greedy;

use crate::judging::folds::{FEW_ROWS, Folds, Holding};
use crate::judging::metric::{Criterion, Metric, Tally};
use crate::predictors::Predictor;
use crate::predictors::cnn::{Convolutional, SIDE_MIN};
use crate::predictors::logistic::Logistic;
use crate::predictors::mlp::MlpLearner;
use crate::predictors::readout::Readout;
use crate::predictors::refit::Refit;
use crate::predictors::smartcore::Smartcore;
use crate::predictors::ssfn::Ssfn;
use crate::predictors::trees::{TreeLearner, Trees};
use crate::reading::windows::{check_pixels, two_numbers, windows};
use crate::selectors::neural_greedy_pursuit::greedy::{Named, Pursuit};
use crate::{Check, Error, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What is trained.
    pub enum Predicting {
        Ssfn = "ssfn",
        Mlp = "mlp",
        Cnn = "cnn",
        Linear = "linear",
        Logistic = "logistic",
        Knn = "knn",
        Svm = "svm",
        Forest = "forest",
        Tree = "tree",
        Boosting = "boosting",
    }
}

selector! {
    /// Neural greedy pursuit.
    ///
    /// Adds, again and again, the feature with which a trained predictor does best on rows that it has not seen. It sees what the
    /// predictor sees: with a network also bends and interactions, which linear methods miss. With `k => 'auto'` it stops when the best feature
    /// lowers the error by less than `eta`; that feature is not kept.
    ///
    /// The criterion is the absolute error on the rows held out (of classes: the squared one of their 0/1 columns), by default in five or ten folds, so that every row judges
    /// once. Equal rows are always in one fold. `score` is the lead over the runner-up, as a share of the error without any feature; a feature without a rival
    /// (forced, or the last) has what it added. `train_score` and `valid_score` are the `metric` of the features up to this one on the rows
    /// learnt from and on those held out; both belong to the pursuit, which has looked at them, so keep rows of your own for a verdict.
    /// With several predictors each step takes the best, and `reason` names it.
    ///
    /// Predictors: 'ssfn' is a network of random neurons whose readout is learnt in closed form; 'mlp' is a trained one, 'cnn' one of filters, for classes of images; 'linear' is least squares; 'logistic' is for classes;
    /// 'forest', 'tree' and 'boosting' are trees on binned columns; 'knn' and 'svm' are smartcore's. Only ssfn and linear judge a candidate without a fit from the beginning.
    ///
    /// Cost of a step with ssfn: `candidates × rows × (neurons + chosen)²` multiplications, in parallel over candidates.
    ///
    /// Source: Das, Javid, Gohain, Eldar, Chatterjee, 2022. Neural greedy pursuit for feature selection.
    #[selector(
        name = "neural_greedy_pursuit",
        aliases = ["ngp"],
        labels = Any,
        score = "lead over the runner-up on the rows held out, as a share of the error without features",
        table = ("validation", "The rows to judge by, with the same columns."),
    )]
    pub struct NeuralGreedyPursuit {
        /// What is trained, one or several: of several the best is taken in each step.
        predictor: Vec<Predicting> = vec![Predicting::Ssfn];
        /// Stop before a feature that improves the error on the rows held out, in decibels below the error without features, by less than
        /// this share. NULL: 0.04 with k => 'auto', otherwise never.
        eta: Option<f64> = None, Check::AtLeast(0.0);
        /// How many of the best candidates are judged by how far the next step would get with them.
        lookahead: usize = 1, Check::Between(1.0, 1000.0);
        /// Hold out every row once, in so many folds. NULL: 5, and 10 of up to 500 rows, or fewer where there are fewer rows.
        folds: Option<usize> = None, Check::Between(2.0, 10000.0);
        /// Hold out this share of the rows, once, instead of folds. Or a table or subquery with the same columns: its rows judge.
        validation: Option<f64> = None, Check::Between(0.01, 0.99);
        /// Which error on the rows held out candidates are judged by. 'auto': absolute for numbers, which a few labels far out do not decide; squared for
        /// classes, of their 0/1 columns.
        criterion: Criterion = Criterion::Auto;
        /// What train_score and valid_score are. 'auto': r2 for numbers, accuracy for classes. 'nme' is the squared error in decibels of the label's
        /// square; 'frob_per_row' is the root of the summed squared error by the number of rows, which Das et al. print as MSE.
        metric: Metric = Metric::Auto;
        /// Random neurons of ssfn.
        neurons: usize = 100, Check::Between(1.0, 10000.0);
        /// How the readout of ssfn is kept small: by a ridge, or by a bound on its length as in the paper.
        readout: Readout = Readout::Ridge;
        /// Ridge of ssfn, as a share of each hidden column's variance. NULL: what does best on the rows held out, chosen after each step.
        ridge: Option<f64> = None, Check::Between(1e-9, 1e9);
        /// Share of the candidates, sixteen at least, that ssfn judges with all its neurons, after a quarter of them has judged every candidate. 1: all. NULL: 0.05,
        /// and with fewer than 1000 rows as many times more.
        shortlist: Option<f64> = None, Check::Between(0.0, 1.0);
        /// Neurons of the hidden layers of mlp.
        hidden: Vec<usize> = vec![100], Check::Between(1.0, 4096.0);
        /// Passes over the rows in which mlp and cnn are trained.
        epochs: usize = 10, Check::Between(1.0, 100000.0);
        /// Neighbours that knn asks.
        neighbors: usize = 5, Check::Between(1.0, 10000.0);
        /// Trees of forest, rounds of boosting.
        trees: usize = 30, Check::Between(1.0, 1000.0);
        /// Rows and columns of an image whose pixels, row by row, are the features; with `window`, or for cnn.
        image: Vec<usize> = Vec::new(), Check::AtLeast(1.0);
        /// Rows and columns of the windows in which the pixels of `image` are chosen. A window is named by its place: window_0_1 is the second of the first row.
        window: Vec<usize> = Vec::new(), Check::AtLeast(1.0);
    }
}

/// The share of decibels that is too little, when nobody says how many features there are to be. Das et al. use 0.06
/// of their squared error. Of the absolute one 0.02, 0.03 and 0.04 miss nothing of their artificial problem in 300 rows, and 0.04 takes the least noise.
const ETA: f64 = 0.04;

/// How often few rows are set apart anew.
const OTHER_FOLDS: u64 = 2;

impl Selector for NeuralGreedyPursuit {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn groups(&self, features: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
        if self.predictor.contains(&Predicting::Cnn) {
            let (height, width) = self.sides()?;
            // To cnn the image alone says enough: its pixels are chosen one by one.
            if self.window.is_empty() {
                return check_pixels(height, width, features.len()).map(|()| BTreeMap::new());
            }
        }
        windows(&self.image, &self.window, features)
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let folds = self.set_apart(problem, run)?;
        self.check(&folds)?;
        let cnn = if self.predictor.contains(&Predicting::Cnn) { Some(self.cnn(problem)?) } else { None };
        let limit = problem.k.unwrap_or(problem.units.len());
        let eta = self.eta.or(if problem.k.is_none() { Some(ETA) } else { None });
        // Few rows leave close decisions to luck, and cost little to set apart once more.
        let others = if folds.rows() <= FEW_ROWS { OTHER_FOLDS } else { 0 };
        let others = (1..=others).map(|draw| self.set_apart(problem, &run.with_seed(draw))).collect::<Result<Vec<Folds>>>()?;
        let predictors = self.predictors(&folds, cnn, run)?;
        let pursuit = Pursuit::new(problem, &folds, predictors, limit, run);
        let mut pursuit = pursuit.with_metric(self.metric).with_shortlist(self.shortlist).with_others(&others);
        for unit in &problem.must_include {
            pursuit.tell()?;
            let step = pursuit.fit(*unit)?;
            pursuit.keep(*unit, step, None);
        }
        while !pursuit.is_full() {
            pursuit.tell()?;
            let Some((unit, lead)) = pursuit.best(self.lookahead)? else { break };
            let step = pursuit.fit(unit)?;
            if let Some(eta) = eta
                && !pursuit.suffices(unit, &step, eta)?
            {
                break;
            }
            pursuit.keep(unit, step, lead);
        }
        Ok(Ranking { choices: pursuit.choices(), ..Ranking::default() })
    }
}

impl NeuralGreedyPursuit {
    /// The rows, with those that judge set apart.
    fn set_apart(&self, problem: &Problem, run: &Run) -> Result<Folds> {
        if self.folds.is_some() && (self.validation.is_some() || problem.held_out.is_some()) {
            return Err(Error::call("give `folds` or `validation`, not both: each says which rows are held out"));
        }
        if let Some(judges) = &problem.held_out {
            if judges.rows() == 0 {
                return Err(Error::data("the table given as `validation` has no rows with a label"));
            }
            return Ok(Folds::judged_by(problem, judges, self.criterion));
        }
        let holding = match (self.validation, self.folds) {
            (Some(share), _) => Holding::Share(share),
            (None, Some(folds)) => Holding::Folds(folds),
            (None, None) => Holding::Default,
        };
        Folds::new(problem, holding, self.criterion, run)
    }

    /// What only the label can tell: whether the predictors and the metric are for it.
    fn check(&self, folds: &Folds) -> Result<()> {
        if self.predictor.is_empty() {
            return Err(Error::call("`predictor` must name one at least, such as 'ssfn'; got []"));
        }
        let is_class = folds.classes.is_some();
        for predictor in &self.predictor {
            let what = match folds.classes {
                None => "numbers".to_string(),
                Some(classes) => format!("{classes} classes"),
            };
            let fits = |predictor: Predicting| match predictor {
                Predicting::Cnn | Predicting::Logistic => is_class,
                Predicting::Svm => folds.classes.is_none_or(|classes| classes <= 2),
                _ => true,
            };
            let weighs = |predictor: Predicting| !folds.is_weighted || !matches!(predictor, Predicting::Knn | Predicting::Svm);
            let has_image = !self.image.is_empty();
            let can = |other: Predicting| fits(other) && weighs(other) && (has_image || other != Predicting::Cnn);
            if !fits(*predictor) {
                return Err(Error::data(format!("predictor {} cannot predict {what}; {} can", word(*predictor), names(can))));
            }
            if !weighs(*predictor) {
                return Err(Error::call(format!("predictor {} knows no weights; {} do", word(*predictor), names(can))));
            }
        }
        if self.metric == Metric::Accuracy && !is_class {
            return Err(Error::call("`metric` must not be 'accuracy', because the label is a number; use 'r2' or 'rmse'"));
        }
        Ok(())
    }

    /// Rows and columns of the image that cnn sees.
    fn sides(&self) -> Result<(usize, usize)> {
        match self.image[..] {
            [] => Err(Error::call("predictor 'cnn' needs `image`: the rows and columns of the image, such as [28, 28]")),
            [height, width] if height.min(width) < SIDE_MIN => Err(Error::call(format!(
                "`image` must be {SIDE_MIN} × {SIDE_MIN} pixels at least for predictor 'cnn', got {height} × {width}"
            ))),
            [height, width] => Ok((height, width)),
            _ => Err(Error::call(two_numbers("image", &self.image))),
        }
    }

    /// What cnn must know beside the folds: which column is which pixel.
    fn cnn(&self, problem: &Problem) -> Result<Convolutional> {
        let rows = problem.rows();
        let (height, width) = self.sides()?;
        check_pixels(height, width, problem.units.iter().map(|unit| unit.features.len()).sum())?;
        if let Some(unit) = problem.units.iter().find(|unit| unit.columns.iter().any(|column| !rows.design[*column].is_number)) {
            return Err(Error::data(format!(
                "predictor 'cnn' reads pixels, and `{}` has texts or flags of NULLs; exclude them, or set nulls => 'mean'",
                unit.name
            )));
        }
        let pixels = rows.design.iter().map(|column| column.feature).collect();
        Ok(Convolutional { height, width, epochs: self.epochs, pixels })
    }

    fn predictors<'a>(&self, folds: &'a Folds, cnn: Option<Convolutional>, run: &Run) -> Result<Vec<Named<'a>>> {
        let trees = |trees: Trees| -> Result<Refit<'a>> { Ok(Refit::new(folds, TreeLearner::new(trees, folds, run)?)) };
        let make = |predictor: &Predicting| -> Result<Box<dyn Predictor<'a> + 'a>> {
            Ok(match predictor {
                Predicting::Ssfn => Box::new(Ssfn::new(folds, self.neurons, self.readout, self.ridge, run)),
                Predicting::Linear => Box::new(Ssfn::linear(folds, run)),
                Predicting::Mlp => Box::new(Refit::new(folds, MlpLearner::new(self.hidden.clone(), self.epochs))),
                Predicting::Cnn => Box::new(Refit::new(folds, cnn.clone().expect("it was made, because it is on the list"))),
                Predicting::Logistic => Box::new(Refit::new(folds, Logistic)),
                Predicting::Knn => Box::new(Refit::new(folds, Smartcore::Knn { neighbors: self.neighbors })),
                Predicting::Svm => Box::new(Refit::new(folds, Smartcore::Svm)),
                Predicting::Forest => Box::new(trees(Trees::forest(self.trees))?),
                Predicting::Tree => Box::new(trees(Trees::tree())?),
                Predicting::Boosting => Box::new(trees(Trees::boosting(self.trees))?),
            })
        };
        let named = |predictor: &Predicting| Ok((word(*predictor).trim_matches('\'').to_string(), make(predictor)?));
        self.predictor.iter().map(named).collect()
    }
}

fn word(predictor: Predicting) -> String {
    crate::OptionType::print(&predictor)
}

/// `'ssfn', 'knn' and 'tree'`
fn names(fits: impl Fn(Predicting) -> bool) -> String {
    use Predicting::*;
    let all = [Ssfn, Mlp, Cnn, Linear, Logistic, Knn, Svm, Forest, Tree, Boosting];
    let names: Vec<String> = all.into_iter().filter(|predictor| fits(*predictor)).map(word).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// How a network that has learnt from all rows of a problem, with some units and the ridge that folds of them advise, does on other rows. For measurements.
#[doc(hidden)]
pub fn ssfn_on_other_rows(
    problem: &Problem,
    units: &[usize],
    others: &crate::Rows,
    neurons: usize,
    metric: Metric,
) -> Result<(f64, f64)> {
    let run = Run::new(0);
    let columns = |unit: &usize| &problem.units[*unit].columns;
    let own = Folds::new(problem, Holding::Default, Criterion::Auto, &run)?;
    let Some((last, first)) = units.split_last() else { return Err(Error::call("no units")) };
    let fit = |folds: &Folds, ridge: Option<f64>| {
        let mut network = Ssfn::new(folds, neurons, Readout::Ridge, ridge, &run);
        first.iter().for_each(|unit| network.keep(columns(unit)));
        Ok::<_, Error>((network.fit(columns(last), &run)?, network.ridge))
    };
    let (_, ridge) = fit(&own, None)?;
    let judged = Folds::judged_by(problem, others, Criterion::Auto);
    let (fitted, _) = fit(&judged, ridge)?;
    let score = |tally: &Tally| tally.score(metric, judged.classes.is_some());
    Ok((score(&fitted.train), score(&fitted.valid)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Table, planted};

    fn names(problem: &Problem, ranking: &Ranking) -> Vec<String> {
        ranking.units().iter().map(|unit| problem.units[*unit].name.clone()).collect()
    }

    fn sample_table(name: &str, rows: usize, columns: usize, seed: u64) -> (Table, Vec<f64>) {
        let settings = crate::Settings::from_iter([("columns".to_string(), crate::Value::from(columns))]);
        let problem = crate::SampleProblem::new(name, rows, seed, &settings).unwrap();
        let mut columns = problem.table(0);
        let label = columns.pop().unwrap();
        let named = problem.names.iter().zip(&columns);
        (named.fold(Table::new(), |table, (name, values)| table.numbers(name, values)), label)
    }

    /// V / R of ten features: eta finds both, and stops there.
    #[test]
    fn finds_a_law_and_stops() {
        let (mut table, label) = sample_table("ohm", 300, 10, 1);
        table.common.k = crate::Count::Auto;
        let problem = table.problem_of_rows(&label);
        let ranking = NeuralGreedyPursuit::default().select(&problem, &Run::new(0)).unwrap();
        let mut found = names(&problem, &ranking);
        found.sort();
        assert_eq!(found, ["resistance", "voltage"]);
        let last = &ranking.choices[1];
        assert!(last.valid_score.unwrap() > 0.999 && last.score > 0.1 && last.gain.unwrap() > 0.1);
    }

    /// A product of two features, of which neither alone says anything: only looking ahead finds it.
    #[test]
    fn looking_ahead_finds_an_interaction() {
        let (table, label) = sample_table("interaction", 300, 8, 4);
        let problem = table.k(2).problem_of_rows(&label);
        let select = |lookahead| {
            let selector = NeuralGreedyPursuit { lookahead, ..Default::default() };
            let mut found = names(&problem, &selector.select(&problem, &Run::new(0)).unwrap());
            found.sort();
            found
        };
        assert_eq!(select(8), ["x1", "x2"]);
        assert_ne!(select(1), ["x1", "x2"]);
    }

    /// At every step a list of predictors reaches what the best of them reaches with the same features before it.
    #[test]
    fn a_list_of_predictors_does_what_its_best_member_does() {
        let table = Table::random(120, 6, 9);
        let label: Vec<f64> =
            (0..120).map(|row| 2.0 * table.column(1)[row] + table.column(3)[row].abs() + 0.3 * table.column(5)[row]).collect();
        let members = [Predicting::Linear, Predicting::Ssfn, Predicting::Tree];
        let of = |predictor: &[Predicting], k: usize, forced: &[String]| {
            let mut table = table.clone().k(k);
            table.common.must_include = forced.to_vec();
            let problem = table.problem_of_rows(&label);
            let selector = NeuralGreedyPursuit { predictor: predictor.to_vec(), metric: Metric::Mae, ..Default::default() };
            let ranking = selector.select(&problem, &Run::new(2)).unwrap();
            let last = ranking.choices[k - 1].clone();
            (names(&problem, &ranking), last.valid_score.unwrap(), last.note)
        };
        let (path, ..) = of(&members, 4, &[]);
        for k in 1..=4 {
            let (_, listed, note) = of(&members, k, &[]);
            let alone = members.map(|member| of(&[member], k, &path[..k - 1]));
            let best = alone.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            assert_eq!((listed, &path[k - 1]), (best.1, &best.0[k - 1]), "step {k}");
            assert!(note.is_some_and(|note| note.starts_with("predicted by ")) && best.2.is_none());
        }
    }

    #[test]
    fn every_predictor_finds_what_it_can_see() {
        let (table, label) = planted(150, 6, &[4, 1], 0.3, 11);
        let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
        use Predicting::*;
        for (is_class, predictors) in [
            (false, vec![Ssfn, Mlp, Linear, Knn, Svm, Forest, Tree, Boosting]),
            (true, vec![Ssfn, Mlp, Linear, Logistic, Knn, Svm, Forest, Tree, Boosting]),
        ] {
            let task = if is_class { crate::Task::Classification } else { crate::Task::Regression };
            let problem = Table { task: Some(task), ..table.clone() }.k(2);
            let problem = problem.problem_of_rows(if is_class { &classes } else { &label });
            for predictor in predictors {
                let selector = NeuralGreedyPursuit { predictor: vec![predictor], trees: 10, epochs: 30, ..Default::default() };
                let mut units = selector.select(&problem, &Run::new(0)).unwrap().units();
                units.sort_unstable();
                assert_eq!(units, [1, 4], "{predictor:?} {is_class}");
            }
        }
    }

    /// Images of 8 × 8 of noise, in the third quarter of which there is a bar, upright or lying: no pixel tells, and a network of filters does.
    fn bars(rows: usize) -> (Table, Vec<f64>) {
        let mut random = Run::new(5).random("bars", 0);
        let mut pixels = vec![Vec::new(); 64];
        for row in 0..rows {
            let bar = random.below(4);
            for (pixel, values) in pixels.iter_mut().enumerate() {
                let (y, x) = (pixel / 8, pixel % 8);
                let is_bar = y >= 4 && x < 4 && bar == if row % 2 == 0 { y - 4 } else { x };
                values.push(f64::from(is_bar) + 0.1 * random.normal());
            }
        }
        let mut table = Table { task: Some(crate::Task::Classification), ..Table::new() };
        let names: Vec<String> = (0..64).map(|pixel| format!("pixel_{pixel:02}")).collect();
        table = names.iter().zip(&pixels).fold(table, |table, (name, values)| table.numbers(name, values));
        table.common.groups = windows(&[8, 8], &[4, 4], &names).unwrap();
        (table.k(1), (0..rows).map(|row| (row % 2) as f64).collect())
    }

    fn cnn() -> NeuralGreedyPursuit {
        let predictor = vec![Predicting::Cnn];
        NeuralGreedyPursuit { predictor, image: vec![8, 8], window: vec![4, 4], validation: Some(0.25), ..Default::default() }
    }

    #[test]
    fn filters_find_the_window_with_the_bar() {
        let (table, label) = bars(160);
        let problem = table.problem_of_rows(&label);
        let select = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| cnn().select(&problem, &Run::new(0)).unwrap())
        };
        let ranking = select(1);
        assert_eq!(names(&problem, &ranking), ["window_1_0"]);
        assert!(ranking.choices[0].valid_score.unwrap() > 0.9, "{:?}", ranking.choices[0]);
        assert_eq!(select(3), ranking);
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let (table, label) = bars(20);
        let refused = |table: &Table, label: &[f64], selector: NeuralGreedyPursuit| {
            selector.select(&table.problem_of_rows(label), &Run::new(0)).unwrap_err().to_string()
        };
        let image = |image: &[usize]| NeuralGreedyPursuit { image: image.to_vec(), ..cnn() };
        assert_eq!(
            refused(&table, &label, image(&[])),
            "predictor 'cnn' needs `image`: the rows and columns of the image, such as [28, 28]"
        );
        assert_eq!(
            refused(&table, &label, image(&[2, 32])),
            "`image` must be 4 × 4 pixels at least for predictor 'cnn', got 2 × 32"
        );
        assert!(refused(&table, &label, image(&[8, 9])).starts_with("`image` of 8 × 9 needs 72 pixel columns, and there are 64"));
        assert!(refused(&table, &label, image(&[64])).starts_with("`image` must be two numbers, rows and columns, got [64]"));
        let numbers = Table { task: Some(crate::Task::Regression), ..table.clone() };
        assert_eq!(
            refused(&numbers, &label, cnn()),
            "predictor 'cnn' cannot predict numbers; 'ssfn', 'mlp', 'linear', 'knn', 'svm', 'forest', 'tree' and 'boosting' can"
        );
    }

    #[test]
    fn what_cannot_be_predicted_is_refused_with_what_can() {
        let (table, label) = planted(60, 4, &[1], 0.3, 11);
        let refused = |table: &Table, label: &[f64], selector: NeuralGreedyPursuit| {
            selector.select(&table.clone().k(1).problem_of_rows(label), &Run::new(0)).unwrap_err().to_string()
        };
        let with = |predictor| NeuralGreedyPursuit { predictor: vec![predictor], ..Default::default() };
        assert_eq!(
            refused(&table, &label, with(Predicting::Logistic)),
            "predictor 'logistic' cannot predict numbers; 'ssfn', 'mlp', 'linear', 'knn', 'svm', 'forest', 'tree' and 'boosting' can"
        );
        let classes: Vec<f64> = (0..60).map(|row| f64::from(row % 3)).collect();
        let three = Table { task: Some(crate::Task::Classification), ..table.clone() };
        assert_eq!(
            refused(&three, &classes, with(Predicting::Svm)),
            "predictor 'svm' cannot predict 3 classes; 'ssfn', 'mlp', 'linear', 'logistic', 'knn', 'forest', 'tree' and 'boosting' can"
        );
        let weighted = Table { weights: Some(vec![2.0; 60]), ..table.clone() };
        assert_eq!(
            refused(&weighted, &label, with(Predicting::Knn)),
            "predictor 'knn' knows no weights; 'ssfn', 'mlp', 'linear', 'forest', 'tree' and 'boosting' do"
        );
        let both = NeuralGreedyPursuit { folds: Some(3), validation: Some(0.2), ..Default::default() };
        assert!(refused(&table, &label, both).starts_with("give `folds` or `validation`, not both"));
        let accuracy = NeuralGreedyPursuit { metric: Metric::Accuracy, ..Default::default() };
        assert!(refused(&table, &label, accuracy).starts_with("`metric` must not be 'accuracy'"));
    }

    /// A shortlist leaves the choice as it is.
    #[test]
    fn the_shortlist_holds_the_best() {
        let (table, label) = sample_table("artificial", 250, 80, 3);
        let problem = table.k(5).problem_of_rows(&label);
        let select = |shortlist| {
            NeuralGreedyPursuit { shortlist: Some(shortlist), ..Default::default() }.select(&problem, &Run::new(0)).unwrap()
        };
        assert_eq!(select(0.05).units(), select(1.0).units());
    }

    #[test]
    fn cancels_inside_a_step() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
        let (table, label) = planted(60, 30, &[1], 0.3, 11);
        let problem = table.k(5).problem_of_rows(&label);
        let flag = Arc::new(AtomicBool::new(false));
        let (seen, cancel) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&flag));
        let count = Arc::clone(&seen);
        // The first report is before the first step: from then on nobody asks for another.
        let run = Run::new(0).with_cancel(flag).with_progress(move |_, _, _| {
            count.fetch_add(1, Ordering::Relaxed);
            cancel.store(true, Ordering::Relaxed);
        });
        assert_eq!(NeuralGreedyPursuit::default().select(&problem, &run), Err(Error::cancelled()));
        assert_eq!(seen.load(Ordering::Relaxed), 1);
        let (table, label) = bars(20);
        assert_eq!(cnn().select(&table.problem_of_rows(&label), &run), Err(Error::cancelled()));
    }
}
