//! Tables of counts of binned features, and the information in them.

use std::sync::Arc;

use rayon::prelude::*;

use crate::kernels::tails::ln_chi2_tail;
use crate::reading::bins::Counts;
use crate::{BINS_MAX, Bins, Check, Label, Lease, Problem, Result, Run, choice, options};

choice! {
    /// What is done about counts that are few.
    pub enum Bias {
        MillerMadow = "miller_madow",
        None = "none",
    }
}

options! {
    /// How information is measured.
    pub struct Information {
        /// Most bins of a number, of about equal weight; a text has one for each level, NULL one of its own. NULL: the cube root of the rows, ten at most.
        bins: Option<usize> = None, Check::Between(2.0, BINS_MAX as f64);
        /// Few rows in many cells look informative by chance: 'miller_madow' takes away what they would on average, 'none' counts as it is.
        bias: Bias = Bias::MillerMadow;
    }
}

/// The features of a problem and its label as small whole numbers.
pub(crate) struct Cells {
    bins: Arc<Bins>,
    /// The bin or class of the label of each row, and how many there are.
    label: Vec<u32>,
    pub classes: usize,
    counts: Counts,
    rows: usize,
    /// What all rows count together, and how many rows that stands for.
    total: f64,
    weight: f64,
    bias: Bias,
    /// c ln c of small counts.
    logs: Vec<f64>,
    _lease: Lease,
}

/// Information in nats, and what a test of it needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    /// Without what chance has in it, if that is asked for.
    pub information: f64,
    pub ln_p: Option<f64>,
}

/// Counts of which logarithms are looked up.
const LOGS: usize = 1 << 16;

/// How many bins a number has.
pub(crate) fn bins(wanted: Option<usize>, problem: &Problem) -> usize {
    let by_rows = || (problem.rows().weight().max(problem.rows().rows() as f64).cbrt().ceil() as usize).min(10);
    wanted.unwrap_or_else(by_rows).max(2)
}

impl Cells {
    pub fn new(problem: &Problem, options: &Information, run: &Run) -> Result<Self> {
        let (rows, most) = (problem.rows(), bins(options.bins, problem));
        let lease = run.reserve(rows.rows() * 3 * size_of::<u32>() + LOGS * size_of::<f64>())?;
        let bins = problem.bins(most, run)?;
        let (label, classes) = match &problem.label {
            Label::Classes(classes) => (rows.targets.iter().map(|class| *class as u32).collect(), classes.len()),
            Label::Numbers => {
                let cut = Bins::of_columns(&rows.labels, &rows.weights, most, run)?;
                (cut.codes.of_feature[0].iter().map(|code| u32::from(*code)).collect(), cut.features[0].width())
            }
        };
        let counts = Counts::of(rows);
        let total: f64 = (0..rows.rows()).map(|row| f64::from(counts.get(row))).sum();
        let log = |count: usize| if count == 0 { 0.0 } else { count as f64 * (count as f64).ln() };
        let logs = (0..LOGS.min(total as usize + 1)).map(log).collect();
        let (rows, weight, bias) = (rows.rows(), total / counts.unit, options.bias);
        Ok(Self { bins, label, classes, counts, rows, total, weight, bias, logs, _lease: lease })
    }

    fn width(&self, feature: usize) -> usize {
        self.bins.features[feature].width()
    }

    /// How often each bin of a feature occurs with each of `width` other codes: `[bin * width + code]`.
    fn table(&self, feature: usize, others: &[u32], width: usize) -> Vec<u64> {
        let codes = &self.bins.codes.of_feature[feature];
        if self.counts.is_whole() && (self.total as usize) < u32::MAX as usize {
            let mut table = vec![0u32; self.width(feature) * width];
            for (row, (code, other)) in codes.iter().zip(others).enumerate() {
                table[usize::from(*code) * width + *other as usize] += self.counts.get(row);
            }
            return table.into_iter().map(u64::from).collect();
        }
        let mut table = vec![0u64; self.width(feature) * width];
        for (row, (code, other)) in codes.iter().zip(others).enumerate() {
            table[usize::from(*code) * width + *other as usize] += u64::from(self.counts.get(row));
        }
        table
    }

    /// Σ c ln c of some counts, and how many are not 0.
    fn sum(&self, counts: impl Iterator<Item = u64>) -> (f64, f64) {
        let (mut sum, mut cells) = (0.0, 0.0);
        for count in counts.filter(|count| *count > 0) {
            sum += self.logs.get(count as usize).copied().unwrap_or_else(|| count as f64 * (count as f64).ln());
            cells += 1.0;
        }
        (sum, cells)
    }

    /// Sums over the first code, for each second, and the other way round.
    fn margins(table: &[u64], width: usize) -> (Vec<u64>, Vec<u64>) {
        let first = table.chunks(width).map(|row| row.iter().sum()).collect();
        let second = (0..width).map(|at| table.iter().skip(at).step_by(width).sum()).collect();
        (first, second)
    }

    /// Between the two codes of a table.
    fn of_table(&self, table: &[u64], width: usize) -> Measured {
        let (first, second) = Self::margins(table, width);
        let all = (self.total * self.total.ln(), 1.0);
        let (one, two) = (self.sum(first.into_iter()), self.sum(second.into_iter()));
        self.measured(self.sum(table.iter().copied()), all, one, two)
    }

    /// `(joint + common − one − two) / total`, where each has Σ c ln c and its cells.
    fn measured(&self, joint: (f64, f64), common: (f64, f64), one: (f64, f64), two: (f64, f64)) -> Measured {
        let plain = (joint.0 + common.0 - one.0 - two.0) / self.total;
        let excess = match self.bias {
            Bias::MillerMadow => (joint.1 + common.1 - one.1 - two.1) / (2.0 * self.weight),
            Bias::None => 0.0,
        };
        // Under independence the cells that could be filled are all pairs, within each common one.
        let freedom = if common.1 == 1.0 { (one.1 - 1.0) * (two.1 - 1.0) } else { joint.1 + common.1 - one.1 - two.1 };
        let ln_p = (freedom > 0.0).then(|| ln_chi2_tail(freedom, 2.0 * self.weight * plain.max(0.0)));
        Measured { information: plain - excess, ln_p }
    }

    /// Pearson's χ² of a feature and the label: the statistic, and the logarithm of its p-value.
    pub fn chi2(&self, feature: usize) -> (f64, Option<f64>) {
        let table = self.table(feature, &self.label, self.classes);
        let (bins, classes) = Self::margins(&table, self.classes);
        let mut statistic = 0.0;
        for (at, count) in table.iter().enumerate() {
            let expected = bins[at / self.classes] as f64 * classes[at % self.classes] as f64 / self.total;
            if expected > 0.0 {
                statistic += (*count as f64 - expected).powi(2) / expected;
            }
        }
        statistic *= self.weight / self.total;
        let filled = |counts: &[u64]| counts.iter().filter(|count| **count > 0).count() as f64 - 1.0;
        let freedom = filled(&bins) * filled(&classes);
        (statistic, (freedom > 0.0).then(|| ln_chi2_tail(freedom, statistic)))
    }

    /// Of a feature and the label.
    pub fn with_label(&self, feature: usize) -> Measured {
        self.of_table(&self.table(feature, &self.label, self.classes), self.classes)
    }

    /// Of each of some features and another one.
    pub fn with_feature(&self, features: &[usize], other: usize, run: &Run) -> Result<Vec<f64>> {
        let codes: Vec<u32> = self.bins.codes.of_feature[other].iter().map(|code| u32::from(*code)).collect();
        let width = self.width(other);
        let of = |feature: &usize| {
            run.check()?;
            Ok(self.of_table(&self.table(*feature, &codes, width), width).information)
        };
        features.par_iter().map(of).collect()
    }

    /// What each of some features says of the label to one who knows another feature.
    pub fn with_label_given(&self, features: &[usize], known: usize, run: &Run) -> Result<Vec<f64>> {
        let (classes, width) = (self.classes, self.width(known));
        let codes = &self.bins.codes.of_feature[known];
        let both: Vec<u32> =
            codes.iter().zip(&self.label).map(|(code, label)| u32::from(*code) * classes as u32 + label).collect();
        let mut pairs = vec![0u64; width * classes];
        (0..self.rows).for_each(|row| pairs[both[row] as usize] += u64::from(self.counts.get(row)));
        let common = self.sum(pairs.chunks(classes).map(|labels| labels.iter().sum()));
        let labels = self.sum(pairs.iter().copied());
        let of = |feature: &usize| {
            run.check()?;
            let table = self.table(*feature, &both, width * classes);
            let bins = self.sum(table.chunks(classes).map(|labels| labels.iter().sum()));
            Ok(self.measured(self.sum(table.iter().copied()), common, bins, labels).information)
        };
        features.par_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::Table;

    fn cells(table: &Table, label: &[f64]) -> Cells {
        let information = Information { bias: Bias::None, ..Information::default() };
        let table = Table { task: Some(Task::Classification), ..table.clone() };
        Cells::new(&table.problem_of_rows(label), &information, &Run::default()).unwrap()
    }

    /// The label is one feature or not another: alone neither says anything, to one who knows the other each says all.
    #[test]
    fn what_only_two_features_say() {
        let bit = |row: usize, place: usize| ((row >> place) & 1) as f64;
        let columns: Vec<Vec<f64>> = (0..3).map(|place| (0..64).map(|row| bit(row, place)).collect()).collect();
        let label: Vec<f64> = (0..64).map(|row| f64::from(bit(row, 0) != bit(row, 1))).collect();
        let table = columns.iter().enumerate().fold(Table::new(), |table, (at, column)| table.numbers(&format!("x{at}"), column));
        let cells = cells(&table, &label);
        assert!((0..3).all(|feature| cells.with_label(feature).information.abs() < 1e-12));
        let given = cells.with_label_given(&[0, 2], 1, &Run::default()).unwrap();
        assert!((given[0] - 2f64.ln()).abs() < 1e-12 && given[1].abs() < 1e-12, "{given:?}");
        let others = cells.with_feature(&[1, 2], 1, &Run::default()).unwrap();
        assert!((others[0] - 2f64.ln()).abs() < 1e-12 && others[1].abs() < 1e-12, "{others:?}");
    }

    /// A table of two by two: ten of each in the diagonal, five beside it.
    #[test]
    fn a_small_table() {
        let x: Vec<f64> = (0..30).map(|row| f64::from(row >= 15)).collect();
        let label: Vec<f64> = (0..30).map(|row| f64::from((5..20).contains(&row) == (row >= 15))).collect();
        let cells = cells(&Table::new().numbers("x", &x), &label);
        let share = |count: f64, expected: f64| count * (count / expected).ln() / 30.0;
        let measured = cells.with_label(0);
        let (chi2, ln_p) = cells.chi2(0);
        let one: f64 = (0..30).map(|row| x[row] * label[row]).sum();
        let (n1, n2): (f64, f64) = (x.iter().sum(), label.iter().sum());
        let table = [[30.0 - n1 - n2 + one, n2 - one], [n1 - one, one]];
        let (mut information, mut statistic) = (0.0, 0.0);
        for (i, row) in table.iter().enumerate() {
            for (j, count) in row.iter().enumerate() {
                let expected = [30.0 - n1, n1][i] * [30.0 - n2, n2][j] / 30.0;
                information += if *count > 0.0 { share(*count, expected) } else { 0.0 };
                statistic += (count - expected).powi(2) / expected;
            }
        }
        assert!((measured.information - information).abs() < 1e-12 && (chi2 - statistic).abs() < 1e-12);
        assert!((ln_p.unwrap() - ln_chi2_tail(1.0, statistic)).abs() < 1e-12);
    }
}
