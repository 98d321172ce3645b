//! Everything that hosts and guests say to the relay itself.

use std::net::SocketAddr;

use muse_wire::net::customer;
use muse_wire::{Duration, Instant, log};

use super::super::code::{RoomCode, RoomKey};
use super::super::cookie::Cookie;
use super::super::packet::{Candidates, End, LegId, Packet, Refusal, VERSION};
use super::super::rate::Meter;
use super::Relay;
use super::table::{Guest, Room};

/// A request and its sender.
struct Request {
    from: SocketAddr,
    random: [u8; 8],
    direct: bool,
    local: Candidates,
}

impl Relay {
    pub(super) fn handle_control(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let Some(packet) = Packet::parse(bytes) else {
            self.stats.malformed += 1;
            return;
        };
        self.stats.control_in += 1;
        match packet {
            Packet::Hello { version, random } => self.on_hello(now, from, version, random),
            Packet::Open {
                random,
                cookie,
                key,
                direct,
                local,
            } => {
                let request = Request::new(from, random, direct, local);
                if self.is_welcome(now, &request, &cookie) {
                    self.on_open(now, &request, key);
                }
            }
            Packet::Join {
                random,
                cookie,
                code,
                direct,
                local,
            } => {
                let request = Request::new(from, random, direct, local);
                if self.is_welcome(now, &request, &cookie) {
                    self.on_join(now, &request, code);
                }
            }
            Packet::Keep { id } => self.on_keep(now, from, id, bytes.len()),
            Packet::Response { id, proof } => self.on_response(now, from, id, &proof),
            Packet::Leave { id } => self.on_leave(from, id),
            Packet::Acquaint { id } => {
                if self.address_of(id) == Some(from) && id.end() != End::Room {
                    self.introduce(now, id.slot());
                }
            }
            Packet::Works { id, token } => self.on_works(from, id, token),
            _ => {
                self.stats.control_in -= 1;
                self.stats.malformed += 1;
            }
        }
    }

    fn on_hello(&mut self, now: Instant, from: SocketAddr, version: u8, random: [u8; 8]) {
        if version != VERSION {
            let reason = Refusal::Version;
            self.say_to_stranger(now, from, &Packet::Refused { random, reason });
            return;
        }
        let cookie = self.secrets.bake(now, from, u64::from_le_bytes(random));
        let answer = Packet::Cookie {
            random,
            cookie,
            observed: from,
        };
        self.say_to_stranger(now, from, &answer);
    }

    /// True if a request comes from where it says, and not too often.
    fn is_welcome(&mut self, now: Instant, request: &Request, cookie: &Cookie) -> bool {
        let subject = u64::from_le_bytes(request.random);
        if !self.secrets.check(now, request.from, subject, cookie) {
            self.stats.unproven += 1;
            // Too old, or of a relay before a restart: with a new one it can go on.
            self.on_hello(now, request.from, VERSION, request.random);
            return false;
        }
        let admitted = self.requests.admit(now, request.from);
        self.stats.throttled += u64::from(!admitted);
        admitted
    }

    fn on_open(&mut self, now: Instant, request: &Request, key: RoomKey) {
        let code = key.code();
        let slot = match self.by_code.get(&code) {
            // Repeated, or its host has come back from elsewhere: it has the key.
            Some(&slot) => slot as usize,
            None => match self.open(now, request, code) {
                Ok(slot) => slot,
                Err(reason) => return self.refuse(request, reason),
            },
        };
        let Some(room) = self.rooms.get_mut(slot) else {
            return;
        };
        room.address = request.from;
        room.local = request.local;
        room.direct = request.direct;
        room.heard = now;
        let id = room.id(slot);
        let answer = Packet::Opened {
            random: request.random,
            id,
            observed: request.from,
        };
        self.say(request.from, &answer);
    }

    fn open(&mut self, now: Instant, request: &Request, code: RoomCode) -> Result<usize, Refusal> {
        if self.draining {
            return Err(Refusal::Draining);
        }
        let prefix = customer(request.from.ip());
        let opened = self.rooms_by_ip.get(&prefix).copied().unwrap_or(0);
        if opened >= self.limits.rooms_per_ip {
            return Err(Refusal::NoPlace);
        }
        let room = Room {
            tag: self.secrets.draw() as u32,
            code,
            address: request.from,
            prefix,
            local: request.local,
            direct: request.direct,
            meter: Meter::full(now, &self.rates),
            heard: now,
            challenged: Instant::ZERO,
            guests: Vec::new(),
        };
        let slot = self.rooms.insert(room).ok_or(Refusal::NoPlace)?;
        self.by_code.insert(code, slot as u32);
        self.rooms_by_ip.insert(prefix, opened + 1);
        self.stats.rooms_opened += 1;
        log!(debug, slot, host = %request.from, "opened a room");
        Ok(slot)
    }

    fn on_join(&mut self, now: Instant, request: &Request, code: RoomCode) {
        let name = (request.from, request.random);
        let slot = match self.by_request.get(&name) {
            Some(&slot) => slot as usize,
            None => match self.join(now, request, code) {
                Ok(slot) => slot,
                Err(reason) => return self.refuse(request, reason),
            },
        };
        let Some(guest) = self.guests.get_mut(slot) else {
            return;
        };
        guest.heard = now;
        let answer = Packet::Joined {
            random: request.random,
            id: guest.guest_id(slot),
            observed: request.from,
        };
        self.say(request.from, &answer);
        self.introduce(now, slot);
    }

    fn join(&mut self, now: Instant, request: &Request, code: RoomCode) -> Result<usize, Refusal> {
        if self.draining {
            return Err(Refusal::Draining);
        }
        let room = *self.by_code.get(&code).ok_or(Refusal::NoSuchRoom)?;
        if !self.has_place(room as usize, request.from) {
            return Err(Refusal::RoomFull);
        }
        let tags = self.secrets.draw();
        let guest = Guest {
            room,
            tag: tags as u32,
            host_tag: (tags >> 32) as u32,
            address: request.from,
            heard: now,
            challenged: Instant::ZERO,
            introduced: Instant::ZERO,
            token: self.secrets.draw().to_le_bytes(),
            request: (request.from, request.random),
            local: request.local,
            direct: request.direct,
            found: false,
        };
        let slot = self.guests.insert(guest).ok_or(Refusal::NoPlace)?;
        self.by_request
            .insert((request.from, request.random), slot as u32);
        if let Some(room) = self.rooms.get_mut(room as usize) {
            room.guests.push(slot as u32);
        }
        self.stats.guests_joined += 1;
        log!(debug, room, slot, guest = %request.from, "a guest joined");
        Ok(slot)
    }

    /// True if a room takes another guest, and another one from this address.
    fn has_place(&self, room: usize, from: SocketAddr) -> bool {
        let Some(room) = self.rooms.get(room) else {
            return false;
        };
        let guests = room.guests.iter();
        let neighbours = guests
            .filter_map(|slot| self.guests.get(*slot as usize))
            .filter(|guest| customer(guest.address.ip()) == customer(from.ip()));
        room.guests.len() < self.limits.guests_per_room
            && neighbours.count() < self.limits.guests_per_ip
    }

    fn refuse(&mut self, request: &Request, reason: Refusal) {
        self.stats.refused += 1;
        log!(debug, from = %request.from, ?reason, "refused a request");
        let random = request.random;
        self.say(request.from, &Packet::Refused { random, reason });
    }

    fn on_keep(&mut self, now: Instant, from: SocketAddr, id: LegId, len: usize) {
        match self.address_of(id) {
            None => self.on_unknown(now, id, from),
            Some(known) if known == from => {
                self.hear(now, id);
                self.say(from, &Packet::Kept { id, observed: from });
            }
            Some(_) => self.challenge(now, id, from, len),
        }
    }

    /// An address proved that it is real: the id lives there from now on.
    fn on_response(&mut self, now: Instant, from: SocketAddr, id: LegId, proof: &Cookie) {
        if !self.secrets.check(now, from, id.bits(), proof) {
            self.stats.unproven += 1;
            return;
        }
        let Some(known) = self.address_of(id) else {
            return self.on_unknown(now, id, from);
        };
        self.hear(now, id);
        if known != from {
            self.stats.moves += 1;
            log!(debug, ?id, %known, %from, "a player moved to another address");
            if let End::Guest = id.end() {
                if let Some(guest) = self.guests.get_mut(id.slot()) {
                    guest.address = from;
                }
            } else if let Some(room) = self.room_of(id).and_then(|room| self.rooms.get_mut(room)) {
                room.address = from;
            }
        }
        self.say(from, &Packet::Kept { id, observed: from });
    }

    fn on_leave(&mut self, from: SocketAddr, id: LegId) {
        if self.address_of(id) != Some(from) {
            return;
        }
        if id.end() == End::Room {
            self.stats.rooms_closed += 1;
            self.close_room(id.slot());
        } else {
            self.stats.guests_left += 1;
            self.drop_guest(id.slot());
        }
    }

    /// Tells a host and a guest where the other one may be reached, if both want to know.
    fn introduce(&mut self, now: Instant, slot: usize) {
        let Some(guest) = self.guests.get_mut(slot) else {
            return;
        };
        let Some(room) = self.rooms.get(guest.room as usize) else {
            return;
        };
        let first = guest.introduced == Instant::ZERO;
        let recent = !first && now.saturating_since(guest.introduced) < INTRODUCE_INTERVAL;
        if !guest.direct || !room.direct || recent {
            return;
        }
        guest.introduced = now;
        log!(
            debug,
            guest = slot,
            room = guest.room,
            "introduced a guest to its host"
        );
        self.stats.introductions += 1;
        let known = |address, local: &Candidates| {
            let mut candidates = Candidates::NONE;
            candidates.push(address);
            local.as_slice().iter().for_each(|it| candidates.push(*it));
            candidates
        };
        let token = guest.token;
        let (guest_at, host_at) = (guest.address, room.address);
        let to_guest = Packet::Introduce {
            id: guest.guest_id(slot),
            token,
            candidates: known(host_at, &room.local),
        };
        let to_host = Packet::Introduce {
            id: guest.host_id(slot),
            token,
            candidates: known(guest_at, &guest.local),
        };
        self.say(guest_at, &to_guest);
        self.say(host_at, &to_host);
    }

    /// One side has found the direct way: both leave.
    fn on_works(&mut self, from: SocketAddr, id: LegId, token: [u8; 8]) {
        if self.address_of(id) != Some(from) || id.end() == End::Room {
            return;
        }
        let slot = id.slot();
        let Some(guest) = self.guests.get_mut(slot).filter(|it| it.token == token) else {
            return;
        };
        let Some(room) = self.rooms.get(guest.room as usize) else {
            return;
        };
        log!(debug, guest = slot, room = guest.room, "a direct way works");
        self.stats.directs += u64::from(!std::mem::replace(&mut guest.found, true));
        let both = [
            (guest.address, guest.guest_id(slot)),
            (room.address, guest.host_id(slot)),
        ];
        for (to, id) in both {
            self.say(to, &Packet::Direct { id, token });
        }
    }

    /// The proven address of an id's owner, if there is such an id.
    fn address_of(&self, id: LegId) -> Option<SocketAddr> {
        match id.end() {
            End::Room => {
                let room = self.rooms.get(id.slot())?;
                (room.tag == id.tag()).then_some(room.address)
            }
            End::Guest => {
                let guest = self.guests.get(id.slot())?;
                (guest.tag == id.tag()).then_some(guest.address)
            }
            End::Host => {
                let guest = self.guests.get(id.slot())?;
                let room = self.rooms.get(guest.room as usize)?;
                (guest.host_tag == id.tag()).then_some(room.address)
            }
            End::Reserved => None,
        }
    }

    fn hear(&mut self, now: Instant, id: LegId) {
        if let End::Guest = id.end() {
            if let Some(guest) = self.guests.get_mut(id.slot()) {
                guest.heard = now;
            }
        } else if let Some(room) = self.room_of(id).and_then(|room| self.rooms.get_mut(room)) {
            room.heard = now;
        }
    }

    pub(super) fn close_room(&mut self, slot: usize) {
        let Some(room) = self.rooms.remove(slot) else {
            return;
        };
        log!(debug, slot, guests = room.guests.len(), "closed a room");
        self.by_code.remove(&room.code);
        if let Some(count) = self.rooms_by_ip.get_mut(&room.prefix) {
            *count -= 1;
            if *count == 0 {
                self.rooms_by_ip.remove(&room.prefix);
            }
        }
        for guest in room.guests {
            self.stats.guests_left += 1;
            let slot = guest as usize;
            if let Some(guest) = self.guests.remove(slot) {
                self.by_request.remove(&guest.request);
                let id = guest.guest_id(slot);
                self.say(guest.address, &Packet::Gone { id });
            }
        }
    }

    /// Forgets a guest and tells its host.
    pub(super) fn drop_guest(&mut self, slot: usize) {
        let Some(guest) = self.guests.remove(slot) else {
            return;
        };
        log!(debug, slot, room = guest.room, "a guest is gone");
        self.by_request.remove(&guest.request);
        let Some(room) = self.rooms.get_mut(guest.room as usize) else {
            return;
        };
        room.guests.retain(|other| *other != slot as u32);
        let (to, id) = (room.address, guest.host_id(slot));
        self.say(to, &Packet::Gone { id });
    }
}

impl Request {
    fn new(from: SocketAddr, random: [u8; 8], direct: bool, local: Candidates) -> Self {
        Self {
            from,
            random,
            direct,
            local: local.local_only(),
        }
    }
}

/// The shortest time between two introductions of a pair.
const INTRODUCE_INTERVAL: Duration = Duration::from_secs(1);
