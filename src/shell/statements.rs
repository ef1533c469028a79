//! SQL text cut into statements, each with the comment above it and the line where it begins.

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

#[derive(Debug, PartialEq)]
pub(super) struct Statement {
    pub sql: String,
    /// The comment right above it.
    pub question: Vec<String>,
    pub line: u64,
}

/// What is still missing before a text can run.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) enum Missing {
    Nothing,
    Semicolon,
    /// A quote or a comment that was begun is not ended.
    End,
}

pub(super) fn tokens(text: &str, dialect: &dyn Dialect) -> Result<Vec<TokenWithSpan>, String> {
    let tokens = Tokenizer::new(dialect, text).with_unescape(false).tokenize_with_location();
    tokens.map_err(|error| format!("syntax error: {error}"))
}

/// Everything between semicolons that is more than a comment.
pub(super) fn split(text: &str, dialect: &dyn Dialect) -> Result<Vec<Statement>, String> {
    let offsets = Offsets::new(text);
    let (mut statements, mut begin, mut line) = (Vec::new(), None, 1);
    let mut question: Vec<String> = Vec::new();
    let mut breaks = 0;
    let mut end_statement = |begin: Option<usize>, end: usize, line: u64, question: &mut Vec<String>| {
        if let Some(begin) = begin {
            let sql = text[begin..end].trim_end().to_string();
            statements.push(Statement { sql, question: std::mem::take(question), line });
        }
    };
    for TokenWithSpan { token, span } in tokens(text, dialect)? {
        match token {
            Token::SemiColon => end_statement(begin.take(), offsets.of(span.start), line, &mut question),
            Token::EOF => {}
            _ if begin.is_some() => {}
            Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) => {
                question.push(comment.trim().to_string());
                // The comment has its line break in itself.
                breaks = 1;
            }
            Token::Whitespace(Whitespace::Newline) => {
                breaks += 1;
                if breaks > 1 {
                    question.clear();
                }
            }
            Token::Whitespace(_) => {}
            _ => {
                (begin, line, breaks) = (Some(offsets.of(span.start)), span.start.line, 0);
            }
        }
    }
    end_statement(begin.take(), text.len(), line, &mut question);
    Ok(statements)
}

/// Whether a text that is being typed can run.
pub(super) fn missing(text: &str, dialect: &dyn Dialect) -> Missing {
    match tokens(text, dialect) {
        Ok(tokens) => {
            let last = tokens.iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
            if last.is_some_and(|last| last.token == Token::SemiColon) { Missing::Nothing } else { Missing::Semicolon }
        }
        Err(error) if error.contains("Unterminated") || error.contains("EOF") => Missing::End,
        // The parser says what is wrong once the statement is there.
        Err(_) if text.trim_end().ends_with(';') => Missing::Nothing,
        Err(_) => Missing::Semicolon,
    }
}

/// Where in a text a line and a column are.
pub(super) struct Offsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Offsets<'a> {
    pub fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    pub fn of(&self, at: Location) -> usize {
        let line = self.lines.get(at.line.saturating_sub(1) as usize).copied().unwrap_or(self.text.len());
        let mut letters = self.text[line..].char_indices();
        letters.nth(at.column.saturating_sub(1) as usize).map_or(self.text.len(), |(offset, _)| line + offset)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    #[test]
    fn a_statement_has_its_question_and_its_line() {
        let text = "-- About the file.\n\n-- How many?\n-- Really.\nSELECT ';', 'é' -- not a question\n  FROM t;\nSELECT 2; -- after\n\n-- nothing follows\n";
        let found = split(text, &GenericDialect {}).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].question, ["How many?", "Really."]);
        assert_eq!((found[0].line, found[0].sql.as_str()), (5, "SELECT ';', 'é' -- not a question\n  FROM t"));
        assert_eq!((found[1].line, found[1].sql.as_str(), found[1].question.len()), (7, "SELECT 2", 0));
        assert!(split("SELECT 'open", &GenericDialect {}).is_err());
        assert!(split(" ; ;; -- no\n", &GenericDialect {}).unwrap().is_empty());
    }

    #[test]
    fn what_is_missing() {
        let of = |text| missing(text, &GenericDialect {});
        assert_eq!(of("SELECT 1"), Missing::Semicolon);
        assert_eq!(of("SELECT 1; -- so\n"), Missing::Nothing);
        assert_eq!(of("SELECT 'a;"), Missing::End);
        assert_eq!(of("SELECT FROM FROM;"), Missing::Nothing);
        assert_eq!(of("/* open ;"), Missing::End);
    }
}
