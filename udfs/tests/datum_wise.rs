//! Datum-wise classification: against the best policy there is, found by trying everything, and against its own rules.

use std::collections::BTreeMap;

use pursuit_udfs::datum_wise::{
    Action, Asking, Decision, Detail, Neighbours, Policy, PolicyColumn, PolicyUnit, Rewards, Weights,
};
use pursuit_udfs::options::{Lists, Pairs};
use pursuit_udfs::testing::{Column, Table, planted};
use pursuit_udfs::{Block, Coding, Made, Problem, Run, Spending, Task};

fn problem(table: &Table, label: &[f64]) -> Problem {
    Table { task: Some(Task::Classification), ..table.clone() }.problem_of_rows(label)
}

fn learn(table: &Table, label: &[f64], lambda: f64, asking: &Asking) -> Policy {
    asking.learn(lambda, &problem(table, label), &Run::new(1)).unwrap()
}

/// The decisions of a policy on the raw values of a table of numbers and texts.
fn decide(policy: &Policy, table: &Table) -> Vec<Decision> {
    let features = policy.features();
    let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
    let classify = |rows: usize, blocks: &[Block<'_>]| policy.classify(rows, blocks, Detail::Steps, &Run::default());
    table.raw(&names, classify).unwrap().rows().collect()
}

/// What a policy earns on average: minus prices and mistakes.
fn reward(policy: &Policy, table: &Table, label: &[f64]) -> f64 {
    let decisions = decide(policy, table);
    let mistake = |decision: &Decision, truth: f64| policy.rewards.mistake(decision.class, truth as usize);
    let losses = decisions.iter().zip(label).map(|(decision, truth)| decision.cost + mistake(decision, *truth));
    -losses.sum::<f64>() / label.len() as f64
}

/// The most that any policy can earn on these rows, whatever its form: dynamic programming over all that can be known.
fn optimum(table: &Table, label: &[f64], prices: &[f64], known: usize, rows: &[usize]) -> f64 {
    let predict = |class: f64| -(rows.iter().filter(|row| label[**row] != class).count() as f64);
    let mut best = predict(0.0).max(predict(1.0));
    for (unit, price) in prices.iter().enumerate().filter(|(unit, _)| known >> unit & 1 == 0) {
        let mut parts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        rows.iter().for_each(|row| parts.entry(table.column(unit)[*row].to_bits()).or_default().push(*row));
        let after: f64 = parts.values().map(|rows| optimum(table, label, prices, known | 1 << unit, rows)).sum();
        best = best.max(after - price * rows.len() as f64);
    }
    best
}

fn best_reward(table: &Table, label: &[f64], prices: &[f64]) -> f64 {
    let rows: Vec<usize> = (0..label.len()).collect();
    optimum(table, label, prices, 0, &rows) / label.len() as f64
}

/// Every combination of three signs. Of `noisy`, one row in eight is turned round; `silent` says nothing in every other row.
fn signs() -> (Table, [Vec<f64>; 3]) {
    let sign = |row: usize, bit: usize| if row >> bit & 1 == 1 { 1.0 } else { -1.0 };
    let columns: [Vec<f64>; 3] = std::array::from_fn(|bit| (0..64).map(|row| sign(row, bit)).collect());
    let noisy = (0..64).map(|row| if row / 8 == 3 { -columns[0][row] } else { columns[0][row] }).collect();
    let silent = (0..64).map(|row| if row & 2 == 0 { 0.0 } else { columns[0][row] }).collect();
    let table = columns.iter().enumerate().fold(Table::new(), |table, (at, column)| table.numbers(&format!("x{at}"), column));
    let [a, ..] = columns;
    (table, [a, noisy, silent])
}

/// A dear feature that is always clear, and a cheap one that is clear in every other row.
fn clear_and_silent() -> (Table, Vec<f64>) {
    let (_, [clear, _, silent]) = signs();
    (Table::new().numbers("clear", &clear).numbers("silent", &silent), clear.iter().map(|x| f64::from(*x > 0.0)).collect())
}

/// A clear feature, a dear clear one beside a cheap noisy one, and beside a cheap one that tells when it does not know.
#[test]
fn equals_the_best_policy_there_is() {
    let (table, [a, noisy, _]) = signs();
    let with_noisy = Table::new().numbers("clear", &a).numbers("noisy", &noisy);
    let is_positive = |values: &[f64]| -> Vec<f64> { values.iter().map(|x| f64::from(*x > 0.0)).collect() };
    let (with_silent, of_silent) = clear_and_silent();
    let cases: [(&str, &Table, Vec<f64>, Vec<f64>); 5] = [
        ("a clear feature", &table, is_positive(&a), vec![0.1; 3]),
        ("nothing is worth its price", &table, is_positive(&a), vec![0.6; 3]),
        ("dear and clear", &with_noisy, is_positive(&a), vec![0.3, 0.05]),
        ("cheap enough to be sure", &with_noisy, is_positive(&a), vec![0.1, 0.05]),
        ("asked for where the cheap one is silent", &with_silent, of_silent, vec![0.3, 0.1]),
    ];
    for (name, table, label, prices) in cases {
        let costs = table.columns.iter().zip(&prices).map(|((name, _), price)| (name.clone(), *price)).collect();
        let policy = learn(table, &label, 0.0, &Asking { spending: Spending { costs, budget: None }, ..Asking::default() });
        let (found, best) = (reward(&policy, table, &label), best_reward(table, &label, &prices));
        assert!((found - best).abs() < 1e-9, "{name}: {found} instead of {best}");
    }
}

#[test]
fn only_rows_that_need_it_ask_for_more() {
    let (table, label) = clear_and_silent();
    let costs = [("clear".to_string(), 0.3)].into();
    let policy = learn(&table, &label, 0.1, &Asking { spending: Spending { costs, budget: None }, ..Asking::default() });
    for (decision, silent) in decide(&policy, &table).iter().zip(table.column(1)) {
        assert_eq!(decision.units, if *silent == 0.0 { vec![1, 0] } else { vec![1] });
    }
}

/// Eq. 4: the reward of an episode is minus its mistake and minus λ for each feature it asked for.
#[test]
fn the_reward_is_minus_the_datum_wise_loss() {
    let (table, label) = planted(200, 6, &[1, 4], 1.0, 3);
    let label: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    let policy = learn(&table, &label, 0.02, &Asking::default());
    let decisions = decide(&policy, &table);
    let loss =
        |(decision, truth): (&Decision, &f64)| f64::from(decision.class as f64 != *truth) + 0.02 * decision.units.len() as f64;
    let mean = decisions.iter().zip(&label).map(loss).sum::<f64>() / 200.0;
    assert!((reward(&policy, &table, &label) + mean).abs() < 1e-12);
    assert!(decisions.iter().any(|decision| !decision.units.is_empty()));
}

fn spending(costs: &[(usize, f64)], budget: Option<f64>) -> Spending {
    Spending { costs: costs.iter().map(|(at, cost)| (format!("x{at}"), *cost)).collect(), budget }
}

fn variants() -> Vec<Asking> {
    let name = |at: usize| format!("x{at}");
    let row = Pairs((0..7).map(|at| (name(at), name(at + 1))).collect());
    let plain = Asking::default();
    vec![
        Asking { spending: spending(&[], Some(2.0)), ..plain.clone() },
        Asking { spending: spending(&[(1, 0.2), (4, 0.001)], None), ..plain.clone() },
        Asking { spending: spending(&[(1, 0.2), (4, 0.001)], Some(1.5)), ..plain.clone() },
        Asking {
            spending: spending(&[(1, 0.2), (4, 0.2)], None),
            next_costs: [(name(1), 0.01), (name(4), 0.01)].into(),
            cost_groups: Lists([("blood".to_string(), vec![name(1), name(4)])].into()),
            cost_matrix: vec![vec![-0.1, 1.0, 1.0], vec![2.0, -0.1, 1.0], vec![1.0, 1.0, -0.1]],
            ..plain.clone()
        },
        Asking { related: row.clone(), gamma: Some(0.05), ..plain.clone() },
        Asking { related: row, hard: true, spending: spending(&[], Some(4.0)), ..plain.clone() },
        Asking { image: vec![2, 4], gamma: Some(0.3), relation: pursuit_udfs::datum_wise::Relation::All, ..plain },
    ]
}

/// Three classes, a text and NULLs, for every kind of rule.
fn mixed() -> (Table, Vec<f64>) {
    let (table, label) = planted(240, 7, &[1, 4], 0.7, 5);
    let colours: Vec<&str> = (0..240).map(|row| ["red", "green", "blue"][row % 3]).collect();
    let classes = label.iter().enumerate().map(|(row, y)| if row % 3 == 0 { 2.0 } else { f64::from(*y > 0.0) }).collect();
    let mut table = table.text("x7", &colours);
    let Column::Numbers(values) = &mut table.columns[1].1 else { unreachable!("numbers come first") };
    values.iter_mut().step_by(11).for_each(|value| *value = f64::NAN);
    (table, classes)
}

#[test]
fn no_way_breaks_the_rules() {
    let (table, label) = mixed();
    for asking in variants() {
        let policy = learn(&table, &label, 0.01, &asking);
        for decision in decide(&policy, &table) {
            let mut distinct = decision.units.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), decision.units.len(), "a feature is asked for twice");
            let spent: f64 = decision.units.iter().map(|unit| asking.spending.cost(&policy.units[*unit].name)).sum();
            assert!(asking.spending.budget.is_none_or(|budget| spent <= budget), "the budget is exceeded");
            let mut known = vec![0u64];
            let mut cost = 0.0;
            for unit in &decision.units {
                cost += policy.rewards.price(*unit, &known).expect("it may be asked for");
                known[0] |= 1 << unit;
            }
            assert_eq!(cost, decision.cost);
            assert!(matches!(decision.steps.last().unwrap().action, Action::Predict(class) if class == decision.class));
        }
    }
}

#[test]
fn a_policy_kept_as_a_table_decides_as_it_did() {
    let (mut table, label) = mixed();
    for nulls in [pursuit_udfs::Nulls::Mean, pursuit_udfs::Nulls::Indicator] {
        table.common.nulls = nulls;
        for asking in variants() {
            let policy = learn(&table, &label, 0.01, &asking);
            let mut rows = policy.to_rows();
            // A table has no order.
            Run::new(3).random("rows", 0).shuffle(&mut rows);
            let back = Policy::from_rows(&rows).unwrap();
            assert_eq!(back, policy);
            assert_eq!(decide(&back, &table), decide(&policy, &table));
            assert!(!decide(&policy, &table).iter().all(|decision| decision.units.is_empty()));
        }
    }
}

/// A text of many values: which of them are told apart, the others and NULL are part of the policy, and a value that it has not seen is one of the others.
#[test]
fn a_policy_knows_the_others_and_nulls() {
    let word = |row: usize| match row % 4 {
        0 => None,
        1 => Some(format!("rare {}", row % 90)),
        other => Some(["yes", "no"][other - 2].to_string()),
    };
    let classes: Vec<f64> = (0..360).map(|row| [0.0, 1.0, 2.0, 2.0][row % 4]).collect();
    for levels in [pursuit_udfs::Levels::Top, pursuit_udfs::Levels::Hash] {
        let mut table = Table::random(360, 2, 3);
        table.columns.push(("word".into(), Column::Text((0..360).map(word).collect())));
        (table.common.levels, table.common.max_levels) = (levels, 20);
        let policy = learn(&table, &classes, 0.01, &Asking::default());
        let back = Policy::from_rows(&policy.to_rows()).unwrap();
        assert_eq!(back, policy);
        let right =
            |decisions: Vec<Decision>| decisions.iter().zip(&classes).filter(|(d, class)| d.class as f64 == **class).count();
        let found = right(decide(&back, &table));
        assert!(found > if levels == pursuit_udfs::Levels::Top { 355 } else { 250 }, "{levels:?}: {found}");
        // Other rare words.
        if let (pursuit_udfs::Levels::Top, Column::Text(words)) = (levels, &mut table.columns[2].1) {
            words.iter_mut().flatten().filter(|word| word.starts_with("rare")).for_each(|word| word.push_str(" indeed"));
            let found = right(decide(&back, &table));
            assert!(found > 355, "unseen words: {found}");
        }
    }
}

#[test]
fn a_broken_policy_is_refused() {
    let (table, label) = mixed();
    for variant in [2, 4] {
        let rows = learn(&table, &label, 0.01, &variants()[variant]).to_rows();
        for at in 0..rows.len() {
            let mut fewer = rows.clone();
            let gone = fewer.remove(at);
            // Without `far` or a pair that is near, other rules hold, and the table is whole.
            if !["far", "near", "relation"].contains(&gone.part.as_str()) {
                assert!(Policy::from_rows(&fewer).is_err(), "{gone:?}");
            }
        }
    }
    let rows = learn(&table, &label, 0.01, &variants()[4]).to_rows();
    assert!(Policy::from_rows(&[]).is_err());
    let mut wrong = rows.clone();
    wrong[0].action_id = Some(-1);
    assert!(Policy::from_rows(&wrong).is_err());
}

/// The values that decide_rows sees are those that classify computes from the input.
#[test]
fn values_are_in_the_input_s_units() {
    let (table, label) = mixed();
    let problem = problem(&table, &label);
    let policy = Asking::default().learn(0.01, &problem, &Run::new(1)).unwrap();
    let rows = problem.rows();
    let mut seen = Vec::new();
    let push = |_: usize, decision: &Decision| seen.push((decision.class, decision.units.clone()));
    policy.decide_rows(&problem, rows, &Run::default(), push).unwrap();
    let mut raw: Vec<_> = decide(&policy, &table).into_iter().map(|decision| (decision.class, decision.units)).collect();
    // The rows of a problem are in an order of their content.
    seen.sort();
    raw.sort();
    assert_eq!(seen, raw);
}

#[test]
fn mistakes_in_options_are_named() {
    let (table, label) = mixed();
    let refused = |asking: Asking| asking.learn(0.01, &problem(&table, &label), &Run::new(0)).unwrap_err().to_string();
    let plain = Asking::default;
    assert_eq!(
        refused(Asking { spending: spending(&[(9, 1.0)], None), ..plain() }),
        "`costs` names `x9`, which is not a feature; did you mean `x0`? features are x0, x1, x2, x3, x4, x5, x6, x7"
    );
    assert_eq!(
        refused(Asking { cost_matrix: vec![vec![0.0, 1.0], vec![1.0, 0.0]], ..plain() }),
        "`cost_matrix` must be 3 lists of 3 numbers, one for each of the classes 0, 1, 2"
    );
    assert_eq!(
        refused(Asking { image: vec![3, 3], ..plain() }),
        "`image` must have as many pixels as there are features, 8; got 3 x 3"
    );
    assert_eq!(
        refused(Asking { hard: true, ..plain() }),
        "`hard` needs `related` or `image`, which say what features are near each other"
    );
    assert_eq!(
        refused(Asking { next_costs: [("x1".to_string(), 1.0)].into(), ..plain() }),
        "`next_costs` needs `cost_groups`, which says what features share an expense"
    );
}

/// Runs `work` on a thread of its own and gives up on it after a minute: what hangs fails.
fn within_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends, and without a panic")
}

/// A table can be edited: whatever finite numbers it holds, every row asks for each unit at most once and ends in a prediction.
#[test]
fn a_policy_of_huge_weights_ends() {
    let mut random = Run::new(8).random("huge", 0);
    for (classes, units) in [(2, 2), (2, 5), (3, 12), (10, 30), (4, 70)] {
        for round in 0..40 {
            let (actions, columns) = (classes + units, units);
            let mut draw = |n: usize| -> Vec<f64> {
                let huge = [1e308, -1e308, 1.7e308, -1.7e308, 1.0, 0.0];
                (0..n).map(|_| huge[random.below(huge.len())]).collect()
            };
            let weights =
                Weights { actions, start: draw(actions), known: draw(units * actions), values: draw(columns * actions) };
            let neighbours = Neighbours {
                related: vec![vec![u64::MAX; units.div_ceil(64)]; units],
                relation: pursuit_udfs::datum_wise::Relation::Any,
                far: Some(1e308),
            };
            let rewards = Rewards { neighbours: (round % 2 == 1).then_some(neighbours), ..Rewards::plain(classes, units, 1e308) };
            let policy = Policy {
                classes: (0..classes).map(|class| class.to_string()).collect(),
                units: (0..units).map(|at| PolicyUnit { name: format!("u{at}"), columns: at..at + 1 }).collect(),
                columns: (0..columns)
                    .map(|at| PolicyColumn { feature: format!("x{at}"), coding: Coding::Number, mean: 0.0 })
                    .collect(),
                weights,
                rewards,
                given: if round % 4 == 2 { vec![1] } else { Vec::new() },
            };
            let values: Vec<Vec<f64>> = (0..columns).map(|at| vec![1.0, -1.0, 1e99, -1e99, 0.0, at as f64]).collect();
            let decided = within_a_minute(move || {
                let blocks: Vec<Block<'_>> = values.iter().map(|column| Block::Numbers(column)).collect();
                policy.classify(6, &blocks, Detail::Steps, &Run::default()).unwrap().rows().collect::<Vec<_>>()
            });
            for decision in decided {
                let mut distinct = decision.units.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), decision.units.len(), "{classes} {units} {round}");
            }
        }
    }
}

#[test]
fn costs_that_no_sum_can_hold_are_refused() {
    // Enough units that scores are compared in wide registers.
    let (table, label) = planted(120, 30, &[1, 4], 0.7, 5);
    let label: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    for huge in [1e306, -1e306, 1.7e308] {
        let asking = Asking { cost_matrix: vec![vec![0.0, huge], vec![huge, 0.0]], iterations: 2, ..Asking::default() };
        let failure = asking.learn(0.01, &problem(&table, &label), &Run::new(1)).unwrap_err().to_string();
        assert!(failure.contains("too large"), "{failure}");
    }
}

/// The rows count alike, whatever number is written beside each.
#[test]
fn weights_that_are_all_the_same_change_nothing() {
    let (table, label) = mixed();
    let with = |weight: Option<f64>| {
        let weights = weight.map(|weight| vec![weight; label.len()]);
        decide(&learn(&Table { weights, ..table.clone() }, &label, 0.01, &Asking::default()), &table)
    };
    let plain = with(None);
    // Powers of two, so that sums round alike.
    for weight in [2.0, 4.0, 0.5] {
        let other = with(Some(weight));
        let same = plain.iter().zip(&other).filter(|(a, b)| (a.class, &a.units) == (b.class, &b.units)).count();
        assert_eq!(same, plain.len(), "weight {weight}");
    }
}

fn report(name: &str, settings: &[(&str, serde_json::Value)]) -> pursuit_udfs::Work {
    let spec = pursuit_udfs::reports().into_iter().find(|spec| spec.name == name).unwrap();
    (spec.build)(&settings.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()).unwrap()
}

/// Nothing can be judged by no rows: that is said, where a mean over none would be NaN.
#[test]
fn a_curve_without_rows_to_judge_by_says_so() {
    let pursuit_udfs::Work::Report(curve) = report("datum_wise_curve", &[("lambda", [0.1].as_slice().into())]) else {
        panic!("a curve is a report")
    };
    let table = Table { task: Some(Task::Classification), ..Table::random(2, 3, 1) };
    let failure = curve.report(&table.problem_of_rows(&[0.0, 1.0]), &Run::new(0)).unwrap_err().to_string();
    assert_eq!(failure, "2 rows are too few to hold some out; give a table as `test`");
}

/// An option that changes nothing is refused, and what it needs is named.
#[test]
fn options_that_mean_nothing_are_named() {
    let near = ("related", serde_json::json!([["x0", "x1"]]));
    for name in ["datum_wise_policy", "datum_wise_curve", "datum_wise_classify", "datum_wise_steps"] {
        let unused = |settings: &[(&str, serde_json::Value)], option: &str| report(name, settings).unused(option);
        assert_eq!(unused(&[("relation", "all".into())], "relation"), Some("`related` or `image`"), "{name}");
        assert_eq!(unused(&[("relation", "all".into()), near.clone()], "relation"), None);
        assert_eq!(unused(&[("gamma", 1.into()), ("hard", true.into()), near.clone()], "gamma"), Some("hard => false"));
        assert_eq!(unused(&[("iterations", 1.into())], "mixture"), Some("iterations => 2 or more"));
        assert_eq!(unused(&[], "lambda"), None);
    }
}

/// A model's table, in any order, is the model again, and decides as the policy does; only what is wanted is made.
#[test]
fn a_policy_is_a_model_that_a_table_holds() {
    let (table, label) = planted(150, 4, &[1, 2], 0.7, 5);
    let label: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    let policy = learn(&table, &label, 0.01, &Asking::default());
    let pursuit_udfs::Work::Apply(classify) = report("datum_wise_classify", &[]) else { panic!("it applies a model") };
    let model = classify.read(&policy.to_table()).unwrap();
    assert_eq!(model.features(), policy.features());
    let columns: Vec<Vec<f64>> = (0..4).map(|at| table.column(at).to_vec()).collect();
    let blocks: Vec<Block<'_>> =
        model.features().iter().map(|feature| Block::Numbers(&columns[feature.name[1..].parse::<usize>().unwrap()])).collect();
    let applied = model.apply(150, &blocks, &["prediction", "n_features"], &Run::default()).unwrap();
    let decisions = decide(&policy, &table);
    let made = |name: &str| applied.columns.iter().find(|(made, _)| *made == name).map(|(_, made)| made.clone());
    assert_eq!(made("prediction"), Some(Made::Names(decisions.iter().map(|decision| decision.class as u32).collect())));
    assert_eq!(made("n_features"), Some(Made::Wholes(decisions.iter().map(|decision| decision.units.len() as i64).collect())));
    assert_eq!(made("features"), None, "nobody wants it");
    let failure = classify.read(&policy.to_table()[1..]).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(failure.contains("is not a whole answer of datum_wise_policy"), "{failure}");
}

/// A run that is cancelled in the middle ends, whatever it was doing.
#[test]
fn training_can_be_cancelled_in_the_middle() {
    let (table, label) = planted(3000, 12, &[1, 4], 0.7, 5);
    let label: Vec<f64> = label.iter().map(|y| f64::from(*y > 0.0)).collect();
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let cancel = std::sync::Arc::clone(&flag);
    let run = Run::new(1).with_cancel(flag).with_progress(move |done, _, _| {
        if done == 1 {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let failure = Asking::default().learn(0.01, &problem(&table, &label), &run).unwrap_err();
    assert_eq!(failure.kind(), pursuit_udfs::Kind::Cancelled);
}
