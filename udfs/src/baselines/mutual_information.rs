use rayon::prelude::*;

use crate::filters::counts::{Bias, Cells, Information, Measured};
use crate::filters::discovery::{Discovery, Scored};
use crate::filters::neighbours::{with_classes, with_number};
use crate::reading::bins::{BINS_MAX, Counts};
use crate::{Bins, Check, Error, Label, Problem, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// How information is measured.
    pub enum Estimator {
        Bins = "bins",
        Knn = "knn",
    }
}

selector! {
    /// Mutual information with the label.
    ///
    /// How much a feature by itself says of the label, in nats: any dependence counts, not only a linear one. Blind to redundancy, and to what only several features say together (`cmim`, `jmi`).
    ///
    /// Numbers are cut into bins of about equal weight, the label too if it is one; texts have their levels, NULL is a value of its own. `p_value` is that of the G test of the same table. `estimator => 'knn'` cuts
    /// nothing: it looks how near the nearest rows are, which is finer and slower, knows no p-value, and agrees with scikit-learn's `mutual_info_classif` and `mutual_info_regression` where no two values are equal (those move equal
    /// values apart at random). A group is as good as its best column. `k => 'auto'` takes what is a discovery at `fdr => 0.05`; with 'knn' all that say anything.
    ///
    /// Cost: one pass over the table to bin it, one to count; 'knn' sorts each feature, and for a label of numbers looks at about `rows^1.5` pairs.
    ///
    /// Source: Shannon, 1948. A mathematical theory of communication. For 'knn': Kraskov, Stögbauer and Grassberger, 2004; Ross, 2014.
    #[selector(
        name = "mutual_information",
        aliases = ["mi"],
        labels = Any,
        score = "mutual information in nats",
    )]
    pub struct MutualInformation {
        /// Tables of binned values, or distances to nearest neighbours.
        estimator: Estimator = Estimator::Bins;
        /// Neighbours that distances are taken to.
        neighbours: usize = 3, Check::Between(1.0, 100.0);
        ..information: Information;
        ..discovery: Discovery;
    }
}

/// Rows that are compared with each other at most, each as often as it counts.
const COUNTED_MAX: usize = 100_000_000;

impl Selector for MutualInformation {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn has_size(&self) -> bool {
        self.discovery.fdr.is_some()
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        match (option, self.estimator) {
            ("neighbours", Estimator::Bins) => Some("estimator => 'knn'"),
            ("bins" | "bias" | "fdr" | "correction", Estimator::Knn) => Some("estimator => 'bins'"),
            _ => self.discovery.unused(option),
        }
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let neighbours = match self.estimator {
            Estimator::Bins => None,
            Estimator::Knn => Some(Neighbours::new(problem, self.neighbours, run)?),
        };
        // Texts have cells in either case; nearest neighbours know no bias.
        let bias = if neighbours.is_some() { Bias::None } else { self.information.bias };
        let cells = Cells::new(problem, &Information { bias, ..self.information.clone() }, run)?;
        let of_feature = |feature: &usize| -> Result<Measured> {
            run.check()?;
            let by_distance = neighbours.as_ref().map(|neighbours| neighbours.of(*feature, run)).transpose()?.flatten();
            Ok(by_distance.map_or_else(|| cells.with_label(*feature), |information| Measured { information, ln_p: None }))
        };
        let of_unit = |unit: usize| -> Result<Option<Scored>> {
            let measured = problem.units[unit].features.iter().map(of_feature).collect::<Result<Vec<_>>>()?;
            let best = measured.into_iter().max_by(|a, b| a.information.total_cmp(&b.information));
            Ok(best.map(|best| Scored::by_score(best.information, best.ln_p.filter(|_| neighbours.is_none()))))
        };
        let mut scored = (0..problem.units.len()).into_par_iter().map(of_unit).collect::<Result<Vec<_>>>()?;
        if problem.k.is_none() && neighbours.is_some() {
            let is_forced = |unit: &usize| problem.must_include.contains(unit);
            let says_nothing = |unit: &usize| scored[*unit].is_some_and(|scored| scored.score <= 0.0);
            let silent: Vec<usize> = (0..scored.len()).filter(|unit| says_nothing(unit) && !is_forced(unit)).collect();
            silent.into_iter().for_each(|unit| scored[unit] = None);
        }
        Ok(self.discovery.ranking(problem, &scored))
    }
}

/// Distances to nearest neighbours.
struct Neighbours<'a> {
    problem: &'a Problem,
    counts: Counts,
    neighbours: usize,
    bins: std::sync::Arc<Bins>,
    /// The label, if it is a number, in its standard deviations.
    label: Vec<f64>,
    classes: Vec<u32>,
    _lease: crate::Lease,
}

impl<'a> Neighbours<'a> {
    fn new(problem: &'a Problem, neighbours: usize, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let counts = Counts::of(rows);
        if !counts.is_whole() {
            return Err(Error::call(
                "`weights` must be whole numbers with estimator => 'knn'; round them, or set estimator => 'bins'",
            ));
        }
        let total: usize = (0..rows.rows()).map(|row| counts.get(row) as usize).sum();
        if total > COUNTED_MAX {
            return Err(Error::call(
                "`weights` add up to too many rows for estimator => 'knn'; divide them all by the same number, or set estimator => 'bins'",
            ));
        }
        // Each thread has the points of a feature.
        let lease = run.reserve(total.max(rows.rows()) * (2 + 12 * rayon::current_num_threads()) * size_of::<f64>())?;
        let bins = problem.bins(BINS_MAX, run)?;
        let label = scaled(&rows.labels[0], &counts);
        let classes = rows.targets.iter().map(|class| *class as u32).collect();
        Ok(Self { problem, counts, neighbours, bins, label, classes, _lease: lease })
    }

    /// Information of a feature and the label; `None` of a text and classes, which are counted.
    fn of(&self, feature: usize, run: &Run) -> Result<Option<f64>> {
        let rows = self.problem.rows();
        let count = |row: usize| u64::from(self.counts.get(row));
        let number = rows.design.iter().position(|column| column.feature == feature && column.is_number);
        let found = match (number, &self.problem.label) {
            (None, Label::Classes(_)) => return Ok(None),
            (None, Label::Numbers) => {
                let codes: Vec<u32> = self.bins.codes.of_feature[feature].iter().map(|code| u32::from(*code)).collect();
                with_classes(&self.label, &codes, self.bins.features[feature].width(), count, self.neighbours, run)
            }
            (Some(column), Label::Classes(classes)) => {
                with_classes(&rows.columns[column], &self.classes, classes.len(), count, self.neighbours, run)
            }
            (Some(column), Label::Numbers) => {
                with_number(&scaled(&rows.columns[column], &self.counts), &self.label, count, self.neighbours, run)
            }
        };
        found.map(Some)
    }
}

/// In standard deviations.
fn scaled(values: &[f64], counts: &Counts) -> Vec<f64> {
    let weighted =
        |of: &dyn Fn(f64) -> f64| values.iter().enumerate().map(|(row, x)| f64::from(counts.get(row)) * of(*x)).sum::<f64>();
    let all = weighted(&|_| 1.0);
    let deviation = (weighted(&|x| x * x) / all).sqrt();
    values.iter().map(|x| if deviation > 0.0 { x / deviation } else { *x }).collect()
}
