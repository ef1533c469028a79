//! SQL in colours while it is typed: the words of the language, and texts.

use std::borrow::Cow;

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::statements::{Offsets, tokens};

const WORD: &str = "\x1b[91m";
const TEXT: &str = "\x1b[92m";
const PLAIN: &str = "\x1b[0m";

/// The line with colours put between its letters, of which none is changed: the cursor counts them.
pub(super) fn coloured<'l>(line: &'l str, dialect: &dyn Dialect) -> Cow<'l, str> {
    // A text whose end is not typed yet.
    let Ok(tokens) = tokens(line, dialect) else { return Cow::Borrowed(line) };
    let offsets = Offsets::new(line);
    let (mut out, mut written) = (String::new(), 0);
    for TokenWithSpan { token, span } in tokens {
        let colour = match token {
            Token::Word(word) if word.keyword != Keyword::NoKeyword => WORD,
            Token::SingleQuotedString(_) => TEXT,
            _ => continue,
        };
        let (begin, end) = (offsets.of(span.start), offsets.of(span.end));
        out.extend([&line[written..begin], colour, &line[begin..end], PLAIN]);
        written = end;
    }
    out.push_str(&line[written..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    #[test]
    fn words_and_texts_have_colours() {
        let of = |line| coloured(line, &GenericDialect {}).replace(WORD, "<").replace(TEXT, "{").replace(PLAIN, ">");
        assert_eq!(of("SElect a\t FROM  t WHERE b = 'né''e';"), "<SElect> a\t <FROM>  t <WHERE> b = {'né''e'>;");
        assert_eq!(of("FROM \"é\", 'ü'\n  where x -- 'no'"), "<FROM> \"é\", {'ü'>\n  <where> x -- 'no'");
        assert_eq!(of("SELECT 'open"), "SELECT 'open");
        assert_eq!(of(""), "");
    }
}
