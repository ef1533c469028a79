use super::*;
use crate::contract::model::{Applied, Apply, Made};
use crate::models::fitted::Fitted;
use crate::reading::block::Block;
use crate::reports::predict::Predict;
use crate::testing::{self, Column, Table};
use crate::{Error, NO_LEVEL, Nulls, Task};

/// Numbers, a text and NULLs in both; the label follows all of them.
fn mixed(rows: usize, classes: usize) -> (Table, Vec<f64>) {
    let mut random = Run::new(12).random("mixed", 0);
    let x: Vec<f64> = (0..rows).map(|row| if row % 11 == 3 { f64::NAN } else { 100.0 + 3.0 * random.normal() }).collect();
    let z: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
    let names = ["north", "south", "east", "it's"];
    let text: Vec<Option<String>> = (0..rows).map(|row| (row % 7 != 2).then(|| names[random.below(4)].to_string())).collect();
    let score = |row: usize, noise: f64| {
        let known = if x[row].is_nan() { 0.0 } else { (x[row] - 100.0) / 3.0 };
        known - 0.7 * z[row] + text[row].as_ref().map_or(0.5, |text| text.len() as f64 - 4.5) + 0.5 * noise
    };
    let scores: Vec<f64> = (0..rows).map(|row| score(row, random.normal())).collect();
    let label = match classes {
        0 => scores,
        2 => scores.iter().map(|s| f64::from(*s > 0.0)).collect(),
        _ => scores.iter().map(|s| (s + 1.0).floor().clamp(0.0, 2.0)).collect(),
    };
    let task = if classes == 0 { Task::Regression } else { Task::Classification };
    let mut table = Table { task: Some(task), ..Table::new().numbers("x", &x).numbers("z", &z) };
    table.columns.push(("text".into(), Column::Text(text)));
    (table, label)
}

fn made<'a>(applied: &'a Applied, output: &str) -> &'a Made {
    &applied.columns.iter().find(|(name, _)| *name == output).unwrap().1
}

/// Rows of a table through a model.
fn predict(model: &[Values], table: &Table, rows: &[usize]) -> Result<Applied, Error> {
    let model = Predict {}.read(model)?;
    let columns = model.features().into_iter().map(|feature| {
        let (_, column) = table.columns.iter().find(|(name, _)| *name == feature.name).unwrap();
        match column {
            Column::Numbers(values) => (rows.iter().map(|row| values[*row]).collect::<Vec<f64>>(), Vec::new(), Vec::new()),
            Column::Text(values) => {
                let names: Vec<&str> = rows.iter().map(|row| values[*row].as_deref().unwrap_or("")).collect();
                let codes = rows.iter().enumerate();
                let codes = codes.map(|(at, row)| if values[*row].is_some() { at as u32 } else { NO_LEVEL }).collect();
                (Vec::new(), names, codes)
            }
        }
    });
    let columns: Vec<(Vec<f64>, Vec<&str>, Vec<u32>)> = columns.collect();
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for (numbers, names, codes) in &columns {
        blocks.push(if codes.is_empty() { Block::Numbers(numbers) } else { Block::Levels { codes, names } });
    }
    model.apply(rows.len(), &blocks, &["prediction", "probability", "probabilities", "notes"], &Run::default())
}

fn fit(model: Model, table: &Table, label: &[f64]) -> Vec<Values> {
    let mut fit = Fit { model, rounds: 20, ..Fit::default() };
    fit.training.epochs = Some(3);
    fit.report(&table.problem_of_rows(label), &Run::new(5)).unwrap()
}

/// Two more columns that the learner never needs are no business of the model.
#[test]
fn least_squares_is_the_dense_reference_in_the_units_of_the_table() {
    let table = Table::random(80, 3, 4).numbers("copy", Table::random(80, 3, 4).column(1)).numbers("same", &[7.0; 80]);
    let label: Vec<f64> =
        (0..80).map(|row| 5.0 + 2.0 * table.column(0)[row] - table.column(2)[row] + (row as f64).sin()).collect();
    let model = fit(Model::Auto, &table, &label);
    let (beta, _) = testing::least_squares(&[table.column(0), table.column(1), table.column(2)], &label);
    let coefficient = |name: &str| {
        let row =
            (0..model[0].rows()).find(|row| model[0].text(*row) == Some("coefficient") && model[2].text(*row) == Some(name));
        row.and_then(|row| model[7].number(row))
    };
    for (at, beta) in beta.iter().enumerate() {
        assert!((coefficient(&format!("x{at}")).unwrap() - beta).abs() < 1e-12);
    }
    assert_eq!((coefficient("copy"), coefficient("same")), (Some(0.0), None));
    let applied = predict(&model, &table, &(0..80).collect::<Vec<_>>()).unwrap();
    let Made::Numbers(predicted) = made(&applied, "prediction") else { panic!() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / 80.0;
    assert!((mean(predicted) - mean(&label)).abs() < 1e-12);
}

/// At the optimum the errors of every class are orthogonal to the inputs, but for the slight penalty.
#[test]
fn logistic_errors_are_orthogonal_to_the_inputs() {
    for classes in [2, 3] {
        let (table, label) = mixed(300, classes);
        let model = fit(Model::Logistic, &table, &label);
        let applied = predict(&model, &table, &(0..300).collect::<Vec<_>>()).unwrap();
        let Made::Shares(shares) = made(&applied, "probabilities") else { panic!() };
        for class in 0..classes {
            let error = |row: usize| shares[row * classes + class] - f64::from(label[row] == class as f64);
            let with = |value: &dyn Fn(usize) -> f64| (0..300).map(|row| error(row) * value(row)).sum::<f64>() / 300.0;
            let z = with(&|row| table.column(1)[row]);
            let all = with(&|_| 1.0);
            assert!(z.abs() < 2e-5 && all.abs() < 1e-10, "{classes} {class}: {z} {all}");
        }
    }
}

/// What is read back from a table predicts as what was grown, to the last digit: NULLs, texts, weights and all.
#[test]
fn kept_trees_predict_as_grown_ones() {
    for (classes, max_levels) in [(0, 50), (2, 50), (3, 50), (0, 2), (2, 1)] {
        let (mut table, label) = mixed(400, classes);
        table.common.max_levels = max_levels;
        table.weights = Some((0..400).map(|row| 1.0 + (row % 3) as f64).collect());
        let problem = table.problem_of_rows(&label);
        let boosting = Boosting { rounds: 20, ..Boosting::default() };
        let expected = trees::grow(&problem, &boosting, None, &Run::new(5), |boosted, lesson, _| {
            let rows: Vec<u32> = (0..400).collect();
            let mut outputs = boosted.predict(&lesson.columns, &rows, &Run::default())?;
            if classes == 0 {
                outputs.iter_mut().for_each(|score| *score = boosted.scale.0 + boosted.scale.1 * *score);
            }
            Ok(outputs)
        });
        let model = fit(Model::Boosting, &table, &label);
        let applied = predict(&model, &table, &table.content_order(&label)).unwrap();
        check_scores(&applied, &expected.unwrap(), classes);
    }
}

fn check_scores(applied: &Applied, expected: &[f64], classes: usize) {
    match made(applied, "prediction") {
        Made::Numbers(predicted) => assert_eq!(predicted, expected),
        _ => {
            let Made::Shares(shares) = made(applied, "probabilities") else { panic!() };
            assert_eq!(*shares, crate::models::fitted::probabilities(expected, classes));
        }
    }
}

#[test]
fn kept_networks_predict_as_trained_ones() {
    for (classes, nulls, max_levels) in
        [(0, Nulls::Mean, 50), (2, Nulls::Indicator, 50), (3, Nulls::Mean, 50), (0, Nulls::Mean, 2)]
    {
        let (mut table, label) = mixed(200, classes);
        (table.common.nulls, table.common.max_levels) = (nulls, max_levels);
        let problem = table.problem_of_rows(&label);
        let training = Training { epochs: Some(3), ..Training::default() };
        let (mlp, inputs) = network::train(&problem, &training, &Run::new(5)).unwrap();
        let samples = inputs.samples(problem.rows(), &crate::Split::none(200).train, &Run::default()).unwrap();
        let outputs = mlp.outputs(&samples, &samples.all(), &Run::default()).unwrap();
        let expected: Vec<f64> = outputs.iter().map(|y| inputs.target.0 + inputs.target.1 * f64::from(*y)).collect();
        let model = fit(Model::Mlp, &table, &label);
        let applied = predict(&model, &table, &table.content_order(&label)).unwrap();
        check_scores(&applied, &expected, classes);
    }
}

/// Levels that are not told apart are one level, and so is NULL: the mean of their rows is what least squares predicts for them, and an unseen text is one of them. Buckets are
/// no list of values.
#[test]
fn others_and_nulls_are_levels_of_a_linear_model() {
    let (mut table, label) = mixed(300, 0);
    table.columns.drain(..2);
    table.common.max_levels = 2;
    let model = fit(Model::Linear, &table, &label);
    let mut all = table.clone();
    let Column::Text(texts) = &mut all.columns[0].1 else { panic!() };
    texts.extend([Some("moon".to_string()), None]);
    let texts = texts.clone();
    let applied = predict(&model, &all, &(0..302).collect::<Vec<_>>()).unwrap();
    let Made::Numbers(predicted) = made(&applied, "prediction") else { panic!() };
    let listed: Vec<&str> = (0..model[0].rows())
        .filter(|row| model[0].text(*row) == Some("coefficient"))
        .filter_map(|row| model[3].text(row))
        .collect();
    assert_eq!(listed.len(), 2);
    let kind = |text: &Option<String>| text.as_deref().map(|text| listed.iter().position(|level| *level == text));
    for (row, text) in texts.iter().enumerate() {
        let alike: Vec<f64> = (0..300).filter(|other| kind(&texts[*other]) == kind(text)).map(|other| label[other]).collect();
        let mean = alike.iter().sum::<f64>() / alike.len() as f64;
        assert!((predicted[row] - mean).abs() < 1e-9, "{text:?}: {} instead of {mean}", predicted[row]);
    }
    table.common.levels = crate::Levels::Hash;
    let refused = Fit::default().report(&table.problem_of_rows(&label), &Run::new(5)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "a model lists the values of texts, and those of `text` are in buckets; set levels => 'top', or exclude it"
    );
}

/// A row without a value is predicted as one with the mean, and one with a new level as a row of the mean level; both are said.
#[test]
fn what_a_row_lacks_is_filled_and_said() {
    let (table, label) = mixed(300, 0);
    for model in [Model::Linear, Model::Boosting, Model::Mlp] {
        let model = fit(model, &table, &label);
        let mut odd = Table::new().numbers("x", &[f64::NAN, f64::INFINITY, 101.0]).numbers("z", &[0.1, 0.1, 0.1]);
        let texts = [Some("north".to_string()), Some("north".into()), Some("moon".into())];
        odd.columns.push(("text".into(), Column::Text(texts.to_vec())));
        let applied = predict(&model, &odd, &[0, 1, 2]).unwrap();
        let Made::Numbers(numbers) = made(&applied, "prediction") else { panic!() };
        assert!(numbers.iter().all(|number| number.is_finite()) && numbers[0] == numbers[1], "{numbers:?}");
        let names = Predict {}.read(&model).unwrap().names("notes");
        let Made::Lists { lengths, names: places } = made(&applied, "notes") else { panic!() };
        let said: Vec<&str> = places.iter().map(|place| names[*place as usize].as_str()).collect();
        assert_eq!((&lengths[..], &said[..]), (&[1, 1, 1][..], &["x is NULL", "x is NULL", "text has a new value"][..]));
    }
}

/// Whatever is taken out of a model's table, reading it is an error of one line or a model that predicts: never a panic, never a number that is none.
#[test]
fn broken_tables_are_refused() {
    for (kind, classes) in [(Model::Linear, 0), (Model::Logistic, 3), (Model::Boosting, 2), (Model::Boosting, 3), (Model::Mlp, 3)]
    {
        let (table, label) = mixed(60, classes);
        let mut fit = Fit { model: kind, rounds: 2, depth: 3, ..Fit::default() };
        (fit.training.epochs, fit.training.hidden) = (Some(1), vec![3]);
        let model = fit.report(&table.problem_of_rows(&label), &Run::new(5)).unwrap();
        assert!(Fitted::read(&model).is_ok());
        let mut refused = 0;
        let change = |row: usize, column: usize| -> Vec<Values> {
            let mut changed = model.clone();
            match &mut changed[column] {
                Values::Text(texts) => texts[row] = texts[row].as_ref().map(|_| "odd".to_string()),
                Values::Whole(wholes) => wholes[row] = wholes[row].map(|whole| whole * 1_000_003 - 1),
                Values::Number(numbers) => numbers[row] = None,
                _ => unreachable!(),
            }
            changed
        };
        for row in 0..model[0].rows() {
            for column in 0..8 {
                let changed = change(row, column);
                match predict(&changed, &table, &[0, 1, 2]) {
                    Err(error) => {
                        refused += 1;
                        assert!(
                            error.to_string().starts_with("the table given as `model` is not a whole answer of fit: "),
                            "{error}"
                        );
                    }
                    Ok(applied) => assert!(matches!(made(&applied, "prediction"), Made::Names(_) | Made::Numbers(_))),
                }
            }
        }
        assert!(refused > model[0].rows(), "{kind:?}: {refused}");
    }
}
