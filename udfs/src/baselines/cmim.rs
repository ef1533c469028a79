use crate::filters::counts::Information;
use crate::filters::greedy::by_conditional_information;
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
        let least = |relevance: f64, link: f64, _| relevance.min(link);
        by_conditional_information(problem, &self.information, run, f64::INFINITY, f64::min, least)
    }
}
