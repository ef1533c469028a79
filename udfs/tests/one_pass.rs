//! One pass: rows that do not count must not spend the schedule, and weights must not be spelled out in memory.

use pursuit_udfs::testing::{Column, Table, planted};
use pursuit_udfs::{Nulls, Run, Settings, Value, selectors};

const ROWS: usize = 60_000;
const SUPPORT: [usize; 15] = [1, 4, 6, 9, 11, 13, 16, 18, 21, 23, 26, 28, 31, 34, 37];

/// The columns that one pass chooses.
fn chosen(table: &Table, label: &[f64], run_rows: usize) -> Vec<usize> {
    let spec = selectors().into_iter().find(|spec| spec.name == "sequential_attention").unwrap();
    let selector = spec.selector(&Settings::from_iter([("passes".to_string(), Value::from("one"))])).unwrap();
    let (_, ranking) = table.pass(&*selector, label, run_rows, &Run::new(1)).unwrap();
    let mut units = ranking.units();
    units.sort_unstable();
    units
}

fn example() -> (Table, Vec<f64>) {
    let table = Table::random(ROWS, 40, 11);
    let noise = Table::random(ROWS, 1, 12);
    let label = (0..ROWS).map(|row| SUPPORT.iter().map(|j| table.column(*j)[row]).sum::<f64>() + noise.column(0)[row]).collect();
    (table.k(SUPPORT.len()), label)
}

#[test]
fn rows_without_a_label_leave_no_round_untrained() {
    let (table, mut label) = example();
    assert_eq!(chosen(&table, &label, 8192), SUPPORT, "with all labels");
    label.iter_mut().enumerate().filter(|(row, _)| row % 10 < 3).for_each(|(_, y)| *y = f64::NAN);
    assert_eq!(chosen(&table, &label, 8192), SUPPORT, "30 % of the labels are NULL");
    // All of them at the end: nothing that was seen before told so.
    let (_, mut label) = example();
    label[ROWS * 6 / 10..].fill(f64::NAN);
    assert_eq!(chosen(&table, &label, 8192), SUPPORT, "the last 40 % of the labels are NULL");
}

#[test]
fn rows_of_weight_0_and_rows_with_a_null_leave_no_round_untrained() {
    let (table, label) = example();
    let weights = (0..ROWS).map(|row| f64::from(row % 10 >= 4)).collect();
    assert_eq!(chosen(&Table { weights: Some(weights), ..table.clone() }, &label, 8192), SUPPORT, "weight 0");
    let mut holes = table.clone();
    if let Column::Numbers(values) = &mut holes.columns[0].1 {
        values.iter_mut().step_by(3).for_each(|x| *x = f64::NAN);
    }
    holes.common.nulls = Nulls::Drop;
    assert_eq!(chosen(&holes, &label, 8192), SUPPORT, "nulls => 'drop'");
}

/// How rows are cut into runs says nothing, once the first of them are settled.
#[test]
fn leaving_rows_out_equals_a_table_without_them() {
    let (table, label) = planted(3000, 8, &[1, 4, 6], 0.5, 3);
    let kept: Vec<usize> = (0..3000).filter(|row| row % 4 > 0).collect();
    let holes: Vec<f64> = label.iter().enumerate().map(|(row, y)| if row % 4 > 0 { *y } else { f64::NAN }).collect();
    let without = (0..8).fold(Table::new(), |without, j| {
        without.numbers(&format!("x{j}"), &kept.iter().map(|row| table.column(j)[*row]).collect::<Vec<_>>())
    });
    let rest: Vec<f64> = kept.iter().map(|row| label[*row]).collect();
    assert_eq!(chosen(&table.k(3), &holes, 4000), chosen(&without.k(3), &rest, 4000));
}

#[test]
fn an_enormous_weight_is_bounded() {
    let (table, label) = planted(20_000, 10, &[2, 5, 7], 0.5, 5);
    let mut weights = vec![1.0; 20_000];
    weights[15_000] = 1e8;
    let table = Table { weights: Some(weights), ..table.k(3) };
    assert_eq!(chosen(&table, &label, 4096), [2, 5, 7]);
    // Among the first rows it is what the weights say that counts: one row tells nothing, but it ends.
    let mut weights = vec![1.0; 20_000];
    weights[100] = 1e9;
    assert_eq!(chosen(&Table { weights: Some(weights), ..table.clone() }, &label, 4096).len(), 3);
    let weights = (0..20_000).map(|row| if row < 5000 { 1.0 } else { 1e8 }).collect();
    assert_eq!(chosen(&Table { weights: Some(weights), ..table }, &label, 4096), [2, 5, 7]);
}

#[test]
fn whole_weights_are_repetitions() {
    let (table, label) = planted(2000, 8, &[1, 4, 6], 0.5, 7);
    let counts: Vec<usize> = (0..2000).map(|row| 1 + row % 3).collect();
    let repeat = |values: &[f64]| -> Vec<f64> {
        values.iter().zip(&counts).flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect()
    };
    let repeated = (0..8).fold(Table::new(), |repeated, j| repeated.numbers(&format!("x{j}"), &repeat(table.column(j))));
    let weighted = Table { weights: Some(counts.iter().map(|count| *count as f64).collect()), ..table };
    let spec = selectors().into_iter().find(|spec| spec.name == "sequential_attention").unwrap();
    let selector = spec.selector(&Settings::from_iter([("passes".to_string(), Value::from("one"))])).unwrap();
    let (_, a) = weighted.k(5).pass(&*selector, &label, 10_000, &Run::new(1)).unwrap();
    let (_, b) = repeated.k(5).pass(&*selector, &repeat(&label), 10_000, &Run::new(1)).unwrap();
    assert_eq!(a.units(), b.units());
    for (a, b) in a.choices.iter().zip(&b.choices) {
        assert!((a.score - b.score).abs() < 1e-4 * b.score, "{} {}", a.score, b.score);
    }
}

/// The other selectors that know how: they find what there is, the same on any number of threads, and say what one pass cannot do.
#[test]
fn other_selectors_read_once_too() {
    let (table, label) = planted(30_000, 12, &[2, 5, 7], 0.5, 9);
    for name in ["group_lasso", "sequential_lasso", "batch_attention"] {
        let spec = selectors().into_iter().find(|spec| spec.name == name).unwrap();
        let mut settings = Settings::from_iter([("passes".to_string(), Value::from("one"))]);
        if name == "sequential_lasso" {
            settings.insert("model".to_string(), Value::from("mlp"));
        }
        let selector = spec.selector(&settings).unwrap();
        let select = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| table.clone().k(3).pass(&*selector, &label, 4096, &Run::new(1)).unwrap().1)
        };
        let ranking = select(1);
        assert_eq!(ranking, select(4), "{name}");
        let mut units = ranking.units();
        units.sort_unstable();
        assert_eq!(units, [2, 5, 7], "{name}");
        let mut forced = table.clone().k(3);
        forced.common.must_include = vec!["x9".into()];
        let (_, ranking) = forced.pass(&*selector, &label, 4096, &Run::new(1)).unwrap();
        assert!(ranking.units()[0] == 9 && ranking.units().len() == 3, "{name}: {:?}", ranking.units());
        settings.insert("epochs".to_string(), Value::from(3));
        let refused = table.clone().k(3).pass(&*spec.selector(&settings).unwrap(), &label, 4096, &Run::new(1));
        assert!(refused.unwrap_err().to_string().contains("`epochs`"), "{name}");
    }
}
