//! What all connections share, and the session that each has for itself.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::catalog::SchemaProvider;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_postgres::datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_postgres::datafusion_pg_catalog::pg_catalog::setup_pg_catalog;
use pursuit::{Engine, Progress};
use tokio_util::sync::CancellationToken;

use crate::limits::Limits;
use crate::memory::OfUser;
use crate::metrics::Metrics;
use crate::tables::Tables;
use crate::users::Users;

/// How a server is run.
#[derive(Debug)]
pub struct Settings {
    pub data: Vec<PathBuf>,
    pub is_writable: bool,
    pub users: Option<Users>,
    pub memory_limit: usize,
    pub memory_limit_per_user: Option<usize>,
    pub statement_timeout: Option<Duration>,
    pub max_connections: usize,
    pub max_selections: usize,
    pub max_selections_per_user: usize,
    pub wait: Duration,
    pub partitions: Option<usize>,
    pub logs_sql: bool,
}

/// What all connections share.
pub struct Server {
    pub users: Option<Users>,
    pub is_writable: bool,
    pub statement_timeout: Option<Duration>,
    pub max_connections: usize,
    pub memory_limit: usize,
    pub logs_sql: bool,
    pub tables: Arc<Tables>,
    pub limits: Limits,
    pub metrics: Metrics,
    /// No new connections and statements.
    pub stopping: CancellationToken,
    /// Those that still run are stopped.
    pub stopped: CancellationToken,
    pub connections: Connections,
    template: SessionState,
    memory_limit_per_user: Option<usize>,
    runtimes: Mutex<HashMap<String, Arc<RuntimeEnv>>>,
    next: AtomicU64,
}

impl Server {
    pub async fn new(settings: Settings) -> Result<Arc<Self>> {
        let named = std::num::NonZeroUsize::new(3).unwrap_or(std::num::NonZeroUsize::MIN);
        let pool = TrackConsumersPool::new(FairSpillPool::new(settings.memory_limit), named);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
        let mut config = SessionConfig::new().with_information_schema(true);
        if let Some(partitions) = settings.partitions {
            config = config.with_target_partitions(partitions);
        }
        // Sessions are copies of this one: they share the tables, and have settings and prepared statements of their own.
        let ctx = SessionContext::new_with_config_rt(config, runtime);
        Engine::default().with_samples().register(&ctx)?;
        let tables = Arc::new(Tables::read(&settings.data, &ctx).await?);
        let catalog = ctx.catalog("datafusion").ok_or_else(|| exec_datafusion_err!("the session has no catalog"))?;
        catalog.register_schema("public", Arc::clone(&tables) as Arc<dyn SchemaProvider>)?;
        setup_pg_catalog(&ctx, "datafusion", EmptyContextProvider).map_err(|error| *error)?;
        crate::postgres::discovery::register(&ctx).await?;
        Ok(Arc::new(Self {
            users: settings.users,
            is_writable: settings.is_writable,
            statement_timeout: settings.statement_timeout,
            max_connections: settings.max_connections,
            memory_limit: settings.memory_limit,
            logs_sql: settings.logs_sql,
            tables,
            limits: Limits::new(settings.max_selections, settings.max_selections_per_user, settings.wait),
            metrics: Metrics::default(),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
            connections: Connections::default(),
            template: ctx.state(),
            memory_limit_per_user: settings.memory_limit_per_user,
            runtimes: Mutex::default(),
            next: AtomicU64::new(1),
        }))
    }

    /// A number that nobody had before.
    pub fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn memory_used(&self) -> usize {
        self.template.runtime_env().memory_pool.reserved()
    }

    /// What the sessions of one user share: files and caches with everybody, memory among themselves.
    fn runtime(&self, user: &str) -> Result<Arc<RuntimeEnv>> {
        let all = self.template.runtime_env();
        let Some(limit) = self.memory_limit_per_user else { return Ok(Arc::clone(all)) };
        let mut runtimes = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = runtimes.get(user) {
            return Ok(Arc::clone(runtime));
        }
        let pool = OfUser::new(Arc::clone(&all.memory_pool), limit);
        let runtime = RuntimeEnvBuilder::from_runtime_env(all).with_memory_pool(Arc::new(pool)).build_arc()?;
        runtimes.insert(user.to_string(), Arc::clone(&runtime));
        Ok(runtime)
    }

    /// A session for one connection.
    pub fn session(self: &Arc<Self>, user: &str, protocol: &'static str) -> Result<Arc<Session>> {
        let id = self.next();
        let state = SessionStateBuilder::new_from_existing(self.template.clone()).with_session_id(id.to_string());
        let ctx = SessionContext::new_with_state(state.with_runtime_env(self.runtime(user)?).build());
        // Functions of its own, so that what they remark is heard by whoever asked.
        let engine = Engine::default();
        engine.register(&ctx)?;
        Ok(Arc::new(Session {
            server: Arc::clone(self),
            id,
            user: user.to_string(),
            protocol,
            ctx,
            progress: engine.progress(),
            gone: CancellationToken::new(),
            cancel: Mutex::default(),
            running: AtomicUsize::new(0),
        }))
    }
}

/// One client's session.
pub struct Session {
    pub server: Arc<Server>,
    pub id: u64,
    pub user: String,
    pub protocol: &'static str,
    pub ctx: SessionContext,
    pub progress: Arc<Progress>,
    /// The client went away.
    pub gone: CancellationToken,
    /// Stops the statement that runs now.
    cancel: Mutex<CancellationToken>,
    running: AtomicUsize,
}

impl Session {
    /// Stops what runs now. What comes later is not concerned.
    pub fn cancel(&self) {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// Marks a statement as running.
    pub fn begin(&self) -> CancellationToken {
        self.running.fetch_add(1, Ordering::Relaxed);
        let mut cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.is_cancelled() {
            *cancel = CancellationToken::new();
        }
        cancel.child_token()
    }

    /// Ends what the session's only statement is reading, where a dropped query would read on to the next hundredth batch. Of several at once
    /// nobody knows which one is meant.
    pub fn stop_reading(&self) {
        if self.running.load(Ordering::Relaxed) == 1 {
            self.progress.stop();
        }
    }

    pub fn end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn is_idle(&self) -> bool {
        self.running.load(Ordering::Relaxed) == 0
    }
}

/// Connections that are open, for whoever waits until there are none.
#[derive(Debug, Default)]
pub struct Connections(Arc<()>);

impl Connections {
    /// One is open until this is dropped.
    pub fn open(&self) -> Arc<()> {
        Arc::clone(&self.0)
    }

    pub fn count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    pub async fn wait(&self) {
        while self.count() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
