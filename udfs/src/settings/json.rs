//! Options as a JSON text. A name that stands twice is refused, where serde_json would take the last and say nothing.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{Error, Result, Settings, shown};

/// Largest text that is read; what has more to say is a table.
const BYTES_MAX: usize = 16 << 20;

/// The options in a JSON text.
pub fn parse(text: &str) -> Result<Settings> {
    let must_be = "options must be a JSON object such as '{\"exclude\": [\"id\"]}'";
    if text.len() > BYTES_MAX {
        return Err(Error::call(format!(
            "options must be at most {BYTES_MAX} bytes of JSON, got {}; give a table instead",
            text.len()
        )));
    }
    let twice = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    // The reader refuses more than 128 levels of lists in lists by itself.
    let value = Unique { twice: &twice }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match (value, twice.into_inner()) {
        (_, Some(name)) => Err(Error::call(format!("`{}` is given twice", shown(&name)))),
        (Ok(Value::Object(settings)), None) => Ok(settings),
        (Ok(other), None) => Err(Error::call(format!("{must_be}, got {}", crate::options::show(&other)))),
        (Err(error), None) => Err(Error::call(format!("{must_be}: {error}"))),
    }
}

/// Reads a value, and remembers the first name that an object has twice.
#[derive(Clone, Copy)]
struct Unique<'a> {
    twice: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if map.contains_key(&name) {
                *self.twice.borrow_mut() = Some(name);
                return Err(A::Error::custom("a name stands twice"));
            }
            let value = entries.next_value_seed(self)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn reads_what_serde_json_reads() {
        let text = r#"{"a": [1, -2, 0.5, 1e3], "b": {"c": null, "d": true}, "e": "x\ny"}"#;
        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Settings>(text).unwrap());
    }

    #[test]
    fn names_that_stand_twice_are_refused_at_any_depth() {
        assert_eq!(message(r#"{"k": 1, "k": 2}"#), "`k` is given twice");
        assert_eq!(message(r#"{"groups": {"g": ["a"], "h": [], "g": ["b"]}}"#), "`g` is given twice");
        assert_eq!(message(r#"{"x": [{"y": 1, "y": 1}]}"#), "`y` is given twice");
        assert!(parse(r#"{"x": {"y": 1}, "y": 1}"#).is_ok());
    }

    #[test]
    fn what_is_no_object_is_refused_on_one_line() {
        for text in ["", "[1]", "{\"a\":\n1,,}", "{} {}", "7", "{\"a\": 1e999}", &"[".repeat(100_000)] {
            let message = message(text);
            assert!(message.starts_with("options must be a JSON object such as '{\"exclude\": [\"id\"]}'"), "{message}");
            assert!(!message.contains('\n') && message.len() < 300, "{message}");
        }
        assert!(message(&format!("{{\"a\": {}", "{\"b\":".repeat(100_000))).contains("recursion limit"));
        assert!(message(&" ".repeat(BYTES_MAX + 1)).contains("at most 16777216 bytes"));
    }
}
