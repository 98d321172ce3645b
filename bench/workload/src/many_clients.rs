//! W1: many clients, each with 20 unreliable and 2 reliable messages of 64 bytes a second; the server echoes each on
//! the same kind of channel. Both sides tick at 16 ms.

use std::time::{Duration, Instant};

use crate::control::Control;
use crate::latency::Latencies;
use crate::message::{Header, unix_nanos};
use crate::options::Options;
use crate::peer::{Kind, Peer, Sent};
use crate::report::Report;
use crate::ticks::{CLIENT_PHASE, SERVER_PHASE, Ticks};

/// Echoes until told to stop.
pub(crate) fn serve<P: Peer>(server: &mut P, control: &Control) -> Report {
    let mut report = Report::default();
    let mut echoes: Vec<(usize, Kind, [u8; MESSAGE_LEN])> = Vec::new();
    let mut ticks = Ticks::new(SERVER_PHASE);
    while !control.has_stopped() {
        server.poll(&mut |connection, kind, message| {
            if let Ok(message) = message.try_into() {
                echoes.push((connection, kind, message));
            }
        });
        for (connection, kind, message) in echoes.drain(..) {
            *count(&mut report, kind, Direction::Received) += 1;
            if server.send(connection, kind, &message) == Sent::Accepted {
                *count(&mut report, kind, Direction::Sent) += 1;
            }
        }
        server.flush();
        ticks.sleep(server);
    }
    report
}

/// Sends on all connections for the run's time, then waits a little for the last echoes.
pub(crate) fn run_clients<P: Peer>(
    clients: &mut P,
    options: &Options,
    control: &Control,
) -> Report {
    let mut run = ClientRun {
        report: Report::default(),
        round_trips: Latencies::default(),
        schedule: Schedule::new(options.clients),
    };
    let mut ticks = Ticks::new(CLIENT_PHASE);
    while !control.has_started() {
        run.receive(clients);
        clients.flush();
        ticks.sleep(clients);
    }
    let started = Instant::now();
    let length = Duration::from_secs(options.seconds);
    let mut done = false;
    while !control.has_stopped() {
        let elapsed = started.elapsed();
        run.receive(clients);
        if elapsed < length {
            run.send(clients, elapsed);
        } else if !done && (run.is_complete() || elapsed > length + DRAIN) {
            control.done();
            done = true;
        }
        clients.flush();
        ticks.sleep(clients);
    }
    run.report.seconds = options.seconds as f64;
    run.report.latency_ms = run.round_trips.summary();
    run.report
}

struct ClientRun {
    report: Report,
    round_trips: Latencies,
    schedule: Schedule,
}

impl ClientRun {
    fn receive<P: Peer>(&mut self, clients: &mut P) {
        clients.poll(&mut |_, _, message| {
            let Some(header) = Header::read(message) else {
                return;
            };
            // The message itself says what it was sent as: bare datagrams know no kinds.
            *count(&mut self.report, header.kind(), Direction::Received) += 1;
            self.round_trips.add(header.age_ms());
        });
    }

    fn send<P: Peer>(&mut self, clients: &mut P, elapsed: Duration) {
        let report = &mut self.report;
        self.schedule.due(elapsed, |connection, kind| {
            let header = Header {
                reliable: kind == Kind::Reliable,
                sent_nanos: unix_nanos(),
                number: *count(report, kind, Direction::Sent),
            };
            let mut message = [0x5a; MESSAGE_LEN];
            header.write(&mut message);
            let sent = clients.send(connection, kind, &message);
            *count(report, kind, Direction::Sent) += u64::from(sent == Sent::Accepted);
        });
    }

    fn is_complete(&self) -> bool {
        let report = &self.report;
        report.unreliable_received + report.reliable_received
            == report.unreliable_sent + report.reliable_sent
    }
}

impl Header {
    fn kind(&self) -> Kind {
        if self.reliable {
            Kind::Reliable
        } else {
            Kind::Unreliable
        }
    }
}

/// Decides who sends when: every client at its own offset, so that the load is even over the ticks.
struct Schedule {
    clients: usize,
    /// Number of slots of each kind that have been served. A slot is one message of one client.
    unreliable_slots: u64,
    reliable_slots: u64,
}

impl Schedule {
    fn new(clients: usize) -> Self {
        Self {
            clients,
            unreliable_slots: 0,
            reliable_slots: 0,
        }
    }

    fn due(&mut self, elapsed: Duration, mut send: impl FnMut(usize, Kind)) {
        let clients = self.clients as u64;
        let per_second = [
            (Kind::Unreliable, UNRELIABLE_PER_SECOND),
            (Kind::Reliable, RELIABLE_PER_SECOND),
        ];
        for (kind, rate) in per_second {
            let slots = match kind {
                Kind::Unreliable => &mut self.unreliable_slots,
                Kind::Reliable => &mut self.reliable_slots,
            };
            let target = elapsed.as_micros() as u64 * rate * clients / 1_000_000;
            while *slots < target {
                send((*slots % clients) as usize, kind);
                *slots += 1;
            }
        }
    }
}

enum Direction {
    Sent,
    Received,
}

fn count(report: &mut Report, kind: Kind, direction: Direction) -> &mut u64 {
    match (kind, direction) {
        (Kind::Unreliable, Direction::Sent) => &mut report.unreliable_sent,
        (Kind::Unreliable, Direction::Received) => &mut report.unreliable_received,
        (Kind::Reliable, Direction::Sent) => &mut report.reliable_sent,
        (Kind::Reliable, Direction::Received) => &mut report.reliable_received,
    }
}

const MESSAGE_LEN: usize = 64;
const UNRELIABLE_PER_SECOND: u64 = 20;
const RELIABLE_PER_SECOND: u64 = 2;
/// Time that the last echoes are awaited.
const DRAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_sends_its_share() {
        let mut schedule = Schedule::new(500);
        let mut sent = vec![(0, 0); 500];
        for tick in 0..=1_250 {
            schedule.due(
                Duration::from_millis(tick * 16),
                |client, kind| match kind {
                    Kind::Unreliable => sent[client].0 += 1,
                    Kind::Reliable => sent[client].1 += 1,
                },
            );
        }
        assert!(sent.iter().all(|&counts| counts == (400, 40)));
    }
}
