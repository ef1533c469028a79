//! Errors as a client gets them: one line, and a SQLSTATE that says what kind of mistake it is.

use std::fmt;

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

/// What went wrong, for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

impl Failure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the statement was stopped, by whoever.
    pub fn is_stop(&self) -> bool {
        matches!(self.code, CANCELLED | SHUTTING_DOWN)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for DataFusionError {
    fn from(failure: Failure) -> Self {
        DataFusionError::External(Box::new(failure))
    }
}

pub const SYNTAX: &str = "42601";
pub const NO_TABLE: &str = "42P01";
pub const NO_FUNCTION: &str = "42883";
pub const NOT_ALLOWED: &str = "42501";
pub const READ_ONLY: &str = "25006";
pub const CANCELLED: &str = "57014";
pub const SHUTTING_DOWN: &str = "57P01";
pub const NO_MEMORY: &str = "53200";
pub const LIMIT: &str = "53400";
pub const TOO_MANY_CONNECTIONS: &str = "53300";
pub const NOT_SUPPORTED: &str = "0A000";
pub const BAD_ARGUMENT: &str = "22023";
const NO_COLUMN: &str = "42703";
const AMBIGUOUS_COLUMN: &str = "42702";
const TABLE_EXISTS: &str = "42P07";
const NO_SCHEMA: &str = "3F000";
const INVALID: &str = "42000";
const DATA: &str = "22000";
const DIVISION_BY_ZERO: &str = "22012";
const OUT_OF_RANGE: &str = "22003";
const BAD_TEXT: &str = "22P02";
const IO: &str = "58030";
const INTERNAL: &str = "XX000";

impl From<&DataFusionError> for Failure {
    fn from(error: &DataFusionError) -> Self {
        let root = error.find_root();
        if let DataFusionError::External(inner) = root
            && let Some(failure) = inner.downcast_ref::<Failure>()
        {
            return failure.clone();
        }
        Failure::new(code(root), message(root))
    }
}

/// The message without DataFusion's words for whose error it is: the code tells.
fn message(error: &DataFusionError) -> String {
    let text = match error {
        DataFusionError::Plan(text) | DataFusionError::Execution(text) | DataFusionError::ResourcesExhausted(text) => {
            text.clone()
        }
        DataFusionError::SQL(error, _) => error.to_string().replacen("sql parser error: ", "", 1),
        other => other.strip_backtrace(),
    };
    text.lines().next().unwrap_or_default().to_string()
}

fn code(error: &DataFusionError) -> &'static str {
    match error {
        DataFusionError::SQL(..) => SYNTAX,
        DataFusionError::Plan(message) => plan_code(message),
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { .. } => NO_COLUMN,
            SchemaError::AmbiguousReference { .. } => AMBIGUOUS_COLUMN,
            _ => INVALID,
        },
        DataFusionError::NotImplemented(_) => NOT_SUPPORTED,
        DataFusionError::ResourcesExhausted(_) => NO_MEMORY,
        DataFusionError::Execution(message) => execution_code(message),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::DivideByZero => DIVISION_BY_ZERO,
            ArrowError::ArithmeticOverflow(_) => OUT_OF_RANGE,
            ArrowError::CastError(_) | ArrowError::ParseError(_) => BAD_TEXT,
            _ => DATA,
        },
        DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) | DataFusionError::ParquetError(_) => IO,
        _ => INTERNAL,
    }
}

/// DataFusion has one kind of error for all that planning finds; what it is stands in the message alone.
fn plan_code(message: &str) -> &'static str {
    let has = |part: &str| message.contains(part);
    if has("no table or view named") || (has("able '") && has("not found") && !has("function")) {
        NO_TABLE
    } else if has("nvalid function") || has("function") && (has("not found") || has("No function matches")) {
        NO_FUNCTION
    } else if has("failed to resolve schema") || has("failed to resolve catalog") {
        NO_SCHEMA
    } else if is_ours(message) {
        BAD_ARGUMENT
    } else {
        INVALID
    }
}

fn execution_code(message: &str) -> &'static str {
    if message.contains("already exists") {
        TABLE_EXISTS
    } else if message.contains("doesn't exist") || message.contains("does not exist") {
        NO_TABLE
    } else if message.contains("internal error") {
        INTERNAL
    } else {
        DATA
    }
}

/// Errors of our functions begin with the function's name and a colon.
fn is_ours(message: &str) -> bool {
    message.split_once(": ").is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_has_a_code_that_fits() {
        let plan = |text: &str| Failure::from(&DataFusionError::Plan(text.into())).code;
        assert_eq!(plan("table 'datafusion.public.x' not found"), NO_TABLE);
        assert_eq!(plan("omp: no table or view named `x`; tables are a, b"), NO_TABLE);
        assert_eq!(plan("omp: `k` must be at least 1, got 0"), BAD_ARGUMENT);
        assert_eq!(plan("Invalid function 'foo'."), NO_FUNCTION);
        assert_eq!(plan("table function 'foo' not found"), NO_FUNCTION);
        let memory = DataFusionError::ResourcesExhausted("omp: needs 3 GB".into());
        assert_eq!(Failure::from(&memory).code, NO_MEMORY);
        let ours: DataFusionError = Failure::new(READ_ONLY, "no").hint("start it with --writable").into();
        let wrapped = DataFusionError::Context("while".into(), Box::new(ours));
        assert_eq!(Failure::from(&wrapped).to_string(), "no; start it with --writable");
        assert_eq!(Failure::from(&DataFusionError::Internal("x".into())).code, INTERNAL);
    }
}
