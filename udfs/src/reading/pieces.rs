//! A column that grows as rows come, piece by piece. A vector that grows is copied, and what it leaves behind is too small for the next: forty columns that
//! grow together would take twice what was asked of the memory pool.

use crate::reading::block::Numbers;

/// Values of the largest piece: 512 KiB of numbers.
const LARGEST: usize = 1 << 16;

#[derive(Debug, Clone)]
pub(crate) struct Pieces<T>(Vec<Vec<T>>);

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<Vec<T>> for Pieces<T> {
    fn from(whole: Vec<T>) -> Self {
        Self(vec![whole])
    }
}

impl<T: Copy + Default> Pieces<T> {
    pub fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// Room for so many more values, in one piece; an eighth too much at most.
    fn room(&mut self, more: usize) -> &mut Vec<T> {
        let has_room = self.0.last().is_some_and(|last| last.capacity() - last.len() >= more);
        if !has_room {
            self.0.push(Vec::with_capacity(more.max((self.len() / 8).min(LARGEST))));
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = T>) {
        self.room(values.len()).extend(values);
    }

    /// The values of another column behind one's own, as they lie.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Puts the pieces together.
    pub fn join(&mut self) {
        if self.0.len() > 1 {
            let mut whole = Vec::with_capacity(self.len());
            self.0.drain(..).for_each(|piece| whole.extend(piece));
            self.0.push(whole);
        }
    }

    /// All values, which must have been joined.
    pub fn values(&self) -> &[T] {
        assert!(self.0.len() <= 1, "pieces are joined before their values are looked at");
        self.0.first().map_or(&[], Vec::as_slice)
    }

    /// All values, joined.
    pub fn into_values(mut self) -> Vec<T> {
        self.join();
        self.0.pop().unwrap_or_default()
    }

    /// Keeps the values of some rows.
    pub fn retain(&mut self, kept: &[usize]) {
        self.join();
        if let Some(values) = self.0.first_mut() {
            *values = kept.iter().map(|row| values[*row]).collect();
        }
    }
}

impl Pieces<f64> {
    /// Adds what a reader hands over.
    pub fn read(&mut self, rows: usize, numbers: &dyn Numbers) {
        let piece = self.room(rows);
        let start = piece.len();
        piece.resize(start + rows, 0.0);
        numbers.fill(0, &mut piece[start..]);
    }
}

/// As [`Pieces::values`].
impl Numbers for Pieces<f64> {
    fn as_slice(&self) -> Option<&[f64]> {
        Some(self.values())
    }

    fn fill(&self, start: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.values()[start..start + out.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_a_column_without_copies_and_with_little_room_too_much() {
        let (mut column, mut whole) = (Pieces::default(), Vec::new());
        for at in 0..2000 {
            let part = (0..1 + at % 100).map(|value| f64::from(at * 1000 + value));
            column.extend(part.clone());
            whole.extend(part);
        }
        let first = column.0[0].as_ptr();
        let room: usize = column.0.iter().map(Vec::capacity).sum();
        assert!(room as f64 <= 1.15 * whole.len() as f64, "{room} for {}", whole.len());
        assert_eq!(column.0[0].as_ptr(), first);
        let mut twice = column.clone();
        twice.append(column.clone());
        assert_eq!(twice.len(), 2 * whole.len());
        column.join();
        assert_eq!(column.values(), whole);
        twice.retain(&[whole.len(), 1]);
        assert_eq!(twice.values(), [whole[0], whole[1]]);
    }
}
