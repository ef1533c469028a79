use crate::{Check, Choice, Problem, Ranking, choice, options};

choice! {
    /// What is held when many features are tested at once.
    pub enum Correction {
        /// The share of false ones among what is chosen.
        BenjaminiHochberg = "benjamini_hochberg",
        /// The chance of a single false one.
        Bonferroni = "bonferroni",
    }
}

options! {
    /// How many false features may be among those that a test chooses.
    pub struct Discovery {
        /// Choose only features whose p-values are small enough, so that this share of what is chosen is false at most, on average. Without `k`: all of them.
        fdr: Option<f64> = None, Check::Between(1e-9, 0.999);
        /// What `fdr` bounds: with 'benjamini_hochberg' the share of false ones among what is chosen, with 'bonferroni' the chance of a single false one.
        correction: Correction = Correction::BenjaminiHochberg;
    }
}

/// The rate that `k => 'auto'` means.
const USUAL: f64 = 0.05;

/// What a filter says of a unit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scored {
    pub score: f64,
    /// Its logarithm, so that the smallest can be told apart.
    pub ln_p: Option<f64>,
    /// What is ranked by, the largest first.
    pub strength: f64,
}

impl Scored {
    /// Ranked by its score.
    pub fn by_score(score: f64, ln_p: Option<f64>) -> Self {
        Self { score, ln_p, strength: score }
    }

    pub fn p_value(&self) -> Option<f64> {
        self.ln_p.map(f64::exp)
    }
}

impl Discovery {
    /// What an option of these needs beside it, if it is without effect.
    pub fn unused(&self, option: &str) -> Option<&'static str> {
        (option == "correction" && self.fdr.is_none()).then_some("`fdr`")
    }

    /// The rate that decides, if one does.
    fn rate(&self, problem: &Problem) -> Option<f64> {
        self.fdr.or(problem.k.is_none().then_some(USUAL))
    }

    /// The largest p-value, as its logarithm, that is a discovery among all that were tested; `None` if every one is.
    pub fn limit(&self, problem: &Problem, tested: impl Iterator<Item = Option<f64>>) -> Option<f64> {
        let rate = self.rate(problem)?.ln();
        let mut tested: Vec<f64> = tested.flatten().collect();
        tested.sort_by(f64::total_cmp);
        let all = (tested.len() as f64).ln();
        Some(match self.correction {
            Correction::Bonferroni => rate - all,
            Correction::BenjaminiHochberg => {
                let line = |at: usize| rate + ((at + 1) as f64).ln() - all;
                (0..tested.len()).rev().find(|at| tested[*at] <= line(*at)).map_or(f64::NEG_INFINITY, line)
            }
        })
    }

    /// The free units by what is said of them, the strongest first and only discoveries, behind those that must be included; and why others are not among
    /// them. Units of which nothing is said do not take part.
    pub(crate) fn order(&self, problem: &Problem, of_unit: &[Option<Scored>]) -> (Vec<usize>, Vec<(usize, String)>) {
        let is_forced = |unit: &usize| problem.must_include.contains(unit);
        let known = |unit: &usize| of_unit[*unit].is_some() && problem.why_never(*unit).is_none();
        let scored = |unit: usize| of_unit[unit].unwrap_or_default();
        let mut free: Vec<usize> = (0..problem.units.len()).filter(|unit| known(unit) && !is_forced(unit)).collect();
        let limit = self.limit(problem, free.iter().map(|unit| scored(*unit).ln_p));
        let is_found = |unit: &usize| limit.is_none_or(|limit| scored(*unit).ln_p.is_none_or(|p| p <= limit));
        let out = free.iter().filter(|unit| !is_found(unit));
        let why = |unit: &usize| {
            let rate = self.rate(problem).unwrap_or(USUAL);
            (*unit, format!("a p-value of {:.2e} is no discovery at a rate of {rate}", scored(*unit).p_value().unwrap_or(1.0)))
        };
        let passed_over = out.map(why).collect();
        free.retain(is_found);
        free.sort_by(|a, b| rounded(scored(*b).strength).total_cmp(&rounded(scored(*a).strength)).then(a.cmp(b)));
        let forced = problem.must_include.iter().copied().filter(known);
        (forced.chain(free).collect(), passed_over)
    }

    /// The same as an answer.
    pub(crate) fn ranking(&self, problem: &Problem, of_unit: &[Option<Scored>]) -> Ranking {
        let (order, passed_over) = self.order(problem, of_unit);
        let choice = |(at, unit): (usize, usize)| {
            let scored = of_unit[unit].unwrap_or_default();
            Choice { p_value: scored.p_value(), ..Choice::new(at + 1, unit, scored.score) }
        };
        let most = problem.k.unwrap_or(order.len());
        Ranking { choices: order.into_iter().take(most).enumerate().map(choice).collect(), passed_over }
    }
}

/// To twelve digits, which are forty bits: what differs only by rounding is a tie, which goes to the lower column.
fn rounded(value: f64) -> f64 {
    const DROPPED: u64 = 1 << 12;
    let near = f64::from_bits((value.to_bits() + DROPPED / 2) & !(DROPPED - 1));
    if near.is_finite() { near } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    fn found(discovery: &Discovery, p_values: &[f64]) -> Vec<usize> {
        let table = Table::random(30, p_values.len(), 1).k(p_values.len());
        let problem = table.problem(table.column(0));
        let scored: Vec<_> = p_values.iter().map(|p| Some(Scored { score: -p, ln_p: Some(p.ln()), strength: -p })).collect();
        discovery.ranking(&problem, &scored).units()
    }

    /// The example of Benjamini and Hochberg (1995): fifteen p-values, of which four are found at 0.05, and three by Bonferroni's rule.
    #[test]
    fn the_example_of_the_paper() {
        let p =
            [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0];
        let fdr = Some(0.05);
        assert_eq!(found(&Discovery { fdr, correction: Correction::BenjaminiHochberg }, &p), [0, 1, 2, 3]);
        assert_eq!(found(&Discovery { fdr, correction: Correction::Bonferroni }, &p), [0, 1, 2]);
        assert_eq!(found(&Discovery::default(), &p).len(), 15);
    }

    #[test]
    fn a_last_digit_is_a_tie() {
        assert_eq!(rounded(0.1 + 0.2), rounded(0.3));
        assert!(
            rounded(1.000_000_001) > rounded(1.0) && rounded(-2.0) == -2.0 && rounded(1e300) == rounded(1e300 * (1.0 + 1e-15))
        );
    }
}
