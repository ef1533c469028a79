//! Tables that are elsewhere: at `s3://`, `gs://` and `http://`, and what is piped into the program.
//!
//! A store is opened when somebody first names an address in it: a query, or a statement whose OPTIONS may say how. Then it is looked at once, so that whatever
//! is wrong with it is said in a line, and not found out by a scan that tries again and again.

mod google;
mod options;
mod s3;
pub(super) mod stdin;
pub(super) mod urls;

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::plan_err;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::object_store::http::HttpBuilder;
use datafusion::object_store::{ClientOptions, CredentialProvider, Error, ObjectStore, ObjectStoreExt};
use futures::TryStreamExt;
use tokio::time::timeout;

use options::Options;

type Store = Arc<dyn ObjectStore>;

/// A store that says nothing for so long is not there.
const ANSWERS: Duration = Duration::from_secs(20);
/// The same for a machine's own credentials, which most machines do not have.
const HAS_CREDENTIALS: Duration = Duration::from_secs(2);

/// Opens the stores that a statement names, and takes out of its OPTIONS what is about them: formats know nothing of it.
pub(super) async fn open_named(plan: &mut LogicalPlan, runtime: &RuntimeEnv) -> Result<()> {
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => {
            let options = Options::taken_from(&mut table.options);
            for location in &mut table.locations {
                if let Some(piped) = stdin::address(location, &table.file_type) {
                    *location = piped;
                }
                reach(runtime, &ListingTableUrl::parse(location)?, &options).await?;
            }
        }
        LogicalPlan::Copy(copy) => {
            let options = Options::taken_from(&mut copy.options);
            let address = ListingTableUrl::parse(&copy.output_url)?;
            // Who may write need not be allowed to look.
            if !is_open(runtime, &address, &options) {
                let store = opened(&address, &options).await?;
                runtime.register_object_store(address.get_url(), store);
            }
        }
        _ => {}
    }
    Ok(())
}

/// A store is opened anew when something new is said of it.
fn is_open(runtime: &RuntimeEnv, address: &ListingTableUrl, options: &Options) -> bool {
    options.is_empty() && runtime.object_store(address).is_ok()
}

/// Opens the store of an address, unless it is open, and looks there.
async fn reach(runtime: &RuntimeEnv, address: &ListingTableUrl, options: &Options) -> Result<()> {
    if address.scheme() == stdin::SCHEME {
        return stdin::reach(runtime, address).await;
    }
    if is_open(runtime, address, options) {
        return Ok(());
    }
    let mut store = opened(address, options).await?;
    if let Err(error) = look(&store, address).await {
        // What Amazon says of a bucket in another region does not name the region.
        let moved = if address.scheme() == "s3" { s3::elsewhere(address, options).await? } else { None };
        store = moved.ok_or_else(|| unreadable(address, &error))?;
        look(&store, address).await.map_err(|error| unreadable(address, &error))?;
    }
    runtime.register_object_store(address.get_url(), store);
    Ok(())
}

async fn opened(address: &ListingTableUrl, options: &Options) -> Result<Store> {
    match address.scheme() {
        "s3" | "oss" | "cos" => s3::opened(address, options).await,
        "gs" | "gcs" => google::opened(address, options).await,
        scheme if !options.is_empty() => plan_err!("{options}: there are no such options for {scheme}://"),
        "http" | "https" => {
            let client = ClientOptions::new().with_allow_http(true);
            Ok(Arc::new(HttpBuilder::new().with_url(address.object_store().as_str()).with_client_options(client).build()?))
        }
        scheme => plan_err!("no table can be at {scheme}://; addresses begin with s3://, gs://, http:// or https://"),
    }
}

/// Looks whether something is there. That nothing is, whoever reads it says.
async fn look(store: &Store, address: &ListingTableUrl) -> Result<(), Error> {
    let looked = async {
        match address.is_collection() {
            true => store.list(Some(address.prefix())).try_next().await.map(drop),
            false => store.head(address.prefix()).await.map(drop),
        }
    };
    match in_time(looked).await {
        Err(Error::NotFound { .. }) => Ok(()),
        looked => looked,
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let silent = || Error::Generic { store: "", source: format!("no answer for {} s", ANSWERS.as_secs()).into() };
    timeout(ANSWERS, asked).await.unwrap_or_else(|_| Err(silent()))
}

fn unreadable(address: &ListingTableUrl, error: &Error) -> DataFusionError {
    let address = address.as_str();
    DataFusionError::Execution(match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            let keys = match address.split(':').next() {
                Some("s3") => s3::KEYS,
                Some("gs" | "gcs") => google::KEYS,
                _ => "",
            };
            format!("{address}: access is denied{keys}")
        }
        error => format!("{address}: {}", why(error)),
    })
}

/// What is wrong in the end: "Connection refused", and not how often it was tried and who passed it on.
fn why(error: &Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.last().map(|cause| cause.to_string()).unwrap_or_default()
}

/// The bucket that an address is in.
fn bucket(address: &ListingTableUrl) -> Result<&str> {
    match address.get_url().host_str() {
        Some(bucket) if !bucket.is_empty() => Ok(bucket),
        _ => plan_err!("{} names no bucket; write {}://bucket/file", address.as_str(), address.scheme()),
    }
}

/// Whether this machine or its user has credentials, where nobody has named any. Who has none may still read what is public.
async fn has_credentials<T>(credentials: &dyn CredentialProvider<Credential = T>) -> bool {
    matches!(timeout(HAS_CREDENTIALS, credentials.get_credential()).await, Ok(Ok(_)))
}
