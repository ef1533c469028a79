//! Measures of predicted classes, with their usual definitions.

/// What was predicted for some rows, and what was right.
pub(super) struct Predicted<'a> {
    pub actual: &'a [usize],
    pub predicted: &'a [usize],
    /// How often each row counts.
    pub weights: &'a [f64],
    pub classes: usize,
}

impl Predicted<'_> {
    /// `counts[actual * classes + predicted]`
    pub fn confusion(&self) -> Vec<f64> {
        let mut counts = vec![0.0; self.classes * self.classes];
        for ((actual, predicted), weight) in self.actual.iter().zip(self.predicted).zip(self.weights) {
            counts[actual * self.classes + predicted] += weight;
        }
        counts
    }
}

/// Rows of a class, rows predicted to be of it, and both.
fn sums(confusion: &[f64], classes: usize, class: usize) -> (f64, f64, f64) {
    let of_class = confusion[class * classes..(class + 1) * classes].iter().sum();
    let predicted = (0..classes).map(|actual| confusion[actual * classes + class]).sum();
    (of_class, predicted, confusion[class * classes + class])
}

/// The share of rows that are right, as a mean over the classes that there are.
pub(super) fn balanced_accuracy(confusion: &[f64], classes: usize) -> Option<f64> {
    let recall = |class: usize| {
        let (of_class, _, right) = sums(confusion, classes, class);
        (of_class > 0.0).then(|| right / of_class)
    };
    mean((0..classes).filter_map(recall))
}

/// The harmonic mean of precision and recall: of two classes that of the second, of more the mean over those that there are.
pub(super) fn f1(confusion: &[f64], classes: usize) -> Option<f64> {
    let of = |class: usize| {
        let (of_class, predicted, right) = sums(confusion, classes, class);
        (of_class + predicted > 0.0).then(|| 2.0 * right / (of_class + predicted))
    };
    if classes == 2 { of(1) } else { mean((0..classes).filter_map(of)) }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Ten bins of equal width.
const BINS: usize = 10;

/// How far the share of right predictions is from the probability given to them, over ten bins of that probability: the expected calibration error.
pub(super) fn calibration_error(confidences: &[f64], is_right: impl Fn(usize) -> bool, weights: &[f64]) -> f64 {
    let mut bins = [(0.0, 0.0); BINS];
    for (row, (confidence, weight)) in confidences.iter().zip(weights).enumerate() {
        let bin = &mut bins[((confidence * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += weight * confidence;
        bin.1 += weight * f64::from(is_right(row));
    }
    bins.iter().map(|(expected, right)| (expected - right).abs()).sum::<f64>() / weights.iter().sum::<f64>()
}

/// Area under the curve of true against false positives, and its standard error after DeLong, DeLong and Clarke-Pearson (1988). `None` when there is only one
/// class. Equal scores count half.
pub(super) fn auc(scores: &[f64], is_positive: impl Fn(usize) -> bool, weights: &[f64]) -> Option<(f64, f64)> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    let total =
        |positive: bool| (0..scores.len()).filter(|row| is_positive(*row) == positive).map(|row| weights[row]).sum::<f64>();
    let (positives, negatives) = (total(true), total(false));
    if positives == 0.0 || negatives == 0.0 {
        return None;
    }
    // For each positive the share of negatives below it, for each negative the share of positives above it.
    let (mut up, mut down) = ((0.0, 0.0), (0.0, 0.0));
    let (mut positives_below, mut negatives_below) = (0.0, 0.0);
    for tied in order.chunk_by(|a, b| scores[*a] == scores[*b]) {
        let of = |positive: bool| tied.iter().filter(|row| is_positive(**row) == positive).map(|row| weights[*row]).sum::<f64>();
        let (own_positives, own_negatives) = (of(true), of(false));
        let below = (negatives_below + 0.5 * own_negatives) / negatives;
        let above = (positives - positives_below - 0.5 * own_positives) / positives;
        up = (up.0 + own_positives * below, up.1 + own_positives * below * below);
        down = (down.0 + own_negatives * above, down.1 + own_negatives * above * above);
        positives_below += own_positives;
        negatives_below += own_negatives;
    }
    let area = up.0 / positives;
    let variance = |(_, squares): (f64, f64), count: f64| {
        let spread = (squares / count - area * area).max(0.0);
        if count > 1.0 { spread * count / (count - 1.0) / count } else { spread }
    };
    Some((area, (variance(up, positives) + variance(down, negatives)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scikit-learn on the same nine rows: balanced_accuracy_score, f1_score(average='macro'), confusion_matrix (tests/reference/measures.py).
    #[test]
    fn measures_of_three_classes() {
        let (actual, predicted) = ([0, 0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 1, 2, 1, 1, 0, 2, 1]);
        let confusion = Predicted { actual: &actual, predicted: &predicted, weights: &[1.0; 9], classes: 3 }.confusion();
        assert_eq!(confusion, [2.0, 1.0, 1.0, 1.0, 2.0, 0.0, 0.0, 1.0, 1.0]);
        assert!((balanced_accuracy(&confusion, 3).unwrap() - 0.555_555_555_555).abs() < 1e-9);
        assert!((f1(&confusion, 3).unwrap() - 0.547_619_047_619).abs() < 1e-9);
        assert_eq!(f1(&[3.0, 0.0, 0.0, 0.0], 2), None);
        assert_eq!((balanced_accuracy(&[3.0, 1.0, 0.0, 0.0], 2), f1(&[1.0, 1.0, 1.0, 2.0], 2)), (Some(0.75), Some(2.0 / 3.0)));
    }

    /// pROC's example by hand: V10 and V01 of three positives and two negatives.
    #[test]
    fn the_area_has_the_error_of_delong() {
        let (scores, positive) = ([0.1, 0.4, 0.35, 0.8, 0.9], [false, false, true, true, true]);
        let (area, error) = auc(&scores, |row| positive[row], &[1.0; 5]).unwrap();
        // V10 = ½, 1, 1 and V01 = 1, ⅔: variances 1/12 and 1/18.
        assert!((area - 5.0 / 6.0).abs() < 1e-12 && (error - (1.0 / 36.0 + 1.0 / 36.0f64).sqrt()).abs() < 1e-12);
        assert_eq!(auc(&scores, |_| true, &[1.0; 5]), None);
        let weighted = auc(&[0.1, 0.4, 0.35], |row| row == 2, &[1.0, 2.0, 1.0]).unwrap();
        assert!((weighted.0 - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_as_sure_as_it_is_right_is_calibrated() {
        let weights = [1.0; 4];
        assert!((calibration_error(&[0.75; 4], |row| row < 3, &weights)).abs() < 1e-12);
        assert!((calibration_error(&[0.95, 0.95, 0.55, 0.55], |row| row != 1, &weights) - 0.45).abs() < 1e-12);
    }
}
