//! Numbers for an operator: `/metrics` in Prometheus' form and `/healthz`, on a port of their own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::limits::Kind;
use crate::server::Server;

/// Bounds of the histogram, in seconds.
const BOUNDS: [f64; 8] = [0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0];

/// What is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    pub connections: AtomicI64,
    pub connections_total: AtomicU64,
    pub logins_failed_total: AtomicU64,
    pub waiting: AtomicI64,
    running: [AtomicI64; 3],
    /// Statements by what they were and how they ended.
    ended: Mutex<BTreeMap<(Kind, &'static str), u64>>,
    seconds: Mutex<Histogram>,
}

#[derive(Debug, Default)]
struct Histogram {
    counts: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    pub fn begin(&self, kind: Kind) {
        self.running[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back [`Self::begin`].
    pub fn end(&self, kind: Kind) {
        self.running[kind as usize].fetch_sub(1, Ordering::Relaxed);
    }

    pub fn statement(&self, kind: Kind, outcome: &'static str, took: Duration) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner).entry((kind, outcome)).or_default() += 1;
        let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let took = took.as_secs_f64();
        for (count, bound) in seconds.counts.iter_mut().zip(BOUNDS) {
            *count += u64::from(took <= bound);
        }
        (seconds.count, seconds.sum) = (seconds.count + 1, seconds.sum + took);
    }

    /// All of it as text.
    fn print(&self, memory_used: usize, memory_limit: usize) -> String {
        let mut text = String::new();
        let mut one = |name: &str, kind: &str, help: &str, value: f64| {
            let _ = writeln!(text, "# HELP pursuit_{name} {help}\n# TYPE pursuit_{name} {kind}\npursuit_{name} {value}");
        };
        let read = |value: &AtomicI64| value.load(Ordering::Relaxed) as f64;
        let total = |value: &AtomicU64| value.load(Ordering::Relaxed) as f64;
        one("connections", "gauge", "Clients that are connected.", read(&self.connections));
        one("connections_total", "counter", "Clients that have connected.", total(&self.connections_total));
        one("logins_failed_total", "counter", "Logins that were refused.", total(&self.logins_failed_total));
        one("selections_waiting", "gauge", "Selections that wait for a place.", read(&self.waiting));
        one("memory_reserved_bytes", "gauge", "Memory that queries and tables have asked for.", memory_used as f64);
        one("memory_limit_bytes", "gauge", "Memory that they may ask for.", memory_limit as f64);
        one("resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes().unwrap_or(0) as f64);
        let _ =
            writeln!(text, "# HELP pursuit_statements_running Statements that run now.\n# TYPE pursuit_statements_running gauge");
        for kind in Kind::ALL {
            let running = read(&self.running[kind as usize]);
            let _ = writeln!(text, "pursuit_statements_running{{kind=\"{}\"}} {running}", kind.name());
        }
        let _ = writeln!(
            text,
            "# HELP pursuit_statements_total Statements that have ended.\n# TYPE pursuit_statements_total counter"
        );
        for ((kind, outcome), count) in self.ended.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = writeln!(text, "pursuit_statements_total{{kind=\"{}\",outcome=\"{outcome}\"}} {count}", kind.name());
        }
        let seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(
            text,
            "# HELP pursuit_statement_seconds How long statements took.\n# TYPE pursuit_statement_seconds histogram"
        );
        for (count, bound) in seconds.counts.iter().zip(BOUNDS) {
            let _ = writeln!(text, "pursuit_statement_seconds_bucket{{le=\"{bound}\"}} {count}");
        }
        let (count, sum) = (seconds.count, seconds.sum);
        let _ = writeln!(text, "pursuit_statement_seconds_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "pursuit_statement_seconds_sum {sum}\npursuit_statement_seconds_count {count}");
        text
    }
}

/// Memory of this process that is in RAM, where the system tells.
fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}

/// Most bytes of a request, and the time that it may take to come.
const REQUEST_MAX: usize = 4096;
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// Answers until the server ends.
pub async fn serve(listener: TcpListener, server: Arc<Server>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REQUEST_TIME, answer(stream, &server)).await;
        });
    }
}

async fn answer(mut stream: TcpStream, server: &Server) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut part).await?;
        if read == 0 || request.len() + read > REQUEST_MAX {
            return Ok(());
        }
        request.extend_from_slice(&part[..read]);
    }
    let path = std::str::from_utf8(&request).ok().and_then(|text| text.split(' ').nth(1)).unwrap_or_default();
    let (status, body) = match path {
        "/healthz" if server.stopping.is_cancelled() => ("503 Service Unavailable", "shutting down\n".to_string()),
        "/healthz" => ("200 OK", "ok\n".to_string()),
        "/metrics" => ("200 OK", server.metrics.print(server.memory_used(), server.memory_limit)),
        _ => ("404 Not Found", "there are /metrics and /healthz\n".to_string()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_printed_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        metrics.begin(Kind::Rows);
        metrics.statement(Kind::Moments, "ok", Duration::from_millis(20));
        metrics.statement(Kind::Moments, "ok", Duration::from_secs(2));
        let text = metrics.print(7, 100);
        for line in [
            "pursuit_statements_running{kind=\"rows\"} 1",
            "pursuit_statements_total{kind=\"moments\",outcome=\"ok\"} 2",
            "pursuit_statement_seconds_bucket{le=\"0.05\"} 1",
            "pursuit_statement_seconds_bucket{le=\"+Inf\"} 2",
            "pursuit_memory_limit_bytes 100",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
    }
}
