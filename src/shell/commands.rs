//! What begins with a backslash.

use super::format::MaxRows;
use super::printing::terminal_width;
use super::running::Shell;
use super::{manual, plot, script};

/// Name, arguments, and what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    ("h", "[function]", "list the functions, or say how to call one"),
    ("d", "[table]", "list the tables, or the columns of one"),
    ("plot", "[kind] [file]", "draw the last answer here, or into a file: svg, png, html, vl.json"),
    ("pset", "[name [value]]", "how answers are printed: format, maxrows, digits, empty, width"),
    ("i", "file", "run the SQL in a file"),
    ("which", "", "which selector when"),
    ("quiet", "[on|off]", "print answers and nothing else"),
    ("?", "", "this list; also help"),
    ("q", "", "quit; also quit, exit and Ctrl-D"),
];

/// What `\pset` sets, and to what.
pub(super) const SETTINGS: [(&str, &str); 5] = [
    ("format", "table, csv, tsv, json or nd-json"),
    ("maxrows", "most rows of a table, or inf"),
    ("digits", "digits of a float that count in a table, or all"),
    ("empty", "on or off: columns of a ranking that are empty throughout"),
    ("width", "letters of a line that a table fits into, or inf"),
];

/// What is to be done after a command.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Prompt,
    Quit,
}

/// The words that people type where commands would begin with a backslash.
pub(super) fn spoken(line: &str) -> Option<&'static str> {
    match line.trim().trim_end_matches(';').trim().to_lowercase().as_str() {
        "help" => Some("\\?"),
        "exit" | "quit" => Some("\\q"),
        _ => None,
    }
}

/// Does what a line says that begins with a backslash.
pub(super) async fn run(shell: &mut Shell, line: &str) -> Result<Next, String> {
    let line = line.trim().trim_end_matches(';');
    let (name, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(name, rest)| (name, rest.trim()));
    match (name.trim_start_matches('\\'), rest) {
        ("q", _) => return Ok(Next::Quit),
        ("?", _) => print!("{}", help()),
        ("h", "") => print!("{}", manual::list(shell.session.engine.specs(), &shell.session.ctx)),
        ("h", function) => {
            print!("{}", manual::page(function, shell.session.engine.specs(), &shell.session.ctx, terminal_width())?);
        }
        ("which", _) => {
            shell.run_until_interrupted("SELECT * FROM which_selector()").await;
        }
        ("d", "") => {
            let tables = "SELECT table_schema AS schema, table_name AS name, table_type AS type FROM information_schema.tables \
                          WHERE table_schema <> 'information_schema' ORDER BY schema, name";
            shell.run_until_interrupted(tables).await;
        }
        ("d", table) => {
            shell.run_until_interrupted(&format!("DESCRIBE {table}")).await;
        }
        ("i", "") => return Err("\\i needs the name of a file".to_string()),
        ("i", file) => script::include(shell, file).await?,
        ("plot", arguments) => plot::last(shell, arguments)?,
        ("pset", "") => print!("{}", settings(shell)),
        ("pset", setting) => set(shell, setting)?,
        ("quiet", "") => shell.printing.quiet = !shell.printing.quiet,
        ("quiet", word) => shell.printing.quiet = is_on(word).ok_or("\\quiet takes on or off")?,
        (other, _) => {
            let names: Vec<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
            let hint = pursuit_udfs::did_you_mean(other, &names);
            return Err(format!("no command named `\\{other}`{hint} \\? lists them"));
        }
    }
    Ok(Next::Prompt)
}

fn help() -> String {
    let mut text = String::new();
    for (name, arguments, meaning) in COMMANDS {
        text.push_str(&format!("  {:<22} {meaning}\n", format!("\\{name} {arguments}")));
    }
    text.push_str("\nSQL ends with a semicolon. Tab completes, Ctrl-C stops, the up arrow brings back what was typed.\n");
    text
}

fn settings(shell: &Shell) -> String {
    let printing = &shell.printing;
    let or = |number: Option<usize>, none: &str| number.map_or(none.to_string(), |number| number.to_string());
    let empty = if printing.empty { "on" } else { "off" };
    let values = [
        printing.format.name(),
        or(printing.maxrows, "inf"),
        or(printing.digits, "all"),
        empty.to_string(),
        or(printing.width, "inf"),
    ];
    let line = |((name, meaning), value): (&(&str, &str), String)| format!("  {name:<8} {value:<8} {meaning}\n");
    SETTINGS.iter().zip(values).map(line).collect()
}

fn set(shell: &mut Shell, setting: &str) -> Result<(), String> {
    let (name, value) = setting.split_once(char::is_whitespace).map_or((setting, ""), |(name, value)| (name, value.trim()));
    let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
    let Some((_, takes)) = SETTINGS.iter().find(|(known, _)| *known == name) else {
        let hint = pursuit_udfs::did_you_mean(name, &names);
        return Err(format!("\\pset: nothing named `{name}`{hint} there are {}", names.join(", ")));
    };
    let wrong = || format!("\\pset {name} takes {takes}, got `{value}`");
    let number = |all: &str| match value {
        value if value == all => Ok(None),
        value => value.parse::<usize>().map(Some).map_err(|_| wrong()),
    };
    let printing = &mut shell.printing;
    match name {
        "format" => printing.format = value.parse().map_err(|_| wrong())?,
        "maxrows" => MaxRows(printing.maxrows) = value.parse().map_err(|_| wrong())?,
        "digits" => printing.digits = number("all")?.map(|digits| digits.clamp(1, 17)),
        "empty" => printing.empty = is_on(value).ok_or_else(wrong)?,
        _ => printing.width = number("inf")?,
    }
    Ok(())
}

fn is_on(word: &str) -> Option<bool> {
    match word {
        "on" | "true" | "yes" => Some(true),
        "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_say_help_and_quit() {
        assert_eq!(spoken("help;"), Some("\\?"));
        assert_eq!(spoken("Exit"), Some("\\q"));
        assert_eq!(spoken("SELECT 1"), None);
        assert!(COMMANDS.iter().all(|(name, ..)| help().contains(&format!("\\{name}"))));
    }
}
