use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::extension::SessionConfigExt;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use clap::Args;
use datafusion::prelude::SessionConfig;
use pursuit::Engine;
use tonic::transport::Endpoint;

use super::codec::codecs;
use super::stages::Stages;
use super::{MAKE, MESSAGE_MAX, state};
use crate::serve::size;

/// Does the work of a cluster
#[derive(Debug, Args)]
pub struct Executor {
    /// The scheduler's address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:50050")]
    scheduler: SocketAddr,

    /// Listen on this address of this machine, on two ports that are free
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    listen: IpAddr,

    /// Tasks at once; all cores if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    tasks: Option<u16>,

    /// Most memory of its tasks together
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<usize>,

    /// Where rows lie between the stages of a query; a folder of its own in the system's if not given
    #[arg(long, value_name = "FOLDER")]
    work_dir: Option<PathBuf>,

    /// Seconds between two signs of life
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    heartbeat: u64,
}

impl Executor {
    pub async fn run(self) -> Result<(), String> {
        crate::logs::start();
        let engine = Engine::default();
        log_remarks(&engine);
        let functions = state(&engine, SessionConfig::new_with_ballista()).map_err(|error| error.strip_backtrace())?;
        let (logical, physical) = codecs(&engine);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (port, grpc_port) = two_ports(self.listen)?;
        let config = ExecutorProcessConfig {
            bind_host: self.listen.to_string(),
            external_host: Some(self.listen.to_string()),
            port,
            grpc_port,
            scheduler_host: self.scheduler.ip().to_string(),
            scheduler_port: self.scheduler.port(),
            scheduler_connect_timeout_seconds: 30,
            vcores: self.tasks.map_or(cores, usize::from),
            work_dir: self.work_dir.map(|folder| folder.to_string_lossy().into_owned()),
            executor_heartbeat_interval_seconds: self.heartbeat,
            grpc_max_decoding_message_size: MESSAGE_MAX,
            grpc_max_encoding_message_size: MESSAGE_MAX,
            memory_pool_size: self.memory_limit.map(|bytes| bytes as u64),
            override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&functions))),
            override_logical_codec: Some(logical),
            override_physical_codec: Some(physical),
            override_execution_engine: Some(Arc::new(Stages::default())),
            override_create_grpc_client_endpoint: Some(Arc::new(|endpoint: Endpoint| Ok(endpoint.user_agent(MAKE)?))),
            ..Default::default()
        };
        println!("executor {}:{port}", self.listen);
        start_executor_process(Arc::new(config)).await.map_err(|error| format!("executor: {error}"))
    }
}

/// What selections have to remark, of which clients learn nothing here, is logged.
fn log_remarks(engine: &Engine) {
    let progress = Arc::downgrade(&engine.progress());
    engine.progress().on_idle(move || {
        for remark in progress.upgrade().into_iter().flat_map(|progress| progress.take_remarks()) {
            tracing::info!(remark);
        }
    });
}

/// Two ports that nobody has at the moment.
fn two_ports(ip: IpAddr) -> Result<(u16, u16), String> {
    let free = || {
        let listener = TcpListener::bind((ip, 0))?;
        let port = listener.local_addr()?.port();
        Ok::<_, std::io::Error>((listener, port))
    };
    // The first is kept until the second is known.
    let (first, second) = (free(), free());
    match (first, second) {
        (Ok((_, first)), Ok((_, second))) => Ok((first, second)),
        (Err(error), _) | (_, Err(error)) => Err(format!("cannot listen on {ip}: {error}")),
    }
}
