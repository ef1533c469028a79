//! Every option is bounded, and none is accepted that changes nothing.

use pursuit_udfs::testing::{Outcome, Table, outcome, planted, words};
use pursuit_udfs::{Common, OptionSpec, Options, Problem, Run, Settings, Spec, Task, Value, reports, selectors};

fn settings(given: &[(&str, Value)]) -> Settings {
    given.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

/// Numbers that nothing needs are refused by name, whatever the option is a list or a map of.
#[test]
fn every_number_has_two_ends() {
    let huge = [1e300, -1e300].map(Value::from).into_iter().chain([Value::from(i64::MAX), Value::from(u64::MAX)]);
    for number in huge {
        for spec in selectors().into_iter().chain(reports()) {
            for option in (spec.options)().iter().filter(|option| option.kind.contains("number") || option.name == "cost_matrix")
            {
                let value = match option.kind {
                    kind if kind.starts_with("map") => serde_json::json!({"a": number}),
                    _ if option.name == "cost_matrix" => serde_json::json!([[number, 0], [0, 0]]),
                    kind if kind.starts_with("list") => serde_json::json!([1, number]),
                    _ => number.clone(),
                };
                match (spec.build)(&settings(&[(option.name, value.clone())])) {
                    Err(error) if error.to_string().contains(option.name) => {}
                    other => panic!("{}({} => {value}) must be refused, got {:?}", spec.name, option.name, other.err()),
                }
            }
        }
        for option in Common::specs().iter().filter(|option| option.kind.contains("number")) {
            // A seed may be any number of 64 bits.
            let is_refused = Common::default().set(option.name, &number).is_some_and(|outcome| outcome.is_err());
            assert!(is_refused || option.name == "seed", "{} => {number} must be refused", option.name);
        }
    }
}

/// Values to try for an option, judged by what it says of itself.
fn values(option: &OptionSpec) -> Vec<Value> {
    let words: Vec<Value> = option.allowed.split('\'').skip(1).step_by(2).map(Value::from).collect();
    let between: Vec<f64> =
        option.allowed.split_whitespace().filter_map(|word| word.trim_end_matches(',').parse().ok()).collect();
    let numbers = match between[..] {
        [low, high] => {
            let tried = [low, low + 1.0, low + 2.0, low + 5.0, 30.0, 1e-3, 0.05, 0.3, 0.5, (low + high) / 2.0, high];
            tried.into_iter().filter(|x| (low..=high).contains(x) && *x <= 1e6).collect()
        }
        [low] => vec![low, low + 1.0, low + 2.0, low + 5.0, low + 0.25],
        _ => vec![1.0, 2.0],
    };
    match option.kind {
        "text" => words,
        "list of text" => words.into_iter().map(|word| vec![word].into()).collect(),
        "boolean" => vec![true.into(), false.into()],
        "whole number" => numbers.into_iter().filter(|x| x.fract() == 0.0).map(|x| Value::from(x as u64)).collect(),
        "list of whole numbers" => vec![serde_json::json!([3]), serde_json::json!([4, 4]), serde_json::json!([])],
        "number" => numbers.into_iter().map(Value::from).collect(),
        _ => Vec::new(),
    }
}

/// Options that show only where a table is streamed, has a second one beside it, is an image, has rows enough to judge swaps, has columns enough for several to go at once, has many columns or columns that only matter together, or where a
/// policy has prices and relations of features: their own tests see to them.
const ELSEWHERE: [&str; 9] =
    ["step", "passes", "shuffle_buffer", "swaps", "image", "window", "validation", "shortlist", "lookahead"];

/// What keeps a selection short, where it is accepted.
const SHORT: [(&str, u64); 6] = [("epochs", 2), ("trees", 5), ("rounds", 5), ("neurons", 20), ("repeats", 2), ("draws", 4)];

/// What is trained anew for every candidate takes too long for this.
const LONG: [&str; 6] = ["mlp", "cnn", "svm", "forest", "boosting", "retrain"];

fn answer(spec: &Spec, settings: &Settings, problem: &Problem) -> Option<Outcome> {
    outcome(&(spec.build)(settings).ok()?, problem, &Run::new(0)).ok()
}

/// What an option needs in the company of others, if it is idle; `None` too where the others are wrong themselves.
fn needs(spec: &Spec, settings: &Settings, option: &str) -> Option<&'static str> {
    (spec.build)(settings).ok()?.unused(option)
}

/// For each word that an option takes: another option that is accepted beside it changes the answer, for some value and some table.
#[test]
fn an_option_that_is_accepted_does_something() {
    let (numbers, label) = planted(60, 12, &[3, 9], 1.0, 7);
    let scaled = (0..12).fold(Table::new(), |table, j| {
        let values: Vec<f64> = numbers.column(j).iter().map(|x| x * (1.0 + j as f64)).collect();
        table.numbers(&format!("x{j}"), &values)
    });
    let classes: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    let of_classes = Table { task: Some(Task::Classification), ..scaled.clone() };
    let problems = |spec: &Spec| match spec.table {
        Some(_) if !spec.is_selector() => {
            [scaled.clone().k(2).problem_with_held_out(&label, 40), of_classes.clone().k(2).problem_with_held_out(&classes, 40)]
        }
        _ => [scaled.clone().k(2).problem_of_rows(&label), of_classes.clone().k(2).problem_of_rows(&classes)],
    };
    let mut idle = Vec::new();
    // The datum-wise options are prices and relations of features, which have tests of their own.
    for spec in selectors().into_iter().chain(reports()).filter(|spec| !spec.name.starts_with("datum_wise")) {
        let (options, problems) = ((spec.options)(), problems(&spec));
        let of_words = options.iter().flat_map(|option| {
            let words = if words(option).is_empty() { Vec::new() } else { values(option) };
            words.into_iter().map(|value| vec![(option.name, value)])
        });
        let refits = ["neural_greedy_pursuit", "forward_selection", "drop_one_out"].contains(&spec.name);
        let is_short = |context: &Vec<(&str, Value)>| {
            let word = if context[0].1.is_array() { &context[0].1[0] } else { &context[0].1 };
            !(refits && LONG.iter().any(|long| word == long))
        };
        let contexts: Vec<Vec<(&str, Value)>> = of_words.filter(is_short).chain([vec![]]).collect();
        for mut context in contexts {
            let own = context.first().map(|(name, _)| *name);
            if own.is_some_and(|own| needs(&spec, &settings(&context), own).is_some()) {
                continue;
            }
            let accepted = |name: &str| {
                let has = options.iter().any(|option| option.name == name);
                has && needs(&spec, &settings(&context), name).is_none()
            };
            let short: Vec<_> =
                SHORT.iter().filter(|(name, _)| accepted(name)).map(|(name, n)| (*name, Value::from(*n))).collect();
            context.extend(short);
            let base = settings(&context);
            let before: Vec<Option<Outcome>> = problems.iter().map(|problem| answer(&spec, &base, problem)).collect();
            if before.iter().all(|answer| matches!(answer, None | Some(Outcome::Nothing))) {
                continue;
            }
            for option in options.iter().filter(|option| !ELSEWHERE.contains(&option.name) && Some(option.name) != own) {
                let tried = values(option);
                let shows = |value: Value| {
                    let mut with = base.clone();
                    with.insert(option.name.to_string(), value);
                    needs(&spec, &with, option.name).is_some()
                        || problems.iter().zip(&before).any(|(problem, before)| answer(&spec, &with, problem) != *before)
                };
                if !tried.is_empty() && !tried.into_iter().any(shows) {
                    idle.push(format!("{}({context:?}, {} => …)", spec.name, option.name));
                }
            }
        }
    }
    assert!(idle.is_empty(), "accepted, and without effect:\n{}", idle.join("\n"));
}
