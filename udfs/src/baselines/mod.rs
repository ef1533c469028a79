pub mod batch_attention;
pub mod boosting;
pub mod correlation;
pub mod extra_trees;
pub mod group_lasso;
pub mod lasso;
pub mod random_forest;
