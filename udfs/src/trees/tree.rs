//! A tree, and how one of a forest is grown.

use crate::trees::columns::Columns;
use crate::trees::histogram::{CODES, Cutting, Finder, Side, Split, fill, is_left, part, subtract};
use crate::trees::target::{Item, Target};
use crate::{Lease, Random, Result, Run};

/// Splits, the left child of each behind it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// The column that is split; [`LEAF`] if none is.
    pub column: u32,
    /// The right child, or the number of the leaf.
    pub next: u32,
    /// The codes that go left.
    pub left: Side,
}

pub(crate) const LEAF: u32 = u32::MAX;

impl Node {
    pub fn leaf(number: usize) -> Self {
        Self { column: LEAF, next: number as u32, left: Side::default() }
    }
}

impl Tree {
    /// The leaf of a row, given its code in a column.
    pub fn leaf(&self, code: impl Fn(usize) -> u8) -> usize {
        self.walk(code, |_| ())
    }

    /// The leaf of a row; tells the columns that are asked on the way.
    pub fn walk(&self, code: impl Fn(usize) -> u8, mut asked: impl FnMut(u32)) -> usize {
        let mut at = 0;
        loop {
            let node = &self.nodes[at];
            if node.column == LEAF {
                return node.next as usize;
            }
            asked(node.column);
            at = if is_left(&node.left, code(node.column as usize)) { at + 1 } else { node.next as usize };
        }
    }
}

/// How a tree of a forest is grown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    /// Columns that a split is chosen among.
    pub per_split: usize,
    /// Longest way from the root to a leaf.
    pub depth: usize,
    /// Whether each column is cut at random.
    pub is_random: bool,
    /// Whether the tree is wanted, or only what its splits gained.
    pub keeps: bool,
}

/// A tree that has grown.
#[derive(Debug)]
pub(crate) struct Grown {
    pub tree: Tree,
    /// The sums of each leaf.
    pub leaves: Vec<i64>,
    /// What the splits of each column gained.
    pub gains: Vec<f64>,
    _lease: Lease,
}

/// A node that waits to be split.
struct Waiting {
    start: usize,
    end: usize,
    depth: usize,
    /// The split whose right child it is.
    parent: Option<usize>,
    sums: Vec<i64>,
}

/// Grows a tree until its leaves are pure or may not be split. A split is chosen among some columns drawn at random; if none of them varies,
/// more are drawn until one does.
pub(crate) fn grow<T: Target>(
    target: &T,
    columns: &Columns<'_>,
    mut items: Vec<Item>,
    growth: Growth,
    random: &mut Random,
    run: &Run,
) -> Result<Grown> {
    let lease = run.reserve(items.len() * size_of::<Item>())?;
    let mut spare = vec![Item::default(); items.len()];
    let mut grown = Grown { tree: Tree::default(), leaves: Vec::new(), gains: vec![0.0; columns.len()], _lease: lease };
    let mut search = Search {
        columns,
        growth,
        order: (0..columns.len()).collect(),
        sums: vec![0; CODES * target.width()],
        finder: Finder::new(target),
    };
    let mut root = vec![0; target.width()];
    items.iter().for_each(|item| target.add(&mut root, item));
    let mut waiting = vec![Waiting { start: 0, end: items.len(), depth: 0, parent: None, sums: root }];
    while let Some(node) = waiting.pop() {
        run.check()?;
        if growth.keeps {
            grown.make_room(target.width())?;
        }
        let at = grown.tree.nodes.len();
        if let Some(parent) = node.parent.filter(|_| growth.keeps) {
            grown.tree.nodes[parent].next = at as u32;
        }
        let own = &mut items[node.start..node.end];
        let may_be_split = node.depth < growth.depth && own.len() > 1 && !target.is_pure(&node.sums, own);
        let found = if may_be_split { search.split(target, own, &node.sums, random, run)? } else { None };
        let Some((column, split)) = found else {
            if growth.keeps {
                grown.tree.nodes.push(Node::leaf(grown.leaves.len() / target.width()));
                grown.leaves.extend(&node.sums);
            }
            continue;
        };
        grown.gains[column] += split.gain;
        if growth.keeps {
            grown.tree.nodes.push(Node { column: column as u32, next: 0, left: split.left });
        }
        let middle = node.start + part(own, &mut spare, columns.codes[column], &split.left);
        let mut right = vec![0; target.width()];
        subtract(&mut right, &node.sums, &split.sums);
        let depth = node.depth + 1;
        waiting.push(Waiting { start: middle, end: node.end, depth, parent: Some(at), sums: right });
        waiting.push(Waiting { start: node.start, end: middle, depth, parent: None, sums: split.sums });
    }
    Ok(grown)
}

impl Grown {
    /// Asks for memory before the next node is kept.
    fn make_room(&mut self, width: usize) -> Result<()> {
        let (nodes, leaves) = (&mut self.tree.nodes, &mut self.leaves);
        if nodes.len() == nodes.capacity() {
            let more = nodes.len().max(64);
            self._lease.grow(more * size_of::<Node>())?;
            nodes.reserve_exact(more);
        }
        if leaves.len() + width > leaves.capacity() {
            let more = leaves.len().max(64 * width);
            self._lease.grow(more * size_of::<i64>())?;
            leaves.reserve_exact(more);
        }
        Ok(())
    }
}

/// Looks for the split of a node.
struct Search<'a> {
    columns: &'a Columns<'a>,
    growth: Growth,
    /// The columns, partly shuffled.
    order: Vec<usize>,
    /// The sums of each bin; zero between columns.
    sums: Vec<i64>,
    finder: Finder,
}

impl Search<'_> {
    /// The column to split, and how.
    fn split<T: Target>(
        &mut self,
        target: &T,
        items: &[Item],
        node: &[i64],
        random: &mut Random,
        run: &Run,
    ) -> Result<Option<(usize, Split)>> {
        let mut best: Option<(usize, Split)> = None;
        let mut vary = 0;
        for drawn in 0..self.order.len() {
            if drawn >= self.growth.per_split && vary > 0 {
                break;
            }
            run.check()?;
            let other = drawn + random.below(self.order.len() - drawn);
            self.order.swap(drawn, other);
            let column = self.order[drawn];
            let binned = self.columns.binned[column];
            let sums = &mut self.sums[..binned.width() * target.width()];
            let codes = self.columns.codes[column];
            // Of a few rows only the bins that they are in are looked at.
            let few = items.len() < 2 * binned.width();
            if few {
                let mut side = Side::default();
                for item in items {
                    let code = codes[item.row as usize];
                    side[usize::from(code >> 6)] |= 1 << (code & 63);
                    let at = usize::from(code) * target.width();
                    target.add(&mut sums[at..at + target.width()], item);
                }
                self.finder.note(&side);
            } else {
                fill(target, sums, codes, items);
                self.finder.note_all(target, sums);
            }
            vary += usize::from(!self.finder.is_constant());
            let least = best.as_ref().map_or(-1.0, |(_, split)| split.gain);
            let mut cutting = if self.growth.is_random { Cutting::Random(random) } else { Cutting::Best };
            if let Some(split) = self.finder.split(target, sums, node, binned, least, &mut cutting) {
                best = Some((column, split));
            }
            if few {
                for code in self.finder.occupied() {
                    let at = usize::from(*code) * target.width();
                    sums[at..at + target.width()].fill(0);
                }
            } else {
                sums.fill(0);
            }
        }
        Ok(best)
    }
}
