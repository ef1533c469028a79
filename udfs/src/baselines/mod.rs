pub mod batch_attention;
pub mod correlation;
pub mod group_lasso;
pub mod lasso;
pub mod random_forest;
