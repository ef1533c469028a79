//! Selections that read rows, on their way to another machine.
//!
//! A cluster sends plans by codecs of its own, which know how to send inputs. What is ours of a selection is a line of JSON. A call is sent twice: as a table, to whoever
//! plans the query, and as an operator, to whoever runs it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use pursuit_udfs::{Plan, Reads, Settings, Spec};
use serde::{Deserialize, Serialize};

use crate::call::{Call, HeldOut, Input, gathering};
use crate::engine::Registry;
use crate::error::named;
use crate::exec::{Select, SelectExec};
use crate::progress::Progress;
use crate::question::Question;
use crate::shares::{self, Part};
use crate::table::SelectTable;

/// Packs selections, and unpacks them where the same functions are. See [`Engine::travel`](crate::Engine::travel).
///
/// Whoever runs an operator that was unpacked must honour what it requires of its inputs: all rows in one place, or those of a group. The operator refuses what it can
/// see to be less: fewer bytes of files than when it was planned, or groups that are cut.
#[derive(Debug, Clone)]
pub struct Travel {
    registry: Arc<Registry>,
    progress: Arc<Progress>,
}

/// A call that is not planned yet.
#[derive(Debug, Serialize, Deserialize)]
struct PackedTable {
    function: String,
    label: String,
    settings: Settings,
    caution: Option<String>,
    /// Whether these follow the table among the inputs.
    has_held_out: bool,
    has_features: bool,
}

/// A call that is planned: what [`Call`] and [`Select`] have, but for what follows from the options.
#[derive(Debug, Serialize, Deserialize)]
struct PackedOperator {
    function: String,
    settings: Settings,
    caution: Option<String>,
    plan: Plan,
    partitions: Vec<usize>,
    columns: Vec<usize>,
    keeps_rows: bool,
    held_out: Option<Vec<usize>>,
    has_features: bool,
    limit: Option<usize>,
    last_rank: Option<usize>,
    shows_fit: bool,
    is_spread: bool,
    part: Part,
    stored: Vec<Option<u64>>,
    metadata: HashMap<String, String>,
}

impl Travel {
    pub(crate) fn new(registry: Arc<Registry>, progress: Arc<Progress>) -> Self {
        Self { registry, progress }
    }

    /// What is to be sent of a table that is a selection, and its inputs. `None`: it is none, or it reads rows in the order in which they are stored, which only
    /// one machine can keep.
    pub fn pack_table<'a>(&self, table: &'a dyn TableProvider) -> Option<(String, Vec<&'a LogicalPlan>)> {
        let table = table.downcast_ref::<SelectTable>()?;
        let call = &table.call;
        if matches!(call.reads, Reads::Pass(_)) {
            return None;
        }
        let held_out = call.held_out.as_ref().map(|held_out| &held_out.plan);
        let packed = PackedTable {
            function: call.question.spec.name.to_string(),
            label: call.plan.label.clone(),
            settings: call.settings.clone(),
            caution: call.question.caution.clone(),
            has_held_out: held_out.is_some(),
            has_features: call.features.is_some(),
        };
        Some((text(&packed), [table.input()].into_iter().chain(held_out).chain(&call.features).collect()))
    }

    /// The table again. The columns are those that it was announced with.
    pub fn unpack_table(&self, packed: &str, inputs: Vec<LogicalPlan>, schema: SchemaRef) -> Result<Arc<dyn TableProvider>> {
        let packed: PackedTable = parse(packed)?;
        let spec = self.find(&packed.function)?;
        let mut inputs = inputs.into_iter();
        let mut next = |is_there: bool| if is_there { inputs.next() } else { None };
        let (Some(input), held_out, features) = (next(true), next(packed.has_held_out), next(packed.has_features)) else {
            return plan_err!("{}: has lost its input on the way", packed.function);
        };
        let place = Input { schema: input.schema(), table: None };
        let call = Call::of(Arc::clone(&spec), Some(&self.registry), &place, &packed.label, packed.settings);
        let call = call.and_then(|call| call.with_relations(held_out, features));
        let mut call = call.map_err(|error| named(spec.name, error))?;
        call.question.caution = packed.caution;
        let table = SelectTable::new(input, call, Arc::clone(&self.progress));
        if table.schema().fields() != schema.fields() {
            return plan_err!("{}: this machine would answer with other columns; start the same version everywhere", spec.name);
        }
        Ok(Arc::new(table.elsewhere(schema)))
    }

    /// What is to be sent of an operator beside its inputs; `None`: it is none of ours, or one that cannot be sent.
    pub fn pack_operator(&self, operator: &dyn ExecutionPlan) -> Option<String> {
        let select = operator.downcast_ref::<SelectExec>()?.operator();
        let call = &select.call;
        if matches!(call.reads, Reads::Pass(_)) {
            return None;
        }
        let packed = PackedOperator {
            function: call.question.spec.name.to_string(),
            settings: call.settings.clone(),
            caution: call.question.caution.clone(),
            plan: call.plan.clone(),
            partitions: call.partitions.clone(),
            columns: call.columns.clone(),
            keeps_rows: call.reads == Reads::Rows,
            held_out: call.held_out.as_ref().map(|held_out| held_out.columns.clone()),
            has_features: call.features.is_some(),
            limit: select.limit,
            last_rank: select.last_rank,
            shows_fit: select.shows_fit,
            is_spread: select.is_spread,
            part: select.part,
            stored: select.stored.clone(),
            metadata: select.schema.metadata().clone(),
        };
        Some(text(&packed))
    }

    /// The operator again.
    pub fn unpack_operator(&self, packed: &str, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
        let packed: PackedOperator = parse(packed)?;
        let spec = self.find(&packed.function)?;
        let has_shares = matches!(packed.part, Part::Rest { .. });
        let expected = 1 + [packed.held_out.is_some(), packed.has_features, has_shares].map(usize::from).iter().sum::<usize>();
        if inputs.len() != expected {
            return exec_err!("{}: has {} inputs, not {expected}", spec.name, inputs.len());
        }
        let reads = if packed.keeps_rows { Reads::Rows } else { Reads::Moments };
        let prepare = || -> pursuit_udfs::Result<_> {
            let mut question = Question::of(Arc::clone(&spec), Some(&self.registry), &packed.settings)?;
            let names: Vec<String> = packed.plan.features.iter().map(|feature| feature.name.clone()).collect();
            question.group(&names)?;
            question.caution = packed.caution;
            let (draw, parting) = gathering(&question, reads, packed.columns.len())?;
            Ok((question, draw, parting))
        };
        let (question, draw, parting) = prepare().map_err(|error| named(spec.name, error))?;
        let first = inputs[0].schema();
        let keys = packed.partitions.iter().map(|at| Arc::clone(&first.fields()[*at]));
        let fields: Vec<FieldRef> = keys.chain(question.fields.iter().cloned()).collect();
        let call = Call {
            question,
            settings: packed.settings,
            plan: packed.plan,
            partitions: packed.partitions,
            columns: packed.columns,
            reads,
            parting,
            draw,
            held_out: packed.held_out.map(|columns| HeldOut { plan: planned(), columns }),
            features: packed.has_features.then(planned),
        };
        let schema = match packed.part {
            Part::Share { .. } => shares::schema(),
            Part::Whole | Part::Rest { .. } => Arc::new(Schema::new_with_metadata(fields, packed.metadata)),
        };
        let select = Select {
            limit: packed.limit,
            last_rank: packed.last_rank,
            shows_fit: packed.shows_fit,
            is_spread: packed.is_spread,
            part: packed.part,
            stored: packed.stored,
            ..Select::new(call, schema, Arc::clone(&self.progress))
        };
        Ok(Arc::new(SelectExec::new(select, inputs.to_vec())))
    }

    fn find(&self, function: &str) -> Result<Arc<Spec>> {
        match self.registry.find(function) {
            Some(spec) => Ok(spec),
            None => plan_err!("{function}: this machine has no such function; start it with the functions of the others"),
        }
    }
}

/// Stands for the plan of an input that is planned already.
fn planned() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) })
}

fn text(packed: &impl Serialize) -> String {
    serde_json::to_string(packed).expect("names, numbers and options are valid JSON")
}

fn parse<'a, T: Deserialize<'a>>(packed: &'a str) -> Result<T> {
    serde_json::from_str(packed)
        .or_else(|error| plan_err!("a selection cannot be read ({error}); start the same version everywhere"))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
    use datafusion::datasource::source_as_provider;
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

    use super::*;
    use crate::Engine;

    /// A session with a table of four files.
    async fn session() -> (SessionContext, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
        Engine::default().register(&ctx).unwrap();
        for part in 0..4 {
            let sql = format!(
                "COPY (SELECT i, i % 3 AS g, sin(i) AS a, sin(i * 1.7) AS b, sin(i) + 0.3 * sin(i * 1.7) AS y
                   FROM (SELECT value AS i FROM generate_series({}, {}))) TO '{}/{part}.parquet'",
                part * 100 + 1,
                part * 100 + 100,
                folder.path().display()
            );
            ctx.sql(&sql).await.unwrap().collect().await.unwrap();
        }
        let path = folder.path().to_str().unwrap();
        ctx.register_parquet("t", path, ParquetReadOptions::default()).await.unwrap();
        ctx.register_parquet("one", format!("{path}/0.parquet"), ParquetReadOptions::default()).await.unwrap();
        (ctx, folder)
    }

    /// The table that a query scans, as it is on another machine.
    async fn sent(ctx: &SessionContext, sql: &str) -> Arc<dyn TableProvider> {
        let (travel, mut found) = (Engine::default().travel(), None);
        let plan = ctx.sql(sql).await.unwrap().into_unoptimized_plan();
        plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                found = Some(source_as_provider(&scan.source)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        let table = found.unwrap();
        let (packed, inputs) = travel.pack_table(table.as_ref()).unwrap();
        travel.unpack_table(&packed, inputs.into_iter().cloned().collect(), table.schema()).unwrap()
    }

    /// The operator of a table, as it is on another machine, over these inputs or its own.
    async fn operator(
        ctx: &SessionContext,
        table: &dyn TableProvider,
        inputs: Option<Vec<Arc<dyn ExecutionPlan>>>,
    ) -> Arc<dyn ExecutionPlan> {
        let travel = Engine::default().travel();
        let planned = table.scan(&ctx.state(), None, &[], None).await.unwrap();
        let own: Vec<_> = planned.children().into_iter().cloned().collect();
        travel.unpack_operator(&travel.pack_operator(planned.as_ref()).unwrap(), &inputs.unwrap_or(own)).unwrap()
    }

    #[tokio::test]
    async fn answers_are_the_same_after_both_ways() {
        let (ctx, _folder) = session().await;
        for sql in [
            "SELECT * FROM random_forest(t, label => y, k => 2, exclude => ['i'], sample_rows => 200)",
            "SELECT * FROM omp(t, label => y, k => 'auto', folds => 4, rows => 'all', exclude => ['i'])",
            "SELECT * FROM evaluate(t, label => y, model => 'linear', features => ['a'], test => one)",
        ] {
            let here = ctx.sql(sql).await.unwrap().collect().await.unwrap();
            let there = operator(&ctx, sent(&ctx, sql).await.as_ref(), None).await;
            let there = collect(there, ctx.task_ctx()).await.unwrap();
            let print = |batches: &[_]| pretty_format_batches(batches).unwrap().to_string();
            assert_eq!(print(&there), print(&here), "{sql}");
        }
    }

    /// A plan in which every operator of ours was sent.
    fn all_sent(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let travel = Engine::default().travel();
        let send = |node: Arc<dyn ExecutionPlan>| {
            let Some(packed) = travel.pack_operator(node.as_ref()) else { return Ok(Transformed::no(node)) };
            let inputs: Vec<_> = node.children().into_iter().cloned().collect();
            Ok(Transformed::yes(travel.unpack_operator(&packed, &inputs)?))
        };
        plan.transform_up(send).unwrap().data
    }

    #[tokio::test]
    async fn shares_of_repetitions_make_the_same_answer() {
        let (ctx, _folder) = session().await;
        for (sql, shares) in [
            ("omp(t, label => y, k => 2, folds => 5, reads => 'rows', exclude => ['i'])", 4),
            ("random_forest(t, label => y, k => 'one_se', folds => 2, trees => 5, exclude => ['i'])", 3),
            ("selection_path(t, label => y, k => 2, selector => 'omp', folds => 3, reads => 'rows')", 4),
            ("stability_selection(t, label => y, k => 1, selector => 'omp', resamples => 6, reads => 'rows')", 3),
            ("evaluate(t, label => y, model => 'linear', selector => 'omp', k => 1, folds => 3, seeds => 2)", 4),
            ("evaluate(t, label => g, task => 'classification', model => 'mlp', epochs => 2, seeds => 3, confusion => true)", 3),
            (
                "compare_selectors(t, label => y, k => 2, selectors => ['omp', 'lasso', 'datum_wise'], reads => 'rows', pairs => true)",
                3,
            ),
            // A selector that cannot answer, and mistakes that are the same wherever they are met.
            ("omp(t, label => y, k => 2, folds => 400, reads => 'rows')", 4),
            ("random_forest(t, label => y, k => 2, folds => 3, time_limit => 60, trees => 5)", 1),
            ("random_forest(t, label => y, k => 2, trees => 5)", 1),
        ] {
            let sql = format!("SELECT * FROM {sql}");
            let table = sent(&ctx, &sql).await;
            let plan = all_sent(table.scan(&ctx.state(), None, &[], None).await.unwrap());
            let text = displayable(plan.as_ref()).indent(false).to_string();
            let planned = (text.matches("share=").count(), text.contains(&format!("shares={shares}")));
            assert_eq!(planned, if shares > 1 { (shares, true) } else { (0, false) }, "{text}");
            let here = ctx.sql(&sql).await.unwrap().collect().await;
            let there = collect(plan, ctx.task_ctx()).await;
            let print = |batches: Result<Vec<_>>| match batches {
                Ok(batches) => pretty_format_batches(&batches).unwrap().to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(print(there), print(here), "{sql}");
        }
    }

    #[tokio::test]
    async fn nobody_answers_from_some_of_the_rows() {
        let (ctx, _folder) = session().await;
        let one = ctx.table("one").await.unwrap().create_physical_plan().await.unwrap();
        let all = ctx.table("t").await.unwrap().create_physical_plan().await.unwrap();
        let whole = sent(&ctx, "SELECT * FROM random_forest(t, label => y, k => 2)").await;
        let groups = sent(&ctx, "SELECT * FROM random_forest(t, label => y, k => 2, partition_by => 'g')").await;
        let cases = [
            // A host that gives each of its tasks some of the files.
            (&whole, Arc::clone(&one), " bytes of its files"),
            (&groups, one, " bytes of its files"),
            // One that does not care where the rows of a group are.
            (&groups, Arc::clone(&all), "are not in one partition"),
            (&groups, Arc::new(CoalescePartitionsExec::new(all)) as _, "are not in one partition"),
        ];
        for (table, input, part) in cases {
            let operator = operator(&ctx, table.as_ref(), Some(vec![input])).await;
            let error = operator.execute(0, ctx.task_ctx()).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
