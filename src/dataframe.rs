use datafusion::catalog::TableFunctionArgs;
use datafusion::common::plan_datafusion_err;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlanBuilder, lit, scalar_subquery};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use pursuit_udfs::{Value, shown};
use std::sync::Arc;

/// Selection on a [`DataFrame`].
pub trait SelectFeatures {
    /// Ranks the columns of this DataFrame by how well they predict `label`.
    ///
    /// `selector` is the name of a registered selector; `options` is a JSON object with `k` and everything else that the
    /// function takes by name in SQL. The session must have an [`Engine`](crate::Engine) registered.
    ///
    /// ```
    /// # use datafusion::prelude::*;
    /// # use pursuit::{Engine, SelectFeatures};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// let ctx = SessionContext::new();
    /// Engine::default().with_samples().register(&ctx)?;
    ///
    /// let patients = ctx.table("sample.diabetes").await?.filter(col("age").gt(lit(40)))?;
    /// let ranking = patients.select_features("omp", "label", serde_json::json!({"k": 3, "exclude": ["sex"]}))?;
    /// assert_eq!(ranking.count().await?, 3);
    /// # Ok(())
    /// # }
    /// ```
    fn select_features(self, selector: &str, label: &str, options: Value) -> Result<DataFrame>;
}

impl SelectFeatures for DataFrame {
    fn select_features(self, selector: &str, label: &str, options: Value) -> Result<DataFrame> {
        let (state, plan) = self.into_parts();
        let function = state.table_functions().get(selector);
        let function = function.ok_or_else(|| {
            let name = shown(selector);
            plan_datafusion_err!("{name}: no such selector; was pursuit::register(&ctx) called on this session?")
        })?;
        let arguments = [scalar_subquery(Arc::new(plan)), lit(label), lit(ScalarValue::Null), lit(options.to_string())];
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&arguments, &state))?;
        let plan = LogicalPlanBuilder::scan(selector, provider_as_source(provider), None)?.build()?;
        Ok(DataFrame::new(state, plan))
    }
}
