//! Memory that a selection takes, asked for from DataFusion's pool.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use pursuit_udfs::{Budget, Error, Reads};

use crate::call::Call;
use crate::error::named;

/// Memory that is asked for before it is used.
pub(crate) struct Memory {
    call: Arc<Call>,
    reservation: MemoryReservation,
    peak: Gauge,
}

impl Budget for Memory {
    fn grow(&self, bytes: usize) -> pursuit_udfs::Result<()> {
        self.ask(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }
}

impl Memory {
    pub(crate) fn new(call: Arc<Call>, context: &TaskContext, metrics: &ExecutionPlanMetricsSet) -> Self {
        let consumer = MemoryConsumer::new(format!("SelectExec[{}]", call.question.spec.name));
        let peak = MetricBuilder::new(metrics).gauge("peak_memory", 0);
        Self { call, reservation: consumer.register(context.memory_pool()), peak }
    }

    /// For those who read rows.
    pub(crate) fn grow(&self, bytes: usize) -> Result<()> {
        self.ask(bytes).map_err(|error| named(self.call.question.spec.name, error))
    }

    fn ask(&self, bytes: usize) -> pursuit_udfs::Result<()> {
        let max = self.call.plan.bytes_max;
        let granted = if max > 0 && self.reservation.size() + bytes > max {
            Err(format!("max_memory is {max} bytes"))
        } else if let Some(free) = free(bytes) {
            Err(format!("{bytes} bytes are needed, and the machine has {free} left"))
        } else {
            self.reservation.try_grow(bytes).map_err(|error| cause(&error))
        };
        self.peak.set_max(self.reservation.size());
        granted.map_err(|why| {
            let question = &self.call.question;
            if let Some(draw) = self.call.draw {
                return Error::limit(format!("{} sampled rows do not fit into memory; lower sample_rows, or raise the limit ({why})", draw.rows));
            }
            if let Some(parting) = self.call.parting {
                let (parts, columns) = (parting.parts, self.call.columns.len());
                return Error::limit(format!(
                    "the second moments of {columns} columns in {parts} parts do not fit into memory; exclude columns, or raise the limit ({why})"
                ));
            }
            let instead = match question.reads {
                Reads::Moments => ", or set reads => 'moments'",
                Reads::Pass(_) => ", or lower shuffle_buffer",
                Reads::Rows if question.spec.all_options().iter().any(|option| option.name == "passes") => {
                    ", or set passes => 'one'"
                }
                Reads::Rows => "",
            };
            let features = self.call.plan.features.len();
            Error::limit(format!(
                "the rows of {features} features do not fit into memory; exclude columns, set sample_rows, raise the limit{instead} ({why})"
            ))
        })
    }
}

/// What the machine has left, if that is less than is asked for. Only large sums are worth the question, and only where the system answers it: without a limit a
/// system would end the process, and with it everybody else's queries.
fn free(bytes: usize) -> Option<usize> {
    if bytes < ASKED_FOR {
        return None;
    }
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.saturating_mul(1024);
    (bytes > free).then_some(free)
}

/// Bytes from which on the system is asked whether it has them.
const ASKED_FOR: usize = 1 << 30;

/// The line of a pool's message that says what failed; the others list who else has memory.
fn cause(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    let line = text.lines().find(|line| line.contains("Failed to allocate")).or(text.lines().next());
    line.unwrap_or_default().trim_start_matches("Error: ").trim_end_matches('.').to_string()
}
