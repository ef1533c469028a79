//! Columns that come from Python as they are: buffers of numbers, which are borrowed, and lists of texts.

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use pyo3::buffer::{Element, ElementType, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A column that goes by this name.
pub fn array(name: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if let Ok(texts) = values.cast::<PyList>() {
        return texts_of(name, texts);
    }
    let buffer = PyUntypedBuffer::get(values)?;
    match (ElementType::from_format(buffer.format()), buffer.item_size()) {
        (ElementType::Float { .. }, 8) => borrowed::<Float64Type>(name, buffer),
        (ElementType::Float { .. }, 4) => borrowed::<Float32Type>(name, buffer),
        (ElementType::SignedInteger { .. }, 8) => borrowed::<Int64Type>(name, buffer),
        (ElementType::SignedInteger { .. }, 4) => borrowed::<Int32Type>(name, buffer),
        (ElementType::SignedInteger { .. }, 2) => borrowed::<Int16Type>(name, buffer),
        (ElementType::SignedInteger { .. }, 1) => borrowed::<Int8Type>(name, buffer),
        (ElementType::UnsignedInteger { .. }, 8) => borrowed::<UInt64Type>(name, buffer),
        (ElementType::UnsignedInteger { .. }, 4) => borrowed::<UInt32Type>(name, buffer),
        (ElementType::UnsignedInteger { .. }, 2) => borrowed::<UInt16Type>(name, buffer),
        (ElementType::UnsignedInteger { .. }, 1) => borrowed::<UInt8Type>(name, buffer),
        (ElementType::Bool, 1) => Ok(Arc::new(flags(values.py(), &buffer))),
        _ => Err(unreadable(name, "is neither numbers, flags nor texts")),
    }
}

fn unreadable(name: &str, why: &str) -> PyErr {
    PyTypeError::new_err(format!("column `{name}` {why}"))
}

/// The numbers where they are. The array keeps the buffer, and the buffer its owner.
fn borrowed<T: ArrowPrimitiveType>(name: &str, buffer: PyUntypedBuffer) -> PyResult<ArrayRef>
where
    T::Native: Element,
{
    let buffer: PyBuffer<T::Native> = buffer.into_typed()?;
    let Some(slice) = buffer.as_slice_ptr().filter(|_| buffer.dimensions() == 1) else {
        return Err(unreadable(name, "is not one column after the other in memory"));
    };
    if slice.is_empty() {
        return Ok(Arc::new(PrimitiveArray::<T>::from_iter_values([])));
    }
    let (start, bytes, rows): (NonNull<u8>, usize, usize) = (slice.cast(), buffer.len_bytes(), buffer.item_count());
    // SAFETY: the memory is the buffer's, aligned for its elements, and nobody moves or frees it until the buffer is released.
    let memory = unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(AssertUnwindSafe(buffer))) };
    Ok(Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(memory, 0, rows), None)))
}

fn flags(py: Python<'_>, buffer: &PyUntypedBuffer) -> BooleanArray {
    let _ = py;
    // SAFETY: a flag is a byte, and there are as many as the buffer says while it is held.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) };
    bytes.iter().map(|byte| Some(*byte != 0)).collect()
}

fn texts_of(name: &str, texts: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let texts = texts.iter().map(|text| {
        text.extract::<Option<String>>().map_err(|_| {
            let kind = text.get_type().name().map_or_else(|_| "another kind".into(), |kind| kind.to_string());
            unreadable(name, &format!("has texts and a value of type {kind}; make them all texts or all numbers"))
        })
    });
    Ok(Arc::new(texts.collect::<PyResult<StringArray>>()?))
}
