use rayon::prelude::*;

use crate::kernels::tiles::Tiles;
use crate::linear::path::Penalized;
use crate::linear::penalized::Asked;
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::network::samples::Inputs;
use crate::neural::candidates::Candidates;
use crate::reading::bins::Counts;
use crate::trees::sample::Sampler;
use crate::{Check, Label, Lease, Problem, Ranking, Reads, Result, Rows, Run, Selector, selector};

selector! {
    /// HSIC Lasso: whose nearness explains that of the label.
    ///
    /// Two rows are near in a feature as `exp(−d² / 2σ²)` says, `σ` the feature's spread; in a label of numbers likewise, and in one of classes if the class is the same. The nearness of the label is explained by that of the features, with
    /// coefficients `β ≥ 0` and the penalty `λ Σ β`, which is lowered from where nothing is chosen to where `k` features are. Whatever connection there is shows, bent or not, and of features that say the same one is taken.
    ///
    /// Nearness is looked at in blocks of `block_rows` rows, and the rows are dealt out into blocks `deals` times. Rows that fill no block are left out of a deal. Within a block nearness is centred and has length 1, as the authors have it.
    /// Only products of features are kept, so that memory does not grow with rows. What two features do together, but neither alone, is not seen.
    ///
    /// Cost: `deals × rows × block_rows / 2` exponentials for each feature and half as many multiplications for each pair of features.
    ///
    /// Source: Climente-González, Azencott, Kaski and Yamada, 2019. Block HSIC Lasso: model-free biomarker detection for ultra-high dimensional data.
    #[selector(
        name = "hsic_lasso",
        aliases = [],
        labels = Any,
        score = "penalty at which the feature enters",
    )]
    pub struct HsicLasso {
        /// Rows of a block; 0: one block of all rows.
        block_rows: usize = 20, Check::Between(0.0, 100000.0);
        /// How often the rows are dealt out into blocks.
        deals: usize = 3, Check::Between(1.0, 1000.0);
    }
}

impl Selector for HsicLasso {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let rows = problem.rows();
        let candidates = Candidates::new(problem, rows, run)?;
        let alignment = self.alignment(problem, rows, &candidates, run)?;
        let mut weights = vec![1.0; candidates.len()];
        candidates.forced(problem).into_iter().for_each(|at| weights[at] = 0.0);
        let asked = Asked { problem, penalty: None, rows: rows.weight(), run };
        let mut ranking = asked.ranking(
            || NonNegative::new(&alignment, &weights, &candidates, problem.units.len(), run),
            |order, k| {
                let products = Products::of_units(problem, |unit| order.iter().any(|(other, _)| *other == unit), run)?;
                explain(problem, &products, run, order, k)
            },
            |_, _| {},
        )?;
        ranking.passed_over.extend(candidates.repeated);
        Ok(ranking)
    }
}

/// Inner products of nearness: of candidates with each other and with the label, by the number of blocks.
struct Alignment {
    count: usize,
    /// `count × count`
    products: Vec<f64>,
    label: Vec<f64>,
    _memory: Lease,
}

impl HsicLasso {
    fn alignment(&self, problem: &Problem, rows: &Rows, candidates: &Candidates, run: &Run) -> Result<Alignment> {
        let count = candidates.len();
        let order = copies(rows, run)?;
        let block = if self.block_rows == 0 { order.len() } else { self.block_rows.min(order.len()) };
        let entries = block * (block + 1) / 2;
        let deals = if block == order.len() { 1 } else { self.deals };
        let numbers = count * (count + 1) + (count + 1) * entries + rayon::current_num_threads() * 2 * block * block;
        let memory = run.reserve((numbers + order.len()) * size_of::<f64>() + Tiles::bytes_for(count + 1))?;
        let columns = Kernels::new(problem, rows, candidates);
        let mut tiles = Tiles::default();
        tiles.grow(count + 1);
        let mut blocks = 0;
        for deal in 0..deals {
            let mut dealt = order.clone();
            run.random("deal", deal as u64).shuffle(&mut dealt);
            for own in dealt.chunks_exact(block) {
                run.step(blocks, deals * (order.len() / block))?;
                let of = |at: usize| run.check().map(|()| columns.nearness(at, own));
                let near: Vec<Vec<f64>> = (0..=count).into_par_iter().map(of).collect::<Result<_>>()?;
                for start in (0..entries).step_by(Tiles::ROWS) {
                    run.check()?;
                    let end = entries.min(start + Tiles::ROWS);
                    near.iter().enumerate().for_each(|(at, near)| tiles.set(at, near[start..end].iter().copied()));
                    tiles.accumulate(end - start);
                }
                blocks += 1;
            }
        }
        let share = 1.0 / blocks as f64;
        let products = (0..count * count).map(|at| share * tiles.sum(at / count, at % count)).collect();
        let label = (0..count).map(|at| share * tiles.sum(at, count)).collect();
        Ok(Alignment { count, products, label, _memory: memory })
    }
}

/// The rows, each as often as it counts.
fn copies(rows: &Rows, run: &Run) -> Result<Vec<u32>> {
    let (all, counts) = ((0..rows.rows() as u32).collect::<Vec<u32>>(), Counts::of(rows));
    let (copies, is_once) = counts.copies(&all);
    if !is_once || rows.weights.is_empty() {
        return Ok(copies);
    }
    // Weights that do not count rows say how likely a row is to be drawn.
    let drawn = Sampler::new(&all, &counts).sample(&mut run.random("rows", 0)).drawn;
    Ok(all.iter().flat_map(|row| std::iter::repeat_n(*row, drawn[*row as usize] as usize)).collect())
}

/// How near rows are to each other.
struct Kernels<'a> {
    /// The columns of each candidate, each with its factor by the spread of the candidate.
    units: Vec<Vec<(&'a [f64], f64)>>,
    targets: &'a [f64],
    /// The factor of a label of numbers.
    factor: Option<f64>,
}

impl<'a> Kernels<'a> {
    fn new(problem: &Problem, rows: &'a Rows, candidates: &Candidates) -> Self {
        let inputs = Inputs::new(problem, rows, candidates.columns.clone());
        let (total, weight) = (rows.weight(), |row: usize| rows.weights.get(row).copied().unwrap_or(1.0));
        let variance = |values: &[f64]| values.iter().enumerate().map(|(row, x)| weight(row) * x * x).sum::<f64>() / total;
        let unit = |range: &std::ops::Range<usize>| {
            let columns: Vec<(&[f64], f64)> =
                range.clone().map(|input| (&rows.columns[candidates.columns[input]][..], inputs.factors[input])).collect();
            let spread = columns.iter().map(|(values, factor)| factor * factor * variance(values)).sum::<f64>().sqrt();
            columns.into_iter().map(|(values, factor)| (values, factor / spread)).collect()
        };
        let factor = matches!(problem.label, Label::Numbers).then(|| 1.0 / variance(&rows.labels[0]).sqrt());
        Self { units: candidates.inputs.iter().map(unit).collect(), targets: &rows.targets, factor }
    }

    /// The nearness of some rows, centred and of length 1: the upper triangle, what is off the diagonal times √2, because it is there twice. The last one is the label's.
    fn nearness(&self, at: usize, rows: &[u32]) -> Vec<f64> {
        let mut near = match (self.units.get(at), self.factor) {
            (Some(columns), _) => gaussian(columns, rows),
            (None, Some(factor)) => gaussian(&[(self.targets, factor)], rows),
            (None, None) => self.same_class(rows),
        };
        let n = rows.len();
        let means: Vec<f64> = near.chunks(n).map(|row| row.iter().sum::<f64>() / n as f64).collect();
        let mean = means.iter().sum::<f64>() / n as f64;
        for (row, of_row) in near.chunks_mut(n).zip(&means) {
            row.iter_mut().zip(&means).for_each(|(value, of_column)| *value += mean - of_row - of_column);
        }
        let length = near.iter().map(|value| value * value).sum::<f64>().sqrt() + TINY;
        let twice = std::f64::consts::SQRT_2 / length;
        let entry = |row: usize, column: usize| near[row * n + column] * if row == column { 1.0 / length } else { twice };
        (0..n).flat_map(|row| (row..n).map(move |column| (row, column))).map(|(row, column)| entry(row, column)).collect()
    }

    fn same_class(&self, rows: &[u32]) -> Vec<f64> {
        let class = |row: u32| self.targets[row as usize];
        let count = |of: f64| rows.iter().filter(|row| class(**row) == of).count() as f64;
        let shares: Vec<f64> = rows.iter().map(|row| 1.0 / count(class(*row))).collect();
        let near = |(a, share): (&u32, &f64)| rows.iter().map(|b| if class(*a) == class(*b) { *share } else { 0.0 }).collect();
        rows.iter().zip(&shares).map(near).collect::<Vec<Vec<f64>>>().concat()
    }
}

/// Keeps a block in which nothing varies at zero.
const TINY: f64 = 1e-9;

fn gaussian(columns: &[(&[f64], f64)], rows: &[u32]) -> Vec<f64> {
    let n = rows.len();
    let mut near = vec![0.0; n * n];
    for (values, factor) in columns {
        let values: Vec<f64> = rows.iter().map(|row| factor * values[*row as usize]).collect();
        for (row, a) in values.iter().enumerate() {
            near[row * n..row * n + row].iter_mut().zip(&values).for_each(|(sum, b)| *sum += (a - b) * (a - b));
        }
    }
    for row in 0..n {
        near[row * n + row] = 1.0;
        for column in 0..row {
            let value = (-0.5 * near[row * n + column]).exp();
            near[row * n + column] = value;
            near[column * n + row] = value;
        }
    }
    near
}

/// `½ ‖L − Σ β_j K_j‖² + penalty · Σ weight_j β_j` with `β ≥ 0`, by coordinate descent on the products.
struct NonNegative<'a> {
    alignment: &'a Alignment,
    weights: &'a [f64],
    candidates: &'a Candidates,
    units: usize,
    beta: Vec<f64>,
    /// What is left of the label's products.
    left: Vec<f64>,
    _memory: Lease,
}

const SWEEPS_MAX: usize = 10_000;
const ACCURACY: f64 = 1e-11;

impl<'a> NonNegative<'a> {
    fn new(alignment: &'a Alignment, weights: &'a [f64], candidates: &'a Candidates, units: usize, run: &Run) -> Result<Self> {
        let memory = run.reserve(4 * units * size_of::<f64>())?;
        let (beta, left) = (vec![0.0; alignment.count], alignment.label.clone());
        Ok(Self { alignment, weights, candidates, units, beta, left, _memory: memory })
    }

    fn move_to(&mut self, at: usize, value: f64) -> f64 {
        let change = value - self.beta[at];
        if change != 0.0 {
            let products = &self.alignment.products[at * self.alignment.count..][..self.alignment.count];
            self.left.iter_mut().zip(products).for_each(|(left, product)| *left -= product * change);
            self.beta[at] = value;
        }
        change.abs()
    }
}

impl Penalized for NonNegative<'_> {
    fn first(&mut self, run: &Run) -> Result<f64> {
        self.descend(f64::MAX / 1e10, run)?;
        let open = self.left.iter().zip(self.weights).filter(|(_, weight)| **weight > 0.0);
        Ok(open.map(|(left, _)| *left).fold(0.0, f64::max))
    }

    fn descend(&mut self, penalty: f64, run: &Run) -> Result<()> {
        for _ in 0..SWEEPS_MAX {
            run.check()?;
            let mut moved: f64 = 0.0;
            for at in 0..self.beta.len() {
                let energy = self.alignment.products[at * self.alignment.count + at];
                let pull = self.left[at] - penalty * self.weights[at];
                if energy > 0.0 && (self.beta[at] > 0.0 || pull > 0.0) {
                    let best = (self.beta[at] + pull / energy).max(0.0);
                    moved = moved.max(self.move_to(at, best));
                }
            }
            if moved <= ACCURACY {
                break;
            }
        }
        Ok(())
    }

    fn lengths(&self) -> Vec<f64> {
        let mut lengths = vec![0.0; self.units];
        self.candidates.units.iter().zip(&self.beta).for_each(|(unit, beta)| lengths[*unit] = *beta);
        lengths
    }

    fn coefficients(&self) -> Vec<f64> {
        self.beta.clone()
    }

    fn go_to(&mut self, coefficients: &[f64], _: &Run) -> Result<()> {
        for (at, value) in coefficients.iter().enumerate() {
            self.move_to(at, *value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// A parabola, a sine and a step: nothing that a straight line sees.
    #[test]
    fn connections_that_bend_are_seen() {
        let table = Table::random(400, 12, 5);
        let label: Vec<f64> = (0..400)
            .map(|row| {
                let x = |j: usize| table.column(j)[row];
                x(3) * x(3) + 1.5 * (2.0 * x(7)).cos() + f64::from(x(9).abs() > 1.0)
            })
            .collect();
        let mut chosen = HsicLasso::default().select(&table.k(3).problem_of_rows(&label), &Run::new(1)).unwrap().units();
        chosen.sort_unstable();
        assert_eq!(chosen, [3, 7, 9]);
    }

    /// Blocks that are the whole table, from the definition: HKH and its products, in plain loops.
    #[test]
    fn products_are_those_of_the_definition() {
        let table = Table::random(15, 3, 8);
        let label: Vec<f64> = (0..15).map(|row| f64::from(row % 3 == 0)).collect();
        let table = Table { task: Some(crate::Task::Classification), ..table };
        let problem = table.problem_of_rows(&label);
        let candidates = Candidates::new(&problem, problem.rows(), &Run::default()).unwrap();
        let whole = HsicLasso { block_rows: 0, deals: 3 };
        let found = whole.alignment(&problem, problem.rows(), &candidates, &Run::default()).unwrap();
        let centred = |near: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            let h = |i: usize, j: usize| f64::from(i == j) - 1.0 / 15.0;
            let entry =
                |i: usize, j: usize| (0..15).map(|a| (0..15).map(|b| h(i, a) * near(a, b) * h(b, j)).sum::<f64>()).sum::<f64>();
            let matrix: Vec<Vec<f64>> = (0..15).map(|i| (0..15).map(|j| entry(i, j)).collect()).collect();
            let length = matrix.iter().flatten().map(|value| value * value).sum::<f64>().sqrt();
            matrix.iter().map(|row| row.iter().map(|value| value / length).collect()).collect()
        };
        let feature = |j: usize| {
            let x = table.column(j);
            let mean = x.iter().sum::<f64>() / 15.0;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 15.0;
            centred(&|a, b| (-(x[a] - x[b]).powi(2) / (2.0 * variance)).exp())
        };
        let of_label = centred(&|a, b| if label[a] == label[b] { 1.0 / if label[a] > 0.0 { 5.0 } else { 10.0 } } else { 0.0 });
        let inner = |a: &[Vec<f64>], b: &[Vec<f64>]| a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum::<f64>();
        for i in 0..3 {
            assert!((found.label[i] - inner(&feature(i), &of_label)).abs() < 1e-7);
            for j in 0..3 {
                assert!((found.products[i * 3 + j] - inner(&feature(i), &feature(j))).abs() < 1e-7);
            }
        }
    }
}
