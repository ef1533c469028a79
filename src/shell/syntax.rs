//! What `\h` prints about statements of SQL. Functions have their own pages (`manual`).

use crate::manual::wrapped;

/// Name, what it is for, how it is written, and one that runs.
type Statement = (&'static str, &'static str, &'static str, &'static str);

const STATEMENTS: [Statement; 13] = [
    (
        "SELECT",
        "Rows of a table, of a file or of what a function answers with.",
        "[WITH name AS (query), …]
SELECT [DISTINCT] * | expression [AS name], …
FROM table | 'file' | function(…) | (query)
    [JOIN table ON condition | USING (column, …)]
[WHERE condition]
[GROUP BY expression, … | ALL] [HAVING condition] [QUALIFY condition]
[UNION [ALL] | INTERSECT | EXCEPT query]
[ORDER BY expression [ASC | DESC] [NULLS FIRST | LAST], …]
[LIMIT rows] [OFFSET rows]",
        "SELECT sex, count(*) AS rows FROM sample.diabetes WHERE bmi > 25 GROUP BY sex ORDER BY rows DESC",
    ),
    (
        "EXPLAIN",
        "The plan of a query; with ANALYZE it is run, and every step says its rows and its time.",
        "EXPLAIN [ANALYZE] [VERBOSE] query",
        "EXPLAIN ANALYZE SELECT max(bmi) FROM sample.diabetes",
    ),
    ("DESCRIBE", "The columns of a table and their types.", "DESCRIBE table", "DESCRIBE sample.wine"),
    (
        "SHOW",
        "Tables, columns, functions, and what is set.",
        "SHOW TABLES
SHOW COLUMNS FROM table
SHOW FUNCTIONS [LIKE 'pattern']
SHOW ALL | setting",
        "SHOW FUNCTIONS LIKE '%attention%'",
    ),
    (
        "SET",
        "Changes a setting of the session; SHOW ALL lists them.",
        "SET setting = value",
        "SET datafusion.execution.batch_size = 4096",
    ),
    (
        "CREATE TABLE",
        "A table that is kept in memory, empty or with the rows of a query.",
        "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name (column type [NOT NULL], …)
CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name AS query",
        "CREATE TABLE heavy AS SELECT * FROM sample.diabetes WHERE bmi > 30",
    ),
    (
        "CREATE EXTERNAL TABLE",
        "A name for files that are read when a query needs them. A folder ends with a slash. Compression, separators and the like are options \
         of the format; keys and regions those of a store.",
        "CREATE EXTERNAL TABLE [IF NOT EXISTS] name [(column type, …)]
STORED AS PARQUET | CSV | JSON | ARROW
[PARTITIONED BY (column, …)]
[WITH ORDER (column [DESC], …)]
LOCATION 'file, folder/, s3://…, gs://…, https://… or /dev/stdin'
[OPTIONS ('format.has_header' 'true', 'aws.region' 'eu-central-1', …)]",
        "CREATE EXTERNAL TABLE customers STORED AS CSV LOCATION 'customers.csv' OPTIONS ('format.has_header' 'true')",
    ),
    (
        "CREATE VIEW",
        "A name for a query, which runs whenever the name is read.",
        "CREATE [OR REPLACE] VIEW name AS query",
        "CREATE VIEW heavy AS SELECT * FROM sample.diabetes WHERE bmi > 30",
    ),
    (
        "COPY",
        "Writes a table or the rows of a query into files; the ending says their format if STORED AS does not.",
        "COPY table | (query) TO 'file, folder/, s3://… or gs://…'
[STORED AS PARQUET | CSV | JSON | ARROW]
[PARTITIONED BY (column, …)]
[OPTIONS ('format.compression' 'gzip', …)]",
        "COPY (SELECT * FROM sample.wine) TO 'wine.parquet'",
    ),
    (
        "INSERT",
        "Adds rows to a table.",
        "INSERT INTO table [(column, …)] VALUES (value, …), … | query",
        "INSERT INTO heavy SELECT * FROM sample.diabetes WHERE bmi > 30",
    ),
    ("DROP TABLE", "Forgets a table. Its files stay.", "DROP TABLE [IF EXISTS] name", "DROP TABLE IF EXISTS heavy"),
    ("DROP VIEW", "Forgets a view.", "DROP VIEW [IF EXISTS] name", "DROP VIEW IF EXISTS heavy"),
    (
        "VALUES",
        "Rows that are written down.",
        "VALUES (value, …), …",
        "SELECT * FROM (VALUES ('bmi', 1.0), ('bp', 2.0)) AS costs(feature, cost)",
    ),
];

/// The page of a statement, in whatever letters it is asked for.
pub(super) fn page(name: &str, width: usize) -> Option<String> {
    // `CREATE TABLE AS` is on the page of CREATE TABLE.
    let words = name.to_uppercase();
    let words = words.split_whitespace().filter(|word| *word != "AS").collect::<Vec<_>>().join(" ");
    let (name, meaning, syntax, example) = STATEMENTS.iter().find(|(known, ..)| *known == words)?;
    let indented = syntax.replace('\n', "\n  ");
    Some(format!("{name}\n\n{}\n  {indented}\n\nExample\n  {example};\n", wrapped(meaning, 2, width)))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    #[test]
    fn examples_are_sql_and_begin_as_the_page_is_named() {
        for (name, _, syntax, example) in STATEMENTS {
            assert_eq!(DFParser::parse_sql(example).map(|parsed| parsed.len()).ok(), Some(1), "{example}");
            assert!(syntax.contains(name.split_once(' ').map_or(name, |(verb, _)| verb)), "{name}");
        }
        let page = |name| page(name, 100);
        assert!(page("create  table as").is_some_and(|page| page.starts_with("CREATE TABLE\n")));
        assert!(page("select").is_some_and(|page| page.contains("\n  FROM table")));
        assert_eq!(page("omp"), None);
    }
}
