//! `SET pursuit.seed = 7`: options that hold for a session, where a call does not say otherwise.

use std::any::Any;
use std::sync::LazyLock;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use pursuit_udfs::{Common, OF_SESSIONS, OptionSpec, Options, Settings, Spec, Value, did_you_mean, shown};

/// What was set, by option.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults(Settings);

/// The options that can be set, described.
static SPECS: LazyLock<Vec<OptionSpec>> =
    LazyLock::new(|| Common::specs().into_iter().filter(|option| OF_SESSIONS.contains(&option.name)).collect());

impl Defaults {
    /// Makes the settings known to a session that has none yet.
    pub(crate) fn register(options: &mut ConfigOptions) {
        if options.extensions.get::<Self>().is_none() {
            options.extensions.insert(Self::default());
        }
    }

    /// Adds to a call what the session says and the call does not, as far as the function takes it.
    pub(crate) fn fill(options: &ConfigOptions, spec: &Spec, settings: &mut Settings) {
        let Some(Self(defaults)) = options.extensions.get::<Self>().filter(|defaults| !defaults.0.is_empty()) else { return };
        let taken = spec.all_options();
        for (name, value) in defaults.iter().filter(|(name, _)| taken.iter().any(|option| option.name == *name)) {
            settings.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}

impl ConfigExtension for Defaults {
    const PREFIX: &'static str = "pursuit";
}

impl ExtensionOptions for Defaults {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, given: &str) -> Result<()> {
        let error = |message: String| DataFusionError::Configuration(format!("pursuit.{}: {message}", shown(key)));
        if !OF_SESSIONS.contains(&key) {
            let hint = did_you_mean(key, &OF_SESSIONS);
            return Err(error(format!("no such setting{hint} settings are {}", OF_SESSIONS.join(", "))));
        }
        if ["null", "default", ""].iter().any(|word| given.trim().eq_ignore_ascii_case(word)) {
            self.0.remove(key);
            return Ok(());
        }
        // SET hands every value over as text.
        let value = serde_json::from_str::<Value>(given).ok().filter(|value| value.is_number() || value.is_boolean());
        let value = value.unwrap_or_else(|| Value::from(given));
        if let Some(Err(wrong)) = Common::default().set(key, &value) {
            return Err(error(wrong.to_string()));
        }
        self.0.insert(key.to_string(), value);
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |option: &'static OptionSpec| ConfigEntry {
            key: format!("{}.{}", Self::PREFIX, option.name),
            value: match self.0.get(option.name) {
                Some(Value::String(text)) => Some(text.clone()),
                Some(value) => Some(value.to_string()),
                None => Some(option.default.trim_matches('\'').to_string()).filter(|default| default != "NULL"),
            },
            description: &option.description,
        };
        SPECS.iter().map(entry).collect()
    }
}
