use crate::{Label, Rows, Run};

/// Rows to learn from and rows to judge by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    pub train: Vec<usize>,
    pub valid: Vec<usize>,
}

impl Split {
    /// All rows to learn from, none to judge by.
    pub fn none(rows: usize) -> Self {
        Self { train: (0..rows).collect(), valid: Vec::new() }
    }

    /// Holds out a share of the rows, of every class alike. At least one row stays on either side, of a class as well where it has two.
    pub fn fraction(rows: &Rows, share: f64, run: &Run) -> Self {
        let mut split = Self { train: Vec::new(), valid: Vec::new() };
        for (part, mut members) in parts(rows).into_iter().enumerate() {
            run.random("split", part as u64).shuffle(&mut members);
            let n = members.len();
            let held_out = (share * n as f64).round().clamp(1.0, (n as f64 - 1.0).max(1.0)) as usize;
            let train = members.split_off(if n < 2 { 0 } else { held_out });
            split.train.extend(train);
            split.valid.extend(members);
        }
        split.sorted()
    }

    fn sorted(mut self) -> Self {
        self.train.sort_unstable();
        self.valid.sort_unstable();
        self
    }
}

/// The rows of each class; of numbers, all together.
pub(crate) fn parts(rows: &Rows) -> Vec<Vec<usize>> {
    match &rows.label {
        Label::Numbers => vec![(0..rows.rows()).collect()],
        Label::Classes(classes) => {
            let mut parts = vec![Vec::new(); classes.len()];
            rows.targets.iter().enumerate().for_each(|(row, class)| parts[*class as usize].push(row));
            parts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::Table;

    fn rows(classes: &[f64]) -> Rows {
        let table = Table { task: Some(Task::Classification), ..Table::random(classes.len(), 1, 1) };
        table.problem_of_rows(classes).rows().clone()
    }

    #[test]
    fn every_class_is_on_both_sides_and_no_row_on_two() {
        let classes: Vec<f64> = (0..100).map(|row| if row < 90 { 0.0 } else { 1.0 }).collect();
        let rows = rows(&classes);
        let split = Split::fraction(&rows, 0.2, &Run::new(3));
        assert_eq!((split.train.len(), split.valid.len()), (80, 20));
        assert_eq!(split.valid.iter().filter(|row| rows.targets[**row] == 1.0).count(), 2);
        let mut all = [split.train, split.valid].concat();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}
