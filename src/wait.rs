//! Planning is not asynchronous, but what it asks for may be: catalogs on the network, tables that are options.

use std::future::Future;
use std::thread;

use datafusion::error::Result;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};

/// The outcome of a future, waited for by a thread that cannot await.
///
/// If the thread is one of several of a runtime, it hands its tasks to another and waits. A runtime of one thread could not go on
/// meanwhile, so that the future is made and run on a runtime of its own. `failed` is the answer if it panics there.
pub(crate) fn wait<T, F>(make: impl FnOnce() -> F + Send, failed: impl FnOnce() -> Result<T>) -> Result<T>
where
    T: Send,
    F: Future<Output = Result<T>>,
{
    if let Ok(handle) = Handle::try_current()
        && handle.runtime_flavor() == RuntimeFlavor::MultiThread
    {
        return tokio::task::block_in_place(|| handle.block_on(make()));
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| Builder::new_current_thread().enable_all().build()?.block_on(make()));
        waiting.join().unwrap_or_else(|_| failed())
    })
}
