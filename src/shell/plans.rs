//! Plans as people read them: without a frame, and without what every plan of a selection repeats.

use datafusion::arrow::util::display::FormatOptions;
use datafusion::error::Result;

use super::cells;
use super::printing::Answer;

/// Prints the answer of an EXPLAIN: what each plan is, and the plan.
pub(super) fn print(answer: &Answer) -> Result<()> {
    for batch in &answer.batches {
        let texts = |at: usize| cells::texts(batch.column(at), None, &FormatOptions::default());
        if batch.num_columns() < 2 {
            texts(0)?.iter().for_each(|text| println!("{}", readable(text)));
            continue;
        }
        for (kind, plan) in texts(0)?.iter().zip(texts(1)?) {
            println!("{kind}\n{}\n", readable(&plan).trim_end());
        }
    }
    Ok(())
}

/// Columns that are only taken out of a ranking are named, and times of single expressions left out.
fn readable(plan: &str) -> String {
    plan.lines().map(|line| format!("{}\n", short(line))).collect()
}

fn short(line: &str) -> String {
    let mut short = String::new();
    let mut rest = line;
    // `get_field(select_from()@0, rank) as rank` is `rank`.
    while let Some((before, after)) = rest.split_once("get_field(") {
        let Some((field, name)) = after.split_once(") as ").or_else(|| after.split_once(") AS ")) else { break };
        let end = name.find([',', ']', '\n']).unwrap_or(name.len());
        let is_ours = field.starts_with("select_from()") && !field.contains(" as ") && !field.contains(" AS ");
        let kept = if is_ours { name[..end].to_string() } else { after[..after.len() - name.len() + end].to_string() };
        short.push_str(before);
        short.push_str(&if is_ours { kept } else { format!("get_field({kept}") });
        rest = &name[end..];
    }
    short.push_str(rest);
    let Some((plan, metrics)) = short.split_once("metrics=[") else { return short };
    let (metrics, end) = metrics.rsplit_once(']').unwrap_or((metrics, ""));
    let is_shown = |metric: &&str| !(metric.starts_with("expr_") && metric.contains("_eval_time="));
    format!("{plan}metrics=[{}]{end}", metrics.split(", ").filter(is_shown).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_plan_repeats_is_left_out() {
        let line = "  ProjectionExec: expr=[get_field(select_from()@0, rank) as rank, get_field(s@1, a) as b, x@0 as x], metrics=[output_rows=3, expr_0_eval_time=1ns, elapsed_compute=2ns]";
        let expected =
            "  ProjectionExec: expr=[rank, get_field(s@1, a) as b, x@0 as x], metrics=[output_rows=3, elapsed_compute=2ns]";
        assert_eq!(short(line), expected);
        assert_eq!(short("Projection: get_field(select_from(), Utf8(\"rank\")) AS rank, y"), "Projection: rank, y");
        assert_eq!(short("FilterExec: get_field(a, b)"), "FilterExec: get_field(a, b)");
    }
}
