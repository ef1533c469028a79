//! A selector on binned columns: features by how much the label's mean differs from bin to bin.

use pursuit_udfs::{BINS_MAX, Bins, Check, Choice, Problem, Ranking, Reads, Result, Rows, Run, Selector, selector};

selector! {
    /// Correlation ratio: features by the share of the label's variance that lies between their bins.
    ///
    /// Sees what is not linear, too. A group counts as its best feature.
    ///
    /// Cost: one look at every value.
    #[selector(name = "correlation_ratio", aliases = [], labels = Any, score = "share of the label's variance between bins")]
    pub struct CorrelationRatio {
        /// Bins of a feature.
        bins: usize = 16, Check::Between(2.0, BINS_MAX as f64);
    }
}

impl Selector for CorrelationRatio {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let (rows, bins) = (problem.rows(), problem.bins(self.bins, run)?);
        let mut units = Vec::new();
        for (at, unit) in problem.units.iter().enumerate().filter(|(at, _)| problem.why_never(*at).is_none()) {
            run.step(at, problem.units.len())?;
            let ratios = unit.features.iter().map(|feature| ratio(rows, &bins, *feature));
            units.push((at, ratios.fold(0.0, f64::max)));
        }
        let forced = |unit: usize| problem.must_include.iter().position(|other| *other == unit).unwrap_or(usize::MAX);
        units.sort_by(|a, b| forced(a.0).cmp(&forced(b.0)).then(b.1.total_cmp(&a.1)).then(a.0.cmp(&b.0)));
        units.truncate(problem.k.unwrap_or(units.len()));
        let choices = units.iter().enumerate().map(|(at, (unit, ratio))| Choice::new(at + 1, *unit, *ratio)).collect();
        Ok(Ranking { choices, ..Ranking::default() })
    }
}

fn ratio(rows: &Rows, bins: &Bins, feature: usize) -> f64 {
    let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
    let (mut between, mut all) = (0.0, 0.0);
    for label in &rows.labels {
        let mut sums = vec![(0.0, 0.0); bins.features[feature].width()];
        for (row, (code, y)) in bins.codes.of_feature[feature].iter().zip(label).enumerate() {
            let (sum, count) = &mut sums[usize::from(*code)];
            (*sum, *count) = (*sum + weight(row) * y, *count + weight(row));
            all += weight(row) * y * y;
        }
        between += sums.iter().filter(|(_, count)| *count > 0.0).map(|(sum, count)| sum * sum / count).sum::<f64>();
    }
    between / all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pursuit_udfs::testing::Table;

    /// A parabola, which no linear method sees.
    #[test]
    fn sees_what_is_not_linear() {
        let table = Table::random(300, 4, 3).k(2);
        let label: Vec<f64> = table.column(2).iter().map(|x| x * x).collect();
        let ranking = CorrelationRatio::default().select(&table.problem_of_rows(&label), &Run::default()).unwrap();
        assert_eq!(ranking.units()[0], 2);
        assert!(ranking.choices[0].score > 0.8 && ranking.choices[1].score < 0.3, "{ranking:?}");
    }
}
