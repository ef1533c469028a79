use crate::datum_wise::policy::{Decision, Policy};
use crate::datum_wise::walk::Walk;
use crate::problem::{Block, Feature, NO_LEVEL, is_value};
use crate::rows::Coding;
use crate::{Result, Run};

/// A column of the policy, found in a block of the input.
enum Source<'a> {
    Number { values: &'a [f64], mean: f64 },
    Level { codes: &'a [u32], level: Option<u32>, mean: f64 },
    MissingNumber { values: &'a [f64], mean: f64 },
    MissingLevel { codes: &'a [u32], mean: f64 },
}

impl Source<'_> {
    /// The coded value less its mean; 0 where there is none. A level that training did not see is none of the levels.
    fn value(&self, row: usize) -> f64 {
        match self {
            Source::Number { values, mean } => {
                if is_value(values[row]) {
                    values[row] - mean
                } else {
                    0.0
                }
            }
            Source::Level { codes, .. } if codes[row] == NO_LEVEL => 0.0,
            Source::Level { codes, level, mean } => f64::from(Some(codes[row]) == *level) - mean,
            Source::MissingNumber { values, mean } => f64::from(!is_value(values[row])) - mean,
            Source::MissingLevel { codes, mean } => f64::from(codes[row] == NO_LEVEL) - mean,
        }
    }
}

impl Policy {
    /// The columns of a table that the policy may ask for, and whether each is text.
    pub fn features(&self) -> Vec<Feature> {
        let mut features: Vec<Feature> = Vec::new();
        for column in &self.columns {
            let is_level = matches!(column.coding, Coding::Level(_));
            match features.iter_mut().find(|feature| feature.name == column.feature) {
                Some(feature) => feature.is_text |= is_level,
                None => features.push(Feature { name: column.feature.clone(), is_text: is_level }),
            }
        }
        features
    }

    /// Decides rows as they come: a block for each of [`Self::features`], a decision for each row.
    pub fn classify(
        &self,
        rows: usize,
        features: &[Block<'_>],
        run: &Run,
        mut receive: impl FnMut(usize, &Decision),
    ) -> Result<()> {
        let numbers: Vec<Vec<f64>> = features
            .iter()
            .map(|block| {
                let Block::Numbers(numbers) = block else { return Vec::new() };
                let mut values = vec![0.0; rows];
                numbers.fill(0, &mut values);
                values
            })
            .collect();
        let names = self.features();
        let source = |column: &crate::datum_wise::PolicyColumn| {
            let at = names.iter().position(|feature| feature.name == column.feature).expect("a feature for each column");
            let mean = column.mean;
            match (&features[at], &column.coding) {
                (Block::Numbers(_), Coding::Number) => Source::Number { values: &numbers[at], mean },
                (Block::Numbers(_), _) => Source::MissingNumber { values: &numbers[at], mean },
                (Block::Levels { codes, names }, Coding::Level(level)) => {
                    Source::Level { codes, level: names.iter().position(|name| name == level).map(|at| at as u32), mean }
                }
                (Block::Levels { codes, .. }, _) => Source::MissingLevel { codes, mean },
            }
        };
        let sources: Vec<Source<'_>> = self.columns.iter().map(source).collect();
        let (opening, mut walk, mut decision) = (self.opening(), Walk::default(), Decision::default());
        for row in 0..rows {
            if row % 1024 == 0 {
                run.check()?;
            }
            self.decide(&opening, &mut walk, |column| sources[column].value(row), &mut decision);
            receive(row, &decision);
        }
        Ok(())
    }
}
