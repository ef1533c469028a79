//! Values as a reader hands them over: a run of rows of one column.

/// Values of one column for a run of rows.
#[derive(Clone, Copy)]
pub enum Block<'a> {
    Numbers(&'a dyn Numbers),
    /// `codes[row]` points into `names`; [`NO_LEVEL`] is NULL.
    Levels {
        codes: &'a [u32],
        names: &'a [&'a str],
    },
}

/// The code of a NULL among levels.
pub const NO_LEVEL: u32 = u32::MAX;

/// Whether a number is a value. NaN and infinity are not, and neither are numbers so large that their squares would be.
pub(crate) fn is_value(x: f64) -> bool {
    x.abs() <= 1e100
}

/// Whether it is a number, and no value because it is too large.
pub(crate) fn is_out_of_range(x: f64) -> bool {
    x.is_finite() && !is_value(x)
}

/// A column of numbers that can be copied out piece by piece. NULL, NaN and ±infinity are all "no value".
pub trait Numbers: Sync {
    /// Writes the values of rows `start..start + out.len()`; NaN where there is none.
    fn fill(&self, start: usize, out: &mut [f64]);

    /// All of them without copying, if that is how they are kept.
    fn as_slice(&self) -> Option<&[f64]> {
        None
    }
}

impl Numbers for Vec<f64> {
    fn as_slice(&self) -> Option<&[f64]> {
        Some(self)
    }

    fn fill(&self, start: usize, out: &mut [f64]) {
        out.copy_from_slice(&self[start..start + out.len()]);
    }
}
