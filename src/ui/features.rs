//! What is known of the features: all of them in a list, and one of them in detail.

use std::sync::Arc;

use pursuit_udfs::toolbox::Products;
use pursuit_udfs::{Common, Data, Label, Labels, Problem, Result, Run, Settings, Spec, Value};
use serde_json::json;

use super::ask::{self, Asked, association, rounded, with_label};
use super::snapshot::{Prepared, Snapshot};

/// Features that are listed as like another one.
const ALIKE: usize = 10;

/// Every feature with what it has to do with the label, and what the rows are.
pub(super) fn list(snapshot: &Snapshot, prepared: &Prepared, run: &Run) -> Result<Value> {
    let problem = Problem::of(Arc::clone(&prepared.table), &prepared.plan, &Common::default(), Labels::Any)?;
    let products = Products::new(&problem, run)?;
    let seen = problem.seen();
    let feature = |unit: usize| {
        let mut entry = Settings::new();
        entry.insert("name".into(), Value::from(problem.units[unit].name.clone()));
        entry.insert("correlation".into(), Value::from(rounded(with_label(&products, unit))));
        let missing: u64 = problem.units[unit].features.iter().map(|feature| seen.missing[*feature]).sum();
        if missing > 0 {
            entry.insert("missing".into(), Value::from(missing));
        }
        if let Some(why) = problem.why_never(unit) {
            entry.insert("never".into(), Value::from(why));
        }
        if let Some(text) = problem.units[unit].features.first().and_then(|feature| seen.texts.get(feature)) {
            entry.insert("values".into(), Value::from(text.values));
        }
        Value::Object(entry)
    };
    let classes = match &problem.label {
        Label::Numbers => None,
        Label::Classes(classes) => Some(classes),
    };
    let groups: Vec<Value> =
        snapshot.groups.iter().map(|group| json!({"literal": group.literal, "rows": group.whole.seen().rows})).collect();
    Ok(json!({
        "features": (0..problem.units.len()).map(feature).collect::<Vec<_>>(),
        "classes": classes,
        "groups": groups,
        "rows": seen.rows,
        "dropped": seen.rows_dropped(),
    }))
}

/// One feature: what it is like, and what the ranking would be without it.
pub(super) fn detail(asked: &Asked, feature: &str, spec: &Arc<Spec>, prepared: &Prepared, run: &Run) -> Result<Value> {
    let problem = Problem::of(Arc::clone(&prepared.table), &prepared.plan, &Common::default(), Labels::Any)?;
    let products = Products::new(&problem, run)?;
    let Some(this) = problem.units.iter().position(|unit| unit.name == feature) else { return Ok(Value::Null) };
    let mut alike: Vec<(usize, f64)> =
        (0..problem.units.len()).filter(|unit| *unit != this).map(|unit| (unit, association(&products, this, unit))).collect();
    alike.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    alike.truncate(ALIKE);
    let entry = |(unit, r): &(usize, f64)| json!({"feature": problem.units[*unit].name, "correlation": rounded(*r)});
    let (mean, deviation) = match (&problem.table.data, &problem.units[this].columns[..]) {
        (Data::Gram(gram), [column]) if problem.units[this].is_number => {
            let energy = gram.matrix[column * gram.design.len() + column];
            (Some(gram.means[*column]), Some((energy / gram.weight).sqrt()))
        }
        _ => (None, None),
    };
    let without = ask::answer(&without(asked, feature), spec, prepared, run).map(|answer| answer["rows"].clone());
    Ok(json!({
        "feature": feature,
        "correlation": rounded(with_label(&products, this)),
        "mean": mean,
        "deviation": deviation,
        "alike": alike.iter().map(entry).collect::<Vec<_>>(),
        "without": without.ok(),
    }))
}

/// The same question with a feature forbidden.
fn without(asked: &Asked, feature: &str) -> Asked {
    let mut asked = asked.clone();
    let names = |settings: &Settings, option: &str| -> Vec<Value> {
        settings.get(option).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut exclude = names(&asked.settings, "exclude");
    exclude.push(Value::from(feature));
    let forced = names(&asked.settings, "must_include").into_iter().filter(|name| name.as_str() != Some(feature)).collect();
    asked.settings.insert("exclude".into(), Value::Array(exclude));
    asked.settings.insert("must_include".into(), Value::Array(forced));
    asked.settings.remove("folds");
    asked
}
