//! What a client may have the server do. Planning alone touches nothing, so that a plan can be looked at before it is run.

use datafusion::common::TableReference;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};

use crate::errors::{Failure, NOT_ALLOWED, NOT_SUPPORTED, READ_ONLY};
use crate::tables::Tables;

/// Settings of a session that can do no harm to others.
const SETTINGS: [&str; 5] =
    ["pursuit.", "datafusion.explain.", "datafusion.optimizer.", "datafusion.sql_parser.", "datafusion.execution.time_zone"];

/// Refuses plans that would reach files, change what is the operator's, or lift a limit.
pub fn check(plan: &LogicalPlan, tables: &Tables, is_writable: bool) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        check_node(node, tables, is_writable)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check_node(node: &LogicalPlan, tables: &Tables, is_writable: bool) -> Result<(), Failure> {
    let writes = |what: &str| {
        let refused = || {
            Failure::new(READ_ONLY, format!("{what}: the server is read-only")).hint("its operator can start it with --writable")
        };
        if is_writable { Ok(()) } else { Err(refused()) }
    };
    let own = |name: &TableReference| if tables.has_data(name) { Err(of_operator(name)) } else { Ok(()) };
    match node {
        LogicalPlan::Copy(_) => Err(no_copy()),
        LogicalPlan::Dml(dml) => {
            writes(&dml.op.to_string())?;
            match source_as_provider(&dml.target) {
                Ok(table) if !tables.is_data(&table) => Ok(()),
                _ => Err(of_operator(&dml.table_name)),
            }
        }
        LogicalPlan::Ddl(ddl) => match ddl {
            DdlStatement::CreateExternalTable(create) => {
                writes("CREATE EXTERNAL TABLE")?;
                let outside = create.locations.iter().find(|location| !tables.is_inside(location));
                match outside {
                    None if !create.locations.is_empty() => Ok(()),
                    outside => {
                        let shown = outside.map_or("its location", String::as_str);
                        Err(Failure::new(
                            NOT_ALLOWED,
                            format!("CREATE EXTERNAL TABLE: {shown} is not in a folder given as --data"),
                        ))
                    }
                }
            }
            DdlStatement::CreateMemoryTable(_) => writes("CREATE TABLE"),
            DdlStatement::CreateView(_) => writes("CREATE VIEW"),
            DdlStatement::DropTable(drop) => writes("DROP TABLE").and_then(|()| own(&drop.name)),
            DdlStatement::DropView(drop) => writes("DROP VIEW").and_then(|()| own(&drop.name)),
            other => Err(Failure::new(NOT_ALLOWED, format!("{} is not allowed on this server", other.name()))),
        },
        LogicalPlan::Statement(Statement::SetVariable(set)) => check_setting(&set.variable),
        LogicalPlan::Statement(Statement::ResetVariable(reset)) => check_setting(&reset.variable),
        _ => Ok(()),
    }
}

/// Said to whoever would change the operator's files.
pub fn of_operator(name: &TableReference) -> Failure {
    Failure::new(NOT_ALLOWED, format!("{name} is a file of the server's operator, and stays as it is"))
}

/// Whether a client may change a setting of its session.
pub fn check_setting(name: &str) -> Result<(), Failure> {
    let is_own = SETTINGS.iter().any(|prefix| name.to_lowercase().starts_with(prefix));
    let refused = || {
        Failure::new(NOT_ALLOWED, format!("SET {name} is not allowed on this server"))
            .hint(format!("settings that begin with {} are", SETTINGS.join(", ")))
    };
    if is_own { Ok(()) } else { Err(refused()) }
}

/// Said to whoever wants files on the server's side.
pub fn no_copy() -> Failure {
    Failure::new(NOT_SUPPORTED, "COPY is not supported: the server reads and writes no files for a client")
        .hint("SELECT the rows and let the client write them, as psql does with --csv -o FILE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::catalog::SchemaProvider;
    use datafusion::prelude::SessionContext;
    use std::sync::Arc;

    #[tokio::test]
    async fn what_reaches_beyond_the_session_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), "a,b\n1,2\n").unwrap();
        let ctx = SessionContext::new();
        let tables = Arc::new(Tables::read(&[folder.path().to_path_buf()], &ctx).await.unwrap());
        ctx.catalog("datafusion").unwrap().register_schema("public", Arc::clone(&tables) as Arc<dyn SchemaProvider>).unwrap();
        let inside = format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{}'", folder.path().join("t.csv").display());
        // What it says read-only, and what it says to writers; "" is a yes.
        let cases = [
            ("SELECT * FROM t", "", ""),
            ("EXPLAIN SELECT * FROM t", "", ""),
            ("SET datafusion.explain.logical_plan_only = true", "", ""),
            ("CREATE TABLE x AS SELECT 1 AS a", READ_ONLY, ""),
            ("CREATE VIEW x AS SELECT 1 AS a", READ_ONLY, ""),
            ("DROP TABLE IF EXISTS x", READ_ONLY, ""),
            ("DROP TABLE t", READ_ONLY, NOT_ALLOWED),
            ("INSERT INTO t VALUES (1, 2)", READ_ONLY, NOT_ALLOWED),
            ("EXPLAIN ANALYZE INSERT INTO t VALUES (1, 2)", READ_ONLY, NOT_ALLOWED),
            ("COPY t TO 'x.csv'", NOT_SUPPORTED, NOT_SUPPORTED),
            ("EXPLAIN ANALYZE COPY t TO 'x.csv'", NOT_SUPPORTED, NOT_SUPPORTED),
            (&inside, READ_ONLY, ""),
            ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", READ_ONLY, NOT_ALLOWED),
            ("CREATE SCHEMA s", NOT_ALLOWED, NOT_ALLOWED),
            ("CREATE DATABASE d", NOT_ALLOWED, NOT_ALLOWED),
            ("SET datafusion.runtime.memory_limit = '100G'", NOT_ALLOWED, NOT_ALLOWED),
            ("RESET datafusion.runtime.memory_limit", NOT_ALLOWED, NOT_ALLOWED),
            ("SET datafusion.catalog.location = '/etc'", NOT_ALLOWED, NOT_ALLOWED),
        ];
        for (sql, reader, writer) in cases {
            let plan = ctx.state().create_logical_plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            for (is_writable, expected) in [(false, reader), (true, writer)] {
                let said = check(&plan, &tables, is_writable).map_err(|error| Failure::from(&error).code);
                assert_eq!(said.err().unwrap_or(""), expected, "{sql}");
            }
        }
    }
}
