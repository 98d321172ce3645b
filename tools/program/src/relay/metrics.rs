//! Metrics in the Prometheus text format, over the smallest HTTP server that a scraper is content with.
//!
//! A thread of its own answers; the loop that is measured only writes a text when one has been asked for.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use anyhow::Context;

/// An HTTP server with one page.
pub struct Metrics {
    address: SocketAddr,
    asked: Receiver<Sender<String>>,
}

impl Metrics {
    /// Listens at `address`.
    pub fn serve(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .with_context(|| format!("cannot serve metrics at {address}"))?;
        let address = listener.local_addr()?;
        let (sender, asked) = sync_channel(1);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Err(error) = answer(stream, &sender) {
                    tracing::debug!("metrics: {error}");
                }
            }
        });
        Ok(Self { address, asked })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Hands the page over if somebody waits for it.
    pub fn publish_if_asked(&self, page: impl FnOnce() -> String) {
        match self.asked.try_recv() {
            Ok(reply) => drop(reply.send(page())),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => (),
        }
    }
}

fn answer(mut stream: TcpStream, ask: &SyncSender<Sender<String>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new((&stream).take(REQUEST_MAX));
    let mut first = String::new();
    request.read_line(&mut first)?;
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = first.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics" | "/")) => {
            let (sender, reply) = channel();
            // The loop looks every tick; it has ended when it does not.
            let page = ask.try_send(sender).ok().map(|()| reply);
            match page.and_then(|page| page.recv_timeout(PATIENCE).ok()) {
                Some(page) => ("200 OK", page),
                None => ("503 Service Unavailable", "not now\n".to_owned()),
            }
        }
        _ => ("404 Not Found", "see /metrics\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A page under construction.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// A number that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        let _ = writeln!(self.0, "{name} {value}");
    }

    /// A number that grows by cause: the label's name, then its values.
    pub fn counters(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        self.head(name, help, "counter");
        for (cause, value) in values {
            let _ = writeln!(self.0, "{name}{{{label}=\"{cause}\"}} {value}");
        }
    }

    /// A number that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        let _ = writeln!(self.0, "{name} {value}");
    }

    /// How often values were at most so much: the limits of the buckets in seconds, and one more count for those beyond.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        let mut sum = 0;
        for (limit, count) in BUCKETS_US.iter().zip(histogram.counts) {
            sum += count;
            let limit = *limit as f64 / 1e6;
            let _ = writeln!(self.0, "{name}_bucket{{le=\"{limit}\"}} {sum}");
        }
        let all = histogram.counts.iter().sum::<u64>();
        let _ = writeln!(self.0, "{name}_bucket{{le=\"+Inf\"}} {all}");
        let _ = writeln!(self.0, "{name}_sum {}", histogram.sum_us as f64 / 1e6);
        let _ = writeln!(self.0, "{name}_count {all}");
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

/// How long things took, in buckets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Histogram {
    counts: [u64; BUCKETS_US.len() + 1],
    sum_us: u64,
}

impl Histogram {
    /// One more.
    pub fn add(&mut self, time: muse_wire::Duration) {
        let micros = time.as_micros();
        let bucket = BUCKETS_US.partition_point(|&limit| limit < micros);
        self.counts[bucket] += 1;
        self.sum_us = self.sum_us.saturating_add(micros);
    }
}

/// From far below a tick to several.
const BUCKETS_US: [u64; 12] = [
    100, 250, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
];
const PATIENCE: Duration = Duration::from_secs(2);
const REQUEST_MAX: u64 = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_prometheus_reads() {
        let mut page = Page::default();
        page.counter("a_total", "Some.", 3);
        page.counters("b_total", "Others.", "why", &[("x", 1), ("y", 2)]);
        let mut histogram = Histogram::default();
        histogram.add(muse_wire::Duration::from_micros(100));
        histogram.add(muse_wire::Duration::from_micros(101));
        histogram.add(muse_wire::Duration::from_secs(9));
        page.histogram("c_seconds", "Times.", &histogram);
        let text = page.finish();
        let expected = "# HELP a_total Some.\n# TYPE a_total counter\na_total 3\n# HELP b_total Others.\n# TYPE b_total counter\nb_total{why=\"x\"} 1\nb_total{why=\"y\"} 2\n# HELP c_seconds Times.\n# TYPE c_seconds histogram\nc_seconds_bucket{le=\"0.0001\"} 1\nc_seconds_bucket{le=\"0.00025\"} 2\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(
            text.ends_with(
                "c_seconds_bucket{le=\"+Inf\"} 3\nc_seconds_sum 9.000201\nc_seconds_count 3\n"
            ),
            "{text}"
        );
    }
}
