//! A panic becomes an error of one line that says what happened and where: it ends the query and not the process.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

use pursuit_udfs::{Error, Result};

/// Places of the latest panics with their messages. A panic inside rayon is caught on another thread than it happened on, and without its
/// place, so that they are told apart by what they say.
static PLACES: Mutex<VecDeque<(String, String)>> = Mutex::new(VecDeque::new());
const PLACES_MAX: usize = 64;

/// Does work that must not panic. If it does, the error says so.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    remember_places();
    // Whatever the work was changing is dropped with it.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::data(internal_error(&*panic))))
}

/// What a panic means for the person who asked.
pub(crate) fn internal_error(panic: &(dyn Any + Send)) -> String {
    let message = message(panic);
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let at = places.iter().rposition(|(said, _)| *said == message);
    let place = at.and_then(|at| places.remove(at)).map_or(String::new(), |(_, place)| format!(" ({place})"));
    format!("internal error: {}{place}; please report it", message.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_string())
}

/// Only a hook is told where a panic happened. This one writes it down and leaves the rest to the hook that was there.
pub(crate) fn remember_places() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(place) = panic.location() {
                let place = format!("{}:{}", place.file(), place.line());
                let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
                if places.len() == PLACES_MAX {
                    places.pop_front();
                }
                places.push_back((message(panic.payload()), place));
            }
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_says_what_and_where() {
        let error = caught::<()>(|| panic!("row {}\nis not there", 7)).unwrap_err().to_string();
        assert!(error.starts_with("internal error: row 7 is not there ("), "{error}");
        assert!(error.contains("panics.rs:") && error.ends_with("; please report it"), "{error}");
    }

    #[test]
    fn a_panic_on_another_thread_has_its_place_too() {
        let error = caught::<()>(|| {
            rayon::join(|| (), || rayon::join(|| (), || panic!("over there")));
            Ok(())
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("over there (") && error.contains("panics.rs:"), "{error}");
    }
}
