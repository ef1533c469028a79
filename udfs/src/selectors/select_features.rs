use std::cmp::Reverse;

use crate::baselines::{boosting::Boosting, random_forest::RandomForest};
use crate::judging::exchange::{Exchange, Limits, exchange};
use crate::judging::trials::{JUDGES, ROWS_MAX, Trials};
use crate::predictors::panel::{self, Opinion};
use crate::selectors::neural_greedy_pursuit::NeuralGreedyPursuit;
use crate::selectors::omp::Omp;
use crate::selectors::sequential_attention::{Direction, SequentialAttention};
use crate::{Choice, Error, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// The features to take, without choosing a method.
    ///
    /// Holds some rows out, lets several selectors choose by the others, and asks two judges what each choice is worth on the rows held out: boosted trees and a network, each trained
    /// on the chosen features alone. Whoever does best is tried with features that only the others chose, in the place of those that the judges miss least. Then the best selector chooses once
    /// more, by all rows, with the swaps that helped.
    ///
    /// It tries `omp`, `boosting`, `sequential_attention`, `random_forest`, `sequential_attention` with `direction => 'backward'`, and, of up to 3,000 rows and 64 features, `ngp`; in this order, as
    /// far as `time_limit` allows (30 seconds if none is given). With a number as `k` it answers with so many features; without one, and with `k => 'auto'`, it takes the fewest features that
    /// the judges rate within one standard error of the best number. Where the limit ends the trying, the answer depends on how fast the machine is.
    ///
    /// Of fewer than 3,000 rows the judges hardly tell who is better. So `omp`, `boosting`, `sequential_attention` and `ngp` vote: the features that most of them choose are the answer, unless one
    /// selector alone is better than that by more than two standard errors.
    ///
    /// `note` says who chose a feature. `valid_score` is the share of the loss that the features up to it save on the rows held out (of a number that is R²), the mean of the two judges, for the sizes that
    /// were judged, and `valid_error` its standard error. It is a little optimistic, because the best of several was taken: `evaluate` with `selector => 'select_features'` is not.
    ///
    /// Cost: each selector once on at most 32,768 rows (three times on fewer than 3,000), and the best, or those that vote, once on all.
    #[selector(
        name = "select_features",
        aliases = [],
        labels = Any,
        score = "the score of the selector that was best, or the share of those that chose it; `note` names them",
    )]
    pub struct SelectFeatures {}
}

/// Seconds, if nobody says.
const TIME_LIMIT: f64 = 30.0;
/// Fewest rows that can be parted.
const ROWS_MIN: usize = 30;
/// Features that 'auto' looks at, and those by which selectors are compared then.
const AUTO_MAX: usize = 64;
const COMPARED: usize = 16;
/// Features that are exchanged at most, those that are tried each time, and the share of the loss that one must save.
const SWAPS_MAX: usize = 4;
const TRIED: usize = 4;
const WORTH: f64 = 0.001;
/// Tables up to this size are small enough for neural greedy pursuit.
const SMALL: (usize, usize) = (3000, 64);

/// Who votes where few rows cannot tell who is best. BENCHMARKS.md says what that is worth.
const VOTERS: [&str; 4] = ["omp", "boosting", "sequential_attention", "ngp"];

/// A selector that takes part.
struct Entrant {
    name: &'static str,
    selector: Box<dyn Selector>,
}

/// What an entrant chose by each piece of the table, or several in a vote, and what that is worth.
struct Entry {
    entrants: Vec<usize>,
    rankings: Vec<Ranking>,
    opinion: Opinion,
    /// What choosing took, in seconds, if there is a clock.
    seconds: f64,
}

impl Selector for SelectFeatures {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn has_size(&self) -> bool {
        true
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let limit = run.deadline().unwrap_or(TIME_LIMIT);
        // What must be finished is not cut off; what is one more try is.
        let (steady, hasty) = (run.until(None), run.until(Some(0.8 * limit)));
        let entrants = entrants(problem);
        let is_enough = problem.rows().rows() >= ROWS_MIN;
        let parted = if is_enough { Trials::of(problem, &steady)? } else { None };
        let Some(Trials { problems: pieces, .. }) = &parted else {
            let ranking = entrants[0].selector.select(problem, &steady)?;
            return Ok(noted(ranking, "omp, because there are too few rows to hold some out"));
        };
        let most = problem.k.unwrap_or(AUTO_MAX).min(problem.units.len());
        // Whoever chooses all features has said nothing about them.
        let compared = problem.k.unwrap_or(COMPARED.min(problem.units.len().div_ceil(2))).min(most);
        let mut entries: Vec<Entry> = Vec::new();
        for (at, entrant) in entrants.iter().enumerate() {
            let run = if at == 0 { &steady } else { &hasty };
            let entered = run.step_with(at, entrants.len() + 2, || entrant.name.to_string());
            match entered.and_then(|()| enter(at, entrant, pieces, most, compared, run)) {
                Ok(entry) => entries.push(entry),
                Err(_) if at > 0 && run.is_late() => break,
                // What one selector cannot answer another may.
                Err(error) if at > 0 && error.kind() == crate::Kind::Data => {}
                Err(error) => return Err(error),
            }
        }
        entries.sort_by(|a, b| b.opinion.skill.total_cmp(&a.opinion.skill).then(a.entrants.cmp(&b.entrants)));
        if pieces.len() > 1 {
            match vote(&entries, &entrants, pieces, compared, &hasty) {
                Ok(vote) => entries = vote.into_iter().chain(entries).collect(),
                Err(_) if hasty.is_late() => {}
                Err(error) => return Err(error),
            }
        }
        let Some((best, others)) = entries.split_first() else { return Err(Error::data("no selector could choose anything")) };
        let (curve, size) = match problem.k {
            Some(k) => (vec![(k, best.opinion)], k),
            None => sized(best, pieces, compared, problem.must_include.len(), &hasty)?,
        };
        let swaps = swaps(best, others, pieces, size, &hasty)?;
        steady.check()?;
        let mut ranking = last(problem, &entrants, best, size, (&steady, limit))?;
        if let [entrant] = best.entrants[..] {
            let lead = others.first().map(|second| {
                let lead = best.opinion.skill - second.opinion.skill;
                format!("best of {}, ahead of {} by {lead:.4}", entries.len(), entrants[second.entrants[0]].name)
            });
            let lead = lead.unwrap_or_else(|| "the only one tried".to_string());
            ranking = noted(ranking, &format!("{}, {lead}", entrants[entrant].name));
        }
        swap(&mut ranking, &swaps, problem);
        // What a selector itself thinks of its beginnings is not comparable with what the judges do.
        ranking.choices.iter_mut().for_each(|choice| (choice.valid_score, choice.valid_error) = (None, None));
        for (size, opinion) in curve {
            if let Some(choice) = size.checked_sub(1).and_then(|at| ranking.choices.get_mut(at)) {
                (choice.valid_score, choice.valid_error) = (Some(opinion.skill), Some(opinion.error));
            }
        }
        Ok(ranking)
    }
}

fn entrants(problem: &Problem) -> Vec<Entrant> {
    let backward = SequentialAttention { direction: Direction::Backward, ..SequentialAttention::default() };
    let mut entrants = vec![
        Entrant { name: "omp", selector: Box::new(Omp::default()) },
        Entrant { name: "boosting", selector: Box::new(Boosting::default()) },
        Entrant { name: "sequential_attention", selector: Box::new(SequentialAttention::default()) },
        Entrant { name: "random_forest", selector: Box::new(RandomForest::default()) },
        Entrant { name: "sequential_attention backward", selector: Box::new(backward) },
    ];
    if problem.rows().rows() <= SMALL.0 && problem.units.len() <= SMALL.1 {
        entrants.push(Entrant { name: "ngp", selector: Box::new(NeuralGreedyPursuit::default()) });
    }
    entrants
}

/// The vote of those who have one, if the judges do not rate somebody alone above it by more than two standard errors.
fn vote(entries: &[Entry], entrants: &[Entrant], pieces: &[Problem], compared: usize, run: &Run) -> Result<Option<Entry>> {
    let mut voters: Vec<&Entry> = entries.iter().filter(|entry| VOTERS.contains(&entrants[entry.entrants[0]].name)).collect();
    voters.sort_by_key(|entry| entry.entrants[0]);
    let (Some(best), true) = (entries.first(), voters.len() > 1) else { return Ok(None) };
    let of_piece = |(at, piece): (usize, &Problem)| {
        let rankings: Vec<&Ranking> = voters.iter().map(|entry| &entry.rankings[at]).collect();
        counted(piece, &rankings, compared)
    };
    let rankings: Vec<Ranking> = pieces.iter().enumerate().map(of_piece).collect();
    let opinion = opinion(&rankings, pieces, compared, run)?;
    let entrants = voters.iter().map(|entry| entry.entrants[0]).collect();
    let seconds = voters.iter().map(|entry| entry.seconds).sum();
    let is_close = opinion.skill >= best.opinion.skill - 2.0 * best.opinion.error;
    Ok(is_close.then_some(Entry { entrants, rankings, opinion, seconds }))
}

/// The units that are among the first of any ranking: those that must be included, then those of the most rankings, then those that stand further in front. The score is the share of the rankings.
fn counted(problem: &Problem, rankings: &[&Ranking], first: usize) -> Ranking {
    let mut votes: Vec<(usize, usize, usize)> = Vec::new();
    for (place, choice) in rankings.iter().flat_map(|ranking| ranking.choices.iter().take(first).enumerate()) {
        match votes.iter_mut().find(|(unit, ..)| *unit == choice.unit) {
            Some((_, count, places)) => (*count, *places) = (*count + 1, *places + place),
            None => votes.push((choice.unit, 1, place)),
        }
    }
    let forced = |unit: usize| problem.must_include.iter().position(|other| *other == unit).unwrap_or(usize::MAX);
    votes.sort_by_key(|(unit, count, places)| (forced(*unit), Reverse(*count), *places, *unit));
    let choice =
        |(at, (unit, count, _)): (usize, (usize, usize, usize))| Choice::new(at + 1, unit, count as f64 / rankings.len() as f64);
    Ranking { choices: votes.into_iter().enumerate().map(choice).collect(), ..Ranking::default() }
}

/// Lets an entrant choose by each piece, and has its choices judged.
fn enter(at: usize, entrant: &Entrant, pieces: &[Problem], most: usize, compared: usize, run: &Run) -> Result<Entry> {
    let begun = run.seconds();
    let choose = |piece: &Problem| {
        let must_include = piece.must_include.iter().copied().filter(|unit| piece.why_never(*unit).is_none()).collect();
        let alone = Problem { k: Some(most), held_out: None, must_include, ..piece.clone() };
        entrant.selector.select(&alone, run)
    };
    let rankings = pieces.iter().map(choose).collect::<Result<Vec<_>>>()?;
    let seconds = run.seconds() - begun;
    let opinion = opinion(&rankings, pieces, compared, run)?;
    Ok(Entry { entrants: vec![at], rankings, opinion, seconds })
}

/// What the judges think of the first features of each piece's ranking: the mean, and its standard error.
fn opinion(rankings: &[Ranking], pieces: &[Problem], size: usize, run: &Run) -> Result<Opinion> {
    let judged = |(ranking, piece): (&Ranking, &Problem)| {
        let units: Vec<usize> = ranking.choices.iter().take(size).map(|choice| choice.unit).collect();
        panel::judge(piece, &units, run)
    };
    let opinions = rankings.iter().zip(pieces).map(judged).collect::<Result<Vec<Opinion>>>()?;
    let count = opinions.len() as f64;
    let skill = opinions.iter().map(|opinion| opinion.skill).sum::<f64>() / count;
    let error = opinions.iter().map(|opinion| opinion.error.powi(2)).sum::<f64>().sqrt() / count;
    Ok(Opinion { skill, error })
}

/// Numbers of features with what they are worth, and the smallest that is worth no more than a standard error less than the best.
fn sized(best: &Entry, pieces: &[Problem], compared: usize, least: usize, run: &Run) -> Result<(Vec<(usize, Opinion)>, usize)> {
    let longest = best.rankings.iter().map(|ranking| ranking.choices.len()).max().unwrap_or(0);
    let mut curve: Vec<(usize, Opinion)> = vec![(compared.min(longest), best.opinion)];
    let mut size = 1;
    while size <= longest {
        if size != compared && size >= least {
            match opinion(&best.rankings, pieces, size, run) {
                Ok(opinion) => curve.push((size, opinion)),
                Err(_) if run.is_late() => break,
                Err(error) => return Err(error),
            }
        }
        size = (size + 1).max(size * 5 / 4);
    }
    curve.sort_by_key(|(size, _)| *size);
    let top = curve.iter().max_by(|a, b| a.1.skill.total_cmp(&b.1.skill)).map(|(_, opinion)| *opinion);
    let enough = top.map_or(0.0, |top| top.skill - top.error);
    let smallest = curve.iter().find(|(_, opinion)| opinion.skill >= enough).map_or(longest, |(size, _)| *size);
    Ok((curve, smallest))
}

/// Tries features of the others in the place of those of the best that are least missed. Of several small pieces none is large enough to tell.
fn swaps(best: &Entry, others: &[Entry], pieces: &[Problem], size: usize, run: &Run) -> Result<Vec<Exchange>> {
    let mut swaps = Vec::new();
    let ([piece], true) = (pieces, (2..=COMPARED).contains(&size)) else { return Ok(swaps) };
    let first = |entry: &Entry| entry.rankings[0].units().into_iter().take(size).collect::<Vec<_>>();
    let mut set = first(best);
    let fixed: Vec<usize> = (0..set.len()).filter(|at| piece.must_include.contains(&set[*at])).collect();
    // The most votes first, then the better ranks.
    let mut missing: Vec<(usize, usize, usize)> = Vec::new();
    for entry in others {
        for (rank, unit) in first(entry).into_iter().enumerate().filter(|(_, unit)| !set.contains(unit)) {
            match missing.iter_mut().find(|(_, _, other)| *other == unit) {
                Some((votes, ranks, _)) => (*votes, *ranks) = (*votes + 1, *ranks + rank),
                None => missing.push((1, rank, unit)),
            }
        }
    }
    missing.sort_by_key(|(votes, ranks, unit)| (Reverse(*votes), *ranks, *unit));
    let open = |kept: &[usize]| Ok(missing.iter().map(|(_, _, unit)| *unit).filter(|unit| !kept.contains(unit)).collect());
    let limits =
        Limits { fixed: &fixed, weak: 1, tried: TRIED, worth: WORTH, exchanges: if missing.is_empty() { 0 } else { SWAPS_MAX } };
    match exchange(&mut set, &limits, |set| Ok(panel::judge(piece, set, run)?.skill), open, &mut swaps) {
        Err(error) if !run.is_late() => Err(error),
        // What was found before the limit counts.
        _ => Ok(swaps),
    }
}

/// The best choice by all rows, if there is time for it; else its choice by some.
fn last(problem: &Problem, entrants: &[Entrant], best: &Entry, size: usize, (run, limit): (&Run, f64)) -> Result<Ranking> {
    let of_rows = problem.rows().rows() as f64 / (ROWS_MAX.min(problem.rows().rows()) as f64 * (1.0 - JUDGES));
    if best.seconds * of_rows > limit - run.seconds() {
        let mut ranking = best.rankings[0].clone();
        ranking.choices.truncate(size);
        forget(&mut ranking);
        return Ok(noted(ranking, "by some of the rows"));
    }
    let asked = Problem { k: Some(size), ..problem.clone() };
    let choose = |entrant: &usize| entrants[*entrant].selector.select(&asked, run);
    let mut rankings = best.entrants.iter().map(choose).collect::<Result<Vec<_>>>()?;
    if rankings.len() == 1 {
        return Ok(rankings.remove(0));
    }
    let mut ranking = counted(problem, &rankings.iter().collect::<Vec<_>>(), size);
    ranking.choices.truncate(size);
    for choice in &mut ranking.choices {
        let chose = rankings.iter().zip(&best.entrants).filter(|(ranking, _)| ranking.units().contains(&choice.unit));
        let names: Vec<&str> = chose.map(|(_, entrant)| entrants[*entrant].name).collect();
        choice.note = Some(format!("chosen by {} of {}: {}", names.len(), rankings.len(), names.join(", ")));
    }
    let chosen = ranking.units();
    ranking.passed_over = rankings.swap_remove(0).passed_over.into_iter().filter(|(unit, _)| !chosen.contains(unit)).collect();
    Ok(ranking)
}

/// What a ranking says of its fit belongs to other rows or to another set.
fn forget(ranking: &mut Ranking) {
    for choice in &mut ranking.choices {
        (choice.gain, choice.train_score, choice.coefficient) = (None, None, None);
    }
}

fn noted(mut ranking: Ranking, note: &str) -> Ranking {
    ranking.choices.iter_mut().for_each(|choice| choice.note = Some(note.to_string()));
    ranking
}

fn swap(ranking: &mut Ranking, swaps: &[Exchange], problem: &Problem) {
    for Exchange { out, into, gain, .. } in swaps {
        let chosen = ranking.units();
        if let Some(at) = chosen.iter().position(|unit| unit == out).filter(|_| !chosen.contains(into)) {
            let choice = &mut ranking.choices[at];
            choice.unit = *into;
            choice.note = Some(format!("in the place of {}, better by {gain:.4}", problem.units[*out].name));
            ranking.passed_over.retain(|(unit, _)| unit != into);
            forget(ranking);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// Most votes first, of equals who stands further in front; what must be included before all.
    #[test]
    fn votes_are_counted() {
        let rankings: Vec<Ranking> = [[3, 1, 0], [1, 2, 3], [1, 4, 2]]
            .map(|units| units.iter().enumerate().map(|(at, unit)| Choice::new(at + 1, *unit, 1.0)).collect())
            .map(|choices| Ranking { choices, ..Ranking::default() })
            .into();
        let counted = |must_include: &[&str], first: usize| {
            let mut table = Table::random(20, 5, 1);
            table.common.must_include = must_include.iter().map(|name| name.to_string()).collect();
            let problem = table.k(3).problem_of_rows(&(0..20).map(f64::from).collect::<Vec<_>>());
            super::counted(&problem, &rankings.iter().collect::<Vec<_>>(), first)
        };
        assert_eq!(counted(&[], 3).units(), [1, 3, 2, 4, 0]);
        assert_eq!(counted(&[], 3).choices[1].score, 2.0 / 3.0);
        assert_eq!(counted(&[], 1).units(), [1, 3]);
        assert_eq!(counted(&["x4"], 3).units(), [4, 1, 3, 2, 0]);
    }
}
