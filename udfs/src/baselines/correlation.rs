use crate::filters::discovery::{Discovery, Scored};
use crate::filters::one_by_one::OneByOne;
use crate::filters::variance::Variance;
use crate::linear::products::Products;
use crate::linear::pursuit::{Pursuit, explain};
use crate::{Problem, Ranking, Result, Run, selector};

selector! {
    /// Correlation with the label, each feature by itself.
    ///
    /// Ranks every feature by itself: the absolute value of Pearson's correlation with the label. Fast and easily
    /// understood, but blind to redundancy: of two copies of a good feature it ranks both at the top.
    ///
    /// A text column or a group has a multiple correlation, the square root of the R² of a fit on all its columns. It counts as the
    /// single column that it is worth beyond chance, because many levels explain something of anything. For classes the label is one
    /// 0/1 column each, jointly. `train_score` and `gain` show what each feature adds to those ranked before it.
    ///
    /// `p_value` is that of the F test of the feature alone, as in `f_test`. `k => 'auto'` takes what is a discovery at `fdr => 0.05`.
    ///
    /// Cost: one pass over the table.
    #[selector(
        name = "correlation",
        aliases = [],
        labels = Any,
        score = "absolute correlation with the label",
    )]
    pub struct Correlation {
        ..discovery: Discovery;
    }
}

impl OneByOne for Correlation {
    fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    fn rank(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let products = Products::new(problem, run)?;
        let start = Pursuit::new(&products);
        let of_unit = |(unit, variance): (usize, Option<Variance>)| -> Result<Option<Scored>> {
            run.check()?;
            Ok(variance.map(|variance| Scored::by_score(start.projection(unit), variance.ln_p())))
        };
        let scored = Variance::of(problem, &products).into_iter().enumerate().map(of_unit).collect::<Result<Vec<_>>>()?;
        let (order, passed_over) = self.discovery.order(problem, &scored);
        let known = |unit: usize| scored[unit].unwrap_or_default();
        let order: Vec<(usize, f64)> = order.into_iter().map(|unit| (unit, known(unit).score)).collect();
        let mut ranking = explain(problem, &products, run, &order, Some(problem.k.unwrap_or(order.len())))?;
        ranking.choices.iter_mut().for_each(|choice| choice.p_value = known(choice.unit).p_value());
        ranking.passed_over.extend(passed_over);
        Ok(ranking)
    }
}
