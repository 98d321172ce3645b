//! W3 and W4: 60 reliable-ordered messages of 100 bytes a second through a bad network; the latency from send call to
//! receive callback. Which network it is, the proxy between the two decides.

use std::time::{Duration, Instant};

use crate::control::Control;
use crate::message::{Header, unix_nanos};
use crate::options::Options;
use crate::peer::{Kind, Peer, Sent};
use crate::report::{LatencySummary, Report};
use crate::ticks::{CLIENT_PHASE, SERVER_PHASE, Ticks};

/// Measures what arrives.
pub(crate) fn serve<P: Peer>(server: &mut P, options: &Options, control: &Control) -> Report {
    let expected = options.seconds * MESSAGES_PER_SECOND;
    let mut report = Report::default();
    let mut latencies = Latencies::default();
    let silence_max = if P::RELIABLE { STALL_MAX } else { SILENCE_MAX };
    let (mut first, mut last, mut done) = (None, Instant::now(), false);
    let mut ticks = Ticks::new(SERVER_PHASE);
    while !control.has_stopped() {
        server.poll(&mut |_, _, message| {
            let Some(header) = Header::read(message).filter(|_| message.len() == MESSAGE_LEN)
            else {
                return;
            };
            latencies.add(header.age_ms());
            report.disordered += u64::from(header.number != report.reliable_received);
            report.reliable_received += 1;
            last = Instant::now();
            first.get_or_insert(last);
        });
        if ticks.due() {
            server.flush();
        }
        let received = report.reliable_received;
        let over = received >= expected || (received > 0 && last.elapsed() > silence_max);
        if over && !done {
            control.done();
            done = true;
        }
        server.wait(WAIT);
    }
    report.seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    report.latency_ms = latencies.summary();
    report
}

/// Sends 60 messages a second, each at its time and at once.
pub(crate) fn run_client<P: Peer>(client: &mut P, options: &Options, control: &Control) -> Report {
    let messages = options.seconds * MESSAGES_PER_SECOND;
    let mut report = Report::default();
    let mut started = None;
    let mut message = [0x5a; MESSAGE_LEN];
    let mut ticks = Ticks::new(CLIENT_PHASE);
    while !control.has_stopped() {
        client.poll(&mut |_, _, _| ());
        // While messages are sent, each of them flushes; otherwise the tick does.
        let sending = control.has_started() && report.reliable_sent < messages;
        let mut flush = ticks.due() && !sending;
        if sending {
            let started = *started.get_or_insert_with(Instant::now);
            let due =
                started + Duration::from_secs(report.reliable_sent) / MESSAGES_PER_SECOND as u32;
            if Instant::now() >= due {
                let header = Header {
                    reliable: true,
                    sent_nanos: unix_nanos(),
                    number: report.reliable_sent,
                };
                header.write(&mut message);
                let sent = client.send(0, Kind::Reliable, &message);
                report.reliable_sent += u64::from(sent == Sent::Accepted);
                flush = true;
            }
        }
        if flush {
            client.flush();
        }
        client.wait(WAIT);
    }
    report
}

/// Times in milliseconds, all kept.
///
/// ```
/// let mut latencies = muse_bench_workload::Latencies::default();
/// for time in 1..=100 {
///     latencies.add(time as f32);
/// }
/// let summary = latencies.summary();
/// assert_eq!((summary.p50, summary.p95, summary.p99, summary.max), (50.0, 95.0, 99.0, 100.0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    times_ms: Vec<f32>,
}

impl Latencies {
    /// Adds a time.
    pub fn add(&mut self, time_ms: f32) {
        self.times_ms.push(time_ms);
    }

    /// The distribution, all zero when there is nothing.
    pub fn summary(&self) -> LatencySummary {
        let mut sorted = self.times_ms.clone();
        sorted.sort_by(f32::total_cmp);
        let quantile = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
        };
        LatencySummary {
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: quantile(1.0),
        }
    }
}

const MESSAGE_LEN: usize = 100;
const MESSAGES_PER_SECOND: u64 = 60;
/// Libraries without a clock of their own are polled at least this often.
const WAIT: Duration = Duration::from_millis(1);
/// Bare datagrams get lost: the run is over when nothing has come for this long.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// A reliable library that has not recovered after this long counts as failed.
const STALL_MAX: Duration = Duration::from_secs(20);
