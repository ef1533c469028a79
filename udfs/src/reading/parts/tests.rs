use super::*;
use crate::testing::{Column as Values, Table};

/// Whole numbers, of which sums are exact, a text, NULLs and weights.
fn table(rows: usize) -> (Table, Vec<f64>) {
    let mut random = Run::new(7).random("parts", 1);
    let mut draw = |most: usize| -> Vec<f64> { (0..rows).map(|_| random.below(most) as f64).collect() };
    let (mut x, y, z) = (draw(50), draw(900), draw(7));
    x.iter_mut().step_by(11).for_each(|x| *x = f64::NAN);
    let colours: Vec<&str> = z.iter().map(|z| ["red", "green", "blue"][*z as usize % 3]).collect();
    let table = Table::new().numbers("x", &x).text("colour", &colours).numbers("z", &z);
    // Rows are multiplied by the square roots of their weights: squares keep sums exact.
    let weights = draw(3).iter().map(|weight| weight * weight).collect();
    (Table { weights: Some(weights), ..table }, y)
}

fn parted(table: &Table, label: &[f64], run: usize) -> PartedMoments {
    let mut parted = PartedMoments::new(table.plan(), Parting::for_folds(5, 4, 3));
    for start in (0..label.len()).step_by(run) {
        let rows = start..label.len().min(start + run);
        table.feed(label, rows, |rows, label, weights, features| parted.update(rows, label, weights, features)).unwrap();
    }
    parted
}

fn shuffled(table: &Table, label: &[f64]) -> (Table, Vec<f64>) {
    let mut order: Vec<usize> = (0..label.len()).collect();
    Run::new(1).random("order", 0).shuffle(&mut order);
    let take = |values: &[f64]| -> Vec<f64> { order.iter().map(|row| values[*row]).collect() };
    let mut other = table.clone();
    for (_, column) in &mut other.columns {
        match column {
            Values::Numbers(values) => *values = take(values),
            Values::Text(values) => *values = order.iter().map(|row| values[*row].clone()).collect(),
        }
    }
    other.weights = table.weights.as_ref().map(|weights| take(weights));
    (other, take(label))
}

#[test]
fn parts_add_up_to_the_whole() {
    let (table, label) = table(6000);
    let (whole, parts) = parted(&table, &label, 1000).finish().unwrap();
    let expected = table.moments(&label, 0..6000).unwrap();
    assert_eq!((whole.seen(), whole.finish().matrix), (expected.seen(), expected.finish().matrix));
    assert_eq!(parts.len(), 20);
    // About 300 rows each.
    assert!(parts.iter().all(|part| (200..400).contains(&(part.seen().rows + part.seen().rows_dropped()))));
    let again = whole.sum_of(&parts).unwrap();
    assert_eq!((again.seen(), again.finish().products), (whole.seen(), whole.finish().products));
}

/// A part has few of the values of a text, and the whole decides which of them have a column: by name, or by bucket.
#[test]
fn parts_have_the_levels_of_the_whole() {
    let (mut table, label) = table(6000);
    let mut random = Run::new(3).random("texts", 0);
    for values in [200, 4000] {
        let texts: Vec<String> = (0..6000).map(|_| format!("{}", random.below(values).min(random.below(values)))).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        table = table.text(&format!("of {values}"), &texts);
    }
    table.common.max_levels = 40;
    let (whole, parts) = parted(&table, &label, 1000).finish().unwrap();
    let expected = whole.finish();
    assert!(expected.seen.texts[&3].told_apart == 40 && expected.seen.texts[&4].is_estimate);
    let again = whole.sum_of(&parts).unwrap().finish();
    assert_eq!((&again.design, &again.matrix, &again.seen.texts), (&expected.design, &expected.matrix, &expected.seen.texts));
    assert_eq!(whole.sum_of(&parts[..7]).unwrap().finish().design, expected.design);
}

#[test]
fn neither_order_nor_batches_nor_passes_show() {
    let (table, label) = table(3000);
    let (_, parts) = parted(&table, &label, 3000).finish().unwrap();
    let (table, label) = shuffled(&table, &label);
    let mut one = PartedMoments::new(table.plan(), Parting::for_folds(5, 4, 3));
    let mut two = one.clone();
    table.feed(&label, 0..700, |n, label, weights, features| one.update(n, label, weights, features)).unwrap();
    table.feed(&label, 700..3000, |n, label, weights, features| two.update(n, label, weights, features)).unwrap();
    assert!(one.bytes() > 0);
    one.merge(two).unwrap();
    for (a, b) in parts.iter().zip(one.finish().unwrap().1) {
        assert_eq!((a.seen(), a.finish().matrix), (b.seen(), b.finish().matrix));
    }
}

#[test]
fn equal_rows_are_in_one_part_and_another_seed_parts_otherwise() {
    let table = Table::new().numbers("x", &[1.0; 100]);
    let used = |parts: Vec<Moments>| parts.iter().filter(|part| part.seen().rows > 0).count();
    assert_eq!(used(parted(&table, &[2.0; 100], 7).finish().unwrap().1), 1);
    let at = |seed| Parting::for_halves(3, seed).part(12345);
    assert!((0..20).map(at).collect::<std::collections::BTreeSet<u32>>().len() > 5);
    assert_eq!((Parting::for_halves(50, 0).parts, Parting::for_halves(5000, 0).parts), (64, 16));
}

/// Rows held out, filled and centred by the means of the others, worked out row by row.
#[test]
fn held_out_moments_are_about_the_means_of_those_learnt_from() {
    let (table, label) = table(2000);
    let (whole, parts) = parted(&table, &label, 2000).finish().unwrap();
    let (own, held_out) = (whole.sum_of(&parts[4..]).unwrap(), whole.sum_of(&parts[..4]).unwrap());
    let learnt = own.finish_as(whole.finish().label);
    let about = held_out.finish_about(&own, &learnt);
    assert_eq!(about.weight + learnt.weight, whole.weight());
    // Which rows are held out is asked of the parting itself, one at a time.
    let weights = table.weights.clone().unwrap();
    let is_held_out = |row: usize| {
        let mut one = PartedMoments::new(table.plan(), Parting::for_folds(5, 4, 3));
        table.feed(&label, row..row + 1, |n, label, weights, features| one.update(n, label, weights, features)).unwrap();
        let parts = one.finish().unwrap().1;
        parts[..4].iter().any(|part| part.seen().rows + part.seen().rows_dropped() > 0)
    };
    let sides: Vec<bool> = (0..2000).map(is_held_out).collect();
    let x = table.column(0);
    let mean = |values: &[f64]| {
        let known = (0..2000).filter(|row| !sides[*row] && !values[*row].is_nan());
        let (sum, weight) = known.fold((0.0, 0.0), |(s, w), row| (s + weights[row] * values[row], w + weights[row]));
        sum / weight
    };
    let (x_mean, y_mean) = (mean(x), mean(&label));
    let filled = |row: usize| if x[row].is_nan() { 0.0 } else { x[row] - x_mean };
    let sum = |of: &dyn Fn(usize) -> f64| (0..2000).filter(|row| sides[*row]).map(|row| weights[row] * of(row)).sum::<f64>();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.abs().max(1.0);
    assert!(close(about.matrix[0], sum(&|row| filled(row).powi(2))));
    assert!(close(about.products[0], sum(&|row| filled(row) * (label[row] - y_mean))));
    assert!(close(about.label_energy, sum(&|row| (label[row] - y_mean).powi(2))));
}
