use std::sync::Arc;

use rayon::prelude::*;

use crate::contract::report::{Kind, Report, Values};
use crate::judging::judge::{self, Verdict};
use crate::network::samples::Inputs;
use crate::network::training::Training;
use crate::neural::candidates::Candidates;
use crate::{Error, Problem, Result, Run, Split, report};

report! {
    /// What each feature would add to a given set.
    ///
    /// For every feature that is not in `given` a network is trained on `given` and that feature alone. `gain` is how much smaller its loss is
    /// than that of a network on `given` alone, `score` its accuracy or R², which is NULL where the label does not vary in the rows judged by. Both are of the table given as `test`, or of a held-out
    /// share of the rows (`validation`, by default a fifth). This is the truth that attention weights stand for, at the price of as many
    /// trainings as there are features: compare the two with `corr` over ranks.
    #[report(name = "marginal_gains", aliases = [], table = ("test", "The rows to judge by, with the same columns."))]
    pub struct MarginalGains {
        /// Features that are there already.
        given: Vec<String> = Vec::new();
        ..training: Training;
    }
}

impl Report for MarginalGains {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        vec![
            ("rank", Kind::Whole),
            ("feature", Kind::Text),
            ("gain", Kind::Number),
            ("loss", Kind::Number),
            ("score", Kind::Number),
        ]
    }

    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let rows = problem.rows();
        if problem.held_out.as_ref().map_or(rows.rows() < 10, |test| test.rows() == 0) {
            return Err(Error::data("too few rows to judge by; give a larger table, or one as `test`"));
        }
        let candidates = Candidates::new(problem, rows, run)?;
        let name = |candidate: usize| problem.units[candidates.units[candidate]].name.as_str();
        let find = |wanted: &String| {
            let units: Vec<String> = problem.units.iter().map(|unit| unit.name.clone()).collect();
            let at = (0..candidates.len()).find(|candidate| name(*candidate) == wanted);
            at.ok_or_else(|| match units.contains(wanted) {
                true => {
                    Error::data(format!("`given` names `{wanted}`, which is constant or repeats another feature; leave it out"))
                }
                false => crate::settings::options::unknown_names("given", wanted, &units),
            })
        };
        let given = self.given.iter().map(find).collect::<Result<Vec<usize>>>()?;
        let split = match problem.held_out {
            Some(_) => Split::none(rows.rows()),
            None => self.training.split(rows, true, run),
        };
        let fit = |chosen: &[usize]| -> Result<Verdict> {
            let columns = candidates.inputs_of(chosen).iter().map(|input| candidates.columns[*input]).collect();
            let inputs = Inputs::new(problem, rows, columns);
            let train = Arc::new(inputs.samples(rows, &split.train, run)?);
            let test = match &problem.held_out {
                Some(test) => inputs.samples(test, &Split::none(test.rows()).train, run)?,
                None => inputs.samples(rows, &split.valid, run)?,
            };
            let test = Arc::new(test);
            let (learnt, asked) = (train.all(), test.all());
            let steps = self.training.steps(train.pass_rows(&learnt), ROUNDS);
            Ok(judge::fit(&inputs, (&train, &learnt), &[(&test, &asked)], &self.training, steps, run)?.remove(0))
        };
        let before = fit(&given)?;
        let open: Vec<usize> = (0..candidates.len()).filter(|candidate| !given.contains(candidate)).collect();
        let done = std::sync::atomic::AtomicUsize::new(0);
        let one = |candidate: &usize| {
            run.step(done.fetch_add(1, std::sync::atomic::Ordering::Relaxed), open.len())?;
            Ok((*candidate, fit(&[&given[..], &[*candidate]].concat())?))
        };
        let mut gains: Vec<(usize, Verdict)> = open.par_iter().map(one).collect::<Result<_>>()?;
        gains.sort_by(|a, b| a.1.loss.total_cmp(&b.1.loss).then(a.0.cmp(&b.0)));
        Ok(vec![
            Values::wholes(1..=gains.len()),
            Values::texts(gains.iter().map(|(candidate, _)| name(*candidate))),
            Values::numbers(gains.iter().map(|(_, verdict)| before.loss - verdict.loss)),
            Values::numbers(gains.iter().map(|(_, verdict)| verdict.loss)),
            Values::Number(gains.iter().map(|(_, verdict)| verdict.score()).collect()),
        ])
    }
}

/// Each network is trained as long as so many rounds of a selection.
const ROUNDS: usize = 10;
