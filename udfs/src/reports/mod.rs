pub mod datum_wise_classify;
pub mod datum_wise_curve;
pub mod datum_wise_policy;
pub mod evaluate;
pub mod knockoffs;
pub mod marginal_gains;
pub mod selection_path;
pub mod stability_selection;
