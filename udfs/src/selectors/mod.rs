pub mod datum_wise;
pub mod neural_greedy_pursuit;
pub mod omp;
pub mod select_features;
pub mod sequential_attention;
pub mod sequential_lasso;
