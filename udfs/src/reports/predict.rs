use crate::contract::model::{Apply, Model, Output};
use crate::contract::report::{Kind, Report, Values};
use crate::models::fitted::Fitted;
use crate::reports::fit::Fit;
use crate::{Result, apply};

apply! {
    /// Predictions: rows through a model.
    ///
    /// Reads a model that `fit` made and predicts every row of the table: its columns, and `prediction`, a number or a class; of a class its
    /// `probability` and, by their names, the `probabilities` of all; and in `notes` what the row lacks of what the model asks for. With `key` only these columns are handed
    /// on.
    ///
    /// NULL (and NaN, infinity and numbers beyond ±1e100) counts as it did when the model was fitted, as does a level of a text that was not seen: as the mean does in linear
    /// models and networks, by a branch of their own in trees. A column that the table does not have is an error; give it as NULL to do without.
    ///
    /// Rows stream through, a batch at a time.
    #[apply(name = "predict", aliases = [], labels = Any, model = "model", made_by = "fit", fits = false)]
    pub struct Predict {}
}

impl Apply for Predict {
    fn fit(&self) -> &dyn Report {
        // Only what its columns are is asked of it.
        static FIT: std::sync::LazyLock<Fit> = std::sync::LazyLock::new(Fit::default);
        &*FIT
    }

    fn outputs(&self) -> Vec<(&'static str, Output)> {
        vec![
            ("prediction", Output::Predicted),
            ("probability", Output::Of(Kind::Number)),
            ("probabilities", Output::Probabilities),
            ("notes", Output::Of(Kind::Texts)),
        ]
    }

    fn keeps_columns(&self) -> bool {
        true
    }

    fn read(&self, table: &[Values]) -> Result<Box<dyn Model>> {
        Ok(Box::new(Fitted::read(table)?))
    }
}
