//! Multinomial logistic regression as a predictor.

use crate::judging::folds::Folds;
use crate::linear::logistic::Examples;
use crate::predictors::model::{Affine, Learnt, Model, softmax};
use crate::predictors::refit::Learner;
use crate::{Result, Run};

/// As a share of the rows' weight; inputs have unit variance.
const RIDGE: f64 = 1e-3;
const ACCURACY: f64 = 1e-6;

pub(crate) struct Logistic;

impl Logistic {
    /// The coefficients, the classes of one input after the other; the intercept is the first.
    pub(crate) fn fit(
        folds: &Folds,
        columns: &[usize],
        learn: &[usize],
        ridge: f64,
        accuracy: f64,
        run: &Run,
    ) -> Result<Vec<f64>> {
        let classes = folds.classes.expect("only asked for classes");
        let inputs = columns.len() + 1;
        let _memory = run.reserve(learn.len() * (inputs + 2) * size_of::<f64>())?;
        let mut design = Vec::with_capacity(learn.len() * inputs);
        for (at, row) in learn.iter().enumerate() {
            if at % 256 == 0 {
                run.check()?;
            }
            design.push(1.0);
            design.extend(columns.iter().map(|column| folds.columns[*column][*row]));
        }
        let targets: Vec<f64> = learn.iter().map(|row| folds.targets[*row]).collect();
        let weights: Vec<f64> = learn.iter().map(|row| folds.weights[*row]).collect();
        let examples = Examples { design: &design, inputs, classes, targets: &targets, weights: &weights, ridge };
        examples.fit(&vec![0.0; inputs * classes], accuracy, run)
    }
}

impl Model for Logistic {
    fn learn<'a>(&'a self, folds: &'a Folds, columns: &[usize], learn: &[usize], run: &Run) -> Result<Box<dyn Learnt + 'a>> {
        let mut beta = Self::fit(folds, columns, learn, RIDGE, ACCURACY, run)?;
        let classes = beta.len() / (columns.len() + 1);
        let weights = beta.split_off(classes);
        let first = usize::from(classes == 2);
        let rest = move |odds: &[f64]| {
            let shares = softmax(odds);
            shares[first..].iter().zip(&folds.offsets).map(|(share, offset)| share - offset).collect()
        };
        Ok(Box::new(Affine { folds, columns: columns.to_vec(), weights, start: beta, rest: Box::new(rest) }))
    }
}

impl Learner for Logistic {
    fn predict(&self, folds: &Folds, columns: &[usize], learn: &[usize], rows: &[usize], run: &Run) -> Result<Vec<Vec<f64>>> {
        self.learn(folds, columns, learn, run)?.predict(rows, run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::judging::folds::Holding;
    use crate::judging::metric::Criterion;
    use crate::testing::Table;

    /// At the optimum the gradient vanishes: errors are orthogonal to the inputs, but for the ridge.
    #[test]
    fn the_gradient_vanishes() {
        let table = Table::random(300, 2, 5);
        let noise = Table::random(300, 1, 6);
        let label: Vec<f64> = (0..300).map(|row| f64::from(table.column(0)[row] - 0.5 + noise.column(0)[row] > 0.0)).collect();
        let table = Table { task: Some(Task::Classification), ..table };
        let folds = Folds::new(&table.problem_of_rows(&label), Holding::Share(0.1), Criterion::Auto, &Run::new(0)).unwrap();
        let rows: Vec<usize> = folds.learnt_rows(0);
        let predictions = Logistic.predict(&folds, &[0, 1], &rows, &rows, &Run::new(0)).unwrap();
        let error = |row: usize, at: usize| folds.labels[0][row] - predictions[at][0];
        let intercept: f64 = rows.iter().enumerate().map(|(at, row)| error(*row, at)).sum::<f64>() / rows.len() as f64;
        let first: f64 =
            rows.iter().enumerate().map(|(at, row)| error(*row, at) * folds.columns[0][*row]).sum::<f64>() / rows.len() as f64;
        assert!(intercept.abs() < 2e-3 && first.abs() < 5e-3, "{intercept} {first}");
    }
}
