//! Values that begin where a line of the cache begins.
//!
//! A register of eight values that lies across two lines takes two reads. The products of a network read several for every multiplication, and
//! what an ordinary vector is given begins in the middle of a line as a rule.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ops::{Deref, DerefMut};

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Values in a line.
pub(crate) const LINE: usize = 16;

/// A vector of f32.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
    length: usize,
}

impl Aligned {
    /// Memory that is fresh from the system is zero, and is not touched here: whoever writes to it first has its pages made, and that are as a rule
    /// several threads.
    pub(crate) fn zeros(length: usize) -> Self {
        let count = length.div_ceil(LINE);
        if count == 0 {
            return Self::default();
        }
        let layout = Layout::array::<Line>(count).expect("more values than there are addresses");
        // SAFETY: the layout is that of a vector of so many lines, and zeros are values of f32.
        let lines = unsafe {
            let start = alloc_zeroed(layout).cast::<Line>();
            if start.is_null() {
                handle_alloc_error(layout);
            }
            Vec::from_raw_parts(start, count, count)
        };
        Self { lines, length }
    }

    /// As many values as are asked for; what they are is not said.
    pub(crate) fn fit(&mut self, length: usize) {
        self.lines.resize(length.div_ceil(LINE), Line([0.0; LINE]));
        self.length = length;
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: lines are arrays of f32 without gaps, and there are enough of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

impl FromIterator<f32> for Aligned {
    fn from_iter<I: IntoIterator<Item = f32>>(values: I) -> Self {
        Vec::from_iter(values).into()
    }
}

impl From<Vec<f32>> for Aligned {
    fn from(values: Vec<f32>) -> Self {
        let mut aligned = Self::zeros(values.len());
        aligned.copy_from_slice(&values);
        aligned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_with_a_line_and_has_the_length_asked_for() {
        for length in [0, 1, 15, 16, 17, 200] {
            let mut values: Aligned = (0..length).map(|at| at as f32).collect();
            assert!(values.as_ptr().addr().is_multiple_of(64));
            assert!(values.len() == length && values.iter().enumerate().all(|(at, value)| *value == at as f32));
            values.fit(length + 20);
            assert_eq!(values.len(), length + 20);
            assert_eq!(values[..length], Aligned::from_iter((0..length).map(|at| at as f32))[..]);
        }
    }
}
