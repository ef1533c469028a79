//! What scores become: a number, or a class with its probabilities, and what there is to say of a row.

use crate::contract::model::{Applied, Made, Model};
use crate::contract::report::Kind;
use crate::models::additive::Additive;
use crate::models::network::Network;
use crate::models::table::{ClassKind, Parts, broken};
use crate::models::trees::Trees;
use crate::reading::block::{Block, NO_LEVEL, is_value};
use crate::reading::plan::Feature;
use crate::{Result, Run, Values};

/// A model that scores rows.
pub(crate) trait Scores: Send + Sync {
    /// The scores of some rows, one row after the other: the number itself, log odds of the second of two classes, or one for each class.
    fn scores(&self, rows: usize, columns: &[Column], run: &Run) -> Result<Vec<f64>>;

    /// The levels of a text that the model knows, in an order of its own.
    fn levels(&self, feature: usize) -> Vec<&str>;

    /// Whether it also knows that a text has others.
    fn has_others(&self, feature: usize) -> bool;
}

/// Values of a feature for some rows.
pub(crate) enum Column {
    /// NaN: no value.
    Numbers(Vec<f64>),
    /// Places among [`Scores::levels`]; [`NO_LEVEL`] is NULL, and a level that is not among them is one of the [`OTHERS`],
    /// or [`NEW`] where there were none.
    Levels(Vec<u32>),
}

/// A level that the model does not know.
pub(crate) const NEW: u32 = NO_LEVEL - 1;
/// One of the levels that were not told apart.
pub(crate) const OTHERS: u32 = NO_LEVEL - 2;

/// A model with all that `predict` needs.
pub(crate) struct Fitted {
    pub classes: Vec<String>,
    pub features: Vec<Feature>,
    scores: Box<dyn Scores>,
}

impl Fitted {
    /// The model that a table holds.
    pub fn read(table: &[Values]) -> Result<Self> {
        let parts = Parts::read(table)?;
        let scores: Box<dyn Scores> = match parts.kind.as_str() {
            "linear" | "logistic" => Box::new(Additive::read(&parts)?),
            "boosting" => Box::new(Trees::read(&parts)?),
            "mlp" => Box::new(Network::read(&parts)?),
            other => {
                return Err(broken(&format!(
                    "its `model` is '{}', which must be 'linear', 'logistic', 'boosting' or 'mlp'",
                    crate::shown(other)
                )));
            }
        };
        Ok(Self { classes: parts.classes, features: parts.features, scores })
    }

    fn columns(&self, rows: usize, blocks: &[Block<'_>]) -> Vec<Column> {
        let column = |(feature, block): (usize, &Block<'_>)| match block {
            Block::Numbers(numbers) => {
                let mut values = vec![0.0; rows];
                numbers.fill(0, &mut values);
                values.iter_mut().filter(|value| !is_value(**value)).for_each(|value| *value = f64::NAN);
                Column::Numbers(values)
            }
            Block::Levels { codes, names } => {
                let known = self.scores.levels(feature);
                let mut places: Vec<(&str, u32)> = known.iter().enumerate().map(|(at, name)| (*name, at as u32)).collect();
                places.sort_unstable();
                let unlisted = if self.scores.has_others(feature) { OTHERS } else { NEW };
                let place =
                    |name: &&str| places.binary_search_by_key(name, |(name, _)| *name).map_or(unlisted, |at| places[at].1);
                let places: Vec<u32> = names.iter().map(place).collect();
                Column::Levels(codes.iter().map(|code| places.get(*code as usize).copied().unwrap_or(NO_LEVEL)).collect())
            }
        };
        blocks.iter().enumerate().map(column).collect()
    }
}

impl Model for Fitted {
    fn features(&self) -> Vec<Feature> {
        self.features.clone()
    }

    fn predicts(&self) -> Kind {
        match ClassKind::of(&self.classes) {
            _ if self.classes.is_empty() => Kind::Number,
            ClassKind::Whole => Kind::Whole,
            ClassKind::Flag => Kind::Flag,
            ClassKind::Text => Kind::Text,
        }
    }

    fn names(&self, output: &str) -> Vec<String> {
        match output {
            "notes" => {
                let both = |feature: &Feature| [format!("{} is NULL", feature.name), format!("{} has a new value", feature.name)];
                self.features.iter().flat_map(both).collect()
            }
            _ => self.classes.clone(),
        }
    }

    fn apply(&self, rows: usize, blocks: &[Block<'_>], wanted: &[&str], run: &Run) -> Result<Applied> {
        run.check()?;
        let columns = self.columns(rows, blocks);
        let mut made = Vec::new();
        if wanted.contains(&"notes") {
            made.push(("notes", notes(rows, &columns)));
        }
        if wanted.iter().any(|output| *output != "notes") {
            let scores = self.scores.scores(rows, &columns, run)?;
            if self.classes.is_empty() {
                made.push(("prediction", Made::Numbers(scores)));
                made.push(("probability", Made::Nothing(rows)));
                made.push(("probabilities", Made::Nothing(rows)));
            } else {
                let shares = probabilities(&scores, self.classes.len());
                let classes: Vec<usize> = scores.chunks(scores.len() / rows.max(1)).map(predicted).collect();
                let own = classes.iter().zip(shares.chunks(self.classes.len())).map(|(class, shares)| shares[*class]).collect();
                made.push(("prediction", Made::Names(classes.iter().map(|class| *class as u32).collect())));
                made.push(("probability", Made::Numbers(own)));
                made.push(("probabilities", Made::Shares(shares)));
            }
        }
        Ok(Applied { rows: None, columns: made })
    }
}

/// The class that scores are for; of equal ones the first.
fn predicted(scores: &[f64]) -> usize {
    match scores {
        [odds] => usize::from(*odds > 0.0),
        scores => (0..scores.len()).fold(0, |best, class| if scores[class] > scores[best] { class } else { best }),
    }
}

/// The probability of every class, row by row.
pub(crate) fn probabilities(scores: &[f64], classes: usize) -> Vec<f64> {
    if classes == 2 {
        let both = |odds: &f64| {
            let second = 1.0 / (1.0 + (-odds).exp());
            [1.0 - second, second]
        };
        return scores.iter().flat_map(both).collect();
    }
    let mut shares = scores.to_vec();
    for row in shares.chunks_mut(classes) {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|score| *score = (*score - most).exp());
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|share| *share /= total);
    }
    shares
}

/// What each row lacks.
fn notes(rows: usize, columns: &[Column]) -> Made {
    let (mut lengths, mut names) = (Vec::with_capacity(rows), Vec::new());
    for row in 0..rows {
        let before = names.len();
        for (feature, column) in columns.iter().enumerate() {
            let first = 2 * feature as u32;
            match column {
                Column::Numbers(values) => names.extend(values[row].is_nan().then_some(first)),
                Column::Levels(places) if places[row] == NO_LEVEL => names.push(first),
                Column::Levels(places) => names.extend((places[row] == NEW).then_some(first + 1)),
            }
        }
        lengths.push((names.len() - before) as u32);
    }
    Made::Lists { lengths, names }
}
