use crate::filters::discovery::{Discovery, Scored};
use crate::filters::one_by_one::OneByOne;
use crate::filters::variance::Variance;
use crate::{Problem, Ranking, Result, Run, selector};

selector! {
    /// F test of each feature.
    ///
    /// Tests every feature by itself: could it have so much to do with the label by chance? For a label of numbers it is the F of a linear regression on the feature, for classes that of
    /// an analysis of variance. Features are ranked by their p-values, which for numbers is the order of F. Blind to redundancy, and to what is not linear.
    ///
    /// A text or a group is tested with all its columns at once, and its F counts them: regression on several columns, and for more than two classes Pillai's trace. `k => 'auto'` takes
    /// what is a discovery at `fdr => 0.05`.
    ///
    /// Cost: one pass over the table.
    ///
    /// Source: Fisher, 1925. Statistical methods for research workers. For `fdr`: Benjamini and Hochberg, 1995. Controlling the false discovery rate.
    #[selector(
        name = "f_test",
        aliases = ["anova"],
        labels = Any,
        score = "F statistic",
    )]
    pub struct FTest {
        ..discovery: Discovery;
    }
}

impl OneByOne for FTest {
    fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    fn rank(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        run.check()?;
        let scored = |variance: Option<Variance>| {
            let variance = variance?;
            let (score, ln_p) = (variance.f(), variance.ln_p());
            Some(Scored { score, ln_p, strength: ln_p.map_or(score, |ln_p| -ln_p) })
        };
        let scored: Vec<Option<Scored>> = Variance::of_units(problem, run)?.into_iter().map(scored).collect();
        Ok(self.discovery.ranking(problem, &scored))
    }
}
