//! The shell as people use it: what they type at the prompt, scripts, pictures, and Ctrl-C.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn pursuit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pursuit"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    // The history of whoever runs the tests is none of ours.
    command.env("PURSUIT_HISTORY", std::env::temp_dir().join(format!("pursuit_history_{}", std::process::id())));
    command
}

fn run(arguments: &[&str]) -> Output {
    pursuit().args(arguments).output().expect("the shell starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_string()
}

/// What the prompt answers to these lines: its output and its errors.
fn typed(lines: &str) -> (String, String) {
    let mut shell = pursuit().arg("-q").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = shell.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// The one line that a wrong query ends with.
fn error(sql: &str) -> String {
    let output = run(&["-c", sql]);
    assert!(!output.status.success(), "this must fail: {sql}");
    let error = text(&output.stderr);
    assert_eq!(error.lines().count(), 1, "{sql}: {error}");
    error.trim().to_string()
}

#[test]
fn help_knows_the_product() {
    let (out, errors) = typed("\\h omp\n\\h\nhelp\n\\h ompp\n\\h abs\nexit\nSELECT 'not reached';\n");
    for part in [
        "Orthogonal matching pursuit",
        "Options of its own",
        "tolerance",
        "Example",
        "Rank the features of a table",
        "\\plot",
        "absolute value",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(out.find("omp ") < out.find("stability_selection"));
    assert!(!out.contains("not reached"));
    assert_eq!(errors.trim(), "no function named `ompp`; did you mean `omp`? \\h lists them");
}

#[test]
fn a_mistake_leaves_a_fresh_prompt() {
    let (out, errors) = typed("SELEC 1;\nSELECT 40\n + 2 AS x\n;\n\\nosuch\n\\psett\nquit\n");
    assert!(out.contains("| 42 |"), "{out}");
    assert!(errors.starts_with("syntax error: Expected"), "{errors}");
    assert!(errors.contains("no command named `\\nosuch`") && errors.contains("did you mean `pset`?"), "{errors}");
}

#[test]
fn tables_are_for_people_and_files_for_programs() {
    let (out, _) = typed(
        "SELECT * FROM omp('sample.diabetes', 'label', 2);\n\\pset empty on\n\\pset digits all\nSELECT * FROM omp('sample.diabetes', 'label', 2);\n",
    );
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[1].contains("| score ") && !lines[1].contains("valid_score"), "{out}");
    assert!(lines[3].contains("| 0.58645"), "{out}");
    assert!(!lines[3].contains("0.586450"), "six digits: {out}");
    assert!(lines[7].contains("valid_score") && lines[9].contains("0.586450"), "{out}");
    // What goes into a file is whole, as nobody sees there that it was cut.
    assert_eq!(text(&run(&["-c", "SELECT value FROM generate_series(1, 100)"]).stdout).lines().count(), 104);
    let (out, _) = typed("\\pset maxrows 3\nSELECT value FROM generate_series(1, 100);\n");
    assert_eq!(out.lines().filter(|line| line.starts_with("| ")).count(), 4, "{out}");
    // A file is whole, and lists have a place in it.
    let csv = run(&["--format", "csv", "-c", "SELECT value, [value, 2] AS l FROM generate_series(1, 20000) ORDER BY value"]);
    let csv = text(&csv.stdout);
    assert_eq!(csv.lines().count(), 20_001);
    assert_eq!(csv.lines().nth(1), Some("1,\"[1,2]\""));
    let json = text(&run(&["--format", "json", "-c", "SELECT value FROM generate_series(1, 20000)"]).stdout);
    assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&json).unwrap().len(), 20_000);
    // What answers with nothing prints nothing; an answer without rows has its columns.
    let json = run(&["--format", "json", "-q", "-c", "CREATE TABLE t AS SELECT 1 AS a", "-c", "SELECT a FROM t WHERE a > 1"]);
    assert_eq!(text(&json.stdout), "[]\n");
    let csv = run(&["--format", "csv", "-q", "-c", "SELECT 1 AS a, 2 AS b WHERE false"]);
    assert_eq!(text(&csv.stdout), "a,b\n");
}

/// The program's one input is a table or the SQL.
#[test]
fn what_is_piped_in_is_a_table() {
    let table = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/dev/stdin' OPTIONS ('format.has_header' 'true')";
    let mut shell = pursuit();
    shell.args(["-q", "--format", "csv", "-c", table, "-c", "SELECT sum(b) AS b FROM t", "-c", "SELECT max(b) AS b FROM t"]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"a,b\n1,2\n3,4\n").unwrap();
    assert_eq!(text(&shell.wait_with_output().unwrap().stdout), "b\n6\nb\n4\n");
    let (_, err) = typed(&format!("{table};\nSELECT 1;\n"));
    assert!(err.starts_with("the standard input has the SQL") && err.lines().count() == 1, "{err}");
}

#[test]
fn a_script_says_where_it_failed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.sql");
    std::fs::write(&file, "-- Fine.\nSELECT 1;\n\n-- Not fine.\nSELECT\n  nosuch;\n").unwrap();
    let output = run(&["-f", file.to_str().unwrap()]);
    let error = text(&output.stderr);
    assert!(error.contains("wrong.sql:5: statement 2 of 2: "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn wrong_names_are_set_right() {
    let cases = [
        (
            "SELECT * FROM random_forrest('sample.wine', 'label', 3)",
            "no function named `random_forrest`; did you mean `random_forest`?",
        ),
        ("SELECT omp('sample.wine', 'label', 3)", "omp: answers with a table; write SELECT * FROM omp(…)"),
        ("SELECT * FROM omp('diabetes', 'label', 3)", "no table or view named `diabetes`; did you mean `sample.diabetes`?"),
        ("SELECT * FROM omp('nosuch.parquet', 'label', 3)", "omp: no file named `nosuch.parquet`"),
        ("SELECT * FROM omp('Cargo.tomll', 'label', 3)", "no table or view named"),
        ("SELECT * FROM omp('docs/guide.md', 'label', 3)", "omp: cannot read `docs/guide.md` as a table; files end in parquet,"),
        ("SELECT * FROM omp(sample.wine, label => label, n_features => 5)", "unknown option `n_features`; did you mean `k`?"),
        ("SELECT * FROM omp(sample.wine, target => label, k => 5)", "unknown option `target`; did you mean `label`?"),
        (
            "SELECT * FROM omp(sample.breast_cancer, label => radius, k => 5)",
            "columns are radius_error, worst_radius, mean_radius,",
        ),
        ("SELECT * FROM wine", "no table or file named `wine`; did you mean `sample.wine`?"),
        (
            "SELECT scor FROM omp(sample.wine, label => label, k => 5)",
            "no column `scor`; did you mean `score`? columns are score, train_score,",
        ),
        ("SELECT bmii FROM sample.diabetes", "no column `bmii`; did you mean `bmi`? columns are age, sex, bmi,"),
        (
            "SELECT Age FROM (SELECT age AS \"Age\" FROM sample.diabetes)",
            "no column `age`; write it in double quotes, \"Age\"; columns are Age",
        ),
        ("SELECT nosuch", "no column `nosuch`; the query reads no table"),
        ("SELECT d.bmi FROM sample.diabetes a", "no column `d.bmi`; did you mean `a.bmi`? columns are a.age,"),
        (
            "SELECT d.bmi FROM sample.diabetes a CROSS JOIN sample.iris b",
            "no column `d.bmi`; did you mean `a.bmi`? columns are a.bmi, a.bp,",
        ),
    ];
    for (sql, expected) in cases {
        let error = error(sql);
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

/// A selection from moments says as much of itself as one from rows.
#[test]
fn plans_are_readable_and_measured() {
    for reads in ["moments", "rows"] {
        let sql = format!(
            "EXPLAIN ANALYZE SELECT * FROM omp((SELECT *, CASE WHEN age > 40 THEN s1 END AS t FROM sample.diabetes), label => label, k => 3, reads => '{reads}')"
        );
        let plan = text(&run(&["-c", &sql]).stdout);
        for metric in ["rows_read=442", "rows_dropped=0", "values_filled=122", "read_time=", "select_time=", "memory"] {
            assert!(plan.contains(metric), "{reads}: {metric}: {plan}");
        }
        assert!(!plan.contains("get_field") && !plan.contains("eval_time"), "{plan}");
    }
    let plan = text(&run(&["-c", "EXPLAIN SELECT * FROM omp('sample.diabetes', 'label', 3)"]).stdout);
    assert!(
        plan.contains("gram(sample.diabetes.label, 10 features)") && plan.lines().all(|line| line.chars().count() < 160),
        "{plan}"
    );
}

/// `SHOW FUNCTIONS` begins with ours, and says what they are for.
#[test]
fn functions_have_descriptions() {
    let all = text(&run(&["--format", "csv", "-c", "SHOW FUNCTIONS"]).stdout);
    assert!(all.lines().nth(1).unwrap().contains(",TABLE,"), "{all}");
    assert!(all.lines().count() > 200);
    let some = text(&run(&["--format", "csv", "-c", "SHOW FUNCTIONS LIKE 'om%'"]).stdout);
    assert!(some.contains("omp,TABLE,\"Orthogonal matching pursuit"), "{some}");
}

const DRAWN: [(&str, &str); 8] = [
    ("ranking", "SELECT * FROM omp('sample.diabetes', 'label', 5)"),
    ("curve", "SELECT * FROM omp(sample.diabetes, label => label, k => 8, folds => 5)"),
    (
        "two",
        "SELECT * FROM omp('sample.diabetes', 'label', 4) UNION ALL SELECT * FROM correlation('sample.diabetes', 'label', 4)",
    ),
    ("path", "SELECT * FROM selection_path(sample.diabetes, label => label, selector => 'lasso')"),
    ("stability", "SELECT * FROM stability_selection(sample.diabetes, label => label, selector => 'omp', k => 4)"),
    ("correlation", "SELECT * FROM correlation_matrix(sample.diabetes)"),
    ("datum_wise", "SELECT * FROM datum_wise_curve(sample.iris, label => label, lambda => [0.01, 0.1, 0.3])"),
    ("pixels", "SELECT * FROM omp('sample.digits', 'label', 12)"),
];

#[test]
fn every_answer_is_drawn_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sql) in DRAWN {
        let extra: &[&str] = match name {
            "curve" => &["--kind", "curve"],
            "pixels" => &["--image", "8x8"],
            _ => &[],
        };
        for ending in ["svg", "vl.json", "html"] {
            let file = folder.path().join(format!("{name}.{ending}"));
            let output = run(&[&["plot", "-q", "-c", sql, "-o", file.to_str().unwrap()], extra].concat());
            assert!(output.status.success(), "{name}: {}", text(&output.stderr));
            let drawn = std::fs::read_to_string(&file).unwrap();
            match ending {
                "svg" => assert!(drawn.contains("<svg") && drawn.contains("</svg>"), "{name}"),
                "html" => assert!(!drawn.contains("http://") || !drawn.contains("<script"), "{name}"),
                _ => assert!(
                    serde_json::from_str::<serde_json::Value>(&drawn).unwrap()["data"]["values"].as_array().unwrap().len() > 2
                ),
            }
        }
    }
    let drawn = text(&run(&["plot", "-q", "-c", DRAWN[0].1]).stdout);
    assert!(drawn.contains("bmi") && drawn.contains('█') && drawn.lines().count() < 20, "{drawn}");
    let error = text(&run(&["plot", "-q", "-c", "SELECT 'a' AS a", "-o", "x.svg"]).stderr);
    assert_eq!(error.trim(), "plot: the answer has no column of numbers to draw");
    assert!(text(&run(&["plot", "-q", "-c", "SELECT 1 AS a, 'b' AS b", "-o", "x.gif"]).stderr).contains("end it in .svg"));
}

/// The pictures of the documents are made by the commands that stand there.
#[test]
fn pictures_of_the_documents_are_those_of_today() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in documented() {
        let file = folder.path().join(&name);
        let output = pursuit().args(["plot", "-q"]).args(&arguments).arg("-o").arg(&file).output().unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let kept = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures").join(&name)).unwrap();
        let made = std::fs::read_to_string(&file).unwrap();
        assert!(rounded(&kept) == rounded(&made), "docs/pictures/{name} has changed: run docs/pictures/make.sh");
    }
}

/// Every number of a text to half a pixel: other processors add up in another order.
fn rounded(text: &str) -> Vec<String> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let mut parts = Vec::new();
    for part in text.split_inclusive(|c: char| !is_number(c)) {
        let end = part.find(|c: char| !is_number(c)).unwrap_or(part.len());
        match part[..end].parse::<f64>() {
            Ok(x) => parts.push(format!("{:.0}{}", 2.0 * x, &part[end..])),
            Err(_) => parts.push(part.to_string()),
        }
    }
    parts
}

/// The commands of docs/pictures/make.sh: the file, and the arguments before `-o`.
fn documented() -> Vec<(String, Vec<String>)> {
    let script = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures/make.sh")).unwrap();
    let calls = script.lines().filter_map(|line| line.strip_prefix("draw "));
    let call = |line: &str| {
        let (name, rest) = line.split_once(' ').expect("a file, then what is drawn");
        let (sql, options) = rest.trim().trim_start_matches('"').split_once('"').expect("the query is in quotes");
        let options = options.split_whitespace().map(str::to_string);
        (name.to_string(), ["-c".to_string(), sql.to_string()].into_iter().chain(options).collect())
    };
    let found: Vec<_> = calls.map(call).collect();
    assert!(found.len() >= 3);
    found
}

/// Names of 30 letters stand under each other with room between.
#[test]
fn sixty_long_names_do_not_overlap() {
    let columns: Vec<String> =
        (0..60).map(|at| format!("sin(i * {at}.37) + i * 0.00{at:02} AS measurement_of_something_{at:05}")).collect();
    let sql = format!(
        "CREATE TABLE t AS SELECT i AS label, {} FROM (SELECT value AS i FROM generate_series(1, 300)); SELECT * FROM correlation(t, label => label, k => 60)",
        columns.join(", ")
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sixty.svg");
    let output = run(&["plot", "-q", "-c", &sql, "-o", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let svg = std::fs::read_to_string(file).unwrap();
    let attribute = |text: &str, name: &str| -> Option<f64> {
        text.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0.trim_end_matches("px").parse().ok()
    };
    let mut names: Vec<(f64, f64)> = svg
        .split("<text")
        .skip(1)
        .filter_map(|text| text.split("</text>").next())
        .filter(|text| text.contains("measurement_of_something_"))
        .map(|text| (attribute(text, "y").unwrap(), attribute(text, "font-size").unwrap_or(12.0)))
        .collect();
    assert_eq!(names.len(), 60);
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(names.windows(2).all(|pair| pair[1].0 - pair[0].0 >= pair[0].1), "{names:?}");
}

/// Processor time of a process so far.
fn cpu(shell: &Child) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", shell.id())).unwrap();
    let after_name: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = after_name[11].parse::<u64>().unwrap() + after_name[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Ctrl-C brings the prompt back at once, whatever is going on, and nothing goes on after it.
#[cfg(target_os = "linux")]
#[test]
fn interrupts_stop_everything() {
    let wide = (0..100).map(|at| format!("'level' || CAST(i * {at} % 997 AS VARCHAR) AS t{at}")).collect::<Vec<_>>().join(", ");
    let texts = format!("(SELECT i % 7 AS label, {wide} FROM (SELECT value AS i FROM generate_series(1, 2000000)))");
    let numbers = "(SELECT * FROM sample_problem('interaction', 60000, 1, '{\"columns\": 60}'))";
    let rows = "(SELECT sin(value) AS a, cos(value) AS b, value % 3 AS label FROM generate_series(1, 100000000000))";
    let queries = [
        "SELECT count(*) FROM generate_series(1, 100000000000)".to_string(),
        format!("SELECT * FROM omp({rows}, label => label, k => 2)"),
        format!("SELECT * FROM correlation({texts}, label => label, k => 2)"),
        format!("SELECT * FROM sequential_attention({numbers}, label => label, k => 20, epochs => 1000)"),
        format!("SELECT * FROM random_forest({numbers}, label => label, trees => 20000)"),
        format!("SELECT * FROM boosting({numbers}, label => label, rounds => 20000)"),
        format!("SELECT * FROM ngp({numbers}, label => label, k => 20)"),
        format!("SELECT * FROM stability_selection({numbers}, label => label, selector => 'random_forest', k => 4)"),
    ];
    let mut shell = pursuit().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    let mut errors = BufReader::new(shell.stderr.take().unwrap()).lines();
    // DataFusion ends what it is computing of a batch; unoptimised as it is here, that takes a second for wide ones.
    writeln!(input, "SET datafusion.execution.batch_size = 256;").unwrap();
    for sql in queries {
        writeln!(input, "{sql};").unwrap();
        // So much work that it is planned, however many share the machine.
        let (idle, patience) = (cpu(&shell), Instant::now());
        while cpu(&shell) - idle < Duration::from_millis(1500) && patience.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let begin = Instant::now();
        assert!(Command::new("kill").args(["-INT", &shell.id().to_string()]).status().unwrap().success());
        let line = errors.next().unwrap().unwrap();
        let waited = begin.elapsed();
        assert!(line.contains("stopped after"), "{sql}: {line}");
        // What is left of a batch may be finished; then nothing goes on.
        let (patience, mut burnt) = (Instant::now(), Duration::MAX);
        while burnt > Duration::from_millis(20) && patience.elapsed() < Duration::from_secs(10) {
            let before = cpu(&shell);
            std::thread::sleep(Duration::from_millis(200));
            burnt = cpu(&shell) - before;
        }
        println!(
            "{:>6.1} ms until the prompt, {burnt:?} of processor time later: {}",
            waited.as_secs_f64() * 1e3,
            &sql[..60.min(sql.len())]
        );
        // Alone on a machine it is a few milliseconds; tests share theirs.
        assert!(waited < Duration::from_secs(5) && burnt <= Duration::from_millis(20), "{sql}: {waited:?}, {burnt:?}");
    }
    drop(input);
    assert!(shell.wait().unwrap().success());
}
