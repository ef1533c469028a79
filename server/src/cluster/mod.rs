//! The cluster: Ballista's scheduler and executors with our functions in them, and the shell as its client.
//!
//! Nothing of ours travels but the names of functions: a selection that reads moments is standard nodes around `gram` and `select_from`, and every
//! process has both.

mod client;
mod executor;
mod scheduler;

pub use client::hook;
pub use executor::Executor;
pub use scheduler::Scheduler;

use datafusion::error::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use pursuit::Engine;

/// Most bytes of a message. Moments grow with the square of the columns: those of 1,000 take 8 MB, of 4,000 128 MB.
const MESSAGE_MAX: u32 = 512 << 20;

/// A session with our functions, as the scheduler plans in and the executors run in.
fn state(config: SessionConfig) -> Result<SessionState> {
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    Ok(Engine::default().install(builder)?.build())
}
