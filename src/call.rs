//! One call in SQL, fully checked: every mistake that can be known without reading a row is reported here.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::LogicalPlan;
use pursuit_udfs::options::Bytes;
use pursuit_udfs::{
    Common, Count, Draw, Error, Feature, LabelKind, LeftOut, Parting, Plan, Reading, Reads, Result, Settings, Spec, Task,
    did_you_mean, name_list_near, shown,
};

use crate::columns::{ColumnKind, kind};
use crate::engine::Registry;
use crate::gram::label_kind;
use crate::question::{Question, forget_costs};

/// A checked call: the question, and which columns of the input it is about.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub question: Question,
    /// The settings as they were given, to be sent along.
    pub settings: Settings,
    pub plan: Plan,
    /// Positions in the input: the columns of `partition_by`.
    pub partitions: Vec<usize>,
    /// Positions in the input, in the order of the plan: label, weights if there are any, features.
    pub columns: Vec<usize>,
    pub reads: Reads,
    /// The parts in which moments are gathered here, and not by plan nodes.
    pub parting: Option<Parting>,
    /// Which rows are drawn, if not all are learnt from.
    pub draw: Option<Draw>,
    /// A second table, to judge by.
    pub held_out: Option<HeldOut>,
    /// A relation whose column `feature` tells which features count. It is read when the call is executed.
    pub features: Option<LogicalPlan>,
}

/// A second table with the columns of the first.
#[derive(Debug, Clone)]
pub(crate) struct HeldOut {
    pub plan: LogicalPlan,
    /// Positions in the plan, as [`Call::columns`] are in the input.
    pub columns: Vec<usize>,
}

/// Columns above which planning one expression for each costs more than keeping the rows.
const MOMENTS_COLUMNS_MAX: usize = 1000;
/// Texts above which moments with all their levels would take more than a few hundred megabytes.
const MOMENTS_TEXTS_MAX: usize = 100;

impl Call {
    pub(crate) fn new(spec: Arc<Spec>, input: &Input<'_>, label: &str, settings: Settings) -> Result<Self> {
        Self::of(spec, None, input, label, settings)
    }

    /// The same for a report that may repeat a selector of the registry.
    pub(crate) fn of(
        spec: Arc<Spec>,
        registry: Option<&Registry>,
        input: &Input<'_>,
        label: &str,
        mut settings: Settings,
    ) -> Result<Self> {
        let mut question = Question::of(Arc::clone(&spec), registry, &settings)?;
        let common = &question.common;
        input.has_unique_names()?;
        check_partitions(&question)?;
        let label_at = input.column(label, None)?;
        let weights = common.weights.as_deref().map(|name| input.column(name, Some("weights"))).transpose()?;
        let partitions =
            common.partition_by.iter().map(|name| input.column(name, Some("partition_by"))).collect::<Result<Vec<_>>>()?;
        for (option, at) in weights.iter().map(|at| ("weights", at)).chain(partitions.iter().map(|at| ("partition_by", at))) {
            if *at == label_at {
                return Err(Error::call(format!("`{option}` names the label `{label}`; it must be another column")));
            }
        }
        if let Some(at) = weights.filter(|at| partitions.contains(at)) {
            return Err(Error::call(format!(
                "`partition_by` names `{}`, which has the weights; it must be another column",
                shown(input.name(at))
            )));
        }
        if let Some(at) = weights
            && !matches!(kind(input.data_type(at)), ColumnKind::Number | ColumnKind::Integer)
        {
            return Err(Error::call(format!(
                "`weights` must be a numeric column, `{}` is {}",
                input.name(at),
                input.data_type(at)
            )));
        }
        check_label(input, label_at, common.task)?;

        let reserved: BTreeSet<usize> = partitions.iter().copied().chain(weights).chain([label_at]).collect();
        let (candidates, left_out) = candidates(input, &reserved, &question)?;
        let names: Vec<String> = candidates.iter().map(|at| input.name(*at).to_string()).collect();
        question.group(&names)?;
        let is_group = |name: &str| question.common.groups.contains_key(name);
        let others: BTreeSet<String> = input
            .names()
            .into_iter()
            .filter(|name| !names.iter().any(|other| other == name) && !is_group(name))
            .map(str::to_string)
            .collect();
        forget_costs(&mut settings, |name| others.contains(name));
        question.forget_costs(|name| others.contains(name));
        let common = &question.common;
        check_units(names, &question)?;

        let plan = Plan { weighted: weights.is_some(), ..plan_of(input, Some(label_at), &candidates, left_out, common)? };
        let reads = match (question.reads, common.reads) {
            (Reads::Rows, Reading::Moments) => {
                return Err(Error::call("`reads` must be 'rows' or 'auto', because moments do not tell enough; got 'moments'"));
            }
            (Reads::Pass(_), Reading::Rows | Reading::Moments) => {
                return Err(Error::call("`reads` must be 'auto' with passes => 'one'; leave it out"));
            }
            (Reads::Pass(_), _) if !partitions.is_empty() => {
                return Err(Error::call(
                    "`partition_by` needs rows that are kept; leave it out with passes => 'one', or filter instead",
                ));
            }
            (Reads::Pass(rows), _) => Reads::Pass(rows),
            (Reads::Rows, _) | (_, Reading::Rows) => Reads::Rows,
            (_, Reading::Moments) => Reads::Moments,
            (_, Reading::Auto) if candidates.len() > MOMENTS_COLUMNS_MAX || plan.texts() > MOMENTS_TEXTS_MAX => Reads::Rows,
            (_, Reading::Auto) => Reads::Moments,
        };
        let columns: Vec<usize> = [label_at].into_iter().chain(weights).chain(candidates).collect();
        let (draw, parting) = gathering(&question, reads, columns.len())?;
        Ok(Self { question, settings, plan, partitions, columns, reads, parting, draw, held_out: None, features: None })
    }

    /// Adds the options that are relations.
    pub(crate) fn with_relations(mut self, held_out: Option<LogicalPlan>, features: Option<LogicalPlan>) -> Result<Self> {
        if let Some(held_out) = held_out {
            self.held_out = Some(self.check_held_out(held_out)?);
            // Rows that judge are measured against rows.
            if self.reads == Reads::Moments {
                if self.question.common.reads == Reading::Moments {
                    let (option, _) = self.question.spec.table.unwrap_or_default();
                    let fix = format!("`reads` must be 'rows' or 'auto' where `{option}` is a table, got 'moments'");
                    return Err(Error::call(fix));
                }
                (self.reads, self.parting) = (Reads::Rows, None);
            }
        }
        if let Some(features) = features {
            if features.schema().index_of_column_by_name(None, "feature").is_none() {
                return Err(Error::call("the table given as `features` has no column `feature`"));
            }
            if self.question.common.reads == Reading::Moments {
                return Err(Error::call("`reads` must be 'rows' or 'auto' where `features` is a table, got 'moments'"));
            }
            if matches!(self.reads, Reads::Pass(_)) {
                return Err(Error::call("`features` cannot be a table with passes => 'one'; list them"));
            }
            self.features = Some(features);
            (self.reads, self.parting) = (Reads::Rows, None);
        }
        Ok(self)
    }

    /// The second table must have what the first one has, under the same names.
    fn check_held_out(&self, plan: LogicalPlan) -> Result<HeldOut> {
        let (option, _) = self.question.spec.table.unwrap_or_default();
        if !self.partitions.is_empty() {
            return Err(Error::call(format!(
                "`{option}` and `partition_by` cannot be used together; filter both tables instead"
            )));
        }
        let label = [(self.plan.label.as_str(), self.plan.label_kind == LabelKind::Class)];
        let weights = self.question.common.weights.iter().map(|name| (name.as_str(), false));
        let features = self.plan.features.iter().map(|feature| (feature.name.as_str(), feature.is_text));
        let columns = {
            let input = Input { schema: plan.schema(), table: None };
            let find = |(name, is_text): (&str, bool)| {
                let at = input.names().iter().position(|column| *column == name);
                let at = at.ok_or_else(|| Error::call(format!("the table given as `{option}` has no column `{name}`")))?;
                let other = kind(input.data_type(at));
                let same = other != ColumnKind::Other && (other == ColumnKind::Text) == is_text;
                if same || (other == ColumnKind::Boolean && name == self.plan.label) {
                    Ok(at)
                } else {
                    Err(Error::call(format!(
                        "column `{name}` is {} in the table given as `{option}`; cast it to the type of the first table",
                        input.data_type(at)
                    )))
                }
            };
            label.into_iter().chain(weights).chain(features).map(find).collect::<Result<Vec<_>>>()?
        };
        Ok(HeldOut { plan, columns })
    }

    /// The call about some of its features only, named by themselves or by their group, and which of the columns that were
    /// read it needs.
    pub(crate) fn restrict(&self, names: &[String]) -> Result<(Self, Vec<usize>)> {
        if names.is_empty() {
            return Err(Error::data("the table given as `features` has no rows"));
        }
        let groups = &self.question.common.groups;
        let group_of = |feature: &str| groups.iter().find(|(_, members)| members.iter().any(|member| member == feature));
        let known: Vec<&str> = self.plan.features.iter().map(|feature| feature.name.as_str()).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str()) && !groups.contains_key(*name)) {
            let known: Vec<String> = known.iter().map(|name| name.to_string()).collect();
            return Err(pursuit_udfs::options::unknown_names("features", name, &known));
        }
        let is_wanted =
            |name: &str| names.iter().any(|wanted| wanted == name || group_of(name).is_some_and(|(group, _)| group == wanted));
        let wanted: Vec<bool> = known.iter().map(|name| is_wanted(name)).collect();
        let before = self.columns.len() - known.len();
        let kept: Vec<usize> = (0..self.columns.len()).filter(|at| *at < before || wanted[at - before]).collect();
        let mut call = self.clone();
        let mut keep = wanted.iter();
        call.plan.features.retain(|_| keep.next().copied().unwrap_or_default());
        let features = &call.plan.features;
        let is_there = |member: &String| features.iter().any(|feature| feature.name == *member);
        call.question.common.groups.retain(|_, members| members.iter().all(is_there));
        let groups = call.question.common.groups.clone();
        call.question.forget_costs(|name| !features.iter().any(|feature| feature.name == name) && !groups.contains_key(name));
        call.columns = kept.iter().map(|at| self.columns[*at]).collect();
        Ok((call, kept))
    }
}

/// Which rows are drawn, and the parts in which moments of so many columns are gathered.
pub(crate) fn gathering(question: &Question, reads: Reads, columns: usize) -> Result<(Option<Draw>, Option<Parting>)> {
    let seed = question.common.seed as u64;
    let draw = question.common.sample_rows.map(|rows| Draw::new(rows, seed));
    let parting = match (reads, draw) {
        // Rows are drawn where they are read, and moments made of those.
        (Reads::Moments, Some(_)) => question.parting(columns)?.or(Some(Parting::for_folds(1, columns, seed))),
        (Reads::Moments, None) => question.parting(columns)?,
        _ => None,
    };
    Ok((draw, parting))
}

/// The columns a call is about, and what it calls the table.
pub(crate) struct Input<'a> {
    pub schema: &'a DFSchema,
    /// The table's name; `None` for a subquery.
    pub table: Option<&'a str>,
}

impl Input<'_> {
    pub(crate) fn name(&self, at: usize) -> &str {
        self.schema.field(at).name()
    }

    pub(crate) fn data_type(&self, at: usize) -> &DataType {
        self.schema.field(at).data_type()
    }

    fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    pub(crate) fn column(&self, name: &str, option: Option<&str>) -> Result<usize> {
        let names = self.names();
        if let Some(at) = names.iter().position(|column| *column == name) {
            return Ok(at);
        }
        let hint = did_you_mean(name, &names);
        let place = self.table.map_or("the subquery".to_string(), |table| format!("`{}`", shown(table)));
        let of = option.map_or(String::new(), |option| format!(" for `{option}`"));
        Err(Error::call(format!("no column `{}`{of} in {place}{hint} columns are {}", shown(name), name_list_near(name, &names))))
    }

    pub(crate) fn has_unique_names(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        match self.names().into_iter().find(|name| !seen.insert(*name)) {
            Some(name) => {
                Err(Error::call(format!("two columns are named `{}`; rename one with AS, or leave it out", shown(name))))
            }
            None => Ok(()),
        }
    }
}

/// How a table is read: these features, and the label if there is one, as the options say.
pub(crate) fn plan_of(
    input: &Input<'_>,
    label: Option<usize>,
    candidates: &[usize],
    left_out: Vec<LeftOut>,
    common: &Common,
) -> Result<Plan> {
    if let Some(at) = label {
        check_label(input, at, common.task)?;
    }
    let feature =
        |at: &usize| Feature { name: input.name(*at).to_string(), is_text: kind(input.data_type(*at)) == ColumnKind::Text };
    Ok(Plan {
        label: label.map_or(String::new(), |at| input.name(at).to_string()),
        label_kind: label.map_or(LabelKind::Float, |at| label_kind(input.data_type(at), common.task)),
        features: candidates.iter().map(feature).collect(),
        weighted: false,
        task: common.task,
        nulls: common.nulls,
        max_levels: common.max_levels,
        levels: common.levels,
        max_classes: common.max_classes,
        bytes_max: common.max_memory.map_or(0, |Bytes(bytes)| bytes),
        left_out,
    })
}

fn check_label(input: &Input<'_>, at: usize, task: Task) -> Result<()> {
    let (name, data_type) = (input.name(at), input.data_type(at));
    match kind(data_type) {
        ColumnKind::Other => Err(Error::call(format!("label `{name}` is {data_type}; it must be a number, a text or a boolean"))),
        ColumnKind::Text if task == Task::Regression => Err(Error::call(format!(
            "label `{name}` is text, which task => 'regression' cannot predict; cast it, or set task => 'classification'"
        ))),
        _ => Ok(()),
    }
}

/// The columns that may be chosen, and why the others may not.
pub(crate) fn candidates(
    input: &Input<'_>,
    reserved: &BTreeSet<usize>,
    question: &Question,
) -> Result<(Vec<usize>, Vec<LeftOut>)> {
    let common = &question.common;
    let names = input.names();
    for (option, patterns) in [("features", &common.features), ("exclude", &common.exclude)] {
        for pattern in patterns {
            if !names.iter().any(|name| matches(pattern, name)) {
                let hint = did_you_mean(pattern, &names);
                return Err(Error::call(format!(
                    "`{option}` matches no column: `{}`{hint} columns are {}",
                    shown(pattern),
                    name_list_near(pattern, &names)
                )));
            }
        }
    }
    let any = |patterns: &[String], name: &str| patterns.iter().any(|pattern| matches(pattern, name));
    let in_group = |name: &str| common.groups.values().flatten().any(|member| member == name);
    let (mut candidates, mut left_out) = (Vec::new(), Vec::new());
    for at in (0..names.len()).filter(|at| !reserved.contains(at)) {
        let (name, data_type) = (names[at], input.data_type(at));
        let named = common.must_include.iter().chain(&common.features).any(|given| given == name) || in_group(name);
        let reason = if any(&common.exclude, name) {
            "excluded".to_string()
        } else if !common.features.is_empty() && !any(&common.features, name) {
            "not in features".to_string()
        } else if kind(data_type) == ColumnKind::Other {
            if named {
                return Err(Error::call(format!(
                    "feature `{name}` is {data_type}, which is neither a number nor text; leave it out"
                )));
            }
            format!("type {data_type} is neither a number nor text")
        } else {
            candidates.push(at);
            continue;
        };
        left_out.push(LeftOut { feature: name.to_string(), reason });
    }
    if candidates.is_empty() {
        let place = if left_out.is_empty() { "the input has no column besides the label" } else { "every column is left out" };
        return Err(Error::call(format!("no feature to choose from: {place}; check `features` and `exclude`")));
    }
    Ok((candidates, left_out))
}

/// Groups, forced features and k, against the candidates.
fn check_units(features: Vec<String>, question: &Question) -> Result<()> {
    let common = &question.common;
    let units = common.check_units(&features)?.len();
    if let Count::Exactly(k) = common.k {
        if k > units {
            let noun = if units == 1 { "is only 1 feature" } else { &format!("are only {units} features") };
            return Err(Error::call(format!("`k` must be at most {units}, because there {noun} to choose from; got {k}")));
        }
        let forced = common.must_include.len();
        if forced > k {
            return Err(Error::call(format!("`k` must be at least {forced} to hold what must_include names, got {k}")));
        }
    }
    Ok(())
}

/// The group columns stand beside the answer's, so that no two may share a name.
fn check_partitions(question: &Question) -> Result<()> {
    let names = &question.common.partition_by;
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::call(format!("`partition_by` names `{name}` twice")));
        }
        if question.fields.iter().any(|field| field.name() == name) {
            return Err(Error::call(format!(
                "`partition_by` names `{name}`, which is a column of the answer; rename it with AS"
            )));
        }
    }
    Ok(())
}

/// Whether `name` fits a pattern in which `*` stands for any letters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or("");
    for piece in pieces {
        match name.find(piece) {
            Some(at) => name = &name[at + piece.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_letters() {
        assert!(matches("id", "id") && !matches("id", "idx"));
        assert!(matches("*_ts", "created_ts") && !matches("*_ts", "created_tsx"));
        assert!(matches("a*b*c", "a1b2c") && matches("a*b*c", "abc") && !matches("a*b*c", "acb"));
        assert!(matches("*", "") && matches("a*", "a") && !matches("ab*b", "ab"));
    }
}
