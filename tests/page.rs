//! The page of `pursuit ui` without a browser: who is let in, and that its answers are those of the SQL that it shows. tests/browser has the rest.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::prelude::SessionContext;
use pursuit::Engine;
use pursuit::ui::{Page, Server};
use pursuit_udfs::{Labels, Reads, Settings};
use serde_json::{Value, json};

use crate::session::{query, session, texts};

/// A page of a table of the session, and the session.
async fn page(ctx: &SessionContext, input: &str) -> Server {
    let page = Page::open(ctx, &Engine::default(), input, None).await.unwrap();
    Server::start(page, 0).unwrap()
}

/// Host, port and token of an address.
fn parts(address: &str) -> (&str, &str) {
    address.strip_prefix("http://").unwrap().trim_end_matches('/').split_once('/').unwrap()
}

/// Sends a request as it stands and returns the whole answer.
fn send(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut piece = [0; 65536];
    loop {
        let read = stream.read(&mut piece).unwrap();
        answer.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&answer);
        let length = text.split_once("\r\n\r\n").map(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            body.len() >= length.unwrap().parse::<usize>().unwrap()
        });
        if read == 0 || length == Some(true) {
            return text.into_owned();
        }
    }
}

fn post(server: &Server, path: &str, body: &Value) -> Value {
    let (host, token) = parts(server.address());
    let body = body.to_string();
    let head = format!(
        "POST /{token}/{path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer = send(host, &(head + &body));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Asks until the table has been read.
fn ask(server: &Server, question: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let answer = post(server, "ask", question);
        let reading = &answer["reading"];
        let is_over = reading["is_complete"] != false || reading["error"] != Value::Null || answer["error"] != Value::Null;
        if is_over || begun.elapsed() > Duration::from_secs(60) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_has_the_address_is_let_in() {
    let server = page(&session(), "sample.iris").await;
    let (host, token) = parts(server.address());
    let port = host.split_once(':').unwrap().1;
    assert!(host.starts_with("127.0.0.1:") && token.len() == 32, "{host} {token}");
    let get = |path: &str, headers: &str| send(host, &format!("GET {path} HTTP/1.1\r\n{headers}\r\n"));
    let good = get(&format!("/{token}/"), &format!("host: {host}\r\n"));
    assert!(good.starts_with("HTTP/1.1 200") && good.contains("<title>Pursuit</title>"), "{good}");
    let policy = good.lines().find(|line| line.starts_with("content-security-policy:")).unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(get(&format!("/{token}/about"), &format!("host: localhost:{port}\r\n")).starts_with("HTTP/1.1 200"));

    let mut other = token.to_string();
    other.replace_range(..1, if token.starts_with('0') { "1" } else { "0" });
    for path in ["/", "//", "/about", &format!("/{other}/"), &format!("/{}/", &token[..31]), &format!("/x/../{token}/")] {
        let refused = get(path, &format!("host: {host}\r\n"));
        assert!(
            refused.starts_with("HTTP/1.1 403") && refused.ends_with("wrong token: open the address that pursuit printed"),
            "{path}: {refused}"
        );
    }
    for headers in [
        "",
        "host: evil.example\r\n",
        &format!("host: evil.example:{port}\r\n"),
        &format!("host: {host}\r\nhost: {host}\r\n"),
        "host: 127.0.0.1\r\n",
    ] {
        let refused = get(&format!("/{token}/"), headers);
        assert!(refused.starts_with("HTTP/1.1 403") && refused.ends_with("wrong host"), "{headers}: {refused}");
    }
    // Another page may send the request of a form without being let read the answer; a browser says whose it is.
    for origin in ["origin: https://evil.example\r\n", "origin: null\r\n", &format!("origin: https://{host}\r\n"), ""] {
        let refused = send(host, &format!("POST /{token}/ask HTTP/1.1\r\nhost: {host}\r\n{origin}content-length: 2\r\n\r\n{{}}"));
        assert!(refused.starts_with("HTTP/1.1 403") && refused.ends_with("wrong origin"), "{origin}: {refused}");
    }
    let refused = get(&format!("/{token}/"), &format!("host: {host}\r\norigin: http://evil.example\r\n"));
    assert!(refused.ends_with("wrong origin"), "{refused}");
    for nonsense in ["\u{16}\u{3}\u{1}", "GET\r\n\r\n", "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"] {
        assert!(!send(host, &format!("{nonsense}\r\n\r\n")).contains("200 OK"));
    }
    assert!(get(&format!("/{token}/../../etc/passwd"), &format!("host: {host}\r\n")).starts_with("HTTP/1.1 404"));
}

/// Asks the page and runs its SQL: the same features in the same order, and the same numbers but for the last digits.
async fn agrees(ctx: &SessionContext, server: &Server, question: Value) {
    let answer = ask(server, &question);
    assert_eq!(answer["error"], Value::Null, "{question}");
    let sql = answer["sql"].as_str().unwrap();
    let batches = query(ctx, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let rows = answer["answer"]["rows"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let features: Vec<&str> = rows.iter().map(|row| row["feature"].as_str().unwrap()).collect();
    assert_eq!(features, texts(&batches, "feature"), "{sql}");
    assert!(!features.is_empty());
    let mut start = 0;
    for batch in &batches {
        for name in ["score", "train_score", "valid_score", "coefficient"] {
            let column = batch.column_by_name(name).unwrap().as_primitive::<Float64Type>();
            for (at, expected) in column.iter().enumerate() {
                let found = rows[start + at].get(name).and_then(Value::as_f64);
                let close = match (found, expected) {
                    (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs().max(1e-3),
                    (found, expected) => found.is_none() && expected.is_none(),
                };
                assert!(close, "{name} of row {}: {found:?}, SQL says {expected:?}\n{sql}", start + at + 1);
            }
        }
        start += batch.num_rows();
    }
}

/// A table with everything in it: numbers with NULLs, texts of few and of many values, groups, weights.
const MIXED: &str = "CREATE TABLE mixed AS SELECT *, a + 2 * b + CASE city WHEN 'c1' THEN 3 WHEN 'c2' THEN -2 ELSE 0 END + 0.1 * sin(i * 11) AS y FROM (
  SELECT i, sin(i * 1.7) AS a, CASE WHEN i % 7 = 0 THEN NULL ELSE cos(i * 0.9) END AS b, sin(i * 4.1) AS c,
    concat('c', CAST(i % 9 AS VARCHAR)) AS city, concat('u', CAST(i % 70 AS VARCHAR)) AS user, i % 3 AS part,
    CASE WHEN i % 5 = 0 THEN NULL ELSE concat('g''', CAST(i % 2 AS VARCHAR)) END AS team, 1 + i % 4 AS w
  FROM (SELECT value AS i FROM generate_series(1, 600)))";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_answers_as_its_sql_does() {
    let ctx = session();
    query(&ctx, MIXED).await.unwrap();
    let at_once: Vec<&str> = pursuit_udfs::selectors()
        .iter()
        .filter(|spec| spec.selector(&Settings::new()).is_ok_and(|selector| selector.reads() == Reads::Moments))
        .filter(|spec| spec.labels != Labels::Classes)
        .map(|spec| spec.name)
        .collect();
    assert!(at_once.len() >= 3, "{at_once:?}");
    let diabetes = page(&ctx, "sample.diabetes").await;
    for selector in &at_once {
        for settings in
            [json!({"k": 4}), json!({"k": 3, "exclude": ["bmi", "s5"], "must_include": ["age"]}), json!({"k": 3, "folds": 5})]
        {
            agrees(&ctx, &diabetes, json!({"label": "label", "selector": selector, "settings": settings, "split": null})).await;
        }
    }
    let mixed = page(&ctx, "mixed").await;
    let first = at_once[0];
    let all = json!({"by": "part", "groups": null});
    let (two, none) = (json!({"by": "part", "groups": ["0", "2"]}), json!({"by": "team", "groups": ["NULL", "'g''1'"]}));
    for (settings, split) in [
        (json!({"k": 5, "exclude": ["i"]}), &Value::Null),
        (json!({"k": 5, "exclude": ["i"], "weights": "w"}), &Value::Null),
        (json!({"k": 5, "exclude": ["i", "b"], "nulls": "drop"}), &Value::Null),
        (json!({"k": 5, "exclude": ["i"], "nulls": "indicator", "folds": 5}), &all),
        (json!({"k": 4, "max_levels": 3}), &Value::Null),
        (json!({"k": 4, "max_levels": 1}), &two),
        (json!({"k": 4, "max_levels": 60, "exclude": ["i"]}), &Value::Null),
        (json!({"k": "auto", "folds": 5}), &two),
        (json!({"k": "one_se", "folds": 5}), &none),
        (json!({"k": 5}), &none),
    ] {
        let question = json!({"label": "y", "selector": first, "settings": settings, "split": split});
        // What a column that is left out has in it decides which fold a row is in.
        let asked = if settings.get("folds").is_some() && settings.get("exclude").is_some() {
            let mut question = question.clone();
            question["settings"].as_object_mut().unwrap().remove("exclude");
            question
        } else {
            question
        };
        agrees(&ctx, &mixed, asked).await;
    }
    // A query, and a label of classes.
    let wine = page(&ctx, "SELECT * FROM sample.wine WHERE alcohol > 12;").await;
    agrees(&ctx, &wine, json!({"label": "label", "selector": first, "settings": {"k": 3}, "split": null})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feature_is_shown_with_what_is_like_it_and_what_would_replace_it() {
    let ctx = session();
    query(&ctx, "CREATE TABLE twins AS SELECT sin(i) AS a, sin(i) + 0.01 * cos(i * 3) AS twin, cos(i * 2.3) AS b, 2 * sin(i) + cos(i * 2.3) AS y FROM (SELECT value AS i FROM generate_series(1, 200))")
        .await
        .unwrap();
    let server = page(&ctx, "twins").await;
    let selector = pursuit_udfs::selectors()[0].name;
    let question = json!({"label": "y", "selector": selector, "settings": {"k": 2}, "split": null});
    ask(&server, &question);
    let detail = post(&server, "feature", &json!({"feature": "a", "question": question}));
    assert_eq!(detail["alike"][0]["feature"], "twin");
    assert!(detail["alike"][0]["correlation"].as_f64().unwrap() > 0.99);
    let without: Vec<&str> = detail["without"].as_array().unwrap().iter().map(|row| row["feature"].as_str().unwrap()).collect();
    assert_eq!(without, ["twin", "b"]);
    let listed = post(&server, "features", &question);
    let names: Vec<&str> = listed["features"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!((names, listed["rows"].as_u64()), (vec!["a", "twin", "b"], Some(200)));
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_one_line() {
    let ctx = session();
    let open = async |input: &str, label: Option<&str>| match Page::open(&ctx, &Engine::default(), input, label).await {
        Ok(_) => panic!("{input} must be refused"),
        Err(error) => error.strip_backtrace(),
    };
    let message = open("sample.wein", None).await;
    assert!(message.contains("ui: no table and no file named `sample.wein`; did you mean `sample.wine`?"), "{message}");
    let message = open("sample.wine", Some("lable")).await;
    assert!(message.contains("ui: no column `lable` in `sample.wine`; did you mean `label`?"), "{message}");
    let server = page(&ctx, "sample.wine").await;
    let selector = pursuit_udfs::selectors()[0].name;
    let error = |question: Value| ask(&server, &question)["error"].as_str().unwrap_or_default().to_string();
    assert!(
        error(json!({"label": "label", "selector": "nothing", "settings": {}, "split": null}))
            .starts_with("ui: no selector named `nothing`")
    );
    let message = error(json!({"label": "label", "selector": selector, "settings": {"kk": 3}, "split": null}));
    assert!(message.starts_with(&format!("{selector}: unknown option `kk`; did you mean `k`?")), "{message}");
    let message =
        error(json!({"label": "label", "selector": selector, "settings": {"k": 2, "must_include": ["x"]}, "split": null}));
    assert!(message.contains("`must_include` names `x`, which is not a feature"), "{message}");
    let split = json!({"by": "alcohol", "groups": null});
    let answer = ask(&server, &json!({"label": "label", "selector": selector, "settings": {"k": 2}, "split": split}));
    let message = answer["reading"]["error"].as_str().unwrap_or_default();
    assert!(message.contains("ui: the column to group by has more than 100 values"), "{answer}");
}

/// A long selection ends when it is cancelled, and one that is left alone gives the answer of its query.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_the_background_is_cancelled_or_answers() {
    let ctx = session();
    let server = page(&ctx, "sample.diabetes").await;
    let slow = pursuit_udfs::selectors()
        .into_iter()
        .find(|spec| spec.selector(&Settings::new()).is_ok_and(|selector| selector.reads() == Reads::Rows));
    let selector = slow.unwrap().name;
    let long = json!({"label": "label", "selector": selector, "settings": {"k": 5, "epochs": 100000}, "split": null});
    let id = post(&server, "run", &long)["id"].clone();
    std::thread::sleep(Duration::from_millis(500));
    let state = post(&server, "state", &json!({"id": id}));
    assert_eq!((state["is_over"].as_bool(), &state["error"]), (Some(false), &Value::Null), "{state}");
    let state = post(&server, "cancel", &json!({"id": id}));
    assert_eq!((state["is_over"].as_bool(), state["is_cancelled"].as_bool()), (Some(true), Some(true)), "{state}");
    let short = json!({"label": "label", "selector": selector, "settings": {"k": 2, "epochs": 2}, "split": null});
    let id = post(&server, "run", &short)["id"].clone();
    let begun = Instant::now();
    let state = loop {
        let state = post(&server, "state", &json!({"id": id}));
        if state["is_over"] == true || begun.elapsed() > Duration::from_secs(60) {
            break state;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let found: Vec<&str> = state["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("{state}"))
        .iter()
        .map(|row| row["feature"].as_str().unwrap())
        .collect();
    let expected = query(&ctx, state["sql"].as_str().unwrap()).await.unwrap();
    assert_eq!(found, texts(&expected, "feature"));
}
