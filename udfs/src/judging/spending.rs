//! Around every selector that knows nothing of money: its ranking is bought from, the most gain for the money first, until the money is spent.

use crate::judging::answer::{check, complete, is_path};
use crate::{Choice, Error, Problem, Ranking, Result, Run, Selector};

/// Choices of a ranking that are looked at, unless more are asked for.
const LOOKED_AT: usize = 64;

/// The ranking of a selector by gain for the money, as far as the budget goes, with the cost of each choice.
///
/// The gain is what a choice adds to `train_score`. A feature that the selector ranks before another is worth at least as much, so that among features of one price the
/// ranking stays as it is, also where its order is not that of least squares: of two that only matter together, neither explains anything alone.
pub(super) fn bought(selector: &dyn Selector, costs: &[f64], problem: &Problem, run: &Run) -> Result<Ranking> {
    let most = problem.k.unwrap_or(problem.units.len());
    let looked_at = problem.k.map(|k| k.max(LOOKED_AT).min(problem.units.len()));
    let asked = Problem { k: looked_at, costs: None, budget: None, ..problem.clone() };
    let mut ranking = selector.select(&asked, run)?;
    // What was chosen in time is not thrown away because the rest takes longer.
    let run = &run.until(None);
    check(&ranking, &asked)?;
    if is_path(&ranking) {
        return Err(Error::call("`costs` and `budget` need a ranking, and this is a path; leave one of them out"));
    }
    complete(&mut ranking, &asked, run)?;
    let order = buy(&ranking, costs, most, problem, run)?;
    if order.is_empty()
        && let (Some(budget), Some(cheapest)) =
            (problem.budget, ranking.choices.iter().min_by(|a, b| costs[a.unit].total_cmp(&costs[b.unit])))
    {
        let (name, cost) = (&problem.units[cheapest.unit].name, costs[cheapest.unit]);
        return Err(Error::data(format!(
            "no feature is to be had for a `budget` of {budget}; the cheapest, `{name}`, costs {cost}"
        )));
    }
    let is_beginning = order.iter().enumerate().all(|(at, place)| at == *place);
    let left = problem.budget.map(|budget| budget - order.iter().map(|at| costs[ranking.choices[*at].unit]).sum::<f64>());
    let too_dear =
        |at: usize| left.is_some_and(|left| order.len() < most && !order.contains(&at) && costs[ranking.choices[at].unit] > left);
    let dear: Vec<(usize, String)> = (0..ranking.choices.len())
        .filter(|at| too_dear(*at))
        .map(|at| ranking.choices[at].unit)
        .map(|unit| (unit, format!("costs {}, and {} are left of the budget", costs[unit], left.unwrap_or_default())))
        .collect();
    let buy = |(at, place): (usize, &usize)| {
        let choice = &ranking.choices[*place];
        let choice = Choice { rank: at + 1, cost: Some(costs[choice.unit]), coefficient: None, ..choice.clone() };
        // In another order these are said of other sets.
        if is_beginning {
            choice
        } else {
            Choice { gain: None, train_score: None, valid_score: None, valid_error: None, ..choice }
        }
    };
    let choices = order.iter().enumerate().map(buy).collect();
    let mut bought = Ranking { choices, passed_over: ranking.passed_over.clone() };
    bought.passed_over.extend(dear);
    complete(&mut bought, problem, run)?;
    Ok(bought)
}

/// Places in the ranking, in the order in which they are bought.
fn buy(ranking: &Ranking, costs: &[f64], most: usize, problem: &Problem, run: &Run) -> Result<Vec<usize>> {
    let mut worth: Vec<f64> = ranking.choices.iter().map(|choice| choice.gain.unwrap_or(0.0).max(0.0)).collect();
    (1..worth.len()).rev().for_each(|at| worth[at - 1] = worth[at - 1].max(worth[at]));
    let cost = |at: usize| costs[ranking.choices[at].unit];
    let place = |unit: &usize| ranking.choices.iter().position(|choice| choice.unit == *unit);
    let mut order: Vec<usize> = problem.must_include.iter().filter_map(place).collect();
    let mut left = problem.budget.map(|budget| budget - order.iter().map(|at| cost(*at)).sum::<f64>());
    while order.len() < most {
        run.check()?;
        // A sum of costs that is the budget but for its last bit is within it.
        let fits = |at: &usize| left.is_none_or(|left| cost(*at) <= left + 1e-9 * problem.budget.unwrap_or(0.0));
        let open = (0..ranking.choices.len()).filter(|at| !order.contains(at)).filter(fits);
        // Of two that are equal the one that the selector ranks first.
        let is_better = |a: usize, b: usize| worth[a] * cost(b) > worth[b] * cost(a) * (1.0 + 1e-12);
        let Some(best) = open.reduce(|best, at| if is_better(at, best) { at } else { best }) else { break };
        left = left.map(|left| left - cost(best));
        order.push(best);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::selectors;
    use crate::testing::{Table, planted};
    use crate::{Reads, Settings, answer};

    fn ask(name: &str, table: &Table, label: &[f64], from_rows: bool) -> Result<Vec<(String, f64)>> {
        let selector = selectors().into_iter().find(|spec| spec.name == name).unwrap().selector(&Settings::new())?;
        let problem = table.try_problem(label, from_rows)?;
        let ranking = answer(&*selector, &problem, &Run::default())?;
        assert!(ranking.choices.iter().all(|choice| choice.train_score.is_some() && choice.cost.is_some()));
        Ok(ranking.choices.iter().map(|choice| (problem.units[choice.unit].name.clone(), choice.cost.unwrap())).collect())
    }

    fn costs(mut table: Table, costs: &[(&str, f64)], budget: Option<f64>) -> Table {
        table.common.spending.costs = costs.iter().map(|(name, cost)| (name.to_string(), *cost)).collect();
        table.common.spending.budget = budget;
        table
    }

    fn names(answer: &[(String, f64)]) -> Vec<&str> {
        answer.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The first carries most, and costs more than the others together.
    #[test]
    fn the_most_gain_for_the_money_until_it_is_spent() {
        let (table, label) = planted(400, 6, &[2, 0, 4], 0.1, 3);
        for from_rows in [false, true] {
            let ask = |table: &Table| ask("omp", table, &label, from_rows);
            let dear = costs(table.clone(), &[("x2", 100.0)], Some(50.0));
            assert_eq!(names(&ask(&dear).unwrap())[..2], ["x0", "x4"]);
            let all = costs(table.clone().k(3), &[("x2", 100.0)], None);
            assert_eq!(names(&ask(&all).unwrap())[..2], ["x0", "x4"], "costs alone order");
            let spent = ask(&costs(table.clone(), &[("x2", 10.0), ("x0", 7.0), ("x4", 5.0)], Some(17.0))).unwrap();
            assert!(spent.iter().map(|(_, cost)| cost).sum::<f64>() <= 17.0 && names(&spent).contains(&"x2"), "{spent:?}");
        }
    }

    #[test]
    fn at_one_price_the_ranking_is_the_selectors() {
        let (table, label) = planted(300, 8, &[2, 0, 4], 0.5, 3);
        for (name, from_rows) in [("omp", false), ("lasso", false), ("correlation", true), ("random_forest", true)] {
            let selector = selectors().into_iter().find(|spec| spec.name == name).unwrap().selector(&Settings::new()).unwrap();
            let plain = table.clone().k(8).try_problem(&label, from_rows).unwrap();
            let ranking = answer(&*selector, &plain, &Run::default()).unwrap();
            let expected: Vec<&str> = ranking.units().iter().map(|unit| plain.units[*unit].name.as_str()).take(3).collect();
            let bought = ask(name, &costs(table.clone(), &[], Some(3.0)), &label, from_rows).unwrap();
            assert_eq!(names(&bought), expected, "{name}");
        }
    }

    /// A selector that knows what least squares does not see.
    struct Says(Vec<usize>);

    impl Selector for Says {
        fn reads(&self) -> Reads {
            Reads::Rows
        }

        fn select(&self, _: &Problem, _: &Run) -> Result<Ranking> {
            let choices = self.0.iter().enumerate().map(|(at, unit)| Choice::new(at + 1, *unit, 0.0)).collect();
            Ok(Ranking { choices, ..Ranking::default() })
        }
    }

    #[test]
    fn what_is_ranked_first_is_worth_no_less() {
        let (table, label) = planted(200, 4, &[2], 0.5, 3);
        let problem = costs(table, &[], Some(2.0)).problem_of_rows(&label);
        let ranking = answer(&Says(vec![3, 1, 2, 0]), &problem, &Run::default()).unwrap();
        assert_eq!(ranking.units(), [3, 1], "x2 explains nearly all, and the selector does not care");
    }

    #[test]
    fn what_is_forced_is_paid_first_and_nothing_is_not_an_answer() {
        let (table, label) = planted(200, 4, &[2], 0.5, 3);
        let mut forced = costs(table.clone(), &[("x1", 4.0)], Some(5.0));
        forced.common.must_include = vec!["x1".into()];
        assert_eq!(names(&ask("omp", &forced, &label, false).unwrap()), ["x1", "x2"]);
        let refused = |table: &Table| ask("omp", table, &label, false).unwrap_err().to_string();
        forced.common.spending.budget = Some(3.0);
        assert_eq!(refused(&forced), "`budget` must be at least 4 to pay for what must_include names, got 3");
        let dear = costs(table.clone(), &[("x0", 9.0), ("x1", 9.0), ("x2", 7.0), ("x3", 9.0)], Some(5.0));
        assert_eq!(refused(&dear), "no feature is to be had for a `budget` of 5; the cheapest, `x2`, costs 7");
        assert!(refused(&costs(table, &[("y", 1.0)], None)).starts_with("`costs` names `y`, which is not a feature"));
    }
}
