//! A model: the class whose mean is nearest. One function fits it, and its answer is the model's table; the other applies such a table to rows.

use std::collections::{BTreeMap, BTreeSet};

use pursuit_udfs::{
    Applied, Apply, Block, ColumnKind, Error, Feature, Label, Made, Model, Output, Problem, Report, Result, Run, Values, apply,
    report,
};

report! {
    /// The mean of every feature in every class.
    ///
    /// Features that are numbers only. The answer is all that nearest_mean needs.
    #[report(name = "nearest_mean_fit", aliases = [], labels = Classes)]
    pub struct NearestMeanFit {}
}

impl Report for NearestMeanFit {
    fn columns(&self) -> Vec<(&'static str, ColumnKind)> {
        vec![("class", ColumnKind::Text), ("feature", ColumnKind::Text), ("mean", ColumnKind::Number)]
    }

    fn report(&self, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let rows = problem.rows();
        let Label::Classes(classes) = &problem.label else { return Err(Error::data("the label must be a class")) };
        let (mut names, mut features, mut means) = (Vec::new(), Vec::new(), Vec::new());
        for (class, name) in classes.iter().enumerate() {
            run.check()?;
            for (column, place) in rows.design.iter().enumerate().filter(|(_, place)| place.is_number) {
                let members = (0..rows.rows()).filter(|row| rows.targets[*row] as usize == class);
                let (sum, count) = members.fold((0.0, 0.0), |(sum, count), row| (sum + rows.columns[column][row], count + 1.0));
                names.push(name.clone());
                features.push(problem.features()[place.feature].clone());
                // Columns come centred; what was subtracted is their origin's mean.
                means.push(rows.origins[column].mean + sum / f64::max(count, 1.0));
            }
        }
        Ok(vec![Values::texts(names), Values::texts(features), Values::numbers(means)])
    }
}

apply! {
    /// Every row's nearest class.
    ///
    /// By the distance to the mean of each class, over the features that the row has.
    #[apply(name = "nearest_mean", aliases = [], labels = Classes, model = "model", made_by = "nearest_mean_fit")]
    pub struct NearestMean {
        ..fitting: NearestMeanFit;
    }
}

impl Apply for NearestMean {
    fn fit(&self) -> &dyn Report {
        &self.fitting
    }

    fn outputs(&self) -> Vec<(&'static str, Output)> {
        vec![("prediction", Output::Class), ("distance", Output::Of(ColumnKind::Number)), ("correct", Output::Correct)]
    }

    fn read(&self, table: &[Values]) -> Result<Box<dyn Model>> {
        let [class, feature, mean] = table else { return Err(Error::data("a model has class, feature and mean")) };
        let mut means: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for row in 0..class.rows() {
            if let (Some(class), Some(feature), Some(mean)) = (class.text(row), feature.text(row), mean.number(row)) {
                means.insert((class, feature), mean);
            }
        }
        let classes: BTreeSet<&str> = means.keys().map(|(class, _)| *class).collect();
        let features: BTreeSet<&str> = means.keys().map(|(_, feature)| *feature).collect();
        if means.is_empty() || means.len() != classes.len() * features.len() {
            return Err(Error::data("the table given as `model` must have a mean of every feature in every class"));
        }
        let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_string).collect();
        // In the order of the keys: class by class.
        Ok(Box::new(Means { means: means.values().copied().collect(), classes: owned(classes), features: owned(features) }))
    }
}

/// `means[class * features + feature]`
struct Means {
    means: Vec<f64>,
    classes: Vec<String>,
    features: Vec<String>,
}

impl Model for Means {
    fn features(&self) -> Vec<Feature> {
        self.features.iter().map(|name| Feature { name: name.clone(), is_text: false }).collect()
    }

    fn names(&self, _: &str) -> Vec<String> {
        self.classes.clone()
    }

    fn apply(&self, rows: usize, features: &[Block<'_>], _: &[&str], run: &Run) -> Result<Applied> {
        run.check()?;
        let mut squares = vec![0.0; rows * self.classes.len()];
        let mut values = vec![0.0; rows];
        for (feature, block) in features.iter().enumerate() {
            let Block::Numbers(numbers) = block else { continue };
            numbers.fill(0, &mut values);
            for (row, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                for class in 0..self.classes.len() {
                    squares[row * self.classes.len() + class] +=
                        (value - self.means[class * self.features.len() + feature]).powi(2);
                }
            }
        }
        let nearest = |squares: &[f64]| (0..squares.len()).min_by(|a, b| squares[*a].total_cmp(&squares[*b])).unwrap_or_default();
        let chosen: Vec<usize> = squares.chunks(self.classes.len()).map(nearest).collect();
        let distances = chosen.iter().enumerate().map(|(row, class)| squares[row * self.classes.len() + class].sqrt()).collect();
        let predictions = chosen.into_iter().map(|class| class as u32).collect();
        Ok(Applied {
            rows: None,
            columns: vec![("prediction", Made::Names(predictions)), ("distance", Made::Numbers(distances))],
        })
    }
}
