//! One bit for each row.

/// Which rows have a property. No memory is used while none has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags(Vec<u64>);

impl Flags {
    /// The flags of rows in order.
    pub fn of(flags: impl ExactSizeIterator<Item = bool>) -> Self {
        let mut words = vec![0u64; flags.len().div_ceil(64)];
        flags.enumerate().filter(|(_, flag)| *flag).for_each(|(row, _)| words[row / 64] |= 1 << (row % 64));
        Self(if words.iter().all(|word| *word == 0) { Vec::new() } else { words })
    }

    /// Whether the row has it.
    pub fn get(&self, row: usize) -> bool {
        self.0.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Whether any row has it.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The flags of some rows.
    pub fn take(&self, rows: impl ExactSizeIterator<Item = usize>) -> Self {
        if self.any() { Self::of(rows.map(|row| self.get(row))) } else { Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_kept_and_taken() {
        let flags = Flags::of((0..130).map(|row| row % 65 == 64));
        assert!(flags.get(64) && flags.get(129) && !flags.get(63) && !flags.get(10_000));
        assert_eq!(flags.take([1, 64, 129].into_iter()), Flags::of([false, true, true].into_iter()));
        assert!(!flags.take([0, 1].into_iter()).any() && !Flags::of([false; 70].into_iter()).any());
    }
}
