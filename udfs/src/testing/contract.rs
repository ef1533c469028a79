//! The suite that judges every selector: what it does with tables whose answer is known.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Table, planted};
use crate::settings::common::{Common, Nulls, Task};
use crate::{Choice, Count, Error, Kind, Labels, Problem, Ranking, Reads, Result, Run, Selector, Settings, Spec, Value};

/// Judges a selector. Panics with the first promise that it breaks; a selector that passes is fit to be registered. Returns how many
/// promises were looked at.
pub fn check_selector(spec: &Spec) -> usize {
    let default = spec.selector(&Settings::new());
    let default = default.unwrap_or_else(|error| panic!("{}: defaults are refused: {error}", spec.name));
    let mut all = 0;
    for from_rows in [false, true] {
        if !from_rows && default.reads() == Reads::Rows {
            continue;
        }
        let checker = Checker { spec, selector: &*default, from_rows, promises: AtomicUsize::new(0) };
        if all == 0 {
            super::limits::options(&checker, spec);
        }
        checker.answers();
        checker.equivalences();
        super::limits::run(&checker);
        all += checker.promises.into_inner();
    }
    all += check_variants(spec);
    all
}

/// Every word that an option takes: the selector keeps the arithmetic promises with each of them.
fn check_variants(spec: &Spec) -> usize {
    let mut promises = 0;
    for (option, word) in words(spec) {
        let mut settings = super::checks::short(spec);
        settings.insert(option.to_string(), Value::from(word.clone()));
        let Ok(selector) = spec.selector(&settings) else { continue };
        // How a table is read in one pass is judged where that is done.
        let reads = selector.reads();
        if matches!(reads, Reads::Pass(_)) {
            continue;
        }
        let checker = Checker { spec, selector: &*selector, from_rows: reads == Reads::Rows, promises: AtomicUsize::new(0) };
        let (table, label) = planted(60, 4, &[2], 1.0, 31);
        match checker.try_run(&table.k(2), &label) {
            // A model of classes, or one that needs more than a word, says so.
            Err(error) if matches!(error.kind(), Kind::Data | Kind::Call) => continue,
            Err(error) => checker.fail("a word that an option takes is answered or refused", (option, word, error)),
            Ok(_) => {}
        }
        checker.weights_equal_repetition();
        checker.same_on_one_thread_and_on_four(80, 6, 2);
        checker.rows_that_do_not_count();
        promises += checker.promises.into_inner();
    }
    promises
}

/// The two features that carry the label, in whatever order.
fn first_two(names: &[String]) -> Vec<&String> {
    let mut first: Vec<&String> = names.iter().take(2).collect();
    first.sort();
    first
}

fn first_two_units(ranking: &Ranking) -> Vec<usize> {
    let mut first: Vec<usize> = ranking.units().into_iter().take(2).collect();
    first.sort_unstable();
    first
}

/// The options that take one of some words, with each of their words but the default.
fn words(spec: &Spec) -> Vec<(&'static str, String)> {
    let mut words = Vec::new();
    for option in (spec.options)() {
        let quoted = option.allowed.split('\'').skip(1).step_by(2);
        words.extend(quoted.filter(|word| !option.default.contains(word)).map(|word| (option.name, word.to_string())));
    }
    words
}

pub(super) struct Checker<'a> {
    pub spec: &'a Spec,
    pub selector: &'a dyn Selector,
    pub from_rows: bool,
    pub promises: AtomicUsize,
}

impl Checker<'_> {
    /// The question; to a selector that predicts classes alone it is put as one of the label's sign.
    pub fn ask(&self, table: &Table, label: &[f64]) -> Problem {
        self.try_ask(table, label).unwrap_or_else(|error| panic!("{}: {error}", self.spec.name))
    }

    fn try_ask(&self, table: &Table, label: &[f64]) -> Result<Problem> {
        if self.spec.labels == Labels::Classes && table.task.is_none() {
            let sign = |y: &f64| if y.is_nan() { f64::NAN } else { f64::from(*y > 0.0) };
            let signs: Vec<f64> = label.iter().map(sign).collect();
            return Table { task: Some(Task::Classification), ..table.clone() }.try_problem(&signs, self.from_rows);
        }
        table.try_problem(label, self.from_rows)
    }

    pub fn try_run(&self, table: &Table, label: &[f64]) -> Result<Ranking> {
        crate::answer(self.selector, &self.try_ask(table, label)?, &Run::new(1))
    }

    pub fn run(&self, table: &Table, label: &[f64]) -> Ranking {
        let problem = self.ask(table, label);
        let ranking = crate::answer(self.selector, &problem, &Run::new(1))
            .unwrap_or_else(|error| panic!("{}: a sound problem is refused: {error}", self.spec.name));
        self.is_sound(&ranking, &problem);
        ranking
    }

    pub fn names(&self, table: &Table, label: &[f64]) -> Vec<String> {
        let problem = self.ask(table, label);
        self.run(table, label).units().iter().map(|unit| problem.units[*unit].name.clone()).collect()
    }

    pub fn fail(&self, promise: &str, detail: impl std::fmt::Debug) -> ! {
        panic!("{} breaks a promise: {promise}: {detail:?}", self.spec.name)
    }

    /// A promise about what the label says, which nobody makes who does not look at it.
    fn finds(&self, is_kept: bool, promise: &str, detail: impl std::fmt::Debug) {
        self.promise(is_kept || !self.selector.sees_label(), promise, detail);
    }

    /// Notes that a promise is looked at, and fails if it is broken.
    pub fn promise(&self, is_kept: bool, promise: &str, detail: impl std::fmt::Debug) {
        self.promises.fetch_add(1, Ordering::Relaxed);
        if !is_kept {
            self.fail(promise, detail);
        }
    }

    fn is_sound(&self, ranking: &Ranking, problem: &Problem) {
        let ranks = ranking.choices.iter().enumerate().all(|(at, choice)| choice.rank == at + 1);
        let scores: Vec<f64> = ranking.choices.iter().filter_map(|choice| choice.train_score).collect();
        let complete = scores.len() == ranking.choices.len() && ranking.choices.iter().all(|choice| choice.gain.is_some());
        let grows = scores.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9) && scores.iter().all(|score| *score <= 1.0 + 1e-9);
        if !ranks || !complete || !grows {
            self.fail("ranks count from 1, and what is explained is said of every choice and grows", ranking);
        }
        if ranking.passed_over.iter().any(|(unit, why)| *unit >= problem.units.len() || why.is_empty()) {
            self.fail("what is passed over is a feature, with a reason", ranking);
        }
    }

    /// Tables whose answer is known.
    fn answers(&self) {
        let (table, label) = planted(400, 12, &[7, 2, 9], 0.5, 17);
        let mut chosen = self.run(&table.clone().k(3), &label).units();
        chosen.sort_unstable();
        self.finds(chosen == [2, 7, 9], "it recovers a planted support", &chosen);
        if !self.selector.sees_label() {
            let other: Vec<f64> = label.iter().rev().copied().collect();
            let mut again = self.run(&table.clone().k(3), &other).units();
            again.sort_unstable();
            self.promise(chosen == again, "who does not look at the label chooses the same for any", (chosen, again));
        }
        let first = self.run(&table.clone().k(3), &label);
        self.promise(self.run(&table.k(3), &label) == first, "the same question has the same answer", ());

        let (table, label) = planted(60, 3, &[0], 0.5, 3);
        let ranking = self.run(&table.k(50), &label);
        self.promise((1..=3).contains(&ranking.choices.len()), "k larger than the table is answered", ranking);

        let table = Table::new().numbers("x", &[1.0, 2.0]).k(1);
        let units = self.run(&table, &[0.0, 5.0]).units();
        self.promise(units == [0], "one feature and two rows suffice", units);

        let (table, label) = planted(20, 60, &[5], 0.1, 7);
        let ranking = self.run(&table.k(4), &label);
        self.promise(!ranking.choices.is_empty(), "more columns than rows are answered", ranking);

        self.odd_columns();
        self.units();
        self.labels();
        let (mut table, label) = planted(150, 5, &[1], 0.5, 19);
        table.common.k = Count::Auto;
        let names = self.names(&table, &label);
        self.finds(names.iter().any(|name| name == "x1") && names.len() <= 5, "k => 'auto' finds what is there", names);
        table.common.standardize = false;
        let names = self.names(&table.k(2), &label);
        self.finds(names.iter().any(|name| name == "x1"), "columns as they are are answered", names);
    }

    /// Columns that say nothing, or nothing new, or say it in an odd way.
    fn odd_columns(&self) {
        let (table, label) = planted(80, 2, &[0], 0.1, 5);
        let twin = table.column(0).to_vec();
        let mut once = vec![f64::NAN; 80];
        once[3] = 1.0;
        let odd = table
            .clone()
            .numbers("constant", &[1e9 + 0.1; 80])
            .numbers("twin", &twin)
            .numbers("none", &[f64::NAN; 80])
            .numbers("once", &once)
            .text("same", &["a"; 80]);
        let names = self.names(&odd.clone().k(1), &label);
        self.finds(names == ["x0"], "of two equal columns the first is chosen", &names);
        self.promise(!names.contains(&"twin".to_string()), "of two equal columns the second is not chosen first", names);
        let names = self.names(&odd.k(7), &label);
        for never in ["constant", "none", "once", "same"] {
            self.promise(!names.iter().any(|name| name == never), "a column that does not vary is never chosen", (never, &names));
        }
        let stamps: Vec<f64> = table.column(0).iter().map(|x| 1.7e18 + 1e12 * x).collect();
        let huge: Vec<f64> = table.column(1).iter().map(|x| 1e90 * x).collect();
        let tiny: Vec<f64> = table.column(1).iter().map(|x| 1e-120 * x).collect();
        let odd = Table::new().numbers("tiny", &tiny).numbers("stamps", &stamps).numbers("huge", &huge).k(3);
        let names = self.names(&odd, &label);
        self.finds(names.first().is_some_and(|name| name == "stamps"), "large and small numbers are numbers", names);
        let with = |hole: f64| {
            let mut column = table.column(1).to_vec();
            column[7] = hole;
            self.run(&Table::new().numbers("x0", table.column(0)).numbers("x1", &column).k(2), &label)
        };
        self.promise(with(f64::INFINITY) == with(f64::NAN), "infinity is no value, as NULL is", ());
    }

    /// Texts, groups and NULLs.
    fn units(&self) {
        let (table, mut label) = planted(200, 4, &[0], 0.2, 41);
        let colours: Vec<&str> = (0..200).map(|row| ["red", "green", "blue"][row % 3]).collect();
        label.iter_mut().enumerate().for_each(|(row, y)| *y += [5.0, -5.0, 0.0][row % 3]);
        let mut holes = table.column(3).to_vec();
        holes.iter_mut().step_by(7).for_each(|value| *value = f64::NAN);
        let mut table = table.text("colour", &colours).numbers("holes", &holes).k(2);
        table.common.groups.insert("pair".into(), vec!["x1".into(), "x2".into()]);
        for nulls in [Nulls::Mean, Nulls::Indicator, Nulls::Drop] {
            table.common.nulls = nulls;
            let mut names = self.names(&table, &label);
            names.sort();
            let promise = "a text column, a group and a column with NULLs are one feature each";
            self.finds(names == ["colour", "x0"], promise, (nulls, names));
        }
        table.common.nulls = Nulls::Error;
        let refused = self.try_ask(&table, &label).map(|_| ()).map_err(|error| error.to_string());
        self.promise(refused.as_ref().is_err_and(|error| error.contains("`holes`")), "a NULL is refused by name", refused);
        table.common.nulls = Nulls::Mean;
        let (plain, repeated) = (self.run(&table, &label), self.run(&Table { repeats_names: true, ..table }, &label));
        self.promise(plain == repeated, "a text that a block names twice is one text", (plain, repeated));
        let (table, label) = planted(100, 6, &[1, 4], 0.5, 37);
        let mut table = table.k(3);
        table.common.must_include = vec!["x5".into(), "x0".into()];
        let names = self.names(&table, &label);
        let is_first = names.len() == 3 && names[..2] == ["x5", "x0"];
        self.promise(is_first, "what must be included comes first", &names);
        self.finds(["x1", "x4"].contains(&names[2].as_str()), "what carries the label comes behind it", names);
        let problem = self.ask(&table, &label).among(&[1, 3]);
        let some = crate::answer(self.selector, &problem, &Run::new(1)).map(|ranking| ranking.units());
        self.promise(
            some.as_ref().is_ok_and(|units| units.iter().all(|unit| *unit < 2)),
            "some of the units can be asked about",
            some,
        );
    }

    fn labels(&self) {
        let (table, label) = planted(200, 5, &[3], 0.5, 43);
        let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
        let of_classes = Table { task: Some(Task::Classification), ..table.clone().k(1) };
        let names = self.names(&of_classes, &classes);
        self.finds(names == ["x3"], "two classes are predicted", names);
        let rare: Vec<f64> = (0..200).map(|row| f64::from(row == 11)).collect();
        let ranking = self.run(&of_classes, &rare);
        self.promise(!ranking.choices.is_empty(), "a class of one row is answered", ranking);
        if self.spec.labels != Labels::NumberOrTwoClasses {
            let three: Vec<f64> = label.iter().map(|y| f64::from(*y > -1.0) + f64::from(*y > 1.0)).collect();
            let names = self.names(&of_classes, &three);
            self.finds(names == ["x3"], "three classes are predicted", names);
        }
    }

    /// Two ways to put the same question.
    fn equivalences(&self) {
        let (table, label) = planted(120, 6, &[1, 4], 1.0, 23);
        let plain = self.names(&table.clone().k(4), &label);
        let permuted = self.names(&table.permuted(&[3, 5, 0, 4, 2, 1]).k(4), &label);
        self.promise(plain == permuted, "permuting columns permutes the answer", (&plain, permuted));
        let moved: Vec<f64> = label.iter().map(|y| 4.0 * y).collect();
        let scaled = self.names(&table.clone().k(4), &moved);
        // Which rows are held out may depend on what is in them, and with it the order of features that are nothing but noise.
        self.promise(first_two(&plain) == first_two(&scaled), "the unit of the label does not matter", (&plain, scaled));
        let scaled = (0..6).fold(Table::new(), |scaled, j| {
            let values: Vec<f64> = table.column(j).iter().map(|x| x * [8.0, 0.25, 1024.0, 1.0, 2.0, 0.5][j]).collect();
            scaled.numbers(&format!("x{j}"), &values)
        });
        let scaled = self.names(&scaled.k(4), &label);
        self.promise(first_two(&plain) == first_two(&scaled), "the units of columns do not matter", (&plain, scaled));
        self.same_on_one_thread_and_on_four(300, 40, 5);
        self.fewer_choices_are_the_first();
        self.folds();
        self.weights_equal_repetition();
        self.rows_that_do_not_count();
    }

    pub fn same_on_one_thread_and_on_four(&self, rows: usize, columns: usize, k: usize) {
        let (table, label) = planted(rows, columns, &[3, columns - 2], 2.0, 29);
        let table = table.k(k);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
            pool.install(|| self.run(&table, &label))
        };
        self.promise(with(1) == with(4), "one thread and four give the same bytes", ());
    }

    /// The selection repeated in folds, which every selector gets from around it.
    fn folds(&self) {
        let (table, label) = planted(120, 6, &[1, 4], 1.0, 33);
        let (plain, judged) = (self.run(&table.clone().k(3), &label), self.run(&table.clone().k(3).folds(3), &label));
        let is_judged = |choice: &Choice| choice.valid_score.is_some() && choice.valid_error.is_some_and(|error| error >= 0.0);
        self.promise(judged.choices.iter().all(is_judged), "folds judge every rank", &judged);
        self.promise(first_two_units(&plain) == first_two_units(&judged), "folds do not change the ranking", (plain, &judged));
        let last = judged.choices.last().and_then(|choice| choice.valid_score).unwrap_or(0.0);
        self.finds((0.3..=1.0).contains(&last), "what carries the label explains rows that were held out", last);
        let mut table = table.folds(3);
        table.common.k = Count::OneSe;
        let few = self.run(&table, &label).units();
        let is_right = few.len() <= 4 && few.contains(&1) && few.contains(&4);
        self.finds(is_right, "k => 'one_se' finds what carries the label and little else", few);
        let (table, label) = planted(60, 5, &[2, 4], 1.0, 31);
        let (weighted, repeated, twice) = super::checks::weighted(&table, &label);
        if let (Ok(a), Ok(b)) = (self.try_run(&weighted.k(2).folds(3), &label), self.try_run(&repeated.k(2).folds(3), &twice)) {
            let close = |(a, b): (&Choice, &Choice)| {
                let (a, b) = (a.valid_score.unwrap_or(f64::NAN), b.valid_score.unwrap_or(f64::NAN));
                a.is_nan() == b.is_nan() && (a.is_nan() || (a - b).abs() < 1e-6)
            };
            let same = a.choices.iter().zip(&b.choices).all(close);
            self.promise(same, "a row of weight 2 is in one fold, as the row twice is", (a, b));
        }
    }

    fn fewer_choices_are_the_first(&self) {
        if !self.selector.is_prefix() {
            return;
        }
        let (table, label) = planted(80, 12, &[3, 9], 2.0, 30);
        let told = |choice: &Choice| Choice { coefficient: None, ..choice.clone() };
        let all: Vec<Choice> = self.run(&table.clone().k(8), &label).choices.iter().map(told).collect();
        for k in [1, 3] {
            let first: Vec<Choice> = self.run(&table.clone().k(k), &label).choices.iter().map(told).collect();
            self.promise(first == all[..k.min(all.len())], "the first of many choices are the choices for fewer", first);
        }
    }

    pub fn weights_equal_repetition(&self) {
        let (table, label) = planted(60, 5, &[2, 4], 1.0, 31);
        let (weighted, repeated, twice) = super::checks::weighted(&table, &label);
        let answers = (self.try_run(&weighted.k(4), &label), self.try_run(&repeated.k(4), &twice));
        let (a, b) = match answers {
            (Ok(a), Ok(b)) => (a, b),
            // Who knows no weights says so.
            (Err(error), _) if error.kind() == Kind::Call => return,
            answers => self.fail("weighted rows are answered, or refused", answers),
        };
        let close = |a: Option<f64>, b: Option<f64>| {
            a.is_some() == b.is_some() && (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() < 1e-9 * b.unwrap_or(0.0).abs().max(1.0)
        };
        let same = a.units() == b.units()
            && a.choices
                .iter()
                .zip(&b.choices)
                .all(|(a, b)| close(Some(a.score), Some(b.score)) && close(a.coefficient, b.coefficient));
        self.promise(same, "row weights equal row repetition", (a, b));
    }

    /// Rows without a label, of weight 0, and with a NULL that drops them are as if they were not there.
    pub fn rows_that_do_not_count(&self) {
        let (table, label) = planted(90, 4, &[1], 0.5, 53);
        let kept: Vec<usize> = (0..90).filter(|row| row % 3 > 0).collect();
        let some = |values: &[f64]| -> Vec<f64> { kept.iter().map(|row| values[*row]).collect() };
        let holes = |values: &[f64]| -> Vec<f64> {
            values.iter().enumerate().map(|(row, x)| if row % 3 > 0 { *x } else { f64::NAN }).collect()
        };
        let of = |column: &dyn Fn(usize) -> Vec<f64>| (0..4).fold(Table::new(), |t, j| t.numbers(&format!("x{j}"), &column(j)));
        let without = of(&|j| some(table.column(j))).k(3);
        let expected = match self.try_run(&without, &some(&label)) {
            Ok(expected) => expected,
            Err(error) => self.fail("a sound problem is answered", error),
        };
        let unlabelled = self.run(&table.clone().k(3), &holes(&label));
        self.promise(unlabelled == expected, "rows without a label are as if they were not there", (&expected, unlabelled));
        let mut dropped = of(&|j| if j == 3 { holes(table.column(j)) } else { table.column(j).to_vec() }).k(3);
        dropped.common.nulls = Nulls::Drop;
        let dropped = self.run(&dropped, &label);
        self.promise(
            dropped == expected,
            "rows that nulls => 'drop' leaves out are as if they were not there",
            (&expected, dropped),
        );
        let ones = Table { weights: Some(vec![1.0; 60]), ..without };
        let zeros = Table { weights: Some((0..90).map(|row| f64::from(row % 3 > 0)).collect()), ..table.k(3) };
        match (self.try_run(&ones, &some(&label)), self.try_run(&zeros, &label)) {
            (Ok(a), Ok(b)) => self.promise(a == b, "rows of weight 0 are as if they were not there", (a, b)),
            (Err(a), Err(b)) if a.kind() == Kind::Call => self.promise(a == b, "weights are refused alike", (a, b)),
            other => self.fail("weights are answered, or refused", other),
        }
    }

    /// Says that it was cancelled.
    pub fn is_cancelled(result: &Result<Ranking>) -> bool {
        result.as_ref().is_err_and(|error| *error == Error::cancelled())
    }

    /// The common options and this one's own.
    pub fn documentation(&self) {
        let lines = self.spec.documentation;
        self.promise(lines.len() >= 3 && !self.spec.summary().is_empty(), "it is documented", lines);
        self.promise(!self.spec.score.is_empty() || !self.spec.is_selector(), "its score is documented", self.spec.score);
        let options = self.spec.all_options();
        let common = <Common as crate::Options>::specs();
        for option in &options {
            self.promise(!option.description.is_empty(), "every option is documented", option.name);
            let times = options.iter().filter(|other| other.name == option.name).count();
            self.promise(times == 1, "an option exists once", option.name);
            // One that is common, and that the selector sees to itself, is the same to whoever asks.
            let is_same = |other: &crate::OptionSpec| other.name != option.name || other.description == option.description;
            self.promise(common.iter().all(is_same), "an option means the same everywhere", option.name);
        }
    }
}
