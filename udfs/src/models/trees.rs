//! Boosted trees as rows of a table, and applied from it.
//!
//! While they are grown, trees know bins. Here a border between two bins is the largest number of the table that is below it, so that the same rows go the same
//! way, to the last digit.

use std::collections::BTreeMap;

use crate::models::fitted::{Column, NEW, OTHERS, Scores};
use crate::models::table::{Parts, Row, broken, class_of, head, place, target_rows, value};
use crate::reading::bins::{self, BINS_MAX, Bins, Counts};
use crate::reading::block::NO_LEVEL;
use crate::reading::plan::Feature;
use crate::trees::boosting::{Boosted, Boosting};
use crate::trees::columns::Columns;
use crate::trees::forest::{Answer, LESSON_BYTES, Lesson};
use crate::trees::histogram::is_left;
use crate::trees::tree::LEAF;
use crate::{Label, Problem, Result, Run, Split};

/// Numbers are no larger, and a border above all of them is this one.
pub(crate) const LARGEST: f64 = 1e100;

/// Boosts trees, and hands them over with what they were grown on.
pub(crate) fn grow<R>(
    problem: &Problem,
    boosting: &Boosting,
    validation: Option<f64>,
    run: &Run,
    receive: impl FnOnce(&Boosted, &Lesson<'_>, &Bins) -> Result<R>,
) -> Result<R> {
    let rows = problem.rows();
    let bins = problem.bins(BINS_MAX, run)?;
    let _lease = run.reserve(rows.rows() * (LESSON_BYTES + 2 * size_of::<usize>()))?;
    let split = validation.map_or_else(|| Split::none(rows.rows()), |share| Split::fraction(rows, share, run));
    let short = |rows: &[usize]| rows.iter().map(|row| *row as u32).collect::<Vec<_>>();
    let lesson = Lesson {
        columns: Columns::of(problem, &bins),
        rows: short(&split.train),
        counts: Counts::of(rows),
        answer: Answer::of(rows),
    };
    let boosted = boosting.fit(&lesson, &short(&split.valid), run)?;
    receive(&boosted, &lesson, &bins)
}

/// Boosts trees, as rows of a table.
pub(crate) fn fit(problem: &Problem, boosting: &Boosting, validation: Option<f64>, run: &Run) -> Result<Vec<Row>> {
    grow(problem, boosting, validation, run, |boosted, lesson, bins| {
        let nodes: usize = boosted.rounds.iter().flatten().map(|correction| correction.tree.nodes.len()).sum();
        let _memory = run.reserve(super::table::bytes_for(nodes))?;
        to_rows(problem, boosted, lesson, bins, run)
    })
}

fn to_rows(problem: &Problem, boosted: &Boosted, lesson: &Lesson<'_>, bins: &Bins, run: &Run) -> Result<Vec<Row>> {
    let data = problem.rows();
    let classes: &[String] = if let Label::Classes(classes) = &problem.label { classes } else { &[] };
    // Only the features that are asked, in the order of the table.
    let splits = boosted.rounds.iter().flatten().flat_map(|correction| &correction.gains);
    let mut asked: Vec<usize> = splits.map(|(column, _)| lesson.columns.features[*column as usize]).collect();
    asked.sort_unstable();
    asked.dedup();
    let name = |feature: usize| problem.features()[feature].as_str();
    let features = asked.iter().map(|at| Feature { name: name(*at).to_string(), is_text: !bins.features[*at].is_ordered });
    let mut rows = head("boosting", classes, &features.collect::<Vec<_>>());
    let mut levels: BTreeMap<usize, Vec<(&str, u8)>> = BTreeMap::new();
    for feature in asked.iter().filter(|feature| !bins.features[**feature].is_ordered) {
        let own = bins.features[*feature].levels(data, *feature);
        rows.extend(own.iter().map(|(level, _)| Row::new("level").feature(name(*feature)).level(Some(level))));
        levels.insert(*feature, own);
        rows.extend(bins.features[*feature].others(data, *feature).map(|_| Row::new("others").feature(name(*feature))));
    }
    if classes.is_empty() {
        rows.extend(target_rows(boosted.scale));
    }
    for (output, base) in boosted.base().iter().enumerate() {
        rows.push(Row::new("base").class(class_of(classes, output)).value(*base));
    }
    for (step, corrections) in boosted.rounds.iter().enumerate() {
        run.check()?;
        for (output, correction) in corrections.iter().enumerate() {
            for (at, node) in correction.tree.nodes.iter().enumerate() {
                let row = |part: &str| Row::new(part).class(class_of(classes, output)).step(step).node(at);
                if node.column == LEAF {
                    rows.push(row("leaf").value(correction.values[node.next as usize]));
                    continue;
                }
                let feature = lesson.columns.features[node.column as usize];
                let binned = &bins.features[feature];
                let split = row("split").feature(name(feature)).link(node.next as usize);
                let left = |level: Option<&str>| row("left").feature(name(feature)).level(level);
                rows.push(if binned.is_ordered {
                    let last = (0..binned.bins).rev().find(|code| is_left(&node.left, *code as u8));
                    split.value(threshold(binned.borders(), last, binned.mean(data)))
                } else {
                    split
                });
                for (level, _) in levels.get(&feature).into_iter().flatten().filter(|(_, code)| is_left(&node.left, *code)) {
                    rows.push(left(Some(level)));
                }
                rows.extend(is_left(&node.left, binned.null()).then(|| left(None)));
                let others = binned.others(data, feature).filter(|code| is_left(&node.left, *code));
                rows.extend(others.map(|_| row("left_others").feature(name(feature))));
            }
        }
    }
    Ok(rows)
}

/// The largest number that goes left, where all bins up to `last` do.
fn threshold(borders: &[f64], last: Option<usize>, mean: f64) -> f64 {
    let Some(last) = last else { return -LARGEST };
    let Some(border) = borders.get(last) else { return LARGEST };
    // Subtracting the mean keeps the order of numbers, so that there is a last one; it is looked for among all of them.
    let is_below = |key: u64| bins::value(key) - mean <= *border;
    let (mut low, mut high) = (bins::key(-LARGEST), bins::key(LARGEST));
    if is_below(high) {
        return LARGEST;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    bins::value(low)
}

/// Trees that were read from a table.
#[derive(Debug)]
pub(crate) struct Trees {
    pub base: Vec<f64>,
    pub target: (f64, f64),
    /// The trees of each score, in the order in which they are added.
    pub trees: Vec<Vec<Vec<Node>>>,
    /// The levels of each feature that is text, in order.
    pub levels: Vec<Vec<String>>,
    has_others: Vec<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Leaf(f64),
    /// `others_left` is of a text that has others.
    Split {
        feature: usize,
        left: Left,
        missing_left: bool,
        others_left: Option<bool>,
        right: usize,
    },
}

/// What goes left beside NULL.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Left {
    UpTo(f64),
    /// A flag for each level.
    Levels(Vec<bool>),
}

impl Trees {
    pub fn read(parts: &Parts) -> Result<Self> {
        let mut levels: Vec<Vec<String>> = vec![Vec::new(); parts.features.len()];
        for row in parts.of("level") {
            let feature = parts.feature(row)?;
            levels[feature].push(row.level.clone().ok_or_else(|| broken("a row of `level` has none"))?);
        }
        levels.iter_mut().for_each(|levels| levels.sort());
        let has_others: Vec<bool> = (0..parts.features.len()).map(|feature| parts.has_others(feature)).collect();
        let mut nodes: BTreeMap<(usize, usize, usize), Node> = BTreeMap::new();
        let at = |row: &Row| -> Result<(usize, usize, usize)> {
            Ok((parts.output(row)?, place(row, row.step)?, place(row, row.node)?))
        };
        let twice = || broken("a node of a tree is there twice");
        for row in parts.of("leaf") {
            if nodes.insert(at(row)?, Node::Leaf(value(row)?)).is_some() {
                return Err(twice());
            }
        }
        for row in parts.of("split") {
            let feature = parts.feature(row)?;
            let left = match parts.features[feature].is_text {
                true => Left::Levels(vec![false; levels[feature].len()]),
                false => Left::UpTo(value(row)?),
            };
            let others_left = has_others[feature].then_some(false);
            let split = Node::Split { feature, left, missing_left: false, others_left, right: place(row, row.link)? };
            if nodes.insert(at(row)?, split).is_some() {
                return Err(twice());
            }
        }
        for row in parts.of("left_others") {
            match nodes.get_mut(&at(row)?) {
                Some(Node::Split { others_left: Some(others_left), .. }) => *others_left = true,
                _ => return Err(broken("a row of `left_others` is about no split of a text that has others")),
            }
        }
        for row in parts.of("left") {
            let stray = || broken("a row of `left` is about no split, or about a level that there is not");
            let Some(Node::Split { feature, left, missing_left, .. }) = nodes.get_mut(&at(row)?) else { return Err(stray()) };
            match (&row.level, left) {
                (None, _) => *missing_left = true,
                (Some(level), Left::Levels(flags)) => {
                    flags[levels[*feature].binary_search(level).map_err(|_| stray())?] = true;
                }
                (Some(_), Left::UpTo(_)) => return Err(stray()),
            }
        }
        let mut trees: Vec<Vec<Vec<Node>>> = vec![Vec::new(); parts.outputs()];
        for ((output, step, node), found) in nodes {
            let trees = &mut trees[output];
            if step == trees.len() {
                trees.push(Vec::new());
            }
            if step + 1 != trees.len() || node != trees[step].len() {
                return Err(broken("its trees or their nodes do not count from 0 on"));
            }
            trees[step].push(found);
        }
        let is_sound = |tree: &Vec<Node>| {
            // The way always leads on to a node that is there, so that it ends.
            tree.iter().enumerate().all(|(at, node)| match node {
                Node::Leaf(_) => true,
                Node::Split { right, .. } => *right > at + 1 && *right < tree.len(),
            })
        };
        if !trees.iter().flatten().all(is_sound) {
            return Err(broken("a tree leads to a node that it does not have"));
        }
        Ok(Self { base: parts.of_outputs("base")?, target: parts.target()?, trees, levels, has_others })
    }

    fn leaf(tree: &[Node], columns: &[Column], row: usize) -> f64 {
        let mut at = 0;
        loop {
            match &tree[at] {
                Node::Leaf(value) => return *value,
                Node::Split { feature, left, missing_left, others_left, right } => {
                    let is_left = match (&columns[*feature], left) {
                        (Column::Numbers(values), Left::UpTo(last)) => match values[row] {
                            x if x.is_nan() => *missing_left,
                            x => x <= *last,
                        },
                        (Column::Levels(places), Left::Levels(flags)) => match places[row] {
                            NO_LEVEL | NEW => *missing_left,
                            OTHERS => others_left.unwrap_or(*missing_left),
                            level => flags[level as usize],
                        },
                        _ => unreachable!("a feature is asked for as what it is"),
                    };
                    at = if is_left { at + 1 } else { *right };
                }
            }
        }
    }
}

impl Scores for Trees {
    fn scores(&self, rows: usize, columns: &[Column], run: &Run) -> Result<Vec<f64>> {
        let outputs = self.base.len();
        let mut scores = vec![0.0; rows * outputs];
        for (output, base) in self.base.iter().enumerate() {
            scores.iter_mut().skip(output).step_by(outputs).for_each(|score| *score = *base);
        }
        for (output, trees) in self.trees.iter().enumerate() {
            // Tree by tree, which stays in cache for all rows.
            for tree in trees {
                run.check()?;
                let own = scores.iter_mut().skip(output).step_by(outputs).enumerate();
                own.for_each(|(row, score)| *score += Self::leaf(tree, columns, row));
            }
        }
        if self.target != (0.0, 1.0) {
            scores.iter_mut().for_each(|score| *score = self.target.0 + self.target.1 * *score);
        }
        Ok(scores)
    }

    fn levels(&self, feature: usize) -> Vec<&str> {
        self.levels[feature].iter().map(String::as_str).collect()
    }

    fn has_others(&self, feature: usize) -> bool {
        self.has_others[feature]
    }
}
