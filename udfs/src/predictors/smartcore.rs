//! smartcore's predictors: nearest neighbours and support vectors.

use smartcore::error::Failed;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::neighbors::knn_classifier::{KNNClassifier, KNNClassifierParameters};
use smartcore::neighbors::knn_regressor::{KNNRegressor, KNNRegressorParameters};
use smartcore::svm::Kernels;
use smartcore::svm::svc::{SVC, SVCParameters};
use smartcore::svm::svr::{SVR, SVRParameters};

use crate::judging::folds::Folds;
use crate::predictors::refit::Learner;
use crate::{Error, Result, Run};

/// One of smartcore's predictors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Smartcore {
    Knn { neighbors: usize },
    Svm,
}

impl Learner for Smartcore {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], _: &Run) -> Result<Vec<Vec<f64>>> {
        let known: Vec<f64> = learn.iter().map(|row| folds.targets[*row]).collect();
        let said = |predicted: Vec<f64>| predicted.into_iter().map(|value| one(folds, value)).collect();
        // One value throughout is its own prediction; smartcore's classifiers would refuse it.
        if known.iter().all(|value| *value == known[0]) {
            return Ok(said(vec![known[0]; rows.len()]));
        }
        // smartcore 0.7 cuts the rows that its support vectors keep to as many values as there are rows, and panics on others.
        if matches!(self, Smartcore::Svm) && columns.len() > learn.len() {
            return Err(Error::data(format!(
                "smartcore's `svm` takes no more columns than rows, and {} rows are learnt from with {} columns; use fewer, or predictor 'knn', 'forest' or 'tree'",
                learn.len(),
                columns.len()
            )));
        }
        let predicted = match folds.classes {
            None => self.regress(folds, columns, learn, rows, known),
            Some(_) => self.classify(folds, columns, learn, rows, &known),
        };
        predicted
            .map(said)
            .map_err(|error| Error::data(format!("smartcore's `{}` on {} rows: {}", self.name(), learn.len(), reason(&error))))
    }
}

impl Smartcore {
    fn name(&self) -> &'static str {
        match self {
            Smartcore::Knn { .. } => "knn",
            Smartcore::Svm => "svm",
        }
    }

    fn regress(
        &self,
        folds: &Folds,
        columns: &[usize],
        learn: &[usize],
        rows: &[usize],
        y: Vec<f64>,
    ) -> Result<Vec<f64>, Failed> {
        let (x, asked) = (matrix(folds, columns, learn)?, matrix(folds, columns, rows)?);
        match *self {
            Smartcore::Knn { neighbors } => {
                KNNRegressor::fit(&x, &y, KNNRegressorParameters::default().with_k(neighbors.min(learn.len())))?.predict(&asked)
            }
            Smartcore::Svm => {
                // Its width of indifference supposes a label of unit variance.
                let mean = y.iter().sum::<f64>() / y.len() as f64;
                let scale = (y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / y.len() as f64).sqrt();
                let y: Vec<f64> = y.iter().map(|y| (y - mean) / scale).collect();
                let parameters = SVRParameters::default().with_kernel(radial(columns));
                let predicted = SVR::fit(&x, &y, &parameters)?.predict(&asked)?;
                Ok(predicted.into_iter().map(|y| mean + scale * y).collect())
            }
        }
    }

    fn classify(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], y: &[f64]) -> Result<Vec<f64>, Failed> {
        let (x, asked) = (matrix(folds, columns, learn)?, matrix(folds, columns, rows)?);
        let y: Vec<i32> = y.iter().map(|class| *class as i32).collect();
        let numbers = |classes: Vec<i32>| classes.into_iter().map(f64::from).collect();
        match *self {
            Smartcore::Knn { neighbors } => {
                let parameters = KNNClassifierParameters::default().with_k(neighbors.min(learn.len()));
                KNNClassifier::fit(&x, &y, parameters)?.predict(&asked).map(numbers)
            }
            Smartcore::Svm => {
                let parameters = SVCParameters::default().with_kernel(radial(columns)).with_seed(Some(0));
                SVC::fit(&x, &y, &parameters)?.predict(&asked)
            }
        }
    }
}

/// The radial kernel, as wide as the number of columns asks for.
fn radial(columns: &[usize]) -> Kernels {
    Kernels::rbf().with_gamma(1.0 / columns.len().max(1) as f64)
}

fn matrix(folds: &Folds, columns: &[usize], rows: &[usize]) -> Result<DenseMatrix<f64>, Failed> {
    let values = columns.iter().flat_map(|column| rows.iter().map(|row| folds.columns[*column][*row])).collect();
    DenseMatrix::new(rows.len(), columns.len(), values, true)
}

/// A number or a class as the label's columns, centred.
fn one(folds: &Folds, value: f64) -> Vec<f64> {
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

    /// More columns than rows: support vectors alone cannot take them, and say so.
    #[test]
    fn fewer_rows_than_columns() {
        for task in [Task::Regression, Task::Classification] {
            let folds = folds_of(task);
            let (learn, rows): (Vec<usize>, Vec<usize>) = (folds.learnt_rows(0), folds.held_out_rows(0).collect());
            let predict = |smart: Smartcore, columns: usize| {
                smart.predict(&folds, &(0..columns).collect::<Vec<_>>(), &learn, &rows, &Run::new(0))
            };
            let able = [Smartcore::Knn { neighbors: 3 }];
            for predictions in able.map(|smart| predict(smart, 40)).into_iter().chain([predict(Smartcore::Svm, learn.len())]) {
                let predictions = predictions.unwrap();
                assert!(predictions.len() == rows.len() && predictions.iter().flatten().all(|value| value.is_finite()));
            }
            assert_eq!(
                predict(Smartcore::Svm, 19).unwrap_err().to_string(),
                "smartcore's `svm` takes no more columns than rows, and 18 rows are learnt from with 19 columns; use fewer, or predictor 'knn', 'forest' or 'tree'"
            );
        }
    }

    /// What smartcore refuses is reported as its own refusal.
    #[test]
    fn a_limit_of_smartcore_is_named_as_its_own() {
        let folds = folds_of(Task::Regression);
        let none = Smartcore::Knn { neighbors: 0 }.predict(&folds, &[0], &folds.learnt_rows(0), &[0], &Run::new(0));
        let message = none.unwrap_err().to_string();
        assert!(message.starts_with("smartcore's `knn` on 18 rows: ") && !message.contains('\n'), "{message}");
    }
}
