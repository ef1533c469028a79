//! Random tables (types, NULLs, shapes, partitions) against orthogonal matching pursuit written out plainly on dense columns.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use pursuit_udfs::{Random, Run};

use crate::session::{floats, query, session, texts};

/// A random table: its Arrow columns, and the same as plain dense columns (one for a number, one a level for a text).
struct Table {
    batch: RecordBatch,
    dense: Vec<(String, Vec<Vec<Option<f64>>>)>,
    label: Vec<f64>,
}

fn table(random: &mut Random) -> Table {
    let rows = 20 + random.below(300);
    let columns = 2 + random.below(12);
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut dense = Vec::new();
    let mut label = vec![0.0; rows];
    for j in 0..columns {
        let name = format!("c{j}");
        let holes = [0, 0, 1, 4][random.below(4)];
        let weight = if random.below(3) == 0 { random.normal() * 2.0 } else { 0.0 };
        let raw: Vec<Option<f64>> =
            (0..rows).map(|_| (random.below(10) >= holes).then(|| (random.normal() * 8.0).round() / 4.0)).collect();
        let whole = |x: f64| x.round();
        let (array, values): (ArrayRef, Vec<Option<f64>>) = match random.below(6) {
            0 => (Arc::new(Float64Array::from(raw.clone())), raw.clone()),
            1 => (Arc::new(raw.iter().map(|x| x.map(|x| x as f32)).collect::<Float32Array>()), raw.clone()),
            2 => (
                Arc::new(raw.iter().map(|x| x.map(|x| whole(x) as i64)).collect::<Int64Array>()),
                raw.iter().map(|x| x.map(whole)).collect(),
            ),
            3 => (
                Arc::new(raw.iter().map(|x| x.map(|x| whole(x) as i16)).collect::<Int16Array>()),
                raw.iter().map(|x| x.map(whole)).collect(),
            ),
            4 => (
                Arc::new(raw.iter().map(|x| x.map(|x| x > 0.0)).collect::<BooleanArray>()),
                raw.iter().map(|x| x.map(|x| f64::from(x > 0.0))).collect(),
            ),
            _ => {
                let level = |x: f64| ["low", "middle", "high", "top"][(x.abs() as usize).min(3)];
                let array: StringArray = raw.iter().map(|x| x.map(level)).collect();
                let mut levels: Vec<&str> = raw.iter().flatten().map(|x| level(*x)).collect();
                levels.sort_unstable();
                levels.dedup();
                // NULL is a level of its own.
                let of = |is: &dyn Fn(Option<f64>) -> bool| raw.iter().map(|x| Some(f64::from(is(*x)))).collect::<Vec<_>>();
                let flags = levels.iter().map(|l| of(&|x| x.is_some_and(|x| level(x) == *l)));
                dense.push((name.clone(), flags.chain([of(&|x| x.is_none())]).collect()));
                label.iter_mut().zip(&raw).for_each(|(y, x)| *y += weight * x.map_or(0.0, |x| level(x).len() as f64));
                fields.push(Field::new(name, DataType::Utf8, true));
                arrays.push(Arc::new(array));
                continue;
            }
        };
        label.iter_mut().zip(&values).for_each(|(y, x)| *y += weight * x.unwrap_or(0.0));
        dense.push((name.clone(), vec![values]));
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    label.iter_mut().for_each(|y| *y += random.normal());
    fields.push(Field::new("label", DataType::Float64, true));
    arrays.push(Arc::new(Float64Array::from(label.clone())));
    Table { batch: RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap(), dense, label }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn centred(values: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = if known.is_empty() { 0.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    values.iter().map(|x| x.map_or(0.0, |x| x - mean)).collect()
}

/// Adds to an orthonormal basis what a column has beside it.
fn extend(basis: &mut Vec<Vec<f64>>, column: &[f64]) {
    let before = dot(column, column);
    let mut rest = column.to_vec();
    for _ in 0..2 {
        for q in basis.iter() {
            let overlap = dot(q, &rest);
            rest.iter_mut().zip(q).for_each(|(r, q)| *r -= overlap * q);
        }
    }
    let energy = dot(&rest, &rest);
    if energy > 1e-9 * before {
        rest.iter_mut().for_each(|r| *r /= energy.sqrt());
        basis.push(rest);
    }
}

/// The share that a single column would explain in the place of `m` that explain a share, out of `n` degrees of freedom, as docs/guide.md has it: R² adjusted for
/// the further columns, less 3.5 times what a noncentral χ² of `m` degrees of freedom scatters more than one of 1, where its centre is what would be left if all
/// of it were chance; at least the mean of the columns.
fn beyond_chance(share: f64, m: f64, n: f64) -> f64 {
    if m <= 1.0 {
        return share;
    }
    let unit = (1.0 - share) / (n - m);
    let adjusted = share - (m - 1.0) * unit;
    let margin = |centre: f64| 3.5 * unit * ((2.0 * m + 4.0 * centre / unit).sqrt() - (2.0 + 4.0 * centre / unit).sqrt());
    let centre = adjusted - margin(0.0);
    let worth = if centre > 0.0 { adjusted - margin(centre) } else { 0.0 };
    worth.max(share / m)
}

/// The features that orthogonal matching pursuit chooses, with their scores.
fn plain_omp(table: &Table, k: usize) -> Vec<(String, f64)> {
    let y = centred(&table.label.iter().map(|y| Some(*y)).collect::<Vec<_>>());
    let length = dot(&y, &y).sqrt();
    let units: Vec<Vec<Vec<f64>>> = table
        .dense
        .iter()
        .map(|(_, columns)| {
            let mut basis = Vec::new();
            columns.iter().for_each(|column| extend(&mut basis, &centred(column)));
            basis
        })
        .collect();
    let (mut taken, mut chosen): (Vec<Vec<f64>>, Vec<(usize, f64)>) = (Vec::new(), Vec::new());
    while chosen.len() < k {
        let mut residual = y.clone();
        for q in &taken {
            let overlap = dot(q, &residual);
            residual.iter_mut().zip(q).for_each(|(r, q)| *r -= overlap * q);
        }
        let adds = |unit: usize| {
            let mut with = taken.clone();
            units[unit].iter().for_each(|column| extend(&mut with, column));
            with.len() > taken.len()
        };
        let open = (0..units.len()).filter(|unit| chosen.iter().all(|(other, _)| other != unit) && adds(*unit));
        let left = dot(&residual, &residual);
        let free = (y.len() - 1 - taken.len()) as f64;
        let score = |unit: usize| {
            let explained = units[unit].iter().map(|q| dot(q, &residual).powi(2)).sum::<f64>();
            if units[unit].len() < 2 {
                return explained.sqrt() / length;
            }
            // What a direction has left beside those taken in is what it can explain by chance.
            let energy = |q: &Vec<f64>| dot(q, q) - taken.iter().map(|t| dot(t, q).powi(2)).sum::<f64>();
            (beyond_chance(explained / left, units[unit].iter().map(energy).sum(), free) * left).sqrt() / length
        };
        let scores = open.map(|unit| (unit, score(unit)));
        let best = scores.fold(None, |best: Option<(usize, f64)>, (unit, score)| match best {
            Some((_, top)) if score <= top * (1.0 + 1e-12) => best,
            _ => Some((unit, score)),
        });
        let Some((unit, score)) = best else { break };
        units[unit].iter().for_each(|column| extend(&mut taken, column));
        chosen.push((unit, score));
    }
    chosen.into_iter().map(|(unit, score)| (table.dense[unit].0.clone(), score)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn random_tables_are_ranked_as_dense_columns_are() {
    let ctx = session();
    for seed in 0..60 {
        let mut random = Run::new(seed).random("tables", 0);
        let table = table(&mut random);
        let k = 1 + random.below(table.dense.len());
        let expected = plain_omp(&table, k);

        // The rows cut into batches and dealt to partitions at random.
        let mut partitions = vec![Vec::new(); 1 + random.below(4)];
        let mut start = 0;
        while start < table.batch.num_rows() {
            let length = (1 + random.below(60)).min(table.batch.num_rows() - start);
            let at = random.below(partitions.len());
            partitions[at].push(table.batch.slice(start, length));
            start += length;
        }
        let all: Vec<RecordBatch> = partitions.iter().flatten().cloned().collect();
        assert_eq!(concat_batches(&table.batch.schema(), &all).unwrap().num_rows(), table.label.len());
        ctx.register_table("t", Arc::new(MemTable::try_new(table.batch.schema(), partitions).unwrap())).unwrap();
        for reads in ["moments", "rows"] {
            let answer =
                query(&ctx, &format!("SELECT * FROM omp('t', label => 'label', k => {k}, reads => '{reads}') ORDER BY rank"))
                    .await
                    .unwrap();
            let (features, scores) = (texts(&answer, "feature"), floats(&answer, "score"));
            assert_eq!(features, expected.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), "table {seed}, {reads}");
            for (found, (feature, score)) in scores.iter().zip(&expected) {
                assert!((found - score).abs() < 1e-9, "table {seed}, {reads}: {feature} scores {found} instead of {score}");
            }
        }
        ctx.deregister_table("t").unwrap();
    }
}
