//! What the sequential attention paper proves beside its main theorems, looked at on problems small enough for every subset to be tried: how far orthogonal matching pursuit
//! can fall behind the best subset, what penalty a softmax mask stands for, and the regularised objective itself, minimised by a method that shares nothing with ours.

use pursuit_udfs::testing::{Table, least_squares};
use pursuit_udfs::{Random, Run, Settings, selectors};

fn chosen(name: &str, table: &Table, label: &[f64]) -> Vec<usize> {
    let spec = selectors().into_iter().find(|spec| spec.name == name).unwrap();
    let settings = match name {
        "sequential_attention" => Settings::from_iter([("model".to_string(), "linear".into())]),
        _ => Settings::new(),
    };
    spec.selector(&settings).unwrap().select(&table.problem(label), &Run::default()).unwrap().units()
}

/// Columns with a part in common, so that they are correlated, and a label of some of them.
fn problem(rows: usize, columns: usize, seed: u64) -> (Table, Vec<f64>) {
    let plain = Table::random(rows, columns, seed);
    let mut random = Run::new(seed).random("guarantee", 0);
    let shared: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
    let table = (0..columns).fold(Table::new(), |table, j| {
        let share = 1.5 * random.uniform();
        let column: Vec<f64> = plain.column(j).iter().zip(&shared).map(|(x, s)| x + share * s).collect();
        table.numbers(&format!("x{j}"), &column)
    });
    let last = (columns - 1).min(4);
    let label =
        (0..rows).map(|row| table.column(0)[row] - table.column(2)[row] + 0.7 * table.column(last)[row] + random.normal());
    let label = label.collect();
    (table, label)
}

fn unit(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let length = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>().sqrt();
    values.iter().map(|x| (x - mean) / length).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn subsets(of: usize, size: usize) -> Vec<Vec<usize>> {
    (0u32..1 << of)
        .filter(|bits| bits.count_ones() as usize == size)
        .map(|bits| (0..of).filter(|j| bits >> j & 1 == 1).collect())
        .collect()
}

/// The least eigenvalue of the products of some unit columns, by Jacobi's rotations.
fn least_eigenvalue(columns: &[&Vec<f64>]) -> f64 {
    let n = columns.len();
    let mut a: Vec<Vec<f64>> = columns.iter().map(|x| columns.iter().map(|y| dot(x, y)).collect()).collect();
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-15 {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[p][q]).atan2(a[p][p] - a[q][q]);
                let (sin, cos) = angle.sin_cos();
                for row in a.iter_mut() {
                    (row[p], row[q]) = (cos * row[p] + sin * row[q], cos * row[q] - sin * row[p]);
                }
                for k in 0..n {
                    (a[p][k], a[q][k]) = (cos * a[p][k] + sin * a[q][k], cos * a[q][k] - sin * a[p][k]);
                }
            }
        }
    }
    (0..n).map(|i| a[i][i]).fold(f64::INFINITY, f64::min)
}

/// Equation 3: with t features the pursuit explains 1 − e^(−κ t / k) of what the best k explain, κ being the least eigenvalue of any t + k unit columns.
#[test]
fn pursuit_keeps_the_guarantee_against_the_best_subset() {
    let (mut tightest, mut checked) = (f64::INFINITY, 0);
    for seed in 0..40 {
        let (rows, columns) = [(30, 7), (14, 8), (60, 6)][seed as usize % 3];
        let (table, label) = problem(rows, columns, seed);
        let units: Vec<Vec<f64>> = (0..columns).map(|j| unit(table.column(j))).collect();
        let r2 = |set: &[usize]| least_squares(&set.iter().map(|j| table.column(*j)).collect::<Vec<_>>(), &label).1;
        let order = chosen("omp", &table.clone().k(4), &label);
        for k in 1..=3 {
            let best = subsets(columns, k).iter().map(|set| r2(set)).fold(0.0, f64::max);
            for t in 1..=order.len().min(columns - k) {
                let kappa = subsets(columns, k + t)
                    .iter()
                    .map(|set| least_eigenvalue(&set.iter().map(|j| &units[*j]).collect::<Vec<_>>()))
                    .fold(f64::INFINITY, f64::min);
                let (found, promised) = (r2(&order[..t]), (1.0 - (-kappa * t as f64 / k as f64).exp()) * best);
                assert!(found >= promised - 1e-9, "problem {seed}, {t} against {k}: {found} is less than {promised}");
                assert!(t < k || found <= 1.0 && best <= 1.0 + 1e-12);
                tightest = tightest.min(found / promised);
                checked += 1;
            }
        }
    }
    // Were the bound far away, nothing would have been seen.
    assert!(checked > 400 && tightest < 3.0, "{checked} {tightest}");
}

fn softmax(w: &[f64]) -> Vec<f64> {
    let powers: Vec<f64> = w.iter().map(|w| w.exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

/// A minimum near a start, by steps along the slope that are halved until they lead down. The slope is taken by differences.
fn minimize(start: Vec<f64>, value: impl Fn(&[f64]) -> f64) -> (Vec<f64>, f64) {
    let (mut x, mut size) = (start, 0.1);
    let mut here = value(&x);
    for _ in 0..20_000 {
        let slope: Vec<f64> = (0..x.len())
            .map(|i| {
                let at = |change: f64| {
                    let mut there = x.clone();
                    there[i] += change;
                    value(&there)
                };
                (at(1e-6) - at(-1e-6)) / 2e-6
            })
            .collect();
        if dot(&slope, &slope) < 1e-18 {
            break;
        }
        loop {
            let there: Vec<f64> = x.iter().zip(&slope).map(|(x, s)| x - size * s).collect();
            let next = value(&there);
            if next < here {
                (x, here, size) = (there, next, 1.5 * size);
                break;
            }
            size *= 0.5;
            if size < 1e-14 {
                return (x, here);
            }
        }
    }
    (x, here)
}

/// Q*(q) = inf over w of ‖w‖² + Σ q_i / softmax_i(w)², from its definition.
fn q_star(q: &[f64]) -> f64 {
    minimize(vec![0.0; q.len()], |w| dot(w, w) + q.iter().zip(softmax(w)).map(|(q, s)| q / (s * s)).sum::<f64>()).1
}

/// Lemma 3.2: minimising over mask and coefficients is minimising over their product under the penalty Q*(β²), which is concave and grows in every argument.
#[test]
fn a_softmax_mask_stands_for_a_concave_penalty() {
    let mut random: Random = Run::new(5).random("lemma", 0);
    for _ in 0..12 {
        let mut draw = || -> Vec<f64> { (0..3).map(|_| random.uniform() * 2.0).collect() };
        let (a, b) = (draw(), draw());
        let middle: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 0.5 * (a + b)).collect();
        assert!(q_star(&middle) >= 0.5 * (q_star(&a) + q_star(&b)) - 1e-6, "{a:?} {b:?}");
        let larger: Vec<f64> = a.iter().map(|x| x + 0.1).collect();
        assert!(q_star(&larger) > q_star(&a));
    }
    let (table, label) = problem(12, 3, 7);
    let x: Vec<Vec<f64>> = (0..3).map(|j| unit(table.column(j))).collect();
    let y = unit(&label);
    let fit =
        |beta: &[f64]| -> f64 { (0..12).map(|row| ((0..3).map(|j| x[j][row] * beta[j]).sum::<f64>() - y[row]).powi(2)).sum() };
    for lambda in [0.02, 0.1] {
        // Given the mask, the coefficients are those of a ridge regression; both are left to the same plain descent.
        let joint = |v: &[f64]| {
            let beta: Vec<f64> = softmax(&v[..3]).iter().zip(&v[3..]).map(|(s, t)| s * t).collect();
            fit(&beta) + 0.5 * lambda * dot(v, v)
        };
        let starts = [[0.0; 6], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, -1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0, -1.0, 1.0]];
        let jointly = starts.iter().map(|start| minimize(start.to_vec(), joint).1).fold(f64::INFINITY, f64::min);
        // At the best product both say the same; nowhere is the penalised fit below.
        let (v, _) = starts.iter().map(|start| minimize(start.to_vec(), joint)).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let best: Vec<f64> = softmax(&v[..3]).iter().zip(&v[3..]).map(|(s, t)| s * t).collect();
        let penalized = |beta: &[f64]| fit(beta) + 0.5 * lambda * q_star(&beta.iter().map(|b| b * b).collect::<Vec<_>>());
        assert!((penalized(&best) - jointly).abs() < 1e-5 * jointly, "{} {jointly}", penalized(&best));
        for _ in 0..20 {
            let beta: Vec<f64> = best.iter().map(|b| b + 0.3 * random.normal()).collect();
            assert!(penalized(&beta) > jointly - 1e-7);
        }
    }
}

/// Objective 5, `‖X (s(w) ∘ θ) − y‖² + λ/2 (‖w‖² + ‖θ‖² outside S)`, by plain gradient descent on the rows. It begins with w = 1 and θ = 0: with both at 1 it
/// would keep them equal, and end in the saddle at 0 where their product should be negative.
fn attention_by_descent(x: &[Vec<f64>], y: &[f64], chosen: &[usize], lambda: f64) -> (Vec<f64>, f64) {
    let d = x.len();
    let is_free = |j: usize| !chosen.contains(&j);
    let (mut w, mut theta) = (vec![1.0; d], vec![0.0; d]);
    let mask = |w: &[f64], j: usize| if is_free(j) { w[j] } else { 1.0 };
    let residual = |w: &[f64], theta: &[f64]| -> Vec<f64> {
        (0..y.len()).map(|row| (0..d).map(|j| x[j][row] * mask(w, j) * theta[j]).sum::<f64>() - y[row]).collect()
    };
    let value = |w: &[f64], theta: &[f64]| {
        let r = residual(w, theta);
        let penalty: f64 = (0..d).filter(|j| is_free(*j)).map(|j| w[j] * w[j] + theta[j] * theta[j]).sum();
        dot(&r, &r) + 0.5 * lambda * penalty
    };
    let mut size = 0.05;
    let mut here = value(&w, &theta);
    for _ in 0..60_000 {
        let r = residual(&w, &theta);
        let products: Vec<f64> = x.iter().map(|x| 2.0 * dot(x, &r)).collect();
        let of_w: Vec<f64> = (0..d).map(|j| if is_free(j) { products[j] * theta[j] + lambda * w[j] } else { 0.0 }).collect();
        let of_theta: Vec<f64> =
            (0..d).map(|j| products[j] * mask(&w, j) + if is_free(j) { lambda * theta[j] } else { 0.0 }).collect();
        if dot(&of_w, &of_w) + dot(&of_theta, &of_theta) < 1e-20 {
            break;
        }
        loop {
            let step = |from: &[f64], slope: &[f64]| -> Vec<f64> { from.iter().zip(slope).map(|(x, s)| x - size * s).collect() };
            let (next_w, next_theta) = (step(&w, &of_w), step(&theta, &of_theta));
            let next = value(&next_w, &next_theta);
            if next <= here {
                (w, theta, here, size) = (next_w, next_theta, next, 1.1 * size);
                break;
            }
            size *= 0.5;
            if size < 1e-13 {
                return (w, here);
            }
        }
    }
    (w, here)
}

/// What minimises objective 5 just below the penalty at which all weights vanish is what our solver, which alternates ridge regressions, chooses; and its value is
/// that of the LASSO: at the optimum |w| = |θ|, so that half the penalty of both is that of their product.
#[test]
fn gradient_descent_on_the_objective_attends_to_the_same_features() {
    let mut rounds = 0;
    for seed in 0..30 {
        let (rows, columns) = [(30, 6), (20, 9)][seed as usize % 2];
        let (table, label) = problem(rows, columns, 100 + seed);
        let x: Vec<Vec<f64>> = (0..columns).map(|j| unit(table.column(j))).collect();
        let y = unit(&label);
        let ours = chosen("sequential_attention", &table.clone().k(3), &label);
        for round in 0..ours.len() {
            let set = &ours[..round];
            // The residual of least squares on what is chosen, whose products with the others are where weights begin to live.
            let columns_of: Vec<&[f64]> = set.iter().map(|j| &x[*j][..]).collect();
            let beta = if set.is_empty() { Vec::new() } else { least_squares(&columns_of, &y).0 };
            let residual: Vec<f64> =
                (0..rows).map(|row| y[row] - set.iter().zip(&beta).map(|(j, b)| b * x[*j][row]).sum::<f64>()).collect();
            let mut products: Vec<(f64, usize)> =
                (0..columns).filter(|j| !set.contains(j)).map(|j| (dot(&x[j], &residual).abs(), j)).collect();
            products.sort_by(|a, b| b.0.total_cmp(&a.0));
            // Ties are another matter, and near ones take a descent forever.
            if products[1].0 > 0.95 * products[0].0 {
                continue;
            }
            let lambda = 0.97 * 2.0 * products[0].0;
            let (w, value) = attention_by_descent(&x, &y, set, lambda);
            let attended = (0..columns).filter(|j| !set.contains(j)).max_by(|a, b| w[*a].abs().total_cmp(&w[*b].abs())).unwrap();
            assert_eq!(attended, ours[round], "problem {seed}, round {round}: {w:?}");
            let lasso = lasso_value(&x, &y, set, lambda);
            assert!((value - lasso).abs() < 1e-6 * lasso, "problem {seed}, round {round}: {value} {lasso}");
            rounds += 1;
        }
    }
    assert!(rounds > 40, "{rounds}");
}

/// The least `‖Xβ − y‖² + λ Σ |β_j| outside S`, by coordinate descent.
fn lasso_value(x: &[Vec<f64>], y: &[f64], free: &[usize], lambda: f64) -> f64 {
    let mut beta = vec![0.0; x.len()];
    let mut residual = y.to_vec();
    for _ in 0..20_000 {
        for j in 0..x.len() {
            let rho = dot(&x[j], &residual) + beta[j];
            let new = if free.contains(&j) { rho } else { rho.signum() * (rho.abs() - 0.5 * lambda).max(0.0) };
            residual.iter_mut().zip(&x[j]).for_each(|(r, x)| *r -= (new - beta[j]) * x);
            beta[j] = new;
        }
    }
    let penalty: f64 = (0..x.len()).filter(|j| !free.contains(j)).map(|j| beta[j].abs()).sum();
    dot(&residual, &residual) + lambda * penalty
}
