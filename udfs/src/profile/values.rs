//! The values of one column, counted: each of them while they are few, and neighbours together when they are many.

use crate::kernels::double::Double;
use crate::profile::association::Labels;
use crate::profile::distinct::{Distinct, mixed};

/// Counts of numbers by value. With more values than it may keep apart, those are counted together that share all but the last bits, one more with each step, until there is
/// room. So what it ends with depends on the values alone, and not on their order.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    most: usize,
    /// Bits at the end that are not looked at.
    shift: u32,
    keys: Vec<u64>,
    pub cells: Vec<Cell>,
    /// Where the cell of a key is, by the key's hash; [`FREE`]: nowhere.
    slots: Vec<u32>,
}

/// Rows of one value, or of neighbours.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cell {
    pub rows: u64,
    pub labels: Labels,
}

const FREE: u32 = u32::MAX;

impl Counted {
    pub fn new(most: usize) -> Self {
        Self { most, shift: 0, keys: Vec::new(), cells: Vec::new(), slots: Vec::new() }
    }

    /// Whether every value is counted apart.
    pub fn is_exact(&self) -> bool {
        self.shift == 0
    }

    /// The cell of a value, by its key.
    pub fn cell(&mut self, key: u64) -> &mut Cell {
        let mut at = self.find(key >> self.shift);
        while at.is_none() {
            if self.keys.len() < self.most {
                at = Some(self.insert(key >> self.shift));
            } else {
                self.coarsen(self.shift + 1);
                at = self.find(key >> self.shift);
            }
        }
        &mut self.cells[at.unwrap_or_default()]
    }

    fn slot(&self, key: u64) -> usize {
        let mut slot = mixed(key) as usize & (self.slots.len() - 1);
        while self.slots[slot] != FREE && self.keys[self.slots[slot] as usize] != key {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn find(&self, key: u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let at = self.slots[self.slot(key)];
        (at != FREE).then_some(at as usize)
    }

    fn insert(&mut self, key: u64) -> usize {
        if 2 * (self.keys.len() + 1) > self.slots.len() {
            let size = (4 * (self.keys.len() + 1)).next_power_of_two().max(16);
            self.slots = vec![FREE; size];
            for at in 0..self.keys.len() {
                let slot = self.slot(self.keys[at]);
                self.slots[slot] = at as u32;
            }
        }
        let slot = self.slot(key);
        self.slots[slot] = self.keys.len() as u32;
        self.keys.push(key);
        self.cells.push(Cell::default());
        self.keys.len() - 1
    }

    /// Looks at fewer bits.
    fn coarsen(&mut self, shift: u32) {
        let (keys, cells) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.cells));
        let more = shift - self.shift;
        self.slots.fill(FREE);
        self.shift = shift;
        for (key, cell) in keys.into_iter().zip(cells) {
            let key = key >> more;
            let at = self.find(key).unwrap_or_else(|| self.insert(key));
            self.cells[at].rows += cell.rows;
            self.cells[at].labels.add(&cell.labels, |class| class);
        }
    }

    /// Adds what was counted elsewhere; `class` is the place that a class has here.
    pub fn merge(&mut self, other: &Self, class: impl Fn(usize) -> usize + Copy) {
        if other.shift > self.shift {
            self.coarsen(other.shift);
        }
        for (key, cell) in other.keys.iter().zip(&other.cells) {
            let own = self.cell(key << other.shift);
            own.rows += cell.rows;
            own.labels.add(&cell.labels, class);
        }
    }

    /// The cells in the order of their values: the least and the greatest key that each can have.
    pub fn in_order(&self) -> Vec<(u64, u64, &Cell)> {
        let low = |key: u64| key << self.shift;
        let mut cells: Vec<(u64, u64, &Cell)> = self
            .keys
            .iter()
            .zip(&self.cells)
            .map(|(key, cell)| (low(*key), low(*key) | !(u64::MAX << self.shift), cell))
            .collect();
        cells.sort_unstable_by_key(|(low, ..)| *low);
        cells
    }

    pub fn bytes(&self) -> usize {
        let labels: usize = self.cells.iter().map(|cell| cell.labels.bytes()).sum();
        self.cells.capacity() * (size_of::<Cell>() + size_of::<u64>()) + self.slots.len() * size_of::<u32>() + labels
    }
}

/// What is gathered of a column.
#[derive(Debug, Clone)]
pub(crate) struct Gathered {
    pub nulls: Cell,
    pub counted: Counted,
    pub distinct: Distinct,
    /// Sum and sum of squares of numbers.
    pub sum: Double,
    pub square: Double,
    pub least: f64,
    pub greatest: f64,
    /// Whether all numbers are whole.
    pub is_whole: bool,
    /// Equal columns have the same, whatever the order of the rows; others hardly ever.
    pub fingerprint: u64,
}

impl Gathered {
    pub fn new(most: usize) -> Self {
        Self {
            nulls: Cell::default(),
            counted: Counted::new(most),
            distinct: Distinct::default(),
            sum: Double::default(),
            square: Double::default(),
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
            is_whole: true,
            fingerprint: 0,
        }
    }

    pub fn merge(&mut self, other: &Self, class: impl Fn(usize) -> usize + Copy) {
        self.nulls.rows += other.nulls.rows;
        self.nulls.labels.add(&other.nulls.labels, class);
        self.counted.merge(&other.counted, class);
        self.distinct.merge(&other.distinct);
        self.sum += other.sum;
        self.square += other.square;
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.is_whole &= other.is_whole;
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
    }

    pub fn distinct(&self) -> u64 {
        if self.counted.is_exact() { self.counted.cells.len() as u64 } else { self.distinct.estimate() }
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.counted.bytes() + self.distinct.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    /// Any order, and any parts, end in the same cells; as long as there are few values, each has its own.
    #[test]
    fn counts_do_not_depend_on_order() {
        for values in [50usize, 5000] {
            let mut random = Run::new(values as u64).random("values", 0);
            let keys: Vec<u64> = (0..20_000).map(|_| mixed(random.below(values) as u64) >> 8).collect();
            let count = |keys: &mut dyn Iterator<Item = &u64>| {
                let mut counted = Counted::new(64);
                keys.for_each(|key| counted.cell(*key).rows += 1);
                counted
            };
            let forward = count(&mut keys.iter());
            let backward = count(&mut keys.iter().rev());
            let mut merged = count(&mut keys.iter().skip(12_000));
            merged.merge(&count(&mut keys.iter().take(12_000)), |class| class);
            assert_eq!(forward.in_order(), backward.in_order());
            assert_eq!(forward.in_order(), merged.in_order());
            assert_eq!(forward.is_exact(), values == 50);
            assert_eq!(forward.cells.iter().map(|cell| cell.rows).sum::<u64>(), 20_000);
        }
    }
}
