//! Memory of one user, out of that of the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// What the queries of one user may take of the server's memory.
#[derive(Debug)]
pub struct OfUser {
    server: Arc<dyn MemoryPool>,
    limit: usize,
    used: AtomicUsize,
}

impl OfUser {
    pub fn new(server: Arc<dyn MemoryPool>, limit: usize) -> Self {
        Self { server, limit, used: AtomicUsize::new(0) }
    }
}

impl fmt::Display for OfUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes of a user", self.reserved(), self.limit)
    }
}

impl MemoryPool for OfUser {
    fn name(&self) -> &str {
        "user"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.server.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.server.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, bytes: usize) {
        self.server.grow(reservation, bytes);
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, bytes: usize) {
        self.server.shrink(reservation, bytes);
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, bytes: usize) -> Result<()> {
        let within = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        if let Err(used) = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            let limit = self.limit;
            return Err(resources_datafusion_err!(
                "Failed to allocate {bytes} bytes: your statements have {used} of the {limit} bytes that a user may have (--memory-limit-per-user)"
            ));
        }
        self.server.try_grow(reservation, bytes).inspect_err(|_| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    #[test]
    fn a_user_has_a_part_and_the_server_has_the_rest() {
        let server: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(150));
        let [ada, bob] = [(); 2].map(|()| Arc::new(OfUser::new(Arc::clone(&server), 100)) as Arc<dyn MemoryPool>);
        let [first, second] = [&ada, &bob].map(|pool| MemoryConsumer::new("test").register(pool));
        first.try_grow(90).unwrap();
        assert!(first.try_grow(20).unwrap_err().to_string().contains("90 of the 100 bytes"));
        // The server has no more, and what it refused is not counted.
        assert!(second.try_grow(70).is_err());
        second.try_grow(60).unwrap();
        assert_eq!((ada.reserved(), bob.reserved(), server.reserved()), (90, 60, 150));
        drop(first);
        assert_eq!((ada.reserved(), server.reserved()), (0, 60));
    }
}
