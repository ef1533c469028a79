//! How much of a label a column explains.

use crate::kernels::double::Double;

/// What there is of the label in some rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Labels {
    /// Rows with a label.
    pub rows: u64,
    /// Their sum, if they are numbers.
    pub sum: Double,
    /// How many rows each class has, if they are classes; those at the end that have none may be missing.
    pub classes: Vec<u64>,
}

impl Labels {
    pub fn add(&mut self, other: &Labels, place: impl Fn(usize) -> usize) {
        self.rows += other.rows;
        self.sum += other.sum;
        for (class, rows) in other.classes.iter().enumerate() {
            count(&mut self.classes, place(class), *rows);
        }
    }

    pub fn bytes(&self) -> usize {
        self.classes.capacity() * size_of::<u64>()
    }
}

pub(crate) fn count(classes: &mut Vec<u64>, class: usize, rows: u64) {
    if classes.len() <= class {
        classes.resize(class + 1, 0);
    }
    classes[class] += rows;
}

/// The share of the label's variance that is between groups of rows, less what as many groups would have by chance: adjusted R². For classes of their 0/1 columns together.
/// `square` is the sum of the squared numbers. NULL where nothing can be said: the label does not vary, or there are as many groups as rows.
pub(crate) fn adjusted(groups: &[&Labels], square: Option<Double>) -> Option<f64> {
    let groups: Vec<&&Labels> = groups.iter().filter(|group| group.rows > 0).collect();
    let rows: u64 = groups.iter().map(|group| group.rows).sum();
    let n = Double::from(rows as f64);
    if rows < 3 || groups.len() as u64 >= rows {
        return None;
    }
    let squared = |sum: Double, rows: u64| (sum * sum).divided_by(Double::from(rows as f64));
    let (total, between) = match square {
        Some(square) => {
            let sum = groups.iter().fold(Double::default(), |sum, group| sum + group.sum);
            let mean = (sum * sum).divided_by(n);
            let within = groups.iter().fold(Double::default(), |sum, group| sum + squared(group.sum, group.rows));
            (square - mean, within - mean)
        }
        None => {
            let classes = groups.iter().map(|group| group.classes.len()).max().unwrap_or(0);
            let (mut mean, mut within) = (Double::default(), Double::default());
            for class in 0..classes {
                let of = |group: &Labels| Double::from(group.classes.get(class).copied().unwrap_or(0) as f64);
                let all = groups.iter().fold(Double::default(), |sum, group| sum + of(group));
                mean += (all * all).divided_by(n);
                within = groups.iter().fold(within, |sum, group| sum + squared(of(group), group.rows));
            }
            // The squares of zeros and ones are what they are.
            (n - mean, within - mean)
        }
    };
    let (total, between) = (total.value(), between.value());
    if total <= 1e-20 * square.map_or(rows as f64, Double::value).abs() {
        return None;
    }
    let unexplained = (1.0 - between / total).max(0.0);
    let freedom = (rows - 1) as f64 / (rows - groups.len() as u64) as f64;
    Some((1.0 - unexplained * freedom).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[f64]) -> Labels {
        Labels { rows: values.len() as u64, sum: Double::from(values.iter().sum::<f64>()), classes: Vec::new() }
    }

    /// Two groups of 1, 2, 3 and 5, 6, 7: between them 24 of 28, adjusted 1 − 4/28 · 5/4.
    #[test]
    fn numbers_by_hand() {
        let groups = [&numbers(&[1.0, 2.0, 3.0]), &numbers(&[5.0, 6.0, 7.0])];
        let found = adjusted(&groups, Some(Double::from(124.0))).unwrap();
        assert!((found - (1.0 - 4.0 / 28.0 * 5.0 / 4.0)).abs() < 1e-14, "{found}");
    }

    /// Classes that a column tells apart without a mistake, and classes that it tells nothing of.
    #[test]
    fn classes_by_hand() {
        let group = |classes: &[u64]| Labels { rows: classes.iter().sum(), classes: classes.to_vec(), ..Labels::default() };
        assert_eq!(adjusted(&[&group(&[10]), &group(&[0, 10])], None), Some(1.0));
        assert_eq!(adjusted(&[&group(&[5, 5]), &group(&[5, 5])], None), Some(0.0));
        assert_eq!(adjusted(&[&group(&[5]), &group(&[5])], None), None);
        assert_eq!(adjusted(&[&group(&[1]), &group(&[0, 1]), &group(&[1])], None), None);
    }
}
