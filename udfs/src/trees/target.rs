//! What a split is to part: rows by the mean of a number, by their classes, or by the gradient of a loss.

/// A row in a tree, with what is summed of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Item {
    pub row: u32,
    /// The label times the weight, the gradient, or the class.
    pub value: i64,
    /// The weight, or the curvature of the loss.
    pub weight: i64,
}

/// The sums that splits are judged by.
pub(crate) trait Target: Sync {
    /// How many numbers a bin's sums are; two, unless there are classes: of values and of weights.
    fn width(&self) -> usize {
        2
    }

    #[inline]
    fn add(&self, sums: &mut [i64], item: &Item) {
        sums[0] += item.value;
        sums[1] += item.weight;
    }

    /// Whether a bin has rows.
    #[inline]
    fn is_empty(&self, sums: &[i64]) -> bool {
        sums[1] == 0
    }

    /// The weight of rows.
    fn weight(&self, sums: &[i64]) -> i64 {
        sums[1]
    }

    /// What parting rows is worth; `None` if one side has too few.
    fn gain(&self, left: &[i64], right: &[i64], is_ordered: bool) -> Option<f64>;

    /// Numbers by which the levels of a text may be ordered before they are cut, given the sums of the node.
    fn orders(&self, _node: &[i64]) -> Vec<usize> {
        vec![0]
    }

    /// What levels are ordered by.
    fn place(&self, sums: &[i64], order: usize) -> f64;

    /// Whether there is nothing left to part.
    fn is_pure(&self, node: &[i64], items: &[Item]) -> bool;
}

/// The mean of a number, or the share of the second of two classes. The gain is the decrease of the squared error.
pub(crate) struct Means {
    /// Least weight of a leaf.
    pub leaf: i64,
}

impl Target for Means {
    #[inline]
    fn gain(&self, left: &[i64], right: &[i64], _: bool) -> Option<f64> {
        if left[1] < self.leaf || right[1] < self.leaf {
            return None;
        }
        let (low, high) = (left[1] as f64, right[1] as f64);
        let between = left[0] as f64 / low - right[0] as f64 / high;
        Some(low * high / (low + high) * between * between)
    }

    fn place(&self, sums: &[i64], _: usize) -> f64 {
        sums[0] as f64 / sums[1] as f64
    }

    fn is_pure(&self, _: &[i64], items: &[Item]) -> bool {
        let (value, weight) = (i128::from(items[0].value), i128::from(items[0].weight));
        items.iter().all(|item| i128::from(item.value) * weight == value * i128::from(item.weight))
    }
}

/// Three classes and more. The gain is the decrease of Gini's impurity times the weight.
pub(crate) struct Classes {
    pub classes: usize,
    /// Least weight of a leaf.
    pub leaf: i64,
}

/// Levels are ordered by the share of a class, for so many of the node's heaviest classes.
const ORDERS: usize = 4;

impl Target for Classes {
    fn width(&self) -> usize {
        self.classes
    }

    #[inline]
    fn add(&self, sums: &mut [i64], item: &Item) {
        sums[item.value as usize] += item.weight;
    }

    #[inline]
    fn is_empty(&self, sums: &[i64]) -> bool {
        sums.iter().all(|sum| *sum == 0)
    }

    fn weight(&self, sums: &[i64]) -> i64 {
        sums.iter().sum()
    }

    #[inline]
    fn gain(&self, left: &[i64], right: &[i64], _: bool) -> Option<f64> {
        let (low, high) = (self.weight(left), self.weight(right));
        if low < self.leaf || high < self.leaf {
            return None;
        }
        let (low, high) = (low as f64, high as f64);
        let (by_low, by_high) = (1.0 / low, 1.0 / high);
        let between = |(left, right): (&i64, &i64)| (*left as f64 * by_low - *right as f64 * by_high).powi(2);
        Some(low * high / (low + high) * left.iter().zip(right).map(between).sum::<f64>())
    }

    fn orders(&self, node: &[i64]) -> Vec<usize> {
        let mut classes: Vec<usize> = (0..self.classes).filter(|class| node[*class] > 0).collect();
        classes.sort_by_key(|class| std::cmp::Reverse(node[*class]));
        classes.truncate(ORDERS);
        classes
    }

    fn place(&self, sums: &[i64], order: usize) -> f64 {
        sums[order] as f64 / self.weight(sums) as f64
    }

    fn is_pure(&self, node: &[i64], _: &[Item]) -> bool {
        node.iter().filter(|sum| **sum > 0).count() < 2
    }
}

/// The gradient and curvature of a loss. The gain is what the loss falls by, to second order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gradients {
    /// What the sums are multiples of.
    pub value_unit: f64,
    pub weight_unit: f64,
    /// Keeps the values of leaves small.
    pub l2: f64,
    /// Least curvature of a leaf.
    pub leaf: f64,
}

/// A text is cut after its levels have been put into an order that fits; its leaves are held back by so much more.
const LEVELS_L2: f64 = 10.0;

impl Gradients {
    /// Gradient and curvature of rows.
    pub fn real(&self, sums: &[i64]) -> (f64, f64) {
        (sums[0] as f64 * self.value_unit, sums[1] as f64 * self.weight_unit)
    }

    /// What a leaf adds to the prediction.
    pub fn leaf_value(&self, sums: &[i64]) -> f64 {
        let (gradient, curvature) = self.real(sums);
        let total = curvature + self.l2;
        if total > 0.0 { -gradient / total } else { 0.0 }
    }
}

impl Target for Gradients {
    #[inline]
    fn gain(&self, left: &[i64], right: &[i64], is_ordered: bool) -> Option<f64> {
        let ((low, low_weight), (high, high_weight)) = (self.real(left), self.real(right));
        if low_weight < self.leaf || high_weight < self.leaf {
            return None;
        }
        let l2 = if is_ordered { self.l2 } else { self.l2 + LEVELS_L2 };
        let (both, both_weight) = (low + high, low_weight + high_weight);
        let parted = low * low / (low_weight + l2) + high * high / (high_weight + l2);
        Some(0.5 * (parted - both * both / (both_weight + l2)))
    }

    fn place(&self, sums: &[i64], _: usize) -> f64 {
        let (gradient, curvature) = self.real(sums);
        gradient / (curvature + LEVELS_L2)
    }

    fn is_pure(&self, _: &[i64], _: &[Item]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels 1, 2 | 4, 9: the squared error falls from 38 to 0.5 + 12.5.
    #[test]
    fn the_gain_of_means_by_hand() {
        let gain = Means { leaf: 1 }.gain(&[3, 2], &[13, 2], true).unwrap();
        assert!((gain - (38.0 - 0.5 - 12.5)).abs() < 1e-12);
        assert_eq!(Means { leaf: 3 }.gain(&[3, 2], &[13, 2], true), None);
    }

    /// Two rows of class 0 and one of each other | two of class 2: impurity 6 × 11/18 before, 4 × 5/8 after.
    #[test]
    fn the_gain_of_classes_by_hand() {
        let gain = Classes { classes: 3, leaf: 1 }.gain(&[2, 1, 1], &[0, 0, 2], true).unwrap();
        assert!((gain - (6.0 * 11.0 / 18.0 - 4.0 * 5.0 / 8.0)).abs() < 1e-12, "{gain}");
    }

    /// Two classes judged by one mean have half of Gini's impurity.
    #[test]
    fn two_classes_are_a_mean() {
        let mean = Means { leaf: 1 }.gain(&[1, 5], &[6, 7], true).unwrap();
        let classes = Classes { classes: 2, leaf: 1 }.gain(&[4, 1], &[1, 6], true).unwrap();
        assert!((2.0 * mean - classes).abs() < 1e-12);
    }

    /// −3 of 2 | 5 of 4, each with 1 more: ½ (9/3 + 25/5 − 4/7).
    #[test]
    fn the_gain_of_gradients_by_hand() {
        let target = Gradients { value_unit: 1.0, weight_unit: 1.0, l2: 1.0, leaf: 0.0 };
        let gain = target.gain(&[-3, 2], &[5, 4], true).unwrap();
        assert!((gain - 0.5 * (3.0 + 5.0 - 4.0 / 7.0)).abs() < 1e-12);
        assert_eq!(target.leaf_value(&[-3, 2]), 1.0);
        assert!(target.gain(&[-3, 2], &[5, 4], false).unwrap() < gain, "levels are held back");
    }
}
