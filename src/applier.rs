//! A model on batches of rows: its table from Arrow, its inputs from a batch, its outputs as columns.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions, StringArray,
    StructArray, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::TryStreamExt;
use pursuit_udfs::{Applied, ColumnKind as Kind, Error, Feature, Made, Model, NO_LEVEL, Output, Run, Values};

use crate::answer;
use crate::apply_exec::Applying;
use crate::classes::Classes;
use crate::columns::{ColumnKind, kind, with_blocks};
use crate::error::named;

/// The columns of a model's table, gathered as they are read.
pub(crate) struct ModelRows(Vec<Values>);

impl ModelRows {
    fn new(columns: &[(&'static str, Kind)]) -> Self {
        let empty = |(_, kind): &(&str, Kind)| match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
            Kind::Whole => Values::Whole(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
            Kind::Texts => Values::Texts(Vec::new()),
        };
        Self(columns.iter().map(empty).collect())
    }

    /// All rows of a plan, for which memory is asked.
    pub(crate) async fn read(
        table: &Arc<dyn ExecutionPlan>,
        columns: &[(&'static str, Kind)],
        context: &Arc<TaskContext>,
        memory: &MemoryReservation,
    ) -> Result<Self> {
        let mut rows = Self::new(columns);
        for partition in 0..table.output_partitioning().partition_count() {
            let mut batches = table.execute(partition, Arc::clone(context))?;
            while let Some(batch) = batches.try_next().await? {
                memory.try_grow(Self::bytes_for(&batch))?;
                rows.push(&batch)?;
            }
        }
        Ok(rows)
    }

    pub(crate) fn columns(&self) -> &[Values] {
        &self.0
    }

    /// Bytes that the rows of a batch will take here and in the model: each text on its own, and all of it twice while the model is read.
    fn bytes_for(batch: &RecordBatch) -> usize {
        2 * (batch.get_array_memory_size() + batch.num_rows() * batch.num_columns() * size_of::<Option<String>>())
    }

    /// Adds the rows of a batch, whose columns are in the same order.
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        for (values, column) in self.0.iter_mut().zip(batch.columns()) {
            match values {
                Values::Text(texts) => {
                    let column = cast(column, &DataType::Utf8)?;
                    texts.extend(column.as_string::<i32>().iter().map(|text| text.map(str::to_string)));
                }
                Values::Number(numbers) => {
                    numbers.extend(cast(column, &DataType::Float64)?.as_primitive::<Float64Type>().iter());
                }
                Values::Whole(wholes) => wholes.extend(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().iter()),
                Values::Flag(flags) => flags.extend(cast(column, &DataType::Boolean)?.as_boolean().iter()),
                Values::Texts(lists) => {
                    let column = cast(column, &answer::data_type(Kind::Texts))?;
                    let list = |list: Option<ArrayRef>| {
                        let texts = list
                            .iter()
                            .flat_map(|list| list.as_string::<i32>().iter().flatten().map(str::to_string).collect::<Vec<_>>());
                        texts.collect()
                    };
                    lists.extend(column.as_list::<i32>().iter().map(list));
                }
            }
        }
        Ok(())
    }
}

/// A model, and where its columns are in the rows that it reads.
pub(crate) struct Applier {
    name: &'static str,
    model: Box<dyn Model>,
    /// The columns of the answer.
    schema: SchemaRef,
    outputs: Vec<(&'static str, Output)>,
    /// The outputs that the model has to make.
    made: Vec<&'static str>,
    /// Columns of the rows to read: keys, features, then the label if it is asked for.
    wanted: Vec<usize>,
    /// Names of the key columns.
    keys: Vec<String>,
    /// Whether each feature is text.
    is_text: Vec<bool>,
    has_label: bool,
    /// What the outputs that are names stand for.
    names: Vec<(&'static str, ArrayRef)>,
    classes: Option<Classes>,
}

impl Applier {
    /// The model that a table holds, for rows of a schema.
    pub(crate) fn new(applying: &Applying, table: ModelRows, rows: &Schema) -> Result<Self> {
        let (name, schema) = (applying.name, Arc::clone(&applying.schema));
        let model = applying.apply.read(&table.0).map_err(|error| named(name, error))?;
        let outputs = applying.apply.outputs();
        let is_asked = |output: &&(&'static str, Output)| schema.column_with_name(output.0).is_some();
        let asked: Vec<&(&'static str, Output)> = outputs.iter().filter(is_asked).collect();
        let judges = asked.iter().any(|(_, output)| *output == Output::Correct);
        let is_class = |output: &Output| match output {
            Output::Class => true,
            Output::Predicted => model.predicts() != Kind::Number,
            _ => false,
        };
        let class = outputs.iter().find(|(_, output)| is_class(output)).map(|(name, _)| *name);
        let predicts_number = outputs.iter().any(|(_, output)| *output == Output::Predicted) && class.is_none();
        if predicts_number && applying.label_type != DataType::Float64 {
            let found = &applying.label_type;
            let message = format!(
                "the {} predicts numbers, and when the query was planned it predicted {found}; plan it again",
                applying.model
            );
            return Err(named(name, Error::data(message)));
        }
        let mut made: Vec<&'static str> =
            asked.iter().filter(|(_, output)| *output != Output::Correct).map(|(name, _)| *name).collect();
        made.extend(class.filter(|class| judges && !made.contains(class)));

        let keys = applying.keys.iter().map(|at| rows.field(*at).name().clone()).collect();
        let mut wanted = applying.keys.clone();
        let features = model.features();
        for feature in &features {
            wanted.push(find(applying.model, feature, rows).map_err(|error| named(name, error))?);
        }
        let label = applying.label.filter(|at| judges && kind(rows.field(*at).data_type()) != ColumnKind::Other);
        wanted.extend(label);
        let classes = match class.filter(|class| made.contains(class)) {
            Some(class) => Some(Classes::new(model.names(class), &applying.label_type)?),
            None => None,
        };
        if let Some(classes) = &classes {
            classes.check(applying.model).map_err(|error| named(name, error))?;
        }
        let is_named = |output: &Output| matches!(output, Output::Of(Kind::Text | Kind::Texts) | Output::Probabilities);
        let names_of = |output: &'static str| Arc::new(StringArray::from_iter_values(model.names(output))) as ArrayRef;
        let names = asked.iter().filter(|(_, output)| is_named(output)).map(|(name, _)| (*name, names_of(name))).collect();
        let (is_text, has_label) = (features.iter().map(|feature| feature.is_text).collect(), label.is_some());
        Ok(Self { name, model, schema, outputs, made, wanted, keys, is_text, has_label, names, classes })
    }

    /// The columns of the rows that it reads, in its order.
    pub(crate) fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// The answer for a batch of rows, which have only the columns that are wanted.
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys.len();
        let features = self.is_text.iter().enumerate().map(|(at, text)| (Arc::clone(batch.column(keys + at)), *text));
        let features: Vec<(ArrayRef, bool)> = features.collect();
        let applied = with_blocks(&features, |blocks| self.model.apply(batch.num_rows(), blocks, &self.made, &Run::default()))?;
        let applied = applied.map_err(|error| named(self.name, error))?;
        let fields = self.schema.fields().iter();
        let columns = fields.map(|field| self.column(field.name(), batch, &applied)).collect::<Result<_>>()?;
        let rows = applied.rows.as_ref().map_or(batch.num_rows(), Vec::len);
        let rows = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows)?)
    }

    fn data_type(&self, name: &str) -> Result<&DataType> {
        Ok(self.schema.field_with_name(name)?.data_type())
    }

    /// A column of the answer.
    fn column(&self, name: &str, batch: &RecordBatch, applied: &Applied) -> Result<ArrayRef> {
        let of_rows = |column: &ArrayRef| match &applied.rows {
            Some(rows) => Ok(take(column, &UInt32Array::from(rows.clone()), None)?),
            None => Ok(Arc::clone(column)),
        };
        if let Some(at) = self.keys.iter().position(|key| key == name) {
            return of_rows(batch.column(at));
        }
        let made = |name: &str| {
            let found = applied.columns.iter().find(|(made, _)| *made == name).map(|(_, made)| made);
            found.ok_or_else(|| exec_datafusion_err!("{}: the model did not make `{name}`", self.name))
        };
        let output = self.outputs.iter().find(|(output, _)| *output == name).map(|(_, output)| *output);
        let class = self.outputs.iter().find(|(_, output)| *output == Output::Class).map_or("", |(name, _)| name);
        Ok(match (output, &self.classes) {
            (Some(Output::Class | Output::Predicted), Some(classes)) => names(&classes.values, made(name)?)?,
            (Some(Output::Correct), Some(classes)) => match (self.has_label, made(class)?) {
                (true, Made::Names(predicted)) => {
                    let label = batch.columns().last().map(of_rows).transpose()?;
                    Arc::new(
                        label.map_or(Ok(BooleanArray::new_null(predicted.len())), |label| classes.correct(&label, predicted))?,
                    )
                }
                (_, made) => Arc::new(BooleanArray::new_null(length(made))),
            },
            _ => {
                let known = self.names.iter().find(|(output, _)| *output == name);
                match (known, made(name)?) {
                    (_, Made::Nothing(rows)) => new_null_array(self.data_type(name)?, *rows),
                    (Some((_, known)), Made::Shares(shares)) => by_name(known, shares)?,
                    (Some((_, known)), made) => names(known, made)?,
                    (None, Made::Numbers(numbers)) => Arc::new(Float64Array::from(numbers.clone())),
                    (None, Made::Wholes(wholes)) => Arc::new(Int64Array::from(wholes.clone())),
                    (None, Made::Flags(flags)) => Arc::new(BooleanArray::from(flags.clone())),
                    (None, _) => return Err(exec_datafusion_err!("{}: `{name}` has no names", self.name)),
                }
            }
        })
    }
}

/// Shares by the names that they are of, row by row.
fn by_name(known: &ArrayRef, shares: &[f64]) -> Result<ArrayRef> {
    let DataType::Map(entries, is_sorted) = answer::shares_type() else { return exec_err!("shares are a map") };
    let DataType::Struct(fields) = entries.data_type() else { return exec_err!("a map has entries") };
    let names = known.len();
    let rows = shares.len() / names.max(1);
    let places: UInt32Array = (0..rows * names).map(|at| (at % names) as u32).collect();
    let columns: Vec<ArrayRef> = vec![take(known, &places, None)?, Arc::new(Float64Array::from(shares.to_vec()))];
    let values = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(names, rows));
    Ok(Arc::new(MapArray::try_new(Arc::clone(&entries), offsets, values, None, is_sorted)?))
}

fn length(made: &Made) -> usize {
    match made {
        Made::Numbers(numbers) => numbers.len(),
        Made::Wholes(wholes) => wholes.len(),
        Made::Flags(flags) => flags.len(),
        Made::Names(names) => names.len(),
        Made::Shares(shares) => shares.len(),
        Made::Nothing(rows) => *rows,
        Made::Lists { lengths, .. } => lengths.len(),
    }
}

/// Names, looked up for a whole batch at once.
fn names(known: &ArrayRef, made: &Made) -> Result<ArrayRef> {
    let look_up = |places: &[u32]| {
        let places: UInt32Array = if places.contains(&NO_LEVEL) {
            places.iter().map(|place| (*place != NO_LEVEL).then_some(*place)).collect()
        } else {
            UInt32Array::from(places.to_vec())
        };
        take(known, &places, None)
    };
    Ok(match made {
        Made::Names(places) => look_up(places)?,
        Made::Lists { lengths, names } => {
            let lengths = OffsetBuffer::from_lengths(lengths.iter().map(|length| *length as usize));
            let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
            Arc::new(ListArray::try_new(field, lengths, look_up(names)?, None)?)
        }
        _ => return Err(exec_datafusion_err!("names are made as names or lists")),
    })
}

/// Where a feature is in the rows.
fn find(model: &str, feature: &Feature, rows: &Schema) -> pursuit_udfs::Result<usize> {
    let Feature { name, is_text } = feature;
    let at = rows.fields().iter().position(|field| field.name() == name);
    let at = at.ok_or_else(|| {
        Error::data(format!("the {model} asks for `{name}`, which the table does not have; add it, or give it as NULL"))
    })?;
    let found = rows.field(at).data_type();
    // A column of nothing but NULLs is whatever is asked for.
    if *found == DataType::Null {
        return Ok(at);
    }
    if kind(found) == ColumnKind::Other || (kind(found) == ColumnKind::Text) != *is_text {
        let wants = if *is_text { "text" } else { "a number" };
        return Err(Error::data(format!("the {model} asks for `{name}` as {wants}, and in the table it is {found}; cast it")));
    }
    Ok(at)
}
