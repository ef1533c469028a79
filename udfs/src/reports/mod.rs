pub mod evaluate;
pub mod marginal_gains;
