//! The page: what it can be asked, and who may ask.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use pursuit_udfs::{Common, OptionSpec, Options, Reads, Settings, Spec, Value};
use serde_json::json;
use tokio::runtime::Handle;

use super::ask::{self, Asked};
use super::features;
use super::http::{Request, Response};
use super::line;
use super::reading::{FOLDS, Key, Reading};
use super::runs::Runs;
use super::snapshot::{Prepared, Snapshot, Wanted};
use super::source::Source;
use super::sql;
use crate::columns::ColumnKind;
use crate::engine::Registry;
use crate::error::named;
use crate::lanes::Lane;
use crate::question::Question;
use crate::{Engine, Progress};

/// A table, the passes over it, and what runs in the background.
pub struct Page {
    source: Source,
    label: String,
    engine: Engine,
    registry: Arc<Registry>,
    /// Where the table is read, away from whoever answers the browser.
    runtime: Handle,
    /// The last ones, the latest first: going back needs no second pass.
    readings: Mutex<Vec<Arc<Reading>>>,
    runs: Runs,
    progress: Arc<Progress>,
}

/// Passes whose moments are kept.
const KEPT: usize = 3;

const HTML: &str = include_str!("index.html");
const SCRIPTS: [(&str, &str); 4] = [
    ("/page.js", include_str!("page.js")),
    ("/controls.js", include_str!("controls.js")),
    ("/draw.js", include_str!("draw.js")),
    ("/export.js", include_str!("export.js")),
];
const STYLE: &str = include_str!("style.css");

/// A question about one feature.
#[derive(serde::Deserialize)]
struct AskedFeature {
    feature: String,
    question: Asked,
}

/// The rows of a run, of which the page draws more than a query tells.
#[derive(serde::Deserialize)]
struct Ran {
    rows: Vec<Settings>,
    question: Asked,
}

/// One of the runs.
#[derive(serde::Deserialize)]
struct AskedRun {
    id: usize,
}

impl Page {
    /// The page of a table, a file or a query of the session, whose rows begin to be read.
    pub async fn open(ctx: &SessionContext, engine: &Engine, input: &str, label: Option<&str>) -> Result<Self> {
        let source = Source::new(ctx.clone(), input).await?;
        let label = match label {
            Some(label) => label.to_string(),
            None => source.label().ok_or_else(|| DataFusionError::Plan("ui: no column can be predicted".to_string()))?,
        };
        let page = Self {
            source,
            label,
            engine: engine.watched(),
            registry: engine.registry(),
            runtime: Handle::current(),
            readings: Mutex::default(),
            runs: Runs::default(),
            progress: Arc::default(),
        };
        page.reading(Key::new(&page.label, &Settings::new(), None))?;
        Ok(page)
    }

    /// Answers a request whose sender has been checked; `path` is what comes behind the token.
    pub(super) async fn answer(&self, path: &str, request: &Request) -> Response {
        let asset = |content_type, text: &str| Response { status: "200 OK", content_type, body: text.as_bytes().to_vec() };
        match (request.method.as_str(), path) {
            ("GET", "/") => asset("text/html; charset=utf-8", HTML),
            ("GET", "/style.css") => asset("text/css; charset=utf-8", STYLE),
            ("GET", "/about") => Response::json(self.about().to_string()),
            ("GET", path) => match SCRIPTS.iter().find(|(name, _)| *name == path) {
                Some((_, text)) => asset("text/javascript; charset=utf-8", text),
                None => Response::text("404 Not Found", "not found"),
            },
            ("POST", path) => match self.asked(path, &request.body).await {
                Ok(Some(answer)) => Response::json(answer.to_string()),
                Ok(None) => Response::text("404 Not Found", "not found"),
                Err(error) => Response::json(json!({"error": error}).to_string()),
            },
            _ => Response::text("405 Method Not Allowed", "only GET and POST"),
        }
    }

    async fn asked(&self, path: &str, body: &[u8]) -> Result<Option<Value>, String> {
        Ok(Some(match path {
            "/ask" => self.ask(read(body)?).await?,
            "/features" => self.features(read(body)?).await?,
            "/feature" => self.feature(read(body)?).await?,
            "/complete" => self.complete(read(body)?).await?,
            "/run" => self.run(&read(body)?)?,
            "/cancel" => {
                let AskedRun { id } = read(body)?;
                self.runs.cancel(id);
                self.runs.state(id)
            }
            "/state" => self.runs.state(read::<AskedRun>(body)?.id),
            _ => return Ok(None),
        }))
    }

    /// The table, and the methods: what the page is built from.
    fn about(&self) -> Value {
        let kind = |kind| match kind {
            ColumnKind::Text => "text",
            ColumnKind::Integer => "integer",
            ColumnKind::Boolean => "boolean",
            ColumnKind::Number => "number",
            ColumnKind::Other => "other",
        };
        let columns: Vec<Value> =
            self.source.columns().iter().map(|column| json!({"name": column.name, "kind": kind(column.kind)})).collect();
        let selectors = self.registry.specs.iter().filter(|spec| spec.is_selector());
        let option = |option: &OptionSpec| {
            json!({
                "name": option.name, "kind": option.kind, "default": option.default,
                "allowed": option.allowed, "description": option.description,
            })
        };
        let selector = |spec: &Arc<Spec>| {
            json!({
                "name": spec.name,
                "summary": spec.summary(),
                "score": spec.score,
                "at_once": spec.selector(&Settings::new()).is_ok_and(|selector| selector.reads() == Reads::Moments),
                "options": (spec.options)().iter().map(option).collect::<Vec<_>>(),
            })
        };
        json!({
            "title": self.source.title,
            "relation": self.source.relation,
            "label": self.label,
            "columns": columns,
            "folds": FOLDS,
            "selectors": selectors.map(selector).collect::<Vec<_>>(),
            "common": Common::specs().iter().map(option).collect::<Vec<_>>(),
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// The pass that a question needs, which is begun if nobody has asked like that before.
    fn reading(&self, key: Key) -> Result<Arc<Reading>> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = match readings.iter().position(|reading| reading.key == key) {
            Some(at) => readings.remove(at),
            None => Arc::new(Reading::start(&self.source, key, &self.registry, &self.runtime)?),
        };
        // What failed is tried again when something else has been asked for meanwhile.
        readings.retain(|other| other.status().error.is_none());
        readings.insert(0, Arc::clone(&reading));
        readings.truncate(KEPT);
        Ok(reading)
    }

    fn reading_for(&self, asked: &Asked) -> Result<Arc<Reading>> {
        self.reading(Key::new(&asked.label, &asked.settings, asked.split.as_ref().map(|split| split.by.as_str())))
    }

    /// The table that a question is put to, as far as it was read.
    async fn table(&self, asked: &Asked) -> Result<(Arc<Reading>, Option<(Arc<Snapshot>, Arc<Prepared>)>), String> {
        let mut reading = self.reading_for(asked).map_err(line)?;
        let mut wanted =
            Wanted { groups: asked.split.as_ref().and_then(|split| split.groups.clone()), max_levels: asked.max_levels() };
        loop {
            let Some(snapshot) = reading.snapshot() else { return Ok((reading, None)) };
            let (of, asks) = (Arc::clone(&snapshot), wanted.clone());
            let prepared = self.job(&asked.selector, move |_| of.table(&asks)).await?;
            if let Some(prepared) = prepared {
                return Ok((reading, Some((snapshot, prepared))));
            }
            // What other levels there were was not kept: with these from the beginning.
            let mut key = reading.key.clone();
            key.settings.insert("max_levels".into(), Value::from(wanted.max_levels.take()));
            reading = self.reading(key).map_err(line)?;
        }
    }

    async fn ask(&self, asked: Asked) -> Result<Value, String> {
        let spec = self.spec(&asked.selector)?;
        let query = sql::of(&self.source, &asked);
        let question = Question::new(Arc::clone(&spec), &asked.settings).map_err(|error| line(named(spec.name, error)))?;
        let (reading, table) = self.table(&asked).await?;
        let is_at_once = question.reads == Reads::Moments;
        let (mut answer, mut error, mut rows) = (None, None, 0);
        if let Some((snapshot, prepared)) = table {
            rows = snapshot.rows;
            if is_at_once {
                let (asked, spec) = (asked.clone(), Arc::clone(&spec));
                match self.job(spec.name, move |run| ask::answer(&asked, &spec, &prepared, run)).await {
                    Ok(found) => answer = Some(found),
                    Err(message) => error = Some(message),
                }
            }
        }
        Ok(json!({
            "reading": reading.status(), "of_rows": rows, "at_once": is_at_once, "sql": query, "answer": answer, "error": error,
        }))
    }

    async fn features(&self, asked: Asked) -> Result<Value, String> {
        let (_, Some((snapshot, prepared))) = self.table(&asked).await? else { return Ok(Value::Null) };
        self.job(&asked.selector, move |run| features::list(&snapshot, &prepared, run)).await
    }

    async fn feature(&self, asked: AskedFeature) -> Result<Value, String> {
        let AskedFeature { feature, question } = asked;
        let spec = self.spec(&question.selector)?;
        let (_, Some((_, prepared))) = self.table(&question).await? else { return Ok(Value::Null) };
        self.job(spec.name, move |run| features::detail(&question, &feature, &spec, &prepared, run)).await
    }

    async fn complete(&self, Ran { rows, question }: Ran) -> Result<Value, String> {
        let (_, Some((_, prepared))) = self.table(&question).await? else { return Ok(Value::Null) };
        self.job(&question.selector, move |run| ask::complete(rows, &prepared, run)).await
    }

    fn run(&self, asked: &Asked) -> Result<Value, String> {
        let spec = self.spec(&asked.selector)?;
        Question::new(Arc::clone(&spec), &asked.settings).map_err(|error| line(named(spec.name, error)))?;
        if let Some(groups) = asked.split.as_ref().and_then(|split| split.groups.as_ref()) {
            // They go into a query as they are.
            let snapshot = self.reading_for(asked).map_err(line)?.snapshot();
            let is_known = |group: &String| snapshot.iter().any(|of| of.groups.iter().any(|known| known.literal == *group));
            if !groups.iter().all(is_known) {
                return Err("ui: no such group".to_string());
            }
        }
        let query = sql::of(&self.source, asked);
        let id = self.runs.start(&self.source.ctx, &self.engine, query, &self.runtime).map_err(line)?;
        Ok(self.runs.state(id))
    }

    fn spec(&self, name: &str) -> Result<Arc<Spec>, String> {
        let spec = self.registry.find(name).filter(|spec| spec.is_selector());
        spec.ok_or_else(|| line(self.registry.unknown("ui", name)))
    }

    /// Works on the threads for short selections.
    async fn job<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&pursuit_udfs::Run) -> pursuit_udfs::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let ours = |error| line(named(name, error));
        let question = Question::new(self.spec(name)?, &Settings::new()).map_err(ours)?;
        let running = question.start(&self.progress, None, Lane::Short).map_err(ours)?;
        running.job(work).await.map_err(ours)
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("ui: {error}"))
}
