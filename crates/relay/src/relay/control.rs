//! Everything that hosts and guests say to the relay itself.

use std::net::SocketAddr;

use muse_wire::{Duration, Instant, log};

use super::super::cookie::Cookie;
use super::super::packet::{Candidates, End, LegId, Packet};
use super::requests::Request;
use super::table::Guest;
use super::{Relay, occasion};

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
                token,
                term,
            } => {
                let request = Request::new(from, random, direct, local);
                if self.is_welcome(now, &request, &cookie) {
                    let occasion = occasion(&random, &cookie, &key);
                    self.on_open(now, &request, (key, term), &token, &occasion);
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
            Packet::Keep { id }
            | Packet::Response { id, .. }
            | Packet::Leave { id }
            | Packet::Acquaint { id }
            | Packet::Works { id, .. }
            | Packet::Heir { id, .. }
            | Packet::Succeed { id, .. }
            | Packet::Ban { id, .. } => {
                if self.may_say(now, id, bytes.len()) {
                    self.handle_member(now, from, packet, bytes.len());
                } else {
                    self.stats.throttled += 1;
                }
            }
            _ => {
                self.stats.control_in -= 1;
                self.stats.malformed += 1;
            }
        }
    }

    /// Handles what the owner of an id says, or somebody who claims to be.
    fn handle_member(&mut self, now: Instant, from: SocketAddr, packet: Packet, len: usize) {
        match packet {
            Packet::Keep { id } => self.on_keep(now, from, id, len),
            Packet::Response { id, proof } => self.on_response(now, from, id, &proof),
            Packet::Leave { id } => self.on_leave(from, id),
            Packet::Acquaint { id }
                if self.address_of(id) == Some(from) && id.end() != End::Room =>
            {
                self.introduce(now, id.slot());
            }
            Packet::Works { id, token } => self.on_works(from, id, token),
            Packet::Heir {
                id, lock, sealed, ..
            } => {
                self.on_keep(now, from, id, len);
                self.on_heir(from, id, lock, sealed);
            }
            Packet::Succeed { id, term, secret } => {
                self.on_succeed(now, from, id, (term, secret), len);
            }
            Packet::Ban {
                id,
                random,
                guest,
                addresses,
            } => match self.address_of(id) {
                None => self.on_unknown(now, id, from),
                Some(known) if known == from && id.end() == End::Room => {
                    self.ban(id.slot(), guest, &addresses);
                    self.say(from, &Packet::Banned { id, random });
                }
                Some(_) => self.challenge(now, id, from, len),
            },
            _ => {}
        }
    }

    /// True if the owner of an id says no more than it may. Somebody who claims an id that does not exist has limits of their own.
    fn may_say(&mut self, now: Instant, id: LegId, len: usize) -> bool {
        let guest = self.guests.get_mut(id.slot());
        if let End::Guest = id.end() {
            let guest = guest.filter(|guest| guest.tag == id.tag());
            return guest.is_none_or(|guest| self.fairness.admit_guest(now, &mut guest.meter, len));
        }
        let room = self.room_of(id).and_then(|room| self.rooms.get_mut(room));
        room.is_none_or(|room| self.fairness.admit_host(now, &mut room.meter, len))
    }

    /// Bans a guest of a room, and everybody there who came from the same places.
    fn ban(&mut self, slot: usize, guest: LegId, addresses: &Candidates) {
        let way = self.guests.get(guest.slot()).filter(|way| {
            let owned = way.room as usize == slot && way.host_tag == guest.tag();
            owned && guest.end() == End::Host
        });
        let known = way.map(|way| [way.address, way.request.0]);
        let Some(room) = self.rooms.get_mut(slot) else {
            return;
        };
        let known = known.iter().flatten();
        known
            .chain(addresses.as_slice())
            .for_each(|address| room.ban(address.ip()));
        let guests = room.guests.iter().copied();
        let is_banned = |slot: &u32| {
            let guest = self.guests.get(*slot as usize);
            guest.is_some_and(|guest| {
                room.is_banned(guest.address.ip()) || room.is_banned(guest.request.0.ip())
            })
        };
        let banned: Vec<u32> = guests.filter(is_banned).collect();
        for guest in banned {
            self.stats.guests_banned += 1;
            self.expel(guest as usize);
        }
    }

    /// Forgets a guest, and tells it and its host.
    fn expel(&mut self, slot: usize) {
        if let Some(guest) = self.guests.get(slot) {
            let (to, id) = (guest.address, guest.guest_id(slot));
            self.say(to, &Packet::Gone { id });
            self.drop_guest(slot);
        }
    }

    fn on_keep(&mut self, now: Instant, from: SocketAddr, id: LegId, len: usize) {
        match self.address_of(id) {
            None => self.on_unknown(now, id, from),
            Some(known) if known == from => {
                self.hear(now, id);
                self.hear_host(now, id);
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
                let room = self.room_of(id).and_then(|room| self.rooms.get(room));
                if room.is_some_and(|room| room.is_banned(from.ip())) {
                    return self.expel(id.slot());
                }
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
            if self.leave_to_heir(id.slot()) {
                return;
            }
            self.stats.rooms_closed += 1;
            self.close_room(id.slot());
        } else {
            self.stats.guests_left += 1;
            self.drop_guest(id.slot());
        }
    }

    /// Tells a host and a guest where the other one may be reached, if both want to know.
    pub(super) fn introduce(&mut self, now: Instant, slot: usize) {
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
    pub(super) fn address_of(&self, id: LegId) -> Option<SocketAddr> {
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
        if let Some(token) = &room.token {
            self.by_token.remove(token);
        }
        self.rooms_from.remove(room.opened_from);
        for guest in room.guests {
            self.stats.guests_left += 1;
            let slot = guest as usize;
            if let Some(guest) = self.remove_guest(slot) {
                let id = guest.guest_id(slot);
                self.say(guest.address, &Packet::Gone { id });
            }
        }
    }

    /// Forgets a guest and tells its host.
    pub(super) fn drop_guest(&mut self, slot: usize) {
        let Some(guest) = self.remove_guest(slot) else {
            return;
        };
        log!(debug, slot, room = guest.room, "a guest is gone");
        let Some(room) = self.rooms.get_mut(guest.room as usize) else {
            return;
        };
        room.guests.retain(|other| *other != slot as u32);
        let (to, id) = (room.address, guest.host_id(slot));
        self.say(to, &Packet::Gone { id });
    }

    pub(super) fn remove_guest(&mut self, slot: usize) -> Option<Guest> {
        let guest = self.guests.remove(slot)?;
        self.by_request.remove(&guest.request);
        self.guests_from.remove(guest.request.0.ip());
        Some(guest)
    }
}

/// The shortest time between two introductions of a pair.
const INTRODUCE_INTERVAL: Duration = Duration::from_millis(500);
