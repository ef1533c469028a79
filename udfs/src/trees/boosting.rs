//! Trees that correct each other: each is fitted to the gradient of the loss that the ones before it leave.

use rayon::prelude::*;

use crate::trees::boosted::{Step, grow};
use crate::trees::columns::Columns;
use crate::trees::forest::{Answer, Lesson, prediction_bytes, scale_for, short};
use crate::trees::target::{Gradients, Item};
use crate::trees::tree::{Node, Tree};
use crate::{Lease, Result, Run};

/// How trees are boosted.
#[derive(Debug, Clone)]
pub(crate) struct Boosting {
    pub rounds: usize,
    pub learning_rate: f64,
    pub depth: usize,
    pub l2: f64,
    /// Least curvature of a leaf: of numbers its rows, of classes at most a quarter of them.
    pub leaf_weight: f64,
    /// The share of the rows that each round learns from.
    pub row_share: f64,
    /// Rounds without progress on the rows held out after which it ends.
    pub patience: usize,
}

impl Default for Boosting {
    fn default() -> Self {
        Self { rounds: 100, learning_rate: 0.1, depth: 6, l2: 1.0, leaf_weight: 1.0, row_share: 1.0, patience: 10 }
    }
}

/// A tree and what each of its leaves adds.
#[derive(Debug)]
pub(crate) struct Correction {
    pub tree: Tree,
    pub values: Vec<f64>,
    pub gains: Vec<(u32, f64)>,
}

/// Trees that have learnt.
#[derive(Debug)]
pub(crate) struct Boosted {
    /// What is predicted before the first tree: of numbers the standardised one, of classes log odds.
    base: Vec<f64>,
    /// For each round a tree for each output.
    pub rounds: Vec<Vec<Correction>>,
    /// Mean and spread of a label of numbers.
    pub scale: (f64, f64),
    lease: Lease,
}

/// The label as losses see it.
struct Loss<'a> {
    answer: &'a Answer,
    scale: (f64, f64),
}

impl Loss<'_> {
    fn number(&self, numbers: &[f64], row: usize) -> f64 {
        (numbers[row] - self.scale.0) / self.scale.1
    }

    /// The logarithm that odds of many classes are measured against; 0 where there is one output.
    fn level(&self, scores: &[Vec<f64>], row: usize) -> f64 {
        if scores.len() == 1 {
            return 0.0;
        }
        let most = scores.iter().fold(f64::NEG_INFINITY, |most, scores| most.max(scores[row]));
        most + scores.iter().map(|scores| (scores[row] - most).exp()).sum::<f64>().ln()
    }

    /// Gradient and curvature in the score of an output.
    fn slope(&self, output: usize, score: f64, level: f64, row: usize) -> (f64, f64) {
        match self.answer {
            Answer::Numbers(numbers) => (score - self.number(numbers, row), 1.0),
            Answer::Classes { of_row, classes: 2 } => {
                let p = 1.0 / (1.0 + (-score).exp());
                (p - f64::from(of_row[row]), p * (1.0 - p))
            }
            Answer::Classes { of_row, .. } => {
                let p = (score - level).exp();
                // Twice the diagonal of the curvature bounds what the outputs do together.
                (p - f64::from(of_row[row] as usize == output), 2.0 * p * (1.0 - p))
            }
        }
    }

    fn loss(&self, scores: &[f64], row: usize) -> f64 {
        match self.answer {
            Answer::Numbers(numbers) => (scores[0] - self.number(numbers, row)).powi(2),
            Answer::Classes { of_row, classes: 2 } => {
                scores[0].max(0.0) - scores[0] * f64::from(of_row[row]) + (-scores[0].abs()).exp().ln_1p()
            }
            Answer::Classes { of_row, .. } => {
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                most + scores.iter().map(|score| (score - most).exp()).sum::<f64>().ln() - scores[of_row[row] as usize]
            }
        }
    }
}

impl Boosting {
    /// Learns from the lesson; with judges, which are rows of the same columns, until these are no longer predicted better.
    pub fn fit(&self, lesson: &Lesson<'_>, judges: &[u32], run: &Run) -> Result<Boosted> {
        let outputs = lesson.answer.outputs();
        let all = lesson.columns.codes.first().map_or(0, |codes| codes.len());
        let _lease = run.reserve(all * (outputs + 1) * size_of::<f64>())?;
        let (base, scale) = start(lesson);
        let loss = Loss { answer: &lesson.answer, scale };
        let mut boosted = Boosted { base, rounds: Vec::new(), scale, lease: run.reserve(0)? };
        let mut scores: Vec<Vec<f64>> = boosted.base.iter().map(|base| vec![*base; all]).collect();
        let mut best = (f64::INFINITY, 0);
        for round in 0..self.rounds {
            run.step(round, self.rounds)?;
            let drawn = self.drawn(lesson, round, run);
            let levels: Vec<f64> = match outputs {
                1 => Vec::new(),
                _ => (0..all).into_par_iter().map(|row| loss.level(&scores, row)).collect(),
            };
            let correct = |(output, scores): (usize, &mut Vec<f64>)| -> Result<Correction> {
                let _lease = run.reserve(lesson.rows.len() * size_of::<Item>())?;
                let (step, items, target) = self.step(lesson, &loss, &drawn, output, scores, &levels, run)?;
                let values: Vec<f64> = step.leaves.iter().map(|(sums, _)| self.learning_rate * target.leaf_value(sums)).collect();
                let code = |row: u32, column: usize| lesson.columns.codes[column][row as usize];
                let mut add = |row: u32, leaf: usize| scores[row as usize] += values[leaf];
                if drawn.is_some() {
                    lesson.rows.iter().for_each(|row| add(*row, step.tree.leaf(|column| code(*row, column))));
                } else {
                    for (leaf, (_, rows)) in step.leaves.iter().enumerate() {
                        items[rows.clone()].iter().for_each(|item| add(item.row, leaf));
                    }
                }
                judges.iter().for_each(|row| add(*row, step.tree.leaf(|column| code(*row, column))));
                Ok(Correction { tree: step.tree, values, gains: step.gains })
            };
            let corrections = scores.par_iter_mut().enumerate().map(correct).collect::<Result<Vec<_>>>()?;
            let bytes = |correction: &Correction| correction.tree.nodes.len() * (size_of::<Node>() + 2 * size_of::<f64>());
            boosted.lease.grow(corrections.iter().map(bytes).sum())?;
            boosted.rounds.push(corrections);
            if !judges.is_empty() {
                let judged = |row: &u32| {
                    let scores: Vec<f64> = scores.iter().map(|scores| scores[*row as usize]).collect();
                    f64::from(lesson.counts.get(*row as usize)) * loss.loss(&scores, *row as usize)
                };
                let total: f64 = judges.iter().map(judged).sum();
                if total < best.0 {
                    best = (total, round + 1);
                } else if round + 1 >= best.1 + self.patience {
                    break;
                }
            }
        }
        if !judges.is_empty() {
            boosted.rounds.truncate(best.1.max(1));
        }
        Ok(boosted)
    }

    /// How often each row is learnt from in a round; `None`: as often as its weight says.
    fn drawn(&self, lesson: &Lesson<'_>, round: usize, run: &Run) -> Option<Vec<u32>> {
        if self.row_share >= 1.0 {
            return None;
        }
        let mut random = run.random("boosting rows", round as u64);
        let times = |row: &u32| {
            let count = lesson.counts.get(*row as usize);
            let mut is_in = || random.uniform() < self.row_share;
            // A weight of 2 is a row twice, drawn twice; other weights come or stay away as a whole.
            match lesson.counts.is_whole() && count <= 10 {
                true => (0..count).filter(|_| is_in()).count() as u32,
                false => {
                    if is_in() {
                        count
                    } else {
                        0
                    }
                }
            }
        };
        Some(lesson.rows.iter().map(times).collect())
    }

    /// One tree: the slopes of the loss as whole numbers, and the tree that is fitted to them.
    #[allow(clippy::too_many_arguments)]
    fn step(
        &self,
        lesson: &Lesson<'_>,
        loss: &Loss<'_>,
        drawn: &Option<Vec<u32>>,
        output: usize,
        scores: &[f64],
        levels: &[f64],
        run: &Run,
    ) -> Result<(Step, Vec<Item>, Gradients)> {
        run.check()?;
        let slope = |row: usize| loss.slope(output, scores[row], levels.get(row).copied().unwrap_or(0.0), row);
        let is_number = matches!(lesson.answer, Answer::Numbers(_));
        let most = match is_number {
            true => lesson.rows.iter().fold(0.0, |most: f64, row| most.max(slope(*row as usize).0.abs())),
            false => 1.0,
        };
        let total = lesson.total() as f64;
        let value_scale = scale_for(most, total);
        let weight_scale = if is_number { 1.0 } else { scale_for(1.0, total) };
        let item = |(at, row): (usize, &u32)| {
            let times = drawn.as_ref().map_or_else(|| lesson.counts.get(*row as usize), |drawn| drawn[at]);
            let (value, weight) = slope(*row as usize);
            let times = i64::from(times);
            let value = times * nearest(value * value_scale);
            (times > 0).then(|| Item { row: *row, value, weight: times * nearest(weight * weight_scale).max(1) })
        };
        let mut items: Vec<Item> = lesson.rows.par_iter().with_min_len(ROWS_AT_ONCE).enumerate().filter_map(item).collect();
        let unit = lesson.counts.unit;
        let target = Gradients {
            value_unit: 1.0 / (value_scale * unit),
            weight_unit: 1.0 / (weight_scale * unit),
            l2: self.l2,
            leaf: self.leaf_weight,
        };
        let step = grow(&target, &lesson.columns, &mut items, self.depth, run)?;
        Ok((step, items, target))
    }
}

/// Rows whose slopes one thread works out: fewer take no time.
const ROWS_AT_ONCE: usize = 1 << 12;

/// Rounded; `f64::round` is a call of a library where processors are not known to round.
fn nearest(value: f64) -> i64 {
    (value + 0.5f64.copysign(value)) as i64
}

/// What is predicted before the first tree, and the mean and spread of a label of numbers.
fn start(lesson: &Lesson<'_>) -> (Vec<f64>, (f64, f64)) {
    match &lesson.answer {
        Answer::Numbers(numbers) => {
            let mean = lesson.mean(numbers);
            let squares: Vec<f64> = numbers.iter().map(|y| (y - mean).powi(2)).collect();
            let spread = short(lesson.mean(&squares).sqrt());
            (vec![0.0], (mean, if spread > 0.0 { spread } else { 1.0 }))
        }
        Answer::Classes { of_row, classes } => {
            let mut shares = vec![0.0; *classes];
            let total = lesson.total() as f64;
            for row in &lesson.rows {
                shares[of_row[*row as usize] as usize] += f64::from(lesson.counts.get(*row as usize)) / total;
            }
            // A class that no row has is unlikely, and not impossible.
            let log = |share: f64| share.max(1e-6).ln();
            let base = if *classes == 2 { vec![log(shares[1]) - log(shares[0])] } else { shares.into_iter().map(log).collect() };
            (base, (0.0, 1.0))
        }
    }
}

impl Boosted {
    /// The outputs for some rows of columns, one row after the other: of numbers the standardised one, of classes log odds.
    pub fn predict(&self, columns: &Columns<'_>, rows: &[u32], run: &Run) -> Result<Vec<f64>> {
        let _lease = run.reserve(rows.len() * prediction_bytes(self.base.len()))?;
        let one = |row: &u32| -> Result<Vec<f64>> {
            run.check()?;
            let mut scores = self.base.clone();
            for corrections in &self.rounds {
                for (score, correction) in scores.iter_mut().zip(corrections) {
                    *score += correction.values[correction.tree.leaf(|column| columns.codes[column][*row as usize])];
                }
            }
            Ok(scores)
        };
        let predicted: Vec<Vec<f64>> = rows.par_iter().map(one).collect::<Result<_>>()?;
        Ok(predicted.concat())
    }

    /// What is predicted before the first tree.
    pub fn base(&self) -> &[f64] {
        &self.base
    }

    /// What each column's splits gained.
    pub fn gains(&self, columns: usize) -> Vec<f64> {
        self.add_up(columns, |gain| gain)
    }

    /// How often each column was split.
    pub fn splits(&self, columns: usize) -> Vec<f64> {
        self.add_up(columns, |_| 1.0)
    }

    fn add_up(&self, columns: usize, of: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; columns];
        for (column, gain) in self.rounds.iter().flatten().flat_map(|correction| &correction.gains) {
            sums[*column as usize] += of(*gain);
        }
        sums
    }

    /// For each column, what the mean loss of some rows rises by when their values of that column are dealt out anew.
    pub fn permuted(&self, lesson: &Lesson<'_>, rows: &[u32], weight: impl Fn(u32) -> f64 + Sync, run: &Run) -> Result<Vec<f64>> {
        let (columns, outputs) = (&lesson.columns, self.base.len());
        if rows.len() < 2 {
            return Ok(vec![0.0; columns.len()]);
        }
        let _lease = run.reserve(rows.len() * (outputs + 1) * size_of::<f64>())?;
        let mut order = rows.to_vec();
        let mut random = run.random("permutation", 0);
        random.shuffle(&mut order);
        let shifts: Vec<usize> = (0..columns.len()).map(|_| 1 + random.below(order.len() - 1)).collect();
        let loss = Loss { answer: &lesson.answer, scale: self.scale };
        let before = self.predict(columns, &order, run)?;
        let total: f64 = order.iter().map(|row| weight(*row)).sum();
        let lost = |mixed: usize| -> Result<f64> {
            let asks = |correction: &Correction| correction.gains.iter().any(|(column, _)| *column as usize == mixed);
            let trees: Vec<(usize, &Correction)> =
                self.rounds.iter().flat_map(|round| round.iter().enumerate()).filter(|(_, tree)| asks(tree)).collect();
            let mut lost = 0.0;
            for (at, row) in order.iter().enumerate().filter(|_| !trees.is_empty()) {
                if at % 64 == 0 {
                    run.check()?;
                }
                let other = order[(at + shifts[mixed]) % order.len()];
                let plain = |column: usize| columns.codes[column][*row as usize];
                let dealt = |column: usize| columns.codes[column][if column == mixed { other } else { *row } as usize];
                if plain(mixed) == dealt(mixed) {
                    continue;
                }
                let own = &before[at * outputs..(at + 1) * outputs];
                let mut scores = own.to_vec();
                for (output, correction) in &trees {
                    let value = |leaf: usize| correction.values[leaf];
                    scores[*output] += value(correction.tree.leaf(dealt)) - value(correction.tree.leaf(plain));
                }
                lost += weight(*row) * (loss.loss(&scores, *row as usize) - loss.loss(own, *row as usize));
            }
            Ok(lost / total)
        };
        (0..columns.len()).into_par_iter().map(lost).collect()
    }
}
