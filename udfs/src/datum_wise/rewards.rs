use crate::choice;

choice! {
    /// To which of the known features a feature must be related to be cheap.
    pub enum Relation {
        Any = "any",
        All = "all",
    }
}

/// A set of units as bits.
pub(crate) type Bits = Vec<u64>;

pub(crate) fn words(units: usize) -> usize {
    units.div_ceil(64).max(1)
}

pub(crate) fn has(set: &[u64], unit: usize) -> bool {
    set[unit / 64] >> (unit % 64) & 1 == 1
}

pub(crate) fn insert(set: &mut [u64], unit: usize) {
    set[unit / 64] |= 1 << (unit % 64);
}

fn meets(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

fn within(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a & !b == 0)
}

/// What asking for a unit costs, what a wrong answer costs, and what may be asked for when. The reward of an episode is
/// minus the sum of both: minus the datum-wise loss, eq. 4 of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewards {
    pub classes: usize,
    /// `mistakes[said * classes + truth]`; below 0 it is a gain.
    pub mistakes: Vec<f64>,
    pub prices: Vec<f64>,
    /// Most units that may be asked for.
    pub budget: Option<usize>,
    /// Most that they may cost together, where they differ.
    pub purse: Option<Purse>,
    pub discount: Option<Discount>,
    pub neighbours: Option<Neighbours>,
}

/// What may be spent on a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Purse {
    pub budget: f64,
    /// What each unit counts.
    pub costs: Vec<f64>,
}

impl Purse {
    /// Whether a unit can be paid for beside those that are known.
    fn holds(&self, unit: usize, known: &[u64]) -> bool {
        let spent: f64 = self.costs.iter().enumerate().filter(|(unit, _)| has(known, *unit)).map(|(_, cost)| cost).sum();
        spent + self.costs[unit] <= self.budget * (1.0 + 1e-9)
    }
}

/// Another price once one of the units is known with which this one shares an expense: blood is drawn once.
#[derive(Debug, Clone, PartialEq)]
pub struct Discount {
    pub prices: Vec<f64>,
    /// For each unit, those that it shares the expense with.
    pub shared: Vec<Bits>,
}

/// Units that are near each other are cheaper in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    /// For each unit, those that it is related to, itself included.
    pub related: Vec<Bits>,
    pub relation: Relation,
    /// The price of a unit that is not related to what is known; `None`: it may not be asked for.
    pub far: Option<f64>,
}

impl Rewards {
    /// Every unit has the same price, every mistake costs 1.
    pub fn plain(classes: usize, units: usize, lambda: f64) -> Self {
        let mistakes = (0..classes * classes).map(|at| f64::from(at / classes != at % classes)).collect();
        Self { classes, mistakes, prices: vec![lambda; units], budget: None, purse: None, discount: None, neighbours: None }
    }

    /// The same with a limit on what is spent on a row. Where every unit costs 1 their number is limited, which is quicker to look at.
    pub fn within(self, budget: f64, costs: Vec<f64>) -> Self {
        let mut cheapest = costs.clone();
        cheapest.sort_by(f64::total_cmp);
        let mut spent = 0.0;
        let fits = |cost: &&f64| {
            spent += **cost;
            spent <= budget * (1.0 + 1e-9)
        };
        let most = cheapest.iter().take_while(fits).count();
        let purse = costs.iter().any(|cost| *cost != 1.0).then_some(Purse { budget, costs });
        Self { budget: Some(most), purse, ..self }
    }

    pub fn units(&self) -> usize {
        self.prices.len()
    }

    pub fn mistake(&self, said: usize, truth: usize) -> f64 {
        self.mistakes[said * self.classes + truth]
    }

    /// Whether prices do not depend on what is known.
    pub(crate) fn is_plain(&self) -> bool {
        self.discount.is_none() && self.neighbours.is_none() && self.purse.is_none()
    }

    /// Whether another unit may be asked for at all.
    pub(crate) fn has_budget(&self, known: usize) -> bool {
        self.budget.is_none_or(|budget| known < budget)
    }

    /// The price of a unit beside those that are known; `None` if it may not be asked for. Whether it is known itself, and
    /// whether the number of units is reached, are not looked at.
    pub fn price(&self, unit: usize, known: &[u64]) -> Option<f64> {
        if self.purse.as_ref().is_some_and(|purse| !purse.holds(unit, known)) {
            return None;
        }
        if let Some(near) = &self.neighbours {
            let is_near = match near.relation {
                Relation::Any => meets(known, &near.related[unit]) || known.iter().all(|word| *word == 0),
                Relation::All => within(known, &near.related[unit]),
            };
            if !is_near {
                return near.far;
            }
        }
        match &self.discount {
            Some(discount) if meets(known, &discount.shared[unit]) => Some(discount.prices[unit]),
            _ => Some(self.prices[unit]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(units: &[usize]) -> Bits {
        let mut bits = vec![0; 1];
        units.iter().for_each(|unit| insert(&mut bits, *unit));
        bits
    }

    #[test]
    fn the_first_of_a_shared_expense_pays_it() {
        let discount = Discount { prices: vec![15.0, 20.0, 1.0], shared: vec![set(&[1]), set(&[0]), set(&[])] };
        let rewards = Rewards { prices: vec![17.0, 22.0, 1.0], discount: Some(discount), ..Rewards::plain(2, 3, 1.0) };
        assert_eq!(rewards.price(0, &set(&[])), Some(17.0));
        assert_eq!(rewards.price(0, &set(&[2])), Some(17.0));
        assert_eq!(rewards.price(0, &set(&[1])), Some(15.0));
        assert_eq!(rewards.price(1, &set(&[0, 2])), Some(20.0));
    }

    #[test]
    fn a_purse_is_spent_by_what_is_known() {
        let rewards = Rewards::plain(2, 3, 0.1).within(5.0, vec![3.0, 2.0, 4.0]);
        assert_eq!(rewards.budget, Some(2), "the two cheapest");
        assert_eq!(
            [rewards.price(1, &set(&[0])), rewards.price(2, &set(&[0])), rewards.price(2, &set(&[]))],
            [Some(0.1), None, Some(0.1)]
        );
        let counted = Rewards::plain(2, 3, 0.1).within(2.0, vec![1.0; 3]);
        assert_eq!((counted.budget, counted.purse, counted.neighbours.is_none()), (Some(2), None, true));
    }

    /// 0 – 1 – 2 in a row; the first is always near.
    #[test]
    fn what_is_far_is_dear_or_forbidden() {
        let related = vec![set(&[0, 1]), set(&[0, 1, 2]), set(&[1, 2])];
        let with = |relation, far| Rewards {
            neighbours: Some(Neighbours { related: related.clone(), relation, far }),
            ..Rewards::plain(2, 3, 0.1)
        };
        let any = with(Relation::Any, Some(0.5));
        assert_eq!(
            [any.price(2, &set(&[])), any.price(2, &set(&[0])), any.price(2, &set(&[0, 1]))],
            [Some(0.1), Some(0.5), Some(0.1)]
        );
        let all = with(Relation::All, None);
        assert_eq!(
            [all.price(2, &set(&[])), all.price(2, &set(&[1])), all.price(2, &set(&[0, 1]))],
            [Some(0.1), Some(0.1), None]
        );
    }
}
