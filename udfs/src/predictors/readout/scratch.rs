//! What one thread works in while it judges candidates.

use crate::kernels::blocked_cholesky::{Aligned, BlockedCholesky};

/// What one thread works in.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    /// The changing strips of a block.
    pub(super) block: Aligned,
    /// For each segment, tile (left, right) at `right (right + 1) / 2 + left`.
    pub(super) products: Vec<Vec<f64>>,
    pub(super) total: Vec<f64>,
    pub(super) matrix: BlockedCholesky,
    pub(super) floor: Vec<f64>,
    /// For each column of the label, what each lane adds to its residual.
    pub(super) coefficients: Vec<Vec<f64>>,
    pub(super) residuals: Vec<f64>,
}
