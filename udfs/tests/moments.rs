//! One-pass moments against pandas, numpy and exact fractions, and against themselves in another order.

use pursuit_udfs::testing::{Column, Table};
use pursuit_udfs::{Gram, Moments, Nulls, Run, Value};

fn fixture(name: &str) -> Value {
    let path = format!("{}/../tests/reference/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap_or_else(|| v.as_bool().map_or(f64::NAN, f64::from))).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(floats).collect()
}

/// The fixture's table, and a label for it that has nothing to do with it.
fn table(fixture: &Value) -> (Table, Vec<f64>) {
    let mut table = Table::new();
    for column in fixture["columns"].as_array().unwrap() {
        let name = column["name"].as_str().unwrap().to_string();
        let values = if column["type"] == "text" {
            Column::Text(column["values"].as_array().unwrap().iter().map(|v| v.as_str().map(str::to_owned)).collect())
        } else {
            Column::Numbers(floats(&column["values"]))
        };
        table.columns.push((name, values));
    }
    let rows = fixture["rows"].as_u64().unwrap() as usize;
    (table, (0..rows).map(|row| (row as f64).sin()).collect())
}

fn assert_matrix(gram: &Gram, expected: &[Vec<f64>], tolerance: f64) {
    let d = gram.design.len();
    assert_eq!(d, expected.len());
    for i in 0..d {
        for j in 0..d {
            let scale = (expected[i][i] * expected[j][j]).sqrt();
            let error = (gram.matrix[i * d + j] - expected[i][j]).abs() / scale;
            assert!(error < tolerance, "({i}, {j}): {} instead of {}", gram.matrix[i * d + j], expected[i][j]);
        }
    }
}

#[test]
fn mean_filled_and_one_hot_moments_match_pandas() {
    let fixture = fixture("moments");
    let (mut table, label) = table(&fixture);
    let gram = |table: &Table| table.moments(&label, 0..label.len()).unwrap().finish();
    assert_matrix(&gram(&table), &matrix(&fixture["unweighted"]["cross"]), 1e-13);
    table.common.nulls = Nulls::Drop;
    assert_matrix(&gram(&table), &matrix(&fixture["complete_rows"]["cross"]), 1e-13);
    table.common.nulls = Nulls::Mean;
    table.weights = Some(floats(&fixture["weight"]));
    assert_matrix(&gram(&table), &matrix(&fixture["weighted"]["cross"]), 1e-13);
}

#[test]
fn rows_and_moments_hold_the_same_numbers() {
    let fixture = fixture("moments");
    let (mut table, label) = table(&fixture);
    for nulls in [Nulls::Mean, Nulls::Indicator, Nulls::Drop] {
        table.common.nulls = nulls;
        let gram = table.moments(&label, 0..label.len()).unwrap().finish();
        let problem = table.problem_of_rows(&label);
        let rows = problem.rows();
        assert_eq!((&rows.design, &rows.seen), (&gram.design, &gram.seen));
        let inner = |i: usize, j: usize| rows.columns[i].iter().zip(&rows.columns[j]).map(|(a, b)| a * b).sum::<f64>();
        let d = rows.columns.len();
        let expected: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| inner(i, j)).collect()).collect();
        assert_matrix(&gram, &expected, 1e-12);
    }
}

/// A timestamp in nanoseconds, a number with a large offset and a tiny one: exact fractions are the reference.
#[test]
fn large_offsets_keep_their_digits() {
    let fixture = fixture("recarith");
    let (table, label) = table(&fixture);
    let expected = matrix(&fixture["exact_after_f64"]["cross"]);
    assert_matrix(&table.moments(&label, 0..1000).unwrap().finish(), &expected, 1e-12);
    // Also when every piece of the table is a batch of its own, each centred elsewhere.
    let mut pieces = table.moments(&label, 0..1).unwrap();
    for start in 1..1000 {
        pieces.merge(&table.moments(&label, start..start + 1).unwrap()).unwrap();
    }
    assert_matrix(&pieces.finish(), &expected, 1e-12);
}

/// Random tables with NULLs, text and weights, cut at random places and merged in random order.
#[test]
fn merging_in_any_order_gives_the_same_bits() {
    for seed in 0..30 {
        let mut random = Run::new(seed).random("cuts", 0);
        let rows = 200 + random.below(2000);
        let mut table = Table::random(rows, 1 + random.below(30), seed);
        for (_, column) in &mut table.columns {
            let Column::Numbers(values) = column else { unreachable!() };
            let (offset, holes) = (10f64.powi(random.below(13) as i32), random.below(3));
            values.iter_mut().for_each(|value| *value = if random.below(10) < holes { f64::NAN } else { *value + offset });
        }
        let text = (0..rows).map(|_| (random.below(5) > 0).then(|| format!("level {}", random.below(6)))).collect();
        table.columns.push(("text".into(), Column::Text(text)));
        if seed % 2 == 0 {
            table.weights = Some((0..rows).map(|_| random.below(4) as f64).collect());
        }
        let label: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
        let mut cuts: Vec<usize> = (0..5).map(|_| random.below(rows)).chain([0, rows]).collect();
        cuts.sort_unstable();
        let parts: Vec<Moments> = cuts.windows(2).map(|cut| table.moments(&label, cut[0]..cut[1]).unwrap()).collect();
        let merged = |order: &[usize]| {
            let mut whole = parts[order[0]].clone();
            order[1..].iter().for_each(|part| whole.merge(&parts[*part]).unwrap());
            whole.finish()
        };
        let (forward, backward) = (merged(&[0, 1, 2, 3, 4, 5]), merged(&[3, 5, 1, 4, 0, 2]));
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same(&forward.matrix, &backward.matrix), "table {seed}");
        assert!(same(&forward.products, &backward.products) && forward.seen == backward.seen, "table {seed}");
        // One pass cuts batches elsewhere, so that the last digits may differ, and no more.
        let d = forward.design.len();
        let whole = table.moments(&label, 0..rows).unwrap().finish();
        let expected: Vec<Vec<f64>> = (0..d).map(|i| whole.matrix[i * d..(i + 1) * d].to_vec()).collect();
        let forward = merged(&[0, 1, 2, 3, 4, 5]);
        assert_matrix(&forward, &expected, 1e-12);
    }
}

#[test]
fn bytes_round_trip_and_rubbish_is_refused() {
    let (table, label) = table(&fixture("moments"));
    let moments = table.moments(&label, 0..60).unwrap();
    let bytes = moments.to_bytes();
    let back = Moments::from_bytes(&bytes).unwrap();
    assert_eq!(back.to_bytes(), bytes);
    assert_eq!(back.finish().matrix, moments.finish().matrix);
    let mut random = Run::new(0).random("rubbish", 0);
    assert!(Moments::from_bytes(b"").is_err());
    for length in 0..200.min(bytes.len()) {
        assert!(Moments::from_bytes(&bytes[..length]).is_err());
    }
    assert!(Moments::from_bytes(&bytes[..bytes.len() - 8]).is_err());
    for _ in 0..200 {
        let mut bent = bytes.clone();
        let at = random.below(bent.len());
        bent[at] ^= 1 << random.below(8);
        // Either refused, or a gram with another number in it: never a panic.
        if let Ok(bent) = Moments::from_bytes(&bent) {
            bent.finish();
        }
    }
}
