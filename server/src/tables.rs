//! The tables that clients see: the operator's files, which nobody can change, and tables that clients make, if they may.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{TableReference, exec_err};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions, SessionContext};

use crate::allowed::of_operator;

/// The schema `public`.
pub struct Tables {
    folders: Vec<PathBuf>,
    data: BTreeMap<String, Arc<dyn TableProvider>>,
    made: Mutex<BTreeMap<String, Made>>,
    pool: Arc<dyn MemoryPool>,
}

/// A table that a client made, and the memory that it takes.
struct Made {
    table: Arc<dyn TableProvider>,
    memory: MemoryReservation,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tables({} of {:?})", self.data.len(), self.folders)
    }
}

impl Tables {
    /// Every file and every folder of files in the operator's folders, named without its ending.
    pub async fn read(folders: &[PathBuf], ctx: &SessionContext) -> Result<Self> {
        let mut data: BTreeMap<String, (Arc<dyn TableProvider>, PathBuf)> = BTreeMap::new();
        let mut real_folders = Vec::new();
        for folder in folders {
            let failed = |error: std::io::Error| DataFusionError::Execution(format!("--data {}: {error}", folder.display()));
            let real = folder.canonicalize().map_err(failed)?;
            let mut paths: Vec<PathBuf> = std::fs::read_dir(&real)
                .map_err(failed)?
                .map(|entry| Ok(entry?.path()))
                .collect::<Result<_, _>>()
                .map_err(failed)?;
            paths.sort();
            for path in paths {
                let Some((name, format)) = table_of(&path) else { continue };
                if let Some((_, other)) = data.get(&name) {
                    let (path, other) = (path.display(), other.display());
                    return exec_err!("--data: both {other} and {path} would be the table {name}; rename one");
                }
                let table =
                    open(ctx, &path, format).await.map_err(|error| error.context(format!("--data {}", path.display())))?;
                data.insert(name, (table, path));
            }
            real_folders.push(real);
        }
        let data = data.into_iter().map(|(name, (table, _))| (name, table)).collect();
        Ok(Self { folders: real_folders, data, made: Mutex::default(), pool: Arc::clone(&ctx.runtime_env().memory_pool) })
    }

    /// How many tables are the operator's.
    pub fn count(&self) -> usize {
        self.data.len()
    }

    /// Whether the table is the operator's.
    pub fn is_data(&self, table: &Arc<dyn TableProvider>) -> bool {
        self.data.values().any(|other| Arc::ptr_eq(table, other))
    }

    /// Whether the name is that of a table of the operator's.
    pub fn has_data(&self, name: &TableReference) -> bool {
        name.schema().is_none_or(|schema| schema == "public") && self.data.contains_key(name.table())
    }

    /// Whether a path is inside a folder of the operator's, wherever its links lead.
    pub fn is_inside(&self, location: &str) -> bool {
        let path = location.strip_prefix("file://").unwrap_or(location);
        let real = Path::new(path).canonicalize();
        real.is_ok_and(|real| self.folders.iter().any(|folder| real.starts_with(folder)))
    }

    /// Takes note of what tables have grown by.
    pub fn measure(&self) {
        for made in self.made().values_mut() {
            made.memory.resize(size(&made.table));
        }
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<String, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.data.keys().chain(self.made().keys()).cloned().collect();
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let found = self.data.get(name).cloned();
        Ok(found.or_else(|| self.made().get(name).map(|made| Arc::clone(&made.table))))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.data.contains_key(name) || self.made().contains_key(name)
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.data.contains_key(&name) {
            return Err(of_operator(&name.into()).into());
        }
        let memory = MemoryConsumer::new(format!("table {name}")).register(&self.pool);
        memory.try_grow(size(&table))?;
        Ok(self.made().insert(name, Made { table, memory }).map(|made| made.table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.data.contains_key(name) {
            return Err(of_operator(&name.into()).into());
        }
        Ok(self.made().remove(name).map(|made| made.table))
    }
}

/// What a table in memory takes of it.
fn size(table: &Arc<dyn TableProvider>) -> usize {
    let Some(table) = table.downcast_ref::<MemTable>() else { return 0 };
    // A table that is being written to is measured when that is over.
    let batches = table.batches.iter().filter_map(|batches| batches.try_read().ok());
    batches.map(|batches| batches.iter().map(|batch| batch.get_array_memory_size()).sum::<usize>()).sum()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Parquet,
    Csv,
    Json,
}

/// The table's name and format, if the file, or a file of the folder, has an ending that we know.
fn table_of(path: &Path) -> Option<(String, Format)> {
    let name = path.file_stem()?.to_str()?.to_string();
    if name.starts_with('.') {
        return None;
    }
    if path.is_dir() {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(path).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        let format = paths.iter().find_map(|path| if path.is_dir() { Some(table_of(path)?.1) } else { format_of(path) });
        return Some((path.file_name()?.to_str()?.to_string(), format?));
    }
    Some((name, format_of(path)?))
}

fn format_of(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "parquet" => Some(Format::Parquet),
        "csv" => Some(Format::Csv),
        "json" | "ndjson" | "jsonl" => Some(Format::Json),
        _ => None,
    }
}

async fn open(ctx: &SessionContext, path: &Path, format: Format) -> Result<Arc<dyn TableProvider>> {
    let mut location = path.to_str().ok_or_else(|| DataFusionError::Execution("the path is no text".into()))?.to_string();
    if path.is_dir() {
        location.push('/');
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).map(|ending| format!(".{ending}"));
    let frame = match format {
        Format::Parquet => ctx.read_parquet(location, ParquetReadOptions::default()).await?,
        Format::Csv => ctx.read_csv(location, CsvReadOptions::new()).await?,
        Format::Json => {
            let file_extension = ending.as_deref().unwrap_or(".json");
            let options = JsonReadOptions { file_extension, ..Default::default() };
            ctx.read_json(location, options).await?
        }
    };
    // The scan of the file, without a frame around it.
    let mut found = None;
    datafusion::common::tree_node::TreeNode::apply(frame.logical_plan(), |node| {
        if let datafusion::logical_expr::LogicalPlan::TableScan(scan) = node {
            found = Some(datafusion::datasource::source_as_provider(&scan.source)?);
        }
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })?;
    found.ok_or_else(|| DataFusionError::Execution("no table in it".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_and_folders_are_tables() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("people.csv", "a,b\n1,2\n");
        write("many/1.csv", "a\n1\n");
        write("many/2.csv", "a\n2\n3\n");
        write("events.ndjson", "{\"a\": 1}\n");
        write("notes.txt", "x");
        write(".hidden.csv", "a\n1\n");
        let ctx = SessionContext::new();
        let tables = Tables::read(&[folder.path().to_path_buf()], &ctx).await.unwrap();
        assert_eq!(tables.table_names(), ["events", "many", "people"]);
        let many = tables.table("many").await.unwrap().unwrap();
        assert_eq!(ctx.read_table(many).unwrap().count().await.unwrap(), 3);
        assert!(tables.deregister_table("people").is_err());
        assert!(tables.is_inside(folder.path().join("many/1.csv").to_str().unwrap()));
        std::os::unix::fs::symlink("/etc", folder.path().join("out")).unwrap();
        for outside in ["/etc/passwd", "../x", "many/../../x", "out/passwd"] {
            assert!(!tables.is_inside(folder.path().join(outside).to_str().unwrap()), "{outside}");
        }
        write("people.parquet", "");
        let twice = Tables::read(&[folder.path().to_path_buf()], &ctx).await.unwrap_err().to_string();
        assert!(twice.contains("both") && twice.contains("people"), "{twice}");
    }
}
