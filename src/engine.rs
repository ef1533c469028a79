use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use pursuit_udfs::{Declared, Spec, did_you_mean, reports, selectors};

use crate::catalog::{SelectorOptionsFunction, SelectorsFunction};
use crate::function::SelectFunction;
use crate::gram::{GramFunction, GramMerge, GramSummary};
use crate::planner::SelectPlanner;
use crate::progress::Progress;
use crate::samples;
use crate::select_from::SelectFrom;

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

    /// What the engine's selections are doing, for a progress line.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Makes every selector and report a table function of the session, and registers what they need.
    pub fn register(&self, ctx: &SessionContext) -> Result<()> {
        let registry = Arc::new(Registry { specs: self.specs.clone() });
        ctx.register_udaf(GramFunction::udaf(self.progress()));
        ctx.register_udaf(GramMerge::udaf());
        ctx.register_udf(SelectFrom::udf(Arc::clone(&registry), self.progress()));
        ctx.register_udf(GramSummary::udf());
        for spec in &self.specs {
            let function = Arc::new(SelectFunction::new(Arc::clone(spec), Arc::clone(&registry), self.progress()));
            for name in spec.aliases.iter().chain([&spec.name]) {
                ctx.register_udtf(name, Arc::clone(&function) as _);
            }
        }
        ctx.register_udtf("selectors", Arc::new(SelectorsFunction::new(Arc::clone(&registry))));
        ctx.register_udtf("selector_options", Arc::new(SelectorOptionsFunction::new(Arc::clone(&registry))));
        ctx.register_relation_planner(Arc::new(SelectPlanner::new(registry)))?;
        if self.samples {
            samples::register(ctx)?;
        }
        Ok(())
    }
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

    pub(crate) fn unknown(&self, function: &str, name: &str) -> DataFusionError {
        let names: Vec<&str> = self.specs.iter().filter(|spec| spec.is_selector()).map(|spec| spec.name).collect();
        let hint = did_you_mean(name, &names);
        DataFusionError::Plan(format!("{function}: no selector named `{name}`{hint} selectors are {}", names.join(", ")))
    }
}
