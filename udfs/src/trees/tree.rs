//! A tree, and how one of a forest is grown.

use crate::trees::columns::Columns;
use crate::trees::histogram::{CODES, Cutting, Finder, Histogram, Side, Split, fill, is_left, part, subtract};
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
            if let Some(split) = self.finder.split(Histogram { target, sums, node }, binned, least, &mut cutting) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::bins::Counts;
    use crate::testing::Table;
    use crate::trees::forest::{Answer, Forest, Lesson};
    use crate::{Problem, Task};

    /// An exact tree, slow and plain: at each node every column is sorted and every cut tried.
    struct Exact<'a> {
        columns: Vec<&'a [f64]>,
        label: &'a [f64],
        classes: usize,
    }

    impl Exact<'_> {
        /// The squared error around the mean, or of classes that of their 0/1 columns.
        fn impurity(&self, rows: &[usize]) -> f64 {
            let n = rows.len() as f64;
            if self.classes == 0 {
                let mean = rows.iter().map(|row| self.label[*row]).sum::<f64>() / n;
                return rows.iter().map(|row| (self.label[*row] - mean).powi(2)).sum();
            }
            let count = |class: usize| rows.iter().filter(|row| self.label[**row] as usize == class).count() as f64;
            n - (0..self.classes).map(|class| count(class).powi(2)).sum::<f64>() / n
        }

        /// What the best of all splits gains.
        fn best(&self, rows: &[usize]) -> f64 {
            let mut best = 0.0;
            for column in &self.columns {
                let mut order = rows.to_vec();
                order.sort_by(|a, b| column[*a].total_cmp(&column[*b]));
                for at in (1..order.len()).filter(|at| column[order[at - 1]] < column[order[*at]]) {
                    let (left, right) = order.split_at(at);
                    best = f64::max(best, self.impurity(rows) - self.impurity(left) - self.impurity(right));
                }
            }
            best
        }

        /// Whether every split of a tree gains as much as the best; returns what they gain.
        fn check(&self, tree: &Tree, codes: &[&[u8]], at: usize, rows: &[usize], depth: usize) -> f64 {
            let node = &tree.nodes[at];
            if node.column == LEAF {
                assert!(depth == 0 || self.impurity(rows) < 1e-9, "a leaf that could be split");
                return 0.0;
            }
            let (left, right): (Vec<usize>, Vec<usize>) =
                rows.iter().partition(|row| is_left(&node.left, codes[node.column as usize][**row]));
            let gain = self.impurity(rows) - self.impurity(&left) - self.impurity(&right);
            assert!((gain - self.best(rows)).abs() < 1e-9 * (1.0 + gain), "{gain} {}", self.best(rows));
            let below = self.check(tree, codes, at + 1, &left, depth - 1);
            gain + below + self.check(tree, codes, node.next as usize, &right, depth - 1)
        }
    }

    /// One tree on all rows and columns.
    fn with_tree<R>(problem: &Problem, depth: usize, each: impl Fn(&Lesson<'_>, &Grown) -> R) -> R {
        let run = Run::new(0);
        let rows = problem.rows();
        let bins = problem.bins(255, &run).unwrap();
        let forest = Forest {
            trees: 1,
            depth: Some(depth),
            leaf_rows: 1,
            features_per_split: Some(usize::MAX),
            samples: false,
            is_random: false,
            purpose: "tree",
        };
        let lesson = Lesson {
            columns: Columns::of(problem, &bins),
            rows: (0..rows.rows() as u32).collect(),
            counts: Counts::of(rows),
            answer: Answer::of(rows),
        };
        let grown = forest.grow(&lesson, true, &run, |_, grown, _, _| Ok(grown)).unwrap();
        each(&lesson, &grown[0])
    }

    /// The rows of the leaves, as they stand in the table.
    fn leaves(table: &Table, label: &[f64], depth: usize) -> Vec<Vec<usize>> {
        let order = table.content_order(label);
        with_tree(&table.problem_of_rows(label), depth, |lesson, grown| {
            let mut leaves = vec![Vec::new(); grown.tree.nodes.iter().filter(|node| node.column == LEAF).count()];
            for row in 0..lesson.rows.len() {
                leaves[grown.tree.leaf(|column| lesson.columns.codes[column][row])].push(order[row]);
            }
            leaves.iter_mut().for_each(|leaf| leaf.sort_unstable());
            leaves.sort();
            leaves
        })
    }

    /// With few enough values bins lose nothing: every split is as good as an exact tree's, for numbers, two classes and three.
    #[test]
    fn a_binned_tree_is_an_exact_tree() {
        for (seed, classes) in [(1, 0), (2, 2), (3, 3), (4, 0), (5, 3)] {
            let table = Table::random(120, 4, seed);
            let mut random = Run::new(seed).random("label", 0);
            let score = |row: usize, noise: f64| table.column(0)[row] + (table.column(2)[row] * 2.0).sin() + 0.5 * noise;
            let label: Vec<f64> = (0..120)
                .map(|row| match classes {
                    0 => score(row, random.normal()),
                    classes => (score(row, random.normal()) + 1.5).clamp(0.0, classes as f64 - 1.0).floor(),
                })
                .collect();
            let task = if classes == 0 { Task::Regression } else { Task::Classification };
            let table = Table { task: Some(task), ..table.clone() };
            let problem = table.problem_of_rows(&label);
            // The exact tree sees the rows in the same order.
            let order = table.content_order(&label);
            let ordered = |values: &[f64]| -> Vec<f64> { order.iter().map(|row| values[*row]).collect() };
            let (columns, label): (Vec<_>, _) = ((0..4).map(|j| ordered(table.column(j))).collect(), ordered(&label));
            let exact = Exact { columns: columns.iter().map(|column| &column[..]).collect(), label: &label, classes };
            with_tree(&problem, 4, |lesson, grown| {
                let gained = exact.check(&grown.tree, &lesson.columns.codes, 0, &(0..120).collect::<Vec<_>>(), 4);
                // Gains of two classes are half of those of both columns; of numbers they are in a unit of their own.
                let ratio = gained / grown.gains.iter().sum::<f64>();
                match classes {
                    0 => assert!(ratio.log2() / 2.0 - (ratio.log2() / 2.0).round() < 1e-6, "{ratio}"),
                    classes => assert!((ratio - if classes == 2 { 2.0 } else { 1.0 }).abs() < 1e-9, "{ratio}"),
                }
            });
        }
    }

    /// Levels are parted as well as by any of all ways to part them.
    #[test]
    fn levels_are_parted_in_the_best_way() {
        let mut random = Run::new(4).random("levels", 0);
        let levels: Vec<usize> = (0..60).map(|_| random.below(6)).collect();
        let names = ["a", "b", "c", "d", "e", "f"];
        let label: Vec<f64> = levels.iter().map(|level| [3.0, -1.0, 2.5, 0.0, -2.0, 3.5][*level] + random.normal()).collect();
        let table = Table::new().text("t", &levels.iter().map(|level| names[*level]).collect::<Vec<_>>());
        let leaves = leaves(&table, &label, 1);
        let exact = Exact { columns: Vec::new(), label: &label, classes: 0 };
        let impurity = |left: u32| -> f64 {
            let (a, b): (Vec<usize>, Vec<usize>) = (0..60).partition(|row| left >> levels[*row] & 1 == 1);
            exact.impurity(&a) + exact.impurity(&b)
        };
        let best = (1..63).map(impurity).fold(f64::INFINITY, f64::min);
        let found: f64 = leaves.iter().map(|rows| exact.impurity(rows)).sum();
        assert!(leaves.len() == 2 && (found - best).abs() < 1e-9, "{found} {best}");
    }

    /// NULL is on the side where it belongs, whichever that is.
    #[test]
    fn null_has_a_side_of_its_own() {
        let values = [1.0, 2.0, 3.0, f64::NAN, f64::NAN, 4.0];
        for (label, expected) in [
            ([0.0, 0.0, 5.0, 5.0, 5.0, 5.0], [vec![0, 1], vec![2, 3, 4, 5]]),
            ([5.0, 5.0, 0.0, 5.0, 5.0, 0.0], [vec![0, 1, 3, 4], vec![2, 5]]),
            ([0.0, 0.0, 0.0, 5.0, 5.0, 0.0], [vec![0, 1, 2, 5], vec![3, 4]]),
        ] {
            assert_eq!(leaves(&Table::new().numbers("x", &values), &label, 1), expected);
        }
    }
}
