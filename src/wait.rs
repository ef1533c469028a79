//! Planning is not asynchronous, but what it asks for may be: catalogs on the network, tables that are options.

use std::future::Future;
use std::thread;

use datafusion::error::Result;
use futures::FutureExt;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};

/// The outcome of a future, waited for by a thread that cannot await.
///
/// What is at hand costs nothing. Otherwise this thread, if it is one of several of a runtime, hands its tasks to another and waits;
/// a runtime of one thread could not go on, so that the future gets a runtime of its own. `failed` is the answer if it panics.
pub(crate) fn wait<T: Send>(future: impl Future<Output = Result<T>> + Send, failed: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut future = Box::pin(future);
    if let Some(outcome) = future.as_mut().now_or_never() {
        return outcome;
    }
    if let Ok(handle) = Handle::try_current()
        && handle.runtime_flavor() == RuntimeFlavor::MultiThread
    {
        return tokio::task::block_in_place(|| handle.block_on(future));
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| Builder::new_current_thread().enable_all().build()?.block_on(future));
        waiting.join().unwrap_or_else(|_| failed())
    })
}
