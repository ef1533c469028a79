use std::collections::BTreeMap;

use crate::datum_wise::{Discount, Neighbours, Policy, Relation, Rewards, Training, classes, learn};
use crate::settings::options::{Lists, Pairs, unknown_names};
use crate::settings::spending::Spending;
use crate::{Check, Error, Problem, Result, Rows, Run, options};

options! {
    /// What asking and predicting cost, and how a policy is trained: the options of every datum-wise function.
    pub struct Asking {
        /// What it costs once another feature of its cost group is known: blood is drawn once.
        next_costs: BTreeMap<String, f64> = BTreeMap::new(), Check::AtLeast(0.0);
        /// Features that share an expense, for `next_costs`.
        cost_groups: Lists = Lists::default();
        /// What predicting costs, a list for each predicted class with a number for each true one, in the order of the classes; below 0 is a gain.
        cost_matrix: Vec<Vec<f64>> = Vec::new(), Check::Between(-1e9, 1e9);
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
        ..spending: Spending;
    }
}

impl Asking {
    /// Trains the policy that these options describe, at a price of `lambda` for each feature.
    pub fn learn(&self, lambda: f64, problem: &Problem, run: &Run) -> Result<Policy> {
        let rows = problem.rows();
        self.learn_on(lambda, problem, rows, run)
    }

    /// The same on some of the problem's rows.
    pub(crate) fn learn_on(&self, lambda: f64, problem: &Problem, rows: &Rows, run: &Run) -> Result<Policy> {
        learn(problem, rows, |units| self.rewards(lambda, problem, units), &self.training(), run)
    }

    /// What an option needs to mean anything, if it means nothing beside the others.
    pub(crate) fn unused(&self, option: &str) -> Option<&'static str> {
        let has_neighbours = !self.related.0.is_empty() || !self.image.is_empty();
        match option {
            "relation" | "gamma" | "hard" if !has_neighbours => Some("`related` or `image`"),
            "gamma" if self.hard => Some("hard => false"),
            "mixture" if self.iterations < 2 => Some("iterations => 2 or more"),
            "next_costs" if self.cost_groups.0.is_empty() => Some("`cost_groups`"),
            "cost_groups" if self.next_costs.is_empty() => Some("`next_costs`"),
            _ => None,
        }
    }

    fn training(&self) -> Training {
        Training { iterations: self.iterations, states: self.states, mixture: self.mixture, ridge: self.ridge }
    }

    /// The options as prices and costs of the units that may be asked for.
    fn rewards(&self, lambda: f64, problem: &Problem, units: &[usize]) -> Result<Rewards> {
        let classes = classes(&problem.label)?;
        let mut rewards = Rewards::plain(classes.len(), units.len(), lambda);
        let names = Names { problem, units };
        for (name, cost) in &self.spending.costs {
            names.find("costs", name)?.into_iter().for_each(|unit| rewards.prices[unit] = *cost);
        }
        if let Some(budget) = self.spending.budget {
            let costs: Vec<f64> = units.iter().map(|unit| self.spending.cost(&problem.units[*unit].name)).collect();
            rewards = rewards.within(budget, costs);
        }
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
        rewards.neighbours = self.neighbours(lambda, &names)?;
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

    fn neighbours(&self, lambda: f64, names: &Names<'_>) -> Result<Option<Neighbours>> {
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
        let far = (!self.hard).then(|| self.gamma.unwrap_or(10.0 * lambda));
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
        let features = self.problem.features().len();
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
