use super::Rows;
use crate::testing::Table;

#[test]
fn limits_may_be_as_large_as_numbers_are() {
    let mut table = Table::new().numbers("x", &[1.0, 3.0, 2.0]).text("t", &["a", "b", "a"]);
    (table.common.max_levels, table.common.max_classes) = (usize::MAX / 2, usize::MAX);
    assert_eq!(table.problem_of_rows(&[0.0, 1.0, 2.0]).rows().rows(), 3);
}

/// Means, levels and fills come from one's own rows; the held-out rows are measured against them.
#[test]
fn held_out_rows_are_measured_against_ones_own() {
    let table = Table::new().numbers("x", &[1.0, 3.0, f64::NAN, 10.0, f64::NAN]).text("t", &["a", "b", "a", "c", "a"]);
    let (own, other) = table.split_rows(&[0.0, 1.0, 2.0, 3.0, 4.0], 3);
    // By their labels, because rows are in an order of their own.
    let column = |rows: &Rows, at: usize| {
        let mut values: Vec<(f64, f64)> = rows.targets.iter().copied().zip(rows.columns[at].iter().copied()).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values
    };
    assert_eq!(column(&own, 0), [(0.0, -1.0), (1.0, 1.0), (2.0, 0.0)]);
    assert_eq!(column(&other, 0), [(3.0, 8.0), (4.0, 0.0)]);
    assert_eq!((own.columns.len(), own.seen.missing[0]), (3, 1), "x, a and b; c is no level of these rows");
    let mean = 2.0 / 3.0;
    let a = column(&other, 1);
    assert!((a[0].1 + mean).abs() < 1e-15 && (a[1].1 - (1.0 - mean)).abs() < 1e-15);
}

/// However the rows are cut and ordered, the same comes out, to the bit.
#[test]
fn the_order_of_the_input_does_not_show() {
    let table = Table::random(500, 3, 8);
    let label = table.column(1).to_vec();
    let rows = |table: &Table, label: &[f64]| table.problem_of_rows(label).rows().clone();
    let reversed = |values: &[f64]| -> Vec<f64> { values.iter().rev().copied().collect() };
    let mut other = Table::new();
    for at in 0..3 {
        other = other.numbers(&table.plan().features[at].name, &reversed(table.column(at)));
    }
    let (one, two) = (rows(&table, &label), rows(&other, &reversed(&label)));
    assert_eq!((one.columns, one.targets, one.labels), (two.columns, two.targets, two.labels));
}
