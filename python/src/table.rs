//! A table in memory: read from whatever gives an Arrow stream, made of columns, and a stream itself. Numbers are never copied.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

use crate::columns::array;
use crate::errors::{caught, of_stream};
use crate::values::python_values;

/// Rows that are handed to a thread at once, as many as DataFusion has in a batch.
const BATCH: usize = 8192;

#[pyclass(frozen, module = "pursuit._engine")]
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// Reads a stream to its end.
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = source.call_method0("__arrow_c_stream__")?;
        let capsule =
            capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__arrow_c_stream__ must return a capsule"))?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: a capsule of this name holds a stream. Taking it leaves a released one behind, which the capsule knows not to release again.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
        py.detach(|| caught(|| read(stream)))
    }

    /// A table of columns: arrays of numbers or flags that have a buffer, and lists of texts.
    #[staticmethod]
    fn of_columns(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let arrays = columns.iter().map(|(name, values)| array(name, values)).collect::<PyResult<Vec<_>>>()?;
        let Some(first) = arrays.first() else { return Ok(Self::empty()) };
        if let Some(odd) = arrays.iter().position(|other| other.len() != first.len()) {
            let (rows, other) = (first.len(), arrays[odd].len());
            return Err(PyValueError::new_err(format!(
                "`{}` has {rows} rows and `{}` has {other}",
                columns[0].0, columns[odd].0
            )));
        }
        let fields: Vec<Field> = columns.iter().zip(&arrays).map(|((name, _), array)| field(name, array)).collect();
        let schema = Arc::new(Schema::new(fields));
        check_names(&schema)?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(|error| of_stream(&error))?;
        Ok(Self { schema, batches: vec![batch] })
    }

    /// This table with one column more.
    fn with_column(&self, name: &str, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let column = array(name, values)?;
        let rows = self.__len__();
        if column.len() != rows {
            return Err(PyValueError::new_err(format!("the table has {rows} rows and `{name}` has {}", column.len())));
        }
        let fields: Vec<_> = self.schema.fields().iter().cloned().chain([Arc::new(field(name, &column))]).collect();
        let schema = Arc::new(Schema::new(fields));
        check_names(&schema)?;
        let mut start = 0;
        let batches = self.batches.iter().map(|batch| {
            let columns = batch.columns().iter().cloned().chain([column.slice(start, batch.num_rows())]).collect();
            start += batch.num_rows();
            RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| of_stream(&error))
        });
        let batches = batches.collect::<PyResult<_>>()?;
        Ok(Self { schema, batches })
    }

    /// How it is pickled: as a stream of Arrow's own format.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let mut bytes = Vec::new();
        let write = |bytes: &mut Vec<u8>| -> Result<(), ArrowError> {
            let mut writer = StreamWriter::try_new(bytes, &self.schema)?;
            self.batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.finish()
        };
        write(&mut bytes).map_err(|error| of_stream(&error))?;
        Ok((py.get_type::<Self>().getattr("of_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    #[staticmethod]
    fn of_bytes(bytes: &[u8]) -> PyResult<Self> {
        let reader = StreamReader::try_new(bytes, None).map_err(|error| of_stream(&error))?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<_, _>>().map_err(|error| of_stream(&error))?;
        Ok(Self { schema, batches })
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The type of each column, in Arrow's words.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The values of each column as Python has them.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyList>>> {
        (0..self.schema.fields().len())
            .map(|at| {
                let values = PyList::empty(py);
                self.batches.iter().try_for_each(|batch| python_values(py, batch.column(at), &values))?;
                Ok(values)
            })
            .collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // What is asked for is a wish, and the receiver can cast.
        let _ = requested_schema;
        let reader = RecordBatchIterator::new(self.batches.clone().into_iter().map(Ok), Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| of_stream(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

impl Table {
    pub fn empty() -> Self {
        Self { schema: Arc::new(Schema::empty()), batches: vec![] }
    }

    /// The rows in so many parts, cut but not copied. A small table stays as it is, because there is nothing to share out.
    pub fn partitions(&self, parts: usize) -> Vec<Vec<RecordBatch>> {
        if self.__len__() <= BATCH || parts < 2 {
            return vec![self.batches.clone()];
        }
        let cut = self.batches.iter().flat_map(|batch| {
            (0..batch.num_rows()).step_by(BATCH).map(|start| batch.slice(start, BATCH.min(batch.num_rows() - start)))
        });
        let cut: Vec<RecordBatch> = cut.collect();
        cut.chunks(cut.len().div_ceil(parts)).map(<[_]>::to_vec).collect()
    }
}

fn read(stream: FFI_ArrowArrayStream) -> PyResult<Table> {
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(|error| of_stream(&error))?;
    let schema = arrow::array::RecordBatchReader::schema(&reader);
    check_names(&schema)?;
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| of_stream(&error))?;
    Ok(Table { schema, batches })
}

fn field(name: &str, array: &ArrayRef) -> Field {
    Field::new(name, array.data_type().clone(), array.null_count() > 0 || matches!(array.data_type(), DataType::Utf8))
}

fn check_names(schema: &Schema) -> PyResult<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name())) {
        Some(twice) => Err(PyValueError::new_err(format!("two columns are named `{}`; rename one", twice.name()))),
        None => Ok(()),
    }
}
