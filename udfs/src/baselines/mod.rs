pub mod correlation;
pub mod lasso;
pub mod random_forest;
