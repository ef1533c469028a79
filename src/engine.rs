use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableFunctionImpl};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;
use pursuit_udfs::{Declared, Error, Spec, did_you_mean, reports, selectors, shown};

use crate::catalog::{FunctionsFunction, ManualFunction, SelectorOptionsFunction, SelectorsFunction};
use crate::defaults::Defaults;
use crate::error::named;
use crate::function::SelectFunction;
use crate::gram::{GramFunction, GramMerge, GramSummary};
use crate::planner::SelectPlanner;
use crate::progress::Progress;
use crate::sample_problem::SampleProblemFunction;
use crate::samples;
use crate::select_from::SelectFrom;
use crate::travel::Travel;
use crate::which::WhichFunction;

/// The selectors, ready to be registered with a session.
#[derive(Debug)]
pub struct Engine {
    specs: Vec<Arc<Spec>>,
    samples: bool,
    progress: Arc<Progress>,
}

impl Default for Engine {
    /// Every selector and report that ships with Pursuit.
    fn default() -> Self {
        let specs = selectors().into_iter().chain(reports()).map(Arc::new).collect();
        Self { specs, samples: false, progress: Arc::default() }
    }
}

impl Engine {
    /// Adds a selector of your own. One of the same name takes the place of ours.
    pub fn with<S: Declared>(mut self) -> Self {
        let spec = S::spec();
        self.specs.retain(|other| other.name != spec.name);
        self.specs.push(Arc::new(spec));
        self
    }

    /// Adds the sample tables, under the schema `sample`.
    pub fn with_samples(mut self) -> Self {
        self.samples = true;
        self
    }

    /// Every function that the engine registers, as the manual sees it.
    pub fn specs(&self) -> &[Arc<Spec>] {
        &self.specs
    }

    /// What the engine's selections are doing, for a progress line.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// The same functions with a progress of their own, for a query that is watched by itself.
    #[cfg(feature = "shell")]
    pub(crate) fn watched(&self) -> Self {
        Self { specs: self.specs.clone(), samples: false, progress: Arc::default() }
    }

    /// What sends selections that read rows to other machines, for the codecs of a cluster.
    pub fn travel(&self) -> Travel {
        Travel::new(self.registry(), self.progress())
    }

    /// The functions by name.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::new(Registry { specs: self.specs.clone() })
    }

    /// Makes every selector and report a table function of the session, and registers what they need.
    pub fn register(&self, ctx: &SessionContext) -> Result<()> {
        Defaults::register(ctx.state_ref().write().config_mut().options_mut());
        let functions = self.functions();
        for function in functions.scalar {
            ctx.register_udf(function.as_ref().clone());
        }
        for function in functions.aggregate {
            ctx.register_udaf(function.as_ref().clone());
        }
        for function in functions.table {
            ctx.register_udtf(function.name(), Arc::clone(function.function()));
        }
        ctx.register_relation_planner(functions.planner)?;
        if self.samples { samples::register(ctx) } else { Ok(()) }
    }

    /// Adds the same functions to a session that is still being built, as servers and clusters do.
    ///
    /// A session has a catalog only once it stands, so that the sample tables cannot be added here.
    ///
    /// ```
    /// use datafusion::execution::session_state::SessionStateBuilder;
    /// use datafusion::prelude::SessionContext;
    /// use pursuit::Engine;
    ///
    /// # fn main() -> datafusion::error::Result<()> {
    /// let builder = Engine::default().install(SessionStateBuilder::new().with_default_features())?;
    /// let ctx = SessionContext::new_with_state(builder.build());
    /// # Ok(())
    /// # }
    /// ```
    pub fn install(&self, mut builder: SessionStateBuilder) -> Result<SessionStateBuilder> {
        if self.samples {
            return plan_err!(
                "sample tables need a catalog, which a session has only once it is built; leave with_samples() out"
            );
        }
        Defaults::register(builder.config().get_or_insert_default().options_mut());
        let functions = self.functions();
        builder.scalar_functions().get_or_insert_default().extend(functions.scalar);
        builder.aggregate_functions().get_or_insert_default().extend(functions.aggregate);
        let table = functions.table.into_iter().map(|function| (function.name().to_string(), function));
        builder.table_functions().get_or_insert_default().extend(table);
        // The first planner that knows a relation plans it.
        builder.relation_planners().get_or_insert_default().insert(0, functions.planner);
        Ok(builder)
    }

    fn functions(&self) -> Functions {
        let registry = self.registry();
        let mut table: Vec<(&str, Arc<dyn TableFunctionImpl>)> = vec![
            ("functions", Arc::new(FunctionsFunction::new(Arc::clone(&registry)))),
            ("manual", Arc::new(ManualFunction::new(Arc::clone(&registry)))),
            ("selectors", Arc::new(SelectorsFunction::new(Arc::clone(&registry)))),
            ("selector_options", Arc::new(SelectorOptionsFunction::new(Arc::clone(&registry)))),
            ("sample_problem", Arc::new(SampleProblemFunction)),
            ("which_selector", Arc::new(WhichFunction)),
        ];
        for spec in &self.specs {
            let function = Arc::new(SelectFunction::new(Arc::clone(spec), Arc::clone(&registry), self.progress()));
            table.extend(spec.aliases.iter().chain([&spec.name]).map(|name| (*name, Arc::clone(&function) as _)));
        }
        Functions {
            scalar: vec![Arc::new(SelectFrom::udf(Arc::clone(&registry), self.progress())), Arc::new(GramSummary::udf())],
            aggregate: vec![Arc::new(GramFunction::udaf(self.progress())), Arc::new(GramMerge::udaf())],
            table: table.into_iter().map(|(name, function)| Arc::new(TableFunction::new(name.to_string(), function))).collect(),
            planner: Arc::new(SelectPlanner::new(registry)),
        }
    }
}

/// Everything that a session is given.
struct Functions {
    scalar: Vec<Arc<ScalarUDF>>,
    aggregate: Vec<Arc<AggregateUDF>>,
    table: Vec<Arc<TableFunction>>,
    planner: Arc<dyn RelationPlanner>,
}

/// Selectors and reports by name.
#[derive(Debug)]
pub(crate) struct Registry {
    pub specs: Vec<Arc<Spec>>,
}

impl Registry {
    /// By name or alias, in any letter case.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Spec>> {
        let name = name.to_lowercase();
        let by_name = self.specs.iter().find(|spec| spec.name == name);
        by_name.or_else(|| self.specs.iter().find(|spec| spec.aliases.contains(&name.as_str()))).cloned()
    }

    /// The name of a selector, for an example.
    pub(crate) fn example(&self) -> &'static str {
        self.specs.iter().find(|spec| spec.is_selector()).map_or("name", |spec| spec.name)
    }

    /// Who makes models that other functions apply.
    pub(crate) fn makes_models(&self, spec: &Spec) -> bool {
        self.specs.iter().any(|other| other.model.is_some_and(|model| model.made_by == spec.name))
    }

    pub(crate) fn unknown(&self, function: &str, name: &str) -> DataFusionError {
        named(function, self.no_selector(name))
    }

    pub(crate) fn no_function(&self, name: &str) -> Error {
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name).collect();
        Error::call(format!("no function named `{}`{} functions() lists them", shown(name), did_you_mean(name, &names)))
    }

    pub(crate) fn no_selector(&self, name: &str) -> Error {
        let names: Vec<&str> = self.specs.iter().filter(|spec| spec.is_selector()).map(|spec| spec.name).collect();
        let (hint, name) = (did_you_mean(name, &names), shown(name));
        Error::call(format!("no selector named `{name}`{hint} selectors are {}", names.join(", ")))
    }
}
