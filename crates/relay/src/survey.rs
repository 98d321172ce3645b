//! Measures the distance of several relays: a few questions to each, and the shortest round trip of each.

use std::net::SocketAddr;

use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

use super::cookie::Secrets;
use super::nearest::Report;
use super::packet::{PACKET_LEN_MAX, Packet, VERSION};

/// Measures the round trips to relays; run it as a machine until [`is_done`](Self::is_done).
pub struct Survey {
    relays: Vec<Subject>,
    secrets: Secrets,
    began: Instant,
    /// The next question to ask: round, then relay.
    next: (u32, usize),
    public: Option<SocketAddr>,
}

#[derive(Debug)]
struct Subject {
    address: SocketAddr,
    asked: [Option<(u64, Instant)>; QUESTIONS as usize],
    answers: u32,
    shortest: Option<Duration>,
}

impl Survey {
    /// Asks these relays, at most [`RELAYS_MAX`] of them. `seed` is secret randomness.
    pub fn new(now: Instant, relays: &[SocketAddr], seed: [u8; 32]) -> Self {
        let subject = |address: &SocketAddr| Subject {
            address: *address,
            asked: [None; QUESTIONS as usize],
            answers: 0,
            shortest: None,
        };
        Self {
            relays: relays.iter().take(RELAYS_MAX).map(subject).collect(),
            secrets: Secrets::new(&seed),
            began: now,
            next: (0, 0),
            public: None,
        }
    }

    /// True if every answer is there, or time is up.
    pub fn is_done(&self, now: Instant) -> bool {
        let answered = self.relays.iter().all(|relay| relay.answers >= QUESTIONS);
        answered || now.saturating_since(self.began) >= TIME_MAX
    }

    /// The shortest round trip to each relay, so far.
    pub fn report(&self) -> Report {
        Report {
            round_trips: self.relays.iter().map(|relay| relay.shortest).collect(),
        }
    }

    /// Our address as a relay sees it.
    pub fn public_address(&self) -> Option<SocketAddr> {
        self.public
    }

    fn round_at(&self) -> Option<Instant> {
        let (round, _) = self.next;
        let more = round < QUESTIONS && !self.relays.is_empty();
        more.then(|| self.began + QUESTION_INTERVAL * u64::from(round))
    }
}

impl Machine for Survey {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some(Packet::Cookie {
            random, observed, ..
        }) = Packet::parse(datagram.payload)
        else {
            return;
        };
        let random = u64::from_le_bytes(random);
        let from = self
            .relays
            .iter_mut()
            .filter(|relay| relay.address == datagram.from);
        for relay in from {
            for asked in &mut relay.asked {
                if let Some((_, at)) = asked.take_if(|(known, _)| *known == random) {
                    let time = now.saturating_since(at);
                    relay.answers += 1;
                    relay.shortest = Some(relay.shortest.map_or(time, |best| best.min(time)));
                    self.public = Some(observed);
                }
            }
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        if self.round_at()? > now {
            return None;
        }
        let (round, index) = self.next;
        let random = self.secrets.draw();
        let relay = self.relays.get_mut(index)?;
        relay.asked[round as usize] = Some((random, now));
        let to = relay.address;
        self.next = match index + 1 {
            last if last == self.relays.len() => (round + 1, 0),
            next => (round, next),
        };
        let hello = Packet::Hello {
            version: VERSION,
            random: random.to_le_bytes(),
        };
        let len = hello.emit(buffer.first_chunk_mut::<PACKET_LEN_MAX>()?);
        Some(Transmit {
            to,
            len,
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.round_at()
    }
}

impl std::fmt::Debug for Survey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Survey")
            .field("relays", &self.relays)
            .finish_non_exhaustive()
    }
}

/// Most relays in a survey.
pub const RELAYS_MAX: usize = 32;
/// Questions to each: the shortest of a few round trips is hardly disturbed by queues.
const QUESTIONS: u32 = 5;
const QUESTION_INTERVAL: Duration = Duration::from_millis(100);
const TIME_MAX: Duration = Duration::from_secs(2);
