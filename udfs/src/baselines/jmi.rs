use crate::filters::counts::Information;
use crate::filters::greedy::by_conditional_information;
use crate::{Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Joint mutual information.
    ///
    /// Chooses features one at a time: the one that says most of the label together with the chosen ones, each pair by itself, `mean over g chosen of I(f; label | g)`. Where `cmim` looks at the chosen feature that makes a candidate
    /// most redundant, this looks at all of them, and so forgives a little redundancy and sees pairs that say more than both alone.
    ///
    /// Numbers are cut into bins, the label too if it is one; texts have their levels, NULL is a value of its own. A group is as good as its best column. `k => 'auto'` goes on while the extended Bayesian information
    /// criterion of least squares gets better.
    ///
    /// Cost: one count of `rows` for each feature and each choice, in parallel over features.
    ///
    /// Source: Yang and Moody, 1999. Data visualization and feature selection. Brown, Pocock, Zhao and Luján, 2012. Conditional likelihood maximisation.
    #[selector(
        name = "jmi",
        aliases = [],
        labels = Any,
        score = "mean information beside each chosen feature, in nats",
    )]
    pub struct Jmi {
        ..information: Information;
    }
}

impl Selector for Jmi {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        let mean = |relevance: f64, link: f64, chosen: f64| if chosen > 0.0 { link / chosen } else { relevance };
        by_conditional_information(problem, &self.information, run, 0.0, |sum, new| sum + new, mean)
    }
}
