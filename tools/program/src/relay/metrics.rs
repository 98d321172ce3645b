//! A relay's metrics as a page for Prometheus.
//!
//! A thread of its own answers; the loop that is measured only writes a text when one has been asked for.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics::Key;
use metrics_exporter_prometheus::LabelSet;
use metrics_exporter_prometheus::formatting::{
    write_help_line, write_metric_line, write_type_line,
};
use tokio::sync::oneshot;

/// An HTTP server with one page.
pub struct Metrics {
    address: SocketAddr,
    asked: Receiver<oneshot::Sender<String>>,
}

impl Metrics {
    /// Listens at `address`.
    pub fn serve(address: SocketAddr) -> anyhow::Result<Self> {
        let (ask, asked) = sync_channel(1);
        let pages = Router::new()
            .route("/", get(answer))
            .route("/metrics", get(answer))
            .fallback((StatusCode::NOT_FOUND, "see /metrics\n"))
            .with_state(ask);
        let address = crate::http::serve(address, pages)
            .with_context(|| format!("cannot serve metrics at {address}"))?;
        Ok(Self { address, asked })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Publishes the page if a client is waiting for it.
    pub fn publish_if_asked(&self, page: impl FnOnce() -> String) {
        if let Ok(reply) = self.asked.try_recv() {
            // The client that asked may have disconnected.
            let _ = reply.send(page());
        }
    }
}

async fn answer(State(ask): State<SyncSender<oneshot::Sender<String>>>) -> Response {
    let (sender, reply) = oneshot::channel();
    // The loop looks every tick; it has ended when it does not.
    let page = match ask.try_send(sender) {
        Ok(()) => tokio::time::timeout(PATIENCE, reply).await.ok(),
        Err(_) => None,
    };
    match page {
        Some(Ok(page)) => ([(CONTENT_TYPE, PROMETHEUS_TEXT)], page).into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "not now\n").into_response(),
    }
}

/// Writes a page: for each figure its kind, its name behind the prefix, its help, and its value or a label with a value for each cause.
macro_rules! metrics {
    (@ $page:ident $prefix:literal) => {};
    (@ $page:ident $prefix:literal counter $name:ident $help:literal => $label:ident { $($cause:ident: $value:expr),+ }; $($rest:tt)*) => {
        let causes = [$((stringify!($cause), $value)),+];
        $page.counters(concat!($prefix, stringify!($name)), $help, stringify!($label), &causes);
        metrics!(@ $page $prefix $($rest)*);
    };
    (@ $page:ident $prefix:literal $kind:ident $name:ident $help:literal => $value:expr; $($rest:tt)*) => {
        $page.$kind(concat!($prefix, stringify!($name)), $help, $value);
        metrics!(@ $page $prefix $($rest)*);
    };
    ($prefix:literal; $($figures:tt)+) => {{
        let mut page = $crate::relay::metrics::Page::default();
        metrics!(@ page $prefix $($figures)+);
        page.finish()
    }};
}
pub(super) use metrics;

/// A page under construction.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// Adds a number that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.line(name, None, None, value);
    }

    /// Adds a number that grows by cause: the label's name, then its values.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: &[(&str, u64)],
    ) {
        self.head(name, help, "counter");
        for (cause, value) in values {
            self.line(name, None, Some((label, (*cause).to_owned())), *value);
        }
    }

    /// Adds a number that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: usize) {
        self.head(name, help, "gauge");
        self.line(name, None, None, value as f64);
    }

    /// Adds times in their buckets.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        for (limit, count) in histogram.0.buckets() {
            self.line(name, Some("bucket"), Some(("le", limit.to_string())), count);
        }
        let all = histogram.0.count();
        self.line(name, Some("bucket"), Some(("le", "+Inf".to_owned())), all);
        self.line(name, Some("sum"), None, histogram.0.sum());
        self.line(name, Some("count"), None, all);
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        write_help_line(&mut self.0, name, None, None, help);
        write_type_line(&mut self.0, name, None, None, kind);
    }

    fn line(
        &mut self,
        name: &str,
        suffix: Option<&'static str>,
        label: Option<(&'static str, String)>,
        value: impl std::fmt::Display,
    ) {
        let none = LabelSet::from_key_and_global(&Key::from_static_name(""), &Default::default());
        write_metric_line(&mut self.0, name, suffix, &none, label, value, None);
    }
}

/// Times in buckets.
#[derive(Clone, Debug)]
pub struct Histogram(metrics_util::storage::Histogram);

impl Default for Histogram {
    fn default() -> Self {
        let histogram = metrics_util::storage::Histogram::new(&BUCKETS_S);
        Self(histogram.expect("there are buckets"))
    }
}

impl Histogram {
    /// Counts one more.
    pub fn add(&mut self, time: muse_wire::Duration) {
        self.0.record(time.as_secs_f64());
    }
}

/// From far below a tick to several.
const BUCKETS_S: [f64; 12] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
];
const PATIENCE: Duration = Duration::from_secs(2);
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

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
