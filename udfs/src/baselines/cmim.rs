use crate::filters::counts::{Cells, Information};
use crate::filters::greedy::{Greedy, features};
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Conditional mutual information maximisation.
    ///
    /// Chooses features one at a time: the one that says most of the label to someone who knows any one of the chosen ones, `min over g chosen of I(f; label | g)`, and no more than it says alone. So a copy of a chosen
    /// feature is worth nothing, and a weak feature that says something new is worth what it says.
    ///
    /// Numbers are cut into bins, the label too if it is one; texts have their levels, NULL is a value of its own. A group is as good as its best column. `k => 'auto'` goes on while the extended Bayesian information
    /// criterion of least squares gets better.
    ///
    /// Cost: one count of `rows` for each feature and each choice, in parallel over features.
    ///
    /// Source: Fleuret, 2004. Fast binary feature selection with conditional mutual information.
    #[selector(
        name = "cmim",
        aliases = [],
        labels = Any,
        score = "information that no chosen feature has, in nats",
    )]
    pub struct Cmim {
        ..information: Information;
    }
}

impl Selector for Cmim {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let cells = Cells::new(problem, &self.information, run)?;
        let (features, unit_of) = features(problem);
        let relevance: Vec<f64> = features.iter().map(|feature| cells.with_label(*feature).information).collect();
        let greedy = Greedy { problem, unit_of: &unit_of, relevance: &relevance };
        let link = |chosen: usize| cells.with_label_given(&features, features[chosen], run);
        greedy.select(run, f64::INFINITY, link, f64::min, |relevance, link, _| relevance.min(link))
    }
}
