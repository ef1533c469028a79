//! The options of functions that repeat a selector.

use crate::options;
use crate::settings::options::Settings;

options! {
    /// Which selector is repeated.
    pub struct Repeated {
        /// The selector that is repeated.
        selector: String = "omp".to_string();
        /// Its own options, as a map or a JSON text; those that all selectors have are given beside it.
        selector_options: Settings = Settings::new();
    }
}
