//! Errors of the engine as exceptions: the kind says who must act, the text is the engine's one line.

use std::any::Any;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use pyo3::exceptions::{
    PyFileNotFoundError, PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::{PyErr, PyResult};

/// What an error of the engine is in Python.
pub fn exception(error: &DataFusionError) -> PyErr {
    let root = error.find_root();
    let line = line(root);
    match root {
        DataFusionError::Diagnostic(_, inner) => exception(inner),
        DataFusionError::ResourcesExhausted(_) if line.contains("time_limit") => PyTimeoutError::new_err(line),
        DataFusionError::ResourcesExhausted(_) => PyMemoryError::new_err(line),
        DataFusionError::NotImplemented(_) => PyNotImplementedError::new_err(line),
        DataFusionError::IoError(error) if error.kind() == ErrorKind::NotFound => PyFileNotFoundError::new_err(line),
        DataFusionError::ObjectStore(_) if line.contains("not found") => PyFileNotFoundError::new_err(line),
        DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) => PyOSError::new_err(line),
        DataFusionError::Internal(_) => PyRuntimeError::new_err(format!("internal error: {line}; please report it")),
        _ if line.contains("internal error: ") => PyRuntimeError::new_err(line),
        _ => PyValueError::new_err(line),
    }
}

/// What went wrong while a stream was read.
pub fn of_stream(error: &ArrowError) -> PyErr {
    let line = match error {
        ArrowError::CDataInterface(line) | ArrowError::InvalidArgumentError(line) | ArrowError::SchemaError(line) => {
            one_line(line)
        }
        other => one_line(&other.to_string()),
    };
    PyValueError::new_err(format!("the table cannot be read: {line}"))
}

/// A panic, which ends a query and not the process.
pub fn of_panic(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    let line = one_line(&text.unwrap_or_else(|| "panic".into()));
    PyRuntimeError::new_err(format!("internal error: {line}; please report it"))
}

/// Does work that must not panic. If it does, that is an exception like others.
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(of_panic(&*panic)))
}

/// The message without the name of its kind, which the exception has already, and without a backtrace.
fn line(error: &DataFusionError) -> String {
    let text = match error {
        DataFusionError::SQL(error, _) => error.to_string(),
        DataFusionError::ObjectStore(error) => error.to_string(),
        DataFusionError::IoError(error) => error.to_string(),
        other => other.message().to_string(),
    };
    one_line(text.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or_default())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
