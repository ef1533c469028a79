//! The page of a function: what it does, how it is called, its options. `manual(name)` answers with it, and the shell's `\h` prints it with an example.

use pursuit_udfs::{Asks, Common, Labels, OptionSpec, Options, Spec};

use crate::function::usage;

/// All that there is to know about a function, in lines that fit.
pub(crate) fn page_of(spec: &Spec, width: usize) -> String {
    let aliases = if spec.aliases.is_empty() { String::new() } else { format!(" (also {})", spec.aliases.join(", ")) };
    let mut text = format!("{}{aliases}\n\n", spec.name);
    for paragraph in spec.description().split("\n\n") {
        items(paragraph).iter().for_each(|item| text.push_str(&wrapped(item, 2, width)));
        text.push('\n');
    }
    text.push_str(&format!("Call\n{}\n", wrapped(usage(spec).trim_start_matches("write "), 2, width)));
    let labels = match spec.labels {
        _ if matches!(spec.asks, Asks::NoLabel | Asks::Model) => "",
        Labels::Any => "label: numbers or classes",
        Labels::NumberOrTwoClasses => "label: numbers or two classes",
        Labels::Classes => "label: classes",
    };
    let score = if spec.is_selector() { format!("score: {}", spec.score) } else { String::new() };
    let facts: Vec<&str> = [labels, &score].into_iter().filter(|fact| !fact.is_empty()).collect();
    if !facts.is_empty() {
        text.push_str(&format!("{}\n", wrapped(&facts.join("; "), 2, width)));
    }
    let common = Common::specs();
    let is_common = |option: &OptionSpec| common.iter().any(|other| other.name == option.name);
    let (shared, own): (Vec<OptionSpec>, Vec<OptionSpec>) = spec.all_options().into_iter().partition(is_common);
    for (title, options) in [("Options of its own", own), ("Options that it shares with others", shared)] {
        if !options.is_empty() {
            text.push_str(&format!("{title}\n{}\n", table_of(&options, width)));
        }
    }
    text
}

/// The items of a list, each by itself; of other text one.
fn items(paragraph: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in paragraph.lines() {
        let begins = line.starts_with("- ") || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
        match items.last_mut().filter(|_| !begins) {
            Some(item) => item.push_str(&format!(" {}", line.trim())),
            None => items.push(line.to_string()),
        }
    }
    items
}

fn table_of(options: &[OptionSpec], width: usize) -> String {
    let name = options.iter().map(|option| option.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for option in options {
        let allowed = if option.allowed.is_empty() { option.kind } else { &option.allowed };
        let default = if option.default.is_empty() { String::new() } else { format!("; default {}", option.default) };
        let line = format!("{} ({allowed}{default})", option.description.trim());
        let wrapped = wrapped(&line, name + 4, width);
        text.push_str(&format!("  {:<name$}  {}", option.name, wrapped.trim_start()));
    }
    text
}

/// Text in lines that fit, moved in by some letters.
pub(crate) fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    let room = width.clamp(40, 110).saturating_sub(indent).max(20);
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push_str(&format!("{}{line}\n", " ".repeat(indent)));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &format!("{}{line}\n", " ".repeat(indent))
}
