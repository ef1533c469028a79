//! Sums by bin, and the best place to cut them.

use crate::trees::target::{Item, Target};
use crate::{Binned, Random};

/// Codes that a byte can have.
pub(crate) const CODES: usize = 256;

/// The codes of a feature that go left.
pub(crate) type Side = [u64; CODES / 64];

/// Whether a code goes left.
pub(crate) fn is_left(side: &Side, code: u8) -> bool {
    side[usize::from(code >> 6)] >> (code & 63) & 1 == 1
}

/// A split of a node by one feature.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    pub gain: f64,
    pub left: Side,
    /// The sums of the rows that go left.
    pub sums: Vec<i64>,
}

/// Where to cut.
pub(crate) enum Cutting<'a> {
    /// Where it gains most.
    Best,
    /// Anywhere.
    Random(&'a mut Random),
}

/// Looks for splits; its memory is used again from feature to feature.
pub(crate) struct Finder {
    width: usize,
    /// The codes with rows, in order.
    occupied: Vec<u8>,
    left: Vec<i64>,
    right: Vec<i64>,
    placed: Vec<(f64, u8)>,
}

/// The best cut so far: after so many of the codes in order, with NULL on the left or not.
struct Cut {
    gain: f64,
    after: usize,
    null_left: bool,
}

impl Finder {
    pub fn new(target: &impl Target) -> Self {
        let width = target.width();
        Self { width, occupied: Vec::new(), left: vec![0; width], right: vec![0; width], placed: Vec::new() }
    }

    /// Notes which bins have rows: all that are not empty.
    pub fn note_all(&mut self, target: &impl Target, sums: &[i64]) {
        self.occupied.clear();
        let bins = sums.chunks(self.width).enumerate();
        self.occupied.extend(bins.filter(|(_, sums)| !target.is_empty(sums)).map(|(code, _)| code as u8));
    }

    /// Notes which bins have rows, given a bit for each.
    pub fn note(&mut self, side: &Side) {
        self.occupied.clear();
        for (word, mut bits) in side.iter().copied().enumerate() {
            while bits != 0 {
                self.occupied.push((64 * word) as u8 + bits.trailing_zeros() as u8);
                bits &= bits - 1;
            }
        }
    }

    /// Whether all rows are in one bin.
    pub fn is_constant(&self) -> bool {
        self.occupied.len() < 2
    }

    pub fn occupied(&self) -> &[u8] {
        &self.occupied
    }

    /// The best split of the noted bins that gains more than `least`.
    pub fn split<T: Target>(
        &mut self,
        target: &T,
        sums: &[i64],
        node: &[i64],
        binned: &Binned,
        least: f64,
        cutting: &mut Cutting<'_>,
    ) -> Option<Split> {
        if self.is_constant() {
            return None;
        }
        match cutting {
            Cutting::Random(random) => self.random(target, sums, node, binned, least, random),
            Cutting::Best if binned.is_ordered => self.ordered(target, sums, node, binned, least),
            Cutting::Best => self.levels(target, sums, node, least),
        }
    }

    /// Numbers: a cut between two values, and NULL on either side.
    fn ordered<T: Target>(&mut self, target: &T, sums: &[i64], node: &[i64], binned: &Binned, least: f64) -> Option<Split> {
        let mut occupied = std::mem::take(&mut self.occupied);
        let null = occupied.pop_if(|code| *code == binned.null());
        let mut best = self.scan(target, sums, node, &occupied, null, true, least, false);
        if null.is_some() {
            let least = best.as_ref().map_or(least, |cut| cut.gain);
            best = self.scan(target, sums, node, &occupied, null, true, least, true).or(best);
        }
        let split = best.map(|cut| {
            let last = occupied[cut.after - 1];
            // Half-way to the next value of the node.
            let border = occupied.get(cut.after).map_or(binned.null() - 1, |next| last + (next - last - 1) / 2);
            let mut side = up_to(border);
            let mut left = self.sums_of(sums, &occupied[..cut.after]);
            match null {
                Some(null) if cut.null_left => {
                    set(&mut side, null);
                    add(&mut left, bin(sums, self.width, null));
                }
                // Who is unknown goes where most go.
                None if 2 * target.weight(&left) >= target.weight(node) => set(&mut side, binned.null()),
                _ => {}
            }
            Split { gain: cut.gain, left: side, sums: left }
        });
        occupied.extend(null);
        self.occupied = occupied;
        split
    }

    /// Levels in the order of their mean label, as if they were numbers. For a mean this order holds the best of all ways to part the levels
    /// (Fisher 1958); with many classes it is tried for the share of each of the heaviest.
    fn levels<T: Target>(&mut self, target: &T, sums: &[i64], node: &[i64], least: f64) -> Option<Split> {
        let occupied = std::mem::take(&mut self.occupied);
        let mut best: Option<Split> = None;
        for order in target.orders(node) {
            let mut placed = std::mem::take(&mut self.placed);
            placed.clear();
            placed.extend(occupied.iter().map(|code| (target.place(bin(sums, self.width, *code), order), *code)));
            placed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let codes: Vec<u8> = placed.iter().map(|(_, code)| *code).collect();
            self.placed = placed;
            let least = best.as_ref().map_or(least, |split| split.gain);
            if let Some(cut) = self.scan(target, sums, node, &codes, None, false, least, false) {
                best = Some(self.of_codes(target, sums, node, &occupied, &codes[..cut.after], cut.gain));
            }
        }
        self.occupied = occupied;
        best
    }

    /// A cut anywhere: numbers between the node's least and greatest border, levels and NULL by a coin each.
    fn random<T: Target>(
        &mut self,
        target: &T,
        sums: &[i64],
        node: &[i64],
        binned: &Binned,
        least: f64,
        random: &mut Random,
    ) -> Option<Split> {
        let occupied = std::mem::take(&mut self.occupied);
        let values = if occupied.last() == Some(&binned.null()) { occupied.len() - 1 } else { occupied.len() };
        let mut left: Vec<u8> = Vec::new();
        if binned.is_ordered && values > 1 {
            let (low, high) = (usize::from(occupied[0]), usize::from(occupied[values - 1]));
            let border = |at: usize| binned.border(at).unwrap_or(0.0);
            let at = border(low) + random.uniform() * (border(high - 1) - border(low));
            let nearest = (low..high).min_by(|a, b| (border(*a) - at).abs().total_cmp(&(border(*b) - at).abs()));
            left.extend(occupied[..values].iter().filter(|code| usize::from(**code) <= nearest.unwrap_or(low)));
            left.extend(occupied[values..].iter().filter(|_| random.below(2) == 0));
        } else {
            left.extend(occupied.iter().filter(|_| random.below(2) == 0));
            match left.len() {
                0 => left.push(occupied[random.below(occupied.len())]),
                all if all == occupied.len() => drop(left.remove(random.below(all))),
                _ => {}
            }
        }
        self.left = self.sums_of(sums, &left);
        subtract(&mut self.right, node, &self.left);
        let gain = target.gain(&self.left, &self.right, binned.is_ordered).filter(|gain| *gain > least);
        let split = gain.map(|gain| self.of_codes(target, sums, node, &occupied, &left, gain));
        self.occupied = occupied;
        split
    }

    /// A split that sends these of the occupied codes left, and codes that the node has no rows of where most go.
    fn of_codes<T: Target>(&self, target: &T, sums: &[i64], node: &[i64], occupied: &[u8], codes: &[u8], gain: f64) -> Split {
        let left = self.sums_of(sums, codes);
        let mut side = if 2 * target.weight(&left) >= target.weight(node) { [u64::MAX; CODES / 64] } else { Side::default() };
        occupied.iter().for_each(|code| side[usize::from(code >> 6)] &= !(1 << (code & 63)));
        codes.iter().for_each(|code| set(&mut side, *code));
        Split { gain, left: side, sums: left }
    }

    /// The best cut after some of the codes in order.
    #[allow(clippy::too_many_arguments)]
    fn scan<T: Target>(
        &mut self,
        target: &T,
        sums: &[i64],
        node: &[i64],
        codes: &[u8],
        null: Option<u8>,
        is_ordered: bool,
        least: f64,
        null_left: bool,
    ) -> Option<Cut> {
        self.left.fill(0);
        if let Some(null) = null.filter(|_| null_left) {
            add(&mut self.left, bin(sums, self.width, null));
        }
        // With NULL on the right all values may stand on the left.
        let cuts = if null.is_some() && !null_left { codes.len() } else { codes.len().saturating_sub(1) };
        let mut best: Option<Cut> = None;
        let mut most = least;
        for (at, code) in codes[..cuts].iter().enumerate() {
            add(&mut self.left, bin(sums, self.width, *code));
            subtract(&mut self.right, node, &self.left);
            if let Some(gain) = target.gain(&self.left, &self.right, is_ordered)
                && gain > most
            {
                most = gain;
                best = Some(Cut { gain, after: at + 1, null_left });
            }
        }
        best
    }

    fn sums_of(&self, sums: &[i64], codes: &[u8]) -> Vec<i64> {
        let mut total = vec![0; self.width];
        codes.iter().for_each(|code| add(&mut total, bin(sums, self.width, *code)));
        total
    }
}

#[inline]
fn bin(sums: &[i64], width: usize, code: u8) -> &[i64] {
    &sums[usize::from(code) * width..][..width]
}

#[inline]
fn add(to: &mut [i64], sums: &[i64]) {
    to.iter_mut().zip(sums).for_each(|(to, sum)| *to += sum);
}

#[inline]
pub(crate) fn subtract(to: &mut [i64], from: &[i64], sums: &[i64]) {
    to.iter_mut().zip(from).zip(sums).for_each(|((to, from), sum)| *to = from - sum);
}

fn set(side: &mut Side, code: u8) {
    side[usize::from(code >> 6)] |= 1 << (code & 63);
}

/// All codes up to one.
fn up_to(last: u8) -> Side {
    let mut side = Side::default();
    (0..=last).for_each(|code| set(&mut side, code));
    side
}

/// Adds rows to the sums of their bins.
pub(crate) fn fill<T: Target>(target: &T, sums: &mut [i64], codes: &[u8], items: &[Item]) {
    let width = target.width();
    for item in items {
        let code = usize::from(codes[item.row as usize]);
        target.add(&mut sums[code * width..(code + 1) * width], item);
    }
}

/// Moves the rows that go left to the front, both sides in their order, and returns how many there are.
pub(crate) fn part(items: &mut [Item], spare: &mut [Item], codes: &[u8], side: &Side) -> usize {
    let mut goes_left = [0usize; CODES];
    goes_left.iter_mut().enumerate().for_each(|(code, left)| *left = usize::from(is_left(side, code as u8)));
    let (mut left, mut right) = (0, 0);
    for at in 0..items.len() {
        let item = items[at];
        // Written to both sides, and counted on one: no branch to guess.
        let goes = goes_left[usize::from(codes[item.row as usize])];
        items[left] = item;
        spare[right] = item;
        left += goes;
        right += 1 - goes;
    }
    items[left..].copy_from_slice(&spare[..right]);
    left
}
