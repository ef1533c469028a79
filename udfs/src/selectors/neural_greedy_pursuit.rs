use std::collections::BTreeMap;

use crate::judging::apart::Apart;
use crate::judging::folds::{FEW_ROWS, Folds, Holding};
use crate::judging::metric::{Criterion, Metric, Tally};
use crate::predictors::Predictor;
use crate::predictors::cnn::{Convolutional, SIDE_MIN};
use crate::predictors::greedy::{Named, Pursuit};
use crate::predictors::knn::Knn;
use crate::predictors::logistic::Logistic;
use crate::predictors::mlp::MlpLearner;
use crate::predictors::readout::Readout;
use crate::predictors::refit::Refit;
use crate::predictors::ssfn::Ssfn;
use crate::predictors::ssfn_paper::PaperSsfn;
use crate::predictors::svm::Svm;
use crate::predictors::trees::{TreeLearner, Trees};
use crate::reading::windows::{check_pixels, two_numbers, windows};
use crate::{Check, Error, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What is trained.
    pub enum Predicting {
        Ssfn = "ssfn",
        SsfnPaper = "ssfn_paper",
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
    /// Neural greedy pursuit: what helps a network most, one by one.
    ///
    /// Adds, again and again, the feature with which a trained predictor does best on rows that it has not seen. It sees what the
    /// predictor sees: with a network also bends and interactions, which linear methods miss. With `k => 'auto'` it stops when the best feature
    /// lowers the error by less than `eta`; that feature is not kept.
    ///
    /// The criterion is the absolute error on the rows held out (of classes: the squared one of their 0/1 columns), by default in five folds (ten of up to 500 rows), so that every row judges
    /// once. Equal rows are always in one fold. `score` is the lead over the runner-up, as a share of the error without any feature; a feature without a rival
    /// (forced, or the last) has what it added. `valid_score` is the `metric` of the features up to this one on the rows held out; the pursuit has looked at
    /// them, so keep rows of your own for a verdict. `train_score` is that of least squares, as for every selector.
    /// With several predictors each step takes the best, and `reason` names it.
    ///
    /// Where we depart from the paper: rows are held out in folds, not once, and numbers are judged by the absolute error, not by the squared one. A few rows
    /// with extreme labels decide a sum of squares, and with it which noise is chosen. Our 'ssfn' has standardised features, neurons with a bias, the features themselves beside the neurons, a ridge that rows held out choose, and weights that a
    /// feature keeps. 'ssfn_paper' is the paper's network to the letter: features as they are, neurons without a bias whose values are divided by their length, the two signs of a linear fit beside them, and a readout of bounded length by a hundred
    /// steps of ADMM. With `validation => 0.1, criterion => 'squared', metric => 'nme', eta => 0.06` it is the paper's pursuit.
    ///
    /// Predictors: 'ssfn' is a network of random neurons whose readout is learnt in closed form; 'mlp' is a trained one, 'cnn' one of filters, for classes of images; 'linear' is least squares; 'logistic' is for classes;
    /// 'forest', 'tree' and 'boosting' are trees on binned columns; 'svm' has a radial kernel and learns from a thousand rows at most; 'knn' is smartcore's. Only ssfn and linear
    /// judge a candidate without a fit from the beginning.
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
        /// Which error on the rows held out candidates are judged by. 'auto': absolute for numbers, so that a few extreme labels do not decide; squared for
        /// classes, of their 0/1 columns.
        criterion: Criterion = Criterion::Auto;
        /// What valid_score is. 'auto': r2 for numbers, accuracy for classes. 'nme' is the squared error in decibels of the label's
        /// square; 'frob_per_row' is the root of the summed squared error by the number of rows, which Das et al. print as MSE.
        metric: Metric = Metric::Auto;
        /// Random neurons of ssfn and ssfn_paper.
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
        ..apart: Apart;
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
        let predictors = self.predictors(problem, &folds, cnn, run)?;
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

    fn unused(&self, option: &str) -> Option<&'static str> {
        let trains = |any: &[Predicting]| any.iter().any(|predictor| self.predictor.contains(predictor));
        let (used, need) = match option {
            "ridge" if self.readout == Readout::Admm => (false, "readout => 'ridge'"),
            "neurons" => (trains(&[Predicting::Ssfn, Predicting::SsfnPaper]), "predictor => 'ssfn'"),
            "readout" | "ridge" | "shortlist" => (trains(&[Predicting::Ssfn]), "predictor => 'ssfn'"),
            "hidden" => (trains(&[Predicting::Mlp]), "predictor => 'mlp'"),
            "epochs" => (trains(&[Predicting::Mlp, Predicting::Cnn]), "predictor => 'mlp' or 'cnn'"),
            "neighbors" => (trains(&[Predicting::Knn]), "predictor => 'knn'"),
            "trees" => (trains(&[Predicting::Forest, Predicting::Boosting]), "predictor => 'forest' or 'boosting'"),
            _ => (true, ""),
        };
        (!used).then_some(need)
    }
}

impl NeuralGreedyPursuit {
    /// The rows, with those that judge set apart.
    fn set_apart(&self, problem: &Problem, run: &Run) -> Result<Folds> {
        self.apart.folds(problem, Holding::Default, self.criterion, run)
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

    fn predictors<'a>(
        &self,
        problem: &Problem,
        folds: &'a Folds,
        cnn: Option<Convolutional>,
        run: &Run,
    ) -> Result<Vec<Named<'a>>> {
        let trees = |trees: Trees| -> Result<Refit<'a>> { Ok(Refit::new(folds, TreeLearner::new(trees, folds, run)?)) };
        let make = |predictor: &Predicting| -> Result<Box<dyn Predictor<'a> + 'a>> {
            Ok(match predictor {
                Predicting::Ssfn => Box::new(Ssfn::new(folds, self.neurons, self.readout, self.ridge, run)),
                Predicting::SsfnPaper => Box::new(Refit::new(folds, PaperSsfn::new(problem, self.neurons, run))),
                Predicting::Linear => Box::new(Ssfn::linear(folds, run)),
                Predicting::Mlp => Box::new(Refit::new(folds, MlpLearner::new(self.hidden.clone(), self.epochs))),
                Predicting::Cnn => Box::new(Refit::new(folds, cnn.clone().expect("it was made, because it is on the list"))),
                Predicting::Logistic => Box::new(Refit::new(folds, Logistic)),
                Predicting::Knn => Box::new(Refit::new(folds, Knn { neighbors: self.neighbors })),
                Predicting::Svm => Box::new(Refit::new(folds, Svm)),
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
    let judged = Folds::judged_by(problem, others, Criterion::Auto, &run)?;
    let (fitted, _) = fit(&judged, ridge)?;
    let score = |tally: &Tally| tally.score(metric, judged.classes.is_some());
    Ok((score(&fitted.train), score(&fitted.valid)))
}

#[cfg(test)]
mod tests;
