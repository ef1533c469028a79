//! How one of the trees is grown that correct each other: all columns at every split, histograms of siblings by subtraction.

use rayon::prelude::*;

use crate::trees::columns::Columns;
use crate::trees::histogram::{Cutting, Finder, Histogram, Split, part, subtract};
use crate::trees::target::{Gradients, Item, Target};
use crate::trees::tree::{LEAF, Node, Tree};
use crate::{Lease, Result, Run};

/// Numbers that a bin's sums are.
const WIDTH: usize = 2;

/// Columns whose bins are filled together: their sums stay in the nearest cache, and rows are read once for all of them.
const TOGETHER: usize = 4;

/// Rows times columns below which a node is not worth several threads.
const WORTHWHILE: usize = 1 << 15;

/// Splits that gain a smaller share of what the leaf itself explains are rounding.
const ROUNDING: f64 = 1e-12;

/// A tree that has grown.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub tree: Tree,
    /// The sums of each leaf, and its rows among the items.
    pub leaves: Vec<(Vec<i64>, std::ops::Range<usize>)>,
    /// The columns that were split, and what that gained.
    pub gains: Vec<(u32, f64)>,
}

/// Grows a tree. The items end up in the order of the leaves.
pub(crate) fn grow(target: &Gradients, columns: &Columns<'_>, items: &mut [Item], depth: usize, run: &Run) -> Result<Step> {
    let mut ends = vec![0];
    columns.binned.iter().for_each(|binned| ends.push(ends[ends.len() - 1] + binned.width() * WIDTH));
    let mut lease = run.reserve(size_of_val(items))?;
    lease.grow(columns.len() * 64)?;
    let spare = &mut vec![Item::default(); items.len()][..];
    let mut growing = Growing { target, columns, ends: &ends, depth, run, lease, free: Vec::new(), step: Step::default() };
    let mut sums = vec![0; WIDTH];
    items.iter().for_each(|item| target.add(&mut sums, item));
    if growing.may_be_split(&sums, 0) {
        let mut histogram = growing.histogram()?;
        growing.fill(&mut histogram, items)?;
        growing.node((items, spare), 0, sums, Some(histogram), 0)?;
    } else {
        growing.node((items, spare), 0, sums, None, 0)?;
    }
    Ok(growing.step)
}

/// A tree, or a part of one that is grown beside others.
struct Growing<'a> {
    target: &'a Gradients,
    columns: &'a Columns<'a>,
    /// Where the sums of each column end, after where those of the first begin.
    ends: &'a [usize],
    depth: usize,
    run: &'a Run,
    lease: Lease,
    /// Histograms that are no longer used.
    free: Vec<Vec<i64>>,
    step: Step,
}

impl Growing<'_> {
    /// Memory for a histogram, with whatever is in it.
    fn histogram(&mut self) -> Result<Vec<i64>> {
        let length = self.ends[self.columns.len()];
        Ok(match self.free.pop() {
            Some(histogram) => histogram,
            None => {
                self.lease.grow(length * size_of::<i64>())?;
                vec![0; length]
            }
        })
    }

    fn may_be_split(&self, sums: &[i64], depth: usize) -> bool {
        let (_, weight) = self.target.real(sums);
        depth < self.depth && weight > 0.0 && weight >= 2.0 * self.target.leaf && self.columns.len() > 0
    }

    /// Adds a node and all below it. Beside the rows there is as much room to sort them in.
    fn node(
        &mut self,
        (items, spare): (&mut [Item], &mut [Item]),
        start: usize,
        sums: Vec<i64>,
        histogram: Option<Vec<i64>>,
        depth: usize,
    ) -> Result<()> {
        self.run.check()?;
        let at = self.step.tree.nodes.len();
        let found = histogram.as_ref().and_then(|histogram| self.split(histogram, &sums));
        let Some((column, split)) = found else {
            self.free.extend(histogram);
            self.step.tree.nodes.push(Node::leaf(self.step.leaves.len()));
            self.step.leaves.push((sums, start..start + items.len()));
            return Ok(());
        };
        self.step.tree.nodes.push(Node { column: column as u32, next: 0, left: split.left });
        self.step.gains.push((column as u32, split.gain));
        let middle = part(items, spare, self.columns.codes[column], &split.left);
        let (left, right) = items.split_at_mut(middle);
        let (left_spare, right_spare) = spare.split_at_mut(middle);
        let mut right_sums = vec![0; WIDTH];
        subtract(&mut right_sums, &sums, &split.sums);
        let wanted = [self.may_be_split(&split.sums, depth + 1), self.may_be_split(&right_sums, depth + 1)];
        let [of_left, of_right] = self.of_children(histogram, left, right, wanted)?;
        if left.len().min(right.len()) * self.columns.len() < WORTHWHILE {
            self.node((left, left_spare), start, split.sums, of_left, depth + 1)?;
            self.step.tree.nodes[at].next = self.step.tree.nodes.len() as u32;
            return self.node((right, right_spare), start + middle, right_sums, of_right, depth + 1);
        }
        let (mut one, mut other) = (self.branch()?, self.branch()?);
        let (grown, other_grown) = rayon::join(
            || one.node((left, left_spare), start, split.sums, of_left, depth + 1),
            || other.node((right, right_spare), start + middle, right_sums, of_right, depth + 1),
        );
        grown.and(other_grown)?;
        let (one, other) = (one.step, other.step);
        self.append(one);
        self.step.tree.nodes[at].next = self.step.tree.nodes.len() as u32;
        self.append(other);
        Ok(())
    }

    /// A part of the tree that is grown by another thread.
    fn branch(&self) -> Result<Growing<'_>> {
        let (target, columns, ends, depth, run) = (self.target, self.columns, self.ends, self.depth, self.run);
        Ok(Growing { target, columns, ends, depth, run, lease: run.reserve(0)?, free: Vec::new(), step: Step::default() })
    }

    /// Adds a part that has grown.
    fn append(&mut self, part: Step) {
        let (nodes, leaves) = (self.step.tree.nodes.len() as u32, self.step.leaves.len() as u32);
        let place = |node: Node| Node { next: node.next + if node.column == LEAF { leaves } else { nodes }, ..node };
        self.step.tree.nodes.extend(part.tree.nodes.into_iter().map(place));
        self.step.leaves.extend(part.leaves);
        self.step.gains.extend(part.gains);
    }

    /// The histograms of a node's children, of those that want one: the smaller child's is filled, the other's is what it leaves of the node's.
    fn of_children(
        &mut self,
        histogram: Option<Vec<i64>>,
        left: &[Item],
        right: &[Item],
        wanted: [bool; 2],
    ) -> Result<[Option<Vec<i64>>; 2]> {
        let (Some(mut rest), true) = (histogram, wanted.contains(&true)) else { return Ok([None, None]) };
        let mut small = self.histogram()?;
        let left_is_small = left.len() <= right.len();
        self.fill(&mut small, if left_is_small { left } else { right })?;
        rest.iter_mut().zip(&small).for_each(|(sum, child)| *sum -= child);
        let both = if left_is_small { [small, rest] } else { [rest, small] };
        let mut kept = [None, None];
        for (at, histogram) in both.into_iter().enumerate() {
            if wanted[at] {
                kept[at] = Some(histogram);
            } else {
                self.free.push(histogram);
            }
        }
        Ok(kept)
    }

    /// The best split of all columns; of equal ones the first.
    fn split(&self, histogram: &[i64], node: &[i64]) -> Option<(usize, Split)> {
        let (gradient, weight) = self.target.real(node);
        let least = ROUNDING * gradient * gradient / (weight + self.target.l2);
        let of = |finder: &mut Finder, column: usize, least: f64| {
            let sums = &histogram[self.ends[column]..self.ends[column + 1]];
            finder.note_all(self.target, sums);
            finder.split(Histogram { target: self.target, sums, node }, self.columns.binned[column], least, &mut Cutting::Best)
        };
        let best_of = |columns: std::ops::Range<usize>| {
            let mut finder = Finder::new(self.target);
            let mut best: Option<(usize, Split)> = None;
            for column in columns {
                let least = best.as_ref().map_or(least, |(_, split)| split.gain);
                best = of(&mut finder, column, least).map(|split| (column, split)).or(best);
            }
            best
        };
        let columns = self.columns.len();
        if histogram.len() < WORTHWHILE {
            return best_of(0..columns);
        }
        let piece = columns.div_ceil(4 * rayon::current_num_threads()).max(1);
        let pieces = (0..columns.div_ceil(piece)).into_par_iter();
        let found: Vec<_> = pieces.map(|at| best_of(at * piece..((at + 1) * piece).min(columns))).collect();
        found.into_iter().flatten().reduce(|best, next| if next.1.gain > best.1.gain { next } else { best })
    }

    /// Adds up the rows of every bin of every column.
    fn fill(&self, histogram: &mut [i64], items: &[Item]) -> Result<()> {
        let mut pieces: Vec<(usize, &mut [i64])> = Vec::new();
        let mut rest = histogram;
        for first in (0..self.columns.len()).step_by(TOGETHER) {
            let last = (first + TOGETHER).min(self.columns.len());
            let (piece, others) = rest.split_at_mut(self.ends[last] - self.ends[first]);
            pieces.push((first, piece));
            rest = others;
        }
        let one = |(first, piece): (usize, &mut [i64])| -> Result<()> {
            self.run.check()?;
            piece.fill(0);
            let codes = &self.columns.codes[first..(first + TOGETHER).min(self.columns.len())];
            let ends = &self.ends[first..];
            match codes {
                [a, b, c, d] => {
                    let (a_sums, piece) = piece.split_at_mut(ends[1] - ends[0]);
                    let (b_sums, piece) = piece.split_at_mut(ends[2] - ends[1]);
                    let (c_sums, d_sums) = piece.split_at_mut(ends[3] - ends[2]);
                    for item in items {
                        add(a_sums, a, item);
                        add(b_sums, b, item);
                        add(c_sums, c, item);
                        add(d_sums, d, item);
                    }
                }
                few => {
                    for (at, codes) in few.iter().enumerate() {
                        let sums = &mut piece[ends[at] - ends[0]..ends[at + 1] - ends[0]];
                        items.iter().for_each(|item| add(sums, codes, item));
                    }
                }
            }
            Ok(())
        };
        if items.len() * self.columns.len() < WORTHWHILE {
            pieces.into_iter().try_for_each(one)
        } else {
            pieces.into_par_iter().try_for_each(one)
        }
    }
}

#[inline]
fn add(sums: &mut [i64], codes: &[u8], item: &Item) {
    let at = usize::from(codes[item.row as usize]) * WIDTH;
    let sums = &mut sums[at..at + WIDTH];
    sums[0] += item.value;
    sums[1] += item.weight;
}
