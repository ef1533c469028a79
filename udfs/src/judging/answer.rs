//! Around every selector, ours and a plugin's: what it answers is checked and completed, so that the columns of an answer mean the same for all.

use crate::judging::notes::annotate;
use crate::judging::{size, spending};
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::{Error, Problem, Ranking, Result, Run, Selector};

/// Asks a selector, and returns its ranking with `gain`, `train_score` and `coefficient` of every choice: those of least squares on the features up to it,
/// unless the selector gave its own. With costs they are bought, and with folds also `valid_score` and `valid_error`, and as many choices as these say. Notes are added to all.
pub fn answer(selector: &dyn Selector, problem: &Problem, run: &Run) -> Result<Ranking> {
    let mut ranking = match problem.folds {
        Some(folds) => size::in_folds(selector, problem, folds, run)?,
        None => once(selector, problem, run)?,
    };
    if !is_path(&ranking) {
        annotate(problem, &mut ranking, &run.until(None))?;
    }
    Ok(ranking)
}

/// Asks once, about all rows.
pub(crate) fn once(selector: &dyn Selector, problem: &Problem, run: &Run) -> Result<Ranking> {
    if let Some(costs) = problem.costs.as_ref().filter(|_| !selector.spends()) {
        return spending::bought(selector, costs, problem, run);
    }
    let mut ranking = selector.select(problem, run)?;
    // What was chosen in time is not thrown away because the rest takes longer.
    let run = &run.until(None);
    check(&ranking, problem)?;
    if !is_path(&ranking) && ranking.choices.iter().any(|choice| choice.train_score.is_none()) {
        complete(&mut ranking, problem, run)?;
    }
    Ok(ranking)
}

/// A ranking counts its choices; a path has several rows for a step, and a feature may occur in many.
pub(super) fn is_path(ranking: &Ranking) -> bool {
    ranking.choices.iter().enumerate().any(|(at, choice)| choice.rank != at + 1)
}

pub(super) fn check(ranking: &Ranking, problem: &Problem) -> Result<()> {
    let count = problem.units.len();
    let mut chosen = vec![None; count];
    for choice in &ranking.choices {
        let Some(unit) = problem.units.get(choice.unit) else {
            return Err(Error::data(format!("a choice must be one of {count} features, got number {}", choice.unit)));
        };
        let numbers = [
            ("score", Some(choice.score)),
            ("gain", choice.gain),
            ("train_score", choice.train_score),
            ("valid_score", choice.valid_score),
            ("valid_error", choice.valid_error),
            ("p_value", choice.p_value),
            ("cost", choice.cost),
            ("coefficient", choice.coefficient),
        ];
        if let Some((name, Some(value))) = numbers.iter().find(|(_, value)| value.is_some_and(|value| !value.is_finite())) {
            return Err(Error::data(format!("{name} of `{}` must be a finite number, got {value}", unit.name)));
        }
        let earlier = chosen[choice.unit].replace(choice.rank);
        if let Some(earlier) = earlier
            && (!is_path(ranking) || earlier == choice.rank)
        {
            return Err(Error::data(format!("`{}` must be chosen once, got ranks {earlier} and {}", unit.name, choice.rank)));
        }
    }
    match problem.k {
        Some(k) if !is_path(ranking) && ranking.choices.len() > k => {
            Err(Error::data(format!("at most {k} features must be chosen, got {}", ranking.choices.len())))
        }
        _ => Ok(()),
    }
}

pub(super) fn complete(ranking: &mut Ranking, problem: &Problem, run: &Run) -> Result<()> {
    let order: Vec<(usize, f64)> = ranking.choices.iter().map(|choice| (choice.unit, choice.score)).collect();
    let products = Products::of_units(problem, |unit| order.iter().any(|(chosen, _)| *chosen == unit), run)?;
    let explained = explain(problem, &products, run, &order, Some(order.len()))?;
    for (choice, explained) in ranking.choices.iter_mut().zip(explained.choices) {
        choice.gain = choice.gain.or(explained.gain);
        choice.train_score = choice.train_score.or(explained.train_score);
        choice.coefficient = choice.coefficient.or(explained.coefficient);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{least_squares, planted};
    use crate::{Choice, Reads};

    /// Answers what it was made with.
    struct Says(Vec<Choice>);

    impl Selector for Says {
        fn reads(&self) -> Reads {
            Reads::Moments
        }

        fn select(&self, _: &Problem, _: &Run) -> Result<Ranking> {
            Ok(Ranking { choices: self.0.clone(), ..Ranking::default() })
        }
    }

    fn ask(choices: Vec<Choice>) -> Result<Ranking> {
        let (table, label) = planted(50, 4, &[2, 0], 1.0, 3);
        answer(&Says(choices), &table.k(3).problem(&label), &Run::default())
    }

    #[test]
    fn what_is_missing_is_that_of_least_squares() {
        let (table, label) = planted(50, 4, &[2, 0], 1.0, 3);
        let ranking = ask(vec![Choice::new(1, 2, 0.5), Choice::new(2, 0, 0.1)]).unwrap();
        let (_, first) = least_squares(&[table.column(2)], &label);
        let (beta, both) = least_squares(&[table.column(2), table.column(0)], &label);
        let close = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-10;
        let [one, two] = &ranking.choices[..] else { panic!("{ranking:?}") };
        assert!(close(one.train_score, first) && close(two.train_score, both) && close(two.gain, both - first));
        assert!(close(one.coefficient, beta[0]) && close(two.coefficient, beta[1]) && one.score == 0.5);
        let own = Choice { train_score: Some(0.25), gain: Some(0.2), ..Choice::new(1, 1, 0.0) };
        let kept = ask(vec![own, Choice::new(2, 0, 0.0)]).unwrap();
        assert_eq!((kept.choices[0].train_score, kept.choices[0].gain), (Some(0.25), Some(0.2)));
        assert!(kept.choices[1].train_score.is_some());
    }

    #[test]
    fn an_answer_that_is_not_sound_is_named() {
        let refused = |choices| ask(choices).unwrap_err().to_string();
        let new = Choice::new;
        assert_eq!(refused(vec![new(1, 4, 0.0)]), "a choice must be one of 4 features, got number 4");
        assert_eq!(refused(vec![new(1, 3, 0.0), new(2, 3, 0.0)]), "`x3` must be chosen once, got ranks 1 and 2");
        assert_eq!(refused(vec![new(1, 3, f64::NAN)]), "score of `x3` must be a finite number, got NaN");
        let four = (0..4).map(|unit| new(unit + 1, unit, 0.0)).collect();
        assert_eq!(refused(four), "at most 3 features must be chosen, got 4");
        let path = vec![new(1, 3, 0.0), new(2, 3, 0.0), new(2, 1, 0.0)];
        assert_eq!(ask(path.clone()).unwrap().choices, path, "a path is left as it is");
    }
}
