//! `which_selector()`: which selector when, as a table.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use pursuit_udfs::{Advice, WHICH};

use crate::catalog::table;

#[derive(Debug)]
pub(crate) struct WhichFunction;

impl TableFunctionImpl for WhichFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        if !args.exprs().is_empty() {
            return plan_err!("which_selector: takes no arguments");
        }
        let column = |of: fn(&Advice) -> &'static str| WHICH.iter().map(|advice| of(advice).to_string()).collect();
        table(
            &["when", "function", "why", "sees", "misses"],
            vec![
                column(|advice| advice.when),
                column(|advice| advice.function),
                column(|advice| advice.why),
                column(|advice| advice.sees),
                column(|advice| advice.misses),
            ],
        )
    }
}
