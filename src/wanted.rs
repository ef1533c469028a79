//! Whether an answer is still wanted, for hosts that cannot drop the stream it would come from.

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;

/// By `SessionConfig::with_extension`: our operators stop when the [`Wish`] that it was made with is dropped.
///
/// Whoever drops a stream stops it too, and needs none of this. But a cluster engine may hand the stream to a task that outlives its own end.
#[derive(Debug)]
pub struct Wanted(watch::Receiver<()>);

/// As long as this is kept, the answer is wanted.
#[derive(Debug)]
pub struct Wish(#[allow(dead_code)] watch::Sender<()>);

impl Wanted {
    pub fn new() -> (Wish, Self) {
        let (sender, receiver) = watch::channel(());
        (Wish(sender), Self(receiver))
    }

    /// The batches until they are no longer wanted, and then an error: an answer that ended early would look like a whole one.
    pub(crate) fn guard(&self, batches: BoxStream<'static, Result<RecordBatch>>) -> BoxStream<'static, Result<RecordBatch>> {
        let (mut wanted, at_the_end) = (self.0.clone(), self.0.clone());
        let gone = async move { while wanted.changed().await.is_ok() {} };
        let cancelled = async move {
            let is_gone = at_the_end.has_changed().is_err();
            is_gone.then(|| Err(DataFusionError::Execution("cancelled: nobody waits for the answer".into())))
        };
        batches.take_until(gone).chain(stream::once(cancelled).filter_map(std::future::ready)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Schema;
    use datafusion::common::runtime::SpawnedTask;
    use std::sync::Arc;
    use std::time::Duration;

    struct Dropped(Arc<()>);

    #[tokio::test]
    async fn what_nobody_wants_is_dropped_and_says_so() {
        let (wish, wanted) = Wanted::new();
        let held = Arc::new(());
        let work = Dropped(Arc::clone(&held));
        let never = stream::once(async move {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            drop(work.0);
            Err(DataFusionError::Execution("too late".into()))
        });
        let waiting = SpawnedTask::spawn(wanted.guard(never.boxed()).collect::<Vec<_>>());
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&held), 2);
        drop(wish);
        let answer = waiting.await.unwrap();
        assert!(matches!(&answer[..], [Err(error)] if error.to_string().contains("cancelled")), "{answer:?}");
        assert_eq!(Arc::strong_count(&held), 1, "the work was dropped");
    }

    #[tokio::test]
    async fn what_is_wanted_comes_whole() {
        let (wish, wanted) = Wanted::new();
        let batches = wanted.guard(stream::iter((0..3).map(|_| Ok(RecordBatch::new_empty(Schema::empty().into())))).boxed());
        assert_eq!(batches.collect::<Vec<_>>().await.len(), 3);
        drop(wish);
    }
}
