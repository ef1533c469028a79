use datafusion::error::DataFusionError;
use pursuit_udfs::{Error, Kind};

/// The one place where an error of ours becomes DataFusion's, and gets the name of the function in front.
pub(crate) fn named(function: &str, error: Error) -> DataFusionError {
    let message = format!("{function}: {error}");
    match error.kind() {
        Kind::Call => DataFusionError::Plan(message),
        Kind::Data | Kind::Cancelled => DataFusionError::Execution(message),
        Kind::Limit => DataFusionError::ResourcesExhausted(message),
    }
}
