//! What a person would remark on a chosen feature: that it may be a leak, an id, a copy of another, mostly missing.

use std::collections::BTreeMap;

use crate::kernels::dot;
use crate::linear::products::Products;
use crate::linear::pursuit::Pursuit;
use crate::{Data, Kind, Problem, Ranking, Result, Run};

/// Share of the label that a feature explains by itself from which on one should ask whether it was known beforehand.
const LEAK: f64 = 0.95;
/// Squared correlation from which on two features say the same.
const SAME: f64 = 0.998;
/// Choices that are looked at. Nobody reads more.
const CHOICES_MAX: usize = 100;
/// Multiplications that finding copies among rows may take.
const WORK_MAX: usize = 2_000_000_000;

/// Adds notes to the choices, and tells the run about them and about texts that were left out.
pub fn annotate(problem: &Problem, ranking: &mut Ranking, run: &Run) -> Result<()> {
    let mut notes: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let chosen: Vec<usize> = ranking.choices.iter().map(|choice| choice.unit).take(CHOICES_MAX).collect();
    for unit in &chosen {
        notes.insert(*unit, about_values(problem, *unit));
    }
    // What is no more than a remark must not fail for lack of memory.
    match about_label(problem, &chosen, run) {
        Ok(leaks) => leaks.into_iter().for_each(|(unit, note)| notes.entry(unit).or_default().insert(0, note)),
        Err(error) if error.kind() == Kind::Limit => {}
        Err(error) => return Err(error),
    }
    for (unit, note) in copies(problem, &chosen, run)? {
        notes.entry(unit).or_default().push(note);
    }
    let seen = problem.seen();
    if let Some(first) = chosen.first()
        && seen.rows_with_null > seen.rows
    {
        let all = seen.rows_with_null + seen.rows;
        notes.entry(*first).or_default().push(format!("nulls => 'drop' left out {} of {all} rows", seen.rows_with_null));
    }
    for choice in &mut ranking.choices {
        // What the selector has to say comes first.
        let said = choice.note.take().into_iter().chain(notes.get(&choice.unit).into_iter().flatten().cloned());
        choice.note = said.reduce(|said, more| format!("{said}; {more}"));
    }
    tell(problem, &chosen, &notes, run);
    Ok(())
}

/// One line about all.
fn tell(problem: &Problem, chosen: &[usize], notes: &BTreeMap<usize, Vec<String>>, run: &Run) {
    let name = |unit: &usize| problem.units[*unit].name.as_str();
    let mut lines: Vec<String> = Vec::new();
    for unit in chosen {
        lines.extend(notes.get(unit).into_iter().flatten().map(|note| format!("{}: {note}", name(unit))));
    }
    let is_left_out = |feature: &usize| problem.seen().texts.get(feature).is_some_and(|text| text.is_left_out);
    let left_out = (0..problem.features().len()).filter(is_left_out).map(|feature| problem.features()[feature].as_str());
    let left_out: Vec<&str> = left_out.collect();
    if !left_out.is_empty() {
        lines.push(format!("left out, because nearly all values differ: {}", left_out.join(", ")));
    }
    lines.dedup();
    if !lines.is_empty() {
        run.remark(&lines.join("; "));
    }
}

/// What can be seen of a feature's values.
fn about_values(problem: &Problem, unit: usize) -> Vec<String> {
    let (seen, unit) = (problem.seen(), &problem.units[unit]);
    let [feature] = unit.features[..] else { return Vec::new() };
    let mut notes = Vec::new();
    if 2 * seen.missing[feature] > seen.rows {
        notes.push(format!("{} % of the values are NULL", 100 * seen.missing[feature] / seen.rows));
    }
    match seen.texts.get(&feature) {
        Some(text) if text.values > text.told_apart => {
            notes.push(format!("{} of {} values are told apart", text.told_apart, text.count()));
        }
        Some(text) if text.known >= FEW && 2 * text.values > text.known => {
            notes.push(format!("{} values in {} rows: an id?", text.count(), text.known));
        }
        Some(_) => {}
        None if counts_rows(problem, unit.columns[0]) => notes.push("counts the rows: an id?".into()),
        None => {}
    }
    notes
}

/// Rows of which nobody expects that values repeat.
const FEW: u64 = 10;

/// Whether a number is 1, 2, 3, … in some order, from wherever it begins: its spread tells, and other numbers do not have it.
fn counts_rows(problem: &Problem, column: usize) -> bool {
    let seen = problem.seen();
    let n = seen.rows as f64;
    let weight = match &problem.table.data {
        Data::Gram(gram) => gram.weight,
        Data::Rows(rows) => rows.weight(),
    };
    let expected = n * (n * n - 1.0) / 12.0;
    seen.rows >= FEW && weight == n && (inner(problem, column, column) - expected).abs() <= 1e-12 * expected
}

fn inner(problem: &Problem, i: usize, j: usize) -> f64 {
    match &problem.table.data {
        Data::Gram(gram) => gram.matrix[i * gram.design.len() + j],
        Data::Rows(rows) if rows.weights.is_empty() => dot(&rows.columns[i], &rows.columns[j]),
        Data::Rows(rows) => rows.columns[i].iter().zip(&rows.columns[j]).zip(&rows.weights).map(|((x, y), w)| w * x * y).sum(),
    }
}

/// Features that explain nearly everything by themselves.
fn about_label(problem: &Problem, chosen: &[usize], run: &Run) -> Result<Vec<(usize, String)>> {
    let products = Products::of_units(problem, |unit| chosen.contains(&unit), run)?;
    let alone = Pursuit::new(&products);
    let mut notes = Vec::new();
    for unit in chosen {
        run.check()?;
        let share = alone.projection(*unit).powi(2);
        if share >= LEAK {
            let share = (100.0 * share).floor().min(100.0);
            notes.push((*unit, format!("explains {share} % of the label alone: a leak?")));
        }
    }
    Ok(notes)
}

/// Features of one column that say the same as another one, be that chosen or not; the others only where they can be looked at without much work.
fn copies(problem: &Problem, chosen: &[usize], run: &Run) -> Result<Vec<(usize, String)>> {
    let single = |unit: usize| match problem.units[unit].columns[..] {
        [column] if problem.units[unit].is_number && problem.table.varies(column) => Some(column),
        _ => None,
    };
    let rows = match &problem.table.data {
        Data::Gram(_) => 1,
        Data::Rows(rows) => rows.rows(),
    };
    let work = chosen.len().saturating_mul(problem.units.len()).saturating_mul(rows);
    let others: Vec<usize> = if work <= WORK_MAX { (0..problem.units.len()).collect() } else { chosen.to_vec() };
    let others: Vec<(usize, usize, f64)> =
        others.into_iter().filter_map(|unit| single(unit).map(|column| (unit, column, inner(problem, column, column)))).collect();
    let mut notes = Vec::new();
    for unit in chosen {
        run.check()?;
        let Some(column) = single(*unit) else { continue };
        let energy = inner(problem, column, column);
        let closeness = |other: usize, of: f64| inner(problem, column, other).powi(2) / (energy * of);
        let same = others.iter().find(|(other, at, of)| other != unit && closeness(*at, *of) >= SAME);
        if let Some((other, at, of)) = same {
            let nearly = if closeness(*at, *of) >= 1.0 - 1e-9 { "" } else { "nearly " };
            notes.push((*unit, format!("{nearly}the same as {}", problem.units[*other].name)));
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;
    use crate::{Choice, Nulls};

    /// The note of the unit at a place, from moments and from rows, which must say the same.
    fn note(table: &Table, label: &[f64], unit: usize) -> Option<String> {
        let notes = [table.problem(label), table.problem_of_rows(label)].map(|problem| {
            let mut ranking = Ranking { choices: vec![Choice::new(1, unit, 1.0)], ..Ranking::default() };
            annotate(&problem, &mut ranking, &Run::default()).unwrap();
            ranking.choices.remove(0).note
        });
        assert_eq!(notes[0], notes[1]);
        notes[0].clone()
    }

    #[test]
    fn what_a_person_would_say() {
        let table = Table::random(200, 3, 4);
        let (x, mut holes) = (table.column(0).to_vec(), table.column(2).to_vec());
        let label: Vec<f64> = x.iter().zip(table.column(1)).map(|(a, b)| a + 0.5 * b).collect();
        holes.iter_mut().take(150).for_each(|x| *x = f64::NAN);
        let twice: Vec<f64> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
        let nearly: Vec<f64> = table.column(1).iter().zip(&x).map(|(b, a)| b + 0.02 * a).collect();
        let leak: Vec<f64> = label.iter().zip(&holes).map(|(y, h)| y + if h.is_nan() { 0.0 } else { 0.1 * h }).collect();
        let ids: Vec<f64> = (0..200).map(|row| 1000.0 + f64::from(row * 77 % 200)).collect();
        let names: Vec<String> = (0..200).map(|row| format!("{}", row * row % 101)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut table = table.numbers("twice", &twice).numbers("nearly", &nearly).numbers("leak", &leak).numbers("holes", &holes);
        table = table.numbers("id", &ids).text("name", &names);
        let note = |unit| note(&table, &label, unit).unwrap_or_default();
        assert_eq!(note(2), "");
        assert_eq!((note(0), note(3)), ("the same as twice".into(), "the same as x0".into()));
        assert_eq!(note(4), "nearly the same as x1");
        assert!(note(5).starts_with("explains 99 % of the label alone: a leak?"), "{}", note(5));
        assert_eq!(note(6), "75 % of the values are NULL");
        assert_eq!(note(7), "counts the rows: an id?");
        assert_eq!(note(8), "50 of 51 values are told apart");
    }

    #[test]
    fn rows_that_a_setting_drops_are_told() {
        let mut table = Table::random(50, 2, 4);
        let label = table.column(1).to_vec();
        let mut holes = table.column(0).to_vec();
        holes.iter_mut().take(30).for_each(|x| *x = f64::NAN);
        table = table.numbers("holes", &holes);
        table.common.nulls = Nulls::Drop;
        assert_eq!(note(&table, &label, 0).unwrap(), "the same as holes; nulls => 'drop' left out 30 of 50 rows");
    }
}
