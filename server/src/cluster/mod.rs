//! The cluster: Ballista's scheduler and executors with our functions in them, and the shell as its client.
//!
//! A selection that reads moments is standard nodes around `gram` and `select_from`, of which only the names travel: every process has both. One that reads rows is a
//! table of ours to the shell and an operator of ours to the executors, and travels by codecs.

mod client;
mod codec;
mod executor;
mod said;
mod scheduler;
mod stages;
mod watched;

pub use client::hook;
pub use executor::Executor;
pub use scheduler::Scheduler;

use datafusion::error::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use pursuit::Engine;

/// Most bytes of a message. Moments grow with the square of the columns: those of 1,000 take 8 MB, of 4,000 128 MB.
const MESSAGE_MAX: u32 = 512 << 20;

/// What executors call themselves.
const MAKE: &str = concat!("pursuit/", env!("CARGO_PKG_VERSION"));

/// A session with our functions, as the scheduler plans in and the executors run in.
fn state(engine: &Engine, config: SessionConfig) -> Result<SessionState> {
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    Ok(engine.install(builder)?.build())
}
