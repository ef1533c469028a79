use crate::linear::products::Products;
use crate::linear::pursuit::{Pursuit, explain};
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Correlation with the label.
    ///
    /// Ranks every feature by itself: the absolute value of Pearson's correlation with the label. Fast and easily
    /// understood, but blind to redundancy: of two copies of a good feature it ranks both at the top.
    ///
    /// A text column or a group has a multiple correlation, the square root of the R² of a fit on all its columns. It counts as the
    /// single column that it is worth beyond chance, because many levels explain something of anything. For classes the label is one
    /// 0/1 column each, jointly. `train_score` and `gain` show what each feature adds to those ranked before it.
    ///
    /// Cost: one pass over the table.
    #[selector(
        name = "correlation",
        aliases = [],
        labels = Any,
        score = "absolute correlation with the label",
    )]
    pub struct Correlation {}
}

impl Selector for Correlation {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn is_prefix(&self) -> bool {
        true
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        let start = Pursuit::new(&products);
        let scored = |unit: usize| run.check().map(|()| (unit, start.projection(unit)));
        let is_free = |unit: &usize| !products.units[*unit].is_empty() && !problem.must_include.contains(unit);
        let mut free = (0..problem.units.len()).filter(is_free).map(scored).collect::<Result<Vec<(usize, f64)>>>()?;
        free.sort_by(|a, b| tie_aware(b.1).total_cmp(&tie_aware(a.1)).then(a.0.cmp(&b.0)));
        let forced = problem.must_include.iter().filter(|unit| !products.units[**unit].is_empty());
        let order: Vec<(usize, f64)> = forced.map(|unit| (*unit, start.projection(*unit))).chain(free).collect();
        explain(problem, &products, run, &order, problem.k)
    }
}

/// Scores that differ only by rounding sort by column: twelve digits decide.
fn tie_aware(score: f64) -> f64 {
    (score * 1e12).round()
}
