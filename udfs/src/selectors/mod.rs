pub mod datum_wise;
pub mod omp;
pub mod sequential_attention;
pub mod sequential_lasso;
