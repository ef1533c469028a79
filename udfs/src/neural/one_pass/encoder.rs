//! Turns rows of a table into inputs of the network, as the first rows settled it.

use std::collections::BTreeMap;

use crate::network::samples::{Inputs, Loss};
use crate::reading::block::is_value;
use crate::reading::coding::TextColumns;
use crate::reading::intake::Intake;
use crate::{Block, Class, Coding, Error, Label, NO_LEVEL, Problem, Result, Rows};

/// Turns rows of a table into inputs of the network.
pub(super) struct Encoder {
    pub columns: Vec<Column>,
    /// The position of each class; empty for numbers.
    classes: BTreeMap<String, u32>,
    loss: Loss,
    target: (f64, f64),
    label: String,
}

/// An input: the feature it comes from, and how.
pub(super) struct Column {
    pub feature: usize,
    coding: Coding,
    mean: f64,
    factor: f64,
}

/// What the codes of a run of rows stand for.
pub(super) struct Maps {
    /// The class of each of the label's names.
    classes: Vec<Option<u32>>,
    /// For each feature that is a text, the input that is 1 for each of its codes. The same name may have several.
    inputs: Vec<Vec<u32>>,
}

impl Encoder {
    pub(super) fn new(problem: &Problem, rows: &Rows, inputs: &Inputs, label: &str) -> Self {
        let column = |(column, factor): (&usize, &f64)| Column {
            feature: rows.design[*column].feature,
            coding: rows.origins[*column].coding.clone(),
            mean: rows.origins[*column].mean,
            factor: *factor,
        };
        let classes = match &problem.label {
            Label::Numbers => BTreeMap::new(),
            Label::Classes(classes) => classes.iter().cloned().zip(0..).collect(),
        };
        Self {
            columns: inputs.columns.iter().zip(&inputs.factors).map(column).collect(),
            classes,
            loss: inputs.loss,
            target: inputs.target,
            label: label.to_string(),
        }
    }

    pub(super) fn maps(&self, label: &Block<'_>, features: &[Block<'_>]) -> Maps {
        let class = |name: &&str| self.classes.get(*name).copied();
        let classes = match label {
            Block::Levels { names, .. } => names.iter().map(class).collect(),
            Block::Numbers(_) => Vec::new(),
        };
        let input = |(feature, block): (usize, &Block<'_>)| match block {
            Block::Levels { names, .. } => {
                let own = (0..).zip(&self.columns).filter(|(_, column)| column.feature == feature);
                let columns = TextColumns::new(own.map(|(at, column)| (at, &column.coding)));
                names.iter().map(|name| columns.find(name)).collect()
            }
            Block::Numbers(_) => Vec::new(),
        };
        Maps { classes, inputs: features.iter().enumerate().map(input).collect() }
    }

    /// The label of each row that counts; of the others 0.
    pub(super) fn targets(
        &self,
        label: &Block<'_>,
        maps: &Maps,
        start: usize,
        count: usize,
        intake: &Intake,
    ) -> Result<Vec<f32>> {
        let unseen = |name: String| {
            Error::data(format!(
                "class `{name}` of `{}` does not occur in the rows first read; raise shuffle_buffer, or leave passes out",
                self.label
            ))
        };
        let mut targets = vec![0.0; count];
        for row in &intake.kept {
            targets[*row] = match label {
                Block::Levels { codes, names } => {
                    let code = codes[start + row] as usize;
                    maps.classes[code].ok_or_else(|| unseen(names[code].to_string()))? as f32
                }
                Block::Numbers(_) if self.loss == Loss::Squared => ((intake.labels[*row] - self.target.0) / self.target.1) as f32,
                Block::Numbers(_) => {
                    let name = Class::of_number(intake.labels[*row]).to_string();
                    self.classes.get(&name).copied().ok_or_else(|| unseen(name))? as f32
                }
            };
        }
        Ok(targets)
    }

    /// Writes the input at a place of some rows.
    pub(super) fn encode(
        &self,
        at: usize,
        maps: &Maps,
        feature: &Block<'_>,
        start: usize,
        inputs: &mut [f32],
        scratch: &mut [f64],
    ) {
        let column = &self.columns[at];
        let scaled = |x: f64| ((x - column.mean) * column.factor) as f32;
        let is_missing = column.coding == Coding::Missing;
        match feature {
            Block::Numbers(numbers) => {
                let scratch = &mut scratch[..inputs.len()];
                let values = match numbers.as_slice() {
                    Some(values) => &values[start..start + inputs.len()],
                    None => {
                        numbers.fill(start, scratch);
                        scratch
                    }
                };
                if is_missing {
                    inputs.iter_mut().zip(values).for_each(|(input, x)| *input = scaled(f64::from(!is_value(*x))));
                } else {
                    let value = |x: f64| if is_value(x) { scaled(x) } else { 0.0 };
                    inputs.iter_mut().zip(values).for_each(|(input, x)| *input = value(*x));
                }
            }
            Block::Levels { codes, .. } => {
                let codes = &codes[start..start + inputs.len()];
                let input_of = &maps.inputs[column.feature];
                let is_on = |code: u32| if code == NO_LEVEL { is_missing } else { input_of[code as usize] == at as u32 };
                inputs.iter_mut().zip(codes).for_each(|(input, code)| *input = scaled(f64::from(is_on(*code))));
            }
        }
    }
}
