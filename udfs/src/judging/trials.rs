//! Trials of a choice: some rows to learn from, others to judge by.

use crate::judging::folds::{Holding, alike, deviations, segments};
use crate::{Error, Kind, Lease, Problem, Result, Run, Split};

/// Rows that learn, and rows that judge, at most: of more, every second, third, … is taken.
pub(crate) const ROWS_MAX: usize = 1 << 15;
/// Share of the rows that judges.
pub(crate) const JUDGES: f64 = 0.3;
/// Of fewer rows a share is too few to tell: every row judges once.
const FEW_ROWS: usize = 3000;
const FOLDS: usize = 3;

/// A question put to some rows, with others held out: once, or of few rows in turn.
pub(crate) struct Trials {
    pub problems: Vec<Problem>,
    _memory: [Lease; 2],
}

impl Trials {
    /// Parts a table. Too few different rows cannot be parted.
    pub fn of(problem: &Problem, run: &Run) -> Result<Option<Self>> {
        let rows = problem.rows().rows();
        let (holding, times) = if rows < FEW_ROWS { (Holding::Folds(FOLDS), FOLDS) } else { (Holding::Share(JUDGES), 1) };
        let places = run.reserve(rows * 6 * times * size_of::<usize>())?;
        match parted(problem, holding, run) {
            Err(error) if error.kind() == Kind::Data => Ok(None),
            splits => Self::on(problem, splits?, places, run).map(Some),
        }
    }

    /// Those of a split that is there already.
    pub fn of_split(problem: &Problem, split: &Split, run: &Run) -> Result<Option<Self>> {
        if split.train.is_empty() || split.valid.is_empty() {
            return Ok(None);
        }
        let places = run.reserve(problem.rows().rows() * 4 * size_of::<usize>())?;
        Self::on(problem, vec![split.clone()], places, run).map(Some)
    }

    fn on(problem: &Problem, splits: Vec<Split>, places: Lease, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let mut memory = run.reserve(0)?;
        let mut problems = Vec::with_capacity(splits.len());
        for split in splits {
            let (train, valid) = (thinned(split.train), thinned(split.valid));
            let values = (train.len() + 2 * valid.len()) * (rows.columns.len() + rows.labels.len() + 2);
            memory.grow(values * size_of::<f64>())?;
            problems.push(problem.on(&train, &valid).ok_or_else(|| Error::data("rows are needed"))?);
        }
        Ok(Self { problems, _memory: [places, memory] })
    }
}

/// Rows to learn from and rows to judge by, once or in turn. Equal rows stay together, so that none is known to its judge and a weight of 2 is a row twice.
fn parted(problem: &Problem, holding: Holding, run: &Run) -> Result<Vec<Split>> {
    let rows = problem.rows();
    let mut parts = segments(rows, &alike(problem, rows, &deviations(rows), run)?, holding, "folds")?;
    parts.iter_mut().for_each(|part| part.sort_unstable());
    let split = |judge: usize| {
        let others = parts.iter().enumerate().filter(|(part, _)| *part != judge);
        let mut train: Vec<usize> = others.flat_map(|(_, rows)| rows).copied().collect();
        train.sort_unstable();
        Split { train, valid: parts[judge].clone() }
    };
    let judges = if matches!(holding, Holding::Share(_)) { 1..2 } else { 0..parts.len() };
    Ok(judges.map(split).collect())
}

fn thinned(rows: Vec<usize>) -> Vec<usize> {
    let every = rows.len().div_ceil(ROWS_MAX).max(1);
    rows.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// Every row judges once, none that it is equal to teaches, and a share is a share.
    #[test]
    fn rows_are_parted_and_equal_ones_stay_together() {
        let table = Table::random(60, 3, 1);
        let twice = |values: &[f64]| [values, values].concat();
        let doubled = (0..3).fold(Table::new(), |doubled, j| doubled.numbers(&format!("x{j}"), &twice(table.column(j))));
        let problem = doubled.problem_of_rows(&twice(&(0..60).map(f64::from).collect::<Vec<_>>()));
        let run = Run::new(0);
        let folds = parted(&problem, Holding::Folds(3), &run).unwrap();
        let mut judges: Vec<usize> = folds.iter().flat_map(|split| split.valid.clone()).collect();
        judges.sort_unstable();
        assert_eq!(judges, (0..120).collect::<Vec<_>>());
        for split in folds.iter().chain(&parted(&problem, Holding::Share(0.3), &run).unwrap()) {
            let targets = &problem.rows().targets;
            assert!(split.valid.iter().all(|a| split.train.iter().all(|b| targets[*a] != targets[*b])));
            assert_eq!(split.train.len() + split.valid.len(), 120);
        }
        assert_eq!(parted(&problem, Holding::Share(0.3), &run).unwrap()[0].valid.len(), 36);
    }

    #[test]
    fn many_rows_are_thinned() {
        assert_eq!(thinned((0..5).collect()), [0, 1, 2, 3, 4]);
        assert_eq!(thinned((0..ROWS_MAX + 1).collect())[..3], [0, 2, 4]);
    }
}
