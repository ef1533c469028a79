use super::*;
use crate::testing::{Table, planted};

fn names(problem: &Problem, ranking: &Ranking) -> Vec<String> {
    ranking.units().iter().map(|unit| problem.units[*unit].name.clone()).collect()
}

fn sample_table(name: &str, rows: usize, columns: usize, seed: u64) -> (Table, Vec<f64>) {
    let settings = crate::Settings::from_iter([("columns".to_string(), crate::Value::from(columns))]);
    let problem = crate::SampleProblem::new(name, rows, seed, &settings).unwrap();
    let mut columns = problem.table(0);
    let label = columns.pop().unwrap();
    let named = problem.names.iter().zip(&columns);
    (named.fold(Table::new(), |table, (name, values)| table.numbers(name, values)), label)
}

/// V / R of ten features: eta finds both, and stops there.
#[test]
fn finds_a_law_and_stops() {
    let (mut table, label) = sample_table("ohm", 300, 10, 1);
    table.common.k = crate::Count::Auto;
    let problem = table.problem_of_rows(&label);
    let ranking = NeuralGreedyPursuit::default().select(&problem, &Run::new(0)).unwrap();
    let mut found = names(&problem, &ranking);
    found.sort();
    assert_eq!(found, ["resistance", "voltage"]);
    let last = &ranking.choices[1];
    assert!(last.valid_score.unwrap() > 0.999 && last.score > 0.1 && ranking.choices[0].valid_score.unwrap() < 0.9);
}

/// A product of two features, of which neither alone says anything: only looking ahead finds it.
#[test]
fn looking_ahead_finds_an_interaction() {
    let (table, label) = sample_table("interaction", 300, 8, 4);
    let problem = table.k(2).problem_of_rows(&label);
    let select = |lookahead| {
        let selector = NeuralGreedyPursuit { lookahead, ..Default::default() };
        let mut found = names(&problem, &selector.select(&problem, &Run::new(0)).unwrap());
        found.sort();
        found
    };
    assert_eq!(select(8), ["x1", "x2"]);
    assert_ne!(select(1), ["x1", "x2"]);
}

/// At every step a list of predictors reaches what the best of them reaches with the same features before it.
#[test]
fn a_list_of_predictors_does_what_its_best_member_does() {
    let table = Table::random(120, 6, 9);
    let label: Vec<f64> =
        (0..120).map(|row| 2.0 * table.column(1)[row] + table.column(3)[row].abs() + 0.3 * table.column(5)[row]).collect();
    let members = [Predicting::Linear, Predicting::Ssfn, Predicting::Tree];
    let of = |predictor: &[Predicting], k: usize, forced: &[String]| {
        let mut table = table.clone().k(k);
        table.common.must_include = forced.to_vec();
        let problem = table.problem_of_rows(&label);
        let selector = NeuralGreedyPursuit { predictor: predictor.to_vec(), metric: Metric::Mae, ..Default::default() };
        let ranking = selector.select(&problem, &Run::new(2)).unwrap();
        let last = ranking.choices[k - 1].clone();
        (names(&problem, &ranking), last.valid_score.unwrap(), last.reason)
    };
    let (path, ..) = of(&members, 4, &[]);
    for k in 1..=4 {
        let (_, listed, note) = of(&members, k, &[]);
        let alone = members.map(|member| of(&[member], k, &path[..k - 1]));
        let best = alone.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert_eq!((listed, &path[k - 1]), (best.1, &best.0[k - 1]), "step {k}");
        assert!(note.is_some_and(|note| note.starts_with("predicted by ")) && best.2.is_none());
    }
}

#[test]
fn every_predictor_finds_what_it_can_see() {
    let (table, label) = planted(150, 6, &[4, 1], 0.3, 11);
    let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    use Predicting::*;
    for (is_class, predictors) in [
        (false, vec![Ssfn, Mlp, Linear, Knn, Svm, Forest, Tree, Boosting]),
        (true, vec![Ssfn, Mlp, Linear, Logistic, Knn, Svm, Forest, Tree, Boosting]),
    ] {
        let task = if is_class { crate::Task::Classification } else { crate::Task::Regression };
        let problem = Table { task: Some(task), ..table.clone() }.k(2);
        let problem = problem.problem_of_rows(if is_class { &classes } else { &label });
        for predictor in predictors {
            let selector = NeuralGreedyPursuit { predictor: vec![predictor], trees: 10, epochs: 30, ..Default::default() };
            let mut units = selector.select(&problem, &Run::new(0)).unwrap().units();
            units.sort_unstable();
            assert_eq!(units, [1, 4], "{predictor:?} {is_class}");
        }
    }
}

/// Images of 8 × 8 of noise, in the third quarter of which there is a bar, upright or lying: no pixel tells, and a network of filters does.
fn bars(rows: usize) -> (Table, Vec<f64>) {
    let mut random = Run::new(5).random("bars", 0);
    let mut pixels = vec![Vec::new(); 64];
    for row in 0..rows {
        let bar = random.below(4);
        for (pixel, values) in pixels.iter_mut().enumerate() {
            let (y, x) = (pixel / 8, pixel % 8);
            let is_bar = y >= 4 && x < 4 && bar == if row % 2 == 0 { y - 4 } else { x };
            values.push(f64::from(is_bar) + 0.1 * random.normal());
        }
    }
    let mut table = Table { task: Some(crate::Task::Classification), ..Table::new() };
    let names: Vec<String> = (0..64).map(|pixel| format!("pixel_{pixel:02}")).collect();
    table = names.iter().zip(&pixels).fold(table, |table, (name, values)| table.numbers(name, values));
    table.common.groups = windows(&[8, 8], &[4, 4], &names).unwrap();
    (table.k(1), (0..rows).map(|row| (row % 2) as f64).collect())
}

fn cnn() -> NeuralGreedyPursuit {
    let predictor = vec![Predicting::Cnn];
    NeuralGreedyPursuit {
        predictor,
        image: vec![8, 8],
        window: vec![4, 4],
        apart: Apart { validation: Some(0.25), ..Apart::default() },
        ..Default::default()
    }
}

#[test]
fn filters_find_the_window_with_the_bar() {
    let (table, label) = bars(160);
    let problem = table.problem_of_rows(&label);
    let select = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| cnn().select(&problem, &Run::new(0)).unwrap())
    };
    let ranking = select(1);
    assert_eq!(names(&problem, &ranking), ["window_1_0"]);
    assert!(ranking.choices[0].valid_score.unwrap() > 0.9, "{:?}", ranking.choices[0]);
    assert_eq!(select(3), ranking);
}

#[test]
fn what_is_no_image_is_refused() {
    let (table, label) = bars(20);
    let refused = |table: &Table, label: &[f64], selector: NeuralGreedyPursuit| {
        selector.select(&table.problem_of_rows(label), &Run::new(0)).unwrap_err().to_string()
    };
    let image = |image: &[usize]| NeuralGreedyPursuit { image: image.to_vec(), ..cnn() };
    assert_eq!(
        refused(&table, &label, image(&[])),
        "predictor 'cnn' needs `image`: the rows and columns of the image, such as [28, 28]"
    );
    assert_eq!(refused(&table, &label, image(&[2, 32])), "`image` must be 4 × 4 pixels at least for predictor 'cnn', got 2 × 32");
    assert!(refused(&table, &label, image(&[8, 9])).starts_with("`image` of 8 × 9 needs 72 pixel columns, and there are 64"));
    assert!(refused(&table, &label, image(&[64])).starts_with("`image` must be two numbers, rows and columns, got [64]"));
    let numbers = Table { task: Some(crate::Task::Regression), ..table.clone() };
    assert_eq!(
        refused(&numbers, &label, cnn()),
        "predictor 'cnn' cannot predict numbers; 'ssfn', 'mlp', 'linear', 'knn', 'svm', 'forest', 'tree' and 'boosting' can"
    );
}

#[test]
fn what_cannot_be_predicted_is_refused_with_what_can() {
    let (table, label) = planted(60, 4, &[1], 0.3, 11);
    let refused = |table: &Table, label: &[f64], selector: NeuralGreedyPursuit| {
        selector.select(&table.clone().k(1).problem_of_rows(label), &Run::new(0)).unwrap_err().to_string()
    };
    let with = |predictor| NeuralGreedyPursuit { predictor: vec![predictor], ..Default::default() };
    assert_eq!(
        refused(&table, &label, with(Predicting::Logistic)),
        "predictor 'logistic' cannot predict numbers; 'ssfn', 'mlp', 'linear', 'knn', 'svm', 'forest', 'tree' and 'boosting' can"
    );
    let classes: Vec<f64> = (0..60).map(|row| f64::from(row % 3)).collect();
    let three = Table { task: Some(crate::Task::Classification), ..table.clone() };
    assert_eq!(
        refused(&three, &classes, with(Predicting::Svm)),
        "predictor 'svm' cannot predict 3 classes; 'ssfn', 'mlp', 'linear', 'logistic', 'knn', 'forest', 'tree' and 'boosting' can"
    );
    let weighted = Table { weights: Some(vec![2.0; 60]), ..table.clone() };
    assert_eq!(
        refused(&weighted, &label, with(Predicting::Knn)),
        "predictor 'knn' knows no weights; 'ssfn', 'mlp', 'linear', 'forest', 'tree' and 'boosting' do"
    );
    let apart = Apart { inner_folds: Some(3), validation: Some(0.2) };
    let both = NeuralGreedyPursuit { apart, ..Default::default() };
    assert!(refused(&table, &label, both).starts_with("give `inner_folds` or `validation`, not both"));
    let accuracy = NeuralGreedyPursuit { metric: Metric::Accuracy, ..Default::default() };
    assert!(refused(&table, &label, accuracy).starts_with("`metric` must not be 'accuracy'"));
}

/// A shortlist leaves the choice as it is.
#[test]
fn the_shortlist_holds_the_best() {
    let (table, label) = sample_table("artificial", 250, 80, 3);
    let problem = table.k(5).problem_of_rows(&label);
    let select = |shortlist| {
        NeuralGreedyPursuit { shortlist: Some(shortlist), ..Default::default() }.select(&problem, &Run::new(0)).unwrap()
    };
    assert_eq!(select(0.05).units(), select(1.0).units());
}

#[test]
fn cancels_inside_a_step() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    let (table, label) = planted(60, 30, &[1], 0.3, 11);
    let problem = table.k(5).problem_of_rows(&label);
    let flag = Arc::new(AtomicBool::new(false));
    let (seen, cancel) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&flag));
    let count = Arc::clone(&seen);
    // The first report is before the first step: from then on nobody asks for another.
    let run = Run::new(0).with_cancel(flag).with_progress(move |_, _, _| {
        count.fetch_add(1, Ordering::Relaxed);
        cancel.store(true, Ordering::Relaxed);
    });
    assert_eq!(NeuralGreedyPursuit::default().select(&problem, &run), Err(Error::cancelled()));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    let (table, label) = bars(20);
    assert_eq!(cnn().select(&table.problem_of_rows(&label), &run), Err(Error::cancelled()));
}

/// Every candidate is a fit in every fold, so one fit must be short.
#[test]
#[allow(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn support_vectors_take_seconds() {
    let (table, label) = crate::testing::planted(300, 4, &[2, 0], 0.5, 3);
    let start = std::time::Instant::now();
    let svm = NeuralGreedyPursuit { predictor: vec![Predicting::Svm], ..NeuralGreedyPursuit::default() };
    let ranking = svm.select(&table.k(2).problem_of_rows(&label), &Run::new(0)).unwrap();
    assert_eq!(ranking.units(), [2, 0]);
    assert!(start.elapsed().as_secs() < 15, "{:?}", start.elapsed());
}
