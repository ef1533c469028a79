use rayon::prelude::*;

use crate::filters::discovery::{Discovery, Scored};
use crate::reading::bins::{BINS_MAX, Counts};
use crate::{Check, Error, Label, Lease, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Relief: in what near rows of other classes differ.
    ///
    /// Looks at each row's nearest neighbours in all features together. A feature gains where neighbours of another class differ in it, and loses where neighbours of the same class do (ReliefF). For a label of numbers it gains where neighbours that differ
    /// in it differ in the label too (RReliefF). So it sees interactions that no feature shows alone, as long as there are not too many other features for nearness to mean something.
    ///
    /// A number differs by a share of its range, a text or a NULL by whether it is another. A group differs by the mean of its columns. Scores are between −1 and 1; `k => 'auto'` keeps what is above 0.
    ///
    /// Cost: `samples × rows × features`.
    ///
    /// Source: Kononenko, 1994. Estimating attributes: analysis and extensions of Relief. Robnik-Šikonja and Kononenko, 1997. An adaptation of Relief for attribute estimation in regression.
    #[selector(
        name = "relief",
        aliases = ["relieff"],
        labels = Any,
        score = "how much more other rows differ than rows alike",
    )]
    pub struct Relief {
        /// Nearest neighbours of each class, or for numbers of all.
        neighbours: usize = 10, Check::Between(1.0, 1000.0);
        /// Rows whose neighbours are looked at, evenly taken; fewer are all.
        samples: usize = 250, Check::Between(1.0, 1e6);
    }
}

impl Selector for Relief {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let space = Space::new(problem, run)?;
        let samples = space.samples(self.samples);
        let of_row = |(row, weight): &(usize, f64)| -> Result<Tally> {
            run.check()?;
            Ok(space.tally(*row, *weight, self.neighbours))
        };
        let mut all = Tally::new(problem.units.len());
        // Added up in the order of the rows, so that the threads do not show.
        for part in samples.chunks(64) {
            run.check()?;
            for tally in part.par_iter().map(of_row).collect::<Result<Vec<_>>>()? {
                all.add(&tally);
            }
        }
        let scores = all.scores(matches!(problem.label, Label::Classes(_)));
        let is_kept = |unit: usize| problem.k.is_some() || scores[unit] > 0.0 || problem.must_include.contains(&unit);
        let scored: Vec<Option<Scored>> =
            (0..scores.len()).map(|unit| is_kept(unit).then(|| Scored::by_score(scores[unit], None))).collect();
        Ok(Discovery::default().ranking(problem, &scored))
    }
}

/// What is summed up over rows and their neighbours.
struct Tally {
    /// Of each unit: differences to rows of other classes less those to rows of the same; or for numbers, differences where the label differs too.
    gains: Vec<f64>,
    /// For numbers: differences in each unit, whatever the label.
    differences: Vec<f64>,
    /// For numbers: differences of the label.
    label: f64,
    weight: f64,
}

impl Tally {
    fn new(units: usize) -> Self {
        Self { gains: vec![0.0; units], differences: vec![0.0; units], label: 0.0, weight: 0.0 }
    }

    fn add(&mut self, other: &Tally) {
        self.gains.iter_mut().zip(&other.gains).for_each(|(sum, gain)| *sum += gain);
        self.differences.iter_mut().zip(&other.differences).for_each(|(sum, difference)| *sum += difference);
        self.label += other.label;
        self.weight += other.weight;
    }

    fn scores(&self, is_class: bool) -> Vec<f64> {
        if is_class {
            return self.gains.iter().map(|gain| gain / self.weight).collect();
        }
        let (label, rest) = (self.label, self.weight - self.label);
        let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        let of = |(gain, all): (&f64, &f64)| share(*gain, label) - share(all - gain, rest);
        self.gains.iter().zip(&self.differences).map(of).collect()
    }
}

/// The rows as points, each feature in shares of its range or in codes.
struct Space<'a> {
    problem: &'a Problem,
    counts: Counts,
    weight: f64,
    /// Row after row, so that a distance reads memory in order; NaN: it is a code or NULL.
    numbers: Vec<f32>,
    codes: Vec<u8>,
    features: Vec<usize>,
    is_number: Vec<bool>,
    unit_of: Vec<usize>,
    sizes: Vec<f64>,
    classes: Vec<f64>,
    range: f64,
    _memory: Lease,
}

impl<'a> Space<'a> {
    fn new(problem: &'a Problem, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let counts = Counts::of(rows);
        if !counts.is_whole() {
            return Err(Error::call("`weights` must be whole numbers, because neighbours are counted; round them"));
        }
        let (features, unit_of) = crate::filters::greedy::features(problem);
        let n = rows.rows();
        let memory = run.reserve(n * (features.len() * 5 + rayon::current_num_threads() * 32 + 64))?;
        let bins = problem.bins(BINS_MAX, run)?;
        let column = |feature: usize| rows.design.iter().position(|column| column.feature == feature && column.is_number);
        let columns: Vec<Option<usize>> = features.iter().map(|feature| column(*feature)).collect();
        let mut numbers = vec![0f32; n * features.len()];
        let mut codes = vec![0u8; n * features.len()];
        let d = features.len();
        for (at, feature) in features.iter().enumerate() {
            run.check()?;
            let (low, high) = columns[at].map_or((0.0, 1.0), |column| ends(&rows.columns[column]));
            let scale = if high > low { 1.0 / (high - low) } else { 0.0 };
            for row in 0..n {
                let is_null = rows.nulls[*feature].get(row);
                codes[row * d + at] = if is_null { NULL } else { bins.codes.of_feature[*feature][row].min(NULL - 1) };
                numbers[row * d + at] = columns[at].map_or(0.0, |column| ((rows.columns[column][row] - low) * scale) as f32);
            }
        }
        let mut sizes = vec![0.0; problem.units.len()];
        unit_of.iter().for_each(|unit| sizes[*unit] += 1.0);
        let mut classes = Vec::new();
        if let Label::Classes(names) = &problem.label {
            classes = vec![0.0; names.len()];
            (0..n).for_each(|row| classes[rows.targets[row] as usize] += f64::from(counts.get(row)));
        }
        let (low, high) = ends(&rows.targets);
        let weight = (0..n).map(|row| f64::from(counts.get(row))).sum();
        let is_number = columns.iter().map(Option::is_some).collect();
        let range = high - low;
        Ok(Self { problem, counts, weight, numbers, codes, features, is_number, unit_of, sizes, classes, range, _memory: memory })
    }

    fn difference(&self, a: usize, b: usize, at: usize) -> f64 {
        let d = self.features.len();
        let (one, two) = (self.codes[a * d + at], self.codes[b * d + at]);
        if self.is_number[at] && one != NULL && two != NULL {
            return f64::from((self.numbers[a * d + at] - self.numbers[b * d + at]).abs());
        }
        f64::from(one != two)
    }

    fn distance(&self, a: usize, b: usize) -> f64 {
        (0..self.features.len()).map(|at| self.difference(a, b, at)).sum()
    }

    /// Rows that are looked at, and how often: all, or some at equal distances in the order of their content.
    fn samples(&self, most: usize) -> Vec<(usize, f64)> {
        let rows = self.problem.rows().rows();
        if self.weight <= most as f64 {
            return (0..rows).map(|row| (row, f64::from(self.counts.get(row)))).collect();
        }
        let step = self.weight / most as f64;
        let (mut samples, mut passed) = (Vec::new(), 0.0);
        for row in 0..rows {
            let end = passed + f64::from(self.counts.get(row));
            // How many of step / 2, 3 step / 2, … are within.
            let before = |at: f64| (at / step - 0.5).ceil().max(0.0);
            let times = before(end) - before(passed);
            if times > 0.0 {
                samples.push((row, times));
            }
            passed = end;
        }
        samples
    }

    fn tally(&self, row: usize, weight: f64, neighbours: usize) -> Tally {
        let rows = self.problem.rows();
        let mut tally = Tally::new(self.problem.units.len());
        tally.weight = weight;
        let others = (0..rows.rows()).map(|other| {
            let itself = u32::from(other == row);
            (self.distance(row, other), other, self.counts.get(other) - itself)
        });
        let mut others: Vec<(f64, usize, u32)> = others.filter(|(_, _, count)| *count > 0).collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if self.classes.is_empty() {
            let near = nearest(others.iter(), neighbours);
            let total: f64 = near.iter().map(|(_, count)| count).sum();
            for (other, count) in near {
                let share = weight * count / total;
                let apart = (rows.targets[row] - rows.targets[other]).abs() / self.range;
                tally.label += share * apart;
                for at in 0..self.features.len() {
                    let differs = share * self.difference(row, other, at) / self.sizes[self.unit_of[at]];
                    tally.differences[self.unit_of[at]] += differs;
                    tally.gains[self.unit_of[at]] += differs * apart;
                }
            }
            return tally;
        }
        let own = rows.targets[row] as usize;
        for class in 0..self.classes.len() {
            let near = nearest(others.iter().filter(|(_, other, _)| rows.targets[*other] as usize == class), neighbours);
            let total: f64 = near.iter().map(|(_, count)| count).sum();
            let chance = if class == own { -1.0 } else { self.classes[class] / (self.weight - self.classes[own]) };
            for (other, count) in near {
                let share = weight * chance * count / total;
                for at in 0..self.features.len() {
                    tally.gains[self.unit_of[at]] += share * self.difference(row, other, at) / self.sizes[self.unit_of[at]];
                }
            }
        }
        tally
    }
}

/// The code of NULL.
const NULL: u8 = u8::MAX;

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)))
}

/// The first rows that count so many together, each as often as it counts among them.
fn nearest<'a>(others: impl Iterator<Item = &'a (f64, usize, u32)>, neighbours: usize) -> Vec<(usize, f64)> {
    let mut left = neighbours as f64;
    let mut near = Vec::new();
    for (_, other, count) in others {
        if left <= 0.0 {
            break;
        }
        near.push((*other, f64::from(*count).min(left)));
        left -= f64::from(*count);
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::testing::Table;

    /// The product of two signs, which no feature shows alone.
    #[test]
    fn finds_an_interaction() {
        let table = Table::random(300, 6, 2);
        let product = |row: usize| table.column(1)[row] * table.column(4)[row];
        for task in [Task::Classification, Task::Regression] {
            let label: Vec<f64> = (0..300)
                .map(|row| if task == Task::Classification { f64::from(product(row) > 0.0) } else { product(row) })
                .collect();
            let table = Table { task: Some(task), ..table.clone().k(2) };
            let mut units = Relief::default().select(&table.problem_of_rows(&label), &Run::new(0)).unwrap().units();
            units.sort_unstable();
            assert_eq!(units, [1, 4], "{task:?}");
        }
    }
}
