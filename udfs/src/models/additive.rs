//! Models that add up what each feature brings: linear and logistic ones.

use std::collections::BTreeMap;

use crate::models::fitted::{Column, NEW, OTHERS, Scores};
use crate::models::table::{Parts, Row, broken, class_of, head, set, whole};
use crate::reading::block::NO_LEVEL;
use crate::reading::coding::Coding;
use crate::reading::plan::Feature;
use crate::{Label, Problem, Result, Run};

/// What is added at first, and by each feature; all for each score.
#[derive(Debug, PartialEq)]
pub(crate) struct Additive {
    pub intercepts: Vec<f64>,
    pub effects: Vec<Effect>,
}

/// What a feature adds to each score.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Number {
        slopes: Vec<f64>,
        missing: Vec<f64>,
    },
    /// `new` is what a level brings that is not listed: one of the others, if it has any.
    Text {
        names: Vec<String>,
        levels: Vec<Vec<f64>>,
        missing: Vec<f64>,
        new: Vec<f64>,
        has_others: bool,
    },
}

/// A column of the design and what a model has learnt of it: a coefficient for each score, in the units of the table.
pub(crate) struct Learnt<'a> {
    pub column: usize,
    pub coefficients: &'a [f64],
}

/// Rows of a model's table, from what was learnt of the columns of a design; `intercepts` is the score of the mean row.
pub(crate) fn rows(kind: &str, problem: &Problem, intercepts: &[f64], learnt: &[Learnt<'_>]) -> Vec<Row> {
    let data = problem.rows();
    let classes: &[String] = if let Label::Classes(classes) = &problem.label { classes } else { &[] };
    let mut features: Vec<usize> = learnt.iter().map(|learnt| data.design[learnt.column].feature).collect();
    features.dedup();
    let is_text = |feature: usize| {
        (0..data.design.len()).any(|at| data.design[at].feature == feature && data.origins[at].coding.is_of_text())
    };
    let named = |feature: &usize| Feature { name: problem.features()[*feature].clone(), is_text: is_text(*feature) };
    let mut rows = head(kind, classes, &features.iter().map(named).collect::<Vec<_>>());
    let others = learnt.iter().filter(|learnt| data.origins[learnt.column].coding == Coding::Others);
    rows.extend(others.map(|learnt| Row::new("others").feature(&problem.features()[data.design[learnt.column].feature])));
    for (output, at_mean) in intercepts.iter().enumerate() {
        let class = class_of(classes, output);
        let mean = |learnt: &Learnt<'_>| learnt.coefficients[output] * data.origins[learnt.column].mean;
        let intercept = at_mean - learnt.iter().map(mean).sum::<f64>();
        rows.push(Row::new("intercept").class(class).value(intercept));
        for own in learnt.chunk_by(|a, b| data.design[a.column].feature == data.design[b.column].feature) {
            let feature = data.design[own[0].column].feature;
            let row = |part: &str| Row::new(part).class(class).feature(&problem.features()[feature]);
            // Without a value a number has its mean, and the flag of a missing one is 1. NULL and the others are levels of a text; of what was not seen the
            // mean of all levels is expected.
            let (mut mean, mut flag, mut others) = (0.0, None, None);
            for learnt in own {
                let (coefficient, origin) = (learnt.coefficients[output], &data.origins[learnt.column]);
                match &origin.coding {
                    Coding::Number => rows.push(row("coefficient").value(coefficient)),
                    Coding::Level(level) => rows.push(row("coefficient").level(Some(level)).value(coefficient)),
                    Coding::Missing => flag = Some(coefficient),
                    Coding::Others => others = Some(coefficient),
                    Coding::Bucket { .. } => unreachable!("buckets are refused"),
                }
                if is_text(feature) || origin.coding == Coding::Number {
                    mean += coefficient * origin.mean;
                }
            }
            if is_text(feature) {
                rows.push(row("missing").value(flag.unwrap_or(mean)));
                rows.push(row("new").value(others.unwrap_or(mean)));
            } else {
                rows.push(row("missing").value(mean + flag.unwrap_or(0.0)));
            }
        }
    }
    rows
}

impl Additive {
    pub fn read(parts: &Parts) -> Result<Self> {
        if (parts.kind == "linear") != parts.classes.is_empty() {
            return Err(broken("a linear model has no classes, and a logistic one has some"));
        }
        let intercepts = parts.of_outputs("intercept")?;
        let outputs = parts.outputs();
        let count = parts.features.len();
        let mut missing = vec![vec![None; outputs]; count];
        let mut new = vec![vec![None; outputs]; count];
        for (part, values) in [("missing", &mut missing), ("new", &mut new)] {
            for row in parts.of(part) {
                set(&mut values[parts.feature(row)?][parts.output(row)?], row)?;
            }
        }
        let mut slopes = vec![vec![None; outputs]; count];
        let mut levels: Vec<BTreeMap<String, Vec<Option<f64>>>> = vec![BTreeMap::new(); count];
        for row in parts.of("coefficient") {
            let (feature, output) = (parts.feature(row)?, parts.output(row)?);
            match (&row.level, parts.features[feature].is_text) {
                (Some(level), true) => {
                    set(&mut levels[feature].entry(level.clone()).or_insert_with(|| vec![None; outputs])[output], row)?;
                }
                (None, false) => set(&mut slopes[feature][output], row)?,
                _ => return Err(broken("a number has a `level`, or a coefficient of a text has none")),
            }
        }
        let mut effects = Vec::with_capacity(count);
        let found = missing.into_iter().zip(new).zip(slopes.into_iter().zip(levels));
        for (at, ((missing, new), (slopes, levels))) in found.enumerate() {
            let feature = &parts.features[at];
            let missing = whole("missing", missing)?;
            effects.push(if feature.is_text {
                let names = levels.keys().cloned().collect();
                let levels = levels.into_values().map(|values| whole("coefficient", values)).collect::<Result<_>>()?;
                Effect::Text { names, levels, missing, new: whole("new", new)?, has_others: parts.has_others(at) }
            } else {
                Effect::Number { slopes: whole("coefficient", slopes)?, missing }
            });
        }
        Ok(Self { intercepts, effects })
    }
}

impl Scores for Additive {
    fn scores(&self, rows: usize, columns: &[Column], run: &Run) -> Result<Vec<f64>> {
        let outputs = self.intercepts.len();
        let mut scores = Vec::with_capacity(rows * outputs);
        (0..rows).for_each(|_| scores.extend_from_slice(&self.intercepts));
        for (effect, column) in self.effects.iter().zip(columns) {
            run.check()?;
            for (row, scores) in scores.chunks_mut(outputs).enumerate() {
                match (effect, column) {
                    (Effect::Number { slopes, missing }, Column::Numbers(values)) => match values[row] {
                        x if x.is_nan() => scores.iter_mut().zip(missing).for_each(|(score, missing)| *score += missing),
                        x => scores.iter_mut().zip(slopes).for_each(|(score, slope)| *score += slope * x),
                    },
                    (Effect::Text { levels, missing, new, .. }, Column::Levels(places)) => {
                        let added = match places[row] {
                            NO_LEVEL => missing,
                            NEW | OTHERS => new,
                            level => &levels[level as usize],
                        };
                        scores.iter_mut().zip(added).for_each(|(score, added)| *score += added);
                    }
                    _ => unreachable!("a feature is asked for as what it is"),
                }
            }
        }
        Ok(scores)
    }

    fn levels(&self, feature: usize) -> Vec<&str> {
        match &self.effects[feature] {
            Effect::Text { names, .. } => names.iter().map(String::as_str).collect(),
            Effect::Number { .. } => Vec::new(),
        }
    }

    fn has_others(&self, feature: usize) -> bool {
        matches!(self.effects[feature], Effect::Text { has_others: true, .. })
    }
}
