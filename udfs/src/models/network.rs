//! A network as rows of a table, and applied from it.

use std::collections::BTreeMap;

use crate::judging::judge;
use crate::models::fitted::{Column, OTHERS, Scores};
use crate::models::table::{Parts, Row, bytes_for, class_of, head, place, set, target_rows, whole};
use crate::models::table::{broken, value};
use crate::network::kept::KeptLayer;
use crate::network::mlp::Mlp;
use crate::network::samples::{Inputs, Loss};
use crate::network::training::Training;
use crate::reading::coding::Coding;
use crate::reading::plan::Feature;
use crate::{Label, Problem, Result, Run, Split};

/// A network that has been trained, and how columns became its inputs.
pub(crate) fn train(problem: &Problem, training: &Training, run: &Run) -> Result<(Mlp, Inputs)> {
    let rows = problem.rows();
    let columns = (0..rows.columns.len()).filter(|at| rows.columns[*at].iter().any(|x| *x != 0.0)).collect();
    let inputs = Inputs::new(problem, rows, columns);
    let samples = std::sync::Arc::new(inputs.samples(rows, &Split::none(rows.rows()).train, run)?);
    let all = samples.all();
    let steps = judge::steps(training, samples.pass_rows(&all));
    let trainer = judge::train(&inputs, (&samples, &all), training, steps, run)?;
    Ok((trainer.mlp, inputs))
}

/// Trains a network, as rows of a table.
pub(crate) fn fit(problem: &Problem, training: &Training, run: &Run) -> Result<Vec<Row>> {
    let (mlp, inputs) = train(problem, training, run)?;
    let data = problem.rows();
    let classes: &[String] = if let Label::Classes(classes) = &problem.label { classes } else { &[] };
    let mut used: Vec<usize> = inputs.columns.iter().map(|column| data.design[*column].feature).collect();
    used.dedup();
    let name = |feature: usize| problem.features()[feature].as_str();
    let is_text = |feature: usize| {
        inputs.columns.iter().any(|at| data.design[*at].feature == feature && data.origins[*at].coding.is_of_text())
    };
    let features = used.iter().map(|at| Feature { name: name(*at).to_string(), is_text: is_text(*at) });
    let mut rows = head("mlp", classes, &features.collect::<Vec<_>>());
    let layers = mlp.kept();
    let _memory = run.reserve(bytes_for(layers.iter().map(|layer| layer.weights.len() + layer.bias.len()).sum()))?;
    if classes.is_empty() {
        rows.extend(target_rows(inputs.target));
    }
    let input = |at: usize, part: &str| {
        let (column, origin) = (data.design[inputs.columns[at]], &data.origins[inputs.columns[at]]);
        let level = if let Coding::Level(level) = &origin.coding { Some(level.as_str()) } else { None };
        Row::new(part).feature(name(column.feature)).level(level)
    };
    for (at, factor) in inputs.factors.iter().enumerate() {
        let origin = &data.origins[inputs.columns[at]];
        let part = match origin.coding {
            Coding::Missing => "flag",
            Coding::Others => "others",
            _ => "mean",
        };
        rows.push(input(at, part).node(at).value(origin.mean));
        rows.push(input(at, "factor").node(at).value(*factor));
    }
    let last = layers.len() - 1;
    for (step, layer) in layers.iter().enumerate() {
        let outputs = layer.bias.len();
        let class = |node: usize| if step == last { class_of(classes, node) } else { None };
        for (at, weight) in layer.weights.iter().enumerate() {
            let (link, node) = (at / outputs, at % outputs);
            let row = if step == 0 { input(link, "weight") } else { Row::new("weight") };
            rows.push(row.class(class(node)).step(step).node(node).link(link).value(f64::from(*weight)));
        }
        for (node, bias) in layer.bias.iter().enumerate() {
            rows.push(Row::new("bias").class(class(node)).step(step).node(node).value(f64::from(*bias)));
        }
    }
    Ok(rows)
}

/// A network that was read from a table.
pub(crate) struct Network {
    mlp: Mlp,
    inputs: Vec<Input>,
    target: (f64, f64),
    /// The levels of each feature that is text, in order.
    levels: Vec<Vec<String>>,
    /// Whether each feature has an input for the others, and one for NULL.
    has_others: Vec<bool>,
    has_flag: Vec<bool>,
}

/// How a feature becomes an input.
struct Input {
    feature: usize,
    coding: Code,
    mean: f64,
    factor: f64,
}

enum Code {
    Number,
    /// A place among the feature's levels.
    Level(u32),
    Others,
    Missing,
}

impl Network {
    pub fn read(parts: &Parts) -> Result<Self> {
        let mut levels: Vec<Vec<String>> = vec![Vec::new(); parts.features.len()];
        for row in parts.of("mean") {
            levels[parts.feature(row)?].extend(row.level.clone());
        }
        levels.iter_mut().for_each(|levels| levels.sort());
        let mut found: BTreeMap<usize, (usize, Code, f64)> = BTreeMap::new();
        for row in parts.of("mean").iter().chain(parts.of("flag")).chain(parts.of("others")) {
            let feature = parts.feature(row)?;
            let coding = match (&row.level, row.part.as_str(), parts.features[feature].is_text) {
                (None, "flag", _) => Code::Missing,
                (None, "others", true) => Code::Others,
                (None, _, false) => Code::Number,
                (Some(level), "mean", true) => {
                    Code::Level(levels[feature].binary_search(level).map_err(|_| broken("a level is not there"))? as u32)
                }
                _ => return Err(broken("an input has a `level` that it should not have, or lacks one")),
            };
            if found.insert(place(row, row.node)?, (feature, coding, value(row)?)).is_some() {
                return Err(broken("an input is there twice"));
            }
        }
        let mut factors = vec![None; found.len()];
        for row in parts.of("factor") {
            let at = place(row, row.node)?;
            set(factors.get_mut(at).ok_or_else(|| broken("a `factor` is of no input"))?, row)?;
        }
        let factors = whole("factor", factors)?;
        if found.keys().enumerate().any(|(at, node)| at != *node) {
            return Err(broken("its inputs do not count from 0 on"));
        }
        let has = |code: fn(&Code) -> bool| -> Vec<bool> {
            (0..parts.features.len())
                .map(|at| found.values().any(|(feature, coding, _)| *feature == at && code(coding)))
                .collect()
        };
        let (has_others, has_flag) = (has(|code| matches!(code, Code::Others)), has(|code| matches!(code, Code::Missing)));
        let input = |((feature, coding, mean), factor)| Input { feature, coding, mean, factor };
        let inputs: Vec<Input> = found.into_values().zip(factors).map(input).collect();
        let layers = layers(parts, inputs.len())?;
        let loss = match parts.classes.len() {
            0 => Loss::Squared,
            2 => Loss::Logistic,
            classes => Loss::Softmax(classes),
        };
        if layers.last().is_none_or(|layer| layer.bias.len() != loss.outputs()) {
            return Err(broken("its last layer must have a neuron for each score"));
        }
        Ok(Self { mlp: Mlp::of_kept(loss, &layers), inputs, target: parts.target()?, levels, has_others, has_flag })
    }

    /// The inputs of a row.
    fn fill(&self, columns: &[Column], row: usize, values: &mut [f32]) {
        for (input, value) in self.inputs.iter().zip(values) {
            // Without a value a number is 0, as it was in training; and so is a text of a value that training has not met.
            let x = match (&columns[input.feature], &input.coding) {
                (Column::Numbers(values), Code::Number) => values[row],
                (Column::Numbers(values), _) => f64::from(values[row].is_nan()),
                (Column::Levels(places), coding) => {
                    let (place, feature) = (places[row], input.feature);
                    let is_null = place == crate::NO_LEVEL;
                    let is_met =
                        (place as usize) < self.levels[feature].len() || place == OTHERS || is_null && self.has_flag[feature];
                    match coding {
                        _ if !is_met => f64::NAN,
                        Code::Level(level) => f64::from(place == *level),
                        Code::Others => f64::from(place == OTHERS),
                        Code::Number | Code::Missing => f64::from(is_null),
                    }
                }
            };
            *value = if x.is_nan() { 0.0 } else { ((x - input.mean) * input.factor) as f32 };
        }
    }
}

/// The layers, each with as many inputs as the one before it has neurons.
fn layers(parts: &Parts, inputs: usize) -> Result<Vec<KeptLayer>> {
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for row in parts.of("bias") {
        *sizes.entry(place(row, row.step)?).or_default() += 1;
    }
    if sizes.is_empty() || sizes.keys().enumerate().any(|(at, step)| at != *step) {
        return Err(broken("its layers do not count from 0 on"));
    }
    let sizes: Vec<usize> = sizes.into_values().collect();
    let before = |step: usize| if step == 0 { inputs } else { sizes[step - 1] };
    let mut weights: Vec<Vec<Option<f64>>> = (0..sizes.len()).map(|step| vec![None; before(step) * sizes[step]]).collect();
    let mut bias: Vec<Vec<Option<f64>>> = sizes.iter().map(|size| vec![None; *size]).collect();
    let stray = || broken("a weight is of a neuron that there is not");
    for row in parts.of("weight") {
        let (step, node, link) = (place(row, row.step)?, place(row, row.node)?, place(row, row.link)?);
        if step >= sizes.len() || node >= sizes[step] || link >= before(step) {
            return Err(stray());
        }
        set(&mut weights[step][link * sizes[step] + node], row)?;
    }
    for row in parts.of("bias") {
        let (step, node) = (place(row, row.step)?, place(row, row.node)?);
        set(bias[step].get_mut(node).ok_or_else(stray)?, row)?;
    }
    let short = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect::<Vec<f32>>();
    let layer = |(weights, bias)| Ok(KeptLayer { weights: short(whole("weight", weights)?), bias: short(whole("bias", bias)?) });
    weights.into_iter().zip(bias).map(layer).collect()
}

impl Scores for Network {
    fn scores(&self, rows: usize, columns: &[Column], run: &Run) -> Result<Vec<f64>> {
        let outputs = self.mlp.outputs_of(self.inputs.len(), rows, |row, values| self.fill(columns, row, values), run)?;
        Ok(outputs.into_iter().map(|output| self.target.0 + self.target.1 * f64::from(output)).collect())
    }

    fn levels(&self, feature: usize) -> Vec<&str> {
        self.levels[feature].iter().map(String::as_str).collect()
    }

    fn has_others(&self, feature: usize) -> bool {
        self.has_others[feature]
    }
}
