//! Requests and answers of HTTP/1.1 on a connection that stays open: as much of it as a browser on the same machine speaks.
//!
//! The parsing is hyper's (`httparse`). hyper itself would need its feature `server`, which object_store and so all of DataFusion would be built
//! anew for, and a page of our own needs neither streams nor other versions of the protocol.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a browser asks for.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header, if it is there exactly once.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let first = found.next()?;
        found.next().is_none().then_some(first.1.as_str())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }
}

/// What it gets.
#[derive(Debug)]
pub(super) struct Response {
    pub status: &'static str,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Response {
    pub(super) fn text(status: &'static str, text: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
    }

    pub(super) fn json(body: String) -> Self {
        Self { status: "200 OK", content_type: "application/json", body: body.into_bytes() }
    }
}

/// Said with every answer: nothing comes from elsewhere, nothing is kept, nobody may show the page inside of another.
const HEADERS: &str = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
x-content-type-options: nosniff\r\n\
referrer-policy: no-referrer\r\n\
cross-origin-opener-policy: same-origin\r\n\
cross-origin-resource-policy: same-origin\r\n\
cache-control: no-store\r\n";

const HEAD_MAX: usize = 16 << 10;
const BODY_MAX: usize = 4 << 20;
const HEADERS_MAX: usize = 64;
/// How long a connection may say nothing.
const IDLE: Duration = Duration::from_secs(300);

/// Answers what comes over a connection, one request after the other, until the browser closes it or speaks nonsense.
pub(super) async fn converse<F>(mut stream: TcpStream, answer: impl Fn(Request) -> F) -> io::Result<()>
where
    F: Future<Output = Response>,
{
    // An answer is one write: nothing is gained by waiting for more.
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let request = match timeout(IDLE, receive(&mut stream, &mut buffer)).await {
            Ok(Ok(Some(request))) => request,
            Ok(Ok(None)) | Err(_) => return Ok(()),
            Ok(Err(refused)) => {
                send(&mut stream, &Response::text(refused, refused)).await?;
                return Ok(());
            }
        };
        let response = answer(request).await;
        send(&mut stream, &response).await?;
    }
}

async fn send(stream: &mut TcpStream, response: &Response) -> io::Result<()> {
    let Response { status, content_type, body } = response;
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n{HEADERS}\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).await
}

/// The next request; `None` at the end, an error for what is none.
async fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<Request>, &'static str> {
    loop {
        if let Some((mut request, head, length)) = parse(buffer)? {
            while buffer.len() < head + length {
                if !more(stream, buffer).await {
                    return Ok(None);
                }
            }
            request.body = buffer[head..head + length].to_vec();
            buffer.drain(..head + length);
            return Ok(Some(request));
        }
        if buffer.len() > HEAD_MAX {
            return Err("431 Request Header Fields Too Large");
        }
        if !more(stream, buffer).await {
            return Ok(None);
        }
    }
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> bool {
    matches!(stream.read_buf(buffer).await, Ok(read) if read > 0)
}

/// The head of a request if all of it is there, the bytes that it takes, and those of the body.
fn parse(buffer: &[u8]) -> Result<Option<(Request, usize, usize)>, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(buffer) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err("400 Bad Request"),
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let request = Request {
        method: parsed.method.unwrap_or_default().to_string(),
        path: parsed.path.unwrap_or_default().to_string(),
        headers: parsed.headers.iter().map(|header| (header.name.to_string(), text(header.value))).collect(),
        body: Vec::new(),
    };
    if request.has("transfer-encoding") || (request.has("content-length") && request.header("content-length").is_none()) {
        return Err("501 Not Implemented");
    }
    let length = request.header("content-length").map_or(Ok(0), str::parse).map_err(|_| "400 Bad Request")?;
    if length > BODY_MAX {
        return Err("413 Content Too Large");
    }
    Ok(Some((request, head, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_when_all_of_it_is_there() {
        let whole = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET";
        for cut in 0..whole.len() - 6 {
            assert!(parse(&whole[..cut]).unwrap().is_none(), "{cut}");
        }
        let (request, head, length) = parse(whole).unwrap().unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str(), request.header("HOST")), ("POST", "/x", Some("a")));
        assert_eq!(&whole[head..head + length], b"abc");
    }

    #[test]
    fn what_is_no_plain_request_is_refused() {
        let refused = |text: &str| parse(text.as_bytes()).unwrap_err()[..3].to_string();
        assert_eq!(refused("GET /x\r\n\r\n"), "400");
        assert_eq!(refused("POST /x HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"), "413");
        assert_eq!(refused("POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), "400");
        assert_eq!(refused("POST /x HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), "501");
        assert_eq!(refused("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), "501");
    }

    #[test]
    fn a_header_that_is_given_twice_has_no_value() {
        let (request, ..) = parse(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").unwrap().unwrap();
        assert!(request.has("host") && request.header("host").is_none());
    }
}
