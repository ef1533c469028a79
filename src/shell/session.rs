use std::io::IsTerminal;
use std::sync::Arc;

use clap::Args;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{GreedyMemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use pursuit_udfs::OptionType;
use pursuit_udfs::options::Bytes;

use super::progress_line::ProgressLine;
use super::stores::urls;
use super::thrift;
use crate::{Engine, ReadsFiles};

/// What the session of every command can be told.
#[derive(Debug, Clone, Args)]
pub struct SessionArguments {
    /// Print results and nothing else
    #[arg(short, long)]
    pub quiet: bool,

    /// Most memory that queries may take, such as 512MB or 4GB
    #[arg(short, long, value_parser = parse_size)]
    pub memory_limit: Option<usize>,

    /// Partitions that a query is cut into; all cores if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub partitions: Option<u16>,
}

fn parse_size(text: &str) -> Result<usize, String> {
    Bytes::parse(&text.into()).map(|Bytes(bytes)| bytes).ok_or_else(|| "write a size such as 512MB or 4GB".to_string())
}

/// Adds to a session before anything runs in it: functions, tables, catalogs.
pub type Hook = Box<dyn Fn(&SessionContext) -> Result<()> + Send + Sync>;

/// A session of the shell: DataFusion's, with our functions, the sample tables, and files and object stores as tables.
pub struct Session {
    pub ctx: SessionContext,
    pub engine: Engine,
    pub(super) line: Arc<ProgressLine>,
}

impl Session {
    /// A session in which selections say how far they are, on the terminal.
    pub async fn new(arguments: &SessionArguments, hooks: &[Hook]) -> Result<Self> {
        let mut config = SessionConfig::from_env()?.with_information_schema(true).with_extension(Arc::new(ReadsFiles));
        if let Some(partitions) = arguments.partitions {
            config = config.with_target_partitions(partitions.into());
        }
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(limit) = arguments.memory_limit {
            thrift::save_memory();
            let consumers_named = std::num::NonZeroUsize::new(3).expect("three is not zero");
            runtime = runtime.with_memory_pool(Arc::new(TrackConsumersPool::new(GreedyMemoryPool::new(limit), consumers_named)));
        }
        let ctx = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        // It has its catalog: a state that is made of this one, as for a cluster, must not begin with another that has no tables.
        ctx.state_ref().write().config_mut().options_mut().catalog.create_default_catalog_and_schema = false;
        // A file's path is a table's name, also as an argument of a selector.
        urls::are_tables(&ctx);
        let engine = Engine::default().with_samples();
        engine.register(&ctx)?;
        for hook in hooks {
            hook(&ctx)?;
        }
        ctx.refresh_catalogs().await?;
        let line = ProgressLine::show(engine.progress(), std::io::stderr().is_terminal(), arguments.quiet);
        Ok(Self { ctx, engine, line })
    }
}
