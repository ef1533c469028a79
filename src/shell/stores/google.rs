//! Buckets of Google.

use std::sync::Arc;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};

use super::options::{Known, Options};
use super::{Store, bucket, has_credentials, unreadable};

/// What a reader without keys is told.
pub(super) const KEYS: &str = "; keys are read from the file that GOOGLE_APPLICATION_CREDENTIALS names, \
     or that `gcloud auth application-default login` writes";

pub(super) const OPTIONS: Known = Known {
    prefix: "gcp.",
    names: &["service_account_path", "service_account_key", "application_credentials_path", "skip_signature"],
    aliases: &[("application_credentials_path", "application_credentials")],
};

/// A store as the environment, OPTIONS and the address describe it. What is public can be read without credentials.
pub(super) async fn opened(address: &ListingTableUrl, options: &Options) -> Result<Store> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (key, value) in options.read(&OPTIONS)? {
        builder = builder.with_config(key, value);
    }
    let builder = builder.with_bucket_name(bucket(address)?);
    let is_said = |key: &Key| builder.get_config_value(key).is_some();
    let is_named = [Key::ServiceAccount, Key::ServiceAccountKey, Key::ApplicationCredentials].iter().any(is_said)
        || builder.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    let unusable = |error| unreadable(address, &error);
    let store = builder.clone().build().map_err(unusable)?;
    if is_named || has_credentials(store.credentials().as_ref()).await {
        return Ok(Arc::new(store));
    }
    Ok(Arc::new(builder.with_skip_signature(true).build().map_err(unusable)?))
}
