//! What a call may say: options that parse, check and print themselves, and those that all functions share.

pub(crate) mod common;
pub mod json;
mod option_maps;
pub mod options;
pub(crate) mod repeated;
pub(crate) mod spending;
