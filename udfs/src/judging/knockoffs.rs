//! Knockoffs: for every feature an imitation that correlates with the other features as the feature itself does, and with the label by chance alone.
//!
//! With `Σ` the products of the features (columns of length 1; those of a text or a group orthonormal), knockoffs `X̃` have `X̃ᵀX̃ = Σ` and `XᵀX̃ = Σ − γI`. Nothing
//! but their products with the label is random: `X̃ᵀy = Xᵀy − γΣ⁻¹Xᵀy + L u ‖r‖`, where `LLᵀ = 2γI − γ²Σ⁻¹`, `r` is what least squares on all features leaves of
//! the label, and `u` the first coordinates of a random direction in the space of the rows beside the features. So they are drawn from second moments, and no row is
//! needed.

use std::ops::Range;
use std::sync::Arc;

use crate::kernels::cholesky::Cholesky;
use crate::kernels::dot;
use crate::linear::products::Products;
use crate::reading::moments::Gram;
use crate::reading::table::{DesignColumn, Seen, Table};
use crate::{Error, Label, Problem, Random, Result, Run, Unit};

/// The question about the features and their knockoffs.
pub(crate) struct Imitated {
    pub problem: Problem,
    /// For each of its units the feature, and whether it is its knockoff.
    pub stands_for: Vec<(usize, bool)>,
}

/// Share of the most that features may differ from their knockoffs: at the most itself nothing random is left in some direction.
const SLACK: f64 = 0.99;
/// Rounds of inverse iteration; any number below the largest difference will do.
const ROUNDS: usize = 100;

/// Makes the knockoffs of all features that vary.
pub(crate) fn imitate(problem: &Problem, run: &Run) -> Result<Imitated> {
    let products = Products::new(problem, run)?;
    if products.labels != 1 {
        return Err(Error::data(
            "takes a label of numbers or of two classes; set task => 'regression', or one class against the others",
        ));
    }
    // Columns that depend on earlier ones have no knockoffs of their own.
    let (mut factor, mut columns, mut units) = (Cholesky::default(), Vec::<usize>::new(), Vec::<(usize, Range<usize>)>::new());
    for (unit, own) in products.units.iter().enumerate() {
        let start = columns.len();
        for column in own.clone() {
            run.check()?;
            if factor.push(|j| products.inner(column, columns.get(j).copied().unwrap_or(column))) {
                columns.push(column);
            }
        }
        if columns.len() > start {
            units.push((unit, start..columns.len()));
        }
    }
    let p = columns.len();
    let beside = products.rows - 1.0 - p as f64;
    if beside < p as f64 {
        let rows = 2 * p + 1;
        return Err(Error::data(format!(
            "needs at least {rows} rows for the {p} columns of its features, got {}; name fewer as `features`",
            products.rows
        )));
    }
    let _memory = run.reserve(7 * p * p * size_of::<f64>())?;
    let sigma = |i: usize, j: usize| products.inner(columns[i], columns[j]) / lengths(&products, &columns, i, j);
    let factor =
        Cholesky::of(p, sigma).ok_or_else(|| Error::data("the features depend on each other; name fewer as `features`"))?;
    let (gamma, root) = difference(p, &factor, run)?;

    let correlations: Vec<f64> =
        columns.iter().map(|column| products.correlations[*column] / products.energies[*column].sqrt()).collect();
    let mut fit = correlations.clone();
    factor.solve(&mut fit);
    let left = (1.0 - dot(&correlations, &fit)).max(0.0).sqrt();
    let mut random = run.random("knockoffs", 0);
    let draws: Vec<f64> = (0..p).map(|_| random.normal()).collect();
    let length = (dot(&draws, &draws) + chi_squared(beside - p as f64, &mut random)).sqrt();
    let imitated = |i: usize| correlations[i] - gamma * fit[i] + left / length * dot(&root[i], &draws[..=i]);
    let imitations: Vec<f64> = (0..p).map(imitated).collect();

    // Features and knockoffs side by side, in an order of their own for each pair: whoever comes first must not gain by it.
    let (mut stands_for, mut all_units, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut design) = (Vec::new(), Vec::new());
    for (unit, own) in &units {
        let first = random.below(2) == 1;
        for is_knockoff in [first, !first] {
            let name =
                if is_knockoff { format!("{} (knockoff)", problem.units[*unit].name) } else { problem.units[*unit].name.clone() };
            let at: Vec<usize> = (design.len()..design.len() + own.len()).collect();
            design.extend(own.clone().map(|_| DesignColumn { feature: names.len(), is_number: own.len() == 1 }));
            places.extend(own.clone().map(|column| (column, is_knockoff)));
            all_units.push(Unit { name: name.clone(), features: vec![names.len()], columns: at, is_number: own.len() == 1 });
            names.push(name);
            stands_for.push((*unit, is_knockoff));
        }
    }
    let d = places.len();
    let mut matrix = vec![0.0; d * d];
    for (a, (i, is_knockoff)) in places.iter().enumerate() {
        run.check()?;
        for (b, (j, other)) in places.iter().enumerate() {
            let apart = if i == j && is_knockoff != other { gamma } else { 0.0 };
            matrix[a * d + b] = sigma(*i, *j) - apart;
        }
    }
    let label_products =
        places.iter().map(|(i, is_knockoff)| if *is_knockoff { imitations[*i] } else { correlations[*i] }).collect();
    let seen = Seen { rows: problem.seen().rows, missing: vec![0; names.len()], ..Seen::default() };
    let (label, weight) = (Label::Numbers, products.rows);
    let means = vec![0.0; design.len()];
    let (label_means, label_energy, label_of_gram) = (vec![0.0], 1.0, label.clone());
    let gram =
        Gram { design, label: label_of_gram, seen, weight, means, label_means, matrix, products: label_products, label_energy };
    let table = Arc::new(Table::of_gram(names, gram));
    let k = Some(all_units.len());
    let problem = Problem {
        table,
        units: all_units,
        label,
        k,
        must_include: Vec::new(),
        folds: None,
        parts: None,
        costs: None,
        ..problem.clone()
    };
    Ok(Imitated { problem, stands_for })
}

/// What brings two columns to length 1.
fn lengths(products: &Products, columns: &[usize], i: usize, j: usize) -> f64 {
    (products.energies[columns[i]] * products.energies[columns[j]]).sqrt()
}

/// How far features and knockoffs can be apart, the same for all, and the root of what is then random in these.
fn difference(p: usize, factor: &Cholesky, run: &Run) -> Result<(f64, Vec<Vec<f64>>)> {
    // The smallest eigenvalue, by inverse iteration from a start that is orthogonal to nothing in particular.
    let mut random = Run::new(0).random("inverse iteration", 0);
    let mut direction: Vec<f64> = (0..p).map(|_| random.normal()).collect();
    let mut smallest = 1.0;
    for _ in 0..ROUNDS {
        run.check()?;
        let length = dot(&direction, &direction).sqrt();
        direction.iter_mut().for_each(|x| *x /= length);
        let before = direction.clone();
        factor.solve(&mut direction);
        smallest = 1.0 / dot(&before, &direction);
    }
    let mut inverse = Vec::with_capacity(p);
    for i in 0..p {
        run.check()?;
        let mut column = vec![0.0; p];
        column[i] = 1.0;
        factor.solve(&mut column);
        inverse.push(column);
    }
    let mut gamma = SLACK * (2.0 * smallest).min(1.0);
    loop {
        run.check()?;
        let random = |i: usize, j: usize| (if i == j { 2.0 * gamma } else { 0.0 }) - gamma * gamma * inverse[i][j];
        if let Some(root) = Cholesky::of(p, random) {
            return Ok((gamma, root.into_rows()));
        }
        gamma *= 0.8;
        if gamma < 1e-9 {
            return Err(Error::data("the features depend on each other; name fewer as `features`"));
        }
    }
}

/// A draw of χ² with so many degrees of freedom; of many by Wilson and Hilferty, whose error is then below that of any number of runs.
fn chi_squared(degrees: f64, random: &mut Random) -> f64 {
    if degrees <= 200.0 {
        return (0..degrees as usize).map(|_| random.normal().powi(2)).sum();
    }
    let share = 2.0 / (9.0 * degrees);
    degrees * (1.0 - share + share.sqrt() * random.normal()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::planted;

    /// The mean over draws of X̃ᵀy is what the features leave of Xᵀy, and its spread that of a random direction.
    #[test]
    fn knockoffs_have_the_products_of_their_features() {
        let (table, label) = planted(60, 4, &[1], 1.0, 3);
        let problem = table.problem(&label);
        let of = |imitated: &Imitated, unit: usize, is_knockoff: bool| {
            imitated.stands_for.iter().position(|other| *other == (unit, is_knockoff)).unwrap()
        };
        let (mut sum, mut squares) = (0.0, 0.0);
        for seed in 0..2000 {
            let imitated = imitate(&problem, &Run::new(seed)).unwrap();
            let gram = imitated.problem.gram().unwrap();
            let (x0, k0, x1, k1) =
                (of(&imitated, 0, false), of(&imitated, 0, true), of(&imitated, 1, false), of(&imitated, 1, true));
            let inner = |a: usize, b: usize| gram.matrix[a * 8 + b];
            assert!((inner(x0, x0) - 1.0).abs() < 1e-12 && (inner(k0, k0) - 1.0).abs() < 1e-12);
            for (a, b) in [(k0, x1), (x0, k1), (k0, k1)] {
                assert!((inner(a, b) - inner(x0, x1)).abs() < 1e-12);
            }
            assert!(inner(x0, k0) < 0.6);
            sum += gram.products[k1] / 2000.0;
            squares += gram.products[k1].powi(2) / 2000.0;
        }
        // The label follows x1: what is left for its knockoff is what they share.
        let spread = (squares - sum * sum).sqrt();
        assert!(sum.abs() < 0.6 && (0.01..0.1).contains(&spread), "{sum} {spread}");
    }

    #[test]
    fn too_few_rows_are_refused() {
        let (table, label) = planted(12, 6, &[1], 1.0, 3);
        let error = imitate(&table.problem(&label), &Run::new(0)).err().unwrap().to_string();
        assert_eq!(error, "needs at least 13 rows for the 6 columns of its features, got 12; name fewer as `features`");
    }
}
