//! The flood: handshakes from many addresses, none of which is ever completed.
//!
//! Half of them are sound Hellos, which ask for a cookie; a quarter sound Connects with a cookie of another server; a quarter
//! random bytes behind the protocol id.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use muse_bench_workload::control::Control;
use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions};
use muse_transport::{Connect, Endpoint, SeededEntropy, ServerKey, ServerOptions};
use muse_wire::{Datagram, Ecn, Instant, Machine, Transmit};
use serde::{Deserialize, Serialize};

use crate::crowd;

/// The server to flood.
#[derive(Args)]
pub struct FloodArguments {
    /// The server.
    #[arg(long)]
    server: SocketAddr,
    /// Datagrams that go to the kernel as one; it takes them apart at less cost than it sends single ones.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    train: u8,
}

/// Packets sent, and answers received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloodReport {
    /// Datagrams sent.
    pub(crate) sent: u64,
    /// Their payload.
    pub(crate) sent_bytes: u64,
    /// Length of the shortest.
    pub(crate) question_len_min: u64,
    /// Replies received.
    pub(crate) replies: u64,
    /// Their payload.
    pub(crate) reply_bytes: u64,
    /// Length of the longest.
    pub(crate) reply_len_max: u64,
}

/// Floods from `go` to `stop`.
pub(crate) fn run(arguments: &FloodArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let questions = questions(arguments.server)?;
    let shortest = questions.iter().map(Vec::len).min().unwrap_or(0);
    let mut flood = Flood {
        to: arguments.server,
        report: FloodReport {
            question_len_min: shortest as u64,
            ..FloodReport::default()
        },
        trains: trains(&questions, arguments.train.into()),
        next: 0,
        left: 0,
    };
    let options = UdpOptions::default().ecn(false).gro(false);
    let mut drivers: Vec<UdpDriver> = (0..ADDRESSES)
        .map(|number| UdpDriver::bind(source(number), &options))
        .collect::<std::io::Result<_>>()?;
    control.started();
    while !control.has_started() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let clock = Clock::start();
    while !control.has_stopped() {
        for driver in &mut drivers {
            flood.left = BATCH;
            driver.flush(clock.now(), &mut flood)?;
            driver.receive(clock.now(), &mut flood)?;
        }
    }
    control.result(&flood.report);
    Ok(ExitCode::SUCCESS)
}

/// Sends its questions over and over, as many at a time as it is told.
struct Flood {
    to: SocketAddr,
    trains: Vec<Train>,
    next: usize,
    left: usize,
    report: FloodReport,
}

/// Questions of one length, one behind the other.
struct Train {
    bytes: Vec<u8>,
    segment: usize,
}

impl Machine for Flood {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        let len = datagram.payload.len() as u64;
        self.report.replies += 1;
        self.report.reply_bytes += len;
        self.report.reply_len_max = self.report.reply_len_max.max(len);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        let train = &self.trains[self.next % self.trains.len()];
        let len = train.bytes.len();
        self.next += 1;
        buffer.get_mut(..len)?.copy_from_slice(&train.bytes);
        self.report.sent += (len / train.segment) as u64;
        self.report.sent_bytes += len as u64;
        Some(Transmit {
            to: self.to,
            len,
            segment: (len > train.segment).then_some(train.segment),
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

/// Makes the packets to send: two Hellos, a Connect and a garbled one in turn, all different.
fn questions(server: SocketAddr) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut other = Endpoint::new(crowd::config()?, SeededEntropy::danger_seeded(1));
    let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(2));
    let public = key.public();
    other.listen(ServerOptions::new(key));
    let mut rng = fastrand::Rng::with_seed(3);
    let mut questions = Vec::new();
    for seed in 0..QUESTIONS {
        let entropy = SeededEntropy::danger_seeded(10 + seed);
        let mut client = Endpoint::new(crowd::config()?, entropy);
        let now = Instant::ZERO;
        client.connect(now, server, Connect::pinned(public))?;
        let hello = packet(&mut client).context("a client begins with a Hello")?;
        handle(&mut other, source(0), &hello);
        let cookie = packet(&mut other).context("a Hello is answered")?;
        handle(&mut client, server, &cookie);
        let connect = packet(&mut client).context("a cookie is followed by a Connect")?;
        let mut garbled = connect.clone();
        rng.fill(&mut garbled[KIND_AND_PROTOCOL_LEN..]);
        questions.extend([hello.clone(), connect, hello, garbled]);
    }
    Ok(questions)
}

/// The questions in trains of `len`, each of one kind.
fn trains(questions: &[Vec<u8>], len: usize) -> Vec<Train> {
    let mut trains = Vec::new();
    for batch in questions.chunks(KINDS * len) {
        for kind in 0..KINDS {
            let of_kind = || batch.iter().skip(kind).step_by(KINDS);
            trains.push(Train {
                bytes: of_kind().flatten().copied().collect(),
                segment: of_kind().map(Vec::len).max().unwrap_or(1),
            });
        }
    }
    trains
}

fn packet(endpoint: &mut Endpoint) -> Option<Vec<u8>> {
    let mut buffer = [0; 2_000];
    let transmit = endpoint.poll_transmit(Instant::ZERO, &mut buffer)?;
    Some(buffer[..transmit.len].to_vec())
}

fn handle(endpoint: &mut Endpoint, from: SocketAddr, packet: &[u8]) {
    let mut payload = packet.to_vec();
    let datagram = Datagram {
        from,
        ecn: Ecn::NotCapable,
        payload: &mut payload,
    };
    endpoint.handle_datagram(Instant::ZERO, datagram);
}

/// An address of this machine's own, each in another network of 256.
fn source(number: u8) -> SocketAddr {
    SocketAddr::from(([127, 66, number, 1], 0))
}

const ADDRESSES: u8 = 64;
const BATCH: usize = 128;
const QUESTIONS: u64 = 256;
/// A Hello, a Connect, another Hello, a garbled Connect.
const KINDS: usize = 4;
const KIND_AND_PROTOCOL_LEN: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_of_three_kinds_and_hellos_are_the_shortest() {
        let questions = questions(source(9)).expect("handshakes");
        assert_eq!(questions.len(), 4 * QUESTIONS as usize);
        let kinds: Vec<u8> = questions[..4].iter().map(|question| question[0]).collect();
        assert_eq!(kinds, [1, 3, 1, 3]);
        assert!(questions[0].len() < questions[1].len());
        assert_ne!(questions[0], questions[4]);
        assert_ne!(questions[1], questions[3]);
        assert_eq!(questions[1][..9], questions[3][..9]);
        let trains = trains(&questions, 16);
        assert_eq!(trains.len(), questions.len() / 16);
        let first: Vec<&[u8]> = trains[0].bytes.chunks(trains[0].segment).collect();
        assert_eq!(first[1], questions[4]);
        assert!(
            trains
                .iter()
                .all(|train| train.bytes.len() == 16 * train.segment)
        );
    }
}
