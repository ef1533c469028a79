use crate::{OptionSpec, Problem, Ranking, Result, Run, Settings};

/// The contract: from a checked problem to a ranking. Everything else is derived from the declaration.
pub trait Selector: Send + Sync {
    /// What it must be given, which its options may decide.
    fn reads(&self) -> Reads;

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking>;
}

/// A selector declared with [`selector!`](crate::selector!).
pub trait Declared: Selector + 'static {
    fn spec() -> Spec;
}

/// A selector as the engine and the manual see it.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The SQL function.
    pub name: &'static str,
    /// Shorter names for the same function.
    pub aliases: &'static [&'static str],
    /// The documentation, first line first.
    pub documentation: &'static [&'static str],
    pub labels: Labels,
    /// What the `score` column holds.
    pub score: &'static str,
    /// The selector's own options, beside the common ones.
    pub options: fn() -> Vec<OptionSpec>,
    pub build: fn(&Settings) -> Result<Box<dyn Selector>>,
}

impl Spec {
    /// The first line of the documentation, without its full stop.
    pub fn summary(&self) -> String {
        self.documentation.first().map_or("", |line| line.trim().trim_end_matches('.')).to_string()
    }

    /// The documentation as text.
    pub fn description(&self) -> String {
        self.documentation.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

/// The labels that a selector can predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// Numbers and classes.
    Any,
    /// Numbers, and two classes as 0 and 1.
    NumberOrTwoClasses,
    /// Classes alone.
    Classes,
}

/// What a selector must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Second moments suffice, gathered in one pass; rows serve as well.
    Moments,
    /// The rows themselves.
    Rows,
}

/// Doc lines joined into one paragraph.
pub fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_string()
}

/// Declares a selector: its documentation, its name in SQL, and its options.
#[macro_export]
macro_rules! selector {
    (
        $(#[doc = $doc:expr])*
        #[selector(
            name = $name:literal,
            aliases = [$($alias:literal),*],
            labels = $labels:ident,
            score = $score:literal $(,)?
        )]
        $vis:vis struct $Name:ident { $($options:tt)* }
    ) => {
        $crate::options! {
            $(#[doc = $doc])*
            $vis struct $Name { $($options)* }
        }

        impl $crate::Declared for $Name {
            fn spec() -> $crate::Spec {
                $crate::Spec {
                    name: $name,
                    aliases: &[$($alias),*],
                    documentation: &[$($doc),*],
                    labels: $crate::Labels::$labels,
                    score: $score,
                    options: <$Name as $crate::Options>::specs,
                    build: |settings| Ok(Box::new($crate::options::read::<$Name>(settings)?)),
                }
            }
        }
    };
}
