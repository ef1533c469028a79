use rayon::prelude::*;

use crate::trees::columns::{Columns, ranking};
use crate::{Check, Problem, Random, Ranking, Reads, Result, Run, Selector, choice, selector};

choice! {
    /// What a split counts.
    pub enum Counting {
        /// What it explains: by how much it makes the rows of its node more likely, as a logarithm.
        Evidence = "evidence",
        /// One.
        Splits = "splits",
    }
}

selector! {
    /// BART: how often small Bayesian trees split by each feature.
    ///
    /// Bayesian additive regression trees: the label is a sum of small trees, each of which explains what the others leave. Trees are drawn, not chosen: at every node a split of any feature is as likely as it explains the rows of the node, and so is no split, which the
    /// prior makes the more likely the deeper the node is. Every sweep draws all trees anew, and a feature's importance is its share of what all splits in the sweeps after `burn_in` explain. `counting => 'splits'` is its share of the splits themselves, as the
    /// authors have it: a text of few levels, which a few splits use up, then falls behind numbers that say less.
    ///
    /// This is XBART, which grows a tree from its root in one go, where BART changes it here and there: some dozen sweeps do for thousands. Numbers are cut at up to 100 quantiles; NULL is larger than all numbers; a text is parted by one of its
    /// levels. Classes are the numbers 0 and 1, more than two as many columns, which the trees have in common. Their probability is not modelled.
    ///
    /// Cost: `iterations × trees × rows × features` additions for each level of a tree.
    ///
    /// Source: He, Yalov and Hahn, 2019. XBART: accelerated Bayesian additive regression trees.
    #[selector(
        name = "bart",
        aliases = [],
        labels = Any,
        score = "share of what the splits explain, or of the splits",
    )]
    pub struct Bart {
        /// Trees that are added up.
        trees: usize = 50, Check::Between(1.0, 10000.0);
        /// How often all of them are drawn.
        iterations: usize = 20, Check::Between(1.0, 10000.0);
        /// Share of the iterations before splits are counted.
        burn_in: f64 = 0.75, Check::Between(0.0, 0.99);
        /// What a split counts: what it explains, or one.
        counting: Counting = Counting::Evidence;
    }
}

/// Places where numbers are cut.
const BINS: usize = 101;
/// The prior of a split at a depth: `ALPHA (1 + depth)^−BETA`.
const ALPHA: f64 = 0.95;
const BETA: f64 = 1.25;
const DEPTH_MAX: usize = 250;
/// What the noise's variance is before there are rows: as if there had been so many, with such a sum of squares.
const NOISE_ROWS: f64 = 16.0;
const NOISE_SQUARES: f64 = 4.0;
/// Additions that are worth a second thread.
const PARALLEL: usize = 1 << 16;

impl Selector for Bart {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let rows = problem.rows();
        let bins = problem.bins(BINS, run)?;
        let columns = Columns::of(problem, &bins);
        let (n, q) = (rows.rows(), rows.labels.len());
        // Residuals, what each tree says, weights and the rows of a node.
        let numbers = n * (q + self.trees * q + 2) + columns.len() * (BINS + 2) * (q + 4);
        let _memory = run.reserve(numbers * size_of::<f64>() + 3 * n * size_of::<u32>())?;
        let mut forest = Forest::new(problem, &columns, self.trees, run);
        let burnt = (self.burn_in * self.iterations as f64) as usize;
        let mut shares = vec![0.0; columns.len()];
        for sweep in 0..self.iterations {
            let mut splits = vec![0.0; columns.len()];
            for tree in 0..self.trees {
                run.step(sweep * self.trees + tree, self.iterations * self.trees)?;
                forest.draw(tree, self.counting, &mut splits)?;
            }
            let total: f64 = splits.iter().sum();
            if sweep >= burnt && total > 0.0 {
                let part = 1.0 / (total * (self.iterations - burnt) as f64);
                shares.iter_mut().zip(&splits).for_each(|(share, count)| *share += part * count);
            }
        }
        Ok(ranking(problem, &columns.importances(problem, &shares)))
    }
}

struct Forest<'a> {
    columns: &'a Columns<'a>,
    rows: usize,
    /// How often each row counts; empty: once.
    weights: &'a [f64],
    total: f64,
    /// What each tree says of each row, label by label.
    said: Vec<Vec<Vec<f64>>>,
    /// The label's columns, centred and of variance 1, less what all trees say.
    residuals: Vec<Vec<f64>>,
    /// The noise's variance, and what a leaf's mean has.
    noise: Vec<f64>,
    spread: f64,
    random: Random,
    run: &'a Run,
}

/// Rows that are in the same leaf so far.
struct Node {
    start: usize,
    end: usize,
    depth: usize,
}

/// A split: of which feature, at which code, and how likely it is, as a logarithm.
type Cut = (usize, u8, f64);

impl<'a> Forest<'a> {
    fn new(problem: &'a Problem, columns: &'a Columns<'a>, trees: usize, run: &'a Run) -> Self {
        let rows = problem.rows();
        let total = rows.weight();
        let weight = |row: usize| rows.weights.get(row).copied().unwrap_or(1.0);
        let scaled = |label: &Vec<f64>| -> Vec<f64> {
            let variance = label.iter().enumerate().map(|(row, y)| weight(row) * y * y).sum::<f64>() / total;
            let factor = if variance > 0.0 { 1.0 / variance.sqrt() } else { 0.0 };
            label.iter().map(|y| factor * y).collect()
        };
        let labels: Vec<Vec<f64>> = rows.labels.iter().map(scaled).collect();
        let (n, q) = (rows.rows(), labels.len());
        Self {
            columns,
            rows: n,
            residuals: labels,
            weights: &rows.weights,
            total,
            said: vec![vec![vec![0.0; n]; q]; trees],
            noise: vec![1.0; q],
            spread: 1.0 / trees as f64,
            random: run.random("bart", 0),
            run,
        }
    }

    fn weight(&self, row: u32) -> f64 {
        self.weights.get(row as usize).copied().unwrap_or(1.0)
    }

    /// Draws a tree anew for what the others leave.
    fn draw(&mut self, tree: usize, counting: Counting, splits: &mut [f64]) -> Result<()> {
        let mut said = std::mem::take(&mut self.said[tree]);
        for (residual, said) in self.residuals.iter_mut().zip(&said) {
            residual.iter_mut().zip(said).for_each(|(residual, said)| *residual += said);
        }
        let mut order: Vec<u32> = (0..self.rows as u32).collect();
        let mut nodes = vec![Node { start: 0, end: self.rows, depth: 0 }];
        while let Some(node) = nodes.pop() {
            self.run.check()?;
            let own = &mut order[node.start..node.end];
            match self.split(own, node.depth)? {
                Some((column, code, gain)) => {
                    splits[column] += if counting == Counting::Splits { 1.0 } else { gain.max(0.0) };
                    let middle = node.start + self.part(own, column, code);
                    nodes.push(Node { start: middle, end: node.end, depth: node.depth + 1 });
                    nodes.push(Node { start: node.start, end: middle, depth: node.depth + 1 });
                }
                None => self.settle(own, &mut said),
            }
        }
        for (residual, said) in self.residuals.iter_mut().zip(&said) {
            residual.iter_mut().zip(said).for_each(|(residual, said)| *residual -= said);
        }
        self.said[tree] = said;
        for q in 0..self.noise.len() {
            let squares = |(row, residual): (usize, &f64)| self.weight(row as u32) * residual * residual;
            let sum: f64 = self.residuals[q].iter().enumerate().map(squares).sum();
            let shape = 0.5 * (NOISE_ROWS + self.total);
            self.noise[q] = (0.5 * (NOISE_SQUARES + sum) / gamma(shape, &mut self.random)).max(1e-12);
        }
        Ok(())
    }

    /// How well rows go with one mean, as a logarithm, from their weight and their sums.
    fn evidence(&self, weight: f64, sums: &[f64]) -> f64 {
        let of = |(sum, noise): (&f64, &f64)| {
            let both = noise + self.spread * weight;
            0.5 * ((noise / both).ln() + self.spread * sum * sum / (noise * both))
        };
        sums.iter().zip(&self.noise).map(of).sum()
    }

    /// A split of the rows, or none, as likely as they make it; with what it explains.
    fn split(&mut self, rows: &[u32], depth: usize) -> Result<Option<Cut>> {
        if rows.len() < 2 || depth >= DEPTH_MAX {
            return Ok(None);
        }
        let cuts = |column: usize| self.run.check().map(|()| self.cuts(column, rows));
        let cuts: Vec<Vec<Cut>> = match rows.len() * self.columns.len() >= PARALLEL {
            true => (0..self.columns.len()).into_par_iter().map(cuts).collect::<Result<_>>()?,
            false => (0..self.columns.len()).map(cuts).collect::<Result<_>>()?,
        };
        let count: usize = cuts.iter().map(Vec::len).sum();
        if count == 0 {
            return Ok(None);
        }
        let weight: f64 = rows.iter().map(|row| self.weight(*row)).sum();
        let sum = |label: &Vec<f64>| rows.iter().map(|row| self.weight(*row) * label[*row as usize]).sum();
        let sums: Vec<f64> = self.residuals.iter().map(sum).collect();
        let against = ((1.0 + depth as f64).powf(BETA) / ALPHA - 1.0) * count as f64;
        let whole = self.evidence(weight, &sums);
        let none = whole + against.ln();
        let largest = cuts.iter().flatten().map(|cut| cut.2).fold(none, f64::max);
        let all: f64 = cuts.iter().flatten().map(|cut| (cut.2 - largest).exp()).sum();
        let stays = (none - largest).exp();
        let mut at = self.random.uniform() * (all + stays) - stays;
        if at < 0.0 {
            return Ok(None);
        }
        let mut last = None;
        for cut in cuts.iter().flatten() {
            last = Some((cut.0, cut.1, cut.2 - whole));
            at -= (cut.2 - largest).exp();
            if at < 0.0 {
                break;
            }
        }
        Ok(last)
    }

    /// Every way to part some rows by a feature.
    fn cuts(&self, column: usize, rows: &[u32]) -> Vec<Cut> {
        let (codes, binned, q) = (self.columns.codes[column], self.columns.binned[column], self.noise.len());
        let stride = q + 1;
        let mut sums = vec![0.0; binned.width() * stride];
        if let ([residual], true) = (&self.residuals[..], self.weights.is_empty()) {
            for row in rows {
                let at = 2 * usize::from(codes[*row as usize]);
                sums[at] += 1.0;
                sums[at + 1] += residual[*row as usize];
            }
        } else {
            for row in rows {
                let (weight, sums) = (self.weight(*row), &mut sums[stride * usize::from(codes[*row as usize])..][..stride]);
                sums[0] += weight;
                sums[1..].iter_mut().zip(&self.residuals).for_each(|(sum, residual)| *sum += weight * residual[*row as usize]);
            }
        }
        let mut all = vec![0.0; stride];
        let occupied: Vec<usize> = (0..binned.width()).filter(|code| sums[code * stride] > 0.0).collect();
        for code in &occupied {
            all.iter_mut().zip(&sums[code * stride..]).for_each(|(all, sum)| *all += sum);
        }
        let mut left = vec![0.0; stride];
        let mut cuts = Vec::with_capacity(occupied.len());
        // The last code has nothing to its right; of two levels either parts them.
        let most = if binned.is_ordered || occupied.len() == 2 { occupied.len().saturating_sub(1) } else { occupied.len() };
        for code in &occupied[..if occupied.len() < 2 { 0 } else { most }] {
            let own = &sums[code * stride..][..stride];
            match binned.is_ordered {
                true => left.iter_mut().zip(own).for_each(|(left, sum)| *left += sum),
                false => left.copy_from_slice(own),
            }
            let right: Vec<f64> = all.iter().zip(&left).map(|(all, left)| all - left).collect();
            let evidence = self.evidence(left[0], &left[1..]) + self.evidence(right[0], &right[1..]);
            cuts.push((column, *code as u8, evidence));
        }
        cuts
    }

    /// Puts the rows that go left first, and says how many they are.
    fn part(&self, rows: &mut [u32], column: usize, code: u8) -> usize {
        let (codes, is_ordered) = (self.columns.codes[column], self.columns.binned[column].is_ordered);
        let goes_left = |row: &u32| if is_ordered { codes[*row as usize] <= code } else { codes[*row as usize] == code };
        let (left, right): (Vec<u32>, Vec<u32>) = rows.iter().partition(|row| goes_left(row));
        rows[..left.len()].copy_from_slice(&left);
        rows[left.len()..].copy_from_slice(&right);
        left.len()
    }

    /// Draws the mean of a leaf.
    fn settle(&mut self, rows: &[u32], said: &mut [Vec<f64>]) {
        let weight: f64 = rows.iter().map(|row| self.weight(*row)).sum();
        for (q, said) in said.iter_mut().enumerate() {
            let sum: f64 = rows.iter().map(|row| self.weight(*row) * self.residuals[q][*row as usize]).sum();
            let both = self.noise[q] + self.spread * weight;
            let mean = self.spread * sum / both + (self.spread * self.noise[q] / both).sqrt() * self.random.normal();
            rows.iter().for_each(|row| said[*row as usize] = mean);
        }
    }
}

/// A gamma variate of scale 1 and a shape of at least 1 (Marsaglia and Tsang, 2000).
fn gamma(shape: f64, random: &mut Random) -> f64 {
    let d = shape - 1.0 / 3.0;
    loop {
        let x = random.normal();
        let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
        if v > 0.0 && (1.0 - random.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    #[test]
    fn gamma_variates_have_their_mean_and_variance() {
        let mut random = Run::new(3).random("gamma", 0);
        for shape in [1.0, 8.5, 300.0] {
            let draws: Vec<f64> = (0..20_000).map(|_| gamma(shape, &mut random)).collect();
            let mean = draws.iter().sum::<f64>() / 20_000.0;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
            assert!((mean / shape - 1.0).abs() < 0.03 && (variance / shape - 1.0).abs() < 0.06, "{shape}: {mean} {variance}");
        }
    }

    /// Evidence is the integral over the leaf's mean, which is known for one row: a normal density of noise and spread, by that of noise alone.
    #[test]
    fn evidence_is_an_integral() {
        let table = Table::random(20, 2, 1);
        let label: Vec<f64> = table.column(0).to_vec();
        let problem = table.problem_of_rows(&label);
        let run = Run::new(0);
        let bins = problem.bins(BINS, &run).unwrap();
        let columns = Columns::of(&problem, &bins);
        let mut forest = Forest::new(&problem, &columns, 4, &run);
        forest.noise = vec![0.7];
        let density = |y: f64, variance: f64| -0.5 * ((std::f64::consts::TAU * variance).ln() + y * y / variance);
        for y in [-1.3, 0.0, 2.0] {
            let expected = density(y, 0.7 + 0.25) - density(y, 0.7);
            assert!((forest.evidence(1.0, &[y]) - expected).abs() < 1e-12);
        }
        // Of two rows by quadrature.
        let (a, b) = (0.4, -1.1);
        let step = 1e-3;
        let height = |mean: f64| (density(a - mean, 0.7) + density(b - mean, 0.7) + density(mean, 0.25)).exp();
        let area: f64 = (-8000..8000).map(|at| height(f64::from(at) * step)).sum::<f64>() * step;
        let expected = area.ln() - density(a, 0.7) - density(b, 0.7);
        assert!((forest.evidence(2.0, &[a + b]) - expected).abs() < 1e-6);
    }

    /// Friedman's first function: a product in a sine, a parabola, two lines, and five columns of noise.
    #[test]
    fn friedmans_function_is_seen() {
        let (uniform, noise) = (Table::random(500, 10, 7), Table::random(500, 1, 8));
        let table = (0..10).fold(Table::new(), |table, j| {
            let column: Vec<f64> = uniform.column(j).iter().map(|x| 1.0 / (1.0 + (-1.7 * x).exp())).collect();
            table.numbers(&format!("x{j}"), &column)
        });
        let x = |row: usize, j: usize| table.column(j)[row];
        let label: Vec<f64> = (0..500)
            .map(|row| {
                let wave = (std::f64::consts::PI * x(row, 0) * x(row, 1)).sin();
                10.0 * wave + 20.0 * (x(row, 2) - 0.5).powi(2) + 10.0 * x(row, 3) + 5.0 * x(row, 4) + noise.column(0)[row]
            })
            .collect();
        let ranking = Bart::default().select(&table.k(10).problem_of_rows(&label), &Run::new(1)).unwrap();
        let mut first = ranking.units()[..5].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3, 4], "{ranking:?}");
        assert!((ranking.choices.iter().map(|choice| choice.score).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
