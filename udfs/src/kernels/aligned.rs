//! Values that begin where a line of the cache begins.
//!
//! A register of eight values that lies across two lines takes two reads. The products of a network read several for every multiplication, and
//! what an ordinary vector is given begins in the middle of a line as a rule.

use std::ops::{Deref, DerefMut};

/// Values in a line.
pub(crate) const LINE: usize = 16;

/// A vector of f32.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    /// With room for the values wherever the first line begins.
    room: Vec<f32>,
    start: usize,
    length: usize,
}

impl Aligned {
    /// Memory that is fresh from the system is zero, and is not touched here: the threads that fill it also share the work of getting it.
    pub(crate) fn zeros(length: usize) -> Self {
        let room = vec![0.0; length + LINE];
        let start = room.as_ptr().align_offset(LINE * size_of::<f32>());
        Self { room, start, length }
    }

    /// As many values as are asked for; what they are is not said.
    pub(crate) fn fit(&mut self, length: usize) {
        if self.start + length > self.room.len() {
            *self = Self::zeros(length);
        }
        self.length = length;
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.room[self.start..self.start + self.length]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.room[self.start..self.start + self.length]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut clone = Self::zeros(self.length);
        clone.copy_from_slice(self);
        clone
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
            assert_eq!(values.clone()[..], values[..]);
            for other in [length + 20, length, 3] {
                values.fit(other);
                assert!(values.len() == other && values.as_ptr().addr().is_multiple_of(64));
            }
        }
    }
}
