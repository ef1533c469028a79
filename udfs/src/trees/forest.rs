//! Many trees, each grown on rows of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::reading::bins::Counts;
use crate::trees::columns::Columns;
use crate::trees::sample::Sampler;
use crate::trees::target::{Classes, Item, Means};
use crate::trees::tree::{Grown, Growth, Tree, grow};
use crate::{Label, Lease, Result, Rows, Run};

/// How a forest is grown.
#[derive(Debug, Clone)]
pub(crate) struct Forest {
    pub trees: usize,
    pub depth: Option<usize>,
    /// Least rows of a leaf.
    pub leaf_rows: usize,
    /// Columns that a split is chosen among; `None`: the root of their number for classes, a third for numbers.
    pub features_per_split: Option<usize>,
    /// Whether each tree has a sample of the rows, or all of them.
    pub samples: bool,
    /// Whether columns are cut at random.
    pub is_random: bool,
    /// The name of its random numbers.
    pub purpose: &'static str,
}

/// Rows to learn from.
pub(crate) struct Lesson<'a> {
    pub columns: Columns<'a>,
    /// Which rows of the columns are learnt from.
    pub rows: Vec<u32>,
    pub counts: Counts,
    pub answer: Answer,
}

/// Bytes that a lesson takes for each row.
pub(crate) const LESSON_BYTES: usize = size_of::<f64>() + 2 * size_of::<u32>();

/// The label of every row of the columns.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Numbers(Vec<f64>),
    Classes { of_row: Vec<u32>, classes: usize },
}

impl Answer {
    pub fn of(rows: &Rows) -> Self {
        match &rows.label {
            Label::Numbers => Answer::Numbers(rows.targets.clone()),
            Label::Classes(classes) => Self::classes(&rows.targets, classes.len()),
        }
    }

    pub fn classes(targets: &[f64], classes: usize) -> Self {
        Answer::Classes { of_row: targets.iter().map(|class| *class as u32).collect(), classes }
    }

    /// Numbers that a prediction is: the number, the share of the second class, or the share of every class.
    pub fn outputs(&self) -> usize {
        match self {
            Answer::Classes { classes, .. } if *classes > 2 => *classes,
            _ => 1,
        }
    }
}

impl Lesson<'_> {
    /// About the weighted mean of numbers: short, so that the last digits of a sum, which depend on the order of the rows, do not show.
    pub fn mean(&self, numbers: &[f64]) -> f64 {
        let weighed = self.rows.iter().map(|row| (numbers[*row as usize], f64::from(self.counts.get(*row as usize))));
        let (sum, total) = weighed.fold((0.0, 0.0), |(sum, total), (y, weight)| (sum + weight * y, total + weight));
        short(sum / total)
    }

    /// The weight of the rows learnt from.
    pub fn total(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(self.counts.get(*row as usize))).sum()
    }
}

/// The nearest number with 22 digits, binary ones.
pub(crate) fn short(x: f64) -> f64 {
    f64::from_bits((x.to_bits() + (1 << 29)) & !((1 << 30) - 1))
}

/// The largest power of two with which `most` times it, `total` times, can still be added up. 1 if there is nothing to add.
pub(crate) fn scale_for(most: f64, total: f64) -> f64 {
    if most > 0.0 && most.is_finite() {
        (61.0 - (most * total.max(1.0)).log2()).floor().clamp(-1000.0, 1000.0).exp2()
    } else {
        1.0
    }
}

/// A tree with the prediction of each of its leaves.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub tree: Tree,
    pub values: Vec<f32>,
    _lease: Lease,
}

impl Forest {
    /// Grows the trees in parallel, and makes of each what is wanted: of the tree, the answer of each of its leaves, and the rows that it has not seen.
    pub fn grow<R: Send>(
        &self,
        lesson: &Lesson<'_>,
        keeps: bool,
        run: &Run,
        each: impl Fn(usize, Grown, Vec<f32>, Vec<u32>) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let d = lesson.columns.len();
        let per_split = self.features_per_split.unwrap_or(match lesson.answer {
            Answer::Numbers(_) => d / 3,
            Answer::Classes { .. } => d.isqrt(),
        });
        let depth = self.depth.unwrap_or(usize::MAX);
        let growth = Growth { per_split: per_split.clamp(1, d.max(1)), depth, is_random: self.is_random, keeps };
        let _lease = run.reserve(lesson.rows.len() * (size_of::<Item>() + size_of::<u64>()))?;
        let (base, unit, items) = items(lesson);
        let sampler = Sampler::new(&lesson.rows, &lesson.counts);
        let done = AtomicUsize::new(0);
        let one = |tree: usize| -> Result<R> {
            run.step(done.fetch_add(1, Ordering::Relaxed), self.trees)?;
            let mut random = run.random(self.purpose, tree as u64);
            let _lease = run.reserve(items.len() * size_of::<Item>() + if self.samples { sampler.bytes() } else { 0 })?;
            let (own, left_out, rows_unit) = if self.samples {
                let sample = sampler.sample(&mut random);
                let times = |(item, times): (&Item, &u32)| (*times > 0).then(|| item.times(i64::from(*times), &lesson.answer));
                let left_out = sample.left_out.iter().map(|at| lesson.rows[*at as usize]).collect();
                (items.iter().zip(&sample.drawn).filter_map(times).collect(), left_out, 1.0)
            } else {
                let weigh = |item: &Item| item.times(i64::from(lesson.counts.get(item.row as usize)), &lesson.answer);
                (items.iter().map(weigh).collect::<Vec<Item>>(), Vec::new(), lesson.counts.unit)
            };
            let leaf = (self.leaf_rows as f64 * rows_unit).min(9e15).round().max(1.0) as i64;
            let (grown, values) = match lesson.answer.outputs() {
                1 => {
                    let grown = grow(&Means { leaf }, &lesson.columns, own, growth, &mut random, run)?;
                    let value = |sums: &[i64]| (base + sums[0] as f64 / sums[1] as f64 * unit) as f32;
                    let values = grown.leaves.chunks(2).map(value).collect();
                    (grown, values)
                }
                classes => {
                    let grown = grow(&Classes { classes, leaf }, &lesson.columns, own, growth, &mut random, run)?;
                    let shares = |sums: &[i64]| {
                        let total = sums.iter().sum::<i64>() as f64;
                        sums.iter().map(|sum| (*sum as f64 / total) as f32).collect::<Vec<_>>()
                    };
                    let values = grown.leaves.chunks(classes).flat_map(shares).collect();
                    (grown, values)
                }
            };
            each(tree, grown, values, left_out)
        };
        (0..self.trees).into_par_iter().map(one).collect()
    }

    /// The trees, to predict with.
    pub fn fit(&self, lesson: &Lesson<'_>, run: &Run) -> Result<Vec<Fitted>> {
        self.grow(lesson, true, run, |_, mut grown, values, _| {
            // What is kept takes no more than it needs.
            grown.tree.nodes.shrink_to_fit();
            let bytes = grown.tree.nodes.len() * size_of::<crate::trees::tree::Node>() + values.len() * size_of::<f32>();
            Ok(Fitted { tree: grown.tree, values, _lease: run.reserve(bytes)? })
        })
    }
}

impl Item {
    /// The item so many times.
    fn times(&self, times: i64, answer: &Answer) -> Self {
        let value = if answer.outputs() == 1 { self.value * times } else { self.value };
        Self { value, weight: times, ..*self }
    }
}

/// Rows once each, with labels as multiples of a unit above a base.
fn items(lesson: &Lesson<'_>) -> (f64, f64, Vec<Item>) {
    let item = |row: &u32, value: i64| Item { row: *row, value, weight: 1 };
    match &lesson.answer {
        Answer::Classes { of_row, .. } => {
            let items = lesson.rows.iter().map(|row| item(row, i64::from(of_row[*row as usize])));
            (0.0, 1.0, items.collect())
        }
        Answer::Numbers(numbers) => {
            let base = lesson.mean(numbers);
            let most = lesson.rows.iter().fold(0.0, |most: f64, row| most.max((numbers[*row as usize] - base).abs()));
            // A sample may have ten times as many rows as there are.
            let scale = scale_for(most, 16.0 * lesson.total().max(lesson.rows.len() as u64) as f64);
            let value = |row: &u32| ((numbers[*row as usize] - base) * scale).round() as i64;
            (base, 1.0 / scale, lesson.rows.iter().map(|row| item(row, value(row))).collect())
        }
    }
}

/// Bytes that a prediction takes, before and after they are put behind each other.
pub(crate) fn prediction_bytes(outputs: usize) -> usize {
    size_of::<Vec<f64>>() + 2 * outputs.max(2) * size_of::<f64>()
}

/// The mean prediction of trees for some rows of columns, one row after the other.
pub(crate) fn predict(trees: &[Fitted], columns: &Columns<'_>, rows: &[u32], outputs: usize, run: &Run) -> Result<Vec<f64>> {
    let _lease = run.reserve(rows.len() * prediction_bytes(outputs))?;
    let one = |row: &u32| -> Result<Vec<f64>> {
        run.check()?;
        let mut sums = vec![0.0; outputs];
        for fitted in trees {
            let leaf = fitted.tree.leaf(|column| columns.codes[column][*row as usize]);
            let values = &fitted.values[leaf * outputs..(leaf + 1) * outputs];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value) / trees.len() as f64);
        }
        Ok(sums)
    };
    let predicted: Vec<Vec<f64>> = rows.par_iter().map(one).collect::<Result<_>>()?;
    Ok(predicted.concat())
}
