//! What is piped into the program as a table: `CREATE EXTERNAL TABLE … LOCATION '/dev/stdin'`.

use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::memory::InMemory;

pub(super) const SCHEME: &str = "stdin";

/// A program has one input, and it can be read once.
static HAS_SQL: AtomicBool = AtomicBool::new(false);

/// SQL is read from it, so that it can be no table.
pub(in crate::shell) fn has_sql() {
    HAS_SQL.store(true, Ordering::Relaxed);
}

pub(in crate::shell) fn is_stdin(path: &str) -> bool {
    ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(&path)
}

/// Under which address its bytes are kept. Files are recognised by their endings.
pub(super) fn address(location: &str, file_type: &str) -> Option<String> {
    is_stdin(location).then(|| format!("{SCHEME}:///stdin.{}", file_type.to_lowercase()))
}

/// Reads all of it, the first time: formats jump about in a file, and a table may be read twice.
pub(super) async fn reach(runtime: &RuntimeEnv, address: &ListingTableUrl) -> Result<()> {
    if let Ok(read) = runtime.object_store(address) {
        return match read.head(address.prefix()).await {
            Ok(_) => Ok(()),
            Err(_) => exec_err!("the standard input is a table already; another one of it must be STORED AS the same"),
        };
    }
    if HAS_SQL.load(Ordering::Relaxed) {
        return exec_err!("the standard input has the SQL, and cannot have a table too; give the SQL with -c or -f");
    }
    if std::io::stdin().is_terminal() {
        return exec_err!("nothing is piped in; write pursuit -c '…' < file");
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| exec_datafusion_err!("cannot read the standard input: {error}"))?;
    let store = InMemory::new();
    store.put(address.prefix(), bytes.into()).await?;
    runtime.register_object_store(address.get_url(), Arc::new(store));
    Ok(())
}
