use crate::{Block, Numbers, Problem, Ranking, Result};

/// A selection that goes on while the table is read: every row is seen once and then forgotten.
///
/// The first rows of the table are kept and make the [`Problem`]: they settle columns, classes and scales. They are pushed like all others.
pub trait Pass: Send {
    /// Takes in some rows: label, weights and features as the plan has them.
    fn push(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()>;

    /// The answer, when all rows have been seen.
    fn finish(self: Box<Self>, problem: &Problem) -> Result<Ranking>;
}
