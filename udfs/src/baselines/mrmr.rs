use crate::filters::counts::{Cells, Information};
use crate::filters::greedy::{Greedy, features};
use crate::filters::variance::Variance;
use crate::linear::products::Products;
use crate::{Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What relevance and redundancy are, and how they are weighed against each other.
    pub enum Scheme {
        Fcq = "fcq",
        Fcd = "fcd",
        Miq = "miq",
        Mid = "mid",
    }
}

selector! {
    /// Minimum redundancy, maximum relevance.
    ///
    /// Chooses features one at a time: the one with much to do with the label and little with the features chosen before.
    ///
    /// | `scheme` | relevance | redundancy | score |
    /// |---|---|---|---|
    /// | `'fcq'` | F statistic, as in `f_test` | mean absolute correlation with the chosen | their quotient |
    /// | `'fcd'` | the same | the same | their difference |
    /// | `'miq'` | mutual information with the label | mean mutual information with the chosen | their quotient |
    /// | `'mid'` | the same | the same | their difference |
    ///
    /// A text or a group is in 'fcq' and 'fcd' one feature of all its columns; with mutual information a text has its levels, NULL is a value of its own, and a group is as good as its best column. `k => 'auto'` goes on while
    /// the extended Bayesian information criterion of least squares gets better.
    ///
    /// Cost: one pass over the table for 'fcq' and 'fcd', then `features` operations a choice; the others keep the rows, and count them for each feature and each choice.
    ///
    /// Source: Ding and Peng, 2005. Minimum redundancy feature selection from microarray gene expression data. For 'fcq' as it is here: Zhao, Anand and Wang, 2019.
    #[selector(
        name = "mrmr",
        aliases = [],
        labels = Any,
        score = "relevance by redundancy, or less it",
    )]
    pub struct Mrmr {
        /// What relevance and redundancy are, and whether they are divided or subtracted.
        scheme: Scheme = Scheme::Fcq;
        ..information: Information;
    }
}

/// The least redundancy that something is divided by.
const FLOOR: f64 = 0.001;

impl Selector for Mrmr {
    fn reads(&self) -> Reads {
        match self.scheme {
            Scheme::Fcq | Scheme::Fcd => Reads::Moments,
            Scheme::Miq | Scheme::Mid => Reads::Rows,
        }
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        let is_of_information = ["bins", "bias"].contains(&option);
        (is_of_information && self.reads() == Reads::Moments).then_some("scheme => 'miq' or 'mid'")
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let is_quotient = matches!(self.scheme, Scheme::Fcq | Scheme::Miq);
        let score = |relevance: f64, links: f64, chosen: f64| match (chosen > 0.0, is_quotient) {
            (false, _) => relevance,
            (true, false) => relevance - links / chosen,
            // A copy of all that was chosen says nothing.
            (true, true) if links / chosen >= 1.0 - 1e-12 && self.reads() == Reads::Moments => 0.0,
            (true, true) => relevance / (links / chosen).max(FLOOR),
        };
        let join = |sum: f64, new: f64| sum + new;
        if self.reads() == Reads::Rows {
            let cells = Cells::new(problem, &self.information, run)?;
            let (features, unit_of) = features(problem);
            let relevance: Vec<f64> = features.iter().map(|feature| cells.with_label(*feature).information).collect();
            let greedy = Greedy { problem, unit_of: &unit_of, relevance: &relevance };
            return greedy.select(run, 0.0, |chosen| cells.with_feature(&features, features[chosen], run), join, score);
        }
        let products = Products::new(problem, run)?;
        let of_unit = Variance::of(problem, &products);
        let unit_of: Vec<usize> = (0..of_unit.len()).filter(|unit| of_unit[*unit].is_some()).collect();
        let relevance: Vec<f64> = of_unit.iter().flatten().map(Variance::f).collect();
        let greedy = Greedy { problem, unit_of: &unit_of, relevance: &relevance };
        greedy.select(run, 0.0, |chosen| Ok(correlations(&products, &unit_of, unit_of[chosen])), join, score)
    }
}

/// How alike each unit and the chosen one are: the root of the mean squared canonical correlation, of two columns their absolute correlation.
fn correlations(products: &Products, units: &[usize], chosen: usize) -> Vec<f64> {
    let mut squares = vec![0.0; products.columns()];
    for column in products.units[chosen].clone() {
        let cross = products.cross(column);
        let energy = products.energies[column];
        squares.iter_mut().zip(cross).enumerate().for_each(|(j, (sum, c))| *sum += c * c / energy / products.energies[j]);
    }
    let of = |unit: &usize| {
        let columns = products.units[*unit].clone();
        let most = columns.len().min(products.units[chosen].len()) as f64;
        (squares[columns].iter().sum::<f64>() / most).sqrt().clamp(FLOOR, 1.0)
    };
    units.iter().map(of).collect()
}
