//! Sequences of operations on relay v2: a host and guests that move, leave and lose packets, strangers that say anything, restarts.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use muse_relay::{Limits, Link, Relay, Relayed, RoomKey};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

use crate::{Bound, Target, no_setup};

/// Operations on a relay.
pub const TARGET: Target = Target {
    name: "relay_v2_operations",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 500_000,
        per_byte: 500,
    },
    steps: Bound {
        base: 100_000,
        per_byte: 1_000,
    },
};

/// Runs the bytes: each operation is a byte that says which, one that says who, and what it needs.
fn run(data: &[u8]) {
    let mut world = World::new();
    let mut rest = data;
    while let Some((&operation, after)) = rest.split_first() {
        let (&who, after) = after.split_first().unwrap_or((&0, after));
        let len = after.len().min(usize::from(who >> 2));
        let (bytes, after) = after.split_at(len);
        rest = after;
        world.step(operation, usize::from(who & 3), bytes);
        world.check();
    }
}

/// A machine that says back whatever it hears.
#[derive(Default)]
struct Parrot(VecDeque<(SocketAddr, Vec<u8>)>);

impl Machine for Parrot {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        if self.0.len() < 8 {
            self.0.push_back((datagram.from, datagram.payload.to_vec()));
        }
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let (to, bytes) = self.0.pop_front()?;
        let len = bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&bytes[..len]);
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

struct World {
    relay: Relay,
    players: Vec<(SocketAddr, Relayed<Parrot>)>,
    now: Instant,
    /// From, to, content.
    under_way: VecDeque<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// Bytes that strangers sent to the relay, less those that it sent to them.
    balance: BTreeMap<SocketAddr, i64>,
    moves: u8,
}

impl World {
    fn new() -> Self {
        let now = Instant::from_secs(1);
        let key = RoomKey::new([7; 16]);
        let mut players = vec![(player_at(0, 0), Link::open(now, RELAY, key, [1; 32]))];
        for number in 1..4 {
            let link = Link::join(now, RELAY, key.code(), [number + 1; 32]);
            players.push((player_at(number.into(), 0), link));
        }
        let relayed = |(at, link)| (at, Relayed::new(Parrot::default(), link));
        Self {
            relay: Relay::danger_open(now, limits(), [9; 32]),
            players: players.into_iter().map(relayed).collect(),
            now,
            under_way: VecDeque::new(),
            balance: BTreeMap::new(),
            moves: 0,
        }
    }

    fn step(&mut self, operation: u8, who: usize, bytes: &[u8]) {
        match operation % 10 {
            0..=2 => self.deliver(),
            3 => drop(self.under_way.pop_front()),
            4 => {
                self.now += Duration::from_millis(1 + 40 * bytes.len() as u64);
                self.relay.handle_timeout(self.now);
                for (_, player) in &mut self.players {
                    player.handle_timeout(self.now);
                }
            }
            5 => {
                // A stranger, who may know what was said before.
                let from = SocketAddr::from(([192, 0, 2, who as u8], 9));
                let mut said = match self.under_way.back() {
                    Some((_, _, known)) if bytes.len() % 2 == 0 => known.clone(),
                    _ => bytes.to_vec(),
                };
                if let (Some(first), Some(byte)) = (said.first_mut(), bytes.first()) {
                    *first = 0x40 | byte & 0x1F;
                }
                self.send(from, RELAY, said);
            }
            6 => {
                // Anybody in the relay's name, to a player.
                let to = self.players[who].0;
                self.send(RELAY, to, bytes.to_vec());
            }
            7 => {
                self.moves = self.moves.wrapping_add(1);
                self.players[who].0 = player_at(who, self.moves);
            }
            8 => {
                let to = if who == 0 { HOST_GUESS } else { 3 };
                let mut said = vec![0x80];
                said.extend_from_slice(bytes);
                let (_, player) = &mut self.players[who];
                let to = muse_relay::LegId::from_bits(to).virtual_address();
                player.machine_mut().0.push_back((to, said));
            }
            _ => match who {
                0 => self.relay = Relay::danger_open(self.now, limits(), [self.moves; 32]),
                1 => self.relay.drain(),
                _ => self.players[who].1.link_mut().leave(),
            },
        }
        self.collect();
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        if self.under_way.len() < 256 {
            self.under_way.push_back((from, to, bytes));
        }
    }

    fn deliver(&mut self) {
        let Some((from, to, mut bytes)) = self.under_way.pop_front() else {
            return;
        };
        let len = bytes.len() as i64;
        let payload = &mut bytes[..];
        let ecn = Ecn::NotCapable;
        let datagram = Datagram { from, ecn, payload };
        if to == RELAY {
            if is_stranger(from) {
                *self.balance.entry(from).or_default() += len;
            }
            self.relay.handle_datagram(self.now, datagram);
        } else if let Some((_, player)) = self.players.iter_mut().find(|(at, _)| *at == to) {
            player.handle_datagram(self.now, datagram);
        }
    }

    /// Takes what everybody has to say.
    fn collect(&mut self) {
        let mut buffer = [0; 4_096];
        let mut said = Vec::new();
        while let Some(sent) = self.relay.poll_transmit(self.now, &mut buffer) {
            for datagram in sent.datagrams(&buffer) {
                if is_stranger(sent.to) {
                    *self.balance.entry(sent.to).or_default() -= datagram.len() as i64;
                }
                said.push((RELAY, sent.to, datagram.to_vec()));
            }
        }
        for (at, player) in &mut self.players {
            while let Some(sent) = player.poll_transmit(self.now, &mut buffer) {
                for datagram in sent.datagrams(&buffer) {
                    said.push((*at, sent.to, datagram.to_vec()));
                }
            }
            while player.link_mut().poll_event().is_some() {}
        }
        for (from, to, bytes) in said {
            self.send(from, to, bytes);
        }
    }

    fn check(&self) {
        assert!(self.relay.rooms() <= 2 && self.relay.guests() <= 4);
        for (stranger, balance) in &self.balance {
            assert!(*balance >= 0, "{stranger} got {balance} more than it sent");
        }
    }
}

fn limits() -> Limits {
    Limits::default().rooms(2).guests(4).packets_per_second(200)
}

fn player_at(who: usize, moves: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, who as u8], 1_000 + u16::from(moves)))
}

fn is_stranger(address: SocketAddr) -> bool {
    address.port() == 9
}

const RELAY: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 1)),
    7,
);
/// An id that a host may or may not have.
const HOST_GUESS: u64 = 2;
