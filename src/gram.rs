//! Second moments as a value: `gram` gathers them, `gram_merge` adds them up, `gram_summary` says what is in them.
//!
//! Any DataFusion host can run these. All are public: keep a gram in a table, merge yesterday's with
//! today's, and select again (select_from.rs) without reading the data.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StructArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::AggregateFunctionParams;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, GroupsAccumulator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::scalar::ScalarValue;
use pursuit_udfs::{Feature, GroupedMoments, Label, LabelKind, Moments, Nulls, Plan, Task};

use crate::columns::{Batch, ColumnKind, kind};
use crate::error::named;
use crate::gram_groups::GramGroups;
use crate::inputs::rows_at_once;
use crate::progress::{Active, Progress};

/// `gram([order,] label, feature, …)`: second moments as one opaque value.
///
/// The order, a JSON text, comes from a selector's call and carries its options. Without one the defaults hold.
#[derive(Debug)]
pub(crate) struct GramFunction {
    signature: Signature,
    progress: Arc<Progress>,
}

impl GramFunction {
    pub(crate) fn udaf(progress: Arc<Progress>) -> AggregateUDF {
        AggregateUDF::from(Self { signature: any_arguments(Volatility::Immutable), progress })
    }
}

/// What a selector's call tells its gram.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Order {
    /// Whose name errors bear.
    pub function: String,
    pub plan: Plan,
}

/// `gram_merge(gram)`: many grams of the same columns as one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct GramMerge {
    signature: Signature,
}

impl GramMerge {
    pub(crate) fn udaf() -> AggregateUDF {
        AggregateUDF::from(Self { signature: any_arguments(Volatility::Immutable) })
    }
}

// All grams are alike; the progress is only where they report to.
impl PartialEq for GramFunction {
    fn eq(&self, other: &Self) -> bool {
        self.signature == other.signature
    }
}
impl Eq for GramFunction {}
impl Hash for GramFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.signature.hash(state);
    }
}

impl AggregateUDFImpl for GramFunction {
    fn name(&self) -> &str {
        "gram"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if arguments.len() < 2 {
            return plan_err!("{TWO_COLUMNS}");
        }
        Ok(DataType::LargeBinary)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (Order { function, plan }, skip) = order_of(&args)?;
        Ok(Box::new(GramAccumulator { function, moments: Moments::new(plan), skip, active: self.progress.start() }))
    }

    // Otherwise the accumulator of each group is asked for, which is where the mistake is reported.
    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        order_of(&args).is_ok()
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let (Order { function, plan }, skip) = order_of(&args)?;
        Ok(Box::new(GramGroups { function, moments: GroupedMoments::new(plan), skip, active: Arc::new(self.progress.start()) }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "gram"), DataType::LargeBinary, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    /// `gram(label, 13 features)`, where the arguments themselves would fill the screen of an EXPLAIN.
    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        Ok(match params.args.split_first() {
            Some((Expr::Literal(value, _), [label, ..])) => match given_order(value) {
                Some(Ok(Order { plan, .. })) => format!("gram({label}, {} features)", plan.features.len()),
                _ => "gram(…)".to_string(),
            },
            Some((label, features)) => format!("gram({label}, {} features)", features.len()),
            None => "gram()".to_string(),
        })
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.display_name(params)
    }
}

const TWO_COLUMNS: &str = "gram: write gram(label, feature, …): needs a label and at least one feature";

/// Any number of arguments, so that it is we who say what is wrong with them, on one line.
pub(crate) fn any_arguments(volatility: Volatility) -> Signature {
    Signature::one_of(vec![TypeSignature::VariadicAny, TypeSignature::Nullary], volatility)
}

/// Functions of grams take one.
fn one_gram(function: &str, arguments: &[DataType]) -> Result<()> {
    match arguments {
        [DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null] => Ok(()),
        [other] => plan_err!("{function}: takes what gram(…) returns, got {other}"),
        _ => plan_err!("{function}: takes one argument, what gram(…) returns; got {}", arguments.len()),
    }
}

/// What a call of the aggregate is to gather, and how many arguments stand before the label.
fn order_of(args: &AccumulatorArgs) -> Result<(Order, usize)> {
    if args.is_distinct {
        return plan_err!("gram: DISTINCT is not for rows of many columns; write gram(…) over a SELECT DISTINCT");
    }
    let given = args.exprs.first().and_then(|first| given_order(first.downcast_ref::<Literal>()?.value()));
    let skip = usize::from(given.is_some());
    let order = match given {
        Some(order) => order.map_err(|error| DataFusionError::Plan(format!("gram: {error}")))?,
        None => {
            let name = |at: usize| {
                let column = args.exprs[at].downcast_ref::<Column>().map(|column| column.name().to_string());
                column.unwrap_or_else(|| args.expr_fields[at].name().clone())
            };
            Order { function: "gram".to_string(), plan: plan_of(args.expr_fields, name)? }
        }
    };
    let columns = args.exprs.len() - skip;
    if columns != 1 + usize::from(order.plan.weighted) + order.plan.features.len() {
        return plan_err!("gram: the plan has {} features, got {columns} columns", order.plan.features.len());
    }
    Ok((order, skip))
}

/// A first argument that is a JSON object is an order.
fn given_order(value: &ScalarValue) -> Option<Result<Order, serde_json::Error>> {
    let text = value.try_as_str()??;
    text.starts_with('{').then(|| serde_json::from_str(text))
}

/// The plan of a call without an order: every column as it comes, all defaults.
fn plan_of(fields: &[FieldRef], name: impl Fn(usize) -> String) -> Result<Plan> {
    if fields.len() < 2 {
        return plan_err!("{TWO_COLUMNS}");
    }
    if let Some(field) = fields.iter().find(|field| kind(field.data_type()) == ColumnKind::Other) {
        return plan_err!("gram: `{}` is {}, which is neither a number nor text", field.name(), field.data_type());
    }
    let feature = |at: usize| Feature { name: name(at), is_text: kind(fields[at].data_type()) == ColumnKind::Text };
    let common = pursuit_udfs::Common::default();
    Ok(Plan {
        label: name(0),
        label_kind: label_kind(fields[0].data_type(), Task::Auto),
        features: (1..fields.len()).map(feature).collect(),
        weighted: false,
        task: Task::Auto,
        nulls: Nulls::Mean,
        max_levels: common.max_levels,
        levels: common.levels,
        max_classes: common.max_classes,
        bytes_max: 0,
        left_out: Vec::new(),
    })
}

pub(crate) fn label_kind(data_type: &DataType, task: Task) -> LabelKind {
    match kind(data_type) {
        ColumnKind::Text => LabelKind::Class,
        ColumnKind::Boolean if task != Task::Regression => LabelKind::Class,
        ColumnKind::Integer | ColumnKind::Boolean => LabelKind::Integer,
        _ => LabelKind::Float,
    }
}

impl AggregateUDFImpl for GramMerge {
    fn name(&self) -> &str {
        "gram_merge"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        one_gram("gram_merge", arguments)?;
        Ok(DataType::LargeBinary)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(MergeAccumulator { moments: None }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "gram"), DataType::LargeBinary, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug)]
struct GramAccumulator {
    function: String,
    moments: Moments,
    /// Arguments before the label.
    skip: usize,
    active: Active,
}

impl Accumulator for GramAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (columns, rows) = (&values[self.skip..], values[0].len());
        // Numbers take no time, and are fastest in whole batches.
        let at_once = if self.moments.plan().texts() > 0 { rows_at_once(columns.len()) } else { rows.max(1) };
        for start in (0..rows).step_by(at_once) {
            self.active.check().map_err(|error| named(&self.function, error))?;
            let rows = at_once.min(rows - start);
            let columns: Vec<ArrayRef> = columns.iter().map(|column| column.slice(start, rows)).collect();
            Batch::new(self.moments.plan(), &columns)?
                .hand_over(|rows, label, weights, features| self.moments.update(rows, label, weights, features))
                .map_err(|error| named(&self.function, error))?;
            self.active.add_rows(rows);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Self { function, moments, .. } = self;
        for_each_gram(&states[0], function, |other| moments.merge(&other).map_err(|error| named(function, error)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::LargeBinary(Some(self.moments.to_bytes())))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.moments.bytes()
    }
}

#[derive(Debug)]
struct MergeAccumulator {
    moments: Option<Moments>,
}

impl Accumulator for MergeAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for_each_gram(&values[0], "gram_merge", |other| match &mut self.moments {
            Some(moments) => moments.merge(&other).map_err(|error| named("gram_merge", error)),
            None => {
                self.moments = Some(other);
                Ok(())
            }
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::LargeBinary(self.moments.as_ref().map(Moments::to_bytes)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.moments.as_ref().map_or(0, Moments::bytes)
    }
}

fn for_each_gram(array: &ArrayRef, function: &str, mut visit: impl FnMut(Moments) -> Result<()>) -> Result<()> {
    let array = cast(array, &DataType::LargeBinary)?;
    for bytes in array.as_binary::<i64>().iter().flatten() {
        visit(Moments::from_bytes(bytes).map_err(|error| named(function, error))?)?;
    }
    Ok(())
}

/// `gram_summary(gram)`: what was read, as a struct.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct GramSummary {
    signature: Signature,
}

impl GramSummary {
    pub(crate) fn udf() -> ScalarUDF {
        ScalarUDF::from(Self { signature: any_arguments(Volatility::Immutable) })
    }

    fn fields() -> Fields {
        let count = |name: &str| Field::new(name, DataType::UInt64, true);
        Fields::from(vec![
            Field::new("label", DataType::Utf8, true),
            Field::new("task", DataType::Utf8, true),
            count("classes"),
            count("features"),
            count("rows"),
            count("rows_without_label"),
            count("rows_without_weight"),
            count("rows_with_null"),
            count("values_filled"),
            count("values_out_of_range"),
        ])
    }
}

impl ScalarUDFImpl for GramSummary {
    fn name(&self) -> &str {
        "gram_summary"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        one_gram("gram_summary", arguments)?;
        Ok(DataType::Struct(Self::fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let grams = ColumnarValue::values_to_arrays(&args.args)?;
        let grams = cast(&grams[0], &DataType::LargeBinary)?;
        let mut texts: [Vec<Option<String>>; 2] = Default::default();
        let mut counts: [Vec<Option<u64>>; 8] = Default::default();
        for bytes in grams.as_binary::<i64>().iter() {
            let Some(bytes) = bytes else {
                texts.iter_mut().for_each(|column| column.push(None));
                counts.iter_mut().for_each(|column| column.push(None));
                continue;
            };
            let moments = Moments::from_bytes(bytes).map_err(|error| named("gram_summary", error))?;
            let (seen, gram) = (moments.seen(), moments.finish());
            let (task, classes) = match &gram.label {
                Label::Numbers => ("regression", None),
                Label::Classes(classes) => ("classification", Some(classes.len() as u64)),
            };
            let filled = moments.plan().values_filled(seen);
            texts[0].push(Some(moments.plan().label.clone()));
            texts[1].push(Some(task.to_string()));
            let features = moments.plan().features.len() as u64;
            let values = [
                classes,
                Some(features),
                Some(seen.rows),
                Some(seen.rows_without_label),
                Some(seen.rows_without_weight),
                Some(seen.rows_with_null),
                Some(filled),
                Some(seen.out_of_range),
            ];
            counts.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
        let texts = texts.into_iter().map(|column| Arc::new(StringArray::from(column)) as ArrayRef);
        let counts = counts.into_iter().map(|column| Arc::new(UInt64Array::from(column)) as ArrayRef);
        let summary = StructArray::try_new(Self::fields(), texts.chain(counts).collect(), grams.nulls().cloned())?;
        Ok(ColumnarValue::Array(Arc::new(summary)))
    }
}
