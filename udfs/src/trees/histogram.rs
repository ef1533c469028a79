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

/// The sums of a feature's bins, and those of the node.
pub(crate) struct Histogram<'a, T> {
    pub target: &'a T,
    pub sums: &'a [i64],
    pub node: &'a [i64],
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
        bins: Histogram<'_, T>,
        binned: &Binned,
        least: f64,
        cutting: &mut Cutting<'_>,
    ) -> Option<Split> {
        if self.is_constant() {
            return None;
        }
        let occupied = std::mem::take(&mut self.occupied);
        let split = match cutting {
            Cutting::Random(random) => self.random(bins, &occupied, binned, least, random),
            Cutting::Best if binned.is_ordered => self.ordered(bins, &occupied, binned, least),
            Cutting::Best => self.levels(bins, &occupied, least),
        };
        self.occupied = occupied;
        split
    }

    /// Numbers: a cut between two values, and NULL on either side.
    fn ordered<T: Target>(&mut self, bins: Histogram<'_, T>, occupied: &[u8], binned: &Binned, least: f64) -> Option<Split> {
        let (values, null) = parted(occupied, binned);
        let mut best = self.scan(bins, values, null, false, true, least);
        if null.is_some() {
            let least = best.as_ref().map_or(least, |cut| cut.gain);
            best = self.scan(bins, values, null, true, true, least).or(best);
        }
        let cut = best?;
        let mut codes = values[..cut.after].to_vec();
        let last = codes[cut.after - 1];
        // Half-way to the next value of the node.
        let border = values.get(cut.after).map_or(binned.null() - 1, |next| last + (next - last - 1) / 2);
        codes.extend(null.filter(|_| cut.null_left));
        Some(bins.split(occupied, &codes, cut.gain).at_border(border, binned.null()))
    }

    /// Levels in the order of their mean label, as if they were numbers. For a mean this order holds the best of all ways to part the levels
    /// (Fisher 1958); with many classes it is tried for the share of each of the heaviest.
    fn levels<T: Target>(&mut self, bins: Histogram<'_, T>, occupied: &[u8], least: f64) -> Option<Split> {
        let mut best: Option<Split> = None;
        for order in bins.target.orders(bins.node) {
            self.placed.clear();
            self.placed.extend(occupied.iter().map(|code| (bins.target.place(bins.bin(*code), order), *code)));
            self.placed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let codes: Vec<u8> = self.placed.iter().map(|(_, code)| *code).collect();
            let least = best.as_ref().map_or(least, |split| split.gain);
            if let Some(cut) = self.scan(bins, &codes, None, false, false, least) {
                best = Some(bins.split(occupied, &codes[..cut.after], cut.gain));
            }
        }
        best
    }

    /// A cut anywhere: numbers between the node's least and greatest border, levels and NULL by a coin each.
    fn random<T: Target>(
        &mut self,
        bins: Histogram<'_, T>,
        occupied: &[u8],
        binned: &Binned,
        least: f64,
        random: &mut Random,
    ) -> Option<Split> {
        let (values, null) = parted(occupied, binned);
        let mut left: Vec<u8> = Vec::with_capacity(occupied.len());
        let mut border = None;
        if binned.is_ordered && values.len() > 1 {
            let (low, high) = (usize::from(values[0]), usize::from(values[values.len() - 1]));
            let last = (low + anywhere(&binned.borders()[low..high], random)) as u8;
            left.extend(values.iter().filter(|code| **code <= last));
            left.extend(null.filter(|_| random.below(2) == 0));
            border = Some(last);
        } else {
            left.extend(occupied.iter().filter(|_| random.below(2) == 0));
            match left.len() {
                0 => left.push(occupied[random.below(occupied.len())]),
                all if all == occupied.len() => drop(left.remove(random.below(all))),
                _ => {}
            }
        }
        self.left.fill(0);
        left.iter().for_each(|code| add(&mut self.left, bins.bin(*code)));
        subtract(&mut self.right, bins.node, &self.left);
        let gain = bins.target.gain(&self.left, &self.right, binned.is_ordered).filter(|gain| *gain > least)?;
        let split = bins.split(occupied, &left, gain);
        Some(if let Some(border) = border { split.at_border(border, binned.null()) } else { split })
    }

    /// The best cut after some of the codes in order.
    fn scan<T: Target>(
        &mut self,
        bins: Histogram<'_, T>,
        codes: &[u8],
        null: Option<u8>,
        null_left: bool,
        is_ordered: bool,
        least: f64,
    ) -> Option<Cut> {
        self.left.fill(0);
        if let Some(null) = null.filter(|_| null_left) {
            add(&mut self.left, bins.bin(null));
        }
        // With NULL on the right all values may stand on the left.
        let cuts = if null.is_some() && !null_left { codes.len() } else { codes.len().saturating_sub(1) };
        let mut best: Option<Cut> = None;
        let mut most = least;
        for (at, code) in codes[..cuts].iter().enumerate() {
            add(&mut self.left, bins.bin(*code));
            subtract(&mut self.right, bins.node, &self.left);
            if let Some(gain) = bins.target.gain(&self.left, &self.right, is_ordered)
                && gain > most
            {
                most = gain;
                best = Some(Cut { gain, after: at + 1, null_left });
            }
        }
        best
    }
}

impl<T: Target> Histogram<'_, T> {
    #[inline]
    fn bin(&self, code: u8) -> &[i64] {
        let width = self.node.len();
        &self.sums[usize::from(code) * width..][..width]
    }

    /// A split that sends these of the occupied codes left, and codes that the node has no rows of where most go.
    fn split(&self, occupied: &[u8], codes: &[u8], gain: f64) -> Split {
        let mut sums = vec![0; self.node.len()];
        codes.iter().for_each(|code| add(&mut sums, self.bin(*code)));
        let is_heavy = 2 * self.target.weight(&sums) >= self.target.weight(self.node);
        let mut left = if is_heavy { [u64::MAX; CODES / 64] } else { Side::default() };
        occupied.iter().for_each(|code| left[usize::from(code >> 6)] &= !(1 << (code & 63)));
        codes.iter().for_each(|code| set(&mut left, *code));
        Split { gain, left, sums }
    }
}

impl<T> Clone for Histogram<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Histogram<'_, T> {}

impl Split {
    /// The same with all values up to a border on the left, whether the node has rows of them or not.
    fn at_border(mut self, border: u8, null: u8) -> Self {
        let null_left = is_left(&self.left, null);
        self.left = up_to(border);
        if null_left {
            set(&mut self.left, null);
        }
        self
    }
}

/// The codes of values, and that of NULL if it is among them.
fn parted<'a>(occupied: &'a [u8], binned: &Binned) -> (&'a [u8], Option<u8>) {
    match occupied.split_last() {
        Some((last, values)) if *last == binned.null() => (values, Some(*last)),
        _ => (occupied, None),
    }
}

/// The border nearest to a place drawn between the first and the last.
fn anywhere(borders: &[f64], random: &mut Random) -> usize {
    let last = borders.len() - 1;
    let at = borders[0] + random.uniform() * (borders[last] - borders[0]);
    let above = borders.partition_point(|border| *border < at).min(last);
    if above > 0 && at - borders[above - 1] < borders[above] - at { above - 1 } else { above }
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
