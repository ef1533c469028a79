use super::*;
use crate::answer;
use crate::registry::selectors;
use crate::testing::{Table, least_squares, planted};
use crate::{Count, Settings};

fn omp() -> std::sync::Arc<dyn Selector> {
    selectors().iter().find(|spec| spec.name == "omp").unwrap().selector(&Settings::new()).unwrap()
}

fn one_se(table: Table, label: &[f64], from_rows: bool) -> usize {
    let mut table = table.folds(5);
    table.common.k = Count::OneSe;
    let problem = table.try_problem(label, from_rows).unwrap();
    answer(&*omp(), &problem, &Run::new(1)).unwrap().choices.len()
}

#[test]
fn one_standard_error_finds_the_planted_size() {
    for from_rows in [false, true] {
        let sizes: Vec<usize> = (0..10)
            .map(|seed| {
                let (table, label) = planted(400, 20, &[3, 11, 7, 16], 1.0, 100 + seed);
                one_se(table, &label, from_rows)
            })
            .collect();
        assert!(sizes.iter().filter(|size| **size == 4).count() >= 9, "{sizes:?}");
    }
}

#[test]
fn nothing_is_chosen_of_noise() {
    let sizes: Vec<usize> = (0..10)
        .map(|seed| {
            let noise = planted(100, 10, &[0], 1.0, 50 + seed).1;
            one_se(Table::random(100, 10, 200 + seed), &noise, false)
        })
        .collect();
    assert!(sizes.iter().filter(|size| **size == 0).count() >= 9, "{sizes:?}");
}

/// The folds spelled out: least squares on four fifths of the rows, and its error on the others, row by row.
#[test]
fn valid_score_is_the_mean_over_folds_of_least_squares() {
    let (table, label) = planted(60, 3, &[2, 0], 1.0, 9);
    let run = Run::new(1);
    let problem = table.clone().k(2).folds(4).problem_of_rows(&label);
    let ranking = answer(&*omp(), &problem, &run).unwrap();
    let asked = Problem { folds: None, ..problem.clone() };
    let folds = Pieces::new(&asked, &run).unwrap().folds(4).unwrap();
    let order = table.content_order(&label);
    let variance = {
        let mean = label.iter().sum::<f64>() / 60.0;
        label.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 60.0
    };
    let scores: Vec<f64> = folds
        .iter()
        .map(|fold| {
            let held_out: Vec<usize> = fold.iter().map(|row| order[*row]).collect();
            let own: Vec<usize> = (0..60).filter(|row| !held_out.contains(row)).collect();
            let take = |values: &[f64], rows: &[usize]| -> Vec<f64> { rows.iter().map(|row| values[*row]).collect() };
            let columns: Vec<Vec<f64>> = [2, 0].iter().map(|j| take(table.column(*j), &own)).collect();
            let y = take(&label, &own);
            let (beta, _) = least_squares(&[&columns[0], &columns[1]], &y);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let errors = held_out.iter().map(|row| {
                let fitted: f64 = (0..2).map(|at| beta[at] * (table.column([2, 0][at])[*row] - mean(&columns[at]))).sum();
                (label[*row] - mean(&y) - fitted).powi(2)
            });
            1.0 - errors.sum::<f64>() / held_out.len() as f64 / variance
        })
        .collect();
    let (expected, error) = mean_and_error(&scores);
    let last = ranking.choices.last().unwrap();
    assert_eq!(ranking.units(), [2, 0]);
    assert!((last.valid_score.unwrap() - expected).abs() < 1e-9 && (last.valid_error.unwrap() - error).abs() < 1e-9);
}

#[test]
fn the_smallest_within_an_error_and_the_best_by_hand() {
    let curve = Curve(vec![(0.0, 0.1), (0.5, 0.1), (0.62, 0.02), (0.69, 0.1), (0.69, 0.1), (0.6, 0.1)]);
    assert_eq!((curve.size(false), curve.size(true)), (3, 2));
    assert_eq!(mean_and_error(&[1.0, 2.0, 3.0]), (2.0, (1.0f64 / 3.0).sqrt()));
}

#[test]
fn a_path_or_other_judges_cannot_be_folded() {
    let (table, label) = planted(60, 3, &[2, 0], 1.0, 9);
    let lasso = selectors().into_iter().find(|spec| spec.name == "lasso").unwrap();
    let path = lasso.selector(&Settings::from_iter([("path".to_string(), true.into())])).unwrap();
    let error = answer(&*path, &table.clone().k(2).folds(3).problem(&label), &Run::new(0)).unwrap_err();
    assert!(error.to_string().starts_with("`folds` judges a ranking"), "{error}");
    let beside = table.k(2).folds(3).problem_with_held_out(&label, 40);
    let error = answer(&*omp(), &beside, &Run::new(0)).unwrap_err();
    assert!(error.to_string().starts_with("`folds` cannot be used beside"), "{error}");
}
