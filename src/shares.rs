//! Folds, resamples and seeds of one call on different machines: the operator that answers has others among its inputs that make a share of the selections each. Wherever
//! a cluster runs them, each reads the table for itself.

use std::fmt;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use pursuit_udfs::{Reads, Share};
use serde::{Deserialize, Serialize};

use crate::call::Call;

/// What an operator makes of the selections that its call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    Whole,
    /// Every `of`th, and no answer.
    Share {
        first: usize,
        of: usize,
    },
    /// The answer, from shares that are its last input.
    Rest {
        of: usize,
    },
}

/// A share that is done, as text.
static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("done", DataType::Utf8, false)])));

pub(crate) fn schema() -> SchemaRef {
    Arc::clone(&SCHEMA)
}

/// In how many shares a call is answered where there are so many machines, or threads of them.
pub(crate) fn count(call: &Call, machines: usize) -> usize {
    let common = &call.question.common;
    // Moments are quick to select from, groups are spread already, and of a time that is over nobody knows who had how much.
    let is_shared = call.reads == Reads::Rows && call.partitions.is_empty() && common.time_limit.is_none();
    if is_shared { call.question.repetitions().min(machines) } else { 1 }
}

impl Part {
    /// What the run is told of it; the input with the shares of others is taken away.
    pub(crate) async fn share(
        self,
        inputs: &mut Vec<Arc<dyn ExecutionPlan>>,
        context: &Arc<TaskContext>,
    ) -> Result<Option<Arc<Share>>> {
        Ok(match self {
            Part::Whole => None,
            Part::Share { first, of } => Some(Arc::new(Share::some(first, of))),
            Part::Rest { .. } => {
                let shares = inputs.pop().ok_or_else(|| exec_datafusion_err!("SelectExec lost an input"))?;
                let batches = collect(shares, Arc::clone(context)).await?;
                let texts = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten());
                Some(Arc::new(Share::rest(texts)))
            }
        })
    }

    pub(crate) fn explain(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Whole => Ok(()),
            Part::Share { first, of } => write!(f, ", share={} of {of}", first + 1),
            Part::Rest { of } => write!(f, ", shares={of}"),
        }
    }
}

/// The answer of an operator that made a share: a line, or none if the run ended before there was anything to share. Whatever ended it, an error too, is met
/// again by the operator that answers, which says what it would say alone.
pub(crate) fn batch(share: &Share) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(schema(), vec![Arc::new(StringArray::from_iter_values(share.done()))])?)
}
