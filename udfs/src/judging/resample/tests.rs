use super::*;
use crate::testing::{Table, planted};

fn problem(from_rows: bool) -> Problem {
    let (table, label) = planted(300, 4, &[1], 1.0, 5);
    table.folds(5).try_problem(&label, from_rows).unwrap()
}

#[test]
fn folds_hold_out_every_row_once_and_are_of_one_size() {
    let run = Run::new(2);
    for from_rows in [false, true] {
        let problem = problem(from_rows);
        let pieces = Pieces::new(&problem, &run).unwrap();
        let folds = pieces.folds(5).unwrap();
        let mut held_out = 0.0;
        for fold in 0..5 {
            let piece = pieces.without(&folds, fold, &run).unwrap();
            let (own, others) = match &piece.held_out {
                HeldOut::Moments(gram) => (piece.problem.gram().unwrap().weight, gram.weight),
                HeldOut::Rows(rows) => (piece.problem.rows().weight(), rows.weight()),
                HeldOut::Nothing => panic!("a fold is held out"),
            };
            assert_eq!(own + others, 300.0);
            assert!((50.0..70.0).contains(&others), "{others}");
            assert!(piece.problem.held_out.is_none(), "nobody who selects sees the rows that judge");
            held_out += others;
        }
        assert_eq!(held_out, 300.0);
    }
}

#[test]
fn halves_are_halves_and_differ_from_pair_to_pair() {
    let run = Run::new(2);
    for from_rows in [false, true] {
        let problem = problem(from_rows);
        let pieces = Pieces::new(&problem, &run).unwrap();
        let (one, other) = pieces.halves(0, &run);
        let mut all = [&one[..], &other].concat();
        all.sort_unstable();
        assert_eq!(all, (0..all.len()).collect::<Vec<_>>());
        assert_eq!(one.len(), other.len());
        assert_ne!(one, pieces.halves(1, &run).0);
        let half = pieces.piece(&one, &[], &run).unwrap();
        assert!((100..200).contains(&half.problem.seen().rows));
        // A half can be parted again.
        assert!(Pieces::new(&half.problem, &run).unwrap().folds(3).is_ok());
    }
}

#[test]
fn classes_are_in_both_halves() {
    let classes: Vec<f64> = (0..100).map(|row| f64::from(row < 10)).collect();
    let table = Table { task: Some(crate::Task::Classification), ..Table::random(100, 2, 1) };
    let problem = table.problem_of_rows(&classes);
    let run = Run::new(1);
    let (one, _) = Pieces::new(&problem, &run).unwrap().halves(0, &run);
    assert_eq!(one.iter().filter(|row| problem.rows().targets[**row] == 1.0).count(), 5);
}

#[test]
fn too_many_folds_are_refused() {
    let run = Run::new(1);
    for (from_rows, expected) in [
        (true, "`folds` must be at most 4, because there are only 4 different rows; got 5"),
        (false, "5 folds of 4 rows leave one without rows; use fewer folds"),
    ] {
        let problem = Table::random(4, 1, 1).folds(5).try_problem(&[1.0, 2.0, 3.0, 4.0], from_rows).unwrap();
        let error = Pieces::new(&problem, &run).unwrap().folds(5).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let gram = Table::random(9, 1, 1).problem(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert!(Pieces::new(&gram, &run).is_err());
}
