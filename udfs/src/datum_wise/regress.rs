use rayon::prelude::*;

use crate::datum_wise::policy::Weights;
use crate::datum_wise::rewards::{has, words};
use crate::datum_wise::states::States;
use crate::datum_wise::train::{FOLDS, Fitted, Learner};
use crate::kernels::blocked_cholesky::BlockedCholesky;
use crate::kernels::tiles::Tiles;
use crate::{Result, Run};

/// The weights of one action.
type Solution = Vec<f64>;

impl Learner<'_> {
    /// Ridge regressions, one for each action, by normal equations: of what was earned on what was known.
    pub(super) fn fit(&self, states: &States) -> Result<Fitted> {
        let sums = self.sums_of_classes(states)?;
        let (inputs, classes) = (self.inputs(), self.rewards.classes);
        let total = Matrix::sum(sums.iter().flatten());
        let without = |fold: usize| {
            let mut rest = total.clone();
            sums[fold].iter().for_each(|part| rest.subtract(part));
            rest
        };
        let open = Matrix::sum(sums.iter().map(|[open, _]| open));
        let of_classes = |matrix: &Matrix| solve(inputs, classes, self.training.ridge, |i, j| matrix.get(i, j), self.run);
        let (whole, without) = rayon::join(
            || of_classes(&total),
            || (0..FOLDS).into_par_iter().map(|fold| of_classes(&without(fold))).collect::<Result<Vec<_>>>(),
        );
        let (whole, without) = (whole?, without?);
        let of_unit = |unit: usize| self.regress_unit(states, &open, unit);
        let units: Vec<Solution> = (0..self.rewards.units()).into_par_iter().map(of_unit).collect::<Result<_>>()?;
        let weights = |classes: &[Solution]| self.weights(classes.iter().chain(&units).collect());
        Ok(Fitted::new(self.rewards, weights(&whole), without.iter().map(|classes| weights(classes)).collect()))
    }

    /// Bytes of the sums of all folds, and of what each thread makes of them.
    pub(super) fn regression_bytes(&self) -> usize {
        let columns = self.inputs() + self.rewards.classes;
        let matrices = 2 * (FOLDS + 1) + 3 + 5 * rayon::current_num_threads();
        let weights = (FOLDS + 3) * self.inputs() * (self.rewards.units() + self.rewards.classes);
        (matrices * columns * columns + weights) * size_of::<f64>()
    }

    fn inputs(&self) -> usize {
        1 + self.rewards.units() + self.sample.columns.len()
    }

    fn weights(&self, solutions: Vec<&Solution>) -> Weights {
        let units = self.rewards.units();
        let gather = |range: std::ops::Range<usize>| -> Vec<f64> {
            range.flat_map(|at| solutions.iter().map(move |solution| solution[at])).collect()
        };
        let (known, values) = (gather(1..1 + units), gather(1 + units..self.inputs()));
        Weights { actions: solutions.len(), start: gather(0..1), known, values }
    }

    /// Sums of products of inputs and of the costs of predicting each class: for each fold of rows, and for those that belong to none, of the
    /// states in which most units can be asked for, and of the others.
    fn sums_of_classes(&self, states: &States) -> Result<Vec<[Matrix; 2]>> {
        let (inputs, classes) = (self.inputs(), self.rewards.classes);
        let sums = |fold: usize, is_open: bool| {
            let mut sums = Sums::new(inputs + classes);
            let mut phi = Vec::new();
            for (state, row) in states.rows.iter().enumerate() {
                if self.folds[*row] != fold || states.is_open(state) != is_open {
                    continue;
                }
                let weight = self.phi(states, state, &mut phi);
                let truth = self.sample.classes[*row];
                phi.extend((0..classes).map(|said| (inputs + said, -weight * self.rewards.mistake(said, truth))));
                self.add(&mut sums, &phi)?;
            }
            Ok(sums.finish())
        };
        (0..=FOLDS)
            .into_par_iter()
            .map(|fold| {
                let (open, closed) = rayon::join(|| sums(fold, true), || sums(fold, false));
                Ok([open?, closed?])
            })
            .collect()
    }

    /// The value of asking for a unit, from the states in which it can be asked for. Their sums are those of the `open` states, in which most
    /// units can be asked for, less some, and some others: a state is in the way of, or adds to, the fewer of the units.
    fn regress_unit(&self, states: &States, open: &Matrix, unit: usize) -> Result<Solution> {
        let (inputs, units) = (self.inputs(), self.rewards.units());
        let (mut less, mut more) = (Sums::new(inputs), Sums::new(inputs));
        let mut earned = vec![0.0; inputs];
        let mut phi = Vec::new();
        for state in 0..states.rows.len() {
            let value = states.returns[state * units + unit];
            let weight = if value.is_nan() && !states.is_open(state) { continue } else { self.phi(states, state, &mut phi) };
            match (value.is_nan(), states.is_open(state)) {
                (true, true) => self.add(&mut less, &phi)?,
                (false, false) => self.add(&mut more, &phi)?,
                _ => {}
            }
            if !value.is_nan() {
                phi.iter().for_each(|(at, input)| earned[*at] += weight * value * input);
            }
        }
        let (less, more) = (less.finish(), more.finish());
        let sum = |i: usize, j: usize| if j < inputs { open.get(i, j) - less.get(i, j) + more.get(i, j) } else { earned[i] };
        let mut solution = solve(inputs, 1, self.training.ridge, sum, self.run)?.swap_remove(0);
        // Where it can be asked for it is not known, so that these inputs are 0; only rounding says otherwise.
        solution[1 + unit] = 0.0;
        self.sample.units[unit].clone().for_each(|column| solution[1 + units + column] = 0.0);
        Ok(solution)
    }

    /// What is known in a state, times the root of its weight, which is returned: 1, a 1 for each unit that is known, and its values.
    fn phi(&self, states: &States, state: usize, phi: &mut Vec<(usize, f64)>) -> f64 {
        let (row, units) = (states.rows[state], self.rewards.units());
        let known = &states.known[state * words(units)..][..words(units)];
        let weight = (self.sample.weights[row] * states.weights[state]).sqrt();
        let values = self.sample.row(row);
        phi.clear();
        phi.push((0, weight));
        let is_known = (0..units).filter(|unit| has(known, *unit));
        phi.extend(is_known.clone().map(|unit| (1 + unit, weight)));
        let columns = is_known.flat_map(|unit| self.sample.units[unit].clone());
        phi.extend(columns.filter(|column| values[*column] != 0.0).map(|column| (1 + units + column, weight * values[column])));
        weight
    }

    fn add(&self, sums: &mut Sums, phi: &[(usize, f64)]) -> Result<()> {
        if sums.added.is_multiple_of(Tiles::ROWS) {
            self.run.check()?;
        }
        sums.add(phi);
        Ok(())
    }
}

/// A symmetric matrix: `values[i * columns + j]`, i ≥ j.
#[derive(Clone)]
struct Matrix {
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    fn zeros(columns: usize) -> Self {
        Self { columns, values: vec![0.0; columns * columns] }
    }

    fn sum<'a>(mut parts: impl Iterator<Item = &'a Matrix>) -> Self {
        let mut sum = parts.next().expect("there is at least one").clone();
        parts.for_each(|part| sum.values.iter_mut().zip(&part.values).for_each(|(sum, value)| *sum += value));
        sum
    }

    fn subtract(&mut self, other: &Matrix) {
        self.values.iter_mut().zip(&other.values).for_each(|(value, other)| *value -= other);
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        self.values[i.max(j) * self.columns + i.min(j)]
    }
}

/// The regression of each of the last `outputs` columns on the first `inputs`, given sums of products; the first column is the constant, which is
/// not penalised.
fn solve(inputs: usize, outputs: usize, ridge: f64, sum: impl Fn(usize, usize) -> f64, run: &Run) -> Result<Vec<Solution>> {
    let weight = sum(0, 0);
    // No state allows it: it is worth nothing.
    if weight <= 0.0 {
        return Ok(vec![vec![0.0; inputs]; outputs]);
    }
    let mut strips = BlockedCholesky::default();
    strips.clear(inputs, outputs);
    for i in 0..inputs {
        strips.set(i, i, sum(i, i) + if i > 0 { ridge * weight } else { 0.0 });
        (i + 1..inputs + outputs).for_each(|j| strips.set(i, j, sum(i, j)));
    }
    strips.factorise_unless(&vec![0.0; inputs], &|| run.check().is_err());
    run.check()?;
    let solution = |output: usize| {
        let mut solution = vec![0.0; inputs];
        strips.solution(output, &mut solution);
        solution
    };
    Ok((0..outputs).map(solution).collect())
}

/// Sums of products of inputs of which most are 0. A few are multiplied one by one; many are packed, and multiplied together by the
/// kernel that knows no zeros.
struct Sums {
    few: Matrix,
    many: Tiles,
    added: usize,
    packed: usize,
    row: Vec<f64>,
}

impl Sums {
    fn new(columns: usize) -> Self {
        Self { few: Matrix::zeros(columns), many: Tiles::default(), added: 0, packed: 0, row: vec![0.0; columns] }
    }

    /// Adds the products of the inputs of one state, which come in order.
    fn add(&mut self, inputs: &[(usize, f64)]) {
        self.added += 1;
        let columns = self.few.columns;
        // The kernel multiplies some four pairs in the time of one by itself, packing included.
        if 4 * inputs.len() * inputs.len() < columns * columns {
            for (at, (i, a)) in inputs.iter().enumerate() {
                let row = &mut self.few.values[i * columns..][..columns];
                inputs[..=at].iter().for_each(|(j, b)| row[*j] += a * b);
            }
            return;
        }
        self.many.grow(columns);
        self.row.fill(0.0);
        inputs.iter().for_each(|(at, value)| self.row[*at] = *value);
        self.many.set_row(self.packed, &self.row);
        self.packed += 1;
        if self.packed == Tiles::ROWS {
            self.many.accumulate(self.packed);
            self.packed = 0;
        }
    }

    fn finish(mut self) -> Matrix {
        self.many.grow(self.few.columns);
        self.many.accumulate(self.packed);
        let columns = self.few.columns;
        for i in 0..columns {
            (0..=i).for_each(|j| self.few.values[i * columns + j] += self.many.sum(i, j));
        }
        self.few
    }
}
