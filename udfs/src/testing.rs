//! Small tables, dense references, and the suite that judges every selector, ours and others' alike.

mod apply;
mod checks;
mod contract;
mod limits;
mod outcome;
mod report;
mod summary;
mod variants;

use crate::reading::block::{Block, NO_LEVEL, Numbers};
use crate::reading::plan::{Feature, LabelKind, Plan};
use crate::reading::table::Data;
use crate::settings::common::{Common, Task};
use crate::{
    Error, Labels, Moments, PartedMoments, Parting, Parts, Problem, Ranking, Result, Rows, RowsBuilder, Run, Selector, options,
};

pub use checks::Meter;
pub use contract::check_selector;
pub use outcome::{Outcome, outcome};
pub use report::check_report;
pub use summary::summarized;
pub use variants::{Variant, variants, words};

/// A table in memory, with everything needed to put questions to it.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub columns: Vec<(String, Column)>,
    pub weights: Option<Vec<f64>>,
    pub common: Common,
    pub task: Option<Task>,
    /// Whether a block names every text twice, as filters and joins of dictionaries do.
    pub repeats_names: bool,
}

#[derive(Debug, Clone)]
pub enum Column {
    /// NaN is NULL.
    Numbers(Vec<f64>),
    /// `None` is NULL.
    Text(Vec<Option<String>>),
}

impl Table {
    pub fn new() -> Self {
        Self::default()
    }

    /// Independent standard normal columns x0, x1, …
    pub fn random(rows: usize, columns: usize, seed: u64) -> Self {
        let mut random = Run::new(seed).random("table", 0);
        (0..columns).fold(Self::new(), |table, j| {
            let values: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
            table.numbers(&format!("x{j}"), &values)
        })
    }

    pub fn numbers(mut self, name: &str, values: &[f64]) -> Self {
        self.columns.push((name.to_string(), Column::Numbers(values.to_vec())));
        self
    }

    pub fn text(mut self, name: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|value| Some(value.to_string())).collect();
        self.columns.push((name.to_string(), Column::Text(values)));
        self
    }

    /// The values of a numeric column.
    pub fn column(&self, at: usize) -> &[f64] {
        match &self.columns[at].1 {
            Column::Numbers(values) => values,
            Column::Text(_) => panic!("column {at} is text"),
        }
    }

    pub fn plan(&self) -> Plan {
        Plan {
            label: "label".into(),
            label_kind: LabelKind::Float,
            features: self
                .columns
                .iter()
                .map(|(name, column)| Feature { name: name.clone(), is_text: matches!(column, Column::Text(_)) })
                .collect(),
            weighted: self.weights.is_some(),
            task: self.task.unwrap_or(Task::Regression),
            nulls: self.common.nulls,
            max_levels: self.common.max_levels,
            levels: self.common.levels,
            max_classes: self.common.max_classes,
            bytes_max: 0,
            left_out: Vec::new(),
        }
    }

    /// Feeds rows `range` to `receive` as blocks.
    pub(crate) fn feed<T>(
        &self,
        label: &[f64],
        range: std::ops::Range<usize>,
        receive: impl FnOnce(usize, Block<'_>, Option<&dyn Numbers>, &[Block<'_>]) -> T,
    ) -> T {
        let slice = |values: &[f64]| values[range.clone()].to_vec();
        let numbers: Vec<Vec<f64>> = self
            .columns
            .iter()
            .map(|(_, column)| if let Column::Numbers(values) = column { slice(values) } else { Vec::new() })
            .collect();
        let texts: Vec<(Vec<u32>, Vec<&str>)> = self
            .columns
            .iter()
            .map(|(_, column)| {
                let Column::Text(values) = column else { return (Vec::new(), Vec::new()) };
                let mut names: Vec<&str> = Vec::new();
                let codes = values[range.clone()].iter().map(|value| match value {
                    None => NO_LEVEL,
                    Some(text) => names.iter().position(|name| name == text).unwrap_or_else(|| {
                        names.push(text);
                        names.len() - 1
                    }) as u32,
                });
                let mut codes: Vec<u32> = codes.collect();
                if self.repeats_names {
                    let first = names.len() as u32;
                    names.extend(names.clone());
                    codes.iter_mut().step_by(2).filter(|code| **code != NO_LEVEL).for_each(|code| *code += first);
                }
                (codes, names)
            })
            .collect();
        let blocks: Vec<Block<'_>> = (0..self.columns.len())
            .map(|at| match &self.columns[at].1 {
                Column::Numbers(_) => Block::Numbers(&numbers[at]),
                Column::Text(_) => Block::Levels { codes: &texts[at].0, names: &texts[at].1 },
            })
            .collect();
        let label = slice(label);
        let weights = self.weights.as_ref().map(|weights| slice(weights));
        receive(range.len(), Block::Numbers(&label), weights.as_ref().map(|weights| weights as &dyn Numbers), &blocks)
    }

    /// Hands over the raw values of some columns, as a model is given them.
    pub fn raw<T>(&self, names: &[&str], receive: impl FnOnce(usize, &[Block<'_>]) -> T) -> T {
        let find = |name: &&str| self.columns.iter().position(|(other, _)| other == name).expect("the table has these columns");
        let order: Vec<usize> = names.iter().map(find).collect();
        let rows = match &self.columns[0].1 {
            Column::Numbers(values) => values.len(),
            Column::Text(values) => values.len(),
        };
        self.permuted(&order).feed(&vec![0.0; rows], 0..rows, |rows, _, _, features| receive(rows, features))
    }

    /// Moments of some rows.
    pub fn moments(&self, label: &[f64], range: std::ops::Range<usize>) -> Result<Moments> {
        let mut moments = Moments::new(self.plan());
        self.feed(label, range, |rows, label, weights, features| moments.update(rows, label, weights, features))?;
        Ok(moments)
    }

    fn ask(&self, data: Data, labels: Labels) -> Result<Problem> {
        Problem::new(data, &self.plan(), &self.common, labels)
    }

    pub fn problem(&self, label: &[f64]) -> Problem {
        self.try_problem(label, false).expect("the test's table is in order")
    }

    pub fn problem_of_rows(&self, label: &[f64]) -> Problem {
        self.try_problem(label, true).expect("the test's table is in order")
    }

    /// The first `own` rows, with the others held out.
    pub fn problem_with_held_out(&self, label: &[f64], own: usize) -> Problem {
        let (rows, held_out) = self.split_rows(label, own);
        let problem = self.ask(Data::Rows(rows), Labels::Any).expect("the test's table is in order");
        problem.with_held_out(Some(held_out))
    }

    pub fn try_problem(&self, label: &[f64], from_rows: bool) -> Result<Problem> {
        if let (Some(folds), false) = (self.common.folds, from_rows) {
            let mut parted = PartedMoments::new(self.plan(), Parting::for_folds(folds, self.columns.len(), 1));
            self.feed(label, 0..label.len(), |rows, label, weights, features| parted.update(rows, label, weights, features))?;
            let (whole, parts) = parted.finish()?;
            return Ok(self.ask(Data::Gram(whole.finish()), Labels::Any)?.with_parts(Some(Parts { whole, parts })));
        }
        if !from_rows {
            return self.ask(Data::Gram(self.moments(label, 0..label.len())?.finish()), Labels::Any);
        }
        let mut builder = RowsBuilder::new(self.plan());
        self.feed(label, 0..label.len(), |rows, label, weights, features| builder.push(rows, label, weights, features))?;
        self.ask(Data::Rows(builder.finish()?), Labels::Any)
    }

    /// Where the rows of [`Self::problem_of_rows`] stand in the table: they are in an order of their content.
    pub fn content_order(&self, label: &[f64]) -> Vec<usize> {
        let mut builder = RowsBuilder::new(self.plan());
        self.feed(label, 0..label.len(), |rows, label, weights, features| builder.push(rows, label, weights, features))
            .expect("the test's table is in order");
        builder.content_order().into_iter().map(|row| row as usize).collect()
    }

    /// One pass of a selector over the table, in runs of `run_rows` rows. The first run makes the problem, as the engine does it.
    pub fn pass(&self, selector: &dyn Selector, label: &[f64], run_rows: usize, run: &Run) -> Result<(Problem, Ranking)> {
        let streaming = selector.streaming().ok_or_else(|| Error::call("does not select in one pass"))?;
        let plan = self.plan();
        let mut builder = RowsBuilder::new(plan.clone());
        let end = |start: usize| label.len().min(start + run_rows);
        self.feed(label, 0..end(0), |rows, label, weights, features| builder.push(rows, label, weights, features))?;
        let problem = self.ask(Data::Rows(builder.finish()?), Labels::Any)?;
        let mut pass = streaming.begin(&problem, &plan, label.len() as u64, run)?;
        for start in (0..label.len()).step_by(run_rows) {
            self.feed(label, start..end(start), |rows, label, weights, features| pass.push(rows, label, weights, features))?;
        }
        Ok((pass.finish(&problem)?, problem)).map(|(ranking, problem)| (problem, ranking))
    }

    /// The first `own` rows, and the others measured against them.
    pub fn split_rows(&self, label: &[f64], own: usize) -> (Rows, Rows) {
        let builder = |range| {
            let mut builder = RowsBuilder::new(self.plan());
            self.feed(label, range, |rows, label, weights, features| builder.push(rows, label, weights, features))
                .and(Ok(builder))
                .expect("the test's table is in order")
        };
        let both = builder(0..own).finish_with(builder(own..label.len()));
        both.expect("the test's table is in order")
    }

    /// A question put to the first `own` rows, and the others measured against them.
    pub fn problem_and_others(&self, label: &[f64], own: usize) -> (Problem, Rows) {
        let (rows, others) = self.split_rows(label, own);
        (self.ask(Data::Rows(rows), Labels::Any).expect("the test's table is in order"), others)
    }

    /// The table with its columns in another order.
    pub fn permuted(&self, order: &[usize]) -> Self {
        Self { columns: order.iter().map(|at| self.columns[*at].clone()).collect(), ..self.clone() }
    }

    pub fn folds(mut self, folds: usize) -> Self {
        self.common.folds = Some(folds);
        self
    }

    pub fn k(mut self, k: usize) -> Self {
        self.common.k = options::Count::Exactly(k);
        self
    }
}

/// Coefficients and R² of ordinary least squares with an intercept, by Householder-free dense elimination on centred
/// columns: slow, plain, and independent of the arithmetic it checks.
pub fn least_squares(columns: &[&[f64]], label: &[f64]) -> (Vec<f64>, f64) {
    let n = label.len() as f64;
    let centre = |values: &[f64]| -> Vec<f64> {
        let mean = values.iter().sum::<f64>() / n;
        values.iter().map(|value| value - mean).collect()
    };
    let x: Vec<Vec<f64>> = columns.iter().map(|column| centre(column)).collect();
    let y = centre(label);
    // Modified Gram–Schmidt on the columns themselves.
    let k = x.len();
    let (mut q, mut r) = (x.clone(), vec![vec![0.0; k]; k]);
    for i in 0..k {
        for j in 0..i {
            let overlap: f64 = q[j].iter().zip(&q[i]).map(|(a, b)| a * b).sum();
            r[j][i] = overlap;
            let earlier = q[j].clone();
            q[i].iter_mut().zip(&earlier).for_each(|(a, b)| *a -= overlap * b);
        }
        let length = q[i].iter().map(|a| a * a).sum::<f64>().sqrt();
        r[i][i] = length;
        q[i].iter_mut().for_each(|a| *a /= length);
    }
    let mut residual = y.clone();
    let mut beta = vec![0.0; k];
    for i in 0..k {
        beta[i] = q[i].iter().zip(&residual).map(|(a, b)| a * b).sum();
        let z = beta[i];
        residual.iter_mut().zip(&q[i]).for_each(|(a, b)| *a -= z * b);
    }
    for i in (0..k).rev() {
        for j in i + 1..k {
            beta[i] -= r[i][j] * beta[j];
        }
        beta[i] /= r[i][i];
    }
    let energy = |values: &[f64]| values.iter().map(|a| a * a).sum::<f64>();
    (beta, 1.0 - energy(&residual) / energy(&y))
}

/// A planted problem: `columns` standard normal features, of which the first of each list element carries the label.
pub fn planted(rows: usize, columns: usize, support: &[usize], noise: f64, seed: u64) -> (Table, Vec<f64>) {
    let table = Table::random(rows, columns, seed);
    let mut random = Run::new(seed).random("noise", 0);
    let label = (0..rows)
        .map(|row| {
            let signal: f64 = support.iter().enumerate().map(|(at, j)| (3.0 - 0.4 * at as f64) * table.column(*j)[row]).sum();
            signal + noise * random.normal()
        })
        .collect();
    (table, label)
}
