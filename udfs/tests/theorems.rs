//! Theorems 1.1 and 1.2 of the sequential attention paper: orthogonal matching pursuit, sequential LASSO and regularised
//! linear sequential attention choose the same features.
//!
//! Our pursuit and our sequential LASSO share their least squares and differ in ties alone, so that their agreement proves little by itself; our attention alternates
//! between two ridge regressions. Therefore both optimisation problems are solved once more here, from their definitions, by coordinate descent on the plain rows.

use pursuit_udfs::testing::Table;
use pursuit_udfs::{Problem, Run, Settings, selectors};

fn chosen(name: &str, problem: &Problem) -> Vec<usize> {
    let spec = selectors().into_iter().find(|spec| spec.name == name).unwrap();
    let mut settings = Settings::new();
    if name == "sequential_attention" {
        settings.insert("model".into(), "linear".into());
    }
    spec.selector(&settings).unwrap().select(problem, &Run::default()).unwrap().units()
}

/// Columns centred and scaled to length 1.
fn unit_columns(table: &Table, columns: usize) -> Vec<Vec<f64>> {
    (0..columns)
        .map(|j| {
            let column = table.column(j);
            let mean = column.iter().sum::<f64>() / column.len() as f64;
            let centred: Vec<f64> = column.iter().map(|x| x - mean).collect();
            let length = centred.iter().map(|x| x * x).sum::<f64>().sqrt();
            centred.iter().map(|x| x / length).collect()
        })
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `min ½‖y − Xβ‖² + λ Σ_{j ∉ S} |β_j|` by cyclic coordinate descent, to convergence.
fn lasso(x: &[Vec<f64>], y: &[f64], lambda: f64, free: &[usize]) -> Vec<f64> {
    let mut beta = vec![0.0; x.len()];
    let mut residual = y.to_vec();
    for _ in 0..200_000 {
        let mut moved: f64 = 0.0;
        for j in 0..x.len() {
            let rho = dot(&x[j], &residual) + beta[j];
            let new = if free.contains(&j) { rho } else { rho.signum() * (rho.abs() - lambda).max(0.0) };
            let change = new - beta[j];
            if change != 0.0 {
                residual.iter_mut().zip(&x[j]).for_each(|(r, x)| *r -= change * x);
                beta[j] = new;
                moved = moved.max(change.abs());
            }
        }
        if moved < 1e-13 {
            break;
        }
    }
    beta
}

/// Sequential LASSO by its definition: lower λ until something enters. Bisection on λ finds the place.
fn sequential_lasso_by_definition(x: &[Vec<f64>], y: &[f64], k: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < k {
        let enters = |lambda: f64| -> Vec<usize> {
            let beta = lasso(x, y, lambda, &chosen);
            (0..x.len()).filter(|j| !chosen.contains(j) && beta[*j] != 0.0).collect()
        };
        let (mut low, mut high) = (0.0, dot(y, y).sqrt());
        while high - low > 1e-9 * high {
            let middle = (low + high) / 2.0;
            let entering = enters(middle);
            if entering.is_empty() {
                high = middle;
            } else {
                low = middle;
                if entering.len() == 1 && high - low < 1e-3 * high {
                    break;
                }
            }
        }
        chosen.push(enters(low)[0]);
    }
    chosen
}

fn problem(seed: u64) -> (Table, Vec<f64>, usize) {
    // Shapes from tall to wide, features correlated through a shared part.
    let (rows, columns) = [(40, 8), (25, 12), (60, 20), (15, 30)][seed as usize % 4];
    let table = Table::random(rows, columns, seed);
    let mut random = Run::new(seed).random("theorem", 0);
    let shared: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
    let mut mixed = Table::new();
    for j in 0..columns {
        let share = random.uniform();
        let column: Vec<f64> = table.column(j).iter().zip(&shared).map(|(x, s)| x + share * s).collect();
        mixed = mixed.numbers(&format!("x{j}"), &column);
    }
    let label =
        (0..rows).map(|row| mixed.column(0)[row] - mixed.column(3)[row] + 0.5 * mixed.column(5)[row] + random.normal()).collect();
    (mixed, label, columns)
}

#[test]
fn three_selectors_choose_the_same_features_on_200_problems() {
    for seed in 0..200 {
        let (table, label, columns) = problem(seed);
        let question = table.clone().k(5).problem(&label);
        let omp = chosen("omp", &question);
        assert_eq!(omp.len(), 5);
        assert_eq!(chosen("sequential_lasso", &question), omp, "problem {seed}");
        assert_eq!(chosen("sequential_attention", &question), omp, "problem {seed}");
        // The definition itself, on every fourth: it is slow because it knows nothing.
        if seed % 4 == 0 {
            let mean = label.iter().sum::<f64>() / label.len() as f64;
            let y: Vec<f64> = label.iter().map(|y| y - mean).collect();
            assert_eq!(sequential_lasso_by_definition(&unit_columns(&table, columns), &y, 3), omp[..3], "problem {seed}");
        }
    }
}

/// Three unit vectors with the same correlation with the label, the first of which never enters the LASSO: it lies in
/// between the other two, who explain the label better together. Orthogonal matching pursuit takes the first, as ties go.
#[test]
fn with_ties_sequential_lasso_chooses_from_fewer() {
    // In the plane of e1, e2, e3 (all orthogonal to 1): y = e1; a, b, c have the same first coordinate.
    let e = [[1.0, -1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, -1.0]];
    let mix =
        |c: [f64; 3]| -> Vec<f64> { (0..6).map(|row| (0..3).map(|i| c[i] * e[i][row]).sum::<f64>() / 2f64.sqrt()).collect() };
    // Just below λ* the coefficients grow along v ≥ 0 with min ½ vᵀHv − 1ᵀv. H⁻¹ 1 has a negative first entry here.
    let (s, t) = (0.6, 0.8);
    let a = mix([s, t, 0.0]);
    let b = mix([s, t * 0.9, t * (1.0f64 - 0.81).sqrt()]);
    let c = mix([s, -t * 0.2, t * (1.0f64 - 0.04).sqrt()]);
    let label = mix([1.0, 0.0, 0.0]);
    let table = Table::new().numbers("a", &b).numbers("b", &a).numbers("c", &c).k(1);
    let question = table.problem(&label);
    let x = [b, a, c];
    let beta = lasso(&x, &label, s * (1.0 - 1e-4), &[]);
    let entering: Vec<usize> = (0..3).filter(|j| beta[*j].abs() > 1e-9).collect();
    assert_ne!(entering[0], 0, "the construction must keep the first of the tied out: {beta:?}");
    assert_eq!(chosen("omp", &question), [0]);
    assert_eq!(chosen("sequential_lasso", &question), [entering[0]]);
    assert!(entering.contains(&chosen("sequential_attention", &question)[0]));
}

#[test]
fn of_duplicated_columns_all_three_take_the_first() {
    let (table, label, _) = problem(8);
    let twin = table.column(0).to_vec();
    let table = table.numbers("twin", &twin).k(4);
    let question = table.problem(&label);
    let omp = chosen("omp", &question);
    assert!(!omp.contains(&8), "the twin of column 0 is never chosen: {omp:?}");
    assert_eq!(chosen("sequential_lasso", &question), omp);
    assert_eq!(chosen("sequential_attention", &question), omp);
}
