//! The kernels that selections spend their time in, against other libraries in the same run.
//!
//! `gram` is XᵀX of a batch of rows: ours packs and multiplies strips and computes one triangle, the rivals are general
//! matrix products that compute both (matrixmultiply) or one (faer), on one core. Ours spreads wide blocks over threads;
//! `RAYON_NUM_THREADS=1` keeps it to one core too. Throughput counts the multiplications and additions of one triangle as
//! "elements", so that element/s is flop/s.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, Mat, Par};
use pursuit_udfs::testing::{Table, planted};
use pursuit_udfs::{Labels, Reads, Run, Settings, Tiles, Work, selectors};

const ROWS: usize = 8192;

fn gram(c: &mut Criterion) {
    let mut group = c.benchmark_group("gram");
    group.sample_size(10);
    for columns in [50, 200, 784] {
        let mut random = Run::new(1).random("bench", 0);
        let x: Vec<Vec<f64>> = (0..columns).map(|_| (0..ROWS).map(|_| random.normal()).collect()).collect();
        group.throughput(Throughput::Elements((ROWS * columns * (columns + 1)) as u64));
        let id = |name: &str| BenchmarkId::new(name, format!("{ROWS}x{columns}"));

        group.bench_function(id("ours, packing included"), |b| {
            let mut tiles = Tiles::default();
            tiles.grow(columns);
            b.iter(|| {
                for start in (0..ROWS).step_by(Tiles::ROWS) {
                    for (column, values) in x.iter().enumerate() {
                        tiles.set(column, values[start..start + Tiles::ROWS].iter().copied());
                    }
                    tiles.accumulate(Tiles::ROWS);
                }
                black_box(tiles.sum(0, columns - 1))
            });
        });

        let flat: Vec<f64> = x.iter().flatten().copied().collect();
        group.bench_function(id("matrixmultiply"), |b| {
            let mut out = vec![0.0; columns * columns];
            let (rows, columns) = (ROWS, columns);
            b.iter(|| {
                // SAFETY: `flat` is columns × rows, `out` columns × columns, and the strides say so.
                unsafe {
                    matrixmultiply::dgemm(
                        columns,
                        rows,
                        columns,
                        1.0,
                        flat.as_ptr(),
                        rows as isize,
                        1,
                        flat.as_ptr(),
                        1,
                        rows as isize,
                        1.0,
                        out.as_mut_ptr(),
                        columns as isize,
                        1,
                    );
                }
                black_box(out[1])
            });
        });

        let matrix = Mat::from_fn(ROWS, columns, |row, column| x[column][row]);
        group.bench_function(id("faer, lower triangle"), |b| {
            let mut out = Mat::<f64>::zeros(columns, columns);
            b.iter(|| {
                matmul(
                    out.as_mut(),
                    BlockStructure::TriangularLower,
                    Accum::Add,
                    matrix.transpose(),
                    BlockStructure::Rectangular,
                    matrix.as_ref(),
                    BlockStructure::Rectangular,
                    1.0,
                    Par::Seq,
                );
                black_box(out[(columns - 1, 0)])
            });
        });
    }
    group.finish();
}

/// Every selector of the registry, from second moments and from rows, at three sizes.
fn select(c: &mut Criterion) {
    let mut group = c.benchmark_group("select");
    group.sample_size(10);
    for (rows, columns, k) in [(1000, 50, 10), (2000, 500, 20), (100, 2000, 10)] {
        let (table, label) = planted(rows, columns, &[1, 7, 30], 1.0, 3);
        let table: Table = table.k(k);
        for (kind, problem) in [("moments", table.problem(&label)), ("rows", table.problem_of_rows(&label))] {
            for spec in selectors() {
                let Work::Select(selector) = (spec.build)(&Settings::new()).expect("defaults are in range") else { continue };
                let needs_rows = selector.reads() != Reads::Moments;
                if spec.labels == Labels::Classes || kind == "moments" && needs_rows {
                    continue;
                }
                group.bench_function(
                    BenchmarkId::new(format!("{} from {kind}", spec.name), format!("{rows}x{columns}, k={k}")),
                    |b| {
                        b.iter(|| selector.select(&problem, &Run::default()).expect("the problem is sound"));
                    },
                );
            }
        }
    }
    group.finish();
}

criterion_group!(benches, gram, select);
criterion_main!(benches);
