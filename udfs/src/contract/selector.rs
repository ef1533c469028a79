use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Apply, Common, Error, Labels, ModelTable, OptionSpec, Options, Pass, Plan, Problem, Ranking, Report, ReportOnModel, Result,
    Run, Settings, Summarize,
};

/// The contract: from a checked problem to a ranking. Everything else is derived from the declaration.
pub trait Selector: Send + Sync {
    /// What it must be given, which its options may decide.
    fn reads(&self) -> Reads;

    /// Groups that its own options make of the columns, such as the windows of an image. They join those that the user gave.
    fn groups(&self, _features: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
        Ok(BTreeMap::new())
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking>;

    /// Whether the first `n` of `k` choices are the choices for `k = n`, with all that is said of them but coefficients. A query that
    /// takes `n` rows then makes `n` choices only.
    fn is_prefix(&self) -> bool {
        false
    }

    /// Whether its choice depends on the label. Who does not look at it takes one all the same, to say what the choice explains.
    fn sees_label(&self) -> bool {
        true
    }

    /// Whether it sees to `costs` and `budget` itself. Otherwise its ranking is bought from.
    fn spends(&self) -> bool {
        false
    }

    /// Whether its own options say how many features there are, so that without `k` it chooses as many as they allow instead of ten.
    fn has_size(&self) -> bool {
        false
    }

    /// How it selects in one pass, if its options ask for that.
    fn streaming(&self) -> Option<&dyn Streaming> {
        None
    }

    /// What an option needs to mean anything, if with the other options as they are it means nothing: `model => 'mlp'`. Such an option is
    /// refused when it is given.
    fn unused(&self, _option: &str) -> Option<&'static str> {
        None
    }
}

/// A selector that sees every row once, while the table is read.
pub trait Streaming {
    /// Begins a selection that goes on while about `rows` rows are read. `problem` holds the first of them.
    fn begin(&self, problem: &Problem, plan: &Plan, rows: u64, run: &Run) -> Result<Box<dyn Pass>>;
}

/// A selector declared with [`selector!`](crate::selector!), a report with [`report!`](crate::report!), or what applies a model with
/// [`apply!`](crate::apply!).
pub trait Declared: 'static {
    fn spec() -> Spec;
}

/// What a function does with the table it is given.
pub enum Work {
    Select(Arc<dyn Selector>),
    Report(Arc<dyn Report>),
    Apply(Arc<dyn Apply>),
    OnModel(Arc<dyn ReportOnModel>),
    Summarize(Arc<dyn Summarize>),
    Choose(Choosing),
}

/// A table of the columns that a selector chooses, or the query for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choosing {
    pub selector: String,
    pub as_sql: bool,
}

impl Work {
    /// What an option needs to mean anything, if with the other options as they are it means nothing.
    pub fn unused(&self, option: &str) -> Option<&'static str> {
        match self {
            Work::Select(selector) => selector.unused(option),
            Work::Report(report) => report.unused(option),
            Work::Apply(apply) => apply.fit().unused(option),
            Work::OnModel(_) | Work::Summarize(_) | Work::Choose(_) => None,
        }
    }
}

/// A selector or a report as the engine and the manual see it.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The SQL function.
    pub name: &'static str,
    /// Shorter names for the same function.
    pub aliases: &'static [&'static str],
    /// The documentation, first line first.
    pub documentation: &'static [&'static str],
    pub labels: Labels,
    /// Whether a call names a label.
    pub asks: Asks,
    /// What the `score` column holds; empty for a report.
    pub score: &'static str,
    /// The option that is a second table with the same columns, if there is one, and what it is for.
    pub table: Option<(&'static str, &'static str)>,
    /// The option that is the table of a model, if the function applies one.
    pub model: Option<ModelTable>,
    /// The selector's own options, beside the common ones.
    pub options: fn() -> Vec<OptionSpec>,
    pub build: fn(&Settings) -> Result<Work>,
}

impl Spec {
    /// Whether it answers with a ranking.
    pub fn is_selector(&self) -> bool {
        !self.score.is_empty()
    }

    /// The selector with these options of its own.
    pub fn selector(&self, settings: &Settings) -> Result<Arc<dyn Selector>> {
        match (self.build)(settings)? {
            Work::Select(selector) => Ok(selector),
            _ => Err(Error::call(format!("{} does not rank features", self.name))),
        }
    }

    /// Every option that the function takes: its own, its second table, and the common ones.
    pub fn all_options(&self) -> Vec<OptionSpec> {
        let own = (self.options)();
        // An option of its own may also be a table, and says so itself.
        let table = self.table.filter(|(name, _)| own.iter().all(|option| option.name != *name));
        let option = |name, kind, default: &str, description: String| OptionSpec {
            name,
            kind,
            table: None,
            default: default.into(),
            allowed: String::new(),
            description,
        };
        let table = table.map(|(name, description)| option(name, "table", "NULL", description.into()));
        let model = self.model.iter().flat_map(|model| {
            let key = "Columns that tell the rows apart; they come first in the answer.".to_string();
            let instead = if model.fits { ", to decide by instead of learning" } else { "" };
            let given = format!("A table that {} made{instead}.", model.made_by);
            // A function on nothing but a model has it in the first place.
            let is_option = self.asks != Asks::Model;
            [option(KEY, "list of text", "[]", key), option(model.option, "table", "NULL", given)]
                .into_iter()
                .filter(move |_| is_option)
        });
        // Who repeats a selector takes what is asked of it.
        let repeats = own.iter().any(|option| [SELECTOR, SELECTORS].contains(&option.name));
        let is_meant = |option: &OptionSpec| {
            let of_rankings = FOR_RANKINGS.contains(&option.name);
            match self.asks {
                _ if !self.reads_table() => false,
                Asks::MaybeLabel => FOR_SUMMARIES.contains(&option.name),
                Asks::NoLabel => FOR_SUMMARIES[..2].contains(&option.name),
                Asks::Choice => !NOT_FOR_CHOSEN.contains(&option.name),
                Asks::Label | Asks::Model => self.is_selector() || !of_rankings || (repeats && option.name != "rows"),
            }
        };
        // Some have common options among their own, because they see to them themselves.
        let names: Vec<&str> = own.iter().map(|option| option.name).collect();
        let common = Common::specs().into_iter().filter(is_meant).filter(|option| !names.contains(&option.name));
        model.chain(own).chain(table).chain(common).collect()
    }

    /// Whether it learns from a table, so that it has the options that say how. Otherwise it has a model before it.
    pub fn reads_table(&self) -> bool {
        self.model.is_none_or(|model| model.fits)
    }

    /// The first line of the documentation, without its full stop.
    pub fn summary(&self) -> String {
        self.documentation.first().map_or("", |line| line.trim().trim_end_matches('.')).to_string()
    }

    /// The documentation as text.
    pub fn description(&self) -> String {
        self.documentation.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

/// The option of every function that applies a model: columns that tell rows apart.
pub const KEY: &str = "key";

/// Common options that only mean something where features are ranked.
const FOR_RANKINGS: [&str; 7] = ["k", "folds", "must_include", "rows", "reads", "costs", "budget"];

/// The option of every function that repeats a selector: its name.
pub const SELECTOR: &str = "selector";

/// The option of a function that compares selectors: their names.
pub const SELECTORS: &str = "selectors";

/// Common options that mean nothing where the answer is the chosen columns.
const NOT_FOR_CHOSEN: [&str; 2] = ["rows", "partition_by"];

/// Common options of what is gathered while rows stream by; without a label the first two.
const FOR_SUMMARIES: [&str; 4] = ["features", "exclude", "task", "max_classes"];

/// Whether a call names a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    Label,
    /// There may be one.
    MaybeLabel,
    NoLabel,
    /// There is one, and what is asked for is the columns that a selector chooses.
    Choice,
    /// The table is a model, which has the label behind it.
    Model,
}

/// What a selector must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Second moments suffice, gathered in one pass; rows serve as well.
    Moments,
    /// The rows themselves.
    Rows,
    /// The rows one after the other, without keeping them but for so many at first; `None`: as many as fit into a modest buffer.
    Pass(Option<usize>),
}

/// What all declarations share: the options as a struct, and the `Spec` that is known of it.
#[doc(hidden)]
#[macro_export]
macro_rules! declare {
    (
        $Work:ident(
            asks = $asks:expr,
            name = $name:literal,
            aliases = [$($alias:literal),*]
            $(, labels = $labels:ident)?
            $(, score = $score:literal)?
            $(, table = $table:expr)?
            $(, model = $model:expr)? $(,)?
        )
        $(#[doc = $doc:expr])*
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
                    labels: [$($crate::Labels::$labels,)? $crate::Labels::Any][0],
                    asks: $asks,
                    score: [$($score,)? ""][0],
                    table: [$(::std::convert::Into::into($table),)? None][0],
                    model: [$(Some($model),)? None][0],
                    options: <$Name as $crate::Options>::specs,
                    build: |settings| Ok($crate::Work::$Work(::std::sync::Arc::new($crate::options::read::<$Name>(settings)?))),
                }
            }
        }
    };
}

/// Declares a selector: its documentation, its name in SQL, and its options.
#[macro_export]
macro_rules! selector {
    ($(#[doc = $doc:expr])* #[selector($($known:tt)*)] $($item:tt)*) => {
        $crate::declare! { Select(asks = $crate::Asks::Label, $($known)*) $(#[doc = $doc])* $($item)* }
    };
}

/// Declares a report: its documentation, its name in SQL, and its options.
#[macro_export]
macro_rules! report {
    ($(#[doc = $doc:expr])* #[report($($known:tt)*)] $($item:tt)*) => {
        $crate::declare! { Report(asks = $crate::Asks::Label, $($known)*) $(#[doc = $doc])* $($item)* }
    };
}
