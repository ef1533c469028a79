//! `select_from`: the answer to a question from second moments alone.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use pursuit_udfs::{Data, Moments, Reads, Spec, parse_options};

use crate::answer;
use crate::engine::Registry;
use crate::error::named;
use crate::gram::any_arguments;
use crate::progress::Progress;
use crate::question::Question;

/// `select_from(gram, selector [, options])`: a list of rankings' rows.
///
/// Asynchronous, because a selection may take seconds: the work goes to rayon, and dropping the query stops it.
#[derive(Debug)]
pub(crate) struct SelectFrom {
    signature: Signature,
    registry: Arc<Registry>,
    progress: Arc<Progress>,
}

impl SelectFrom {
    pub(crate) fn udf(registry: Arc<Registry>, progress: Arc<Progress>) -> ScalarUDF {
        // Not evaluated while planning, however constant its arguments are.
        let signature = any_arguments(Volatility::Volatile);
        AsyncScalarUDF::new(Arc::new(Self { signature, registry, progress })).into_scalar_udf()
    }

    async fn select(&self, gram: &[u8], question: &Question, function: &str) -> Result<Vec<ArrayRef>> {
        let moments = Moments::from_bytes(gram).map_err(|error| named("select_from", error))?;
        let data = move || Ok((Data::Gram(moments.finish()), None, moments.plan().clone()));
        question.answer(Arc::clone(&self.progress), None, data).await.map_err(|error| named(function, error))
    }
}

impl PartialEq for SelectFrom {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.registry, &other.registry)
    }
}
impl Eq for SelectFrom {}
impl Hash for SelectFrom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.signature.hash(state);
    }
}

fn ranking_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(answer::FIELDS.clone()), true)))
}

impl ScalarUDFImpl for SelectFrom {
    fn name(&self) -> &str {
        "select_from"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if !matches!(arguments.len(), 2 | 3) {
            return plan_err!(
                "select_from: takes a gram, a selector's name and options, got {} arguments; write select_from(gram(label, feature, …), 'name')",
                arguments.len()
            );
        }
        Ok(ranking_type())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("select_from: this host cannot run asynchronous functions")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for SelectFrom {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let grams = cast(&arrays[0], &DataType::LargeBinary)?;
        let names = cast(&arrays[1], &DataType::Utf8)?;
        let options = arrays.get(2).map(|options| cast(options, &DataType::Utf8)).transpose()?;
        let mut offsets = vec![0];
        let mut parts: Vec<Vec<ArrayRef>> = Vec::new();
        for row in 0..grams.len() {
            let mut length = 0;
            if grams.is_valid(row) {
                let name = names.as_string::<i32>().value(row);
                let spec = self.registry.find(name).ok_or_else(|| self.registry.unknown("select_from", name))?;
                let text = options
                    .as_ref()
                    .filter(|options| options.is_valid(row))
                    .map_or("{}", |options| options.as_string::<i32>().value(row));
                let question = question(spec, text)?;
                let ranking = self.select(grams.as_binary::<i64>().value(row), &question, question.spec.name).await?;
                length = ranking[0].len();
                parts.push(ranking);
            }
            offsets.push(offsets[row] + length as i32);
        }
        if parts.is_empty() {
            parts.push(answer::columns(&[], ""));
        }
        let columns = (0..answer::FIELDS.len())
            .map(|at| Ok(concat(&parts.iter().map(|part| part[at].as_ref()).collect::<Vec<_>>())?))
            .collect::<Result<Vec<_>>>()?;
        let rankings = StructArray::try_new(answer::FIELDS.clone(), columns, None)?;
        let item = Arc::new(Field::new_list_field(DataType::Struct(answer::FIELDS.clone()), true));
        let list = ListArray::try_new(item, OffsetBuffer::new(offsets.into()), Arc::new(rankings), grams.nulls().cloned())?;
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}

/// Options that a gram was made with, and that nobody can change afterwards.
pub(crate) const SETTLED: [&str; 8] = ["task", "nulls", "max_levels", "max_classes", "weights", "exclude", "features", "reads"];

fn question(spec: Arc<Spec>, options: &str) -> Result<Question> {
    let name = spec.name;
    let settings = parse_options(options).map_err(|error| named(name, error))?;
    if let Some(option) = SETTLED.iter().find(|option| settings.contains_key(**option)) {
        return plan_err!("{name}: `{option}` was settled when the gram was made; leave it out, or make another gram");
    }
    let question = Question::new(spec, &settings).map_err(|error| named(name, error))?;
    if question.reads != Reads::Moments {
        return plan_err!("{name}: needs the rows, which a gram has not kept; write {name}(table, label => column)");
    }
    Ok(question)
}
