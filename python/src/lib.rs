//! The engine as Python sees it: sessions that answer queries, and tables that are Arrow on both sides of the border. What a Python user
//! calls is in `pursuit/`.

mod columns;
mod errors;
mod session;
mod table;
mod values;

use pyo3::prelude::*;

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<session::Session>()?;
    module.add_class::<table::Table>()
}
