pub mod datum_wise_classify;
pub mod datum_wise_curve;
pub mod datum_wise_policy;
pub mod evaluate;
pub mod marginal_gains;
