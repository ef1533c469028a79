//! A batch of rows: what counts of it is packed block by block, and the sums of its products are added to the totals.

use std::collections::BTreeMap;

use super::scratch::Scratch;
use super::{Column, Moments, entry, fold, triangle};
use crate::Result;
use crate::kernels::double::Double;
use crate::kernels::team::Team;
use crate::kernels::tiles::Tiles;
use crate::reading::block::{Block, NO_LEVEL, Numbers, is_out_of_range, is_value};
use crate::reading::plan::Class;

/// Columns from which on a batch is worth waking another thread for.
const SHARED_COLUMNS: usize = 300;

/// The columns that a row has in common with others: its class, and one of each text.
struct Flags {
    /// Of each row that counts; empty if classes are not counted.
    classes: Vec<usize>,
    texts: Vec<Text>,
}

/// Where the values of a text have their columns.
struct Text {
    feature: usize,
    /// Of each code of the batch.
    of_code: Vec<usize>,
    null: usize,
}

impl Moments {
    /// Adds a run of rows: its label, its weights, and one block for each feature.
    pub fn update(&mut self, rows: usize, label: Block<'_>, weights: Option<&dyn Numbers>, features: &[Block<'_>]) -> Result<()> {
        assert_eq!(features.len(), self.plan().features.len(), "one block for each feature of the plan");
        self.reserve()?;
        self.scratch.intake.keep(&self.plan.plan, 0..rows, label, weights, features, &mut self.seen)?;
        if !self.scratch.intake.kept.is_empty() {
            let flags = self.flags(label, features)?;
            self.reserve()?;
            self.scratch.begin(self.places.lanes.len(), 2 + 2 * features.len(), self.columns.len());
            self.totals.resize(triangle(self.columns.len()), Double::default());
            if self.places.lanes.len() < SHARED_COLUMNS {
                self.sum_up(rows, features, &flags, None);
            } else {
                Team::gather(|team| self.sum_up(rows, features, &flags, Some(team)));
            }
            self.fold_batch();
        }
        // Made anew for each batch, which is nothing beside the batch, and much beside a group of many.
        self.scratch = Scratch::default();
        Ok(())
    }

    /// Finds the columns of the classes and values that the rows have. From here on no column that is not a lane comes or goes.
    fn flags(&mut self, label: Block<'_>, features: &[Block<'_>]) -> Result<Flags> {
        let used = self.learn(features);
        let classes = self.classes_of(label)?;
        let mut texts = Vec::new();
        for (feature, (block, used)) in features.iter().zip(used).enumerate() {
            if let Block::Levels { names, .. } = block {
                let of = |(name, used): (&&str, bool)| if used { self.value(feature, name) } else { usize::MAX };
                let of_code = names.iter().zip(used).map(of).collect();
                texts.push(Text { feature, of_code, null: self.places.null[feature].unwrap_or(usize::MAX) });
            }
        }
        Ok(Flags { classes: classes.unwrap_or_default(), texts })
    }

    /// The column of each row's class; none if classes are not counted, or are given up because an integer has too many values.
    fn classes_of(&mut self, label: Block<'_>) -> Result<Option<Vec<usize>>> {
        if self.places.classes.is_none() {
            return Ok(None);
        }
        let mut column_of: BTreeMap<u64, usize> = BTreeMap::new();
        let mut classes = Vec::with_capacity(self.scratch.intake.kept.len());
        for position in 0..self.scratch.intake.kept.len() {
            let row = self.scratch.intake.kept[position];
            let (class, code) = match label {
                Block::Numbers(_) => (None, self.scratch.intake.labels[row].to_bits()),
                Block::Levels { codes, names } => (Some(names[codes[row] as usize]), u64::from(codes[row])),
            };
            let column = match column_of.get(&code) {
                Some(column) => *column,
                None => {
                    let class = match class {
                        Some(text) => Class::Text(text.to_string()),
                        None => Class::of_number(f64::from_bits(code)),
                    };
                    let column = self.place(Column::Class(class));
                    column_of.insert(code, column);
                    if self.places.classes.as_ref().is_some_and(|classes| classes.len() > self.plan().classes_max()) {
                        if !self.plan().keeps_number() {
                            return Err(self.plan().too_many_classes());
                        }
                        self.forget_classes();
                        return Ok(None);
                    }
                    column
                }
            };
            classes.push(column);
        }
        Ok(Some(classes))
    }

    /// Packs the rows block by block, and adds up their products. A team helps: who reads is a thread of somebody else's, which must not wait
    /// for a pool.
    fn sum_up(&mut self, rows: usize, features: &[Block<'_>], flags: &Flags, team: Option<&Team>) {
        let mut first = 0;
        for start in (0..rows).step_by(Tiles::ROWS) {
            let block = Tiles::ROWS.min(rows - start);
            let count = self.scratch.prepare(first, start, block);
            if count == 0 {
                continue;
            }
            self.pack(start, block, features);
            match team {
                Some(team) => self.scratch.tiles.accumulate_shared(count, team),
                None => self.scratch.tiles.accumulate(count),
            }
            self.add_flags(first, start, features, flags);
            first += count;
        }
    }

    /// Packs the kept rows of a block into the tiles.
    fn pack(&mut self, start: usize, block: usize, features: &[Block<'_>]) {
        for (lane, column) in self.places.lanes.iter().enumerate() {
            if matches!(self.columns[*column], Column::Null(_)) {
                self.scratch.clear(lane);
            }
        }
        self.scratch.set_ones();
        if let Some(lane) = self.places.label.and_then(|column| self.places.lane_of[column]) {
            let Scratch { values, intake, .. } = &mut self.scratch;
            values[..block].copy_from_slice(&intake.labels[start..start + block]);
            self.scratch.set_numbers(lane);
        }
        for (feature, column) in features.iter().enumerate() {
            if let Block::Numbers(numbers) = column {
                self.pack_numbers(feature, start, block, *numbers);
            }
        }
    }

    fn pack_numbers(&mut self, feature: usize, start: usize, block: usize, numbers: &dyn Numbers) {
        let lane = self.places.number[feature].and_then(|column| self.places.lane_of[column]);
        let lane = lane.expect("a feature that is read as numbers has a lane");
        numbers.fill(start, &mut self.scratch.values[..block]);
        if self.scratch.set_numbers(lane) {
            return;
        }
        let null = self.place(Column::Null(feature));
        let null = self.places.lane_of[null].expect("the NULL flag of a number is a lane");
        self.scratch.tiles.grow(self.places.lanes.len());
        for position in 0..self.scratch.kept.len() {
            let value = self.scratch.values[position];
            if !is_value(value) {
                self.scratch.flag(null, position);
                self.seen.missing[feature] += 1;
                self.seen.out_of_range += u64::from(is_out_of_range(value));
            }
        }
    }

    /// Adds the products of each row's flags: with each other to the totals, and with its numbers to the sums of the batch.
    fn add_flags(&mut self, first: usize, start: usize, features: &[Block<'_>], flags: &Flags) {
        if flags.classes.is_empty() && flags.texts.is_empty() {
            return;
        }
        let mut columns: Vec<usize> = Vec::with_capacity(1 + flags.texts.len());
        for position in 0..self.scratch.kept.len() {
            columns.clear();
            columns.extend(flags.classes.get(first + position));
            for text in &flags.texts {
                let Block::Levels { codes, .. } = features[text.feature] else { unreachable!("the plan fixes what is text") };
                let code = codes[start + self.scratch.kept[position]];
                columns.push(if code == NO_LEVEL { text.null } else { text.of_code[code as usize] });
            }
            let weight = Double::from(self.scratch.intake.weights.get(first + position).copied().unwrap_or(1.0));
            for (at, column) in columns.iter().enumerate() {
                for other in &columns[..=at] {
                    self.totals[entry(*column, *other)] += weight;
                }
                self.scratch.add_row(*column, position);
            }
        }
    }

    /// Adds the sums of the batch to the totals.
    fn fold_batch(&mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        let lanes = self.places.lanes.clone();
        let mut centres = vec![None; self.columns.len()];
        lanes.iter().zip(&scratch.centres).for_each(|(column, centre)| centres[*column] = *centre);
        let shifts = self.shifts(&centres);
        let shifts: Vec<Double> = lanes.iter().map(|column| shifts[*column]).collect();
        let null = |column: &usize| match self.columns[*column] {
            Column::Number(feature) => self.places.null[feature].and_then(|null| self.places.lane_of[null]),
            _ => None,
        };
        let nulls: Vec<Option<usize>> = lanes.iter().map(null).collect();
        let totals = &mut self.totals[..];
        fold_tiles(totals, &scratch.tiles, &shifts, &nulls, &lanes);
        for (column, sums) in scratch.sums() {
            for (lane, other) in lanes.iter().enumerate() {
                let mut total = Double::from(sums[lane]);
                if shifts[lane].high != 0.0 {
                    // The rows of the column in which the number is there.
                    let missing = nulls[lane].map_or(0.0, |null| sums[null]);
                    total += shifts[lane] * (Double::from(sums[0]) - Double::from(missing));
                }
                totals[entry(column, *other)] += total;
            }
        }
    }
}

/// [`fold`] for the lanes of a batch, with the processor's exact products where it has them.
fn fold_tiles(totals: &mut [Double], tiles: &Tiles, shifts: &[Double], nulls: &[Option<usize>], lanes: &[usize]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("fma") {
        #[target_feature(enable = "fma")]
        fn with_fma(totals: &mut [Double], tiles: &Tiles, shifts: &[Double], nulls: &[Option<usize>], lanes: &[usize]) {
            fold(totals, |i, j| Double::from(tiles.sum(i, j)), shifts, nulls, |i, j| entry(lanes[i], lanes[j]));
        }
        // SAFETY: the processor has the feature. With it an exact product is two instructions, not a call.
        return unsafe { with_fma(totals, tiles, shifts, nulls, lanes) };
    }
    fold(totals, |i, j| Double::from(tiles.sum(i, j)), shifts, nulls, |i, j| entry(lanes[i], lanes[j]));
}
