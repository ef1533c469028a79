//! Selections that read rows, in the messages of the cluster: the call as JSON, the inputs as any other plan.

use std::sync::Arc;

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{TableReference, internal_datafusion_err, plan_datafusion_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::{AsLogicalPlan, LogicalExtensionCodec};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf::LogicalPlanNode;
use prost::Message;
use pursuit::{Engine, Travel};

/// A table that is a selection, as it is sent.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    #[prost(string, tag = "1")]
    call: String,
    /// Each a [`LogicalPlanNode`].
    #[prost(bytes = "vec", repeated, tag = "2")]
    inputs: Vec<Vec<u8>>,
}

/// What our operators begin with in a message; the others are Ballista's.
const OURS: &[u8] = b"pursuit:";

/// Queries from the shell to the scheduler.
#[derive(Debug)]
pub(super) struct Logical {
    ballista: BallistaLogicalExtensionCodec,
    travel: Travel,
}

/// Tasks from the scheduler to the executors.
#[derive(Debug)]
pub(super) struct Physical {
    ballista: BallistaPhysicalExtensionCodec,
    travel: Travel,
}

pub(super) fn codecs(engine: &Engine) -> (Arc<Logical>, Arc<Physical>) {
    let logical = Logical { ballista: BallistaLogicalExtensionCodec::default(), travel: engine.travel() };
    let physical = Physical { ballista: BallistaPhysicalExtensionCodec::default(), travel: engine.travel() };
    (Arc::new(logical), Arc::new(physical))
}

fn broken(error: prost::DecodeError) -> DataFusionError {
    internal_datafusion_err!("a selection cannot be read: {error}")
}

impl LogicalExtensionCodec for Logical {
    fn try_decode(&self, message: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.ballista.try_decode(message, inputs, context)
    }

    fn try_encode(&self, node: &Extension, message: &mut Vec<u8>) -> Result<()> {
        self.ballista.try_encode(node, message)
    }

    fn try_decode_table_provider(
        &self,
        message: &[u8],
        _: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let Packed { call, inputs } = Packed::decode(message).map_err(broken)?;
        let plan = |input: Vec<u8>| LogicalPlanNode::decode(&*input).map_err(broken)?.try_into_logical_plan(context, self);
        self.travel.unpack_table(&call, inputs.into_iter().map(plan).collect::<Result<_>>()?, schema)
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        message: &mut Vec<u8>,
    ) -> Result<()> {
        let Some((call, inputs)) = self.travel.pack_table(table.as_ref()) else {
            return Err(plan_datafusion_err!("`{name}` is a table that only this machine has"));
        };
        let bytes = |plan| Ok(LogicalPlanNode::try_from_logical_plan(plan, self)?.encode_to_vec());
        let inputs = inputs.into_iter().map(bytes).collect::<Result<_>>()?;
        message.extend(Packed { call, inputs }.encode_to_vec());
        Ok(())
    }

    fn try_decode_file_format(&self, message: &[u8], context: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.ballista.try_decode_file_format(message, context)
    }

    fn try_encode_file_format(&self, message: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.ballista.try_encode_file_format(message, format)
    }
}

impl PhysicalExtensionCodec for Physical {
    fn try_decode(
        &self,
        message: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(call) = message.strip_prefix(OURS) else {
            return self.ballista.try_decode(message, inputs, context, converter);
        };
        let call = std::str::from_utf8(call).map_err(|error| internal_datafusion_err!("a selection cannot be read: {error}"))?;
        self.travel.unpack_operator(call, inputs)
    }

    fn try_encode(
        &self,
        operator: Arc<dyn ExecutionPlan>,
        message: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(call) = self.travel.pack_operator(operator.as_ref()) else {
            return self.ballista.try_encode(operator, message, converter);
        };
        message.extend_from_slice(OURS);
        message.extend_from_slice(call.as_bytes());
        Ok(())
    }
}
