//! Addresses and paths as names of tables: `SELECT * FROM 's3://bucket/file.parquet'`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::common::plan_datafusion_err;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use super::options::Options;
use super::reach;

/// DataFusion's own, which finds what is in stores that are open.
#[derive(Debug, Default)]
struct Urls(DynamicListTableFactory);

/// From now on a name that no table has is looked for among the files, here and elsewhere.
pub(in crate::shell) fn are_tables(ctx: &SessionContext) {
    let urls = Urls::default();
    urls.0.session_store().with_state(ctx.state_weak_ref());
    let known = Arc::clone(ctx.state().catalog_list());
    ctx.register_catalog_list(Arc::new(DynamicFileCatalog::new(known, Arc::new(urls))));
}

#[async_trait]
impl UrlTableFactory for Urls {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if name.contains("://")
            && let Ok(address) = ListingTableUrl::parse(name)
        {
            let session = self.0.session_store().get_session().upgrade();
            let session = session.ok_or_else(|| plan_datafusion_err!("the session has ended"))?;
            let runtime = Arc::clone(session.read().runtime_env());
            reach(&runtime, &address, &Options::default()).await?;
        }
        self.0.try_new(name).await
    }
}
