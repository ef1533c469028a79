//! Everything about the selectors that is not a kernel: one binary, one module for each kind of promise.

mod conformance;
mod datum_wise;
mod guarantees;
mod house;
mod levels;
mod moments;
mod one_pass;
mod options;
mod theorems;
