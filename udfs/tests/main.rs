//! Everything about the selectors that is not a kernel: one binary, one module for each kind of promise.

mod conformance;
mod datum_wise;
mod moments;
mod theorems;
