//! The relay itself: rooms, guests, and datagrams between them.

mod control;
mod fairness;
mod gate;
mod outbox;
mod requests;
mod succession;
mod table;

use std::net::SocketAddr;

use muse_transport::token::TokenId;
use muse_wire::keyed::KeyedMap;
use muse_wire::rate::{Rate, TokenBucket};
use muse_wire::{Datagram, Duration, Instant, Machine, Transmit};

use super::code::RoomCode;
use super::cookie::Secrets;
use super::limits::Limits;
use super::packet::{DATA_HEADER_LEN, End, LegId, PACKET_LEN_MAX, Packet};
use super::rate::Addresses;
use super::stats::Stats;
use fairness::Fairness;
pub(crate) use gate::occasion;
pub use gate::{HostTokens, MasterKey, host_token_issuer};
use outbox::Outbox;
use table::{Guest, Room, Slab, Tally};

/// A relay for Muse traffic.
///
/// Sans-IO; a driver runs it as it runs any [`Machine`]. It is meant to have a socket and a thread to itself.
///
/// ```
/// use muse_relay::{Limits, Relay};
/// use muse_wire::{Instant, Machine};
/// let seed = [0; 32]; // a driver takes it from the operating system
/// let mut relay = Relay::danger_open(Instant::ZERO, Limits::default(), seed);
/// assert_eq!((relay.rooms(), relay.guests()), (0, 0));
/// assert!(relay.poll_transmit(Instant::ZERO, &mut [0; 1_500]).is_none());
/// ```
pub struct Relay {
    limits: Limits,
    /// None if anybody may open a room.
    tokens: Option<HostTokens>,
    fairness: Fairness,
    secrets: Secrets,
    rooms: Slab<Room>,
    guests: Slab<Guest>,
    by_code: KeyedMap<RoomCode, u32>,
    /// Guests by the address and number of their request, so that a repeated request changes nothing.
    by_request: KeyedMap<(SocketAddr, [u8; 8]), u32>,
    by_token: KeyedMap<TokenId, u32>,
    rooms_from: Tally,
    guests_from: Tally,
    requests: Addresses,
    /// Checks of tokens, which are operations with public keys.
    checks: TokenBucket,
    checks_rate: Rate,
    /// Unix time in seconds at `Instant::ZERO`.
    unix_origin_s: u64,
    /// Answers to strangers: cookies and news of ids that do not exist.
    strangers: TokenBucket,
    strangers_rate: Rate,
    outbox: Outbox,
    sweep_at: Instant,
    /// The places at which the sweep goes on, in rooms and in guests.
    cursors: [usize; 2],
    draining: bool,
    stats: Stats,
}

impl Relay {
    /// An empty relay, at which hosts with such a token open rooms. `seed` is secret randomness: anyone who knows it can forge proofs
    /// of addresses. [`set_unix_time`](Self::set_unix_time) comes next, as tokens expire.
    pub fn new(now: Instant, limits: Limits, tokens: HostTokens, seed: [u8; 32]) -> Self {
        let mut relay = Self::danger_open(now, limits, seed);
        relay.tokens = Some(tokens);
        relay
    }

    /// An empty relay, at which anybody may open rooms within the limits: for tests, for a machine that only friends can reach, and for
    /// who wants to carry strangers' traffic.
    pub fn danger_open(now: Instant, limits: Limits, seed: [u8; 32]) -> Self {
        let secrets = Secrets::new(&seed);
        let keyed = secrets.keyed();
        let requests = Rate::over(limits.requests_per_second, REQUESTS_WINDOW);
        let strangers_rate = Rate::over(STRANGERS_PER_SECOND, STRANGERS_WINDOW);
        let checks_rate = Rate::over(CHECKS_PER_SECOND, CHECKS_WINDOW);
        Self {
            tokens: None,
            fairness: Fairness::new(now, &limits),
            rooms: Slab::new(limits.rooms),
            guests: Slab::new(limits.guests),
            by_code: KeyedMap::with_hasher(keyed.clone()),
            by_request: KeyedMap::with_hasher(keyed.clone()),
            by_token: KeyedMap::with_hasher(keyed.clone()),
            rooms_from: Tally::new(&keyed),
            guests_from: Tally::new(&keyed),
            requests: Addresses::new(now, keyed, requests),
            checks: TokenBucket::full(now, checks_rate),
            checks_rate,
            unix_origin_s: 0,
            strangers: TokenBucket::full(now, strangers_rate),
            strangers_rate,
            outbox: Outbox::new(),
            sweep_at: now + SWEEP_INTERVAL,
            cursors: [0; 2],
            draining: false,
            stats: Stats::default(),
            secrets,
            limits,
        }
    }

    /// Tells the wall-clock time, which tokens need to expire.
    pub fn set_unix_time(&mut self, now: Instant, unix_s: u64) {
        self.unix_origin_s = unix_s.saturating_sub(now.as_micros() / 1_000_000);
    }

    /// Admits nothing more, and tells everybody, so that they find another way. What is there goes on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Returns the number of rooms.
    pub fn rooms(&self) -> usize {
        self.rooms.len()
    }

    /// Returns the number of guests.
    pub fn guests(&self) -> usize {
        self.guests.len()
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Passes a datagram on, or finds out why not.
    #[inline]
    fn forward(&mut self, now: Instant, id: LegId, datagram: Datagram<'_>) {
        let Datagram { from, ecn, payload } = datagram;
        let Some(guest) = self.guests.get_mut(id.slot()) else {
            return self.on_unknown(now, id, from);
        };
        let Some(room) = self.rooms.get_mut(guest.room as usize) else {
            return self.on_unknown(now, id, from);
        };
        let (known, to, out) = match id.end() {
            End::Guest if guest.tag == id.tag() => {
                guest.heard = now;
                (guest.address, room.address, guest.host_id(id.slot()))
            }
            End::Host if guest.host_tag == id.tag() => {
                room.heard = now;
                (room.address, guest.address, guest.guest_id(id.slot()))
            }
            _ => return self.on_unknown(now, id, from),
        };
        let len = payload.len();
        let (shares, meter) = (&mut self.fairness, &mut guest.meter);
        if !shares.admit(now, &mut room.meter, meter, len) {
            self.stats.limited += 1;
            return;
        }
        if !self
            .outbox
            .push(to, ecn, &out.data_header(), &payload[DATA_HEADER_LEN..])
        {
            self.stats.overflowed += 1;
            return;
        }
        self.stats.packets_in += 1;
        self.stats.bytes_in += len as u64;
        if known != from {
            // It is forwarded, because nobody else knows the id; answers go to the old address until this one is proven.
            self.challenge(now, id, from, len);
        }
    }

    /// Asks a new address for proof, unless that was done a moment ago or the answer would be longer than what came.
    fn challenge(&mut self, now: Instant, id: LegId, from: SocketAddr, len: usize) {
        let last = match id.end() {
            End::Guest => self
                .guests
                .get_mut(id.slot())
                .map(|guest| &mut guest.challenged),
            _ => self
                .room_of(id)
                .and_then(|room| self.rooms.get_mut(room))
                .map(|room| &mut room.challenged),
        };
        let Some(last) = last else {
            return;
        };
        let recent = *last != Instant::ZERO && now.saturating_since(*last) < CHALLENGE_INTERVAL;
        if recent || len < CHALLENGE_LEN {
            return;
        }
        *last = now;
        let proof = self.secrets.bake(now, from, id.bits());
        self.say(from, &Packet::Challenge { id, proof });
    }

    /// The slot of the room that an id belongs to.
    fn room_of(&self, id: LegId) -> Option<usize> {
        match id.end() {
            End::Room => Some(id.slot()),
            End::Guest | End::Host => self.guests.get(id.slot()).map(|guest| guest.room as usize),
            End::Reserved => None,
        }
    }

    /// Somebody uses an id that does not exist: after a restart of the relay everybody does. They are told, within limits, and join
    /// again.
    #[cold]
    fn on_unknown(&mut self, now: Instant, id: LegId, from: SocketAddr) {
        self.stats.unknown += 1;
        self.say_to_stranger(now, from, &Packet::Gone { id });
    }

    fn say_to_stranger(&mut self, now: Instant, to: SocketAddr, packet: &Packet) {
        if self.strangers.admit(now, self.strangers_rate, 1) {
            self.say(to, packet);
        } else {
            self.stats.throttled += 1;
        }
    }

    fn say(&mut self, to: SocketAddr, packet: &Packet) {
        let mut buffer = [0; PACKET_LEN_MAX];
        let len = packet.emit(&mut buffer);
        self.fairness.count(len);
        if !self
            .outbox
            .push(to, muse_wire::Ecn::NotCapable, &buffer[..len], &[])
        {
            self.stats.overflowed += 1;
        }
    }

    /// Looks at a part of the rooms and guests for those that have fallen silent.
    fn sweep(&mut self, now: Instant) {
        let silent = |heard: Instant, idle| now.saturating_since(heard) > idle;
        for _ in 0..self.rooms.slots().div_ceil(SWEEP_PARTS) {
            let slot = self.cursors[0];
            self.cursors[0] = (slot + 1) % self.rooms.slots().max(1);
            let Some(room) = self.rooms.get(slot) else {
                continue;
            };
            if silent(room.heard, self.limits.idle) {
                self.stats.rooms_expired += 1;
                self.close_room(slot);
            } else if self.draining {
                let (to, id) = (room.address, room.id(slot));
                self.say(to, &Packet::Draining { id });
            }
        }
        for _ in 0..self.guests.slots().div_ceil(SWEEP_PARTS) {
            let slot = self.cursors[1];
            self.cursors[1] = (slot + 1) % self.guests.slots().max(1);
            let Some(guest) = self.guests.get(slot) else {
                continue;
            };
            if silent(guest.heard, self.limits.idle) {
                self.stats.guests_expired += 1;
                self.drop_guest(slot);
            } else if self.draining {
                let (to, id) = (guest.address, guest.guest_id(slot));
                self.say(to, &Packet::Draining { id });
            }
        }
    }
}

impl Machine for Relay {
    #[inline]
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match LegId::of_data(datagram.payload) {
            Some(id) => self.forward(now, id, datagram),
            None => self.handle_control(now, datagram.from, datagram.payload),
        }
    }

    fn prepare(&self, payload: &[u8]) {
        if let Some(id) = LegId::of_data(payload) {
            let room = self.guests.get(id.slot()).map(|guest| guest.room);
            std::hint::black_box(room);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.sweep_at {
            self.sweep_at = now + SWEEP_INTERVAL;
            self.sweep(now);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let transmit = self.outbox.pop(buffer)?;
        if LegId::of_data(buffer).is_some() {
            let segment = transmit.segment.unwrap_or(transmit.len).max(1);
            self.stats.packets_out += transmit.len.div_ceil(segment) as u64;
            self.stats.bytes_out += transmit.len as u64;
        }
        Some(transmit)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let idle = self.rooms.len() == 0 && self.guests.len() == 0;
        (!idle).then_some(self.sweep_at)
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay")
            .field("rooms", &self.rooms.len())
            .field("guests", &self.guests.len())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// A sweep for silent rooms and guests is spread over this many steps, so that no single one takes long.
const SWEEP_PARTS: usize = 8;
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two demands for proof of a new address.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(100);
/// Length of a challenge: a shorter packet is not answered by one.
const CHALLENGE_LEN: usize = 28;
/// Largest burst of requests from one address, as a time at its rate.
const REQUESTS_WINDOW: Duration = Duration::from_secs(4);
/// Answers to unproven addresses: a bound on the traffic that a flood with forged ones can cause.
const STRANGERS_PER_SECOND: u32 = 10_000;
const STRANGERS_WINDOW: Duration = Duration::from_millis(250);
/// Tokens that are checked: two operations with public keys each, together about a tenth of a core.
const CHECKS_PER_SECOND: u32 = 500;
const CHECKS_WINDOW: Duration = Duration::from_millis(250);
