//! Short codes: guests, a host, and somebody between them who has every packet and says what they like. The host's key goes to those who have the code,
//! wrong ones are looked at no more often than the budget says, and no answer is longer than what it answers.

use std::collections::BTreeSet;

use muse_relay::{
    CODE_PACKET_LEN_MAX, CodePacket, CodeRefusal, CodeSecret, Denial, KeyGiver, KeyTaker, LegId,
    RoomKey, ShortCode,
};
use muse_wire::{Duration, Instant};

use crate::{Bound, Target, no_setup};

/// A host with a short code and everybody around it.
pub const TARGET: Target = Target {
    name: "relay_v2_code",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 300_000,
        per_byte: 1_000,
    },
    // An exchange costs three multiplications on the curve, and four bytes begin one.
    steps: Bound {
        base: 20_000_000,
        per_byte: 2_500_000,
    },
};

/// The whole input as one packet; then as operations of four bytes: which, who, and two choices.
fn run(data: &[u8]) {
    if let Some(packet) = CodePacket::parse(data) {
        let mut buffer = [0; CODE_PACKET_LEN_MAX];
        let len = packet.emit(&mut buffer);
        assert!(len <= data.len());
        assert_eq!(CodePacket::parse(&buffer[..len]), Some(packet));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(code) = text.parse::<ShortCode>()
    {
        assert_eq!(code.to_string().parse(), Ok(code));
    }
    let mut world = World::new();
    for &[operation, who, one, two] in data.as_chunks::<4>().0.iter().take(OPERATIONS_MAX) {
        world.step(operation, usize::from(who) % GUESTS, one, two);
    }
    world.check();
}

struct World {
    now: Instant,
    giver: KeyGiver,
    /// The first half has the code.
    guests: Vec<KeyTaker>,
    /// Every packet that was ever seen.
    seen: Vec<CodePacket>,
    /// Exchanges in which the host called a code wrong.
    wrong: BTreeSet<(usize, [u8; 8])>,
}

impl World {
    fn new() -> Self {
        let now = Instant::from_secs(1);
        let code =
            |secret| ShortCode::new(RoomKey::new([1; 16]).code(), CodeSecret::new([secret; 4]));
        let guest = |number: usize| {
            let secret = if number < HONEST { 1 } else { number as u8 };
            KeyTaker::new(now, code(secret), [number as u8 + 1; 32])
        };
        Self {
            now,
            giver: KeyGiver::new(now, code(1), HOST_KEY, [9; 32]),
            guests: (0..GUESTS).map(guest).collect(),
            seen: Vec::new(),
            wrong: BTreeSet::new(),
        }
    }

    fn step(&mut self, operation: u8, who: usize, one: u8, two: u8) {
        let old = self
            .seen
            .get(usize::from(one) % self.seen.len().max(1))
            .copied();
        match (operation % 6, old) {
            // A guest speaks and is heard.
            (0 | 1, _) => {
                if let Some(packet) = self.guests[who].poll_transmit(self.now) {
                    self.note(packet);
                    if let Some(answer) = self.to_host(who, packet) {
                        self.guests[who].handle(self.now, answer);
                    }
                }
            }
            // Somebody repeats to the host what was said, from whatever way, whole or changed.
            (2, Some(packet)) => drop(self.to_host(usize::from(two) % LEGS, packet)),
            (3, Some(packet)) => {
                let mut bytes = [0; CODE_PACKET_LEN_MAX];
                let len = packet.emit(&mut bytes);
                bytes[usize::from(two) % len] ^= 1 << (operation % 8);
                if let Some(packet) = CodePacket::parse(&bytes[..len]) {
                    let answer = self.to_host(who, packet);
                    if let Some(answer) = answer.filter(|_| operation & 0x40 != 0) {
                        self.guests[who].handle(self.now, answer);
                    }
                    self.guests[who].handle(self.now, packet);
                }
            }
            (4, Some(packet)) => self.guests[who].handle(self.now, packet),
            (5, _) => self.now += Duration::from_millis(u64::from(one) * u64::from(two)),
            _ => {}
        }
    }

    fn to_host(&mut self, way: usize, packet: CodePacket) -> Option<CodePacket> {
        let id = LegId::from_bits(way as u64);
        let before = self.giver.tries_left();
        let answer = self.giver.handle(self.now, id, packet)?;
        self.note(answer);
        let mut buffer = [0; CODE_PACKET_LEN_MAX];
        assert!(answer.emit(&mut buffer) <= packet.emit(&mut buffer));
        if let CodePacket::Denied { random, reason } = answer
            && reason == Denial::WrongCode
            && self.giver.tries_left() < before
        {
            self.wrong.insert((way, random));
        }
        Some(answer)
    }

    fn note(&mut self, packet: CodePacket) {
        if self.seen.len() < SEEN_MAX {
            self.seen.push(packet);
        }
    }

    fn check(&self) {
        let minutes = self.now.as_micros() / KeyGiver::TRY_INTERVAL.as_micros();
        assert!(self.wrong.len() as u64 <= u64::from(KeyGiver::TRIES_MAX) + minutes);
        assert!(self.giver.exchanges() <= 64);
        for (number, guest) in self.guests.iter().enumerate() {
            match guest.outcome() {
                Some(Ok(key)) => assert!(number < HONEST && key == HOST_KEY),
                // Anybody may tell a guest no, as they could cut its line.
                Some(Err(reason)) => assert_ne!(reason, CodeRefusal::NoSuchRoom),
                None => {}
            }
        }
    }
}

const HOST_KEY: [u8; 32] = [7; 32];
const GUESTS: usize = 8;
const HONEST: usize = 4;
const LEGS: usize = 32;
const SEEN_MAX: usize = 256;
const OPERATIONS_MAX: usize = 256;
