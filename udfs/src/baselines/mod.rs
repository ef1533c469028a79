pub mod correlation;
pub mod lasso;
