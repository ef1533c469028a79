//! Options are declared once, with [`options!`](macro@crate::options). Parsing, range checks, error messages,
//! `selector_options()` and the manual are all read off that declaration.

use std::fmt;

use serde_json::Value;

use crate::error::{also_called, did_you_mean, name_list_near, shown};
use crate::{Error, Result};

pub use super::option_maps::{Lists, Pairs};

/// What a user wrote: option names and values, still unchecked.
pub type Settings = serde_json::Map<String, Value>;

/// One option, described for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionSpec {
    pub name: &'static str,
    /// The kind of value it takes: `number`, `text`, `list of text`, …
    pub kind: &'static str,
    /// What a table looks like that can be given instead.
    pub table: Option<TableShape>,
    pub default: String,
    /// The values it accepts, in words.
    pub allowed: String,
    pub description: String,
}

/// A table that can stand for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableShape {
    /// Features, and the list that each belongs to.
    Lists,
    /// Features, and a number of each.
    Numbers,
    /// Features that belong to each other.
    Pairs,
}

impl TableShape {
    /// What its columns are called; `None`: whatever they are.
    pub fn columns(self) -> Option<[&'static str; 2]> {
        match self {
            TableShape::Lists => Some(["feature", "feature_group"]),
            TableShape::Numbers => Some(["feature", "cost"]),
            TableShape::Pairs => None,
        }
    }
}

/// A struct whose fields are options.
pub trait Options: Default {
    fn specs() -> Vec<OptionSpec>;

    /// Sets the option called `name`, or says why not. `None`: there is no such option here.
    fn set(&mut self, name: &str, value: &Value) -> Option<Result<()>>;
}

/// A type that an option can have.
pub trait OptionType: Sized {
    const KIND: &'static str;
    /// What a list of it is called.
    const LIST: &'static str = "list";
    /// Most items of a list of it.
    const LIST_MAX: usize = 1_000_000;
    /// What a table looks like that can be given instead.
    const TABLE: Option<TableShape> = None;

    /// The accepted values in words, where the type itself limits them.
    fn allowed() -> String {
        String::new()
    }

    /// `None` when the value is not of this type.
    fn parse(value: &Value) -> Option<Self>;

    fn print(&self) -> String;
}

/// A limit that both checks a value and prints itself. Every one has two ends.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// From here to [`LARGEST`].
    AtLeast(f64),
    /// Beyond this, up to [`LARGEST`].
    Above(f64),
    Between(f64, f64),
}

/// Nothing that is counted or weighed needs a larger number, and the product of two such fits into 64 bits.
pub const LARGEST: f64 = 1e9;

impl Check {
    fn holds(self, value: &Value) -> bool {
        if let Some(items) = value.as_array() {
            return items.iter().all(|item| self.holds(item));
        }
        if let Some(items) = value.as_object() {
            return items.values().all(|item| self.holds(item));
        }
        let Some(x) = value.as_f64() else { return true };
        match self {
            Check::AtLeast(low) => (low..=LARGEST).contains(&x),
            Check::Above(low) => x > low && x <= LARGEST,
            Check::Between(low, high) => (low..=high).contains(&x),
        }
    }

    /// What a value must be that does not hold: the end that it is beyond, where the other one goes without saying.
    fn must_be(self, value: &Value) -> String {
        let is_too_large = |value: &Value| value.as_f64().is_some_and(|x| x > LARGEST);
        let any_too_large = value.as_array().map_or(is_too_large(value), |items| items.iter().any(is_too_large));
        match self {
            Check::AtLeast(_) | Check::Above(_) if any_too_large => format!("at most {LARGEST}"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::AtLeast(low) => write!(f, "at least {low}"),
            Check::Above(low) => write!(f, "above {low}"),
            Check::Between(low, high) => write!(f, "between {low} and {high}"),
        }
    }
}

/// Reads `settings` into `T`; names that `T` does not have are an error.
pub fn read<T: Options>(settings: &Settings) -> Result<T> {
    let mut options = T::default();
    for (name, value) in settings {
        match options.set(name, value) {
            Some(result) => result?,
            None => return Err(unknown(name, &T::specs())),
        }
    }
    Ok(options)
}

/// ``unknown option `kk`; did you mean `k`? options are k, tolerance``
pub fn unknown(name: &str, specs: &[OptionSpec]) -> Error {
    let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    // A label is asked for in its own place.
    let meant = also_called(name).filter(|meant| names.contains(meant) || *meant == "label");
    let hint = meant.map_or_else(|| did_you_mean(name, &names), |meant| format!("; did you mean `{meant}`?"));
    let name = shown(name);
    Error::call(format!("unknown option `{name}`{hint} options are {}", names.join(", ")))
}

/// The body of every generated `set`: type, then limit, then the one message they share.
pub fn parse_checked<T: OptionType>(name: &str, value: &Value, check: Option<Check>) -> Result<T> {
    let must_be = |what: &str| Error::call(format!("`{name}` must be {what}, got {}", show(value)));
    let parsed = T::parse(value);
    if let Some(check) = check
        && !check.holds(value)
    {
        // Of a map only what is wrong: a table of prices may be long.
        let wrong = value.as_object().and_then(|items| items.iter().find(|(_, item)| !check.holds(item)));
        return Err(match wrong {
            Some((key, item)) => {
                Error::call(format!("`{name}` must be {}, got {} for `{}`", check.must_be(item), show(item), shown(key)))
            }
            None => must_be(&check.must_be(value)),
        });
    }
    if parsed.is_none() && T::KIND == usize::KIND && value.as_f64().is_some_and(|x| x < 0.0) {
        return Err(must_be("at least 0"));
    }
    parsed.ok_or_else(|| must_be(&if T::allowed().is_empty() { format!("a {}", T::KIND) } else { T::allowed() }))
}

/// A value as the user would write it in SQL, or its beginning if it is long.
pub fn show(value: &Value) -> String {
    const ITEMS: usize = 12;
    let list = |items: &mut dyn Iterator<Item = String>, all: usize| {
        let more = if all > ITEMS { format!(", … (+{})", all - ITEMS) } else { String::new() };
        items.take(ITEMS).collect::<Vec<_>>().join(", ") + &more
    };
    match value {
        Value::Null => "NULL".into(),
        Value::String(text) => format!("'{}'", shown(text)),
        Value::Array(items) => format!("[{}]", list(&mut items.iter().map(show), items.len())),
        Value::Object(items) => {
            let entry = |(name, item): (&String, &Value)| format!("'{}': {}", shown(name), show(item));
            format!("{{{}}}", list(&mut items.iter().map(entry), items.len()))
        }
        other => other.to_string(),
    }
}

impl OptionType for f64 {
    const KIND: &'static str = "number";
    const LIST: &'static str = "list of numbers";
    const LIST_MAX: usize = 10_000;
    fn parse(value: &Value) -> Option<Self> {
        value.as_f64().filter(|x| x.is_finite())
    }
    fn print(&self) -> String {
        self.to_string()
    }
}

impl OptionType for usize {
    const KIND: &'static str = "whole number";
    const LIST: &'static str = "list of whole numbers";
    const LIST_MAX: usize = 64;
    fn parse(value: &Value) -> Option<Self> {
        whole(value)
    }
    fn print(&self) -> String {
        self.to_string()
    }
}

impl OptionType for bool {
    const KIND: &'static str = "boolean";
    fn parse(value: &Value) -> Option<Self> {
        value.as_bool()
    }
    fn print(&self) -> String {
        self.to_string()
    }
}

impl OptionType for String {
    const KIND: &'static str = "text";
    const LIST: &'static str = "list of text";
    fn parse(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
    fn print(&self) -> String {
        format!("'{self}'")
    }
}

/// An option that is off until it is set.
impl<T: OptionType> OptionType for Option<T> {
    const KIND: &'static str = T::KIND;
    fn allowed() -> String {
        T::allowed()
    }
    fn parse(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::parse(value).map(Some) }
    }
    fn print(&self) -> String {
        self.as_ref().map_or("NULL".into(), T::print)
    }
}

/// A list; one value alone may be written without the brackets.
impl<T: OptionType> OptionType for Vec<T> {
    const KIND: &'static str = T::LIST;
    fn allowed() -> String {
        if T::allowed().is_empty() { String::new() } else { format!("a list of {}", T::allowed()) }
    }
    fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Array(items) if items.len() > T::LIST_MAX => None,
            Value::Array(items) => items.iter().map(T::parse).collect(),
            one => T::parse(one).map(|one| vec![one]),
        }
    }
    fn print(&self) -> String {
        format!("[{}]", self.iter().map(T::print).collect::<Vec<_>>().join(", "))
    }
}

/// How many features to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Ten, or as many as there are.
    Default,
    Exactly(usize),
    /// As many as a criterion asks for: the selector's own, or with folds the best on rows held out.
    Auto,
    /// The fewest that are within a standard error of the best on rows held out.
    OneSe,
}

impl OptionType for Count {
    const KIND: &'static str = "whole number, 'auto' or 'one_se'";
    fn allowed() -> String {
        "a whole number, 'auto' or 'one_se'".into()
    }
    fn parse(value: &Value) -> Option<Self> {
        match value.as_str() {
            Some(text) if text.eq_ignore_ascii_case("auto") => Some(Count::Auto),
            Some(text) => text.eq_ignore_ascii_case("one_se").then_some(Count::OneSe),
            None => whole(value).map(Count::Exactly),
        }
    }
    fn print(&self) -> String {
        match self {
            Count::Default => "10".into(),
            Count::Exactly(k) => k.to_string(),
            Count::Auto => "'auto'".into(),
            Count::OneSe => "'one_se'".into(),
        }
    }
}

/// A number of bytes: a number, or text such as `'512MB'`, `'2 GiB'`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl OptionType for Bytes {
    const KIND: &'static str = "size";
    fn allowed() -> String {
        "a size such as '512MB' or '2GB'".into()
    }
    fn parse(value: &Value) -> Option<Self> {
        let Some(text) = value.as_str() else { return whole(value).filter(|bytes| (1..1 << 60).contains(bytes)).map(Bytes) };
        let text = text.trim().to_lowercase();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let factor = match text[digits..].trim() {
            "" | "b" => 1.0,
            "kb" | "k" | "kib" => 1024.0,
            "mb" | "m" | "mib" => 1024.0 * 1024.0,
            "gb" | "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        let bytes = text[..digits].parse::<f64>().ok()? * factor;
        (1.0..1e18).contains(&bytes).then_some(Bytes(bytes as usize))
    }
    fn print(&self) -> String {
        self.0.to_string()
    }
}

/// Options of another function: a map, or a JSON text.
impl OptionType for Settings {
    const KIND: &'static str = "options";
    fn allowed() -> String {
        "options such as MAP {'tolerance': 0.1}".into()
    }
    fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Object(settings) => Some(settings.clone()),
            Value::String(text) => super::json::parse(text).ok(),
            _ => None,
        }
    }
    fn print(&self) -> String {
        Value::Object(self.clone()).to_string()
    }
}

/// `20`, and `20.0` because JSON and SQL arithmetic make such numbers.
fn whole(value: &Value) -> Option<usize> {
    let float = || value.as_f64().filter(|x| *x >= 0.0 && x.fract() == 0.0 && *x < 1e15).map(|x| x as u64);
    value.as_u64().or_else(float).map(|x| x as usize)
}

/// The accepted words in a message: `'a', 'b' or 'c'`.
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("'{only}'"),
        [first @ .., last] => {
            format!("{} or '{last}'", first.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Names that an option gave but the table does not have.
pub fn unknown_names(option: &str, missing: &str, known: &[String]) -> Error {
    let (hint, list, missing) = (did_you_mean(missing, known), name_list_near(missing, known), shown(missing));
    Error::call(format!("`{option}` names `{missing}`, which is not a feature{hint} features are {list}"))
}

/// Doc lines joined into one paragraph.
pub fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_string()
}

/// Declares a struct of options: documentation, type, default and limit of each, written once. `..name: Type;` takes in the
/// options of another such struct.
#[macro_export]
macro_rules! options {
    (
        $(#[doc = $struct_doc:expr])*
        $vis:vis struct $Name:ident {
            $( $(#[doc = $doc:expr])* $field:ident : $ty:ty = $default:expr $(, $check:expr)? ; )*
            $( .. $shared:ident : $shared_ty:ty ; )*
        }
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Debug, Clone)]
        $vis struct $Name { $( $(#[doc = $doc])* pub $field: $ty, )* $( pub $shared: $shared_ty, )* }

        impl Default for $Name {
            fn default() -> Self {
                Self { $( $field: $default, )* $( $shared: Default::default(), )* }
            }
        }

        impl $crate::Options for $Name {
            fn specs() -> Vec<$crate::OptionSpec> {
                #[allow(unused_mut)]
                let mut specs = vec![ $( {
                    let default: $ty = $default;
                    #[allow(unused_mut, unused_assignments)]
                    let mut allowed = <$ty as $crate::OptionType>::allowed();
                    $( allowed = ($check as $crate::Check).to_string(); )?
                    $crate::OptionSpec {
                        name: stringify!($field),
                        kind: <$ty as $crate::OptionType>::KIND,
                        table: <$ty as $crate::OptionType>::TABLE,
                        default: $crate::OptionType::print(&default),
                        allowed,
                        description: $crate::options::paragraph(&[$($doc),*]),
                    }
                }, )* ];
                $( specs.extend(<$shared_ty as $crate::Options>::specs()); )*
                specs
            }

            #[allow(unused_variables)]
            fn set(&mut self, name: &str, value: &$crate::Value) -> Option<$crate::Result<()>> {
                match name {
                    $( stringify!($field) => {
                        #[allow(unused_mut, unused_assignments)]
                        let mut check: Option<$crate::Check> = None;
                        $( check = Some($check); )?
                        Some($crate::options::parse_checked(name, value, check).map(|parsed| self.$field = parsed))
                    } )*
                    _ => {
                        $( if let Some(result) = $crate::Options::set(&mut self.$shared, name, value) {
                            return Some(result);
                        } )*
                        None
                    }
                }
            }
        }
    };
}

/// Declares an option that is one of a few words.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident { $( $(#[$variant_meta:meta])* $Variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, $crate::serde::Serialize, $crate::serde::Deserialize)]
        #[serde(crate = "pursuit_udfs::serde")]
        $vis enum $Name { $( $(#[$variant_meta])* #[serde(rename = $word)] $Variant, )+ }

        impl $crate::OptionType for $Name {
            const KIND: &'static str = "text";
            const LIST: &'static str = "list of text";
            fn allowed() -> String {
                $crate::options::one_of(&[$($word),+])
            }
            fn parse(value: &$crate::Value) -> Option<Self> {
                let word = value.as_str()?.to_lowercase();
                match word.as_str() {
                    $( $word => Some($Name::$Variant), )+
                    _ => None,
                }
            }
            fn print(&self) -> String {
                match self {
                    $( $Name::$Variant => concat!("'", $word, "'").to_string(), )+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests;
