use crate::contract::selector::{Asks, Choosing, Declared, Spec, Work};
use crate::{Labels, Options, Result, Settings, options};

options! {
    /// Which features are chosen.
    pub struct Chosen {
        /// The selector that chooses, with the options that all of them have. For options of its own give its answer as `features => (SELECT feature FROM …)`, of which all are
        /// taken then.
        selector: String = "omp".to_string();
    }
}

/// The documentation of both, whose first lines differ.
macro_rules! documented {
    ($($line:literal),*) => {
        &[
            $($line,)*
            "",
            " The selector is `omp` unless another is named, because it reads the table once and has its answer at once.",
        ]
    };
}

const TABLE: &[&str] = documented!(
    " A table with the chosen columns and the label alone.",
    "",
    " Selects features as `selector` does, and answers with the rows of the table: the chosen columns in their order, a group's members one after the other, then the label.",
    "",
    " Which columns a table has must be known before a query runs, and here only the selection knows. So it runs while the query is planned: EXPLAIN takes as long, and it cannot be",
    " cancelled. For selectors that take minutes use chosen_sql, which runs as any query does."
);

const TEXT: &[&str] = documented!(
    " The SELECT that takes the chosen columns and the label.",
    "",
    " Selects features as `selector` does, and answers with one row: in `sql` a query to paste, which needs no selection any more."
);

impl Declared for Chosen {
    fn spec() -> Spec {
        let build = |settings: &Settings| Ok(Work::Choose(choosing(settings, false)?));
        Spec { build, ..spec("chosen", TABLE) }
    }
}

/// The same as text.
pub struct ChosenSql;

impl Declared for ChosenSql {
    fn spec() -> Spec {
        let build = |settings: &Settings| Ok(Work::Choose(choosing(settings, true)?));
        Spec { build, ..spec("chosen_sql", TEXT) }
    }
}

fn choosing(settings: &Settings, as_sql: bool) -> Result<Choosing> {
    let Chosen { selector } = crate::options::read(settings)?;
    Ok(Choosing { selector, as_sql })
}

fn spec(name: &'static str, documentation: &'static [&'static str]) -> Spec {
    Spec {
        name,
        aliases: &[],
        documentation,
        labels: Labels::Any,
        asks: Asks::Choice,
        score: "",
        table: None,
        model: None,
        options: <Chosen as Options>::specs,
        build: |settings| Ok(Work::Choose(choosing(settings, false)?)),
    }
}
