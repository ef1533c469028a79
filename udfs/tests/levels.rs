//! Texts of many values: the same whatever the order and the cuts, the same from moments and rows, and never by chance.

use pursuit_udfs::testing::{Column, Table};
use pursuit_udfs::{Coding, Count, Gram, Levels, Moments, Random, Run, Settings, Value, answer, selectors};

/// A value out of so many, the first of them far more often than the last.
fn draw(random: &mut Random, values: usize) -> String {
    let at = (values as f64).powf(random.uniform()) as usize - 1;
    format!("value {at}")
}

fn text(rows: usize, values: usize, random: &mut Random) -> Column {
    Column::Text((0..rows).map(|_| (random.below(20) > 0).then(|| draw(random, values))).collect())
}

fn with(mut table: Table, name: &str, column: Column) -> Table {
    table.columns.push((name.into(), column));
    table
}

fn finished(parts: &[Moments], order: &[usize]) -> Gram {
    let mut whole = parts[order[0]].clone();
    order[1..].iter().for_each(|part| whole.merge(&Moments::from_bytes(&parts[*part].to_bytes()).unwrap()).unwrap());
    whole.finish()
}

/// Up to thousands of values, some texts beyond what is told apart, cut and merged in any order, and the rows in another order.
#[test]
fn many_values_are_the_same_in_any_order() {
    for (seed, levels) in [(1, Levels::Top), (2, Levels::Hash), (3, Levels::Top)] {
        let mut random = Run::new(seed).random("levels", 0);
        let rows = 6000;
        let mut table = Table::random(rows, 2, seed);
        for (at, values) in [40, 300, 3000, 100_000].into_iter().enumerate() {
            table = with(table, &format!("t{at}"), text(rows, values, &mut random));
        }
        table.common.levels = levels;
        if seed == 3 {
            table.weights = Some((0..rows).map(|_| random.below(4) as f64).collect());
        }
        let label: Vec<f64> = (0..rows).map(|_| random.below(9) as f64).collect();
        let mut cuts: Vec<usize> = (0..5).map(|_| random.below(rows)).chain([0, rows]).collect();
        cuts.sort_unstable();
        let parts: Vec<Moments> = cuts.windows(2).map(|cut| table.moments(&label, cut[0]..cut[1]).unwrap()).collect();
        let (forward, backward) = (finished(&parts, &[0, 1, 2, 3, 4, 5]), finished(&parts, &[3, 5, 1, 4, 0, 2]));
        assert_eq!((&forward.design, &forward.seen), (&backward.design, &backward.seen));
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same(&forward.matrix, &backward.matrix) && same(&forward.products, &backward.products), "table {seed}");
        let whole = table.moments(&label, 0..rows).unwrap().finish();
        assert_eq!((&whole.design, &whole.seen), (&forward.design, &forward.seen));
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs()));
        assert!(close(&whole.matrix, &forward.matrix), "table {seed}");
        let texts: Vec<_> = whole.seen.texts.values().collect();
        assert_eq!(texts[0].told_apart, texts[0].values);
        assert!(texts[1..3].iter().all(|text| text.told_apart == 50 && !text.is_left_out), "{texts:?}");
        assert!(texts[2].is_estimate, "{texts:?}");
    }
}

/// How many values are told apart can be said after the rows were read, as long as all values were kept.
#[test]
fn another_number_of_levels_needs_no_second_reading() {
    let mut random = Run::new(9).random("levels", 0);
    let rows = 3000;
    let mut table = with(Table::random(rows, 2, 9), "few", text(rows, 40, &mut random));
    table = with(table, "many", text(rows, 400, &mut random));
    let label: Vec<f64> = (0..rows).map(|_| random.normal()).collect();
    let kept = table.moments(&label, 0..rows).unwrap();
    for max_levels in [1, 7, 40, 50, 300, 1000] {
        table.common.max_levels = max_levels;
        let (read, asked) =
            (table.moments(&label, 0..rows).unwrap().finish(), kept.with_max_levels(max_levels).unwrap().finish());
        assert_eq!((&read.design, &read.seen), (&asked.design, &asked.seen), "{max_levels}");
        assert!(read.matrix == asked.matrix && read.products == asked.products, "{max_levels}");
    }
    // In buckets with others a value is lost.
    table = with(table, "names", Column::Text((0..rows).map(|row| Some(format!("name {}", row % 2500))).collect()));
    table.common.max_levels = 50;
    let lost = table.moments(&label, 0..rows).unwrap();
    assert!(lost.with_max_levels(10).is_none() && lost.with_max_levels(50).is_some());
    table.common.levels = Levels::Hash;
    assert!(table.moments(&label, 0..rows).unwrap().with_max_levels(10).is_none());
}

/// Moments tell apart what fits, and rows all; where both do they hold the same numbers, the others and NULL included.
#[test]
fn rows_and_moments_agree_on_the_others() {
    let mut random = Run::new(7).random("levels", 0);
    let table = with(Table::random(3000, 2, 7), "t", text(3000, 400, &mut random));
    let label: Vec<f64> = (0..3000).map(|_| random.normal()).collect();
    for (levels, columns) in [(Levels::Top, 2 + 50 + 2), (Levels::Hash, 2 + 50 + 1)] {
        let mut table = table.clone();
        table.common.levels = levels;
        let gram = table.moments(&label, 0..3000).unwrap().finish();
        let problem = table.problem_of_rows(&label);
        let rows = problem.rows();
        assert_eq!((&rows.design, &rows.seen), (&gram.design, &gram.seen));
        let d = rows.columns.len();
        assert_eq!(d, columns);
        for i in 0..d {
            for j in 0..d {
                let inner: f64 = rows.columns[i].iter().zip(&rows.columns[j]).map(|(a, b)| a * b).sum();
                assert!((inner - gram.matrix[i * d + j]).abs() < 1e-8, "{levels:?} ({i}, {j})");
            }
        }
        assert_eq!(
            rows.origins.iter().filter(|origin| origin.coding == Coding::Others).count(),
            usize::from(levels == Levels::Top)
        );
    }
}

#[test]
fn a_text_of_values_that_nearly_all_differ_is_left_out() {
    let mut random = Run::new(5).random("ids", 0);
    let ids: Vec<String> = (0..5000).map(|row| format!("{row:x}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let table = Table::random(5000, 2, 5).text("id", &ids);
    let label: Vec<f64> = (0..5000).map(|row| table.column(1)[row] + random.normal()).collect();
    for from_rows in [false, true] {
        let problem = table.try_problem(&label, from_rows).unwrap();
        let why = problem.why_never(2).unwrap();
        assert!(why.starts_with("nearly all values differ: ") && why.ends_with(" in 5000 rows"), "{why}");
        let mut strict = table.clone().text("name", &ids);
        strict.common.levels = Levels::Error;
        let refused = strict.try_problem(&label, from_rows).unwrap_err().to_string();
        let both = "features `id`, `name` have more than 50 distinct text values; exclude them, raise max_levels, or set levels => 'top'";
        assert_eq!(refused, both);
        let alone = Table::new().text("id", &ids).try_problem(&label, from_rows).unwrap_err().to_string();
        assert!(alone.ends_with("or a text with nearly as many values as rows"), "{alone}");
    }
}

/// A text that is NULL where the label is 1 says all there is to say, whatever reads it.
#[test]
fn null_is_a_level_of_a_text() {
    let label: Vec<f64> = (0..300).map(|row| f64::from(row % 3 == 0)).collect();
    let says = Column::Text((0..300).map(|row| (row % 3 > 0).then(|| ["a", "b"][row % 2].to_string())).collect());
    let table = with(Table::random(300, 3, 2), "says", says).k(1);
    for spec in selectors() {
        let mut table = table.clone();
        table.task = Some(pursuit_udfs::Task::Classification);
        let selector = spec.selector(&Settings::new()).unwrap();
        let ranking = answer(&*selector, &table.problem_of_rows(&label), &Run::new(1)).unwrap();
        assert_eq!(ranking.units(), [3], "{}", spec.name);
        let explained = ranking.choices[0].train_score.unwrap();
        assert!(explained > 0.999, "{}: {explained}", spec.name);
    }
}

/// On 400 rows a random text of 48 levels explains more than a real, weak signal. It must not come first, and 'auto' must find the signal.
#[test]
fn many_levels_do_not_beat_a_signal_by_chance() {
    let asked: [(&str, &[(&str, &str)]); 6] = [
        ("omp", &[]),
        ("omp", &[("criterion", "ols")]),
        ("omp", &[("model", "logistic")]),
        ("sequential_lasso", &[]),
        ("sequential_attention", &[("model", "linear")]),
        ("correlation", &[]),
    ];
    for (name, options) in asked {
        let spec = selectors().into_iter().find(|spec| spec.name == name).unwrap();
        let settings: Settings = options.iter().map(|(name, word)| (name.to_string(), Value::from(*word))).collect();
        let selector = spec.selector(&settings).unwrap();
        let is_logistic = options.contains(&("model", "logistic"));
        let seeds = if is_logistic { 12 } else { 40 };
        for seed in 0..seeds {
            let mut random = Run::new(seed).random("chance", 0);
            let mut table = Table::random(400, 1, seed);
            let codes = Column::Text((0..400).map(|_| Some(format!("{}", random.below(48)))).collect());
            let label: Vec<f64> = (0..400).map(|row| 0.27 * table.column(0)[row] + random.normal()).collect();
            let label: Vec<f64> = if is_logistic { label.iter().map(|y| f64::from(*y > 0.0)).collect() } else { label };
            table.task = is_logistic.then_some(pursuit_udfs::Task::Classification);
            table = with(table, "random", codes);
            for k in [Count::Exactly(2), Count::Auto] {
                table.common.k = k;
                let chosen = answer(&*selector, &table.problem_of_rows(&label), &Run::new(1)).unwrap().units();
                assert_eq!(chosen.first(), Some(&0), "{name} {options:?}, {k:?}, seed {seed}");
            }
        }
    }
}

/// The other way round: a text that carries the label is found among numbers that do not, by 'auto' as well.
#[test]
fn a_text_that_carries_the_label_is_found() {
    for name in ["omp", "sequential_lasso", "correlation"] {
        let selector = selectors().into_iter().find(|spec| spec.name == name).unwrap().selector(&Settings::new()).unwrap();
        for seed in 0..20 {
            let mut random = Run::new(seed).random("chance", 0);
            let effects: Vec<f64> = (0..20).map(|_| 0.7 * random.normal()).collect();
            let levels: Vec<usize> = (0..400).map(|_| random.below(20)).collect();
            let label: Vec<f64> = levels.iter().map(|level| effects[*level] + random.normal()).collect();
            let codes = Column::Text(levels.iter().map(|level| Some(format!("{level}"))).collect());
            let mut table = with(Table::random(400, 5, seed), "text", codes);
            table.common.k = Count::Auto;
            let chosen = answer(&*selector, &table.problem(&label), &Run::new(1)).unwrap().units();
            assert_eq!(chosen.first(), Some(&5), "{name}, seed {seed}");
        }
    }
}
