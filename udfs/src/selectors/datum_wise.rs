use std::collections::BTreeMap;

use crate::datum_wise::{Decision, Discount, Neighbours, Policy, Relation, Rewards, Training, learn};
use crate::options::{Lists, Pairs, unknown_names};
use crate::{Check, Choice, Data, Error, Label, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Datum-wise sparse classification.
    ///
    /// Learns a policy that asks for the features of a row one by one and predicts its class when it knows enough, so that an easy row needs
    /// few and a hard one more. Ranks features by the share of rows that ask for them.
    ///
    /// Asking for a feature costs `lambda`, a wrong class costs 1. Each action, a class or a feature, has a score that is linear in what is known;
    /// the policy takes the best. It is trained by policy iteration: in each of `iterations`,
    ///
    /// 1. draw `states` of every row: random sets of known features
    /// 2. from each, try every action and follow the policies so far to the end
    /// 3. regress what was earned on what was known, for each action, and mix the new policy in
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
        /// Most features that a row may ask for; NULL: all.
        budget: Option<usize> = None, Check::AtLeast(1.0);
        /// What asking for a feature costs, by feature or group; the others cost `lambda`.
        costs: BTreeMap<String, f64> = BTreeMap::new(), Check::AtLeast(0.0);
        /// What it costs once another feature of its cost group is known: blood is drawn once.
        next_costs: BTreeMap<String, f64> = BTreeMap::new(), Check::AtLeast(0.0);
        /// Features that share an expense, for `next_costs`.
        cost_groups: Lists = Lists::default();
        /// What predicting costs, a list for each predicted class with a number for each true one, in the order of the classes; below 0 is a gain.
        cost_matrix: Vec<Vec<f64>> = Vec::new();
        /// Pairs of features that are near each other. A feature that is near to what is known costs as above, any other `gamma`.
        related: Pairs = Pairs::default();
        /// Height and width of the picture whose pixels the features are, row by row: touching ones are near each other, and so are groups with touching pixels.
        image: Vec<usize> = Vec::new(), Check::AtLeast(1.0);
        /// What asking for a feature costs that is not near to what is known; NULL: ten times `lambda`.
        gamma: Option<f64> = None, Check::AtLeast(0.0);
        /// Near to any of the known features, or to all of them.
        relation: Relation = Relation::Any;
        /// Only features that are near to what is known may be asked for.
        hard: bool = false;
        /// How often the policy is improved.
        iterations: usize = 10, Check::Between(1.0, 10000.0);
        /// States tried of each row in each iteration; NULL: ten, and up to a hundred in a small table.
        states: Option<usize> = None, Check::Between(1.0, 100000.0);
        /// The chance that a rollout follows an earlier policy instead of the newest.
        mixture: f64 = 0.7, Check::Between(0.0, 0.999);
        /// Penalty on the squared weights of the regressions, for each unit of weight.
        ridge: f64 = 0.01, Check::Above(0.0);
    }
}

impl Selector for DatumWise {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let policy = self.learn(problem, run)?;
        let Data::Rows(rows) = &problem.data else { unreachable!("declared to read rows") };
        let mut usage = Usage::new(&policy);
        policy.decide_rows(problem, rows, |row, decision| {
            usage.add(decision, rows.weights.get(row).copied().unwrap_or(1.0));
        });
        Ok(ranking(problem, &policy, &usage))
    }
}

impl DatumWise {
    /// Trains the policy that these options describe.
    pub fn learn(&self, problem: &Problem, run: &Run) -> Result<Policy> {
        let Data::Rows(rows) = &problem.data else { unreachable!("declared to read rows") };
        learn(problem, rows, |units| self.rewards(problem, units), &self.training(), run)
    }

    fn training(&self) -> Training {
        Training { iterations: self.iterations, states: self.states, mixture: self.mixture, ridge: self.ridge }
    }

    /// The options as prices and costs of the units that may be asked for.
    fn rewards(&self, problem: &Problem, units: &[usize]) -> Result<Rewards> {
        let Label::Classes(classes) = &problem.label else { unreachable!("checked by the problem") };
        let mut rewards = Rewards::plain(classes.len(), units.len(), self.lambda);
        let names = Names { problem, units };
        for (name, cost) in &self.costs {
            names.find("costs", name)?.into_iter().for_each(|unit| rewards.prices[unit] = *cost);
        }
        rewards.budget = self.budget;
        if !self.cost_matrix.is_empty() {
            rewards.mistakes = self.mistakes(classes)?;
        }
        if !self.next_costs.is_empty() {
            let mut prices = rewards.prices.clone();
            for (name, cost) in &self.next_costs {
                names.find("next_costs", name)?.into_iter().for_each(|unit| prices[unit] = *cost);
            }
            if self.cost_groups.0.is_empty() {
                return Err(Error::call("`next_costs` needs `cost_groups`, which says what features share an expense"));
            }
            rewards.discount = Some(Discount { prices, shared: names.pairs("cost_groups", &together(&self.cost_groups))? });
        } else if !self.cost_groups.0.is_empty() {
            return Err(Error::call(
                "`cost_groups` needs `next_costs`, which says what a feature costs once another of its group is known",
            ));
        }
        rewards.neighbours = self.neighbours(&names)?;
        Ok(rewards)
    }

    fn mistakes(&self, classes: &[String]) -> Result<Vec<f64>> {
        let n = classes.len();
        if self.cost_matrix.len() != n || self.cost_matrix.iter().any(|row| row.len() != n) {
            return Err(Error::call(format!(
                "`cost_matrix` must be {n} lists of {n} numbers, one for each of the classes {}",
                crate::name_list(classes)
            )));
        }
        Ok(self.cost_matrix.concat())
    }

    fn neighbours(&self, names: &Names<'_>) -> Result<Option<Neighbours>> {
        let related = match (&self.related.0[..], &self.image[..]) {
            ([], []) if self.gamma.is_some() || self.hard => {
                let option = if self.hard { "hard" } else { "gamma" };
                return Err(Error::call(format!(
                    "`{option}` needs `related` or `image`, which say what features are near each other"
                )));
            }
            ([], []) => return Ok(None),
            (_, []) => names.pairs("related", &self.related)?,
            ([], image) => names.touching(image)?,
            _ => return Err(Error::call("`related` and `image` say the same thing; give one of them")),
        };
        let far = (!self.hard).then(|| self.gamma.unwrap_or(10.0 * self.lambda));
        Ok(Some(Neighbours { related, relation: self.relation, far }))
    }
}

/// Every two members of a group.
fn together(groups: &Lists) -> Pairs {
    let pairs = |members: &Vec<String>| -> Vec<(String, String)> {
        members.iter().enumerate().flat_map(|(at, a)| members[at + 1..].iter().map(move |b| (a.clone(), b.clone()))).collect()
    };
    Pairs(groups.0.values().flat_map(pairs).collect())
}

/// The units that may be asked for, by name.
struct Names<'a> {
    problem: &'a Problem,
    units: &'a [usize],
}

impl Names<'_> {
    /// The place of a unit among those that may be asked for; `None` for one that never varies.
    fn find(&self, option: &str, name: &str) -> Result<Option<usize>> {
        let all = &self.problem.units;
        let Some(unit) = all.iter().position(|unit| unit.name == name) else {
            return Err(unknown_names(option, name, &all.iter().map(|unit| unit.name.clone()).collect::<Vec<_>>()));
        };
        Ok(self.units.iter().position(|other| *other == unit))
    }

    fn empty(&self) -> Vec<Vec<u64>> {
        vec![vec![0; self.units.len().div_ceil(64).max(1)]; self.units.len()]
    }

    fn pairs(&self, option: &str, pairs: &Pairs) -> Result<Vec<Vec<u64>>> {
        let mut sets = self.empty();
        for (a, b) in &pairs.0 {
            if let (Some(a), Some(b)) = (self.find(option, a)?, self.find(option, b)?) {
                sets[a][b / 64] |= 1 << (b % 64);
                sets[b][a / 64] |= 1 << (a % 64);
            }
        }
        Ok(sets)
    }

    /// Units with pixels that touch, also at a corner.
    fn touching(&self, image: &[usize]) -> Result<Vec<Vec<u64>>> {
        let features = self.problem.features.len();
        let [height, width] = *image else {
            return Err(Error::call(format!("`image` must be two numbers, height and width; got {}", image.len())));
        };
        if height.checked_mul(width) != Some(features) {
            return Err(Error::call(format!(
                "`image` must have as many pixels as there are features, {features}; got {height} x {width}"
            )));
        }
        let mut unit_of = vec![None; features];
        for (at, unit) in self.units.iter().enumerate() {
            self.problem.units[*unit].features.iter().for_each(|feature| unit_of[*feature] = Some(at));
        }
        let mut sets = self.empty();
        for pixel in 0..features {
            let (y, x) = (pixel / width, pixel % width);
            for (y, x) in (y.saturating_sub(1)..=(y + 1).min(height - 1))
                .flat_map(|y| (x.saturating_sub(1)..=(x + 1).min(width - 1)).map(move |x| (y, x)))
            {
                if let (Some(a), Some(b)) = (unit_of[pixel], unit_of[y * width + x]) {
                    sets[a][b / 64] |= 1 << (b % 64);
                }
            }
        }
        Ok(sets)
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
        Choice { cost, note: Some(note), ..Choice::new(rank + 1, *unit, asked / usage.total) }
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
