use crate::filters::discovery::Discovery;
use crate::{Problem, Ranking, Reads, Result, Run, Selector};

/// A filter that looks at every unit by itself and needs nothing but moments. How many it finds is for `fdr` to say.
pub trait OneByOne: Send + Sync {
    fn discovery(&self) -> &Discovery;

    fn rank(&self, problem: &Problem, run: &Run) -> Result<Ranking>;
}

impl<F: OneByOne> Selector for F {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn has_size(&self) -> bool {
        self.discovery().fdr.is_some()
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        self.discovery().unused(option)
    }

    fn is_prefix(&self) -> bool {
        true
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        self.rank(problem, run)
    }
}
