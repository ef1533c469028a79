//! Buckets of Amazon, and of whoever speaks as they do.

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key, resolve_bucket_region};
use datafusion::object_store::{ClientConfigKey, ClientOptions};

use super::options::{Known, Options};
use super::{Store, bucket, has_credentials, in_time, unreadable, why};

/// What a reader without keys is told. Profiles are not read, but the AWS CLI writes down what they stand for.
pub(super) const KEYS: &str = "; keys are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: \
     eval \"$(aws configure export-credentials --format env)\" sets those of a profile";

pub(super) const OPTIONS: Known = Known {
    prefix: "aws.",
    names: &["access_key_id", "secret_access_key", "session_token", "region", "endpoint", "allow_http", "skip_signature"],
    aliases: &[("nosign", "skip_signature"), ("oss", "endpoint"), ("cos", "endpoint")],
};

/// A store as the environment, OPTIONS and the address describe it.
pub(super) async fn opened(address: &ListingTableUrl, options: &Options) -> Result<Store> {
    let builder = described(address, options)?;
    let builder = match address.scheme() {
        "s3" if builder.get_config_value(&Key::Region).is_none() && endpoint(&builder).is_none() => {
            builder.with_region(region(address).await?)
        }
        "s3" => builder,
        // Alibaba's and Tencent's, whose endpoints say the region.
        scheme => builder.with_region("any").with_virtual_hosted_style_request(scheme == "oss"),
    };
    signing(builder, address).await
}

/// The same bucket in the region where it is, if that is not the one in which it was looked for.
pub(super) async fn elsewhere(address: &ListingTableUrl, options: &Options) -> Result<Option<Store>> {
    let builder = described(address, options)?;
    let Some(said) = builder.get_config_value(&Key::Region).filter(|_| endpoint(&builder).is_none()) else { return Ok(None) };
    match region(address).await {
        Ok(region) if region != said => signing(builder.with_region(region), address).await.map(Some),
        _ => Ok(None),
    }
}

fn described(address: &ListingTableUrl, options: &Options) -> Result<AmazonS3Builder> {
    let mut builder = AmazonS3Builder::from_env();
    for (key, value) in options.read(&OPTIONS)? {
        builder = builder.with_config(key, value);
    }
    let is_allowed = builder.get_config_value(&Key::Client(ClientConfigKey::AllowHttp)).as_deref() == Some("true");
    match endpoint(&builder) {
        Some(endpoint) if endpoint.starts_with("http://") && !is_allowed => plan_err!(
            "the endpoint {endpoint} does not encrypt; say AWS_ALLOW_HTTP=true or OPTIONS ('aws.allow_http' 'true') if it may be used"
        ),
        _ => Ok(builder.with_bucket_name(bucket(address)?)),
    }
}

/// Where somebody's own server answers instead of Amazon's.
fn endpoint(builder: &AmazonS3Builder) -> Option<String> {
    [Key::S3Endpoint, Key::Endpoint].iter().find_map(|key| builder.get_config_value(key))
}

/// Amazon tells everybody where a bucket is.
async fn region(address: &ListingTableUrl) -> Result<String> {
    in_time(resolve_bucket_region(bucket(address)?, &ClientOptions::new())).await.or_else(|error| {
        let why = why(&error);
        plan_err!("{}: cannot ask for its region: {why}; say it in AWS_REGION or OPTIONS ('aws.region' '…')", address.as_str())
    })
}

/// Requests are signed where there is something to sign them with; what is public can be read without.
async fn signing(builder: AmazonS3Builder, address: &ListingTableUrl) -> Result<Store> {
    let is_said = |key: &Key| builder.get_config_value(key).is_some();
    let is_named = [Key::AccessKeyId, Key::SecretAccessKey, Key::ContainerCredentialsRelativeUri].iter().any(is_said)
        || [Key::WebIdentityTokenFile, Key::RoleArn].iter().all(is_said)
        || [Key::ContainerCredentialsFullUri, Key::ContainerAuthorizationTokenFile].iter().all(is_said)
        || builder.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    let unusable = |error| unreadable(address, &error);
    let store = builder.clone().build().map_err(unusable)?;
    let asks_machine = !std::env::var("AWS_EC2_METADATA_DISABLED").is_ok_and(|word| word.eq_ignore_ascii_case("true"));
    if is_named || (asks_machine && has_credentials(store.credentials().as_ref()).await) {
        return Ok(Arc::new(store));
    }
    Ok(Arc::new(builder.with_skip_signature(true).build().map_err(unusable)?))
}
