//! The scheduler's calls, with three things that Ballista's does not do: a job ends with the client that asked for it, is cut into as many tasks as the executors take,
//! and executors without our functions are sent away when they come, and not when they fail.

use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::*;
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::MAKE;

pub(super) type Inner = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

#[derive(Clone)]
pub(super) struct Watched(pub Inner);

type Statuses = BoxStream<'static, Result<GetJobStatusResult, Status>>;

/// What a client hears of its job. Dropped before the job has ended, it ends the job.
pub(super) struct Job {
    scheduler: Inner,
    statuses: Option<Statuses>,
    id: Option<String>,
    is_over: bool,
}

impl Job {
    fn note(&mut self, item: &Option<Result<GetJobStatusResult, Status>>) {
        let Some(Ok(GetJobStatusResult { status: Some(status), .. })) = item else {
            self.is_over = true;
            return;
        };
        self.id = Some(status.job_id.clone());
        self.is_over = matches!(status.status, Some(job_status::Status::Successful(_) | job_status::Status::Failed(_)));
    }
}

impl Stream for Job {
    type Item = Result<GetJobStatusResult, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(statuses) = &mut self.statuses else { return Poll::Ready(None) };
        let Poll::Ready(item) = statuses.poll_next_unpin(context) else { return Poll::Pending };
        self.note(&item);
        Poll::Ready(item)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let (false, Some(mut statuses)) = (self.is_over, self.statuses.take()) else { return };
        let mut job = Self { scheduler: self.scheduler.clone(), statuses: None, id: self.id.take(), is_over: false };
        tokio::spawn(async move {
            // Its number comes with the first word about it.
            while job.id.is_none() && !job.is_over {
                let item = statuses.next().await;
                job.note(&item);
            }
            if let (false, Some(id)) = (job.is_over, job.id.take()) {
                tracing::info!(job = id, "cancelled, because its client is gone");
                let _ = job.scheduler.cancel_job(id.into()).await;
            }
        });
    }
}

/// Executors say what they are with each call.
fn check_make<T>(request: &Request<T>) -> Result<(), Status> {
    let make = request.metadata().get("user-agent").and_then(|make| make.to_str().ok()).unwrap_or_default();
    if make.split(' ').any(|part| part == MAKE) {
        return Ok(());
    }
    Err(Status::failed_precondition(format!(
        "this scheduler needs executors with the functions of {MAKE}, and this one is {make}; start it with `pursuit executor`"
    )))
}

const PARTITIONS: &str = "datafusion.execution.target_partitions";

impl Watched {
    /// A client asks for as many partitions as its own machine has cores. That may be a laptop, and most executors would have nothing to do.
    async fn widen(&self, settings: &mut [KeyValuePair]) -> Result<(), Status> {
        let executors = self.0.state.executor_manager.get_executors_state().await;
        let executors = executors.map_err(|error| Status::internal(error.to_string()))?;
        let tasks: u32 = executors.iter().map(|(executor, ..)| executor.specification.vcores).sum();
        for setting in settings.iter_mut().filter(|setting| setting.key == PARTITIONS) {
            let asked = setting.value.as_deref().and_then(|value| value.parse().ok()).unwrap_or(0);
            setting.value = Some(tasks.max(asked).to_string());
        }
        Ok(())
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl SchedulerGrpc for Watched {
    type ExecuteQueryPushStream = Job;

    async fn execute_query_push(&self, mut request: Request<ExecuteQueryParams>) -> Answer<Job> {
        self.widen(&mut request.get_mut().settings).await?;
        let (metadata, statuses, extensions) = self.0.execute_query_push(request).await?.into_parts();
        let job = Job { scheduler: self.0.clone(), statuses: Some(statuses.boxed()), id: None, is_over: false };
        Ok(Response::from_parts(metadata, job, extensions))
    }

    async fn register_executor(&self, request: Request<RegisterExecutorParams>) -> Answer<RegisterExecutorResult> {
        check_make(&request)?;
        self.0.register_executor(request).await
    }

    async fn poll_work(&self, request: Request<PollWorkParams>) -> Answer<PollWorkResult> {
        check_make(&request)?;
        self.0.poll_work(request).await
    }

    async fn heart_beat_from_executor(&self, request: Request<HeartBeatParams>) -> Answer<HeartBeatResult> {
        check_make(&request)?;
        self.0.heart_beat_from_executor(request).await
    }

    async fn update_task_status(&self, request: Request<UpdateTaskStatusParams>) -> Answer<UpdateTaskStatusResult> {
        self.0.update_task_status(request).await
    }

    async fn create_update_session(&self, request: Request<CreateUpdateSessionParams>) -> Answer<CreateUpdateSessionResult> {
        self.0.create_update_session(request).await
    }

    async fn remove_session(&self, request: Request<RemoveSessionParams>) -> Answer<RemoveSessionResult> {
        self.0.remove_session(request).await
    }

    async fn execute_query(&self, mut request: Request<ExecuteQueryParams>) -> Answer<ExecuteQueryResult> {
        self.widen(&mut request.get_mut().settings).await?;
        self.0.execute_query(request).await
    }

    async fn get_job_status(&self, request: Request<GetJobStatusParams>) -> Answer<GetJobStatusResult> {
        self.0.get_job_status(request).await
    }

    async fn get_job_metrics(&self, request: Request<GetJobMetricsParams>) -> Answer<GetJobMetricsResult> {
        self.0.get_job_metrics(request).await
    }

    async fn executor_stopped(&self, request: Request<ExecutorStoppedParams>) -> Answer<ExecutorStoppedResult> {
        self.0.executor_stopped(request).await
    }

    async fn cancel_job(&self, request: Request<CancelJobParams>) -> Answer<CancelJobResult> {
        SchedulerGrpc::cancel_job(&self.0, request).await
    }

    async fn clean_job_data(&self, request: Request<CleanJobDataParams>) -> Answer<CleanJobDataResult> {
        self.0.clean_job_data(request).await
    }
}
