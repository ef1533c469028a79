//! What `--format` and `--maxrows` take, and `\pset` beside them.

use std::str::FromStr;

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    // A word for it that scripts may have.
    #[value(alias = "automatic")]
    Table,
    Csv,
    Tsv,
    Json,
    NdJson,
}

impl Format {
    /// The word that is typed for it.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        ValueEnum::from_str(word, true)
    }
}

/// Most rows of a table; `None`: all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MaxRows(pub Option<usize>);

impl FromStr for MaxRows {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.to_lowercase().as_str() {
            "inf" | "infinite" | "none" => Ok(Self(None)),
            number => number.parse().map(|rows| Self(Some(rows))).map_err(|_| "write a number of rows, or inf".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers() {
        for format in Format::value_variants() {
            assert_eq!(format.name().to_uppercase().parse(), Ok(*format));
        }
        assert_eq!("automatic".parse(), Ok(Format::Table));
        assert!("xml".parse::<Format>().is_err());
        assert_eq!("Inf".parse(), Ok(MaxRows(None)));
        assert_eq!("12".parse(), Ok(MaxRows(Some(12))));
        assert!("-1".parse::<MaxRows>().is_err());
    }
}
