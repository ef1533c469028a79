/// What a row earns from each set of known units on, for one policy. A hash table by open addressing: a standard map would
/// take longer to ask than most steps take to compute.
#[derive(Debug)]
pub(crate) struct Memo {
    words: usize,
    /// Entry + 1 of each slot; 0: free.
    slots: Vec<u32>,
    keys: Vec<u64>,
    values: Vec<f64>,
}

impl Memo {
    pub fn new(words: usize) -> Self {
        Self { words, slots: vec![0; 64], keys: Vec::new(), values: Vec::new() }
    }

    pub fn clear(&mut self) {
        if !self.values.is_empty() {
            self.slots.fill(0);
            self.keys.clear();
            self.values.clear();
        }
    }

    /// The value of a set, or the entry that was made for it and waits for [`Self::set`].
    pub fn find(&mut self, key: &[u64]) -> Result<f64, usize> {
        if 2 * (self.values.len() + 1) > self.slots.len() {
            self.grow();
        }
        let mut slot = self.start(key);
        while self.slots[slot] != 0 {
            let entry = self.slots[slot] as usize - 1;
            if &self.keys[entry * self.words..][..self.words] == key {
                return Ok(self.values[entry]);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.keys.extend(key);
        self.values.push(f64::NAN);
        self.slots[slot] = self.values.len() as u32;
        Err(self.values.len() - 1)
    }

    pub fn set(&mut self, entry: usize, value: f64) {
        self.values[entry] = value;
    }

    fn start(&self, key: &[u64]) -> usize {
        let hash = key.iter().fold(0u64, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        self.slots = vec![0; 2 * self.slots.len()];
        for entry in 0..self.values.len() {
            let mut slot = self.start(&self.keys[entry * self.words..][..self.words]);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = entry as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_set_also_after_growing() {
        let mut memo = Memo::new(2);
        for key in 0..1000u64 {
            let entry = memo.find(&[key, key << 40]).unwrap_err();
            memo.set(entry, key as f64);
        }
        assert!((0..1000u64).all(|key| memo.find(&[key, key << 40]) == Ok(key as f64)));
        assert!(memo.find(&[1, 1]).is_err());
        memo.clear();
        assert!(memo.find(&[5, 5 << 40]).is_err());
    }
}
