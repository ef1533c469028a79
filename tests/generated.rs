//! Generated calls: every function, with options and values that fit and that do not, on ordinary and on odd tables.
//!
//! No call panics or hangs; an error is one line that begins with the function's name; numbers of an answer are finite; the answer is
//! the same on one thread and on four. `PURSUIT_CALLS=5000 PURSUIT_SEED=7 cargo test --test main generated` tries others.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Float64Type, Int32Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use pursuit_udfs::{Asks, OF_SESSIONS, OptionSpec, Random, Run, SELECTOR, SELECTORS, Spec, reports, selectors};

use crate::session::{query, session_with};

/// How long a call may take, however busy the machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Tables by name, with columns that may be labels.
const TABLES: [(&str, &[&str]); 16] = [
    ("plain", &["y", "class", "word", "flag", "a"]),
    ("empty", &["y", "class"]),
    ("one_row", &["y", "class"]),
    ("two_rows", &["y", "class"]),
    ("nothing", &["y", "a"]),
    ("constant", &["y", "a"]),
    ("extreme", &["y", "nan", "whole"]),
    ("typed", &["y", "decimal", "day", "dictionary", "list", "unsigned"]),
    ("\"名前 \"\"x\"\"\"", &["y", "\"ü.b\"", "\"\""]),
    ("(SELECT a, a AS b, b AS c, c + b AS d, y, class FROM plain)", &["y", "class"]),
    ("(SELECT a.*, b.* FROM plain a JOIN plain b ON a.y = b.y)", &["y"]),
    ("(SELECT * FROM plain WHERE a > 0)", &["y", "class", "word"]),
    ("(SELECT * EXCLUDE (word) FROM plain UNION ALL SELECT * EXCLUDE (word) FROM plain)", &["y", "class", "flag"]),
    (
        "(SELECT *, 'always' AS one, CAST(NULL AS DOUBLE) AS none, CAST(NULL AS TEXT) AS nowhere FROM plain)",
        &["y", "one", "none"],
    ),
    (
        "(SELECT p.*, p.w * 1000 + row_number() OVER () AS id, md5(CAST(row_number() OVER () AS TEXT)) AS code FROM plain AS p)",
        &["y", "code"],
    ),
    ("sample.iris", &["label", "petal_width"]),
];

/// Tables of models and of policies, whole and spoilt.
const MODELS: [&str; 9] = [
    "linear_model",
    "class_model",
    "tree_model",
    "network_model",
    "policy",
    "(SELECT * FROM linear_model WHERE value > 0)",
    "(SELECT part, class, feature, level, step, node, link, value * 1e308 AS value FROM tree_model)",
    "(SELECT part, class, feature, level, step, node + 1 AS node, link, value FROM tree_model)",
    "(SELECT * FROM class_model WHERE class IS NULL)",
];

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn plain(rows: usize) -> RecordBatch {
    let mut random = Run::new(3).random("plain", 0);
    let mut column = |hole: usize| -> Vec<Option<f64>> {
        (0..rows).map(|row| (hole == 0 || row % hole != 1).then(|| (random.normal() * 8.0).round() / 4.0)).collect()
    };
    let (a, b, c) = (column(0), column(7), column(0));
    let y: Vec<f64> = (0..rows).map(|row| 2.0 * a[row].unwrap() - b[row].unwrap_or(0.0) + (row % 5) as f64 / 8.0).collect();
    let words = ["low", "high", "Ünder", "o'er"];
    batch(vec![
        ("class", Arc::new(Int32Array::from_iter((0..rows).map(|row| Some(i32::from(y[row] > 0.0) + i32::from(y[row] > 3.0)))))),
        ("word", Arc::new(StringArray::from_iter((0..rows).map(|row| (row % 11 != 3).then_some(words[row % 4]))))),
        ("flag", Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(y[row] > 1.0))))),
        ("w", Arc::new(Float64Array::from_iter((0..rows).map(|row| Some((row % 3) as f64))))),
        ("a", Arc::new(Float64Array::from(a))),
        ("b", Arc::new(Float64Array::from(b))),
        ("c", Arc::new(Float64Array::from(c))),
        ("y", Arc::new(Float64Array::from(y))),
    ])
}

fn extreme() -> RecordBatch {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, -0.0, 1e101, -1e99, 5e-324, 1.0];
    let wholes = [i64::MIN, i64::MAX, 0, -1, 1, i64::MAX - 1, 1 << 53, (1 << 53) + 1];
    let repeat = |at: usize, step: usize| (0..40).map(move |row| odd[(row * step + at) % odd.len()]);
    batch(vec![
        ("nan", Arc::new(Float64Array::from_iter_values(repeat(0, 1)))),
        ("inf", Arc::new(Float64Array::from_iter_values(repeat(3, 3)))),
        ("tiny", Arc::new(Float64Array::from_iter_values((0..40).map(|row| f64::from(row) * 1e-170)))),
        ("large", Arc::new(Float64Array::from_iter_values((0..40).map(|row| f64::from(row * row % 7) * 1e98)))),
        ("whole", Arc::new(Int64Array::from_iter_values((0..40).map(|row| wholes[row % wholes.len()])))),
        ("y", Arc::new(Float64Array::from_iter_values((0..40).map(|row| f64::from(row * 7 % 11))))),
    ])
}

fn typed() -> RecordBatch {
    let lists = (0..40).map(|row| Some(vec![Some(row), None]));
    let words = (0..40).map(|row| ["red", "green", "blue"][row % 3]);
    batch(vec![
        (
            "decimal",
            Arc::new(
                Decimal128Array::from_iter_values((0..40).map(|row| row * row * 10_i128.pow(30)))
                    .with_precision_and_scale(38, 5)
                    .unwrap(),
            ),
        ),
        ("day", Arc::new(Date32Array::from_iter_values((0..40).map(|row| row * 31 % 17)))),
        ("dictionary", Arc::new(words.collect::<DictionaryArray<Int32Type>>())),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        ("unsigned", Arc::new(UInt64Array::from_iter_values((0..40).map(|row| u64::MAX - row * row % 13)))),
        ("none", Arc::new(datafusion::arrow::array::NullArray::new(40))),
        ("y", Arc::new(Float64Array::from_iter_values((0..40).map(|row| f64::from(row * 7 % 11))))),
    ])
}

async fn session(partitions: usize) -> SessionContext {
    let ctx = session_with(SessionConfig::new().with_target_partitions(partitions));
    let whole = plain(60);
    let constant = batch(vec![
        ("a", Arc::new(Float64Array::from(vec![2.5; 20]))),
        ("b", Arc::new(StringArray::from(vec!["same"; 20]))),
        ("y", Arc::new(Float64Array::from_iter_values((0..20).map(f64::from)))),
    ]);
    let nothing = batch(vec![
        ("a", Arc::new(Float64Array::from(vec![None; 20]))),
        ("b", Arc::new(StringArray::from(vec![None::<&str>; 20]))),
        ("y", Arc::new(Float64Array::from(vec![None; 20]))),
    ]);
    let named = whole.project(&[4, 5, 6, 7]).unwrap();
    let named = batch(vec![
        ("ü.b", Arc::clone(named.column(0))),
        ("", Arc::clone(named.column(1))),
        ("a\nb`'\"", Arc::clone(named.column(2))),
        ("y", Arc::clone(named.column(3))),
    ]);
    let tables = [
        ("plain", whole.clone()),
        ("empty", whole.slice(0, 0)),
        ("one_row", whole.slice(0, 1)),
        ("two_rows", whole.slice(0, 2)),
        ("nothing", nothing),
        ("constant", constant),
        ("extreme", extreme()),
        ("typed", typed()),
        ("名前 \"x\"", named),
    ];
    for (name, table) in tables {
        let table = MemTable::try_new(table.schema(), vec![vec![table]]).unwrap();
        ctx.register_table(datafusion::common::TableReference::bare(name), Arc::new(table)).unwrap();
    }
    for (name, call) in [
        ("linear_model", "fit(plain, label => y)"),
        ("class_model", "fit(plain, label => class, model => 'logistic')"),
        ("tree_model", "fit(plain, label => word, model => 'boosting', rounds => 3)"),
        ("network_model", "fit(plain, label => y, model => 'mlp', epochs => 1)"),
        ("policy", "datum_wise_policy(plain, label => class, iterations => 1, features => ['a', 'b', 'c'])"),
    ] {
        query(&ctx, &format!("CREATE TABLE {name} AS SELECT * FROM {call}")).await.unwrap();
    }
    ctx
}

fn pick<'a, T: ?Sized>(random: &mut Random, items: &[&'a T]) -> &'a T {
    items[random.below(items.len())]
}

/// A value that an option may well take.
fn fitting(random: &mut Random, option: &OptionSpec) -> String {
    let words: Vec<&str> = option.allowed.split('\'').skip(1).step_by(2).collect();
    let ends: Vec<f64> = option.allowed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let low = ends.first().copied().unwrap_or(0.0);
    // Small, because a call is to end soon.
    let high = ends.get(1).copied().unwrap_or(f64::INFINITY).min(low + 8.0);
    let number = low + (high - low) * random.uniform();
    match option.kind {
        // A limit that is nearly reached ends here and there at another moment.
        _ if option.name == "time_limit" => pick(random, &[TOO_SHORT, "50"]).to_string(),
        "boolean" => pick(random, &["true", "false"]).to_string(),
        "whole number" => format!("{}", number.round().max(low.ceil())),
        "list of whole numbers" => format!("[{}]", number.round().max(1.0)),
        "number" => format!("{number:.4}"),
        "list of numbers" => format!("[{number:.4}]"),
        "text" if option.name == SELECTOR => format!("'{}'", selectors()[random.below(selectors().len())].name),
        "list of text" if option.name == SELECTORS => {
            let names: Vec<String> =
                (0..random.below(4)).map(|_| format!("'{}'", selectors()[random.below(selectors().len())].name)).collect();
            format!("[{}]", names.join(", "))
        }
        "text" if !words.is_empty() => format!("'{}'", pick(random, &words)),
        "list of text" if !words.is_empty() => format!("['{}']", pick(random, &words)),
        "text" => pick(random, &["w", "a", "'b'"]).to_string(),
        "list of text" if option.name == "features" && random.below(3) == 0 => pick(
            random,
            &["(SELECT feature FROM omp(plain, label => y, k => 2))", "(SELECT feature FROM lasso(plain, label => class))"],
        )
        .to_string(),
        "list of text" => pick(random, &["a", "['b', 'c']", "['*']", "[]", "'a*'", "[word]", "'none'"]).to_string(),
        "table" if ["model", "policy"].contains(&option.name) => pick(random, &MODELS).to_string(),
        "table" => pick(random, &["plain", "'two_rows'", "(SELECT * FROM plain WHERE b > 0)", "empty"]).to_string(),
        "size" => pick(random, &["'1GB'", "'64KB'", "1000000"]).to_string(),
        kind if kind.starts_with("map of lists") => pick(random, &["MAP {'g': ['a', 'b']}", "{'g': ['c']}"]).to_string(),
        kind if kind.starts_with("map of numbers") => pick(random, &["MAP {'a': 0.5}", "{'b': 0, 'c': 2}"]).to_string(),
        kind if kind.starts_with("list of pairs") => pick(random, &["[['a', 'b']]", "MAP {'a': ['c']}"]).to_string(),
        "options" => pick(random, &["MAP {'tolerance': 0.1}", "'{}'", "'{\"trees\": 3}'"]).to_string(),
        _ => pick(random, &["2", "'auto'", "1", "3", "'one_se'"]).to_string(),
    }
}

/// Seconds in which nothing ends.
const TOO_SHORT: &str = "0.001";

/// Values that few options take.
const ODD: [&str; 26] = [
    "NULL",
    "-1",
    "0",
    "1",
    "0.5",
    "1e308",
    "-1e308",
    "9223372036854775807",
    "18446744073709551615",
    "'x'",
    "''",
    "'{}'",
    "[]",
    "[[]]",
    "['a', 1]",
    "true",
    "{'a': 1}",
    "MAP {'a': ['b']}",
    "(SELECT 1)",
    "(SELECT 'a' AS feature)",
    "plain",
    "nowhere",
    "'NaN'::DOUBLE",
    "chr(10)",
    "repeat('x', 5000)",
    "[NULL, 1, 'a']",
];

/// A query, the function whose name its errors bear, and what is set for the session before it.
struct Call {
    function: String,
    sql: String,
    set: Option<String>,
}

fn call(random: &mut Random, specs: &[Spec]) -> Call {
    let (table, labels) = TABLES[if random.below(2) == 0 { 0 } else { random.below(TABLES.len()) }];
    let label = if random.below(20) == 0 { "nowhere" } else { pick(random, labels) };
    if random.below(14) == 0 {
        let of_grams = [
            ("gram", format!("gram_summary(gram({label}, a)) FROM {table}")),
            (
                "select_from",
                format!(
                    "select_from(gram({label}, a, c), '{}', '{{\"k\": {}}}') FROM {table}",
                    pick(random, &["omp", "lasso", "sa", "elastic_net", "f_test", ""]),
                    random.below(4)
                ),
            ),
            ("gram_merge", format!("gram_merge({}) FROM {table}", pick(random, &ODD))),
            ("gram_summary", format!("gram_summary({})", pick(random, &ODD))),
        ];
        let (name, sql) = of_grams[random.below(4)].clone();
        return Call { function: name.to_string(), sql: format!("SELECT {sql}"), set: None };
    }
    if random.below(20) == 0 {
        let arguments: Vec<&str> = (0..random.below(5)).map(|at| if at == 0 { "'ohm'" } else { pick(random, &ODD) }).collect();
        let sql = format!("SELECT * FROM sample_problem({}) LIMIT 3", arguments.join(", "));
        return Call { function: "sample_problem".to_string(), sql, set: None };
    }
    let spec = &specs[random.below(specs.len())];
    let mut options: Vec<OptionSpec> = spec.all_options();
    let is_of_model = spec.asks == Asks::Model && random.below(10) > 0;
    let mut arguments = vec![if is_of_model { pick(random, &MODELS) } else { table }.to_string()];
    let names_label = match spec.asks {
        Asks::Label | Asks::Choice => true,
        Asks::MaybeLabel => random.below(2) == 0,
        Asks::NoLabel | Asks::Model => random.below(12) == 0,
    };
    if names_label {
        arguments.push(format!("label => {label}"));
    }
    // What applies a model does nothing without one.
    if spec.asks == Asks::NoLabel
        && let Some(model) = spec.model
    {
        options.retain(|option| option.name != model.option);
        arguments.push(format!("{} => {}", model.option, pick(random, &MODELS)));
    }
    for _ in 0..random.below(4).min(options.len()) {
        let option = options.remove(random.below(options.len()));
        let value = if random.below(4) == 0 { pick(random, &ODD).to_string() } else { fitting(random, &option) };
        arguments.push(format!("{} => {value}", option.name));
    }
    let set = (random.below(16) == 0).then(|| {
        let all = spec.all_options();
        let name = OF_SESSIONS[random.below(OF_SESSIONS.len())];
        let own = all.iter().find(|option| option.name == name).map(|option| fitting(random, option));
        format!("SET pursuit.{name} = {}", own.unwrap_or("3".to_string()))
    });
    let rest = if spec.is_selector() { pick(random, &["", "", "", " WHERE rank <= 2"]) } else { "" };
    Call { function: spec.name.to_string(), sql: format!("SELECT * FROM {}({}){rest}", spec.name, arguments.join(", ")), set }
}

/// The rows of the answer as text, in any order, or the error.
async fn run(ctx: SessionContext, sql: String) -> Result<Vec<String>, String> {
    let batches = async { ctx.sql(&sql).await?.collect().await }.await;
    let batches = batches.map_err(|error| error.strip_backtrace())?;
    let mut rows = Vec::new();
    // Who hands the rows of a table on has its values, whatever they are.
    let is_ours = !["chosen(", "predict(", "datum_wise_classify("].iter().any(|function| sql.contains(function));
    for batch in &batches {
        for column in batch.columns().iter().filter(|_| is_ours) {
            if let Some(values) = column.as_any().downcast_ref::<datafusion::arrow::array::PrimitiveArray<Float64Type>>()
                && values.iter().flatten().any(|value| !value.is_finite())
            {
                return Err(format!("not finite: {values:?}"));
            }
        }
        let options = FormatOptions::default().with_null("NULL");
        // How long something took is not the same twice.
        let told = batch.schema().fields().iter().map(|field| field.name() != "seconds").collect::<Vec<_>>();
        let columns: Vec<ArrayFormatter<'_>> = (batch.columns().iter().zip(told))
            .filter(|(_, told)| *told)
            .map(|(column, _)| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|")),
        );
    }
    rows.sort();
    Ok(rows)
}

/// What goes wrong in the selection that these functions run is said in the selector's name.
fn names_a_selector(function: &str) -> bool {
    ["select_from", "chosen", "chosen_sql"].contains(&function)
}

/// What is wrong with an error, if anything is.
fn fault(function: &str, message: &str) -> Option<&'static str> {
    let ours = ["Error during planning: ", "Execution error: ", "Resources exhausted: "]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))
        .unwrap_or(message);
    // What is wrong inside a subquery, or with a list of numbers and words, DataFusion itself says before we are asked.
    let is_sql = ["SQL error", "Schema error", "Arrow error: Cast error"].iter().any(|own| message.starts_with(own));
    if message.contains("nternal error") {
        Some("an internal error")
    } else if is_sql {
        None
    } else if !(ours.starts_with(&format!("{function}: ")) || names_a_selector(function) && ours.contains(": ")) {
        Some("no name of the function in front")
    } else if message.lines().count() != 1 || message.chars().count() > 2500 {
        Some("more than a line")
    } else {
        None
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_calls_end_in_an_answer_or_in_one_line() {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (calls, seed) = (number("PURSUIT_CALLS", 150), number("PURSUIT_SEED", 1));
    let specs: Vec<Spec> = selectors().into_iter().chain(reports()).collect();
    let (one, four) = (session(1).await, session(4).await);
    let mut faults = Vec::new();
    let mut answered = 0;
    for at in 0..calls {
        let Call { function, sql, set } = call(&mut Run::new(seed).random("calls", at), &specs);
        let own = match &set {
            Some(_) => Some((session(1).await, session(4).await)),
            None => None,
        };
        let (one, four) = own.as_ref().map_or((&one, &four), |(one, four)| (one, four));
        if let Some(set) = &set {
            for ctx in [one, four] {
                // A setting may be refused, as a call may.
                if let Err(error) = query(ctx, set).await
                    && error.to_string().lines().count() > 1
                {
                    faults.push(format!("{set}: {error}"));
                }
            }
        }
        let sql_and_settings = format!("{}{sql}", set.map(|set| format!("{set}; ")).unwrap_or_default());
        let mut outcomes = Vec::new();
        for ctx in [one, four] {
            let started = std::time::Instant::now();
            let task = SpawnedTask::spawn(run(ctx.clone(), sql.clone()));
            match tokio::time::timeout(LIMIT, task).await {
                Ok(Ok(outcome)) => outcomes.push(outcome),
                Ok(Err(panic)) => faults.push(format!("panic {panic}: {sql_and_settings}")),
                // Dropping the task ends it.
                Err(_) => faults.push(format!("more than {LIMIT:?}: {sql_and_settings}")),
            }
            if started.elapsed() > Duration::from_secs(10) {
                eprintln!("{:?}: {sql_and_settings}", started.elapsed());
            }
        }
        answered += usize::from(outcomes.iter().any(Result::is_ok));
        let [first, second] = &outcomes[..] else { continue };
        if first != second && !sql_and_settings.contains(TOO_SHORT) {
            let differing = match (first, second) {
                (Ok(a), Ok(b)) => a.iter().zip(b).find(|(a, b)| a != b).map(|(a, b)| format!("{a} and {b}")),
                _ => None,
            };
            faults.push(format!(
                "differs on 1 and 4 partitions: {sql_and_settings}: {}",
                differing.unwrap_or(format!("{first:?} and {second:?}"))
            ));
        }
        if let Err(message) = first
            && let Some(fault) = fault(&function, message)
        {
            faults.push(format!("{fault}: {sql_and_settings}: {}", message.chars().take(400).collect::<String>()));
        }
    }
    eprintln!("{calls} calls, {answered} with an answer");
    assert!(answered as u64 * 8 > calls, "most calls were refused: {answered} of {calls} had an answer");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
