//! Models as SQL expressions that mean the same in DuckDB, PostgreSQL and DataFusion.
//!
//! Numbers are written with an exponent, because DuckDB takes `0.1` for a decimal and `1e-1` for a double. PostgreSQL takes both for decimals, so that what begins a sum
//! is cast. Values beyond ±1e100 are missing, NaN among them, which all three sort above every number: BETWEEN leaves them out. PostgreSQL refuses an `exp` that is too
//! large or too small for a double, and its argument is kept within ±700.

use crate::models::additive::{Additive, Effect};
use crate::models::table::{ClassKind, Parts, broken};
use crate::models::trees::{LARGEST, Left, Node, Trees};
use crate::reading::bins;
use crate::{Error, Result, Values};

/// A model, written.
pub(crate) struct Written {
    pub prediction: String,
    pub classes: Vec<String>,
    /// The probability of each class.
    pub probabilities: Vec<String>,
}

pub(crate) fn write(table: &[Values]) -> Result<Written> {
    let parts = Parts::read(table)?;
    let scores = match parts.kind.as_str() {
        "linear" | "logistic" => additive(&parts, &Additive::read(&parts)?),
        "boosting" => trees(&parts, &Trees::read(&parts)?),
        "mlp" => {
            return Err(Error::data(
                "a network has no SQL; apply it with predict, or fit model => 'linear', 'logistic' or 'boosting'",
            ));
        }
        _ => return Err(broken("its `model` is unknown")),
    };
    let kind = ClassKind::of(&parts.classes);
    let class = |class: &String| match kind {
        ClassKind::Text => text(class),
        ClassKind::Whole | ClassKind::Flag => class.clone(),
    };
    let (prediction, probabilities) = match (&parts.classes[..], &scores[..]) {
        ([], [score, ..]) => (score.clone(), Vec::new()),
        ([first, second], [odds, ..]) => {
            let share = format!("1e0 / (1e0 + {})", exp(&format!("-({odds})")));
            let prediction = format!("CASE WHEN {odds} > 0e0 THEN {} ELSE {} END", class(second), class(first));
            // As predict has it: what the second leaves.
            (prediction, vec![format!("1e0 - {share}"), share])
        }
        (classes, scores) => {
            let (last, others) = (classes.len() - 1, &classes[..classes.len() - 1]);
            let whens: Vec<String> =
                others.iter().zip(scores).map(|(of, score)| format!("WHEN {score} THEN {}", class(of))).collect();
            let prediction =
                format!("CASE greatest({}) {} ELSE {} END", scores.join(", "), whens.join(" "), class(&classes[last]));
            let share = |own: &String| {
                let terms: Vec<String> = scores.iter().map(|other| exp(&format!("({other}) - ({own})"))).collect();
                format!("1e0 / ({})", terms.join(" + "))
            };
            (prediction, scores.iter().map(share).collect())
        }
    };
    Ok(Written { prediction, classes: parts.classes, probabilities })
}

/// The scores of a model that adds up.
fn additive(parts: &Parts, model: &Additive) -> Vec<String> {
    let score = |(output, intercept): (usize, &f64)| {
        let mut sum = double(*intercept);
        for (feature, effect) in parts.features.iter().zip(&model.effects) {
            let column = name(&feature.name);
            match effect {
                Effect::Number { slopes, missing } => {
                    let (slope, missing) = (literal(slopes[output]), literal(missing[output]));
                    let number = format!("CAST({column} AS DOUBLE PRECISION)");
                    let is_value = format!("{number} BETWEEN {} AND {}", literal(-LARGEST), literal(LARGEST));
                    sum += &format!(" + CASE WHEN {is_value} THEN {slope} * {number} ELSE {missing} END");
                }
                Effect::Text { names, levels, missing, new, .. } => {
                    let when = |(level, values): (&String, &Vec<f64>)| {
                        format!("WHEN {column} = {} THEN {}", text(level), literal(values[output]))
                    };
                    let whens: Vec<String> = names.iter().zip(levels).map(when).collect();
                    let (missing, new) = (missing[output], new[output]);
                    let null =
                        if missing == new { String::new() } else { format!("WHEN {column} IS NULL THEN {} ", literal(missing)) };
                    sum += &match whens.is_empty() && null.is_empty() {
                        true => format!(" + {}", literal(new)),
                        false => format!(" + CASE {null}{} ELSE {} END", whens.join(" "), literal(new)),
                    };
                }
            }
        }
        sum
    };
    model.intercepts.iter().enumerate().map(score).collect()
}

/// The scores of trees.
fn trees(parts: &Parts, model: &Trees) -> Vec<String> {
    let score = |(base, trees): (&f64, &Vec<Vec<Node>>)| {
        let mut sum = double(*base);
        trees.iter().for_each(|tree| sum += &format!(" + {}", branch(parts, model, tree, 0)));
        match model.target == (0.0, 1.0) {
            true => sum,
            false => format!("{} + {} * ({sum})", double(model.target.0), literal(model.target.1)),
        }
    };
    model.base.iter().zip(&model.trees).map(score).collect()
}

/// A node of a tree and all below it.
fn branch(parts: &Parts, model: &Trees, tree: &[Node], at: usize) -> String {
    let (feature, left, missing_left, others_left, right) = match &tree[at] {
        Node::Leaf(value) => return literal(*value),
        Node::Split { feature, left, missing_left, others_left, right } => (*feature, left, *missing_left, *others_left, *right),
    };
    // Levels that are not known go with the others, where there are any, and otherwise with NULL.
    let unlisted_left = others_left.unwrap_or(missing_left);
    let column = name(&parts.features[feature].name);
    // What is listed goes one way; all that is not goes the other.
    let (listed, others) = if unlisted_left { (right, at + 1) } else { (at + 1, right) };
    let condition = match left {
        Left::UpTo(last) if missing_left => {
            format!("{column} BETWEEN {} AND {}", literal(bins::value(bins::key(*last) + 1)), literal(LARGEST))
        }
        Left::UpTo(last) => format!("{column} BETWEEN {} AND {}", literal(-LARGEST), literal(*last)),
        Left::Levels(flags) => {
            let listed = model.levels[feature].iter().zip(flags).filter(|(_, is_left)| **is_left != unlisted_left);
            let levels: Vec<String> = listed.map(|(level, _)| text(level)).collect();
            let mut conditions = Vec::new();
            if missing_left != unlisted_left {
                conditions.push(format!("{column} IS NULL"));
            }
            if !levels.is_empty() {
                conditions.push(format!("{column} IN ({})", levels.join(", ")));
            }
            if conditions.is_empty() {
                return branch(parts, model, tree, others);
            }
            conditions.join(" OR ")
        }
    };
    let (listed, others) = (branch(parts, model, tree, listed), branch(parts, model, tree, others));
    format!("CASE WHEN {condition} THEN {listed} ELSE {others} END")
}

fn exp(argument: &str) -> String {
    format!("exp(least(7e2, greatest(-7e2, {argument})))")
}

/// A number with all its digits.
fn literal(value: f64) -> String {
    // What is below zero stands in brackets, because two minus signs begin a comment.
    if value < 0.0 { format!("({value:e})") } else { format!("{:e}", value + 0.0) }
}

fn double(value: f64) -> String {
    format!("CAST({value:e} AS DOUBLE PRECISION)")
}

/// The name of a column.
fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
