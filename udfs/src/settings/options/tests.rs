use super::*;

choice! {
    enum Colour { Red = "red", Blue = "blue", }
}

options! {
    struct Paint {
        /// How many coats.
        coats: usize = 2, Check::AtLeast(1.0);
        /// Which one.
        colour: Colour = Colour::Red;
        /// Thinner share.
        thinner: f64 = 0.5, Check::Between(0.0, 1.0);
    }
}

fn message(json: &str) -> String {
    let settings: Settings = serde_json::from_str(json).unwrap();
    read::<Paint>(&settings).unwrap_err().to_string()
}

#[test]
fn reads_what_fits() {
    let settings: Settings = serde_json::from_str(r#"{"coats": 3.0, "colour": "BLUE"}"#).unwrap();
    let paint = read::<Paint>(&settings).unwrap();
    assert_eq!((paint.coats, paint.colour, paint.thinner), (3, Colour::Blue, 0.5));
}

#[test]
fn messages_name_the_option_the_limit_and_the_value() {
    assert_eq!(message(r#"{"coats": 0}"#), "`coats` must be at least 1, got 0");
    assert_eq!(message(r#"{"coats": -2}"#), "`coats` must be at least 1, got -2");
    assert_eq!(message(r#"{"coats": 1.5}"#), "`coats` must be a whole number, got 1.5");
    assert_eq!(message(r#"{"colour": "green"}"#), "`colour` must be 'red' or 'blue', got 'green'");
    assert_eq!(message(r#"{"thinner": "x"}"#), "`thinner` must be a number, got 'x'");
    assert_eq!(
        message(r#"{"color": "red"}"#),
        "unknown option `color`; did you mean `colour`? options are coats, colour, thinner"
    );
}

#[test]
fn sizes_are_written_as_people_write_them() {
    let size = |text: &str| Bytes::parse(&Value::from(text)).map(|b| b.0);
    assert_eq!(size("2 KB"), Some(2048));
    assert_eq!(size("1.5gib"), Some(1_610_612_736));
    assert_eq!(size("many"), None);
    assert_eq!(size("0"), None);
}

#[test]
fn specs_print_the_declaration() {
    let specs = Paint::specs();
    assert_eq!(specs[0].allowed, "at least 1");
    assert_eq!(specs[1].default, "'red'");
    assert_eq!(specs[2].description, "Thinner share.");
}
