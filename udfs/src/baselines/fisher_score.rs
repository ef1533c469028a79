use crate::filters::discovery::{Discovery, Scored};
use crate::filters::one_by_one::OneByOne;
use crate::filters::variance::Variance;
use crate::{Problem, Ranking, Result, Run, selector};

selector! {
    /// Fisher score: how far classes are apart.
    ///
    /// The variance of the classes' means by the variance within classes, `Σ n_c (μ_c − μ)² / Σ n_c σ_c²`, feature by feature. Blind to redundancy.
    ///
    /// A text or a group has the sums of both over an orthonormal basis of its columns. `p_value` is that of `f_test`, of which the score is a multiple; a feature that is constant within every
    /// class scores 4.5e15, and not infinity.
    ///
    /// Cost: one pass over the table.
    ///
    /// Source: Duda, Hart and Stork, 2001. Pattern classification.
    #[selector(
        name = "fisher_score",
        aliases = [],
        labels = Classes,
        score = "variance between classes by variance within",
    )]
    pub struct FisherScore {
        ..discovery: Discovery;
    }
}

impl OneByOne for FisherScore {
    fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    fn rank(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        run.check()?;
        let scored = |variance: Option<Variance>| variance.map(|v| Scored::by_score(v.fisher(), v.ln_p()));
        let scored: Vec<Option<Scored>> = Variance::of_units(problem, run)?.into_iter().map(scored).collect();
        Ok(self.discovery.ranking(problem, &scored))
    }
}
