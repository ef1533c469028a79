//! Who may ask: a browser on this machine that was given the address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::runtime::JoinSet;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::http::{Request, Response, converse};
use super::page::Page;

/// The page on a port of the loopback address. Dropping it ends it.
pub struct Server {
    address: String,
    _stop: oneshot::Sender<()>,
}

/// Who is let in.
struct Door {
    port: u16,
    token: String,
    page: Page,
}

impl Server {
    /// Listens on a port, or on any that is free if it is 0. Browsers are answered on a thread of their own, so that they need not wait for those that read.
    pub fn start(page: Page, port: u16) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        listener.set_nonblocking(true)?;
        let door = Arc::new(Door { port: listener.local_addr()?.port(), token: token()?, page });
        let address = format!("http://127.0.0.1:{}/{}/", door.port, door.token);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = accept(listener, door) => {}
                    _ = stopped => {}
                }
            })
        };
        std::thread::Builder::new().name("pursuit-ui".to_string()).spawn(serve)?;
        Ok(Self { address, _stop: stop })
    }

    /// The address with the token: who has it may ask.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Connections that are held at once: a browser opens six.
const CONNECTIONS_MAX: usize = 64;

async fn accept(listener: std::net::TcpListener, door: Arc<Door>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let door = Arc::clone(&door);
                    connections.spawn(async move { converse(stream, |request| door.answer(request)).await });
                }
                // The system is out of something: others may give it back.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
        }
        while connections.len() > CONNECTIONS_MAX {
            connections.join_next().await;
        }
    }
}

impl Door {
    async fn answer(&self, request: Request) -> Response {
        match self.admit(&request) {
            Ok(path) => self.page.answer(path, &request).await,
            Err(why) => Response::text("403 Forbidden", why),
        }
    }

    /// The path behind the token. The name of the host keeps out pages that had their own name lead to this machine, the origin those that send requests
    /// of their own, the token everybody else on the machine.
    fn admit<'a>(&self, request: &'a Request) -> Result<&'a str, &'static str> {
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        if !request.header("host").is_some_and(|host| hosts.iter().any(|known| known == host)) {
            return Err("wrong host");
        }
        let is_ours = |origin: &str| origin.strip_prefix("http://").is_some_and(|host| hosts.iter().any(|known| known == host));
        let is_foreign = request.has("origin") && !request.header("origin").is_some_and(is_ours);
        if is_foreign || (request.method != "GET" && !request.has("origin")) {
            return Err("wrong origin");
        }
        let path = request.path.strip_prefix('/').unwrap_or_default();
        let (token, _) = path.split_once('/').unwrap_or((path, ""));
        if !equal(token, &self.token) {
            return Err("wrong token: open the address that pursuit printed");
        }
        Ok(&path[token.len()..])
    }
}

/// Takes the same time wherever two texts differ.
fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// 128 random bits of the system.
fn token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::getrandom(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
