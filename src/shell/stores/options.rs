//! What OPTIONS say of a store: `'aws.region' 'eu-central-1'` and the like.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use datafusion::common::plan_err;
use datafusion::error::Result;
use pursuit_udfs::did_you_mean;

/// Names and values, as they were written.
#[derive(Default)]
pub(super) struct Options(Vec<(String, String)>);

/// What one kind of store can be told.
pub(super) struct Known {
    /// What its options begin with.
    pub prefix: &'static str,
    /// Those that people need. There are others, for proxies and the like.
    pub names: &'static [&'static str],
    /// Words that mean one of them.
    pub aliases: &'static [(&'static str, &'static str)],
}

impl Options {
    /// Takes out of a statement's options what is about stores.
    pub fn taken_from(options: &mut HashMap<String, String>) -> Self {
        let is_of_stores =
            |name: &str| [super::s3::OPTIONS, super::google::OPTIONS].iter().any(|known| name.starts_with(known.prefix));
        Self(options.extract_if(|name, _| is_of_stores(name)).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As the library knows them.
    pub fn read<K: FromStr>(&self, known: &Known) -> Result<Vec<(K, &str)>> {
        self.0.iter().map(|(name, value)| Ok((key(name, known)?, value.as_str()))).collect()
    }
}

fn key<K: FromStr>(name: &str, known: &Known) -> Result<K> {
    let word = name.strip_prefix(known.prefix).unwrap_or(name);
    let word = known.aliases.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, meant)| meant);
    match word.parse() {
        Ok(key) if name.starts_with(known.prefix) => Ok(key),
        _ => {
            let names: Vec<String> = known.names.iter().map(|name| format!("{}{name}", known.prefix)).collect();
            plan_err!("there is no option `{name}` here{} options are {}", did_you_mean(name, &names), names.join(", "))
        }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}
