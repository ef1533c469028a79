use crate::baselines::{boosting::Boosting, random_forest::RandomForest};
use crate::judging::exchange::{Exchange, Limits, exchange};
use crate::judging::trials::{JUDGES, ROWS_MAX, Trials};
use crate::predictors::panel::{self, Opinion};
use crate::selectors::neural_greedy_pursuit::NeuralGreedyPursuit;
use crate::selectors::omp::Omp;
use crate::selectors::sequential_attention::{Direction, SequentialAttention};
use crate::{Error, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// The features to take, without choosing a method.
    ///
    /// Holds some rows out, lets several selectors choose by the others, and asks two judges what each choice is worth on the rows held out: boosted trees and a network, each trained
    /// on the chosen features alone. Whoever does best is tried with features that only the others chose, in the place of those that the judges miss least. Then the best selector chooses once
    /// more, by all rows, with the swaps that helped.
    ///
    /// It tries `omp`, `boosting`, `sequential_attention`, `random_forest`, `sequential_attention` with `direction => 'backward'`, and, of up to 3,000 rows and 64 features, `ngp`; in this order, as
    /// far as `time_limit` allows (30 seconds if none is given). Of fewer than 3,000 rows the judges cannot tell those apart that are within one standard error: among them `ngp` is preferred,
    /// then `sequential_attention`. With a number as `k` it answers with so many features; without one, and with `k => 'auto'`, it takes the fewest features that the judges rate within
    /// one standard error of the best number. Where the limit ends the trying, the answer depends on how fast the machine is.
    ///
    /// `note` says who chose a feature. `valid_score` is the share of the loss that the features up to it save on the rows held out (of a number that is R²), the mean of the two judges, for the sizes that
    /// were judged, and `valid_error` its standard error. It is a little optimistic, because the best of several was taken: `evaluate` with `selector => 'select_features'` is not.
    ///
    /// Cost: each selector once on at most 32,768 rows (three times on fewer than 3,000), and the best once on all.
    #[selector(
        name = "select_features",
        aliases = [],
        labels = Any,
        score = "the score of the selector that was best; it is named in `note`",
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

/// Who goes first where few rows cannot tell. They led on three partings of the league's small tables, and on seven others no more: BENCHMARKS.md.
const PREFERRED: [&str; 2] = ["ngp", "sequential_attention"];

/// A selector that takes part.
struct Entrant {
    name: &'static str,
    selector: Box<dyn Selector>,
}

/// What an entrant chose by each piece of the table, and what that is worth.
struct Entry {
    entrant: usize,
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
        entries.sort_by(|a, b| b.opinion.skill.total_cmp(&a.opinion.skill).then(a.entrant.cmp(&b.entrant)));
        if pieces.len() > 1 {
            prefer(&mut entries, &entrants);
        }
        let Some((best, others)) = entries.split_first() else { return Err(Error::data("no selector could choose anything")) };
        let (curve, size) = match problem.k {
            Some(k) => (vec![(k, best.opinion)], k),
            None => sized(best, pieces, compared, problem.must_include.len(), &hasty)?,
        };
        let swaps = swaps(best, others, pieces, size, &hasty)?;
        steady.check()?;
        let mut ranking = last(problem, &entrants[best.entrant], best, size, (&steady, limit))?;
        let lead = others.first().map(|second| {
            let (lead, other) = (best.opinion.skill - second.opinion.skill, entrants[second.entrant].name);
            match lead < 0.0 {
                false => format!("best of {}, ahead of {other} by {lead:.4}", entries.len()),
                true => format!("of {}; {other} is ahead by {:.4}, which is within the standard error", entries.len(), -lead),
            }
        });
        let lead = lead.unwrap_or_else(|| "the only one tried".to_string());
        ranking = noted(ranking, &format!("{}, {lead}", entrants[best.entrant].name));
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

/// Of few rows the judges cannot tell entrants apart that are closer than a standard error: of those a preferred one goes first.
fn prefer(entries: &mut [Entry], entrants: &[Entrant]) {
    let Some(enough) = entries.first().map(|best| best.opinion.skill - best.opinion.error) else { return };
    let preferred = |entry: &Entry| PREFERRED.iter().position(|name| *name == entrants[entry.entrant].name);
    let close = entries.iter().take_while(|entry| entry.opinion.skill >= enough).count();
    if let Some(at) = (0..close).min_by_key(|at| preferred(&entries[*at]).unwrap_or(usize::MAX)) {
        entries[..=at].rotate_right(1);
    }
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
    Ok(Entry { entrant: at, rankings, opinion, seconds })
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
    missing.sort_by_key(|(votes, ranks, unit)| (std::cmp::Reverse(*votes), *ranks, *unit));
    let open = |kept: &[usize]| Ok(missing.iter().map(|(_, _, unit)| *unit).filter(|unit| !kept.contains(unit)).collect());
    let limits =
        Limits { fixed: &fixed, weak: 1, tried: TRIED, worth: WORTH, exchanges: if missing.is_empty() { 0 } else { SWAPS_MAX } };
    match exchange(&mut set, &limits, |set| Ok(panel::judge(piece, set, run)?.skill), open, &mut swaps) {
        Err(error) if !run.is_late() => Err(error),
        // What was found before the limit counts.
        _ => Ok(swaps),
    }
}

/// The best selector's choice by all rows, if there is time for it; else its choice by some.
fn last(problem: &Problem, entrant: &Entrant, best: &Entry, size: usize, (run, limit): (&Run, f64)) -> Result<Ranking> {
    let of_rows = problem.rows().rows() as f64 / (ROWS_MAX.min(problem.rows().rows()) as f64 * (1.0 - JUDGES));
    if best.seconds * of_rows <= limit - run.seconds() {
        return entrant.selector.select(&Problem { k: Some(size), ..problem.clone() }, run);
    }
    let mut ranking = best.rankings[0].clone();
    ranking.choices.truncate(size);
    forget(&mut ranking);
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
