//! Nearest neighbours, smartcore's, as a predictor.

use smartcore::error::Failed;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::neighbors::knn_classifier::{KNNClassifier, KNNClassifierParameters};
use smartcore::neighbors::knn_regressor::{KNNRegressor, KNNRegressorParameters};

use crate::judging::folds::Folds;
use crate::predictors::refit::Learner;
use crate::{Error, Result, Run};

/// So many neighbours, each with the same say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knn {
    pub neighbors: usize,
}

impl Learner for Knn {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        let known: Vec<f64> = learn.iter().map(|row| folds.targets[*row]).collect();
        let said = |predicted: Vec<f64>| predicted.into_iter().map(|value| one(folds, value)).collect();
        // One value throughout is its own prediction; smartcore's classifiers would refuse it.
        if known.iter().all(|value| *value == known[0]) {
            return Ok(said(vec![known[0]; rows.len()]));
        }
        // The rows as smartcore keeps them, and what it makes of them.
        let _memory = run.reserve((learn.len() + rows.len()) * (4 * columns.len() + 8) * size_of::<f64>())?;
        let predicted = match folds.classes {
            None => self.regress(folds, columns, learn, rows, known, run),
            Some(_) => self.classify(folds, columns, learn, rows, &known, run),
        };
        // A run that was cancelled has predicted some rows only.
        run.check()?;
        predicted.map(said).map_err(|error| Error::data(format!("smartcore's `knn` on {} rows: {}", learn.len(), reason(&error))))
    }
}

impl Knn {
    fn regress(
        &self,
        folds: &Folds,
        columns: &[usize],
        learn: &[usize],
        rows: &[usize],
        y: Vec<f64>,
        run: &Run,
    ) -> Result<Vec<f64>, Failed> {
        let parameters = KNNRegressorParameters::default().with_k(self.neighbors.min(learn.len()));
        let model = KNNRegressor::fit(&matrix(folds, columns, learn)?, &y, parameters)?;
        in_parts(folds, columns, rows, run, |part| model.predict(part))
    }

    fn classify(
        &self,
        folds: &Folds,
        columns: &[usize],
        learn: &[usize],
        rows: &[usize],
        y: &[f64],
        run: &Run,
    ) -> Result<Vec<f64>, Failed> {
        let y: Vec<i32> = y.iter().map(|class| *class as i32).collect();
        let numbers = |classes: Vec<i32>| classes.into_iter().map(f64::from).collect();
        let parameters = KNNClassifierParameters::default().with_k(self.neighbors.min(learn.len()));
        let model = KNNClassifier::fit(&matrix(folds, columns, learn)?, &y, parameters)?;
        in_parts(folds, columns, rows, run, |part| model.predict(part).map(numbers))
    }
}

/// Predictions of some rows after the others, as long as nobody cancels.
fn in_parts(
    folds: &Folds,
    columns: &[usize],
    rows: &[usize],
    run: &Run,
    predict: impl Fn(&DenseMatrix<f64>) -> Result<Vec<f64>, Failed>,
) -> Result<Vec<f64>, Failed> {
    let mut predicted = Vec::with_capacity(rows.len());
    for part in rows.chunks(PART).take_while(|_| run.check().is_ok()) {
        predicted.extend(predict(&matrix(folds, columns, part)?)?);
    }
    Ok(predicted)
}

/// Rows that are predicted between two looks at whether the run was cancelled.
const PART: usize = 256;

fn matrix(folds: &Folds, columns: &[usize], rows: &[usize]) -> Result<DenseMatrix<f64>, Failed> {
    let values = columns.iter().flat_map(|column| rows.iter().map(|row| folds.columns[*column][*row])).collect();
    DenseMatrix::new(rows.len(), columns.len(), values, true)
}

/// A number or a class as the label's columns, centred.
pub(crate) fn one(folds: &Folds, value: f64) -> Vec<f64> {
    let Some(classes) = folds.classes else { return vec![value - folds.offsets[0]] };
    let first = usize::from(classes == 2);
    let columns = folds.offsets.iter().enumerate();
    columns.map(|(at, offset)| f64::from(value as usize == at + first) - offset).collect()
}

/// smartcore's message without its line breaks.
fn reason(error: &Failed) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::judging::folds::Holding;
    use crate::judging::metric::Criterion;
    use crate::testing::Table;

    fn folds_of(task: Task) -> Folds {
        let table = Table { task: Some(task), ..Table::random(24, 40, 2) };
        let label: Vec<f64> = (0..24).map(|row| f64::from(table.column(3)[row] > 0.0)).collect();
        Folds::new(&table.problem_of_rows(&label), Holding::Share(0.25), Criterion::Auto, &Run::new(0)).unwrap()
    }

    /// More columns than rows.
    #[test]
    fn fewer_rows_than_columns() {
        for task in [Task::Regression, Task::Classification] {
            let folds = folds_of(task);
            let (learn, rows): (Vec<usize>, Vec<usize>) = (folds.learnt_rows(0), folds.held_out_rows(0).collect());
            let columns: Vec<usize> = (0..40).collect();
            let predictions = Knn { neighbors: 3 }.predict(&folds, &columns, &learn, &rows, &Run::new(0)).unwrap();
            assert!(predictions.len() == rows.len() && predictions.iter().flatten().all(|value| value.is_finite()));
        }
    }

    /// What smartcore refuses is reported as its own refusal.
    #[test]
    fn a_limit_of_smartcore_is_named_as_its_own() {
        let folds = folds_of(Task::Regression);
        let none = Knn { neighbors: 0 }.predict(&folds, &[0], &folds.learnt_rows(0), &[0], &Run::new(0));
        let message = none.unwrap_err().to_string();
        assert!(message.starts_with("smartcore's `knn` on 18 rows: ") && !message.contains('\n'), "{message}");
    }
}
