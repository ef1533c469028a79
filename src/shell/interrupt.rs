//! Ctrl-C, heard by a thread of its own: those of the runtime may all be at work on a batch when it is pressed.

use std::pin::pin;
use std::sync::{Arc, OnceLock, mpsc};
use std::task::Poll;
use std::thread;

use futures::poll;
use tokio::runtime::Builder;
use tokio::sync::Notify;

/// Whoever waits for this is told when Ctrl-C is pressed; it no longer ends the program from the first call on. The prompt must not be shown before that:
/// reading a line puts back what it found, which would be that Ctrl-C ends the program.
pub(super) fn interrupts() -> Arc<Notify> {
    static PRESSED: OnceLock<Arc<Notify>> = OnceLock::new();
    let begin = || {
        let pressed = Arc::new(Notify::new());
        let told = Arc::clone(&pressed);
        let (listening, listens) = mpsc::channel();
        thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                loop {
                    let mut next = pin!(tokio::signal::ctrl_c());
                    // The first look is what makes it listen.
                    let first = poll!(next.as_mut());
                    let _ = listening.send(());
                    let heard = if let Poll::Ready(heard) = first { heard } else { next.await };
                    if heard.is_err() {
                        return;
                    }
                    told.notify_waiters();
                }
            });
        });
        // An error is a thread that has ended, which nobody can wait for.
        let _ = listens.recv();
        pressed
    };
    Arc::clone(PRESSED.get_or_init(begin))
}
