use crate::datum_wise::{Asking, Decision, Policy};
use crate::{Check, Choice, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Datum-wise classification: easy rows need few features.
    ///
    /// Learns a policy that asks for the features of a row one by one and predicts its class when it knows enough, so that an easy row needs
    /// few and a hard one more. Ranks features by the share of rows that ask for them.
    ///
    /// Asking for a feature costs `lambda`, a wrong class costs 1. Each action, a class or a feature, has a score that is linear in what is known;
    /// the policy takes the best. It is trained by policy iteration: in each of `iterations`,
    ///
    /// 1. draw `states` of every row, that is sets of features that are known: at random at first, later four fifths of them from the policy's own way
    /// 2. from each, try every action and follow the policies so far to the end
    /// 3. regress what was earned on what was known, for each action, and mix the new policy in
    ///
    /// Where it departs from the paper: a score has an intercept, because without one all are 0 before anything is known and the first action is arbitrary
    /// (accuracy on wine fell from 0.96 to about 0.8); prices are known, so that they are subtracted from scores and not learnt by the regression; and
    /// `relation` is 'any', as in the words of the paper's experiment on pictures, where its Table 2 has 'all'.
    ///
    /// `k => 'auto'` lists every feature that some row asks for. `reason` tells when it is asked for.
    ///
    /// Cost: for each iteration, `rows × states × features² / 2` steps of rollouts and as many regressions on `2 × features` numbers as there are features, in
    /// parallel over rows and over actions.
    ///
    /// Source: Dulac-Arnold, Denoyer, Preux and Gallinari, 2012. Sequential approaches for learning datum-wise sparse representations.
    #[selector(
        name = "datum_wise",
        aliases = ["dwsm"],
        labels = Classes,
        score = "share of rows that ask for the feature",
    )]
    pub struct DatumWise {
        /// What asking for a feature costs, where a mistake costs 1. Too much, and every row is given the commonest class unseen.
        lambda: f64 = 0.01, Check::AtLeast(0.0);
        ..asking: Asking;
    }
}

impl Selector for DatumWise {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        self.asking.unused(option)
    }

    fn spends(&self) -> bool {
        true
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let policy = self.asking.learn(self.lambda, problem, run)?;
        let rows = problem.rows();
        let mut usage = Usage::new(&policy);
        policy.decide_rows(problem, rows, run, |row, decision| {
            usage.add(decision, rows.weights.get(row).copied().unwrap_or(1.0));
        })?;
        Ok(ranking(problem, &policy, &usage))
    }
}

/// How often each unit was asked for, and when.
struct Usage {
    total: f64,
    asked: Vec<f64>,
    places: Vec<f64>,
}

impl Usage {
    fn new(policy: &Policy) -> Self {
        Self { total: 0.0, asked: vec![0.0; policy.units.len()], places: vec![0.0; policy.units.len()] }
    }

    fn add(&mut self, decision: &Decision, weight: f64) {
        self.total += weight;
        for (place, unit) in decision.units.iter().enumerate() {
            self.asked[*unit] += weight;
            self.places[*unit] += weight * (place + 1) as f64;
        }
    }
}

fn ranking(problem: &Problem, policy: &Policy, usage: &Usage) -> Ranking {
    let place_of = |unit: usize| policy.units.iter().position(|known| known.name == problem.units[unit].name);
    let mut order: Vec<(usize, usize)> = (0..problem.units.len()).filter_map(|unit| Some((unit, place_of(unit)?))).collect();
    let forced = |unit: usize| problem.must_include.iter().position(|other| *other == unit).unwrap_or(usize::MAX);
    order.sort_by(|(a, at), (b, bt)| {
        forced(*a).cmp(&forced(*b)).then(usage.asked[*bt].total_cmp(&usage.asked[*at])).then(a.cmp(b))
    });
    // Nobody asks: say so, and list what there is.
    let is_silent = order.iter().all(|(unit, at)| usage.asked[*at] == 0.0 || forced(*unit) < usize::MAX);
    let worth_listing = |(unit, at): &&(usize, usize)| usage.asked[*at] > 0.0 || forced(*unit) < usize::MAX || is_silent;
    let listed = order.iter().filter(worth_listing).take(problem.k.unwrap_or(usize::MAX));
    let choice = |(rank, (unit, at)): (usize, &(usize, usize))| {
        let asked = usage.asked[*at];
        let note = if asked > 0.0 {
            format!("place {:.1} on average", usage.places[*at] / asked)
        } else {
            "no row asks for any feature: each is given the same class; lower the price".to_string()
        };
        let cost = Some(policy.rewards.prices[*at]);
        Choice { cost, reason: Some(note), ..Choice::new(rank + 1, *unit, asked / usage.total) }
    };
    let choices = listed.enumerate().map(choice).collect();
    let passed_over = (0..problem.units.len())
        .filter(|unit| problem.why_never(*unit).is_none())
        .filter_map(|unit| match place_of(unit) {
            None => Some((unit, "another feature has the same values".to_string())),
            Some(at) if usage.asked[at] == 0.0 => Some((unit, "no row asks for it".to_string())),
            Some(_) => None,
        })
        .collect();
    Ranking { choices, passed_over }
}
