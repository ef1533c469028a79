//! Rules of the house: who may use whom, and how long a file may be. Read from the sources themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// Lines of a file in the middle, and of the longest.
const MEDIAN_MAX: usize = 200;
const LINES_MAX: usize = 500;

/// A file of the sources, by its path below `src`.
struct Source {
    path: String,
    text: String,
}

fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    walk(Path::new(SOURCES), &mut paths);
    paths.sort();
    let read = |path: PathBuf| Source {
        path: path.strip_prefix(SOURCES).unwrap().to_string_lossy().replace('\\', "/"),
        text: fs::read_to_string(&path).unwrap(),
    };
    paths.into_iter().map(read).collect()
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// The room of a file: the directory below `src`, or the file itself if it lies in none.
fn room(path: &str) -> &str {
    path.split_once('/').map_or_else(|| path.trim_end_matches(".rs"), |(room, _)| room)
}

/// What is compiled into the library: a file up to its tests, without comments.
fn library(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let code = |line: &str| line.split("//").next().unwrap_or("").to_string();
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Every path that begins with `crate::`, lists in braces spelled out as far as their first names.
fn crate_paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        // Not `pursuit_udfs::…` and not `$crate::…`, which macros write for others.
        if text[..at].ends_with(['$', '_']) {
            continue;
        }
        let rest = &text[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 1;
            let end = list.char_indices().find(|(_, c)| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                depth == 0
            });
            let mut depth = 0;
            let mut name = String::new();
            for c in list[..end.map_or(list.len(), |(end, _)| end)].chars().chain([',']) {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut name).trim().to_string()),
                    c if depth == 0 => name.push(c),
                    _ => {}
                }
            }
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect());
        }
    }
    found.retain(|path| !path.is_empty());
    found
}

/// What `lib.rs` calls by another name: the name, and the room it comes from.
fn reexports() -> BTreeMap<String, String> {
    let text = library(&fs::read_to_string(Path::new(SOURCES).join("lib.rs")).unwrap());
    let mut names = BTreeMap::new();
    for item in text.split("pub use ").skip(1) {
        let item = item.split(';').next().unwrap_or("").replace(['\n', '}'], " ");
        let (path, list) = item.split_once('{').unwrap_or_else(|| item.rsplit_once("::").unwrap_or(("", &item)));
        let room = path.split("::").next().unwrap_or("").trim();
        for name in list.split(',') {
            let name = name.split(" as ").last().unwrap_or("").trim();
            names.insert(name.to_string(), room.to_string());
        }
    }
    names
}

/// For each room those that it uses, with a file that does.
fn graph() -> BTreeMap<String, BTreeMap<String, String>> {
    let reexports = reexports();
    let sources = sources();
    let rooms: BTreeSet<&str> = sources.iter().map(|source| room(&source.path)).collect();
    // Macros are exported at the root; they stand where they are declared.
    let macros: BTreeMap<String, String> = sources
        .iter()
        .flat_map(|source| {
            let names = source.text.split("macro_rules! ").skip(1).map(|rest| rest.split([' ', '{']).next().unwrap_or(""));
            names.map(|name| (name.to_string(), room(&source.path).to_string())).collect::<Vec<_>>()
        })
        .collect();
    let mut graph: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    // Tests may use whom they like.
    let is_library = |source: &&Source| source.path != "lib.rs" && !source.path.ends_with("/tests.rs");
    for source in sources.iter().filter(is_library) {
        let own = room(&source.path);
        let used = graph.entry(own.to_string()).or_default();
        for path in crate_paths(&library(&source.text)) {
            let first = path.split("::").next().unwrap_or("").split(" as ").next().unwrap_or("").trim();
            let other = if rooms.contains(first) {
                first
            } else {
                let known = reexports.get(first).or_else(|| macros.get(first));
                known.unwrap_or_else(|| panic!("{}: where does crate::{first} come from?", source.path))
            };
            if other != own {
                used.entry(other.to_string()).or_insert_with(|| source.path.clone());
            }
        }
    }
    graph
}

/// A way from a room back to itself.
fn cycle(graph: &BTreeMap<String, BTreeMap<String, String>>) -> Option<Vec<String>> {
    fn visit(
        room: &str,
        graph: &BTreeMap<String, BTreeMap<String, String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(at) = way.iter().position(|earlier| earlier == room) {
            return Some(way[at..].iter().cloned().chain([room.to_string()]).collect());
        }
        if done.contains(room) {
            return None;
        }
        way.push(room.to_string());
        let found = graph.get(room).and_then(|used| used.keys().find_map(|other| visit(other, graph, way, done)));
        way.pop();
        done.insert(room.to_string());
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|room| visit(room, graph, &mut Vec::new(), &mut done))
}

/// The suite judges everything, and everything uses small tables in its tests: it stands outside.
fn graph_of_rooms() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut graph = graph();
    graph.remove("testing");
    graph.values_mut().for_each(|used| drop(used.remove("testing")));
    graph
}

#[test]
fn rooms_use_each_other_in_one_direction() {
    let graph = graph_of_rooms();
    if let Some(cycle) = cycle(&graph) {
        let steps = cycle.windows(2).map(|pair| format!("{} uses {} in {}", pair[0], pair[1], graph[&pair[0]][&pair[1]]));
        panic!("rooms use each other in a circle: {}", steps.collect::<Vec<_>>().join("; "));
    }
    for (room, used) in &graph {
        println!("{room} -> {}", used.keys().cloned().collect::<Vec<_>>().join(", "));
    }
}

#[test]
fn kernels_stand_alone_and_engines_know_no_selector() {
    let graph = graph_of_rooms();
    assert!(graph["kernels"].is_empty(), "kernels/ must use nothing of ours but kernels/, got {:?}", graph["kernels"]);
    for engine in ["linear", "network", "trees"] {
        for above in ["selectors", "baselines", "reports", "registry"] {
            if let Some(file) = graph.get(engine).and_then(|used| used.get(above)) {
                panic!("{engine}/ must not use {above}/, and {file} does");
            }
        }
    }
}

#[test]
fn files_are_short() {
    let mut lengths: Vec<(usize, String)> =
        sources().into_iter().map(|source| (source.text.lines().count(), source.path)).collect();
    lengths.sort();
    let median = lengths[lengths.len() / 2].0;
    assert!(median < MEDIAN_MAX, "the file in the middle must have fewer than {MEDIAN_MAX} lines, got {median}");
    let long: Vec<_> = lengths.iter().filter(|(lines, _)| *lines > LINES_MAX).collect();
    assert!(long.is_empty(), "files must have at most {LINES_MAX} lines, got {long:?}; split them by what they are about");
}

#[test]
fn imports_are_read_as_they_are_written() {
    let text =
        "use crate::{Error, reading::{a, b}, Run};\nuse crate::linear::products::Products;\nlet x = crate::Label::Numbers;";
    assert_eq!(crate_paths(text), ["Error", "reading::", "Run", "linear::products::Products", "Label::Numbers"]);
    let pair = |a: &str, b: &str| (a.to_string(), BTreeMap::from([(b.to_string(), String::new())]));
    let graph = BTreeMap::from([pair("a", "b"), pair("b", "c"), pair("c", "b")]);
    assert_eq!(cycle(&graph), Some(vec!["b".to_string(), "c".to_string(), "b".to_string()]));
}
