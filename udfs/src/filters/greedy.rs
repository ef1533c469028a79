use crate::filters::counts::{Cells, Information};
use crate::kernels::argmax;
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::{Choice, Problem, Ranking, Result, Run};

/// Candidates one after the other, by what they say of the label and what links them to those chosen before.
pub(crate) struct Greedy<'a> {
    pub problem: &'a Problem,
    /// Of each candidate: the unit that it stands for. A group has several, and is as good as its best.
    pub unit_of: &'a [usize],
    /// What each candidate says of the label.
    pub relevance: &'a [f64],
}

impl Greedy<'_> {
    /// Chooses the candidate with the best `score(relevance, link so far, how many are in it)`. `link` says what ties every candidate to one that was chosen, and `join`
    /// adds that to the link so far, of which `nothing` is the beginning.
    pub fn select(
        &self,
        run: &Run,
        nothing: f64,
        link: impl Fn(usize) -> Result<Vec<f64>>,
        join: impl Fn(f64, f64) -> f64,
        score: impl Fn(f64, f64, f64) -> f64,
    ) -> Result<Ranking> {
        let (problem, units) = (self.problem, self.problem.units.len());
        let mut open: Vec<bool> = (0..units).map(|unit| problem.why_never(unit).is_none()).collect();
        let (mut links, mut joined) = (vec![nothing; self.unit_of.len()], 0.0);
        let mut forced = problem.must_include.iter().copied();
        let mut order: Vec<(usize, f64)> = Vec::new();
        let most = problem.k.unwrap_or(units);
        while order.len() < most {
            run.step(order.len(), most)?;
            let of = |at: usize| score(self.relevance[at], links[at], joined);
            let wanted = forced.next();
            let takes_part = |unit: usize| wanted.map_or(open[unit], |wanted| unit == wanted);
            let scores = self.unit_of.iter().enumerate().map(|(at, unit)| takes_part(*unit).then(|| of(at)));
            let Some((at, best)) = argmax(scores) else { break };
            let unit = self.unit_of[at];
            open[unit] = false;
            order.push((unit, best));
            if order.len() == most {
                break;
            }
            for chosen in (0..self.unit_of.len()).filter(|other| self.unit_of[*other] == unit) {
                links.iter_mut().zip(link(chosen)?).for_each(|(link, new)| *link = join(*link, new));
                joined += 1.0;
            }
        }
        if problem.k.is_none() {
            let products = Products::new(problem, run)?;
            order.retain(|(unit, _)| !products.units[*unit].is_empty());
            return explain(problem, &products, run, &order, None);
        }
        let choices = order.into_iter().enumerate().map(|(at, (unit, score))| Choice::new(at + 1, unit, score)).collect();
        Ok(Ranking { choices, ..Ranking::default() })
    }
}

/// Chooses by what candidates say of the label to someone who knows a chosen one, `I(f; label | chosen)`; the other arguments are those of [`Greedy::select`].
pub(crate) fn by_conditional_information(
    problem: &Problem,
    information: &Information,
    run: &Run,
    nothing: f64,
    join: impl Fn(f64, f64) -> f64,
    score: impl Fn(f64, f64, f64) -> f64,
) -> Result<Ranking> {
    let cells = Cells::new(problem, information, run)?;
    let (features, unit_of) = features(problem);
    let relevance: Vec<f64> = features.iter().map(|feature| cells.with_label(*feature).information).collect();
    let greedy = Greedy { problem, unit_of: &unit_of, relevance: &relevance };
    greedy.select(run, nothing, |chosen| cells.with_label_given(&features, features[chosen], run), join, score)
}

/// The columns of the table that a problem's units stand for, each with its unit.
pub(crate) fn features(problem: &Problem) -> (Vec<usize>, Vec<usize>) {
    let open = (0..problem.units.len()).filter(|unit| problem.why_never(*unit).is_none());
    open.flat_map(|unit| problem.units[unit].features.iter().map(move |feature| (*feature, unit))).unzip()
}
