//! What our operators have in common: the plan node, errors instead of panics, and inputs that are executed once.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::future::{BoxFuture, FutureExt, Shared};
use futures::stream::{BoxStream, StreamExt};

use crate::panics;
use crate::wanted::Wanted;

/// What an operator is beside being a node of a plan.
pub(crate) trait Operator: fmt::Debug + Send + Sync + Sized + 'static {
    /// The node's name in EXPLAIN.
    const NAME: &'static str;

    /// What the partitions of one execution share.
    type Common: Default + fmt::Debug + Send + Sync;

    /// Whose name errors bear.
    fn function(&self) -> &str;

    /// Schema, partitions and order of the answer over these inputs.
    fn properties(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> PlanProperties;

    /// What each input must be like: in one piece, unless the operator says otherwise.
    fn distribution(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; inputs.len()]
    }

    /// Whether it reads these inputs as well as those it was planned with; otherwise it keeps its own, which an optimiser may not change.
    fn accepts(&self, _inputs: &[Arc<dyn ExecutionPlan>], _own: &[Arc<dyn ExecutionPlan>]) -> bool {
        true
    }

    /// The operator that makes only these columns of its answer, if it need not make the others.
    fn narrowed(&self, _columns: &[usize]) -> Result<Option<Self>> {
        Ok(None)
    }

    /// The operator that stops after so many rows, if it can: there is one partition then.
    fn limited(&self, _rows: Option<usize>) -> Option<Self> {
        None
    }

    /// The rows after which it stops.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// What EXPLAIN says after the name.
    fn explain(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The rows of one partition. An input must be executed here or, where the partitions share it, within [`Once::get`].
    fn execute(self: Arc<Self>, execution: Execution<Self>) -> Result<BoxStream<'static, Result<RecordBatch>>>;
}

/// The properties of an operator that has its answer when it has seen all rows, in one partition.
pub(crate) fn one_answer(properties: EquivalenceProperties) -> PlanProperties {
    PlanProperties::new(properties, Partitioning::UnknownPartitioning(1), EmissionType::Final, Boundedness::Bounded)
}

/// One partition of one execution.
pub(crate) struct Execution<O: Operator> {
    pub inputs: Vec<Arc<dyn ExecutionPlan>>,
    pub partition: usize,
    pub context: Arc<TaskContext>,
    pub metrics: ExecutionPlanMetricsSet,
    pub common: Arc<O::Common>,
}

/// An operator with its inputs, as a node of a plan.
#[derive(Debug)]
pub(crate) struct OperatorExec<O: Operator> {
    operator: Arc<O>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    common: Arc<O::Common>,
}

impl<O: Operator> OperatorExec<O> {
    pub(crate) fn new(operator: impl Into<Arc<O>>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Self {
        let operator = operator.into();
        let properties = Arc::new(operator.properties(&inputs));
        // A plan with other inputs, or one that is run again, has nothing in common with what was run before.
        Self { operator, inputs, properties, metrics: ExecutionPlanMetricsSet::new(), common: Arc::default() }
    }

    pub(crate) fn operator(&self) -> &O {
        &self.operator
    }
}

impl<O: Operator> DisplayAs for OperatorExec<O> {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if form != DisplayFormatType::TreeRender {
            write!(f, "{}: ", O::NAME)?;
        }
        self.operator.explain(form, f)
    }
}

impl<O: Operator> ExecutionPlan for OperatorExec<O> {
    fn name(&self) -> &str {
        O::NAME
    }

    fn static_name() -> &'static str {
        O::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(self.operator.distribution(&self.inputs))
    }

    // Dealing out rows costs more than reading them.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.operator.accepts(&children, &self.inputs) {
            true => Ok(Arc::new(Self::new(Arc::clone(&self.operator), children))),
            false => Ok(self),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self::new(self.operator.limited(limit)?, self.inputs.clone())))
    }

    fn fetch(&self) -> Option<usize> {
        self.operator.limit()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        panics::remember_places();
        let execution = Execution {
            inputs: self.inputs.clone(),
            partition,
            context,
            metrics: self.metrics.clone(),
            common: Arc::clone(&self.common),
        };
        let function = self.operator.function().to_string();
        let wanted = execution.context.session_config().get_extension::<Wanted>();
        let stream = Arc::clone(&self.operator).execute(execution)?;
        let stream = match wanted {
            Some(wanted) => wanted.guard(stream),
            None => stream,
        };
        // A panic while a batch is made would take the runtime's thread, and in a shell the process, with it.
        let stream = AssertUnwindSafe(stream).catch_unwind().map(move |batch| {
            batch.unwrap_or_else(|panic| {
                Err(DataFusionError::Execution(format!("{function}: {}", panics::internal_error(&*panic))))
            })
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

/// Something that the partitions of an execution need and that is made once, be it a value or an error: an input that was executed must
/// not be executed again, and whoever is dropped while others wait leaves what was begun to them.
pub(crate) struct Once<T: Clone>(Mutex<Option<Making<T>>>);

type Making<T> = Shared<BoxFuture<'static, Result<T, Arc<DataFusionError>>>>;

impl<T: Clone> Default for Once<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

impl<T: Clone + Send + Sync + 'static> Once<T> {
    /// The value, which the first to ask makes.
    pub(crate) fn get<F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        make: impl FnOnce() -> F,
    ) -> impl Future<Output = Result<T>> + Send + 'static {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = made.get_or_insert_with(|| {
            let made = AssertUnwindSafe(make()).catch_unwind().map(|made| match made {
                Ok(made) => made.map_err(Arc::new),
                Err(panic) => Err(Arc::new(DataFusionError::Execution(panics::internal_error(&*panic)))),
            });
            made.boxed().shared()
        });
        let made = made.clone();
        async move { made.await.map_err(DataFusionError::Shared) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The first to ask is dropped half-way, others get the error, and nothing is begun twice.
    #[tokio::test]
    async fn what_is_shared_is_made_once_even_if_it_fails() {
        let (once, made) = (Once::<usize>::default(), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let made = Arc::clone(&made);
            once.get(move || async move {
                made.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Err(DataFusionError::Execution("no".into()))
            })
        };
        let mut first = Box::pin(ask());
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        for _ in 0..2 {
            assert!(ask().await.unwrap_err().to_string().contains("no"));
        }
        assert_eq!(made.load(Ordering::Relaxed), 1);
        let broken = Once::<usize>::default();
        let error = broken.get(|| async { panic!("broken") }).await.unwrap_err().to_string();
        assert!(error.contains("internal error: broken"), "{error}");
    }
}
