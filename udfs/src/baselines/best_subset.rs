use crate::linear::products::Products;
use crate::linear::pursuit::{PATIENCE, Pursuit, explain};
use crate::linear::splicing::{Splicing, Subset};
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// The best set of features for least squares.
    ///
    /// Looks for the `k` features that explain most of the label together. It begins with the choice of orthogonal least squares, and then exchanges features as long as the fit gets better: up to five of those that matter least for the
    /// outsiders that promise most, and single ones for their best replacement. `score` is what the fit would lose without the feature, and ranks it. The set for another `k` may be quite another.
    ///
    /// A text or a group is exchanged with all its columns; more than two classes are predicted jointly. `k => 'auto'` takes the size with the best extended Bayesian information criterion.
    ///
    /// Cost: one pass over the table, then `k × (k² + features)` operations for each exchange that is tried.
    ///
    /// Source: Zhu, Wen, Zhu, Zhang and Wang, 2020. A polynomial algorithm for best-subset selection problem (abess).
    #[selector(
        name = "best_subset",
        aliases = ["abess"],
        labels = Any,
        score = "share of the label's variance that is lost without the feature",
    )]
    pub struct BestSubset {}
}

/// Most features that are looked at when a criterion is to say how many.
const SIZES_MAX: usize = 100;

impl Selector for BestSubset {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        let wanted = problem.k.unwrap_or(SIZES_MAX).min(problem.units.len());
        // Products of each column that was ever in, and a factor as high as the set.
        let _memory = run.reserve(2 * wanted.max(16) * products.columns() * size_of::<f64>())?;
        let mut splicing = Splicing::new(&products, &problem.must_include);
        let mut growing = Pursuit::new(&products);
        problem.must_include.iter().for_each(|unit| growing.take_unit(*unit));
        let mut units = problem.must_include.clone();
        let mut best: Option<(f64, Vec<usize>)> = problem.k.is_none().then(|| (growing.ebic(), units.clone()));
        while units.len() < wanted {
            run.step(units.len(), wanted)?;
            let open = |unit: &usize| !units.contains(unit) && growing.unit_is_open(*unit);
            let open: Vec<usize> = (0..products.units.len()).filter(open).collect();
            let next = crate::kernels::argmax(open.iter().map(|unit| Some(growing.projection(*unit))));
            let Some((at, _)) = next.filter(|(_, score)| *score > f64::EPSILON) else { break };
            growing.take_unit(open[at]);
            units.push(open[at]);
            if let Some((least, chosen)) = &mut best {
                let Some(spliced) = splicing.improve(&units, run)? else { break };
                let mut fit = Pursuit::new(&products);
                spliced.units.iter().for_each(|unit| fit.take_unit(*unit));
                if fit.ebic() < *least {
                    (*least, *chosen) = (fit.ebic(), spliced.units);
                }
                if units.len() >= chosen.len() + PATIENCE || fit.columns.len() as f64 + 2.0 >= products.rows {
                    break;
                }
            }
        }
        let units = best.map_or(units, |(_, chosen)| chosen);
        let Some(subset) = splicing.improve(&units, run)? else {
            // More columns than rows: nothing is lost without any of them.
            let order: Vec<(usize, f64)> = units.iter().map(|unit| (*unit, 0.0)).collect();
            return explain(problem, &products, run, &order, Some(order.len()));
        };
        let order = by_loss(problem, &mut splicing, &subset, run)?;
        explain(problem, &products, run, &order, Some(order.len()))
    }
}

/// The units of a set by what the fit loses without them, behind those that must be included.
fn by_loss(problem: &Problem, splicing: &mut Splicing<'_>, subset: &Subset, run: &Run) -> Result<Vec<(usize, f64)>> {
    let mut order = Vec::with_capacity(subset.units.len());
    for unit in &subset.units {
        let others: Vec<usize> = subset.units.iter().copied().filter(|other| other != unit).collect();
        let without = splicing.fit(&others, run)?.map_or(1.0, |fit| fit.unexplained);
        order.push((*unit, (without - subset.unexplained).max(0.0)));
    }
    let place = |unit: usize| problem.must_include.iter().position(|forced| *forced == unit).unwrap_or(usize::MAX);
    order.sort_by(|a, b| place(a.0).cmp(&place(b.0)).then(b.1.total_cmp(&a.1)).then(a.0.cmp(&b.0)));
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// The sum of two features, beside a third that is nearly it: greedy takes the third first and keeps it, the best pair is without.
    #[test]
    fn a_decoy_is_exchanged() {
        let table = Table::random(200, 4, 9);
        let label: Vec<f64> = (0..200).map(|row| table.column(0)[row] + table.column(1)[row]).collect();
        let decoy: Vec<f64> = (0..200).map(|row| label[row] + 0.8 * table.column(3)[row]).collect();
        let table = Table::new()
            .numbers("a", table.column(0))
            .numbers("b", table.column(1))
            .numbers("decoy", &decoy)
            .numbers("d", table.column(2));
        let ranking = BestSubset::default().select(&table.k(2).problem(&label), &Run::default()).unwrap();
        let mut units = ranking.units();
        units.sort_unstable();
        assert_eq!(units, [0, 1]);
        assert!(ranking.choices[1].train_score.unwrap() > 1.0 - 1e-9);
    }
}
