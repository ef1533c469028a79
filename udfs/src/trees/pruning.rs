//! Cost-complexity pruning: a tree is cut back to where its splits pay for their leaves.

use crate::trees::columns::Columns;
use crate::trees::forest::{Answer, Lesson};
use crate::trees::tree::{LEAF, Tree};
use crate::{Result, Run};

/// A tree of which some splits count as leaves.
pub(crate) struct Pruned {
    tree: Tree,
    /// Whether each node is where rows stop.
    is_end: Vec<bool>,
}

impl Pruned {
    /// Cuts a tree back: a split stays if it and all below it save more than `complexity` of the error without any split for each leaf more. The error is the squared one
    /// of numbers, Gini's impurity of classes, of the rows learnt from.
    pub fn new(tree: Tree, lesson: &Lesson<'_>, complexity: f64, run: &Run) -> Result<Self> {
        let errors = errors(&tree, lesson, run)?;
        let limit = complexity * errors[0];
        let mut is_end: Vec<bool> = tree.nodes.iter().map(|node| node.column == LEAF).collect();
        // Of each node the error of the leaves below it, and how many there are. Children stand behind their parents, so that from the last node on all is known that is needed.
        let mut below: Vec<(f64, f64)> = errors.iter().map(|error| (*error, 1.0)).collect();
        for (at, node) in tree.nodes.iter().enumerate().rev().filter(|(_, node)| node.column != LEAF) {
            let (left, right) = (below[at + 1], below[node.next as usize]);
            let both = (left.0 + right.0, left.1 + right.1);
            if errors[at] <= both.0 + limit * (both.1 - 1.0) {
                is_end[at] = true;
            } else {
                below[at] = both;
            }
        }
        Ok(Self { tree, is_end })
    }

    /// The columns that a row is asked for, each once.
    pub fn asked(&self, columns: &Columns<'_>, row: usize) -> Vec<usize> {
        let mut asked = Vec::new();
        walk(
            &self.tree,
            |column| columns.codes[column][row],
            |node, column| {
                if self.is_end[node] {
                    return false;
                }
                if !asked.contains(&column) {
                    asked.push(column);
                }
                true
            },
        );
        asked
    }
}

/// Walks a row down; `visit` is told every node and its column, [`LEAF`] at the end, and says whether to go on.
fn walk(tree: &Tree, code: impl Fn(usize) -> u8, mut visit: impl FnMut(usize, usize) -> bool) {
    let mut at = 0;
    loop {
        let node = &tree.nodes[at];
        if !visit(at, node.column as usize) || node.column == LEAF {
            return;
        }
        at = if crate::trees::histogram::is_left(&node.left, code(node.column as usize)) { at + 1 } else { node.next as usize };
    }
}

/// For each node the error that its rows would have, were it a leaf.
fn errors(tree: &Tree, lesson: &Lesson<'_>, run: &Run) -> Result<Vec<f64>> {
    let width = match &lesson.answer {
        Answer::Numbers(_) => 3,
        Answer::Classes { classes, .. } => *classes,
    };
    let _memory = run.reserve(tree.nodes.len() * (width + 2) * size_of::<f64>())?;
    let base = if let Answer::Numbers(numbers) = &lesson.answer { lesson.mean(numbers) } else { 0.0 };
    let mut sums = vec![0.0; tree.nodes.len() * width];
    for (at, row) in lesson.rows.iter().enumerate() {
        if at % 64 == 0 {
            run.check()?;
        }
        let row = *row as usize;
        let weight = f64::from(lesson.counts.get(row)) / lesson.counts.unit;
        walk(
            tree,
            |column| lesson.columns.codes[column][row],
            |node, _| {
                let sums = &mut sums[node * width..(node + 1) * width];
                match &lesson.answer {
                    Answer::Numbers(numbers) => {
                        let y = numbers[row] - base;
                        sums.iter_mut().zip([weight, weight * y, weight * y * y]).for_each(|(sum, part)| *sum += part);
                    }
                    Answer::Classes { of_row, .. } => sums[of_row[row] as usize] += weight,
                }
                true
            },
        );
    }
    let error = |sums: &[f64]| match &lesson.answer {
        Answer::Numbers(_) => (sums[2] - sums[1] * sums[1] / sums[0].max(f64::MIN_POSITIVE)).max(0.0),
        Answer::Classes { .. } => {
            let total: f64 = sums.iter().sum();
            total - sums.iter().map(|sum| sum * sum).sum::<f64>() / total.max(f64::MIN_POSITIVE)
        }
    };
    Ok(sums.chunks(width).map(error).collect())
}
