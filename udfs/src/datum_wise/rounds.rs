use crate::datum_wise::coded::{BLOCK, Coded};
use crate::datum_wise::decisions::{Decisions, Detail};
use crate::datum_wise::policy::Policy;
use crate::datum_wise::walk::starts;
use crate::kernels::gemm::vectorized;

const LANES: usize = 4;

/// Registers that the scores of a row may take. Their number is known to the compiler, so that they stay registers.
const WIDTHS: [usize; 6] = [1, 2, 3, 4, 8, 16];

/// The scores of all actions, in registers.
type Scores<const WIDTH: usize> = [[f64; LANES]; WIDTH];

/// The same decisions, to the bit, as [`Policy::decide`] makes, for the usual policy: few actions, prices that do not change, and nothing given.
///
/// All rows of a block take their first step, then all that are not decided yet their second. What a row does next depends on its values, so that
/// a processor that follows one row to its end guesses wrongly at every step; here it is on the next row before the last one's action is known.
pub(crate) struct Rounds<'a> {
    policy: &'a Policy,
    /// Registers of a row.
    width: usize,
    /// Weights of the policy, the actions filled up to whole registers.
    start: Vec<f64>,
    known: Vec<f64>,
    values: Vec<f64>,
    /// What is added when the budget is spent.
    spent: Vec<f64>,
    /// Of each row: what its actions are worth, the best of them, and its score.
    scores: Vec<f64>,
    best: [u32; BLOCK],
    tops: [f64; BLOCK],
    /// What was asked for, one round after the other.
    asked: Vec<Ask>,
    /// Whether each action is some row's best.
    is_best: Vec<bool>,
}

/// A row asks for a unit, and expects a reward.
#[derive(Clone, Copy)]
struct Ask {
    row: u32,
    unit: u32,
    score: f64,
}

impl<'a> Rounds<'a> {
    pub fn of(policy: &'a Policy) -> Option<Self> {
        let (actions, rewards) = (policy.weights.actions, &policy.rewards);
        let width = *WIDTHS.iter().find(|width| actions <= LANES * **width)?;
        if !rewards.is_plain() || !policy.given.is_empty() {
            return None;
        }
        let fill = |rows: &[f64], with: f64| -> Vec<f64> {
            let rest = LANES * width - actions;
            rows.chunks(actions).flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(with, rest))).collect()
        };
        let mut start = fill(&starts(rewards, &policy.weights.start), f64::NEG_INFINITY);
        let spent: Vec<f64> = (0..LANES * width).map(|at| if at < rewards.classes { 0.0 } else { f64::NEG_INFINITY }).collect();
        if !rewards.has_budget(0) {
            start.iter_mut().zip(&spent).for_each(|(start, spent)| *start += spent);
        }
        // What is known is not asked for again.
        let mut known = fill(&policy.weights.known, 0.0);
        let units = known.chunks_mut(LANES * width).enumerate();
        units.for_each(|(unit, known)| known[rewards.classes + unit] = f64::NEG_INFINITY);
        let (values, scores) = (fill(&policy.weights.values, 0.0), vec![0.0; LANES * width * BLOCK]);
        let (best, tops, asked, is_best) = ([0; BLOCK], [0.0; BLOCK], Vec::new(), vec![false; actions]);
        Some(Self { policy, width, start, known, values, spent, scores, best, tops, asked, is_best })
    }

    /// Decides a block of rows.
    pub fn decide(&mut self, coded: &mut Coded<'_>, decisions: &mut Decisions) {
        take_steps(self, coded);
        let rows = coded.rows();
        let (mut counts, mut costs) = ([0; BLOCK], [0.0; BLOCK]);
        for ask in &self.asked {
            counts[ask.row as usize] += 1;
            costs[ask.row as usize] += self.policy.rewards.prices[ask.unit as usize];
        }
        if decisions.detail >= Detail::Units {
            self.keep_units(&counts[..rows], decisions);
        }
        decisions.classes.extend(&self.best[..rows]);
        decisions.scores.extend(&self.tops[..rows]);
        decisions.counts.extend(&counts[..rows]);
        decisions.costs.extend(&costs[..rows]);
    }

    /// Puts what was asked for, round after round, where it belongs row after row.
    fn keep_units(&self, counts: &[u32], decisions: &mut Decisions) {
        let (units, steps, keeps_steps) = (decisions.units.len(), decisions.steps.len(), decisions.detail >= Detail::Steps);
        let (mut places, mut sum) = ([0; BLOCK], 0);
        for (place, count) in places.iter_mut().zip(counts) {
            (*place, sum) = (sum, sum + *count as usize);
        }
        decisions.units.resize(units + sum, 0);
        if keeps_steps {
            // A prediction follows the units of each row.
            decisions.steps.resize(steps + sum + counts.len(), 0.0);
        }
        for ask in &self.asked {
            let row = ask.row as usize;
            decisions.units[units + places[row]] = ask.unit;
            if keeps_steps {
                decisions.steps[steps + row + places[row]] = ask.score;
            }
            places[row] += 1;
        }
        if keeps_steps {
            for row in 0..counts.len() {
                decisions.steps[steps + row + places[row]] = self.tops[row];
            }
        }
    }
}

vectorized! {
    fn take_steps(rounds: &mut Rounds<'_>, coded: &mut Coded<'_>) = take_steps_body;
}

#[inline(always)]
fn take_steps_body<const FUSED: bool>(rounds: &mut Rounds<'_>, coded: &mut Coded<'_>) {
    match rounds.width {
        1 => steps_of::<1>(rounds, coded),
        2 => steps_of::<2>(rounds, coded),
        3 => steps_of::<3>(rounds, coded),
        4 => steps_of::<4>(rounds, coded),
        8 => steps_of::<8>(rounds, coded),
        _ => steps_of::<16>(rounds, coded),
    }
}

// Plain loops and no closures: what is not inlined here would be compiled without wide registers.
#[inline(always)]
fn steps_of<const WIDTH: usize>(rounds: &mut Rounds<'_>, coded: &mut Coded<'_>) {
    let Rounds { policy, start, known, values, spent, scores, best, tops, asked, is_best, .. } = rounds;
    let (rewards, units) = (&policy.rewards, &policy.units[..]);
    let classes = rewards.classes as u32;
    let start = registers::<WIDTH>(start)[0];
    let (known, values, spent) = (registers::<WIDTH>(known), registers::<WIDTH>(values), registers::<WIDTH>(spent)[0]);
    let (scores, _) = scores.as_chunks_mut::<LANES>().0.as_chunks_mut::<WIDTH>().0.as_chunks_mut::<BLOCK>();
    let scores = &mut scores[0];
    scores.fill(start);
    let (first, score) = highest(&start);
    best.fill(first);
    tops.fill(score);
    asked.clear();
    if first >= classes {
        for row in 0..coded.rows() as u32 {
            asked.push(Ask { row, unit: first - classes, score });
        }
    }
    is_best.fill(false);
    is_best[first as usize] = true;
    let (mut round, mut from) = (0, 0);
    while from < asked.len() {
        round += 1;
        for (unit, is_best) in units.iter().zip(&is_best[rewards.classes..]) {
            if *is_best {
                for column in unit.columns.clone() {
                    coded.code(column);
                }
            }
        }
        let is_last = !rewards.has_budget(round);
        let coded = coded.values();
        for Ask { row, unit, .. } in &asked[from..] {
            let (row, unit) = (*row as usize % BLOCK, *unit as usize);
            let mut sums = scores[row];
            add(&mut sums, 1.0, &known[unit]);
            for column in units[unit].columns.clone() {
                add(&mut sums, coded[column][row], &values[column]);
            }
            if is_last {
                add(&mut sums, 1.0, &spent);
            }
            scores[row] = sums;
            (best[row], tops[row]) = highest(&sums);
        }
        // Rows that go on, in a loop of its own: an address that depends on a row's scores would keep the next row waiting for them.
        let asks = from..asked.len();
        let mut end = asks.end;
        asked.resize(asks.end + asks.len(), asked[from]);
        is_best.fill(false);
        for at in asks.clone() {
            let row = asked[at].row;
            let (action, score) = (best[row as usize % BLOCK], tops[row as usize % BLOCK]);
            asked[end] = Ask { row, unit: action.wrapping_sub(classes), score };
            end += usize::from(action >= classes);
            is_best[action as usize] = true;
        }
        asked.truncate(end);
        from = asks.end;
    }
}

#[inline(always)]
fn registers<const WIDTH: usize>(weights: &[f64]) -> &[Scores<WIDTH>] {
    weights.as_chunks::<LANES>().0.as_chunks::<WIDTH>().0
}

#[inline(always)]
fn add<const WIDTH: usize>(scores: &mut Scores<WIDTH>, factor: f64, change: &Scores<WIDTH>) {
    for at in 0..WIDTH {
        for lane in 0..LANES {
            scores[at][lane] += factor * change[at][lane];
        }
    }
}

/// The highest score and its place, the first of equals; scores that are no numbers or minus infinity are passed over, as a row on its own passes over them.
#[inline(always)]
fn highest<const WIDTH: usize>(scores: &Scores<WIDTH>) -> (u32, f64) {
    let mut top = [f64::NEG_INFINITY; LANES];
    for at in 0..WIDTH {
        for lane in 0..LANES {
            top[lane] = if scores[at][lane] > top[lane] { scores[at][lane] } else { top[lane] };
        }
    }
    let pairs = [if top[0] > top[2] { top[0] } else { top[2] }, if top[1] > top[3] { top[1] } else { top[3] }];
    let highest = if pairs[0] > pairs[1] { pairs[0] } else { pairs[1] };
    let mut places = [f64::MAX; LANES];
    for at in (0..WIDTH).rev() {
        for lane in 0..LANES {
            places[lane] = if scores[at][lane] == highest { (LANES * at + lane) as f64 } else { places[lane] };
        }
    }
    let pairs =
        [if places[0] < places[2] { places[0] } else { places[2] }, if places[1] < places[3] { places[1] } else { places[3] }];
    let place = if pairs[0] < pairs[1] { pairs[0] } else { pairs[1] };
    // Weights so large that sums overflow can leave no other score; a prediction ends the row, where a unit that is known would be asked for for ever.
    if highest > f64::NEG_INFINITY { (place as u32, highest) } else { (0, scores[0][0]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::datum_wise::policy::{Decision, PolicyColumn, PolicyUnit, Weights};
    use crate::datum_wise::rewards::Rewards;
    use crate::datum_wise::walk::Walk;
    use crate::reading::block::Block;
    use crate::reading::coding::Coding;

    #[test]
    fn scores_that_are_no_numbers_end_in_a_prediction() {
        assert_eq!(highest(&[[f64::NAN; LANES]; 2]).0, 0);
        assert_eq!(highest(&[[f64::NAN, f64::NEG_INFINITY, f64::NAN, f64::NAN], [f64::NEG_INFINITY; LANES]]).0, 0);
        assert_eq!(highest(&[[f64::NAN, 1.0, 3.0, f64::NAN], [f64::NAN, 3.0, 2.0, f64::NAN]]), (2, 3.0));
        assert_eq!(highest(&[[0.5, 2.0, -1.0, 0.0], [2.0, 1.0, f64::NEG_INFINITY, 0.0]]), (1, 2.0));
    }

    /// Random policies of several sizes, one unit with two columns, values that are missing or exactly the mean.
    #[test]
    fn rows_are_decided_in_rounds_as_one_at_a_time() {
        let mut random = Run::new(3).random("policies", 0);
        let mut lengths = std::collections::BTreeSet::new();
        let sizes =
            [(2, 2, Some(1)), (3, 5, Some(2)), (2, 10, None), (3, 12, None), (2, 25, None), (10, 30, Some(0)), (2, 61, None)];
        for (classes, units, budget) in sizes {
            let (actions, columns) = (classes + units, units + 1);
            let mut draw = |n: usize, size: f64| (0..n).map(|_| size * random.normal()).collect::<Vec<f64>>();
            let weights = Weights {
                actions,
                start: draw(actions, 0.3),
                known: draw(units * actions, 0.3),
                values: draw(columns * actions, 0.5),
            };
            let column = |at: usize| PolicyColumn { feature: format!("x{at}"), coding: Coding::Number, mean: 0.25 };
            let unit = |at: usize| PolicyUnit { name: format!("u{at}"), columns: at..at + 1 + usize::from(at + 1 == units) };
            let policy = Policy {
                classes: (0..classes).map(|class| class.to_string()).collect(),
                units: (0..units).map(unit).collect(),
                columns: (0..columns).map(column).collect(),
                weights,
                rewards: Rewards { budget, ..Rewards::plain(classes, units, 0.05) },
                given: Vec::new(),
            };
            assert!(Rounds::of(&policy).is_some());
            let mut values: Vec<Vec<f64>> = (0..columns).map(|_| draw(1500, 1.0)).collect();
            values.iter_mut().for_each(|column| (column[3], column[7]) = (f64::NAN, 0.25));
            let blocks: Vec<Block<'_>> = values.iter().map(|column| Block::Numbers(column)).collect();
            let (opening, mut walk, mut one) = (policy.opening(), Walk::default(), Decision::default());
            for detail in [Detail::Predictions, Detail::Units, Detail::Steps] {
                let mut singly = Decisions::new(1500, 0, detail);
                for row in 0..1500 {
                    let value = |column: usize| if values[column][row].is_nan() { 0.0 } else { values[column][row] - 0.25 };
                    policy.decide(&opening, &mut walk, value, &mut one);
                    singly.push(&one);
                    lengths.insert(one.units.len());
                }
                assert_eq!(policy.classify(1500, &blocks, detail, &Run::default()).unwrap(), singly, "{classes} {units}");
            }
        }
        assert!(lengths.len() > 4, "rows differ in how much they ask for: {lengths:?}");
    }
}
