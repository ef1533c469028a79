//! Small tables, dense references, and the suite that judges every selector, ours and others' alike.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::reading::block::{Block, NO_LEVEL, Numbers};
use crate::reading::plan::{Feature, LabelKind, Plan};
use crate::reading::table::Data;
use crate::settings::common::{Common, Task};
use crate::{
    Choice, Error, Labels, Moments, Problem, Ranking, Result, Rows, RowsBuilder, Run, Selector, Settings, Spec, Value, options,
};

/// A table in memory, with everything needed to put questions to it.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub columns: Vec<(String, Column)>,
    pub weights: Option<Vec<f64>>,
    pub common: Common,
    pub task: Option<Task>,
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
            max_classes: self.common.max_classes,
            bytes_max: 0,
            left_out: Vec::new(),
        }
    }

    /// Feeds rows `range` to `receive` as blocks.
    fn feed<T>(
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
                (codes.collect::<Vec<_>>(), names)
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
        if !from_rows {
            return self.ask(Data::Gram(self.moments(label, 0..label.len())?.finish()), Labels::Any);
        }
        let mut builder = RowsBuilder::new(self.plan());
        self.feed(label, 0..label.len(), |rows, label, weights, features| builder.push(rows, label, weights, features))?;
        self.ask(Data::Rows(builder.finish()?), Labels::Any)
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

/// Judges a selector. Panics with the first promise that it breaks; a selector that passes is fit to be registered.
pub fn check_selector(spec: &Spec) {
    let default = spec.selector(&Settings::new());
    let default = default.unwrap_or_else(|error| panic!("{}: defaults are refused: {error}", spec.name));
    let checker = Checker { spec, selector: &*default };
    checker.documentation();
    for from_rows in [false, true] {
        if !from_rows && default.reads() == crate::Reads::Rows {
            continue;
        }
        checker.recovers_planted_support(from_rows);
        checker.answers_more_than_there_are(from_rows);
        checker.answers_one_feature_and_two_rows(from_rows);
        checker.never_chooses_a_constant_and_takes_the_first_of_twins(from_rows);
        checker.permuting_columns_permutes_the_answer(from_rows);
        checker.same_on_one_thread_and_on_four(from_rows);
        checker.fewer_choices_are_the_first(from_rows);
        checker.weights_equal_repetition(from_rows);
        checker.must_include_comes_first(from_rows);
        checker.text_groups_and_nulls_are_units(from_rows);
        checker.two_classes(from_rows);
        checker.cancels(from_rows);
    }
    checker.refuses_options_out_of_range();
}

struct Checker<'a> {
    spec: &'a Spec,
    selector: &'a dyn Selector,
}

impl Checker<'_> {
    /// The question; to a selector that predicts classes alone it is put as one of the label's sign.
    fn ask(&self, table: &Table, label: &[f64], from_rows: bool) -> Problem {
        let asked = if self.spec.labels == Labels::Classes {
            let signs: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
            Table { task: Some(Task::Classification), ..table.clone() }.try_problem(&signs, from_rows)
        } else {
            table.try_problem(label, from_rows)
        };
        asked.unwrap_or_else(|error| panic!("{}: {error}", self.spec.name))
    }

    fn run(&self, table: &Table, label: &[f64], from_rows: bool) -> Ranking {
        let problem = self.ask(table, label, from_rows);
        let ranking = self
            .selector
            .select(&problem, &Run::new(1))
            .unwrap_or_else(|error| panic!("{}: a sound problem is refused: {error}", self.spec.name));
        self.is_sound(&ranking, &problem);
        ranking
    }

    fn names(&self, table: &Table, label: &[f64], from_rows: bool) -> Vec<String> {
        let problem = self.ask(table, label, from_rows);
        self.run(table, label, from_rows).units().iter().map(|unit| problem.units[*unit].name.clone()).collect()
    }

    fn fail(&self, promise: &str, detail: impl std::fmt::Debug) -> ! {
        panic!("{} breaks a promise: {promise}: {detail:?}", self.spec.name)
    }

    fn is_sound(&self, ranking: &Ranking, problem: &Problem) {
        let mut units = ranking.units();
        units.sort_unstable();
        units.dedup();
        if units.len() != ranking.choices.len() {
            self.fail("no feature is chosen twice", ranking);
        }
        if problem.k.is_some_and(|k| units.len() > k) {
            self.fail("no more than k are chosen", ranking);
        }
        for (at, choice) in ranking.choices.iter().enumerate() {
            let numbers =
                [Some(choice.score), choice.gain, choice.train_score, choice.valid_score, choice.cost, choice.coefficient];
            if choice.rank != at + 1 || numbers.iter().flatten().any(|x| !x.is_finite()) {
                self.fail("ranks count from 1 and every number is finite", choice);
            }
        }
    }

    fn documentation(&self) {
        let lines = self.spec.documentation;
        if lines.len() < 3 || self.spec.summary().is_empty() {
            self.fail("it is documented", lines);
        }
        for option in (self.spec.options)() {
            if option.description.is_empty() {
                self.fail("every option is documented", option.name);
            }
            if <Common as crate::Options>::specs().iter().any(|common| common.name == option.name) {
                self.fail("an option exists once", option.name);
            }
        }
    }

    fn recovers_planted_support(&self, from_rows: bool) {
        let (table, label) = planted(400, 12, &[7, 2, 9], 0.5, 17);
        let mut chosen = self.run(&table.k(3), &label, from_rows).units();
        chosen.sort_unstable();
        if chosen != [2, 7, 9] {
            self.fail("it recovers a planted support", chosen);
        }
    }

    fn answers_more_than_there_are(&self, from_rows: bool) {
        let (table, label) = planted(60, 3, &[0], 0.5, 3);
        let ranking = self.run(&table.k(50), &label, from_rows);
        if ranking.choices.len() > 3 || ranking.choices.is_empty() {
            self.fail("k larger than the table is answered", ranking);
        }
    }

    fn answers_one_feature_and_two_rows(&self, from_rows: bool) {
        let table = Table::new().numbers("x", &[1.0, 2.0]).k(1);
        if self.run(&table, &[0.0, 5.0], from_rows).units() != [0] {
            self.fail("one feature and two rows suffice", ());
        }
    }

    fn never_chooses_a_constant_and_takes_the_first_of_twins(&self, from_rows: bool) {
        let (table, label) = planted(80, 2, &[0], 0.1, 5);
        let twin = table.column(0).to_vec();
        let table = table.numbers("constant", &[1e9 + 0.1; 80]).numbers("twin", &twin);
        let names = self.names(&table.clone().k(1), &label, from_rows);
        if names != ["x0"] {
            self.fail("of two equal columns the first is chosen", names);
        }
        let names = self.names(&table.k(4), &label, from_rows);
        if names.contains(&"constant".to_string()) {
            self.fail("a constant column is never chosen", names);
        }
    }

    fn permuting_columns_permutes_the_answer(&self, from_rows: bool) {
        let (table, label) = planted(120, 6, &[1, 4], 1.0, 23);
        let order = [3, 5, 0, 4, 2, 1];
        let (plain, permuted) =
            (self.names(&table.clone().k(4), &label, from_rows), self.names(&table.permuted(&order).k(4), &label, from_rows));
        if plain != permuted {
            self.fail("permuting columns permutes the answer", (plain, permuted));
        }
    }

    fn same_on_one_thread_and_on_four(&self, from_rows: bool) {
        let (table, label) = planted(300, 40, &[3, 30], 2.0, 29);
        let table = table.k(10);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
            pool.install(|| self.run(&table, &label, from_rows))
        };
        if with(1) != with(4) {
            self.fail("one thread and four give the same bytes", ());
        }
    }

    fn fewer_choices_are_the_first(&self, from_rows: bool) {
        if !self.selector.is_prefix() {
            return;
        }
        let (table, label) = planted(80, 12, &[3, 9], 2.0, 30);
        let all = self.run(&table.clone().k(8), &label, from_rows).choices;
        for k in [1, 3] {
            let told = |choice: &Choice| Choice { coefficient: None, ..choice.clone() };
            let first: Vec<Choice> = self.run(&table.clone().k(k), &label, from_rows).choices.iter().map(told).collect();
            if first != all.iter().take(k).map(told).collect::<Vec<_>>() {
                self.fail("the first of many choices are the choices for fewer", first);
            }
        }
    }

    fn weights_equal_repetition(&self, from_rows: bool) {
        let (table, label) = planted(60, 5, &[2, 4], 1.0, 31);
        let counts: Vec<usize> = (0..60).map(|row| 1 + row % 3).collect();
        let repeat = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(&counts).flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect()
        };
        let repeated = (0..5).fold(Table::new(), |repeated, j| repeated.numbers(&format!("x{j}"), &repeat(table.column(j))));
        let weighted = Table { weights: Some(counts.iter().map(|count| *count as f64).collect()), ..table.clone() };
        let (a, b) = (self.run(&weighted.k(4), &label, from_rows), self.run(&repeated.k(4), &repeat(&label), from_rows));
        let close =
            |a: Option<f64>, b: Option<f64>| a.is_some() == b.is_some() && (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() < 1e-9;
        let same = a.units() == b.units()
            && a.choices
                .iter()
                .zip(&b.choices)
                .all(|(a, b)| close(Some(a.score), Some(b.score)) && close(a.coefficient, b.coefficient));
        if !same {
            self.fail("row weights equal row repetition", (a, b));
        }
    }

    fn must_include_comes_first(&self, from_rows: bool) {
        let (table, label) = planted(100, 6, &[1, 4], 0.5, 37);
        let mut table = table.k(3);
        table.common.must_include = vec!["x5".into(), "x0".into()];
        let names = self.names(&table, &label, from_rows);
        if names.len() != 3 || names[..2] != ["x5", "x0"] || !["x1", "x4"].contains(&names[2].as_str()) {
            self.fail("what must be included comes first", names);
        }
    }

    fn text_groups_and_nulls_are_units(&self, from_rows: bool) {
        let (table, mut label) = planted(200, 4, &[0], 0.2, 41);
        let colours: Vec<&str> = (0..200).map(|row| ["red", "green", "blue"][row % 3]).collect();
        label.iter_mut().enumerate().for_each(|(row, y)| *y += [5.0, -5.0, 0.0][row % 3]);
        let mut holes = table.column(3).to_vec();
        holes.iter_mut().step_by(7).for_each(|value| *value = f64::NAN);
        let mut table = table.text("colour", &colours).numbers("holes", &holes).k(2);
        table.common.groups.insert("pair".into(), vec!["x1".into(), "x2".into()]);
        for nulls in [crate::Nulls::Mean, crate::Nulls::Indicator, crate::Nulls::Drop] {
            table.common.nulls = nulls;
            let mut names = self.names(&table, &label, from_rows);
            names.sort();
            if names != ["colour", "x0"] {
                self.fail("a text column, a group and a column with NULLs are one feature each", (nulls, names));
            }
        }
    }

    fn two_classes(&self, from_rows: bool) {
        let (table, label) = planted(200, 5, &[3], 0.5, 43);
        let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
        let table = Table { task: Some(Task::Classification), ..table.k(1) };
        let names = self.names(&table, &classes, from_rows);
        if names != ["x3"] {
            self.fail("two classes are predicted", names);
        }
    }

    fn cancels(&self, from_rows: bool) {
        let (table, label) = planted(50, 5, &[3], 0.5, 47);
        let problem = self.ask(&table.k(3), &label, from_rows);
        let run = Run::new(0).with_cancel(Arc::new(AtomicBool::new(true)));
        if self.selector.select(&problem, &run) != Err(Error::cancelled()) {
            self.fail("it stops when it is cancelled", ());
        }
    }

    fn refuses_options_out_of_range(&self) {
        for option in (self.spec.options)() {
            let wrong = match option.kind {
                "text" | "boolean" => Value::from(17),
                _ => Value::from("no such value"),
            };
            let settings = Settings::from_iter([(option.name.to_string(), wrong)]);
            match (self.spec.build)(&settings) {
                Err(error) if error.to_string().contains(&format!("`{}`", option.name)) => {}
                other => self.fail("a wrong option is refused by name", (option.name, other.err())),
            }
        }
        let unknown = Settings::from_iter([("no_such_option".to_string(), Value::from(1))]);
        if (self.spec.build)(&unknown).is_ok() {
            self.fail("an unknown option is refused", ());
        }
    }
}
