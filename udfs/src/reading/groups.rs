//! Second moments of many groups at once.
//!
//! A batch has a row or two of each of ten thousand groups, and moments of one row at a time would be folded in as often as there are rows.
//! So rows wait until there are enough of them, and each group then gets its own as one batch.

use std::collections::BTreeMap;

use crate::reading::block::{Block, NO_LEVEL, Numbers};
use crate::reading::moments::Moments;
use crate::reading::plan::{LabelKind, Plan};
use crate::{Error, Result};

/// Rows of a group that should come together, and the fewest and the most bytes that wait for that.
const ROWS_PER_GROUP: usize = 32;
const WAITING_BYTES_MIN: usize = 8 << 20;
const WAITING_BYTES_MAX: usize = 256 << 20;

/// The moments of groups that are known by number.
#[derive(Debug)]
pub struct GroupedMoments {
    empty: Moments,
    groups: Vec<Moments>,
    /// Bytes of all of them.
    bytes: usize,
    waiting: Waiting,
}

/// Rows, and the group of each.
#[derive(Debug)]
struct Waiting {
    groups: Vec<u32>,
    label: Column,
    weights: Vec<f64>,
    features: Vec<Column>,
}

#[derive(Debug)]
enum Column {
    Numbers(Vec<f64>),
    Levels { codes: Vec<u32>, names: BTreeMap<String, u32> },
}

impl GroupedMoments {
    pub fn new(plan: Plan) -> Self {
        Self { waiting: Waiting::new(&plan), empty: Moments::new(plan), groups: Vec::new(), bytes: 0 }
    }

    pub fn plan(&self) -> &Plan {
        self.empty.plan()
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.bytes + self.waiting.bytes()
    }

    /// Adds rows, each to its group; `groups` is the number of groups so far.
    pub fn update(
        &mut self,
        group_of: &[usize],
        groups: usize,
        label: Block<'_>,
        weights: Option<&dyn Numbers>,
        features: &[Block<'_>],
    ) -> Result<()> {
        assert_eq!(features.len(), self.plan().features.len(), "one block for each feature of the plan");
        self.expect(groups)?;
        self.waiting.push(group_of, label, weights, features);
        let waiting = self.waiting.bytes();
        let is_enough = self.waiting.groups.len() >= ROWS_PER_GROUP * groups && waiting >= WAITING_BYTES_MIN;
        if is_enough || waiting >= WAITING_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    /// Adds the moments that bytes hold to a group that is expected.
    pub fn merge(&mut self, group: usize, bytes: &[u8]) -> Result<()> {
        let other = self.empty.from_bytes_like(bytes)?;
        let mine = &mut self.groups[group];
        self.bytes -= mine.bytes();
        let merged = mine.merge(&other);
        self.bytes += mine.bytes();
        merged
    }

    /// Takes out the first groups, all if there are no more; those after them move up.
    pub fn take(&mut self, groups: usize) -> Result<Vec<Moments>> {
        self.flush()?;
        let taken: Vec<Moments> = self.groups.drain(..groups.min(self.groups.len())).collect();
        self.bytes -= taken.iter().map(Moments::bytes).sum::<usize>();
        Ok(taken)
    }

    /// The number of groups that have been named.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Makes room for so many groups, be there rows of them or not.
    pub fn expect(&mut self, groups: usize) -> Result<()> {
        if u32::try_from(groups).is_err() {
            return Err(Error::limit(format!("at most {} groups can be told apart, got {groups}", u32::MAX)));
        }
        while self.groups.len() < groups {
            let group = self.empty.fresh();
            self.bytes += group.bytes();
            self.groups.push(group);
        }
        Ok(())
    }

    /// Gives every group the rows that wait for it.
    fn flush(&mut self) -> Result<()> {
        let plan = self.empty.plan();
        let waiting = std::mem::replace(&mut self.waiting, Waiting::new(plan));
        if waiting.groups.is_empty() {
            return Ok(());
        }
        // Rows by group, in the order in which they came.
        let mut starts = vec![0usize; self.groups.len() + 1];
        waiting.groups.iter().for_each(|group| starts[*group as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let (mut next, mut order) = (starts.clone(), vec![0u32; waiting.groups.len()]);
        for (row, group) in waiting.groups.iter().enumerate() {
            order[next[*group as usize]] = row as u32;
            next[*group as usize] += 1;
        }
        let (label, features) = (waiting.label.take(&order), waiting.features.iter().map(|column| column.take(&order)));
        let features: Vec<Taken<'_>> = features.collect();
        let weights: Option<Vec<f64>> = plan.weighted.then(|| order.iter().map(|row| waiting.weights[*row as usize]).collect());
        for (group, moments) in self.groups.iter_mut().enumerate() {
            let rows = starts[group]..starts[group + 1];
            if rows.is_empty() {
                continue;
            }
            let slices: Vec<Slice<'_>> = features.iter().map(|column| column.slice(rows.clone())).collect();
            let blocks: Vec<Block<'_>> = slices.iter().map(Slice::block).collect();
            let label = label.slice(rows.clone());
            let weights = weights.as_ref().map(|weights| Part(&weights[rows.clone()]));
            self.bytes -= moments.bytes();
            let updated = moments.update(rows.len(), label.block(), weights.as_ref().map(|part| part as &dyn Numbers), &blocks);
            self.bytes += moments.bytes();
            updated?;
        }
        Ok(())
    }
}

impl Waiting {
    fn new(plan: &Plan) -> Self {
        let column = |is_text: bool| {
            if is_text { Column::Levels { codes: Vec::new(), names: BTreeMap::new() } } else { Column::Numbers(Vec::new()) }
        };
        Self {
            groups: Vec::new(),
            label: column(plan.label_kind == LabelKind::Class),
            weights: Vec::new(),
            features: plan.features.iter().map(|feature| column(feature.is_text)).collect(),
        }
    }

    fn push(&mut self, group_of: &[usize], label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) {
        let rows = group_of.len();
        self.groups.extend(group_of.iter().map(|group| *group as u32));
        self.label.push(rows, label);
        if let Some(weights) = weights {
            fill(&mut self.weights, rows, weights);
        }
        self.features.iter_mut().zip(features).for_each(|(column, block)| column.push(rows, *block));
    }

    fn bytes(&self) -> usize {
        let columns: usize = self.features.iter().chain([&self.label]).map(Column::bytes).sum();
        columns + self.groups.capacity() * size_of::<u32>() + self.weights.capacity() * size_of::<f64>()
    }
}

impl Column {
    fn push(&mut self, rows: usize, block: Block<'_>) {
        match (self, block) {
            (Column::Numbers(values), Block::Numbers(numbers)) => fill(values, rows, numbers),
            (Column::Levels { codes, names }, Block::Levels { codes: new, names: new_names }) => {
                let code = |name: &&str| match names.get(*name) {
                    Some(code) => *code,
                    None => {
                        names.insert(name.to_string(), names.len() as u32);
                        names.len() as u32 - 1
                    }
                };
                let map: Vec<u32> = new_names.iter().map(code).collect();
                codes.extend(new.iter().map(|code| map.get(*code as usize).copied().unwrap_or(NO_LEVEL)));
            }
            _ => unreachable!("the plan fixes whether a column is text"),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Column::Numbers(values) => values.capacity() * size_of::<f64>(),
            Column::Levels { codes, names } => codes.capacity() * size_of::<u32>() + names.len() * 64,
        }
    }

    fn take(&self, order: &[u32]) -> Taken<'_> {
        match self {
            Column::Numbers(values) => Taken::Numbers(order.iter().map(|row| values[*row as usize]).collect()),
            Column::Levels { codes, names } => {
                let mut by_code = vec![""; names.len()];
                names.iter().for_each(|(name, code)| by_code[*code as usize] = name);
                Taken::Levels(order.iter().map(|row| codes[*row as usize]).collect(), by_code)
            }
        }
    }
}

fn fill(values: &mut Vec<f64>, rows: usize, numbers: &dyn Numbers) {
    let start = values.len();
    values.resize(start + rows, 0.0);
    numbers.fill(0, &mut values[start..]);
}

/// A column with the rows of each group side by side.
enum Taken<'a> {
    Numbers(Vec<f64>),
    Levels(Vec<u32>, Vec<&'a str>),
}

/// The rows of one group.
enum Slice<'a> {
    Numbers(Part<'a>),
    /// With the names that occur.
    Levels(Vec<u32>, Vec<&'a str>),
}

impl<'a> Taken<'a> {
    fn slice(&'a self, rows: std::ops::Range<usize>) -> Slice<'a> {
        match self {
            Taken::Numbers(values) => Slice::Numbers(Part(&values[rows])),
            Taken::Levels(codes, names) => {
                let mut known: BTreeMap<u32, u32> = BTreeMap::new();
                let mut own = Vec::new();
                let code = |code: &u32| {
                    if *code == NO_LEVEL {
                        return NO_LEVEL;
                    }
                    *known.entry(*code).or_insert_with(|| {
                        own.push(names[*code as usize]);
                        own.len() as u32 - 1
                    })
                };
                let codes = codes[rows].iter().map(code).collect();
                Slice::Levels(codes, own)
            }
        }
    }
}

impl Slice<'_> {
    fn block(&self) -> Block<'_> {
        match self {
            Slice::Numbers(part) => Block::Numbers(part),
            Slice::Levels(codes, names) => Block::Levels { codes, names },
        }
    }
}

struct Part<'a>(&'a [f64]);

impl Numbers for Part<'_> {
    fn fill(&self, start: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.0[start..start + out.len()]);
    }

    fn as_slice(&self) -> Option<&[f64]> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feature, Nulls, Run, Task};

    fn plan() -> Plan {
        let feature = |name: &str, is_text: bool| Feature { name: name.into(), is_text };
        Plan {
            label: "y".into(),
            label_kind: LabelKind::Float,
            features: vec![feature("x", false), feature("t", true)],
            weighted: true,
            task: Task::Auto,
            nulls: Nulls::Mean,
            max_levels: 5,
            levels: crate::Levels::Top,
            max_classes: 5,
            bytes_max: 0,
            left_out: Vec::new(),
        }
    }

    /// Rows of seven groups, dealt out in batches, against the moments of each group on its own. Whole numbers, so that sums are exact.
    #[test]
    fn groups_have_the_moments_of_their_rows() {
        let mut random = Run::new(4).random("groups", 0);
        let rows = 1000;
        let draw = |random: &mut crate::Random| -> Vec<f64> { (0..rows).map(|_| random.below(9) as f64).collect() };
        let (mut x, y, w) = (draw(&mut random), draw(&mut random), draw(&mut random));
        x[17] = f64::NAN;
        let codes: Vec<u32> = (0..rows).map(|_| if random.below(10) == 0 { NO_LEVEL } else { random.below(3) as u32 }).collect();
        let names = ["a", "b", "c"];
        let group_of: Vec<usize> = (0..rows).map(|row| if row < 7 { row } else { random.below(7) }).collect();
        let mut grouped = GroupedMoments::new(plan());
        for start in (0..rows).step_by(130) {
            let end = rows.min(start + 130);
            let part = |values: &[f64]| values[start..end].to_vec();
            let (x, y, w) = (part(&x), part(&y), part(&w));
            let features = [Block::Numbers(&x), Block::Levels { codes: &codes[start..end], names: &names }];
            let groups = group_of[..end].iter().max().unwrap() + 1;
            grouped.update(&group_of[start..end], groups, Block::Numbers(&y), Some(&w), &features).unwrap();
        }
        assert!(grouped.bytes() > 0);
        let mut all = grouped.take(3).unwrap();
        all.extend(grouped.take(usize::MAX).unwrap());
        assert_eq!((all.len(), grouped.groups(), grouped.bytes()), (7, 0, 0));
        for (group, moments) in all.iter().enumerate() {
            let own: Vec<usize> = (0..rows).filter(|row| group_of[*row] == group).collect();
            let take = |values: &[f64]| -> Vec<f64> { own.iter().map(|row| values[*row]).collect() };
            let (x, y, w) = (take(&x), take(&y), take(&w));
            let codes: Vec<u32> = own.iter().map(|row| codes[*row]).collect();
            let mut alone = Moments::new(plan());
            let features = [Block::Numbers(&x), Block::Levels { codes: &codes, names: &names }];
            alone.update(own.len(), Block::Numbers(&y), Some(&w), &features).unwrap();
            assert_eq!(moments.seen(), alone.seen());
            assert_eq!(moments.finish().matrix, alone.finish().matrix);
            // Through bytes and back, and merged with nothing.
            let mut merged = GroupedMoments::new(plan());
            merged.expect(1).unwrap();
            merged.merge(0, &moments.to_bytes()).unwrap();
            assert_eq!(merged.take(1).unwrap()[0].finish().products, alone.finish().products);
        }
    }
}
