//! Parts of a table to learn from and parts to judge by, whether its rows were kept or only their moments.

use std::sync::Arc;

use crate::judging::folds::{Holding, alike, deviations, segments};
use crate::reading::moments::Gram;
use crate::reading::problem::Parts;
use crate::reading::split;
use crate::{Error, Lease, Problem, Result, Rows, Run};

/// A table in pieces: its rows, or the parts that its moments were gathered in.
pub struct Pieces<'a> {
    problem: &'a Problem,
    form: Form<'a>,
    _memory: Lease,
}

/// What a row takes that is dealt out: its number, its place in a list of its class and in one of its side, and its bundle.
const ROW_BYTES: usize = 64;

enum Form<'a> {
    /// Rows, with a number that equal rows share.
    Rows(&'a Rows, Vec<u64>),
    Parts(&'a Parts),
}

/// A question to some of the pieces, and the other rows.
pub struct Piece {
    pub problem: Problem,
    pub held_out: HeldOut,
    _memory: Lease,
}

/// Rows to judge by, filled and centred by the means of those learnt from.
pub enum HeldOut {
    /// Their second moments about these means.
    Moments(Box<Gram>),
    Rows(Arc<Rows>),
    Nothing,
}

impl<'a> Pieces<'a> {
    pub fn new(problem: &'a Problem, run: &Run) -> Result<Self> {
        let rows = if problem.gram().is_some() { 0 } else { problem.rows().rows() };
        let memory = run.reserve(rows * ROW_BYTES)?;
        let form = match (&problem.parts, problem.gram()) {
            (Some(parts), _) => Form::Parts(parts),
            (None, None) => Form::Rows(problem.rows(), alike(problem, problem.rows(), &deviations(problem.rows()), run)?),
            (None, Some(_)) => {
                return Err(Error::call("a gram has the moments of all rows and none of folds; give the table itself"));
            }
        };
        Ok(Self { problem, form, _memory: memory })
    }

    /// The pieces of each fold. Of rows every class is in every fold as far as it goes; parts were drawn without looking at the label.
    pub fn folds(&self, folds: usize) -> Result<Vec<Vec<usize>>> {
        let parts = match &self.form {
            Form::Rows(rows, keys) => return segments(rows, keys, Holding::Folds(folds), "folds"),
            Form::Parts(parts) => &parts.parts,
        };
        // The largest first, each to the fold that has least.
        let mut order: Vec<usize> = (0..parts.len()).collect();
        // A weight of 2 and a row twice may differ in the last digit, which must not decide.
        let weight = |part: usize| (parts[part].weight() * 1e6).round();
        order.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)).then(a.cmp(b)));
        let (mut members, mut weights) = (vec![Vec::new(); folds], vec![0.0; folds]);
        for part in order {
            let least = (1..folds).fold(0, |least, fold| if weights[fold] < weights[least] { fold } else { least });
            weights[least] += weight(part);
            members[least].push(part);
        }
        if weights.contains(&0.0) {
            let rows = self.problem.seen().rows;
            return Err(Error::data(format!("{folds} folds of {rows} rows leave one without rows; use fewer folds")));
        }
        Ok(members)
    }

    /// Two halves of the table, drawn at random: of rows half of every class, of parts half of the parts.
    pub fn halves(&self, pair: usize, run: &Run) -> (Vec<usize>, Vec<usize>) {
        let mut random = run.random("halves", pair as u64);
        let (rows, keys) = match &self.form {
            Form::Rows(rows, keys) => (rows, keys),
            Form::Parts(parts) => {
                let mut order: Vec<usize> = (0..parts.parts.len()).collect();
                random.shuffle(&mut order);
                let other = order.split_off(order.len() / 2);
                return (order, other);
            }
        };
        let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        // What one class has left over is made up for in the next.
        let mut lead = 0.0;
        for mut members in split::parts(rows) {
            members.sort_by_key(|row| (keys[*row], *row));
            let mut bundles: Vec<&[usize]> = members.chunk_by(|a, b| keys[*a] == keys[*b]).collect();
            random.shuffle(&mut bundles);
            for bundle in bundles {
                let size: f64 = bundle.iter().map(|row| weight(*row)).sum();
                let side = if lead <= 0.0 { &mut one } else { &mut other };
                side.extend_from_slice(bundle);
                lead += if lead <= 0.0 { size } else { -size };
            }
        }
        one.sort_unstable();
        other.sort_unstable();
        (one, other)
    }

    /// The question put to some pieces, with others held out.
    pub fn piece(&self, own: &[usize], others: &[usize], run: &Run) -> Result<Piece> {
        run.check()?;
        let (mut problem, held_out, memory) = match &self.form {
            Form::Rows(rows, _) => {
                let columns = rows.columns.len() + rows.labels.len() + 2;
                let memory = run.reserve((own.len() + 2 * others.len()) * columns * size_of::<f64>())?;
                let mut problem = self.problem.on(own, others).expect("the rows are there");
                let held_out = problem.held_out.take().map_or(HeldOut::Nothing, HeldOut::Rows);
                (problem, held_out, memory)
            }
            Form::Parts(parts) => {
                let columns = self.problem.gram().map_or(0, |gram| gram.design.len());
                // Two sums of double numbers, the matrices made of them, and, where these are to be parted again, the parts that are left.
                let is_parted = self.problem.folds.is_some();
                let a_part = 16 * columns * columns;
                let memory = run.reserve(a_part * (2 + if is_parted { own.len() / 2 } else { 0 }))?;
                let some = |pieces: &[usize]| parts.whole.sum_of(pieces.iter().map(|part| &parts.parts[*part]));
                let whole = some(own)?;
                let gram = whole.finish_as(self.problem.label.clone());
                let held_out = match others {
                    [] => HeldOut::Nothing,
                    others => HeldOut::Moments(Box::new(some(others)?.finish_about(&whole, &gram))),
                };
                let left = || own.iter().map(|part| parts.parts[*part].clone()).collect();
                let parts = is_parted.then(|| Parts { parts: left(), whole });
                (self.problem.on_moments(gram, parts), held_out, memory)
            }
        };
        problem.must_include = problem.must_include.iter().copied().filter(|unit| problem.why_never(*unit).is_none()).collect();
        if !problem.table.data.label_varies() {
            return Err(Error::data("the rows that are left to learn from have one label only; use fewer folds, or more rows"));
        }
        if (0..problem.units.len()).all(|unit| problem.why_never(unit).is_some()) {
            return Err(Error::data("no feature varies in the rows that are left to learn from; use fewer folds, or more rows"));
        }
        Ok(Piece { problem, held_out, _memory: memory })
    }

    /// What one fold leaves to learn from, with that fold held out.
    pub fn without(&self, folds: &[Vec<usize>], fold: usize, run: &Run) -> Result<Piece> {
        let mut own: Vec<usize> =
            folds.iter().enumerate().filter(|(at, _)| *at != fold).flat_map(|(_, pieces)| pieces.iter().copied()).collect();
        own.sort_unstable();
        self.piece(&own, &folds[fold], run)
    }
}

#[cfg(test)]
mod tests;
