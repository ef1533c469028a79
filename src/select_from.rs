//! `select_from`: the answer to a question from second moments alone.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use pursuit_udfs::{Data, Error, Moments, Reads, Run, Spec, parse_options};
use rayon::prelude::*;

use crate::answer;
use crate::defaults::Defaults;
use crate::engine::Registry;
use crate::error::named;
use crate::gathered::Read;
use crate::gram::any_arguments;
use crate::lanes::Lane;
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

    /// The answers to one question from some of the grams, side by side; none where there is no gram.
    async fn answers(&self, grams: &ArrayRef, rows: Range<usize>, question: &Arc<Question>) -> Result<Vec<Vec<answer::Row>>> {
        let name = question.spec.name;
        let ours = |error| named(name, error);
        // A value that is no gram is not the selector's fault.
        let no_gram = |error| named("select_from", error);
        let running = question.start(&self.progress, None, Lane::Short).map_err(ours)?;
        let mut answers = Vec::with_capacity(rows.len());
        for piece in rows.clone().step_by(PIECE) {
            let piece = piece..rows.end.min(piece + PIECE);
            let (grams, question) = (Arc::clone(grams), Arc::clone(question));
            let work = move |run: &Run| {
                let grams = grams.as_binary::<i64>();
                // They were mostly made by one call: what one says about the columns need not be read again for the others.
                let first = piece.clone().find(|row| grams.is_valid(*row)).map(|row| Moments::from_bytes(grams.value(row)));
                let first = match first.transpose() {
                    Ok(Some(first)) => first,
                    Ok(None) => return Ok(Ok(vec![Vec::new(); piece.len()])),
                    Err(no_gram) => return Ok(Err(no_gram)),
                };
                let answer = |row: usize| {
                    run.check()?;
                    if grams.is_null(row) {
                        return Ok(Ok(Vec::new()));
                    }
                    let moments = match first.from_bytes_like(grams.value(row)) {
                        Ok(moments) => moments,
                        Err(no_gram) => return Ok(Err(no_gram)),
                    };
                    question.ranking(Read::of(Data::Gram(moments.finish())), moments.plan(), run).map(Ok)
                };
                piece.into_par_iter().map(answer).collect::<Result<Result<Vec<_>, Error>, Error>>()
            };
            answers.extend(running.job(work).await.map_err(ours)?.map_err(no_gram)?);
        }
        Ok(answers)
    }
}

/// Grams that are answered in one go. Others get their turn in between.
const PIECE: usize = 256;

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
        // Neighbours with the same question share its run, and mostly that is all of them.
        let text = |row: usize| {
            let given = options.as_ref().filter(|options| options.is_valid(row));
            given.map_or("{}", |options| options.as_string::<i32>().value(row))
        };
        let name = |row: usize| names.as_string::<i32>().value(row);
        let (mut lengths, mut rows, mut method) = (Vec::with_capacity(grams.len()), Vec::new(), Vec::new());
        let mut start = 0;
        while start < grams.len() {
            let is_other = |row: &usize| name(*row) != name(start) || text(*row) != text(start);
            let end = (start + 1..grams.len()).find(is_other).unwrap_or(grams.len());
            let spec = self.registry.find(name(start)).ok_or_else(|| self.registry.unknown("select_from", name(start)))?;
            let question = Arc::new(question(spec, text(start), &args.config_options)?);
            for answer in self.answers(&grams, start..end, &question).await? {
                lengths.push(answer.len());
                method.extend(std::iter::repeat_n(question.spec.name, answer.len()));
                rows.extend(answer);
            }
            start = end;
        }
        let columns = answer::columns_of(&rows, &method);
        let rankings = StructArray::try_new(answer::FIELDS.clone(), columns, None)?;
        let item = Arc::new(Field::new_list_field(DataType::Struct(answer::FIELDS.clone()), true));
        let list = ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), Arc::new(rankings), grams.nulls().cloned())?;
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}

/// Options that a gram was made with, and that nobody can change afterwards.
pub(crate) const SETTLED: [&str; 10] =
    ["task", "nulls", "max_levels", "levels", "max_classes", "weights", "exclude", "features", "reads", "sample_rows"];

fn question(spec: Arc<Spec>, options: &str, session: &ConfigOptions) -> Result<Question> {
    let name = spec.name;
    let mut settings = parse_options(options).map_err(|error| named(name, error))?;
    if let Some(option) = SETTLED.iter().find(|option| settings.contains_key(**option)) {
        return plan_err!("{name}: `{option}` was settled when the gram was made; leave it out, or make another gram");
    }
    if settings.contains_key("folds") {
        return plan_err!("{name}: `folds` needs rows that are read in parts; write {name}(table, label => column, folds => 5)");
    }
    Defaults::fill(session, &spec, &mut settings);
    let question = Question::new(spec, &settings).map_err(|error| named(name, error))?;
    if question.reads != Reads::Moments {
        return plan_err!("{name}: needs the rows, which a gram has not kept; write {name}(table, label => column)");
    }
    Ok(question)
}
