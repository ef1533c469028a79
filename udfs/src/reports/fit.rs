use crate::contract::report::{Kind, Report, Values};
use crate::models::table::{COLUMNS, to_columns};
use crate::models::{linear, logistic, network, trees};
use crate::network::training::Training;
use crate::trees::boosting::Boosting;
use crate::{Check, Coding, Error, Label, Problem, Result, Run, choice, report};

choice! {
    /// What is fitted.
    pub enum Model {
        Auto = "auto",
        Linear = "linear",
        Logistic = "logistic",
        Boosting = "boosting",
        Mlp = "mlp",
    }
}

report! {
    /// A model of the label, as a table.
    ///
    /// Learns from all rows to predict the label by the given features (all, if none are given), and answers with what was learnt: a row for each number, of
    /// which `part` says what it is. Keep the table, read it, change it; `predict` applies it to rows, `model_sql` writes it as SQL. How good such a model is on
    /// rows that it has not seen, `evaluate` tells, with the same words for `model`.
    ///
    /// 'linear' is least squares, 'logistic' multinomial logistic regression, both in the units of the table: `intercept`, `coefficient` of a number or of a level of a
    /// text, and what is added where a feature is NULL (`missing`: of a number that of the mean, of a text its own) or where a text is a level that is not listed (`new`: that of the others, or the mean of all). 'boosting' is trees that
    /// correct each other, 'mlp' a network. 'auto': numbers by least squares, classes by logistic regression.
    ///
    /// Cost: `rows × columns²` for 'linear', that for every step of Newton's method for 'logistic'; as `boosting` and `evaluate` for the others.
    #[report(name = "fit", aliases = [])]
    pub struct Fit {
        /// What is fitted.
        model: Model = Model::Auto;
        /// Keeps the coefficients of linear and logistic models small: half of this times their squares is added to the mean loss, where inputs have variance 1. NULL: none, and
        /// of a logistic model 0.000001, just enough for classes that can be told apart without a mistake.
        penalty: Option<f64> = None, Check::Between(0.0, 1e6);
        /// Of boosting, how many rounds: trees one after the other, for each class.
        rounds: usize = 100, Check::Between(1.0, 100000.0);
        /// Of boosting, longest way from the root of a tree to a leaf.
        depth: usize = 6, Check::Between(1.0, 30.0);
        ..training: Training;
    }
}

impl Report for Fit {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        COLUMNS.to_vec()
    }

    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let data = problem.rows();
        if let Some(at) = data.origins.iter().position(|origin| matches!(origin.coding, Coding::Bucket { .. })) {
            let name = &problem.features()[data.design[at].feature];
            return Err(Error::data(format!(
                "a model lists the values of texts, and those of `{name}` are in buckets; set levels => 'top', or exclude it"
            )));
        }
        let rows = match (self.model, &problem.label) {
            (Model::Linear, _) | (Model::Auto, Label::Numbers) => linear::fit(problem, self.penalty.unwrap_or(0.0), run),
            (Model::Logistic, _) | (Model::Auto, Label::Classes(_)) => logistic::fit(problem, self.penalty, run),
            (Model::Boosting, _) => trees::fit(problem, &self.boosting(), self.training.validation, run),
            (Model::Mlp, _) => network::fit(problem, &self.training, run),
        };
        Ok(to_columns(rows?))
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        let (boosts, is_network) = (self.model == Model::Boosting, self.model == Model::Mlp);
        match option {
            "penalty" if boosts || is_network => Some("model => 'linear' or 'logistic'"),
            "rounds" | "depth" | "validation" if !boosts => Some("model => 'boosting'"),
            option if Training::has(option) && option != "validation" && !is_network => Some("model => 'mlp'"),
            _ => None,
        }
    }
}

impl Fit {
    fn boosting(&self) -> Boosting {
        Boosting { rounds: self.rounds, depth: self.depth, ..Boosting::default() }
    }
}

#[cfg(test)]
mod tests;
