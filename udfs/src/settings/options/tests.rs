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
fn every_limit_has_an_upper_end() {
    assert_eq!(message(r#"{"coats": 9223372036854775807}"#), "`coats` must be at most 1000000000, got 9223372036854775807");
    assert_eq!(Check::AtLeast(1.0).must_be(&Value::from(vec![4_294_967_296u64, 1])), "at most 1000000000");
    assert!(!Check::Above(0.0).holds(&Value::from(1e300)) && Check::Above(0.0).holds(&Value::from(1e9)));
    assert_eq!(Vec::<usize>::parse(&Value::from(vec![1; 65])), None);
}

#[test]
fn values_are_shown_as_far_as_they_are_recognised() {
    let name = "x".repeat(1_000_000);
    assert_eq!(show(&Value::from(name.as_str())).chars().count(), 63);
    assert_eq!(show(&Value::from((0..1_000).collect::<Vec<_>>())), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (+988)]");
    assert_eq!(show(&serde_json::json!({"a": ["b\n", null]})), r"{'a': ['b\n', NULL]}");
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
