//! Ctrl-C, heard by a thread of its own: those of the runtime may all be at work on a batch when it is pressed.

use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::Notify;

/// Whoever waits for this is told when Ctrl-C is pressed; it no longer ends the program from the first call on.
pub(super) fn interrupts() -> Arc<Notify> {
    static PRESSED: OnceLock<Arc<Notify>> = OnceLock::new();
    let begin = || {
        let pressed = Arc::new(Notify::new());
        let told = Arc::clone(&pressed);
        thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                while tokio::signal::ctrl_c().await.is_ok() {
                    told.notify_waiters();
                }
            });
        });
        pressed
    };
    Arc::clone(PRESSED.get_or_init(begin))
}
