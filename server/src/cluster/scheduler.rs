use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use clap::Args;
use pursuit::Engine;
use tokio::net::TcpListener;
use tonic::transport::Server as Grpc;
use tonic::transport::server::TcpIncoming;

use super::codec::codecs;
use super::watched::Watched;
use super::{MESSAGE_MAX, state};

/// Cuts queries into tasks for the executors of a cluster
#[derive(Debug, Args)]
pub struct Scheduler {
    /// Listen here for executors and clients. There are no passwords: whoever reaches it can use the cluster
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:50050")]
    listen: SocketAddr,

    /// An executor that was not heard of for so many seconds is given up, and its work done by others
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    executor_timeout: u64,
}

impl Scheduler {
    pub async fn run(self) -> Result<(), String> {
        crate::logs::start();
        if self.executor_timeout < 4 {
            return Err("--executor-timeout must be at least 4, or a busy executor counts as dead".to_string());
        }
        let engine = Engine::default();
        let (logical, physical) = codecs(&engine);
        let config = SchedulerConfig {
            bind_host: self.listen.ip().to_string(),
            bind_port: self.listen.port(),
            external_host: self.listen.ip().to_string(),
            override_session_builder: Some(Arc::new(move |config| state(&engine, config))),
            override_logical_codec: Some(logical),
            override_physical_codec: Some(physical),
            executor_timeout_seconds: self.executor_timeout,
            expire_dead_executor_interval_seconds: (self.executor_timeout / 4).max(1),
            grpc_server_max_decoding_message_size: MESSAGE_MAX,
            grpc_server_max_encoding_message_size: MESSAGE_MAX,
            grpc_client_max_message_size: MESSAGE_MAX,
            ..Default::default()
        };
        let failed = |error: ballista_core::error::BallistaError| format!("scheduler: {error}");
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
        let scheduler = create_scheduler(cluster, Arc::new(config)).await.map_err(failed)?;
        let service = SchedulerGrpcServer::new(Watched(scheduler))
            .max_decoding_message_size(MESSAGE_MAX as usize)
            .max_encoding_message_size(MESSAGE_MAX as usize);
        let listener =
            TcpListener::bind(self.listen).await.map_err(|error| format!("cannot listen on {}: {error}", self.listen))?;
        println!("scheduler {}", self.listen);
        let serving =
            Grpc::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
        serving.await.map_err(|error| format!("scheduler: {error}"))
    }
}
