//! SQL as PostgreSQL's clients write it, and as our documents do.
//!
//! `MAP {…}` and `* EXCLUDE (…)` are not PostgreSQL's. What its dialect cannot read is read in DataFusion's, so that a query from the manual works
//! in psql, too.

use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion_postgres::datafusion_pg_catalog::sql::PostgresCompatibilityParser;

use crate::errors::{Failure, SYNTAX};

pub(super) fn parse(postgres: &PostgresCompatibilityParser, sql: &str) -> Result<Vec<Parsed>, Failure> {
    let is_theirs = |statement: &Statement| match statement {
        // Both have these words, and mean something else by them.
        Statement::Copy { .. } => false,
        Statement::CreateTable(create) => !create.external,
        _ => true,
    };
    let refused = match postgres.parse(sql) {
        Ok(statements) if statements.iter().all(is_theirs) => {
            return Ok(statements.into_iter().map(|statement| Parsed::Statement(Box::new(statement))).collect());
        }
        Ok(_) => None,
        Err(error) => Some(error),
    };
    let ours =
        DFParserBuilder::new(sql).with_dialect(&GenericDialect {}).build().and_then(|mut parser| parser.parse_statements());
    match (ours, refused) {
        (Ok(statements), _) => Ok(statements.into()),
        (Err(_), Some(error)) => Err(syntax(&error.to_string())),
        (Err(error), None) => Err(Failure { code: SYNTAX, ..Failure::from(&error) }),
    }
}

fn syntax(message: &str) -> Failure {
    Failure::new(SYNTAX, message.replacen("sql parser error: ", "", 1))
}

/// The statement as sqlparser has it. DataFusion's own have none, and nobody asks them for more than their plan.
pub(super) fn ast(parsed: &Parsed) -> Option<&Statement> {
    if let Parsed::Statement(statement) = parsed { Some(statement) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_the_manual_are_read() {
        let postgres = PostgresCompatibilityParser::new();
        for sql in [
            "SELECT * FROM omp('t', 'y', 3)",
            "SELECT * FROM omp(t, label => y, k => 3, exclude => ARRAY['id'])",
            "SELECT * FROM omp((SELECT * EXCLUDE (id) FROM t), label => y)",
            "SELECT * FROM omp('t', 'y', 3, MAP {'seed': 1})",
            "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'x'",
        ] {
            assert_eq!(parse(&postgres, sql).unwrap_or_else(|error| panic!("{sql}: {error}")).len(), 1);
        }
        assert_eq!(parse(&postgres, "SELECT 1; SELECT 2").unwrap().len(), 2);
        assert!(matches!(parse(&postgres, "COPY t TO 'x.csv'").unwrap()[0], Parsed::CopyTo(_)));
        let error = parse(&postgres, "SELEC 1").unwrap_err();
        assert!(error.code == SYNTAX && error.message.contains("SELEC"), "{error}");
    }
}
