//! Linear models of classes under a penalty on the length of coefficients: logistic regression, and support vector machines with the squared hinge.
//!
//! Both losses bend no more than a multiple of squares does, whatever the coefficients are, so that one matrix of products bounds the curvature throughout (Böhning, 1992). A step minimises that bound
//! under the penalty, by coordinate descent on the products of the columns in use, and Nesterov's momentum makes steps few.

use rayon::prelude::*;

use crate::kernels::dot;
use crate::linear::path::Penalized;
use crate::{Lease, Result, Run};

/// What the outputs are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Log loss of one output for two classes, of the shares of all classes for more. A unit is in for all of them at once. The intercept is free.
    Logistic,
    /// `max(0, 1 − y f)²`, each class against all others and with a penalty of its own; the bias is penalised as a feature is, as LIBLINEAR has it.
    SquaredHinge,
}

/// Rows with the class of each, and the columns of each unit.
pub(crate) struct Design<'a> {
    /// Centred columns, each with the factor that makes it comparable.
    pub columns: Vec<(&'a [f64], f64)>,
    /// The columns of each unit. Empty: it can never be in.
    pub units: Vec<std::ops::Range<usize>>,
    pub classes: usize,
    pub targets: &'a [f64],
    /// One for each row; empty when all are 1.
    pub weights: &'a [f64],
}

/// `Σ w ℓ(y, f) / Σ w + penalty · Σ_u weight_u ‖B_u‖`
pub(crate) struct Classifier<'a> {
    design: &'a Design<'a>,
    loss: Loss,
    outputs: usize,
    /// How heavily each unit is penalised; 0: not at all.
    weights: Vec<f64>,
    total: f64,
    /// `[column * outputs + output]`; the last column is the intercept.
    coefficients: Vec<f64>,
    products: Products,
    memory: Lease,
}

/// Inner products of the columns that have ever been in use, and no others.
#[derive(Default)]
struct Products {
    /// The place of each column.
    place: Vec<Option<usize>>,
    columns: Vec<usize>,
    /// Row i has i + 1 elements.
    rows: Vec<Vec<f64>>,
}

impl Products {
    fn get(&self, a: usize, b: usize) -> f64 {
        match (self.place[a], self.place[b]) {
            (Some(a), Some(b)) => self.rows[a.max(b)][a.min(b)],
            _ => 0.0,
        }
    }
}

/// How far coefficients may be from their best places, by their size.
const ACCURACY: f64 = 1e-9;
const STEPS_MAX: usize = 1000;
const SWEEPS_MAX: usize = 200;
/// Rows that are taken together, and values of columns that are worth a thread.
const CHUNK: usize = 4096;
const WORTH: usize = 1 << 16;

impl<'a> Classifier<'a> {
    pub fn new(design: &'a Design<'a>, loss: Loss, weights: Vec<f64>, run: &Run) -> Result<Self> {
        let outputs = if design.classes == 2 { 1 } else { design.classes };
        let (rows, size) = (design.targets.len(), (design.columns.len() + 1) * outputs);
        let memory = run.reserve((rows * (outputs + 1) + 8 * size) * size_of::<f64>())?;
        let total = if design.weights.is_empty() { rows as f64 } else { design.weights.iter().sum() };
        let products = Products { place: vec![None; design.columns.len()], ..Products::default() };
        Ok(Self { design, loss, outputs, weights, total, coefficients: vec![0.0; size], products, memory })
    }

    /// The bound on the curvature, in units of the products.
    fn bend(&self) -> f64 {
        match self.loss {
            Loss::Logistic if self.outputs == 1 => 0.25,
            Loss::Logistic => 0.5,
            Loss::SquaredHinge => 2.0,
        }
    }

    fn intercept(&self) -> usize {
        self.design.columns.len()
    }

    /// The derivative of each row's loss by its outputs, by its share of the weight: chunk after chunk, in each output after output.
    fn errors(&self, coefficients: &[f64], columns: &[usize], run: &Run) -> Result<Vec<f64>> {
        let (design, q) = (self.design, self.outputs);
        let mut errors = vec![0.0; design.targets.len() * q];
        errors.par_chunks_mut(CHUNK * q).enumerate().try_for_each(|(chunk, errors)| {
            run.check()?;
            let (start, count) = (chunk * CHUNK, errors.len() / q);
            for (output, errors) in errors.chunks_mut(count).enumerate() {
                errors.fill(coefficients[self.intercept() * q + output]);
                for column in columns {
                    let (values, factor) = design.columns[*column];
                    let slope = factor * coefficients[column * q + output];
                    if slope != 0.0 {
                        errors.iter_mut().zip(&values[start..]).for_each(|(sum, x)| *sum += slope * x);
                    }
                }
            }
            self.compare(start, count, errors);
            Ok(())
        })?;
        Ok(errors)
    }

    /// From the outputs of a chunk to their errors.
    fn compare(&self, start: usize, count: usize, values: &mut [f64]) {
        let share = |row: usize| self.design.weights.get(row).copied().unwrap_or(1.0) / self.total;
        let class = |row: usize| self.design.targets[row] as usize;
        match self.loss {
            Loss::SquaredHinge => {
                for (output, values) in values.chunks_mut(count).enumerate() {
                    let of = if self.outputs == 1 { 1 } else { output };
                    for (at, value) in values.iter_mut().enumerate() {
                        let sign = if class(start + at) == of { 1.0 } else { -1.0 };
                        *value = -2.0 * sign * (1.0 - sign * *value).max(0.0) * share(start + at);
                    }
                }
            }
            Loss::Logistic if self.outputs == 1 => {
                for (at, value) in values.iter_mut().enumerate() {
                    *value = (1.0 / (1.0 + (-*value).exp()) - self.design.targets[start + at]) * share(start + at);
                }
            }
            Loss::Logistic => {
                for at in 0..count {
                    let largest = (0..self.outputs).map(|output| values[output * count + at]).fold(f64::NEG_INFINITY, f64::max);
                    let mut sum = 0.0;
                    for output in 0..self.outputs {
                        let power = (values[output * count + at] - largest).exp();
                        values[output * count + at] = power;
                        sum += power;
                    }
                    let own = class(start + at);
                    for output in 0..self.outputs {
                        let place = output * count + at;
                        values[place] = (values[place] / sum - f64::from(output == own)) * share(start + at);
                    }
                }
            }
        }
    }

    /// Columns that are worth a thread: of a few rows waking one takes longer than the sums.
    fn at_once(&self) -> usize {
        WORTH / self.design.targets.len().max(1) + 1
    }

    /// The derivative of the mean loss by the coefficients of some columns.
    fn slopes(&self, errors: &[f64], columns: &[usize], run: &Run) -> Result<Vec<f64>> {
        let q = self.outputs;
        let of = |column: &usize| {
            run.check()?;
            let mut sums = vec![0.0; q];
            for (chunk, errors) in errors.chunks(CHUNK * q).enumerate() {
                let count = errors.len() / q;
                for (sum, errors) in sums.iter_mut().zip(errors.chunks(count)) {
                    *sum += match self.design.columns.get(*column) {
                        Some((values, factor)) => factor * dot(&values[chunk * CHUNK..][..count], errors),
                        None => errors.iter().sum(),
                    };
                }
            }
            Ok(sums)
        };
        let sums: Vec<Vec<f64>> = columns.par_iter().with_min_len(self.at_once()).map(of).collect::<Result<_>>()?;
        Ok(sums.concat())
    }

    /// The columns of some units, and the intercept.
    fn columns_of(&self, units: &[usize]) -> Vec<usize> {
        units.iter().flat_map(|unit| self.design.units[*unit].clone()).chain([self.intercept()]).collect()
    }

    /// Multiplies columns that come into use for the first time with those that have been.
    fn learn_products(&mut self, columns: &[usize], run: &Run) -> Result<()> {
        let (design, total) = (self.design, self.total);
        for column in columns.iter().filter(|column| **column < design.columns.len()) {
            if self.products.place[*column].is_some() {
                continue;
            }
            run.check()?;
            self.memory.grow((self.products.columns.len() + 1) * size_of::<f64>())?;
            self.products.place[*column] = Some(self.products.columns.len());
            self.products.columns.push(*column);
            let (values, factor) = design.columns[*column];
            let scaled: Vec<f64> = match design.weights.is_empty() {
                true => values.iter().map(|x| factor / total * x).collect(),
                false => values.iter().zip(design.weights).map(|(x, weight)| factor / total * weight * x).collect(),
            };
            let product = |other: &usize| design.columns[*other].1 * dot(design.columns[*other].0, &scaled);
            self.products.rows.push(self.products.columns.par_iter().map(product).collect());
        }
        Ok(())
    }

    /// Coefficients that are penalised together: as positions among those of some columns.
    fn blocks(&self, units: &[usize]) -> Vec<Block> {
        let q = self.outputs;
        let mut blocks = Vec::new();
        let mut start = 0;
        let apart = |columns: std::ops::Range<usize>, output: usize| columns.map(|at| at * q + output).collect::<Vec<_>>();
        for unit in units {
            let own = self.design.units[*unit].clone();
            let columns = start..start + own.len();
            start = columns.end;
            let energy: f64 = own.map(|column| self.products.get(column, column)).sum();
            let curve = (self.bend() * energy).max(f64::MIN_POSITIVE);
            let block = |places: Vec<usize>| Block { places, weight: self.weights[*unit], curve };
            match self.loss {
                Loss::Logistic => blocks.push(block(columns.flat_map(|at| at * q..(at + 1) * q).collect())),
                Loss::SquaredHinge => blocks.extend((0..q).map(|output| block(apart(columns.clone(), output)))),
            }
        }
        let weight = if self.loss == Loss::SquaredHinge { 1.0 } else { 0.0 };
        blocks.extend((0..q).map(|output| Block { places: vec![start * q + output], weight, curve: self.bend() }));
        blocks
    }

    /// The optimum of these units alone, from wherever they are.
    fn solve(&mut self, units: &[usize], penalty: f64, run: &Run) -> Result<()> {
        let (q, columns) = (self.outputs, self.columns_of(units));
        self.learn_products(&columns, run)?;
        let blocks = self.blocks(units);
        let bend = self.bend();
        let inner = |a: usize, b: usize| match (columns[a] == self.intercept(), columns[b] == self.intercept()) {
            (true, true) => bend,
            (false, false) => bend * self.products.get(columns[a], columns[b]),
            // Columns are centred.
            _ => 0.0,
        };
        let mut products = vec![0.0; columns.len() * columns.len()];
        for a in 0..columns.len() {
            (0..columns.len()).for_each(|b| products[a * columns.len() + b] = inner(a, b));
        }
        let bound = Bound { products, columns: columns.len(), outputs: q, blocks };
        let in_use: Vec<usize> = columns[..columns.len() - 1].to_vec();
        let gather =
            |all: &[f64]| -> Vec<f64> { columns.iter().flat_map(|column| &all[column * q..(column + 1) * q]).copied().collect() };
        let mut all = self.coefficients.clone();
        let mut scatter = |some: &[f64]| -> Vec<f64> {
            columns.iter().zip(some.chunks(q)).for_each(|(column, some)| all[column * q..(column + 1) * q].copy_from_slice(some));
            all.clone()
        };
        let mut here = gather(&self.coefficients);
        let (mut ahead, mut momentum) = (here.clone(), 1.0f64);
        for _ in 0..STEPS_MAX {
            run.check()?;
            let errors = self.errors(&scatter(&ahead), &in_use, run)?;
            let slopes = self.slopes(&errors, &columns, run)?;
            let next = bound.minimum(&ahead, &slopes, penalty);
            let uphill: f64 = (0..next.len()).map(|at| (ahead[at] - next[at]) * (next[at] - here[at])).sum();
            let moved = next.iter().zip(&here).chain(next.iter().zip(&ahead)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let size = next.iter().fold(1.0f64, |size, value| size.max(value.abs()));
            if uphill > 0.0 {
                momentum = 1.0;
            }
            let following = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            let share = (momentum - 1.0) / following;
            ahead = next.iter().zip(&here).map(|(n, h)| n + share * (n - h)).collect();
            (here, momentum) = (next, following);
            if moved <= ACCURACY * size {
                break;
            }
        }
        self.coefficients = scatter(&here);
        Ok(())
    }

    fn length(&self, values: &[f64], unit: usize) -> f64 {
        let (columns, q) = (&self.design.units[unit], self.outputs);
        values[columns.start * q..columns.end * q].iter().map(|value| value * value).sum::<f64>().sqrt()
    }

    /// The largest penalty that the slopes of a unit's coefficients can overcome.
    fn pull(&self, slopes: &[f64]) -> f64 {
        let q = self.outputs;
        let length = |output: Option<usize>| {
            let own = slopes.iter().enumerate().filter(|(at, _)| output.is_none_or(|output| at % q == output));
            own.map(|(_, slope)| slope * slope).sum::<f64>().sqrt()
        };
        match self.loss {
            Loss::Logistic => length(None),
            Loss::SquaredHinge => (0..q).map(|output| length(Some(output))).fold(0.0, f64::max),
        }
    }

    /// For each unit that is out of the model how strongly it wants in, at the coefficients as they are.
    fn pulls(&self, run: &Run) -> Result<Vec<f64>> {
        let in_use: Vec<usize> = (0..self.design.units.len()).filter(|unit| self.is_in(*unit)).collect();
        let columns = self.columns_of(&in_use);
        let errors = self.errors(&self.coefficients, &columns[..columns.len() - 1], run)?;
        let pull = |unit: usize| match self.design.units[unit].is_empty() || self.is_in(unit) {
            true => Ok(0.0),
            false => Ok(self.pull(&self.slopes(&errors, &self.design.units[unit].clone().collect::<Vec<_>>(), run)?)),
        };
        (0..self.design.units.len()).into_par_iter().with_min_len(self.at_once()).map(pull).collect()
    }

    fn is_in(&self, unit: usize) -> bool {
        self.length(&self.coefficients, unit) > 0.0
    }
}

/// Coefficients that are penalised together.
struct Block {
    places: Vec<usize>,
    weight: f64,
    /// No direction in the block bends more than this.
    curve: f64,
}

/// Squares that bound the loss from above.
struct Bound {
    products: Vec<f64>,
    columns: usize,
    outputs: usize,
    blocks: Vec<Block>,
}

impl Bound {
    /// Where the bound that touches the loss at `at` and has these slopes there is smallest under the penalty.
    fn minimum(&self, at: &[f64], slopes: &[f64], penalty: f64) -> Vec<f64> {
        let (d, q) = (self.columns, self.outputs);
        let mut here = at.to_vec();
        let mut left: Vec<f64> = slopes.iter().map(|slope| -slope).collect();
        for _ in 0..SWEEPS_MAX {
            let mut moved: f64 = 0.0;
            for block in &self.blocks {
                let wanted: Vec<f64> = block.places.iter().map(|place| here[*place] + left[*place] / block.curve).collect();
                let length = wanted.iter().map(|value| value * value).sum::<f64>().sqrt();
                let limit = penalty * block.weight / block.curve;
                let factor = if length > limit { 1.0 - limit / length } else { 0.0 };
                for (place, wanted) in block.places.iter().zip(&wanted) {
                    let change = factor * wanted - here[*place];
                    if change != 0.0 {
                        here[*place] = factor * wanted;
                        moved = moved.max(change.abs());
                        let (column, output) = (place / q, place % q);
                        let products = &self.products[column * d..(column + 1) * d];
                        products.iter().enumerate().for_each(|(other, product)| left[other * q + output] -= product * change);
                    }
                }
            }
            if moved <= 0.1 * ACCURACY {
                break;
            }
        }
        here
    }
}

impl Penalized for Classifier<'_> {
    fn first(&mut self, run: &Run) -> Result<f64> {
        let free: Vec<usize> = (0..self.weights.len()).filter(|unit| self.weights[*unit] == 0.0).collect();
        if self.loss == Loss::Logistic || !free.is_empty() {
            self.solve(&free, f64::MAX / 1e10, run)?;
        }
        let bias = match self.loss {
            Loss::Logistic => 0.0,
            Loss::SquaredHinge => {
                let columns: Vec<usize> = free.iter().flat_map(|unit| self.design.units[*unit].clone()).collect();
                let errors = self.errors(&self.coefficients, &columns, run)?;
                self.pull(&self.slopes(&errors, &[self.intercept()], run)?)
            }
        };
        let pulls = self.pulls(run)?.into_iter().zip(&self.weights).filter(|(_, weight)| **weight > 0.0);
        Ok(pulls.map(|(pull, weight)| pull / weight).fold(bias, f64::max))
    }

    fn descend(&mut self, penalty: f64, run: &Run) -> Result<()> {
        let mut units: Vec<usize> = (0..self.weights.len())
            .filter(|unit| !self.design.units[*unit].is_empty() && (self.weights[*unit] == 0.0 || self.is_in(*unit)))
            .collect();
        loop {
            self.solve(&units, penalty, run)?;
            let pulls = self.pulls(run)?;
            let wants_in = |unit: &usize| pulls[*unit] > penalty * self.weights[*unit] * (1.0 + 1e-9) && !units.contains(unit);
            let more: Vec<usize> = (0..self.weights.len()).filter(wants_in).collect();
            if more.is_empty() {
                return Ok(());
            }
            units.extend(more);
            units.sort_unstable();
        }
    }

    fn lengths(&self) -> Vec<f64> {
        (0..self.design.units.len()).map(|unit| self.length(&self.coefficients, unit)).collect()
    }

    fn coefficients(&self) -> Vec<f64> {
        self.coefficients.clone()
    }

    fn go_to(&mut self, coefficients: &[f64], _: &Run) -> Result<()> {
        self.coefficients.copy_from_slice(coefficients);
        Ok(())
    }
}
