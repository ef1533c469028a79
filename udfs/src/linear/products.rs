use std::ops::Range;

use rayon::prelude::*;

use crate::kernels::dot;
use crate::reading::problem::Problem;
use crate::reading::table::Data;
use crate::{Lease, Result, Run};

/// The inner products that linear selectors live on, of a design made comparable: each single column scaled to unit
/// length, the columns of a wider unit replaced by an orthonormal basis of what they span. The score of a unit is
/// then the length of its correlations, whatever way a text was coded, and levels that depend on each other are gone.
///
/// The label is scaled to unit length too, so that a correlation is one.
#[derive(Debug)]
pub struct Products {
    /// The columns of each unit. Empty: nothing varies in it, it can never be chosen.
    pub units: Vec<Range<usize>>,
    /// The unit of each column.
    pub unit_of: Vec<usize>,
    /// `correlations[j * labels + q]` = xⱼ · y_q
    pub correlations: Vec<f64>,
    /// Columns of the label: one of numbers, or a 0/1 column for each class.
    pub labels: usize,
    /// xⱼ · xⱼ
    pub energies: Vec<f64>,
    /// Rows for a criterion that counts them: their weight, but no less than there are, for weights that are shares.
    pub rows: f64,
    /// Each column as a combination of design columns.
    combinations: Vec<Vec<(usize, f64)>>,
    label_length: f64,
    source: Source,
    run: Run,
    _memory: Lease,
}

#[derive(Debug)]
enum Source {
    Matrix(Vec<f64>),
    Columns(Vec<Vec<f64>>),
}

/// Columns of which all products are taken at once: a single passage through them, where every column asked for would be one more.
const FEW: usize = 128;
/// Rows multiplied while they are in cache, and rows whose sums one thread takes.
const BAND: usize = 512;
const PART: usize = 1 << 14;
/// Parts of which sums are kept at a time.
const AT_ONCE: usize = 16;

/// Share of its length that a column must keep beside the others to count as one of its own.
pub(crate) const INDEPENDENT: f64 = 1e-10;

impl Products {
    /// Of all units.
    pub fn new(problem: &Problem, run: &Run) -> Result<Self> {
        Self::of_units(problem, |_| true, run)
    }

    /// Only of the units that take part; the others have no columns.
    pub fn of_units(problem: &Problem, takes_part: impl Fn(usize) -> bool, run: &Run) -> Result<Self> {
        let inner = |i: usize, j: usize| match &problem.table.data {
            Data::Gram(gram) => gram.matrix[i * gram.design.len() + j],
            Data::Rows(rows) => weighted_dot(&rows.columns[i], &rows.columns[j], &rows.weights),
        };
        let (mut units, mut unit_of, mut combinations) = (Vec::new(), Vec::new(), Vec::new());
        for (unit, columns) in problem.units.iter().map(|unit| &unit.columns).enumerate() {
            let start = combinations.len();
            run.check()?;
            match columns[..] {
                _ if !takes_part(unit) => {}
                [column] => {
                    let energy = inner(column, column);
                    let scale = if problem.standardize { 1.0 / energy.sqrt() } else { 1.0 };
                    combinations.extend((energy > 0.0).then(|| vec![(column, scale)]));
                }
                _ => match levels(columns, problem, &inner) {
                    Some(basis) => combinations.extend(basis),
                    None => combinations.extend(orthonormal(columns, &inner, run)?),
                },
            }
            unit_of.resize(combinations.len(), unit);
            units.push(start..combinations.len());
        }
        let (correlations, labels, rows, label_length, source, memory) = match &problem.table.data {
            Data::Gram(gram) => {
                let d = gram.design.len();
                let memory = run.reserve(matrix_bytes(combinations.len()))?;
                let labels = gram.products.len() / d.max(1);
                let label_length = gram.label_energy.sqrt();
                let source = Source::Matrix(combine_matrix(&gram.matrix, d, &combinations, run)?);
                let correlation = |combination: &Vec<(usize, f64)>, q: usize| {
                    combination.iter().map(|(i, c)| c * gram.products[i * labels + q]).sum::<f64>() / label_length
                };
                let correlations = combinations.iter().flat_map(|c| (0..labels).map(move |q| correlation(c, q))).collect();
                let rows = gram.weight.max(gram.seen.rows as f64);
                (correlations, labels, rows, label_length, source, memory)
            }
            Data::Rows(rows) => {
                let few = combinations.len() <= FEW;
                let matrix =
                    if few { matrix_bytes(combinations.len()) * (1 + rows.rows().div_ceil(PART).min(AT_ONCE)) } else { 0 };
                let a_column = rows.rows() * size_of::<f64>();
                let mut memory = run.reserve((combinations.len() + rows.labels.len() + 1) * a_column + matrix)?;
                let scales: Vec<f64> = rows.weights.iter().map(|weight| weight.sqrt()).collect();
                let scaled = |values: Vec<f64>| -> Vec<f64> {
                    if scales.is_empty() { values } else { values.iter().zip(&scales).map(|(x, s)| x * s).collect() }
                };
                let columns: Vec<Vec<f64>> = combinations
                    .par_iter()
                    .map(|combination| {
                        run.check()?;
                        let mut column = vec![0.0; rows.rows()];
                        for (i, c) in combination {
                            column.iter_mut().zip(&rows.columns[*i]).for_each(|(sum, x)| *sum += c * x);
                        }
                        Ok(scaled(column))
                    })
                    .collect::<Result<_>>()?;
                let labels: Vec<Vec<f64>> = rows.labels.iter().map(|label| scaled(label.clone())).collect();
                let label_length = labels.iter().map(|label| dot(label, label)).sum::<f64>().sqrt();
                let correlation =
                    |column: &Vec<f64>| -> Vec<f64> { labels.iter().map(|label| dot(column, label) / label_length).collect() };
                let correlations = columns.par_iter().flat_map_iter(correlation).collect();
                let labels = labels.len();
                let source = if few { Source::Matrix(matrix_of(&columns, run)?) } else { Source::Columns(columns) };
                if few {
                    memory.shrink_to(matrix_bytes(combinations.len()));
                }
                let rows = rows.weight().max(rows.rows() as f64);
                (correlations, labels, rows, label_length, source, memory)
            }
        };
        let mut products =
            Self { units, unit_of, correlations, labels, rows, combinations, label_length, source, ..Self::empty(run, memory) };
        products.settle_units();
        products.energies = (0..products.columns()).map(|j| products.inner(j, j)).collect();
        Ok(products)
    }

    fn empty(run: &Run, memory: Lease) -> Self {
        let (source, run) = (Source::Columns(Vec::new()), run.clone());
        Self {
            units: Vec::new(),
            unit_of: Vec::new(),
            correlations: Vec::new(),
            labels: 0,
            energies: Vec::new(),
            rows: 0.0,
            combinations: Vec::new(),
            label_length: 1.0,
            source,
            run,
            _memory: memory,
        }
    }

    /// The columns of a wider unit are orthonormal by construction; rounding must not say otherwise.
    fn settle_units(&mut self) {
        let columns = self.columns();
        if let Source::Matrix(matrix) = &mut self.source {
            for unit in self.units.iter().filter(|unit| unit.len() > 1) {
                for i in unit.clone() {
                    matrix[i * columns + unit.start..i * columns + unit.end].fill(0.0);
                    matrix[i * columns + i] = 1.0;
                }
            }
        }
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_cancelled(&self) -> bool {
        self.run.check().is_err()
    }

    pub fn columns(&self) -> usize {
        self.combinations.len()
    }

    /// Xᵀ xⱼ. Of a run that was cancelled nothing is multiplied any more, and whoever asked learns that at the next step.
    pub fn cross(&self, j: usize) -> Vec<f64> {
        let columns = self.columns();
        match &self.source {
            Source::Matrix(matrix) => matrix[j * columns..(j + 1) * columns].to_vec(),
            Source::Columns(x) => {
                let of = |column: &Vec<f64>| if self.run.check().is_ok() { dot(column, &x[j]) } else { 0.0 };
                x.par_iter().with_min_len(64).map(of).collect()
            }
        }
    }

    pub fn inner(&self, i: usize, j: usize) -> f64 {
        match &self.source {
            Source::Matrix(matrix) => matrix[i * self.columns() + j],
            Source::Columns(x) => dot(&x[i], &x[j]),
        }
    }

    /// Coefficients of columns for the unit-length label, as coefficients of the design's columns for the label as it is.
    pub(crate) fn in_design(&self, columns: &[usize], coefficients: &[f64]) -> Vec<(usize, f64)> {
        let of = |(column, coefficient): (&usize, &f64)| {
            let factor = coefficient * self.label_length;
            self.combinations[*column].iter().map(move |(design, part)| (*design, part * factor)).collect::<Vec<_>>()
        };
        columns.iter().zip(coefficients).flat_map(of).collect()
    }

    /// A coefficient of column `j` for the unit-length label, as a coefficient of the input's column, for a unit
    /// that has only one.
    pub fn in_input_units(&self, j: usize, coefficient: f64) -> f64 {
        coefficient * self.combinations[j][0].1 * self.label_length
    }
}

/// XᵀX. Sums are taken in an order that does not depend on threads.
fn matrix_of(columns: &[Vec<f64>], run: &Run) -> Result<Vec<f64>> {
    let (d, rows) = (columns.len(), columns.first().map_or(0, Vec::len));
    let part = |part: usize| {
        let mut sums = vec![0.0; d * d];
        let end = rows.min((part + 1) * PART);
        for start in (part * PART..end).step_by(BAND) {
            let band = start..end.min(start + BAND);
            for i in 0..d {
                for j in 0..=i {
                    sums[i * d + j] += dot(&columns[i][band.clone()], &columns[j][band.clone()]);
                }
            }
        }
        sums
    };
    let mut matrix = vec![0.0; d * d];
    // A few parts at a time, so that long tables do not take more space.
    let parts: Vec<usize> = (0..rows.div_ceil(PART)).collect();
    for parts in parts.chunks(AT_ONCE) {
        run.check()?;
        for sums in parts.par_iter().map(|at| part(*at)).collect::<Vec<_>>() {
            matrix.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }
    for i in 0..d {
        for j in 0..i {
            matrix[j * d + i] = matrix[i * d + j];
        }
    }
    Ok(matrix)
}

fn matrix_bytes(columns: usize) -> usize {
    columns * columns * size_of::<f64>()
}

fn weighted_dot(a: &[f64], b: &[f64], weights: &[f64]) -> f64 {
    if weights.is_empty() { dot(a, b) } else { a.iter().zip(b).zip(weights).map(|((x, y), w)| w * x * y).sum() }
}

/// An orthonormal basis of what the levels of a text span, if the columns are those of one: every row has exactly one of them. A
/// reflection that takes the first level to the constant takes the others to a basis of what is orthogonal to it, each of which is then a level and a multiple of the first.
fn levels(columns: &[usize], problem: &Problem, inner: &impl Fn(usize, usize) -> f64) -> Option<Vec<Vec<(usize, f64)>>> {
    let data = &problem.table.data;
    let (weight, mean): (f64, &dyn Fn(usize) -> f64) = match data {
        Data::Gram(gram) => (gram.weight, &|column| gram.means[column]),
        Data::Rows(rows) => (rows.weight(), &|column| rows.origins[column].mean),
    };
    if columns.iter().any(|column| data.design()[*column].is_number) {
        return None;
    }
    let varying: Vec<(usize, f64)> =
        columns.iter().filter(|column| inner(**column, **column) > 0.0).map(|column| (*column, mean(*column))).collect();
    let is_whole = (varying.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9;
    let (first, others) = varying.split_first().filter(|_| is_whole && varying.iter().all(|(_, share)| *share > 0.0))?;
    let scale = |(_, share): &(usize, f64)| 1.0 / (weight * share).sqrt();
    let of_first = |share: f64| -share.sqrt() / (1.0 + first.1.sqrt()) * scale(first);
    Some(others.iter().map(|level| vec![(level.0, scale(level)), (first.0, of_first(level.1))]).collect())
}

/// Gram and Schmidt with nothing but inner products: an orthonormal basis of what the columns span, the earlier
/// columns first, dependent ones left out.
fn orthonormal(columns: &[usize], inner: &impl Fn(usize, usize) -> f64, run: &Run) -> Result<Vec<Vec<(usize, f64)>>> {
    let lengths: Vec<f64> = columns.iter().map(|i| inner(*i, *i).sqrt()).collect();
    let m = columns.len();
    let mut block = vec![0.0; m * m];
    for i in 0..m {
        run.check()?;
        for j in 0..=i {
            let value =
                if lengths[i] > 0.0 && lengths[j] > 0.0 { inner(columns[i], columns[j]) / lengths[i] / lengths[j] } else { 0.0 };
            block[i * m + j] = value;
            block[j * m + i] = value;
        }
    }
    let times = |v: &[f64]| -> Vec<f64> { (0..m).map(|i| dot(&block[i * m..(i + 1) * m], v)).collect() };
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for i in (0..m).filter(|i| lengths[*i] > 0.0) {
        run.check()?;
        let mut vector = vec![0.0; m];
        vector[i] = 1.0;
        // Twice is enough, and once is not.
        for _ in 0..2 {
            let image = times(&vector);
            for earlier in &basis {
                let overlap = dot(earlier, &image);
                vector.iter_mut().zip(earlier).for_each(|(v, e)| *v -= overlap * e);
            }
        }
        let energy = dot(&vector, &times(&vector));
        if energy > INDEPENDENT {
            vector.iter_mut().for_each(|v| *v /= energy.sqrt());
            basis.push(vector);
        }
    }
    let combination = |vector: Vec<f64>| {
        vector.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(i, v)| (columns[i], v / lengths[i])).collect()
    };
    Ok(basis.into_iter().map(combination).collect())
}

/// TᵀGT for a T that is sparse by columns.
fn combine_matrix(matrix: &[f64], d: usize, combinations: &[Vec<(usize, f64)>], run: &Run) -> Result<Vec<f64>> {
    let mut combined = vec![0.0; combinations.len() * combinations.len()];
    combined.par_chunks_mut(combinations.len().max(1)).zip(combinations).try_for_each(|(out, left)| {
        run.check()?;
        let mut row = vec![0.0; d];
        for (i, c) in left {
            row.iter_mut().zip(&matrix[i * d..(i + 1) * d]).for_each(|(sum, x)| *sum += c * x);
        }
        for (out, right) in out.iter_mut().zip(combinations) {
            *out = right.iter().map(|(j, c)| c * row[*j]).sum::<f64>();
        }
        Ok(())
    })?;
    Ok(combined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// One-hot levels sum to one, so that one of them is no column of its own.
    #[test]
    fn dependent_levels_are_left_out() {
        let colours = ["red", "blue", "red", "green", "blue", "green", "red"];
        let table = Table::new().text("colour", &colours).numbers("x", &[1.0, 2.0, 0.5, 4.0, 1.0, 3.0, 2.0]);
        let products = Products::new(&table.problem(&[1.0, 0.0, 2.0, 1.0, 5.0, 2.0, 1.0]), &Run::default()).unwrap();
        assert_eq!(products.units, [0..2, 2..3]);
        for i in 0..2 {
            for j in 0..2 {
                assert!((products.inner(i, j) - f64::from(i == j)).abs() < 1e-12);
            }
        }
    }

    /// Levels of texts with and without NULLs, weights and values that are not told apart: their basis is orthonormal, and spans what theirs does.
    #[test]
    fn levels_have_an_orthonormal_basis() {
        let mut random = Run::new(8).random("levels", 0);
        let texts = |holes: usize, random: &mut crate::Random| -> Vec<Option<String>> {
            (0..300).map(|_| (random.below(10) >= holes).then(|| format!("{}", random.below(8) * random.below(9)))).collect()
        };
        for (holes, max_levels) in [(0, 50), (2, 50), (2, 5)] {
            let mut table = Table::random(300, 1, 1);
            table.columns.push(("t".into(), crate::testing::Column::Text(texts(holes, &mut random))));
            table.weights = Some((0..300).map(|_| random.below(4) as f64).collect());
            table.common.max_levels = max_levels;
            let label: Vec<f64> = (0..300).map(|_| random.normal()).collect();
            for problem in [table.problem(&label), table.problem_of_rows(&label)] {
                let products = Products::new(&problem, &Run::default()).unwrap();
                let columns = &problem.units[1].columns;
                let inner = |i: usize, j: usize| match &problem.table.data {
                    Data::Gram(gram) => gram.matrix[i * gram.design.len() + j],
                    Data::Rows(rows) => weighted_dot(&rows.columns[i], &rows.columns[j], &rows.weights),
                };
                let basis = levels(columns, &problem, &inner).unwrap();
                assert_eq!(basis.len(), columns.len() - 1);
                let between = |a: &[(usize, f64)], b: &[(usize, f64)]| -> f64 {
                    a.iter().flat_map(|(i, c)| b.iter().map(move |(j, e)| (i, c * e, j))).map(|(i, c, j)| c * inner(*i, *j)).sum()
                };
                for (i, a) in basis.iter().enumerate() {
                    assert!(basis.iter().enumerate().all(|(j, b)| (between(a, b) - f64::from(i == j)).abs() < 1e-9));
                }
                let plain = orthonormal(columns, &inner, &Run::default()).unwrap();
                assert_eq!(plain.len(), basis.len());
                // The label has the same length in both.
                let length: f64 = products.units[1].clone().map(|j| products.correlations[j].powi(2)).sum();
                let correlation = |vector: &[(usize, f64)]| -> f64 {
                    let of = |column: usize| match &problem.table.data {
                        Data::Gram(gram) => gram.products[column] / gram.label_energy.sqrt(),
                        Data::Rows(rows) => {
                            weighted_dot(&rows.columns[column], &rows.labels[0], &rows.weights)
                                / weighted_dot(&rows.labels[0], &rows.labels[0], &rows.weights).sqrt()
                        }
                    };
                    vector.iter().map(|(column, c)| c * of(*column)).sum()
                };
                assert!((plain.iter().map(|vector| correlation(vector).powi(2)).sum::<f64>() - length).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn moments_and_rows_give_the_same_products() {
        let table = Table::random(40, 5, 3);
        let label: Vec<f64> = table.column(0).iter().zip(table.column(2)).map(|(a, b)| a - 2.0 * b).collect();
        let products = |problem: &Problem| Products::new(problem, &Run::default()).unwrap();
        let (a, b) = (products(&table.problem(&label)), products(&table.problem_of_rows(&label)));
        assert_eq!(a.units, b.units);
        for j in 0..a.columns() {
            assert!((a.correlations[j] - b.correlations[j]).abs() < 1e-12);
            assert!(a.cross(j).iter().zip(b.cross(j)).all(|(x, y)| (x - y).abs() < 1e-12));
        }
    }

    #[test]
    fn all_products_at_once_are_those_of_two_columns() {
        let mut random = Run::new(3).random("columns", 0);
        for rows in [1, BAND - 1, BAND, 3 * PART + 700] {
            let columns: Vec<Vec<f64>> = (0..5).map(|_| (0..rows).map(|_| random.normal()).collect()).collect();
            let matrix = matrix_of(&columns, &Run::default()).unwrap();
            for (i, j) in (0..5).flat_map(|i| (0..5).map(move |j| (i, j))) {
                assert!((matrix[i * 5 + j] - dot(&columns[i], &columns[j])).abs() < 1e-9 * rows as f64);
            }
        }
    }
}
