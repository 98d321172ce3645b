//! Hosts on the same local network: who looks for games asks everybody, and hosts answer.
//!
//! A question is as long as any answer, and hosts answer local addresses only, so that nobody far away can have them flood a third.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use muse_wire::bytes::{EndOfBytes, Reader, Writer};
use muse_wire::rate::{Rate, TokenBucket};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

use super::packet::is_local;

/// The announcement of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advert {
    /// Of the game; only those who look for the same protocol are answered.
    pub protocol: u64,
    /// The port at which the host's endpoint listens.
    pub port: u16,
    /// The host's public key, to be pinned.
    pub host_key: [u8; 32],
    /// The name that people read, at most [`NAME_MAX`] bytes; the rest is cut off.
    pub name: String,
}

/// A host that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The address to connect to.
    pub address: SocketAddr,
    /// Its announcement.
    pub advert: Advert,
    /// The time at which it was heard last.
    pub heard: Instant,
}

/// Answers questions on a socket bound to [`PORT`].
#[derive(Debug)]
pub struct Announcer {
    advert: Advert,
    answers: TokenBucket,
    waiting: Vec<(SocketAddr, u64)>,
}

impl Announcer {
    /// Answers every question with this.
    pub fn new(now: Instant, advert: Advert) -> Self {
        Self {
            advert,
            answers: TokenBucket::full(now, answer_rate()),
            waiting: Vec::new(),
        }
    }

    /// Announces something else from now on.
    pub fn set_advert(&mut self, advert: Advert) {
        self.advert = advert;
    }
}

impl Machine for Announcer {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some((protocol, random)) = parse_question(datagram.payload) else {
            return;
        };
        let near = is_local(&datagram.from) || datagram.from.ip().is_loopback();
        if near
            && protocol == self.advert.protocol
            && self.waiting.len() < WAITING_MAX
            && self.answers.admit(now, answer_rate(), 1)
        {
            self.waiting.push((datagram.from, random));
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let (to, random) = self.waiting.pop()?;
        let len = emit_answer(&self.advert, random, buffer).ok()?;
        Some(Transmit {
            to,
            len,
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

/// Looks for hosts: asks every second, for as long as it is run.
///
/// ```
/// use muse_relay::lan::{Advert, Announcer, Finder};
/// use muse_wire::{Datagram, Ecn, Instant, Machine};
/// let (here, there) = ("192.168.1.2:50000".parse()?, "192.168.1.3:7786".parse()?);
/// let advert = Advert { protocol: 7, port: 9_000, host_key: [1; 32], name: "Anna's game".to_owned() };
/// let mut announcer = Announcer::new(Instant::ZERO, advert);
/// let mut finder = Finder::new(Instant::ZERO, 7, 42);
///
/// let mut buffer = [0; 1_500];
/// let question = finder.poll_transmit(Instant::ZERO, &mut buffer).expect("it asks at once");
/// announcer.handle_datagram(Instant::ZERO, Datagram { from: here, ecn: Ecn::NotCapable, payload: &mut buffer[..question.len] });
/// let answer = announcer.poll_transmit(Instant::ZERO, &mut buffer).expect("it answers");
/// assert!(answer.len <= question.len);
/// finder.handle_datagram(Instant::ZERO, Datagram { from: there, ecn: Ecn::NotCapable, payload: &mut buffer[..answer.len] });
/// assert_eq!(finder.hosts()[0].address, "192.168.1.3:9000".parse()?);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug)]
pub struct Finder {
    protocol: u64,
    random: u64,
    ask_at: Instant,
    /// The next target of a round.
    target: usize,
    hosts: Vec<Found>,
}

impl Finder {
    /// Looks for games of this protocol. `seed` keeps answers to others apart.
    pub fn new(now: Instant, protocol: u64, seed: u64) -> Self {
        Self {
            protocol,
            random: seed,
            ask_at: now,
            target: 0,
            hosts: Vec::new(),
        }
    }

    /// The hosts that answered within the last seconds, in the order in which they were found.
    pub fn hosts(&self) -> &[Found] {
        &self.hosts
    }
}

impl Machine for Finder {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some((random, advert)) = parse_answer(datagram.payload) else {
            return;
        };
        if random != self.random || advert.protocol != self.protocol {
            return;
        }
        let address = SocketAddr::new(datagram.from.ip(), advert.port);
        let found = Found {
            address,
            advert,
            heard: now,
        };
        if let Some(host) = self.hosts.iter_mut().find(|host| host.address == address) {
            *host = found;
        } else if self.hosts.len() < HOSTS_MAX {
            self.hosts.push(found);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.hosts
            .retain(|host| now.saturating_since(host.heard) <= FORGET);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        if now < self.ask_at {
            return None;
        }
        let to = TARGETS[self.target];
        self.target = (self.target + 1) % TARGETS.len();
        if self.target == 0 {
            self.ask_at = now + ASK_INTERVAL;
        }
        let len = emit_question(self.protocol, self.random, buffer).ok()?;
        Some(Transmit {
            to,
            len,
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        Some(self.ask_at)
    }
}

fn emit_question(protocol: u64, random: u64, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
    let room = buffer.get_mut(..MESSAGE_LEN).ok_or(EndOfBytes)?;
    room.fill(0);
    let mut writer = Writer::new(room);
    write_head(&mut writer, KIND_QUESTION, protocol, random)?;
    Ok(MESSAGE_LEN)
}

/// The protocol and number of a question.
pub fn parse_question(bytes: &[u8]) -> Option<(u64, u64)> {
    if bytes.len() < MESSAGE_LEN {
        return None;
    }
    read_head(&mut Reader::new(bytes), KIND_QUESTION)
}

fn emit_answer(advert: &Advert, random: u64, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
    let mut end = advert.name.len().min(NAME_MAX);
    while !advert.name.is_char_boundary(end) {
        end -= 1;
    }
    let mut writer = Writer::new(buffer);
    write_head(&mut writer, KIND_ANSWER, advert.protocol, random)?;
    writer.u16(advert.port)?;
    writer.slice(&advert.host_key)?;
    writer.u8(end as u8)?;
    writer.slice(&advert.name.as_bytes()[..end])?;
    Ok(writer.len())
}

/// The number of the question, and what a host says.
pub fn parse_answer(bytes: &[u8]) -> Option<(u64, Advert)> {
    let mut reader = Reader::new(bytes);
    let (protocol, random) = read_head(&mut reader, KIND_ANSWER)?;
    let (port, host_key) = (reader.u16().ok()?, reader.array().ok()?);
    let len = usize::from(reader.u8().ok()?);
    let name = reader
        .slice(len)
        .ok()
        .filter(|name| name.len() <= NAME_MAX)?;
    let name = std::str::from_utf8(name).ok()?.to_owned();
    let advert = Advert {
        protocol,
        port,
        host_key,
        name,
    };
    Some((random, advert))
}

fn write_head(
    writer: &mut Writer<'_>,
    kind: u8,
    protocol: u64,
    random: u64,
) -> Result<(), EndOfBytes> {
    writer.u8(kind)?;
    writer.slice(&MAGIC)?;
    writer.u64(protocol)?;
    writer.u64(random)
}

fn read_head(reader: &mut Reader<'_>, kind: u8) -> Option<(u64, u64)> {
    let ours = reader.u8().ok()? == kind && reader.array().ok()? == MAGIC;
    let head = (reader.u64().ok()?, reader.u64().ok()?);
    ours.then_some(head)
}

fn answer_rate() -> Rate {
    Rate::over(ANSWERS_PER_SECOND, Duration::from_secs(1))
}

/// The port at which hosts await questions.
pub const PORT: u16 = 7_786;
/// The group that hosts listen to, beside the broadcast address: some networks pass only one of both.
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 86);
/// Longest name of a host, in bytes.
pub const NAME_MAX: usize = 64;
const TARGETS: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(GROUP), PORT),
    SocketAddr::new(IpAddr::V4(Ipv4Addr::BROADCAST), PORT),
];
/// Length of a question; an answer has at most 120 bytes.
const MESSAGE_LEN: usize = 128;
const KIND_QUESTION: u8 = 0x5E;
const KIND_ANSWER: u8 = 0x5F;
const MAGIC: [u8; 4] = *b"MUSE";
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// A host that has not answered for so long is gone.
const FORGET: Duration = Duration::from_millis(3_500);
const HOSTS_MAX: usize = 256;
const ANSWERS_PER_SECOND: u32 = 100;
const WAITING_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn advert(name: &str) -> Advert {
        Advert {
            protocol: 7,
            port: 9_000,
            host_key: [3; 32],
            name: name.to_owned(),
        }
    }

    fn ask(finder: &mut Finder, announcer: &mut Announcer, from: &str) -> Option<usize> {
        let mut buffer = [0; 256];
        let question = finder.poll_transmit(Instant::ZERO, &mut buffer)?;
        let from = from.parse().expect("an address");
        let payload = &mut buffer[..question.len];
        announcer.handle_datagram(
            Instant::ZERO,
            Datagram {
                from,
                ecn: Ecn::NotCapable,
                payload,
            },
        );
        let answer = announcer.poll_transmit(Instant::ZERO, &mut buffer)?;
        assert!(answer.len <= question.len, "never longer than the question");
        let from = SocketAddr::from(([192, 168, 1, 3], PORT));
        let payload = &mut buffer[..answer.len];
        finder.handle_datagram(
            Instant::ZERO,
            Datagram {
                from,
                ecn: Ecn::NotCapable,
                payload,
            },
        );
        Some(finder.hosts().len())
    }

    #[test]
    fn hosts_answer_their_neighbours_alone() {
        let mut announcer = Announcer::new(Instant::ZERO, advert("a"));
        let mut finder = Finder::new(Instant::ZERO, 7, 1);
        assert_eq!(ask(&mut finder, &mut announcer, "198.51.100.7:1"), None);
        assert_eq!(ask(&mut finder, &mut announcer, "192.168.1.2:1"), Some(1));
        let mut other_game = Finder::new(Instant::ZERO, 8, 1);
        assert_eq!(ask(&mut other_game, &mut announcer, "192.168.1.2:1"), None);
    }

    #[test]
    fn long_names_are_cut_between_letters_and_silent_hosts_are_forgotten() {
        let mut announcer = Announcer::new(Instant::ZERO, advert(&"ä".repeat(100)));
        let mut finder = Finder::new(Instant::ZERO, 7, 1);
        assert_eq!(ask(&mut finder, &mut announcer, "192.168.1.2:1"), Some(1));
        assert_eq!(finder.hosts()[0].advert.name, "ä".repeat(32));
        finder.handle_timeout(Instant::ZERO + FORGET);
        assert_eq!(finder.hosts().len(), 1);
        finder.handle_timeout(Instant::ZERO + FORGET + Duration::from_millis(1));
        assert!(finder.hosts().is_empty());
    }

    #[test]
    fn a_flood_of_questions_is_answered_within_limits() {
        let mut announcer = Announcer::new(Instant::ZERO, advert("a"));
        let mut buffer = [0; 256];
        for port in 1..2_000 {
            let len = emit_question(7, 1, &mut buffer).expect("it fits");
            let from = SocketAddr::from(([192, 168, 1, 2], port));
            let payload = &mut buffer[..len];
            announcer.handle_datagram(
                Instant::ZERO,
                Datagram {
                    from,
                    ecn: Ecn::NotCapable,
                    payload,
                },
            );
        }
        let answers = std::iter::from_fn(|| announcer.poll_transmit(Instant::ZERO, &mut buffer));
        assert_eq!(answers.count(), ANSWERS_PER_SECOND as usize);
    }
}
