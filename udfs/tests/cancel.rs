//! Whatever is at work, and wherever it is: a tenth of a second after a cancel nothing is.
//!
//! In a binary of its own, because it is the processor time of the process that tells: on a crowded machine a clock tells nothing.
//! `PURSUIT_MOMENTS=5,50,1000 cargo test -p pursuit-udfs --test cancel` cancels after so many milliseconds, `PURSUIT_SELECTOR=gam` one function only.

#![allow(clippy::disallowed_methods, reason = "time is what is tested")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pursuit_udfs::testing::{Table, outcome, planted, variants};
use pursuit_udfs::{Problem, Reads, Run, Task, Work};

const THREADS: usize = 2;
const LIMIT: Duration = Duration::from_millis(100);

/// Many rows; many columns, for whom the square of their number or more is what takes time; texts of many levels.
fn tables() -> Vec<(&'static str, Table, Vec<f64>)> {
    let (tall, tall_label) = planted(30_000, 40, &[3, 17], 1.0, 1);
    let (wide, wide_label) = planted(600, 1500, &[3, 700], 1.0, 2);
    let (mut texts, texts_label) = planted(8000, 4, &[1, 3], 1.0, 3);
    for text in 0..12 {
        let values: Vec<String> = (0..8000).map(|row| format!("level {}", row * (text + 7) % (40 + text))).collect();
        texts = texts.text(&format!("t{text}"), &values.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let k = |table: Table| table.k(8);
    vec![("tall", k(tall), tall_label), ("wide", k(wide), wide_label), ("texts", k(texts), texts_label)]
}

fn problem((wants_classes, has_others): (bool, bool), table: &Table, label: &[f64]) -> Problem {
    let task = wants_classes.then_some(Task::Classification);
    let label: Vec<f64> =
        if wants_classes { label.iter().map(|y| (y.clamp(-3.0, 3.0) / 1.5).floor()).collect() } else { label.to_vec() };
    let table = Table { task, ..table.clone() };
    match has_others {
        true => table.problem_with_held_out(&label, label.len() * 3 / 4),
        false => table.problem_of_rows(&label),
    }
}

/// Processor time that this process has had, as Linux tells it; elsewhere the clock must do.
fn process_time(begun: Instant) -> Duration {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return begun.elapsed() };
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap_or(0)).sum();
    Duration::from_millis(ticks * 10)
}

/// The processor time that goes by between the cancel and the end; `None` if it ended before.
fn after_cancel(work: &Work, problem: &Problem, moment: Duration) -> Option<Duration> {
    let flag = Arc::new(AtomicBool::new(false));
    let run = Run::new(1).with_cancel(Arc::clone(&flag));
    let begun = Instant::now();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().unwrap();
    std::thread::scope(|scope| {
        let working = scope.spawn(|| pool.install(|| outcome(work, problem, &run)));
        // Until so much has been done, and not until so much time has passed.
        let before = process_time(begun);
        while process_time(begun) - before < moment && !working.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let is_over = working.is_finished();
        flag.store(true, Ordering::SeqCst);
        let (cpu, clock) = (process_time(begun), Instant::now());
        working.join().expect("it does not panic").ok();
        let cpu = (process_time(begun) - cpu) / THREADS as u32;
        (!is_over).then(|| cpu.min(clock.elapsed()))
    })
}

#[test]
fn nothing_is_at_work_a_tenth_of_a_second_after_a_cancel() {
    let moments = std::env::var("PURSUIT_MOMENTS").unwrap_or("60".to_string());
    let moments: Vec<Duration> = moments.split(',').map(|moment| Duration::from_millis(moment.trim().parse().unwrap())).collect();
    let only = std::env::var("PURSUIT_SELECTOR").ok();
    let tables = tables();
    let mut late = Vec::new();
    // Each is read once.
    let mut problems: BTreeMap<(bool, bool, &str), Problem> = BTreeMap::new();
    for variant in variants().into_iter().filter(|variant| only.as_ref().is_none_or(|only| variant.spec.name == only)) {
        let Ok(work) = (variant.spec.build)(&variant.settings()) else { continue };
        if matches!(&work, Work::Select(selector) if matches!(selector.reads(), Reads::Pass(_))) {
            continue;
        }
        for (name, table, label) in &tables {
            let kind = (variant.wants_classes(), variant.spec.table.is_some());
            let problem = problems.entry((kind.0, kind.1, *name)).or_insert_with(|| problem(kind, table, label));
            for moment in &moments {
                let Some(after) = after_cancel(&work, problem, *moment) else { continue };
                println!("{} on the {name} table, cancelled after {moment:?}: {after:?}", variant.name());
                if after > LIMIT {
                    late.push(format!("{} on the {name} table, cancelled after {moment:?}: {after:?}", variant.name()));
                }
            }
        }
    }
    assert!(late.is_empty(), "still at work:\n{}", late.join("\n"));
}
