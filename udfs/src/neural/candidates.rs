use std::ops::Range;

use crate::kernels::dot;
use crate::{Problem, Ranking, Result, Rows, Run};

/// The units that a network can attend to, and their columns as its inputs.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// The unit that each candidate is.
    pub units: Vec<usize>,
    /// The inputs that each candidate has.
    pub inputs: Vec<Range<usize>>,
    /// The candidate of each input.
    owners: Vec<usize>,
    /// The design's column behind each input.
    pub columns: Vec<usize>,
    /// Units that repeat another one. A network would share the credit between the two as its random start happens to have
    /// it; the first is to have it.
    pub repeated: Vec<(usize, String)>,
}

impl Candidates {
    pub(crate) fn new(problem: &Problem, rows: &Rows, run: &Run) -> Result<Self> {
        let mut candidates =
            Self { units: Vec::new(), inputs: Vec::new(), owners: Vec::new(), columns: Vec::new(), repeated: Vec::new() };
        let mut varying: Vec<(usize, Vec<usize>)> = Vec::new();
        for (unit, declared) in problem.units.iter().enumerate() {
            let columns = declared.columns.iter().copied().filter(|column| rows.columns[*column].iter().any(|x| *x != 0.0));
            let columns: Vec<usize> = columns.collect();
            if !columns.is_empty() {
                varying.push((unit, columns));
            }
        }
        let first = first_of_equals(rows, &varying, &problem.must_include, run)?;
        for ((unit, columns), first) in varying.iter().zip(first) {
            if let Some(first) = first {
                candidates.repeated.push((*unit, format!("repeats {}", problem.units[first].name)));
                continue;
            }
            let start = candidates.columns.len();
            candidates.columns.extend(columns);
            candidates.owners.resize(candidates.columns.len(), candidates.units.len());
            candidates.units.push(*unit);
            candidates.inputs.push(start..candidates.columns.len());
        }
        Ok(candidates)
    }

    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    /// Positions of the units that must be included.
    pub(crate) fn forced(&self, problem: &Problem) -> Vec<usize> {
        problem.must_include.iter().filter_map(|unit| self.units.iter().position(|other| other == unit)).collect()
    }

    /// Candidates by their importance. What repeats another is passed over.
    pub(crate) fn ranking(&self, problem: &Problem, importances: &[f64]) -> Ranking {
        let mut of_unit = vec![0.0; problem.units.len()];
        self.units.iter().zip(importances).for_each(|(unit, importance)| of_unit[*unit] = *importance);
        let ranking = Ranking::by_importance(problem, self.units.iter().copied(), |unit| of_unit[unit]);
        Ranking { passed_over: self.repeated.clone(), ..ranking }
    }

    /// The inputs of some candidates.
    pub(crate) fn inputs_of(&self, chosen: &[usize]) -> Vec<usize> {
        chosen.iter().flat_map(|candidate| self.inputs[*candidate].clone()).collect()
    }

    /// Gives every input the value of its candidate.
    pub(crate) fn spread(&self, values: &[f32], of_inputs: &mut [f32]) {
        if self.owners.len() == values.len() {
            return of_inputs.copy_from_slice(values);
        }
        for (value, owner) in of_inputs.iter_mut().zip(&self.owners) {
            *value = values[*owner];
        }
    }

    /// Adds up the values of every candidate's inputs.
    pub(crate) fn gather(&self, of_inputs: &[f32], values: &mut [f32]) {
        if self.owners.len() == values.len() {
            return values.copy_from_slice(of_inputs);
        }
        values.fill(0.0);
        for (value, owner) in of_inputs.iter().zip(&self.owners) {
            values[*owner] += value;
        }
    }
}

/// Σ x² and Σ |x|³, with as many running sums as the compiler needs for vector registers.
fn powers(values: &[f64]) -> (f64, f64) {
    let (mut squares, mut cubes) = ([0.0; 8], [0.0; 8]);
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for lane in 0..8 {
            let square = eight[lane] * eight[lane];
            squares[lane] += square;
            cubes[lane] += square * eight[lane].abs();
        }
    }
    let of_rest = |power: i32| rest.iter().map(|x| x.abs().powi(power)).sum::<f64>();
    (squares.iter().sum::<f64>() + of_rest(2), cubes.iter().sum::<f64>() + of_rest(3))
}

/// For each unit the earlier one that it repeats, up to a factor for each column. A unit that must be included repeats none.
fn first_of_equals(rows: &Rows, units: &[(usize, Vec<usize>)], must_include: &[usize], run: &Run) -> Result<Vec<Option<usize>>> {
    use rayon::prelude::*;
    let checked = |column: &Vec<f64>| run.check().map(|()| powers(column));
    let powers: Vec<(f64, f64)> = rows.columns.par_iter().map(checked).collect::<Result<_>>()?;
    let energy = |column: usize| powers[column].0;
    // Equal columns have equal shapes; only those with the same shape are compared value by value.
    let shape = |(_, columns): &(usize, Vec<usize>)| -> f64 {
        let of = |column: usize| {
            let length = (energy(column) / rows.rows() as f64).sqrt();
            powers[column].1 / (length * length * length)
        };
        columns.iter().map(|column| of(*column)).sum()
    };
    let equal = |a: &[usize], b: &[usize]| {
        let parallel = |(a, b): (&usize, &usize)| {
            let inner = dot(&rows.columns[*a], &rows.columns[*b]);
            inner * inner >= (1.0 - 1e-9) * energy(*a) * energy(*b)
        };
        a.len() == b.len() && a.iter().zip(b).all(parallel)
    };
    let shapes: Vec<f64> = units.iter().map(shape).collect();
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|a, b| shapes[*a].total_cmp(&shapes[*b]).then(a.cmp(b)));
    let mut first = vec![None; units.len()];
    for (at, &unit) in order.iter().enumerate() {
        let near = order[at + 1..].iter().take_while(|other| shapes[**other] <= shapes[unit] * (1.0 + 1e-6));
        run.check()?;
        for &other in near {
            let (earlier, later) = (unit.min(other), unit.max(other));
            let is_free = first[later].is_none() && !must_include.contains(&units[later].0);
            if is_free && first[earlier].is_none() && equal(&units[unit].1, &units[other].1) {
                first[later] = Some(units[earlier].0);
            }
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    #[test]
    fn repetitions_are_found_up_to_a_factor() {
        let table = Table::random(30, 3, 1);
        let inches: Vec<f64> = table.column(1).iter().map(|x| 7.0 - x / 2.54).collect();
        let nearly: Vec<f64> = table.column(1).iter().enumerate().map(|(row, x)| x + 1e-3 * (row as f64).sin()).collect();
        let twice = table.column(0).to_vec();
        let table = table.numbers("inches", &inches).numbers("nearly", &nearly).numbers("twice", &twice);
        let problem = table.problem_of_rows(&(0..30).map(f64::from).collect::<Vec<_>>());
        let rows = problem.rows();
        let candidates = Candidates::new(&problem, rows, &crate::Run::new(0)).unwrap();
        assert_eq!(candidates.units, [0, 1, 2, 4]);
        assert_eq!(candidates.repeated, [(3, "repeats x1".to_string()), (5, "repeats x0".to_string())]);
    }
}
