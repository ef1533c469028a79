mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::contract::report::{Kind, Repeats, Report, Values};
use crate::contract::selector::Selector;
use crate::judging::judge::{self, Verdict};
use crate::judging::resample::{HeldOut, Pieces};
use crate::network::samples::Inputs;
use crate::network::training::Training;
use crate::predictors::linear;
use crate::predictors::trees::{Others, Trees};
use crate::settings::options::Settings;
use crate::trees::boosting::Boosting;
use crate::{Check, Error, Label, Problem, Result, Rows, Run, Split, choice, report};

choice! {
    /// What predicts the label.
    pub enum Model {
        Mlp = "mlp",
        Linear = "linear",
        Logistic = "logistic",
        Forest = "forest",
        Boosting = "boosting",
    }
}

report! {
    /// How well features, or a selector's, predict a label.
    ///
    /// Trains a model on the given features (all, if none are given) and tells how good its predictions are on rows that it has not seen. With `selector`
    /// the features are selected first, by the rows that the model learns from alone: so the answer is that of the whole way from rows to predictions, and a
    /// selection from noise is worth what noise is. Features that were selected with a look at the rows that judge them would be praised for what they remember.
    ///
    /// Judged on the table given as `test`, which is filled and scaled as the training rows are; with `folds` on every fold of the rows, while the
    /// others are learnt from; otherwise on a held-out share of the rows (`validation`, by default a fifth). The row `train` tells the same for the rows learnt from.
    ///
    /// For classes accuracy, log loss, the area under the ROC curve (with many classes the mean over each against all others), balanced accuracy, F1
    /// (with many classes the mean), and the expected calibration error over ten bins; for numbers R², RMSE and MAE. `confusion => true` adds the rows of each
    /// class by the class predicted.
    ///
    /// Trained anew for each of the `seeds`; `value` is the mean, `deviation` the standard deviation over seeds. `standard_error` is that over folds; without
    /// folds that of accuracy and of the area under the curve (DeLong), as the rows tell it. With folds the rows in which `fold` is NULL are the means. `value` is
    /// NULL where the rows cannot tell: R² of a label that does not vary in them, the area under the curve of one class. `seeds` counts those that could be judged.
    ///
    /// The model is a network, least squares (which has no log loss, because fitted values are no probabilities), logistic regression, a random forest of 100 trees, or
    /// boosted trees, of which there are 100 (of three classes and more for each class).
    #[report(name = "evaluate", aliases = [], table = ("test", "The rows to judge by, with the same columns."))]
    pub struct Evaluate {
        /// What predicts the label.
        model: Model = Model::Mlp;
        /// How many times to train, each time from another random start.
        seeds: usize = 1, Check::Between(1.0, 1000.0);
        /// The selector that chooses the features, by the rows learnt from alone. NULL: all features are given.
        selector: Option<String> = None;
        /// The selector's own options, as a map or a JSON text; those that all selectors have are given beside it.
        selector_options: Settings = Settings::new();
        /// Whether to count the rows of each class by the class predicted.
        confusion: bool = false;
        ..training: Training;
    }
}

/// Trees of a forest, rounds of boosting.
const TREES: usize = 100;

/// The verdicts on the rows judged by and on those learnt from, of each fold of a seed.
type Verdicts = Vec<Vec<Verdict>>;

impl Report for Evaluate {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        table::columns()
    }

    fn repeats(&self) -> Option<Repeats> {
        self.selector.clone().map(|selector| Repeats { selector, options: self.selector_options.clone() })
    }

    /// With a second table there are those of the seeds only.
    fn repetitions(&self, folds: Option<usize>, _: usize) -> usize {
        self.seeds * folds.unwrap_or(1)
    }

    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        self.report_on(None, problem, run)
    }

    fn report_on(&self, selector: Option<&dyn Selector>, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        self.check(problem)?;
        let folds = if problem.held_out.is_some() { 1 } else { problem.folds.unwrap_or(1) };
        let verdicts = run.repeat(
            || problem.fingerprint(),
            self.seeds * folds,
            |mine, run| {
                let begun = AtomicUsize::new(0);
                let of_seeds: Vec<&[usize]> = mine.chunk_by(|a, b| a / folds == b / folds).collect();
                let one = |mine: &&[usize]| {
                    run.step(begun.fetch_add(1, Ordering::Relaxed), of_seeds.len())?;
                    let of_seed: Vec<usize> = mine.iter().map(|at| at % folds).collect();
                    self.verdicts(selector, problem, &of_seed, &run.with_seed((mine[0] / folds) as u64))
                };
                let verdicts: Vec<Verdicts> = of_seeds.par_iter().map(one).collect::<Result<_>>()?;
                Ok(verdicts.into_iter().flatten().collect())
            },
        )?;
        let verdicts: Vec<Verdicts> = verdicts.chunks(folds).map(<[_]>::to_vec).collect();
        Ok(table::values(&verdicts, problem, self.confusion))
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        match option {
            "k" | "must_include" | "selector_options" | "costs" | "budget" if self.selector.is_none() => Some("`selector`"),
            // Rows are held out for any model.
            option if self.model != Model::Mlp && Training::has(option) && option != "validation" => Some("model => 'mlp'"),
            _ => None,
        }
    }
}

impl Evaluate {
    fn check(&self, problem: &Problem) -> Result<()> {
        let rows = problem.rows().rows();
        if self.model == Model::Logistic && problem.label == Label::Numbers {
            return Err(Error::data(
                "model => 'logistic' predicts classes, and the label is a number; use model => 'linear', 'forest', 'boosting' or 'mlp'",
            ));
        }
        match &problem.held_out {
            Some(_) if problem.folds.is_some() && problem.k.is_some() => {
                Err(Error::call("`folds` and `test` both say which rows judge; leave one of them out"))
            }
            Some(test) if test.rows() == 0 => Err(Error::data("the table given as `test` has no rows with a label")),
            None if problem.folds.is_none() && rows < 10 => {
                Err(Error::data(format!("{rows} rows are too few to hold some out; give a table as `test`")))
            }
            _ => Ok(()),
        }
    }

    /// What is judged with one seed: some of the folds, or the rows that were held out.
    fn verdicts(&self, selector: Option<&dyn Selector>, problem: &Problem, mine: &[usize], run: &Run) -> Result<Verdicts> {
        let judged = |own: &Problem, test: &Rows| {
            let own = self.selected(selector, own, run)?;
            self.judged(&own, Some(test), &Split::none(own.rows().rows()), run)
        };
        if let Some(test) = &problem.held_out {
            return Ok(vec![judged(problem, test)?]);
        }
        let Some(folds) = problem.folds else {
            let rows = problem.rows();
            let split = self.training.split(rows, true, run);
            if selector.is_none() {
                return Ok(vec![self.judged(problem, None, &split, run)?]);
            }
            let columns = rows.columns.len() + rows.labels.len() + 2;
            let _memory = run.reserve((split.train.len() + 2 * split.valid.len()) * columns * size_of::<f64>())?;
            let own = problem.on(&split.train, &split.valid).expect("the rows are there");
            let test = own.held_out.clone().expect("some are held out");
            return Ok(vec![judged(&own, &test)?]);
        };
        let pieces = Pieces::new(problem, run)?;
        let parts = pieces.folds(folds)?;
        let one = |fold: usize| {
            run.step_with(fold, folds, || "folds".to_string())?;
            let piece = pieces.without(&parts, fold, run)?;
            let HeldOut::Rows(test) = &piece.held_out else { unreachable!("rows were kept") };
            judged(&piece.problem, test)
        };
        mine.iter().map(|fold| one(*fold)).collect()
    }

    /// The question about the features that a selector chooses. Folds are for judging it, unless it is to say how many by them.
    fn selected(&self, selector: Option<&dyn Selector>, problem: &Problem, run: &Run) -> Result<Problem> {
        let Some(selector) = selector else { return Ok(problem.clone()) };
        let folds = problem.folds.filter(|_| problem.k.is_none());
        let asked = Problem { folds, held_out: None, ..problem.clone() };
        let chosen = crate::answer(selector, &asked, run)?.units();
        Ok(problem.among(&chosen))
    }

    /// The verdicts on the rows judged by, which are a table of their own or some of the rows, and on those learnt from.
    fn judged(&self, problem: &Problem, test: Option<&Rows>, split: &Split, run: &Run) -> Result<Vec<Verdict>> {
        let rows = problem.rows();
        let varies = |column: &usize| rows.columns[*column].iter().any(|x| *x != 0.0);
        let mut columns: Vec<usize> = problem.units.iter().flat_map(|unit| unit.columns.iter().copied()).filter(varies).collect();
        columns.sort_unstable();
        let inputs = Inputs::new(problem, rows, columns);
        // Without a feature there is nothing to learn but how often each label is.
        let model = match (inputs.columns.is_empty(), &problem.label) {
            (true, Label::Numbers) => Model::Linear,
            (true, Label::Classes(_)) => Model::Logistic,
            (false, _) => self.model,
        };
        if matches!(model, Model::Forest | Model::Boosting) {
            let trees = match model {
                Model::Boosting => Trees::Boosting(Boosting { rounds: TREES, ..Boosting::default() }),
                _ => Trees::forest(TREES),
            };
            let others = test.map_or(Others::Rows(&split.valid), Others::Table);
            return trees.verdicts(problem, &inputs, &split.train, others, run);
        }
        let samples = |rows: &Rows| inputs.samples(rows, &Split::none(rows.rows()).train, run).map(Arc::new);
        let (own, others) = (samples(rows)?, test.map(samples).transpose()?);
        let part = |rows: &[usize]| -> Arc<[u32]> { rows.iter().map(|row| *row as u32).collect() };
        let (learnt, valid) = (part(&split.train), part(&split.valid));
        let all = others.as_ref().map(|others| others.all());
        let train = (&own, &learnt);
        let test = others.as_ref().zip(all.as_ref()).unwrap_or((&own, &valid));
        let steps = judge::steps(&self.training, own.pass_rows(&learnt));
        match model {
            Model::Linear => linear::least_squares(&inputs, train, &[test, train], run),
            Model::Logistic => linear::logistic(&inputs, train, &[test, train], run),
            _ => judge::fit(&inputs, train, &[test, train], &self.training, steps, run),
        }
    }
}

#[cfg(test)]
mod tests;
