use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::contract::report::{Compared, Kind, Repeats, Report, Values};
use crate::contract::selector::{Reads, Spec};
use crate::judging::answer::once;
use crate::judging::resample::{HeldOut, Pieces};
use crate::judging::size::{mean_and_error, sized};
use crate::predictors::panel;
use crate::settings::options::{OptionType, Settings};
use crate::{Error, Parting, Problem, Ranking, Result, Run, choice, report};

choice! {
    /// Who judges the features that were chosen.
    pub enum Judge {
        Linear = "linear",
        Nonlinear = "nonlinear",
    }
}

report! {
    /// Which method: selectors side by side, judged on held-out rows.
    ///
    /// One row for each selector, the best first: what it chooses by all rows (`features`), and `valid_score`, what its choice is worth on rows that it has not seen, with the
    /// standard error `valid_error`. For that the selection is repeated without each of `folds` folds of the rows (five if nothing is said), and the rows left out judge. Two scores that
    /// are closer than their errors do not tell who is better. `overlap` is how much the choice has in common with the others': the mean, over the other
    /// selectors, of the features in both choices by those in either (Jaccard); `closest` is the one most like it. `seconds` is what choosing by all rows took, once they were read.
    ///
    /// With judge => 'linear' a choice is worth the share of the label's variance that least squares explains with it. It is fair to linear selectors, and does not see what only a
    /// network or a tree would make of the features. With judge => 'nonlinear' boosted trees and a network judge, each trained on the chosen features alone: the share of the loss that
    /// they save, the mean of both. That needs the rows, and two trainings for each fold of each selector.
    ///
    /// pairs => true answers with a row for each two selectors instead: `jaccard`, and the features that they share.
    ///
    /// The table is read once for all. If every selector needs second moments only and the judge is linear, these are gathered in parts in one pass; otherwise the rows are kept. A selector
    /// that cannot answer, because the label is of the wrong kind or the time is over, says so in `note`, and the others still do.
    ///
    /// Cost: `folds` + 1 selections of each selector.
    #[report(name = "compare_selectors", aliases = [])]
    pub struct CompareSelectors {
        /// The selectors by name. An empty list: all that need second moments only.
        selectors: Vec<String> = Vec::new();
        /// Options of their own, as a map or a JSON text: for the name of each selector another map or JSON text.
        selector_options: Settings = Settings::new();
        /// Who judges: least squares, or boosted trees and a network.
        judge: Judge = Judge::Linear;
        /// Answer with a row for each two selectors.
        pairs: bool = false;
    }
}

/// Folds, if nobody says.
const FOLDS: usize = 5;

/// What a selector chose, and what that is worth.
#[derive(Serialize, Deserialize)]
struct Entry {
    units: Vec<usize>,
    score: Option<(f64, f64)>,
    seconds: f64,
}

impl Report for CompareSelectors {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        if self.pairs {
            return vec![
                ("selector", Kind::Text),
                ("other", Kind::Text),
                ("jaccard", Kind::Number),
                ("n_shared", Kind::Whole),
                ("shared", Kind::Texts),
            ];
        }
        vec![
            ("rank", Kind::Whole),
            ("selector", Kind::Text),
            ("valid_score", Kind::Number),
            ("valid_error", Kind::Number),
            ("n_features", Kind::Whole),
            ("features", Kind::Texts),
            ("overlap", Kind::Number),
            ("closest", Kind::Text),
            ("seconds", Kind::Number),
            ("note", Kind::Text),
        ]
    }

    fn compares(&self, known: &[&Spec]) -> Result<Vec<Repeats>> {
        let reads_moments =
            |spec: &&&Spec| spec.selector(&Settings::new()).is_ok_and(|selector| selector.reads() == Reads::Moments);
        let names: Vec<String> = match &self.selectors[..] {
            [] => {
                known.iter().filter(|spec| spec.is_selector()).filter(reads_moments).map(|spec| spec.name.to_string()).collect()
            }
            names => names.iter().map(|name| name.to_lowercase()).collect(),
        };
        if let Some(name) = self.selector_options.keys().find(|name| !names.contains(name)) {
            return Err(Error::call(format!(
                "`selector_options` names `{name}`, which is not compared; selectors are {}",
                names.join(", ")
            )));
        }
        let options = |name: &String| match self.selector_options.get(name) {
            None => Ok(Settings::new()),
            Some(options) => Settings::parse(options)
                .ok_or_else(|| Error::call(format!("`selector_options` of `{name}` must be {}", Settings::allowed()))),
        };
        names.iter().map(|name| Ok(Repeats { selector: name.clone(), options: options(name)? })).collect()
    }

    fn reads(&self, _: Option<&dyn crate::Selector>) -> Reads {
        if self.judge == Judge::Linear { Reads::Moments } else { Reads::Rows }
    }

    fn parting(&self, folds: Option<usize>, columns: usize, seed: u64) -> Parting {
        Parting::for_folds(folds.unwrap_or(FOLDS), columns, seed)
    }

    fn repetitions(&self, _: Option<usize>, compared: usize) -> usize {
        compared
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        match option {
            "judge" if self.pairs => Some("pairs => false, because of pairs nothing is judged"),
            _ => None,
        }
    }

    fn report(&self, _: &Problem, _: &Run) -> Result<Vec<Values>> {
        Err(Error::call("needs selectors to compare"))
    }

    fn report_on_all(&self, selectors: &[Compared], problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let entries: Vec<Result<Entry>> = run.repeat(
            || problem.fingerprint(),
            selectors.len(),
            |mine, run| {
                let entry = |at: &usize| {
                    let entered = run.step_with(*at, selectors.len(), || selectors[*at].name.to_string());
                    match entered.and_then(|()| self.entry(&selectors[*at], problem, run)) {
                        Ok(entry) => Ok(Ok(entry)),
                        // What one cannot answer others may.
                        Err(error) if matches!(error.kind(), crate::Kind::Data | crate::Kind::Limit) => Ok(Err(error)),
                        Err(error) => Err(error),
                    }
                };
                mine.iter().map(entry).collect()
            },
        )?;
        if let Some(Err(error)) = entries.first()
            && entries.iter().all(Result::is_err)
        {
            return Err(error.clone());
        }
        let names: Vec<&str> = selectors.iter().map(|compared| compared.name.as_str()).collect();
        Ok(if self.pairs { pairs(&names, &entries, problem) } else { ranked(&names, &entries, problem) })
    }
}

impl CompareSelectors {
    fn entry(&self, compared: &Compared, problem: &Problem, run: &Run) -> Result<Entry> {
        compared.check_label(&problem.label)?;
        let (selector, folds) = (&*compared.selector, problem.folds.unwrap_or(FOLDS));
        let units = |ranking: &Ranking| {
            // A path names a feature once for each step.
            let mut seen = BTreeSet::new();
            ranking.units().into_iter().filter(|unit| seen.insert(*unit)).collect::<Vec<_>>()
        };
        let is_open = problem.folds.is_some() && problem.k.is_none();
        if self.pairs || (self.judge == Judge::Nonlinear && !is_open) {
            let begun = run.seconds();
            let asked = Problem { folds: None, ..problem.clone() };
            let units = units(&once(selector, &asked, run)?);
            let seconds = run.seconds() - begun;
            let score = if self.pairs { None } else { Some(self.judged(compared, &asked, folds, run)?) };
            return Ok(Entry { units, score, seconds });
        }
        let sized = sized(selector, problem, folds, run)?;
        let units = units(&sized.ranking);
        let score = match self.judge {
            Judge::Linear => sized.curve.at(units.len()),
            Judge::Nonlinear => {
                let asked = Problem { folds: None, k: Some(units.len().max(1)), ..problem.clone() };
                self.judged(compared, &asked, folds, run)?
            }
        };
        Ok(Entry { units, score: Some(score), seconds: sized.seconds })
    }

    /// What trees and a network think of the choices by all folds but one, on the rows of that one.
    fn judged(&self, compared: &Compared, problem: &Problem, folds: usize, run: &Run) -> Result<(f64, f64)> {
        let pieces = Pieces::new(problem, run)?;
        let parts = pieces.folds(folds)?;
        let mut scores = Vec::new();
        for fold in 0..folds {
            run.check()?;
            let piece = pieces.without(&parts, fold, run)?;
            let HeldOut::Rows(held_out) = piece.held_out else { return Err(Error::call("judge => 'nonlinear' needs rows")) };
            let units = once(&*compared.selector, &piece.problem, run)?.units();
            let judged = Problem { held_out: Some(held_out), ..piece.problem };
            scores.push(panel::judge(&judged, &units, run)?.skill);
        }
        Ok(mean_and_error(&scores))
    }
}

/// Features in both sets, by those in either. Two that are empty have all in common.
fn jaccard(a: &[usize], b: &[usize]) -> f64 {
    let both = a.iter().filter(|unit| b.contains(unit)).count();
    let either = a.len() + b.len() - both;
    if either == 0 { 1.0 } else { both as f64 / either as f64 }
}

fn ranked(names: &[&str], entries: &[Result<Entry>], problem: &Problem) -> Vec<Values> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    let score = |at: usize| entries[at].as_ref().ok().and_then(|entry| entry.score).map_or(f64::NEG_INFINITY, |(score, _)| score);
    let size = |at: usize| entries[at].as_ref().map_or(usize::MAX, |entry| entry.units.len());
    // The last digits depend on the order in which features were summed, and decide nothing.
    let rounded = |at: usize| (1e12 * score(at)).round();
    // Of equal ones that with fewer features, then the one that was named first.
    order.sort_by(|a, b| rounded(*b).total_cmp(&rounded(*a)).then(size(*a).cmp(&size(*b))).then(a.cmp(b)));
    let own = |at: usize| entries[at].as_ref().ok();
    let likeness = |at: usize| -> Vec<(usize, f64)> {
        let Some(mine) = own(at) else { return Vec::new() };
        (0..names.len())
            .filter(|other| *other != at)
            .filter_map(|other| Some((other, jaccard(&mine.units, &own(other)?.units))))
            .collect()
    };
    let overlap = |at: usize| {
        let alike: Vec<f64> = likeness(at).into_iter().map(|(_, jaccard)| jaccard).collect();
        (!alike.is_empty()).then(|| mean_and_error(&alike).0)
    };
    let closest = |at: usize| {
        let closest = likeness(at).into_iter().min_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)))?;
        Some(names[closest.0].to_string())
    };
    let place = |rank: usize| own(order[rank]).map(|_| rank as i64 + 1);
    let rows = || order.iter().copied();
    vec![
        Values::Whole((0..order.len()).map(place).collect()),
        Values::texts(rows().map(|at| names[at])),
        Values::Number(rows().map(|at| Some(own(at)?.score?.0)).collect()),
        Values::Number(rows().map(|at| Some(own(at)?.score?.1)).collect()),
        Values::Whole(rows().map(|at| Some(own(at)?.units.len() as i64)).collect()),
        Values::Texts(rows().map(|at| own(at).map_or(Vec::new(), |entry| feature_names(&entry.units, problem))).collect()),
        Values::Number(rows().map(overlap).collect()),
        Values::Text(rows().map(closest).collect()),
        Values::Number(rows().map(|at| Some(own(at)?.seconds)).collect()),
        Values::Text(rows().map(|at| entries[at].as_ref().err().map(Error::to_string)).collect()),
    ]
}

fn pairs(names: &[&str], entries: &[Result<Entry>], problem: &Problem) -> Vec<Values> {
    type Answered<'a> = (usize, &'a Entry);
    let answered: Vec<Answered<'_>> =
        entries.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_ref().ok()?))).collect();
    let mut all: Vec<(&Answered<'_>, &Answered<'_>)> =
        answered.iter().flat_map(|a| answered.iter().filter(move |b| a.0 != b.0).map(move |b| (a, b))).collect();
    all.sort_by_key(|(a, b)| (a.0, Reverse((1e9 * jaccard(&a.1.units, &b.1.units)) as u64), b.0));
    let shared = |(a, b): &(&Answered<'_>, &Answered<'_>)| -> Vec<usize> {
        a.1.units.iter().copied().filter(|unit| b.1.units.contains(unit)).collect()
    };
    vec![
        Values::texts(all.iter().map(|(a, _)| names[a.0])),
        Values::texts(all.iter().map(|(_, b)| names[b.0])),
        Values::numbers(all.iter().map(|(a, b)| jaccard(&a.1.units, &b.1.units))),
        Values::wholes(all.iter().map(|pair| shared(pair).len())),
        Values::Texts(all.iter().map(|pair| feature_names(&shared(pair), problem)).collect()),
    ]
}

fn feature_names(units: &[usize], problem: &Problem) -> Vec<String> {
    units.iter().map(|unit| problem.units[*unit].name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::selectors;
    use crate::testing::{Table, planted};

    fn compared(report: &CompareSelectors) -> Vec<Compared> {
        let known = selectors();
        let repeats = report.compares(&known.iter().collect::<Vec<_>>()).unwrap();
        let find = |repeats: &Repeats| known.iter().find(|spec| spec.name == repeats.selector).unwrap();
        repeats.iter().map(|repeats| Compared::new(find(repeats), &repeats.options).unwrap()).collect()
    }

    fn ask(report: &CompareSelectors, table: &Table, label: &[f64], from_rows: bool) -> Vec<Values> {
        let problem = table.try_problem(label, from_rows).unwrap();
        report.report_on_all(&compared(report), &problem, &Run::new(1)).unwrap()
    }

    fn named(names: &[&str]) -> CompareSelectors {
        CompareSelectors { selectors: names.iter().map(|name| name.to_string()).collect(), ..CompareSelectors::default() }
    }

    #[test]
    fn all_that_read_moments_are_compared_by_themselves() {
        let names: Vec<String> = compared(&CompareSelectors::default()).into_iter().map(|compared| compared.name).collect();
        assert!(["omp", "lasso", "correlation"].iter().all(|name| names.contains(&name.to_string())), "{names:?}");
        assert!(!names.contains(&"boosting".to_string()));
    }

    /// What is told of one selector is what folds tell of it.
    #[test]
    fn scores_are_those_of_folds() {
        let (table, label) = planted(300, 12, &[3, 7, 1], 2.0, 5);
        for from_rows in [false, true] {
            let table = table.clone().k(4).folds(5);
            let values = ask(&named(&["omp", "correlation"]), &table, &label, from_rows);
            let omp = (0..2).find(|row| values[1].text(*row) == Some("omp")).unwrap();
            let selector = selectors().into_iter().find(|spec| spec.name == "omp").unwrap().selector(&Settings::new()).unwrap();
            let problem = table.try_problem(&label, from_rows).unwrap();
            let alone = crate::answer(&*selector, &problem, &Run::new(1)).unwrap();
            let last = alone.choices.last().unwrap();
            assert_eq!((values[2].number(omp), values[3].number(omp)), (last.valid_score, last.valid_error));
            let Values::Texts(features) = &values[5] else { panic!("a list") };
            assert_eq!(features[omp], feature_names(&alone.units(), &problem));
            assert!(values[2].number(0) >= values[2].number(1), "the best comes first");
        }
    }

    #[test]
    fn overlaps_are_those_of_the_sets() {
        assert_eq!(jaccard(&[1, 2, 3], &[2, 3, 4]), 0.5);
        assert_eq!((jaccard(&[], &[]), jaccard(&[1], &[])), (1.0, 0.0));
        let (table, label) = planted(300, 12, &[3, 7, 1], 2.0, 5);
        let report = CompareSelectors { pairs: true, ..named(&["omp", "lasso", "correlation"]) };
        let values = ask(&report, &table.k(4), &label, false);
        assert_eq!(values[0].rows(), 6);
        let Values::Texts(shared) = &values[4] else { panic!("a list") };
        for (row, shared) in shared.iter().enumerate() {
            let both = shared.len() as f64;
            assert!((values[2].number(row).unwrap() - both / (8.0 - both)).abs() < 1e-12);
        }
    }

    /// On noise no method is worth anything, to either judge.
    #[test]
    fn noise_is_worth_nothing() {
        let (mut linear, mut nonlinear) = (0.0, 0.0);
        for seed in 0..6 {
            let table = Table::random(80, 30, seed).k(5).folds(4);
            let noise = planted(80, 1, &[0], 1.0, 900 + seed).1;
            linear += ask(&named(&["omp", "correlation"]), &table, &noise, false)[2].number(0).unwrap() / 6.0;
            let report = CompareSelectors { judge: Judge::Nonlinear, ..named(&["omp"]) };
            nonlinear += ask(&report, &table, &noise, true)[2].number(0).unwrap() / 6.0;
        }
        assert!(linear < 0.05 && nonlinear < 0.05, "{linear} {nonlinear}");
    }

    #[test]
    fn who_cannot_answer_says_why() {
        let (table, label) = planted(100, 5, &[1], 1.0, 3);
        let values = ask(&named(&["datum_wise", "omp"]), &table.k(2), &label, true);
        assert_eq!((values[1].text(0), values[0].whole(0), values[0].whole(1)), (Some("omp"), Some(1), None));
        assert_eq!((values[9].text(0), values[9].text(1)), (None, Some("takes classes, and the label is a number")));
    }

    #[test]
    fn options_belong_to_who_is_compared() {
        let options: Settings = serde_json::from_str(r#"{"lasso": {}}"#).unwrap();
        let report = CompareSelectors { selector_options: options, ..named(&["omp"]) };
        let error = report.compares(&[]).unwrap_err().to_string();
        assert_eq!(error, "`selector_options` names `lasso`, which is not compared; selectors are omp");
    }
}
