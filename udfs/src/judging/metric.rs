//! The qualities of a prediction, with their usual definitions.

use crate::choice;
use crate::judging::folds::Folds;

choice! {
    /// How well a prediction does.
    pub enum Metric {
        Auto = "auto",
        R2 = "r2",
        Accuracy = "accuracy",
        Mae = "mae",
        Mse = "mse",
        Rmse = "rmse",
        Nme = "nme",
        FrobPerRow = "frob_per_row",
    }
}

choice! {
    /// By which error candidates are judged.
    pub enum Criterion {
        Auto = "auto",
        Absolute = "absolute",
        Squared = "squared",
    }
}

impl Criterion {
    /// Whether it is the absolute error. A few rows with extreme labels decide a sum of squares, and which noise happens to fit those rows decides
    /// the choice. A class has no extreme labels, and its 0/1 columns are predicted by their mean, which is what squares ask for.
    pub fn is_absolute(self, is_class: bool) -> bool {
        match self {
            Criterion::Auto => !is_class,
            Criterion::Absolute => true,
            Criterion::Squared => false,
        }
    }
}

/// What the metrics are computed from, summed row by row. Squares are summed over the label's columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tally {
    /// Σ w ‖t − t̂‖²
    squared: f64,
    /// Σ w |t − t̂|
    absolute: f64,
    /// Σ w ‖t‖², of the label itself.
    energy: f64,
    weight: f64,
    /// Σ w of the rows whose class was predicted.
    right: f64,
    sums: Vec<f64>,
    squares: f64,
}

impl Tally {
    /// Adds the row at `row` with what was predicted for it: the label's columns, centred as the folds's are.
    pub fn add(&mut self, folds: &Folds, row: usize, prediction: &[f64]) {
        let weight = folds.weights[row];
        self.sums.resize(prediction.len(), 0.0);
        for (q, predicted) in prediction.iter().enumerate() {
            let label = folds.labels[q][row];
            self.squared += weight * (label - predicted).powi(2);
            self.absolute += weight * (label - predicted).abs();
            self.energy += weight * (label + folds.offsets[q]).powi(2);
            self.sums[q] += weight * label;
            self.squares += weight * label * label;
        }
        self.weight += weight;
        if folds.classes.is_some() && folds.class(prediction) == folds.targets[row] as usize {
            self.right += weight;
        }
    }

    /// What is to be as small as possible.
    pub fn criterion(&self, is_absolute: bool) -> f64 {
        if is_absolute { self.absolute } else { self.squared }
    }

    /// Σ w ‖t − mean‖²; of a single row, which has no spread, the square itself.
    fn spread(&self) -> f64 {
        let means: f64 = self.sums.iter().map(|sum| sum * sum / self.weight).sum();
        let spread = self.squares - means;
        if spread > 1e-12 * self.squares { spread } else { self.squares.max(f64::MIN_POSITIVE) }
    }

    /// The share of the label's spread that is left unexplained.
    pub fn unexplained(&self) -> f64 {
        self.squared / self.spread()
    }

    pub fn score(&self, metric: Metric, is_class: bool) -> f64 {
        match metric {
            Metric::Auto if is_class => self.right / self.weight,
            Metric::Accuracy => self.right / self.weight,
            Metric::Auto | Metric::R2 => 1.0 - self.unexplained(),
            Metric::Mae => self.absolute / self.weight,
            Metric::Mse => self.squared / self.weight,
            Metric::Rmse => (self.squared / self.weight).sqrt(),
            Metric::Nme => decibel(self.squared / self.energy.max(f64::MIN_POSITIVE)),
            Metric::FrobPerRow => self.squared.sqrt() / self.weight,
        }
    }
}

/// A ratio of squares in decibels; nothing is less than -300.
pub(crate) fn decibel(ratio: f64) -> f64 {
    10.0 * ratio.max(1e-30).log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::judging::folds::Holding;
    use crate::testing::Table;

    /// t = 1, 2, 3, 6 predicted as 1, 2, 4, 4, by hand.
    #[test]
    fn metrics_by_hand() {
        let label = [1.0, 2.0, 3.0, 6.0];
        let problem = Table::random(4, 1, 1).problem_of_rows(&label);
        let folds = Folds::new(&problem, Holding::Share(0.5), Criterion::Auto, &Run::new(0)).unwrap();
        let mut tally = Tally::default();
        for row in 0..4 {
            let predicted = match folds.targets[row] {
                3.0 | 6.0 => 4.0,
                other => other,
            };
            tally.add(&folds, row, &[predicted - folds.offsets[0]]);
        }
        let score = |metric| tally.score(metric, false);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(score(Metric::Mae), 3.0 / 4.0) && near(tally.criterion(true), 3.0) && near(tally.criterion(false), 5.0));
        assert!(near(score(Metric::Mse), 5.0 / 4.0) && near(score(Metric::Rmse), 1.25f64.sqrt()));
        assert!(near(score(Metric::R2), 1.0 - 5.0 / 14.0) && near(score(Metric::Auto), 1.0 - 5.0 / 14.0));
        assert!(near(score(Metric::Nme), 20.0 * (5f64.sqrt() / 50f64.sqrt()).log10()));
        assert!(near(score(Metric::FrobPerRow), 5f64.sqrt() / 4.0));
    }
}
