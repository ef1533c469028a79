//! Every function of the registry, with its defaults and with every word that its options take: what the tests of memory and of cancelling go through.

use crate::{Labels, OptionSpec, Settings, Spec, Value, reports, selectors};

/// A function and some options.
pub struct Variant {
    pub spec: Spec,
    pub given: Vec<(&'static str, Value)>,
}

impl Variant {
    /// As a user would write it.
    pub fn name(&self) -> String {
        let words: Vec<String> = self.given.iter().map(|(name, value)| format!("{name} => {value}")).collect();
        format!("{}({})", self.spec.name, words.join(", "))
    }

    pub fn settings(&self) -> Settings {
        self.given.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    }

    /// Whether it is about classes, of two or more.
    pub fn wants_classes(&self) -> bool {
        self.spec.labels == Labels::Classes || self.given.iter().any(|(_, value)| value == "logistic")
    }
}

/// The words that an option takes, if it takes words.
pub fn words(option: &OptionSpec) -> Vec<&str> {
    match option.kind {
        "text" | "list of text" => option.allowed.split('\'').skip(1).step_by(2).collect(),
        _ => Vec::new(),
    }
}

/// Every function, plain and with each word.
pub fn variants() -> Vec<Variant> {
    let mut variants = Vec::new();
    for spec in selectors().into_iter().chain(reports()) {
        variants.push(Variant { spec: spec.clone(), given: Vec::new() });
        for option in (spec.options)() {
            for word in words(&option).into_iter().filter(|word| !option.default.contains(&format!("'{word}'"))) {
                let given = vec![(option.name, Value::from(word))];
                variants.push(Variant { spec: spec.clone(), given });
            }
        }
    }
    variants
}
