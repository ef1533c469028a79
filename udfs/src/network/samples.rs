use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use crate::kernels::aligned::{Aligned, LINE};
use crate::kernels::dot;
use crate::kernels::gemm::padded;
use crate::network::sparse::Sparse;
use crate::{Label, Lease, Problem, Random, Result, Rows, Run};

/// What a network's outputs are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// One output, a standardised number.
    Squared,
    /// One output, the log odds of the second of two classes.
    Logistic,
    /// One output for each class.
    Softmax(usize),
}

impl Loss {
    pub(crate) fn of(label: &Label) -> Self {
        match label {
            Label::Numbers => Loss::Squared,
            Label::Classes(classes) if classes.len() == 2 => Loss::Logistic,
            Label::Classes(classes) => Loss::Softmax(classes.len()),
        }
    }

    pub(crate) fn outputs(self) -> usize {
        match self {
            Loss::Squared | Loss::Logistic => 1,
            Loss::Softmax(classes) => classes,
        }
    }
}

/// How columns of a table become inputs of a network: which ones, and on what scale.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    /// Columns of the design.
    pub columns: Vec<usize>,
    /// One for each of these columns: a number that its random start is drawn with, from the column's name and not from its place.
    pub keys: Vec<u64>,
    pub factors: Vec<f64>,
    pub loss: Loss,
    /// Mean and spread of a label of numbers.
    pub target: (f64, f64),
}

impl Inputs {
    /// The given columns at variance 1 (unless the caller of SQL wants them as they are), measured on `rows`.
    pub(crate) fn new(problem: &Problem, rows: &Rows, columns: Vec<usize>) -> Self {
        let total = rows.weight();
        let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
        let spread = |column: &[f64]| -> f64 {
            let energy: f64 = match rows.weights.is_empty() {
                true => dot(column, column),
                false => column.iter().enumerate().map(|(row, x)| weight(row) * x * x).sum(),
            };
            (energy / total).sqrt()
        };
        let spreads: Vec<f64> = columns.par_iter().map(|column| spread(&rows.columns[*column])).collect();
        let factors = if problem.standardize { factors(rows, &columns, &spreads) } else { vec![1.0; columns.len()] };
        let loss = Loss::of(&rows.label);
        let target = match loss {
            Loss::Squared => {
                let mean = (0..rows.rows()).map(|row| weight(row) * rows.targets[row]).sum::<f64>() / total;
                (mean, spread(&rows.labels[0]).max(f64::MIN_POSITIVE))
            }
            _ => (0.0, 1.0),
        };
        let keys = columns.iter().map(|column| problem.column_key(*column)).collect();
        Self { columns, keys, factors, loss, target }
    }

    /// Columns as they are.
    #[cfg(test)]
    pub(crate) fn plain(columns: Vec<usize>, loss: Loss) -> Self {
        let keys = columns.iter().map(|column| *column as u64).collect();
        Self { factors: vec![1.0; columns.len()], keys, columns, loss, target: (0.0, 1.0) }
    }

    /// Some rows of a table, which may be another than the one measured.
    pub(crate) fn samples(&self, rows: &Rows, chosen: &[usize], run: &Run) -> Result<Samples> {
        run.check()?;
        let mut memory = run.reserve(Samples::bytes_for(self.columns.len(), chosen.len()))?;
        let columns: Vec<&[f64]> = self.columns.iter().map(|column| &rows.columns[*column][..]).collect();
        let sparse = Sparse::of(&columns, &self.factors, chosen);
        let target = |row: &usize| match self.loss {
            Loss::Squared => ((rows.targets[*row] - self.target.0) / self.target.1) as f32,
            _ => rows.targets[*row] as f32,
        };
        let stride = stride_for(columns.len());
        if let Some(sparse) = &sparse {
            memory.shrink_to(sparse.bytes() + 12 * chosen.len());
        }
        Ok(Samples {
            columns: columns.len(),
            stride,
            values: if sparse.is_some() { Aligned::default() } else { turned(&columns, &self.factors, chosen, stride) },
            sparse,
            targets: chosen.iter().map(target).collect(),
            weights: if rows.weights.is_empty() { Vec::new() } else { chosen.iter().map(|row| rows.weights[*row]).collect() },
            memory: Some(memory),
        })
    }
}

/// What brings numbers to variance 1. The levels of a text share one factor, with which they have that variance together: each on its own, a text of forty
/// levels would weigh as much as forty numbers, and its rarest level most of all.
fn factors(rows: &Rows, columns: &[usize], spreads: &[f64]) -> Vec<f64> {
    let text_of = |column: usize| (!rows.design[column].is_number).then_some(rows.design[column].feature);
    let mut factors = Vec::with_capacity(columns.len());
    for together in columns.chunk_by(|a, b| text_of(*a).is_some() && text_of(*a) == text_of(*b)) {
        let own = &spreads[factors.len()..][..together.len()];
        let total = own.iter().map(|spread| spread * spread).sum::<f64>().sqrt();
        factors.resize(factors.len() + together.len(), if total > 0.0 { 1.0 / total } else { 1.0 });
    }
    factors
}

/// Columns, each times a factor, as rows.
fn turned(columns: &[&[f64]], factors: &[f64], rows: &[usize], stride: usize) -> Aligned {
    const BAND: usize = 64;
    let mut values = Aligned::zeros(rows.len() * stride);
    // Band by band, so that both sides of a band stay in cache; and some columns at a time, which fill a line of it.
    values.par_chunks_mut(BAND * stride).zip(rows.par_chunks(BAND)).for_each(|(band, rows)| {
        for (at, (columns, factors)) in columns.chunks(LINE).zip(factors.chunks(LINE)).enumerate() {
            for (values, row) in band.chunks_mut(stride).zip(rows) {
                for ((value, column), factor) in values[at * LINE..].iter_mut().zip(columns).zip(factors) {
                    *value = (column[*row] * factor) as f32;
                }
            }
        }
    });
    values
}

/// Values from one row to the next: whole lines of the cache, where that costs little. Not a multiple of a page, where walking down a column
/// would hit a single line.
pub(crate) fn stride_for(columns: usize) -> usize {
    let stride = if columns < 128 { padded(columns.max(1)) } else { columns.next_multiple_of(LINE) };
    if stride.is_multiple_of(256) { stride + LINE } else { stride }
}

/// Rows as a network reads them: one after the other.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub columns: usize,
    /// All values, `stride` from one row to the next; none if the rows are sparse.
    pub stride: usize,
    pub values: Aligned,
    pub sparse: Option<Sparse>,
    /// The standardised number, or the position of the class.
    pub targets: Vec<f32>,
    /// One for each row; empty when all are 1.
    pub weights: Vec<f64>,
    /// What was asked for to keep them.
    pub memory: Option<Lease>,
}

impl Samples {
    /// Bytes that so many rows take, unless most of their values are the same.
    pub(crate) fn bytes_for(columns: usize, rows: usize) -> usize {
        rows * (stride_for(columns) * size_of::<f32>() + size_of::<f32>() + size_of::<f64>())
    }

    pub(crate) fn rows(&self) -> usize {
        self.targets.len()
    }

    /// Rows that a pass over some of the rows has.
    pub(crate) fn pass_rows(&self, part: &[u32]) -> usize {
        if self.weights.is_empty() {
            return part.len();
        }
        rows_in_pass(&part.iter().map(|row| self.weights[*row as usize]).collect::<Vec<f64>>())
    }

    /// Every row, by its position.
    pub(crate) fn all(&self) -> Arc<[u32]> {
        (0..self.rows() as u32).collect()
    }

    pub(crate) fn row(&self, row: usize) -> Cow<'_, [f32]> {
        match &self.sparse {
            Some(sparse) => Cow::Owned(sparse.row(row)),
            None => Cow::Borrowed(&self.values[row * self.stride..][..self.columns]),
        }
    }

    /// At most so many of the rows, drawn at random.
    pub(crate) fn some(&self, most: usize, random: &mut Random, run: &Run) -> Result<Samples> {
        let pass = if self.weights.is_empty() { self.rows() } else { rows_in_pass(&self.weights) };
        let memory = run.reserve(Self::bytes_for(self.columns, pass.min(most)) + pass * 2 * size_of::<usize>())?;
        // As often as their weights say, so that a row of weight 2 counts as two rows.
        let mut rows: Vec<usize> = match self.weights.is_empty() {
            true => (0..self.rows()).collect(),
            false => resample(&self.weights, rows_in_pass(&self.weights), random).into_iter().map(|row| row as usize).collect(),
        };
        if rows.len() > most {
            random.shuffle(&mut rows);
            rows.truncate(most);
        }
        Ok(Samples {
            columns: self.columns,
            stride: self.stride,
            values: match self.sparse {
                Some(_) => Aligned::default(),
                None => rows.iter().flat_map(|row| &self.values[row * self.stride..][..self.stride]).copied().collect(),
            },
            sparse: self.sparse.as_ref().map(|sparse| sparse.some_rows(&rows)),
            targets: rows.iter().map(|row| self.targets[*row]).collect(),
            weights: Vec::new(),
            memory: Some(memory),
        })
    }

    /// Drops all other columns; those that stay are in order.
    pub(crate) fn keep_columns(&mut self, columns: &[usize], run: &Run) -> Result<()> {
        let memory = run.reserve(Self::bytes_for(columns.len(), self.rows()))?;
        let stride = stride_for(columns.len());
        self.sparse = self.sparse.as_ref().map(|sparse| sparse.some_columns(columns));
        // What is left of a sparse table may be its dense part.
        let is_still_sparse = self.sparse.as_ref().is_some_and(|sparse| !sparse.is_dense());
        let mut values = Aligned::zeros(if is_still_sparse { 0 } else { self.rows() * stride });
        values.par_chunks_mut(stride).enumerate().for_each(|(row, to)| match &self.sparse {
            Some(sparse) => to[..columns.len()].copy_from_slice(&sparse.row(row)),
            None => {
                let from = &self.values[row * self.stride..];
                to.iter_mut().zip(columns).for_each(|(value, column)| *value = from[*column]);
            }
        });
        self.sparse.take_if(|_| !is_still_sparse);
        (self.columns, self.stride, self.values) = (columns.len(), stride, values);
        self.memory = Some(memory);
        Ok(())
    }

    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }
}

/// Mini-batches: all rows in a random order, then all rows in another.
///
/// A row of weight 3 comes three times in a pass. Weights that are no whole numbers are rounded up or down at random, evenly
/// along the table, so that every pass has the right total.
pub(crate) struct Batches {
    weights: Vec<f64>,
    rows: usize,
    /// The rows of the samples that take part; `None`: all.
    part: Option<Arc<[u32]>>,
    order: Vec<u32>,
    next: usize,
    pass: u64,
    run: Run,
}

impl Batches {
    pub(crate) fn new(samples: &Samples, part: Option<Arc<[u32]>>, run: &Run) -> Self {
        let rows = part.as_ref().map_or(samples.rows(), |part| part.len());
        let weights = match &part {
            Some(part) if !samples.weights.is_empty() => part.iter().map(|row| samples.weights[*row as usize]).collect(),
            _ => samples.weights.clone(),
        };
        Self { weights, rows, part, order: Vec::new(), next: 0, pass: 0, run: run.clone() }
    }

    /// Rows in a pass.
    pub(crate) fn pass_rows(&self) -> usize {
        if self.weights.is_empty() { self.rows } else { rows_in_pass(&self.weights) }
    }

    pub(crate) fn next_batch(&mut self, batch: &mut [u32]) {
        for row in batch {
            if self.next == self.order.len() {
                self.begin_pass();
            }
            let at = self.order[self.next];
            *row = self.part.as_ref().map_or(at, |part| part[at as usize]);
            self.next += 1;
        }
    }

    fn begin_pass(&mut self) {
        if self.weights.is_empty() {
            self.order = (0..self.rows as u32).collect();
        } else {
            self.order = resample(&self.weights, self.pass_rows(), &mut self.run.random("resample", self.pass));
        }
        self.run.random("batches", self.pass).shuffle(&mut self.order);
        self.pass += 1;
        self.next = 0;
    }
}

/// Rows in a pass, each as often as its weight says: as many as the weights add up to, if they are counts, and otherwise as many as there are.
fn rows_in_pass(weights: &[f64]) -> usize {
    let (total, rows) = (weights.iter().sum::<f64>(), weights.len() as f64);
    if (rows..=8.0 * rows).contains(&total) { total.round() as usize } else { weights.len() }
}

/// `count` rows in order, each as often as its share of the weight asks for, give or take one.
fn resample(weights: &[f64], count: usize, random: &mut Random) -> Vec<u32> {
    let interval = weights.iter().sum::<f64>() / count as f64;
    // Whole weights must come out exactly, so that the first mark keeps away from the borders.
    let mut mark = interval * (0.25 + 0.5 * random.uniform());
    let mut reached = 0.0;
    let mut rows = Vec::with_capacity(count);
    for (row, weight) in weights.iter().enumerate() {
        reached += weight;
        while mark < reached && rows.len() < count {
            rows.push(row as u32);
            mark += interval;
        }
    }
    let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
    rows.resize(count, last as u32);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_weights_are_repetitions_and_others_come_out_on_average() {
        let mut random = Run::new(1).random("test", 0);
        assert_eq!(resample(&[2.0, 1.0, 3.0], 6, &mut random), [0, 0, 1, 2, 2, 2]);
        let mut counts = [0usize; 3];
        for _ in 0..1000 {
            resample(&[0.5, 0.2, 0.8], 3, &mut random).iter().for_each(|row| counts[*row as usize] += 1);
        }
        for (count, expected) in counts.iter().zip([1000.0, 400.0, 1600.0]) {
            assert!((*count as f64 - expected).abs() < 120.0, "{counts:?}");
        }
    }

    /// A number has variance 1, and so have all levels of a text together.
    #[test]
    fn a_text_weighs_as_much_as_a_number() {
        let names = ["a", "b", "c", "d"];
        let texts: Vec<&str> = (0..40).map(|row| names[row % 7 % 4]).collect();
        let table = crate::testing::Table::random(40, 1, 3).text("t", &texts);
        let problem = table.problem_of_rows(&(0..40).map(f64::from).collect::<Vec<_>>());
        let rows = problem.rows();
        let inputs = Inputs::new(&problem, rows, (0..5).collect());
        let variance = |at: usize| rows.columns[at].iter().map(|x| (x * inputs.factors[at]).powi(2)).sum::<f64>() / 40.0;
        assert!((variance(0) - 1.0).abs() < 1e-12);
        assert!(((1..5).map(variance).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((1..5).all(|at| inputs.factors[at] == inputs.factors[1]));
    }

    #[test]
    fn a_pass_has_every_row_once() {
        let samples = Samples { targets: vec![0.0; 10], ..Samples::default() };
        let mut batches = Batches::new(&samples, None, &Run::new(2));
        let mut rows = [0; 20];
        batches.next_batch(&mut rows[..7]);
        batches.next_batch(&mut rows[7..]);
        for pass in rows.chunks(10) {
            let mut pass = pass.to_vec();
            pass.sort_unstable();
            assert_eq!(pass, (0..10).collect::<Vec<u32>>());
        }
        assert_ne!(rows[..10], rows[10..]);
    }
}
