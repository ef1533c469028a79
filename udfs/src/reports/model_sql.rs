use crate::contract::model::ReportOnModel;
use crate::contract::report::{Kind, Values};
use crate::models::sql;
use crate::models::table::COLUMNS;
use crate::{Result, report_on_model};

report_on_model! {
    /// A model as an SQL expression.
    ///
    /// Reads a model that `fit` made and answers with one row. `sql` is an expression over the columns of the table that the model was fitted on: paste it into a SELECT
    /// of any database, and it is what `predict` calls `prediction`. `probabilities` are such expressions too, one for each of `classes`.
    ///
    /// Written so that DuckDB, PostgreSQL and DataFusion calculate the same numbers: identifiers are quoted, numbers are cast to DOUBLE PRECISION and printed with all their
    /// digits, NULL and levels that were not seen have branches of their own. Columns of booleans, dates or times must be cast to numbers, which they are here: true is 1, a
    /// date its days since 1970. Networks have no SQL.
    #[report(name = "model_sql", aliases = [], made_by = "fit")]
    pub struct ModelSql {}
}

impl ReportOnModel for ModelSql {
    fn reads(&self) -> Vec<(&'static str, Kind)> {
        COLUMNS.to_vec()
    }

    fn columns(&self) -> Vec<(&'static str, Kind)> {
        vec![("sql", Kind::Text), ("classes", Kind::Texts), ("probabilities", Kind::Texts)]
    }

    fn report(&self, table: &[Values]) -> Result<Vec<Values>> {
        let written = sql::write(table)?;
        Ok(vec![
            Values::texts([written.prediction]),
            Values::Texts(vec![written.classes]),
            Values::Texts(vec![written.probabilities]),
        ])
    }
}
