use crate::neural::candidates::Candidates;
use crate::reading::bins::{BINS_MAX, Counts};
use crate::trees::columns::Columns;
use crate::trees::forest::{Answer, Forest, LESSON_BYTES, Lesson};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Boruta: every feature that matters, compared with shadows.
    ///
    /// Gives every feature a shadow, its own values dealt out among the rows anew, grows a forest on features and shadows together, and notes which features are more important than the best of
    /// the shadows. After each round a test of coin throws, at `level` and with Bonferroni's correction for the number of features, confirms those that won more often than chance
    /// allows and rejects those that won less often. Rejected ones are left out of the next forests. It ends when nothing is left to decide, or after `iterations` rounds.
    ///
    /// `reason` says what was decided: confirmed, tentative or rejected. `k => 'auto'` keeps the confirmed ones: all that matter, redundant or not. Importance is the decrease of impurity,
    /// which a shadow has in the same measure as its feature by chance.
    ///
    /// Cost: `iterations` forests with twice the features.
    ///
    /// Source: Kursa and Rudnicki, 2010. Feature selection with the Boruta package.
    #[selector(
        name = "boruta",
        aliases = [],
        labels = Any,
        score = "mean importance, in units of that of the best shadow",
    )]
    pub struct Boruta {
        /// Rounds at most.
        iterations: usize = 40, Check::Between(1.0, 10000.0);
        /// Trees of each forest.
        trees: usize = 40, Check::Between(1.0, 100000.0);
        /// How likely it may be that a feature which does not matter is confirmed.
        level: f64 = 0.05, Check::Between(1e-9, 0.5);
        /// Longest way from the root to a leaf.
        depth: usize = 7, Check::Between(1.0, 1000.0);
    }
}

/// Fewest shadows of a round.
const SHADOWS_MIN: usize = 5;

/// What has been decided of a feature.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Tentative,
    Confirmed,
    Rejected,
}

impl Selector for Boruta {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let candidates = Candidates::new(problem, problem.rows(), run)?;
        let mut rivals = Rivals::new(problem, run)?;
        let count = candidates.len();
        let mut fates = vec![Fate::Tentative; count];
        let (mut hits, mut sums, mut rounds_of) = (vec![0u64; count], vec![0.0; count], vec![0.0; count]);
        for round in 0..self.iterations {
            run.step(round, self.iterations)?;
            let alive: Vec<usize> = (0..count).filter(|at| fates[*at] != Fate::Rejected).collect();
            if round > 0 && fates.iter().all(|fate| *fate != Fate::Tentative) {
                break;
            }
            let units: Vec<usize> = alive.iter().map(|at| candidates.units[*at]).collect();
            let (own, best) = rivals.round(&self.forest(), &units, round as u64, run)?;
            for (at, importance) in alive.iter().zip(own) {
                hits[*at] += u64::from(importance > best);
                sums[*at] += if best > 0.0 { importance / best } else { importance };
                rounds_of[*at] += 1.0;
            }
            let level = self.level / count as f64;
            for at in alive.into_iter().filter(|at| fates[*at] == Fate::Tentative).collect::<Vec<_>>() {
                let throws = round as u64 + 1;
                if at_least(hits[at], throws) < level {
                    fates[at] = Fate::Confirmed;
                } else if at_least(throws - hits[at], throws) < level {
                    fates[at] = Fate::Rejected;
                }
            }
        }
        let scores: Vec<f64> = sums.iter().zip(&rounds_of).map(|(sum, rounds)| sum / f64::max(*rounds, 1.0)).collect();
        let confirmed = |at: &usize| fates[*at] == Fate::Confirmed || candidates.forced(problem).contains(at);
        let k = problem.k.unwrap_or((0..count).filter(confirmed).count());
        let mut ranking = candidates.ranking(&Problem { k: Some(k), ..problem.clone() }, &scores);
        for choice in &mut ranking.choices {
            let at = candidates.units.iter().position(|unit| *unit == choice.unit).expect("it is a candidate");
            choice.reason = Some(format!("{:?}", fates[at]).to_lowercase());
        }
        Ok(ranking)
    }
}

impl Boruta {
    fn forest(&self) -> Forest {
        Forest {
            trees: self.trees,
            depth: Some(self.depth),
            leaf_rows: 1,
            features_per_split: None,
            samples: true,
            is_random: false,
            purpose: "boruta",
        }
    }
}

/// How likely it is that at least so many of some coins show heads.
fn at_least(heads: u64, throws: u64) -> f64 {
    // From the least likely on: each is the one before it times a ratio.
    let mut term = 0.5f64.powi(throws.min(1000) as i32);
    let mut sum = if heads <= throws { term } else { 0.0 };
    for missing in 0..throws.saturating_sub(heads) {
        term *= (throws - missing) as f64 / (missing + 1) as f64;
        sum += term;
    }
    sum.min(1.0)
}

/// Features and their shadows, cut into bins. A row of weight 2 is two rows here, whose shadows differ.
struct Rivals<'a> {
    problem: &'a Problem,
    bins: std::sync::Arc<crate::Bins>,
    /// The row behind each of the copies.
    copies: Vec<u32>,
    counts: Counts,
    answer: Answer,
    _memory: crate::Lease,
}

impl<'a> Rivals<'a> {
    fn new(problem: &'a Problem, run: &Run) -> Result<Self> {
        let rows = problem.rows();
        let bins = problem.bins(BINS_MAX, run)?;
        let all: Vec<u32> = (0..rows.rows() as u32).collect();
        let (copies, is_once) = Counts::of(rows).copies(&all);
        let memory = run.reserve(copies.len() * (LESSON_BYTES + size_of::<u32>()))?;
        let of_copies = |values: &[f64]| -> Vec<f64> { copies.iter().map(|row| values[*row as usize]).collect() };
        let counts = if is_once { Counts::of(rows) } else { Counts::new(&[]) };
        let answer = match &rows.label {
            crate::Label::Numbers => Answer::Numbers(of_copies(&rows.targets)),
            crate::Label::Classes(classes) => Answer::classes(&of_copies(&rows.targets), classes.len()),
        };
        Ok(Self { problem, bins, copies, counts, answer, _memory: memory })
    }

    /// The importance of some units, and that of the best shadow.
    fn round(&mut self, forest: &Forest, units: &[usize], round: u64, run: &Run) -> Result<(Vec<f64>, f64)> {
        let some = self.problem.among(units);
        let real = Columns::of(&some, &self.bins);
        let d = real.len();
        // The best of a few shadows is no rival: those of few features are dealt out several times.
        let times = SHADOWS_MIN.div_ceil(d.max(1)).max(1);
        let all = d * (1 + times);
        let _memory = run.reserve(all * self.copies.len() + self.copies.len() * size_of::<u32>())?;
        let mut codes: Vec<Vec<u8>> = Vec::with_capacity(all);
        for codes_of in &real.codes {
            run.check()?;
            codes.push(self.copies.iter().map(|row| codes_of[*row as usize]).collect());
        }
        for shadow in 0..times * d {
            run.check()?;
            let (at, time) = (shadow % d, (shadow / d) as u64);
            let mut shadow = codes[at].clone();
            let draw = (round * times as u64 + time).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            run.random("shadow", real.binned[at].key ^ draw).shuffle(&mut shadow);
            codes.push(shadow);
        }
        let columns = Columns {
            features: (0..all).collect(),
            binned: real.binned.iter().cycle().take(all).copied().collect(),
            codes: codes.iter().map(Vec::as_slice).collect(),
        };
        let rows = (0..self.copies.len() as u32).collect();
        let lesson = Lesson { columns, rows, counts: self.counts.clone(), answer: self.answer.clone() };
        let trees = forest.grow(&lesson, false, &run.with_seed(round + 1).quiet(), |_, mut grown, _, _| {
            let total: f64 = grown.gains.iter().sum();
            grown.gains.iter_mut().filter(|_| total > 0.0).for_each(|gain| *gain /= total);
            Ok(grown.gains)
        })?;
        let mut mean = vec![0.0; all];
        for gains in &trees {
            mean.iter_mut().zip(gains).for_each(|(mean, gain)| *mean += gain / trees.len() as f64);
        }
        let best = mean[d..].iter().copied().fold(0.0, f64::max);
        Ok((real.importances(&some, &mean[..d]), best))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;
    use crate::{Count, Task};

    #[test]
    fn coins_by_hand() {
        assert_eq!((at_least(0, 3), at_least(3, 3), at_least(2, 3), at_least(4, 3)), (1.0, 0.125, 0.5, 0.0));
        assert!((at_least(8, 10) - 56.0 / 1024.0).abs() < 1e-15);
    }

    /// Everything that matters is confirmed, also what another feature says nearly as well; noise is not.
    #[test]
    fn confirms_all_that_matters() {
        let table = Table { task: Some(Task::Classification), ..Table::random(500, 8, 3) };
        let label: Vec<f64> = (0..500).map(|row| f64::from(table.column(1)[row] + table.column(5)[row] > 0.0)).collect();
        let noise = Table::random(500, 1, 4);
        let near: Vec<f64> = table.column(1).iter().zip(noise.column(0)).map(|(x, e)| x + 0.5 * e).collect();
        let mut table = table.numbers("near", &near);
        table.common.k = Count::Auto;
        let ranking = Boruta::default().select(&table.problem_of_rows(&label), &Run::new(0)).unwrap();
        let mut units = ranking.units();
        units.sort_unstable();
        assert_eq!(units, [1, 5, 8]);
        assert!(ranking.choices.iter().all(|choice| choice.score > 1.0 && choice.reason.as_deref() == Some("confirmed")));
        let all = Boruta::default().select(&table.k(9).problem_of_rows(&label), &Run::new(0)).unwrap();
        assert!(all.choices[3..].iter().all(|choice| choice.reason.as_deref() != Some("confirmed")), "{all:?}");
    }
}
