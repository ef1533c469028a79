use rayon::prelude::*;

use crate::filters::counts::{Bias, Cells, Information};
use crate::filters::discovery::{Discovery, Scored};
use crate::kernels::tails::ln_chi2_tail;
use crate::reading::bins::BINS_MAX;
use crate::{Check, Error, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What a number is.
    pub enum Numbers {
        Bins = "bins",
        Counts = "counts",
    }
}

selector! {
    /// χ² test of each feature against the classes.
    ///
    /// Counts how often each value of a feature meets each class, and compares with what chance would give (Pearson's χ²). Sees any dependence, not only a linear one; blind to redundancy. Features are ranked by
    /// their p-values, because a feature of more values has a larger χ² by chance.
    ///
    /// A number is cut into bins, a text has its levels, NULL is a value of its own. With `numbers => 'counts'` a number is how often something was counted, as words in a text are, and what is compared is how
    /// much of it falls to each class: this is what scikit-learn's `chi2` does, and takes no number below 0. A group is as good as its best column. `k => 'auto'` takes what is a discovery at `fdr => 0.05`.
    ///
    /// Cost: one pass over the table to bin it, one to count.
    ///
    /// Source: Liu and Setiono, 1995. Chi2: feature selection and discretization of numeric attributes.
    #[selector(
        name = "chi2",
        aliases = [],
        labels = Classes,
        score = "χ² statistic",
    )]
    pub struct Chi2 {
        /// What a number is: something to be cut into bins, or a count.
        numbers: Numbers = Numbers::Bins;
        /// Most bins of a number. NULL: the cube root of the rows, ten at most.
        bins: Option<usize> = None, Check::Between(2.0, BINS_MAX as f64);
        ..discovery: Discovery;
    }
}

impl Selector for Chi2 {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn has_size(&self) -> bool {
        self.discovery.fdr.is_some()
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        let bins = (option == "bins" && self.numbers == Numbers::Counts).then_some("numbers => 'bins'");
        bins.or(self.discovery.unused(option))
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let cells = Cells::new(problem, &Information { bins: self.bins, bias: Bias::None }, run)?;
        let weights = class_weights(problem);
        let of_feature = |feature: usize| -> Result<Scored> {
            run.check()?;
            let counts = if self.numbers == Numbers::Counts { of_counts(problem, feature, &weights)? } else { None };
            let (score, ln_p) = counts.unwrap_or_else(|| cells.chi2(feature));
            Ok(Scored { score, ln_p, strength: ln_p.map_or(0.0, |ln_p| -ln_p) })
        };
        let of_unit = |unit: usize| -> Result<Option<Scored>> {
            let scored = problem.units[unit].features.iter().map(|feature| of_feature(*feature)).collect::<Result<Vec<_>>>()?;
            Ok(scored.into_iter().max_by(|a, b| a.strength.total_cmp(&b.strength)))
        };
        let scored = (0..problem.units.len()).into_par_iter().map(of_unit).collect::<Result<Vec<_>>>()?;
        Ok(self.discovery.ranking(problem, &scored))
    }
}

fn class_weights(problem: &Problem) -> Vec<f64> {
    let rows = problem.rows();
    let classes = rows.targets.iter().fold(0.0, |most, class| f64::max(most, *class)) as usize + 1;
    let mut weights = vec![0.0; classes];
    for (row, class) in rows.targets.iter().enumerate() {
        weights[*class as usize] += rows.weights.get(row).copied().unwrap_or(1.0);
    }
    weights
}

/// What of a feature's total falls to each class, against the share that the class has of the rows; `None` of a text.
fn of_counts(problem: &Problem, feature: usize, weights: &[f64]) -> Result<Option<(f64, Option<f64>)>> {
    let rows = problem.rows();
    let Some(column) = rows.design.iter().position(|column| column.feature == feature && column.is_number) else {
        return Ok(None);
    };
    let mean = rows.origins[column].mean;
    let mut observed = vec![0.0; weights.len()];
    for (row, value) in rows.columns[column].iter().enumerate() {
        // Centred and moved back, a 0 may be a last digit below.
        let value = value + mean;
        if value < -1e-9 * mean.abs().max(1e-300) {
            let name = &problem.features()[feature];
            return Err(Error::data(format!(
                "feature `{name}` is {value} in a row, and counts must be at least 0; exclude it, or set numbers => 'bins'"
            )));
        }
        observed[rows.targets[row] as usize] += rows.weights.get(row).copied().unwrap_or(1.0) * value;
    }
    let (total, all): (f64, f64) = (observed.iter().sum(), weights.iter().sum());
    let classes = observed.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
    let terms = classes.map(|(observed, weight)| (observed - total * weight / all).powi(2) / (total * weight / all));
    let statistic = if total > 0.0 { terms.sum() } else { 0.0 };
    let freedom = weights.iter().filter(|weight| **weight > 0.0).count() as f64 - 1.0;
    Ok(Some((statistic, Some(ln_chi2_tail(freedom, statistic)))))
}
