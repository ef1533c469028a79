//! What the documents show is what happens: every example runs, and every answer printed in them is the answer.

use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::arrow::util::pretty::pretty_format_batches;

use crate::session::{query, session};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("sql_examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn shell(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_pursuit")).args(arguments).current_dir(root()).output().expect("the shell starts")
}

#[test]
fn every_example_runs_in_the_shell() {
    let runs = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.starts_with("-- "), "{}: begins with what question it answers", file.display());
        let output = shell(&["-f", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{} prints nothing", file.display());
    };
    // Two at a time, because most of them keep one core busy.
    let files = examples();
    let (some, others) = files.split_at(files.len() / 2);
    std::thread::scope(|scope| [some, others].map(|files| drop(scope.spawn(move || files.iter().for_each(runs)))));
}

/// The README's first command prints what tests/quickstart.txt holds.
#[test]
fn the_quickstart_prints_what_it_always_did() {
    let output = String::from_utf8(shell(&["-f", "sql_examples/quickstart.sql"]).stdout).unwrap();
    let expected = std::fs::read_to_string(root().join("tests/quickstart.txt")).unwrap();
    assert!(output == expected, "the quickstart prints\n{output}");
}

/// Fenced blocks of a document: language and text.
fn blocks(document: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            blocks.push((language.to_string(), text.join("\n")));
        }
    }
    blocks
}

/// The pages that show queries: the README, and all of docs/.
fn pages() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    pages.push(root().join("README.md"));
    pages
}

/// Every SQL block of a page runs, in one session from top to bottom, and a text block after one is its answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_pages_tell_the_truth() {
    for page in pages() {
        let (ctx, name) = (session(), page.display());
        let blocks = blocks(&std::fs::read_to_string(&page).unwrap());
        let mut checked = 0;
        for (at, (language, sql)) in blocks.iter().enumerate() {
            if language != "sql" {
                continue;
            }
            let mut answer = Vec::new();
            for statement in sql.split(';').filter(|statement| !statement.trim().is_empty()) {
                answer = query(&ctx, statement).await.unwrap_or_else(|error| panic!("{name}: {statement}\n{error}"));
            }
            if let Some((_, expected)) = blocks.get(at + 1).filter(|(language, _)| language == "text") {
                let found = pretty_format_batches(&answer).unwrap().to_string();
                assert!(found == expected.trim_end(), "{name}: {sql}\nanswers\n{found}");
                checked += 1;
            }
        }
        // The tour is typed into a terminal by docs/tour.sh.
        let has_sql = blocks.iter().any(|(language, _)| language == "sql");
        assert!(checked > 0 || !has_sql, "{name} shows no answer");
    }
}

/// The guide's list of selectors is printed from the registry.
#[test]
fn the_guide_lists_every_selector() {
    let guide = std::fs::read_to_string(root().join("docs/guide.md")).unwrap();
    for spec in pursuit_udfs::selectors() {
        let names: Vec<String> = [spec.name].iter().chain(spec.aliases).map(|name| format!("`{name}`")).collect();
        let line = format!("| {} | {} | {} |", names.join(", "), spec.summary(), spec.score);
        assert!(guide.contains(&line), "docs/guide.md lacks the line\n{line}");
    }
}

/// A link from one page to another file leads somewhere.
#[test]
fn links_lead_somewhere() {
    let others = ["BENCHMARKS.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    for page in pages().into_iter().chain(others) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|link| !link.starts_with("http")) {
            let file = page.parent().unwrap().join(link.split('#').next().unwrap_or_default());
            assert!(file.exists(), "{} links to {link}, which is not there", page.display());
        }
    }
}

#[test]
fn the_shell_fails_with_a_line_and_a_code() {
    let output = shell(&["-c", "SELECT * FROM omp('sample.diabets', 'label', 5)"]);
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("omp: no table or view named `sample.diabets`; did you mean `sample.diabetes`?"), "{error}");
    assert_eq!(error.lines().count(), 1);
    assert!(!shell(&["-f", "no_such_file.sql"]).status.success());
    let csv = shell(&["--format", "csv", "-c", "SELECT rank, feature FROM omp('sample.iris', 'label', 1)"]);
    assert_eq!(String::from_utf8(csv.stdout).unwrap().trim(), "rank,feature\n1,petal_length");
}
