//! Requests of strangers: who they are, and to open or join a room.

use std::net::SocketAddr;

use muse_transport::token::TokenId;
use muse_wire::net::{customer, neighbourhood};
use muse_wire::{Instant, log};

use super::super::code::{RoomCode, RoomKey};
use super::super::cookie::Cookie;
use super::super::packet::{Candidates, Packet, Refusal, ShownToken, VERSION};
use super::Relay;
use super::table::{Guest, Room};

/// A request and its sender.
pub(super) struct Request {
    from: SocketAddr,
    random: [u8; 8],
    direct: bool,
    local: Candidates,
}

impl Relay {
    pub(super) fn on_hello(
        &mut self,
        now: Instant,
        from: SocketAddr,
        version: u8,
        random: [u8; 8],
    ) {
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
    pub(super) fn is_welcome(&mut self, now: Instant, request: &Request, cookie: &Cookie) -> bool {
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

    pub(super) fn on_open(
        &mut self,
        now: Instant,
        request: &Request,
        (key, term): (RoomKey, u32),
        token: &ShownToken,
        occasion: &[u8],
    ) {
        let code = key.code();
        let slot = match self.by_code.get(&code) {
            Some(&slot) => {
                // Repeated, or its host has come back from elsewhere: it has the key.
                let slot = slot as usize;
                let room = self.rooms.get(slot);
                if room.is_some_and(|room| room.owner != key.owner()) {
                    return self.refuse(request, Refusal::Taken);
                }
                if room.is_some_and(|room| room.succession.term > term) {
                    return self.refuse(request, Refusal::Succeeded);
                }
                slot
            }
            None => {
                if self.tokens.is_some() && !self.checks.admit(now, self.checks_rate, 1) {
                    // It will ask again.
                    self.stats.throttled += 1;
                    return;
                }
                match self.open(now, request, &key, token, occasion) {
                    Ok(slot) => slot,
                    Err(reason) => return self.refuse(request, reason),
                }
            }
        };
        let Some(room) = self.rooms.get_mut(slot) else {
            return;
        };
        room.address = request.from;
        room.local = request.local;
        room.direct = request.direct;
        room.heard = now;
        room.succession.host_is_here(now, term);
        let id = room.id(slot);
        let answer = Packet::Opened {
            random: request.random,
            id,
            observed: request.from,
        };
        self.say(request.from, &answer);
    }

    fn open(
        &mut self,
        now: Instant,
        request: &Request,
        key: &RoomKey,
        token: &ShownToken,
        occasion: &[u8],
    ) -> Result<usize, Refusal> {
        if self.draining {
            return Err(Refusal::Draining);
        }
        let (ip, limits) = (request.from.ip(), &self.limits);
        let (of_customer, of_network) = (limits.rooms_per_ip, limits.rooms_per_prefix);
        if self.rooms.is_full() || !self.rooms_from.has_place(ip, of_customer, of_network) {
            return Err(Refusal::NoPlace);
        }
        let token = self.check_token(now, token, occasion)?;
        // A token opens one room at a time: its holder has begun anew.
        if let Some(&former) = token.as_ref().and_then(|token| self.by_token.get(token)) {
            self.stats.rooms_closed += 1;
            self.close_room(former as usize);
        }
        let (tag, meter) = (self.secrets.draw() as u32, self.fairness.room(now));
        let mut room = Room::new(now, key, tag, request.from, meter);
        room.token = token;
        let slot = self.rooms.insert(room).ok_or(Refusal::NoPlace)?;
        self.by_code.insert(key.code(), slot as u32);
        if let Some(token) = token {
            self.by_token.insert(token, slot as u32);
        }
        self.rooms_from.add(ip);
        self.stats.rooms_opened += 1;
        log!(debug, slot, host = %request.from, "opened a room");
        Ok(slot)
    }

    /// Returns the token that a host showed, if one is demanded.
    fn check_token(
        &mut self,
        now: Instant,
        token: &ShownToken,
        occasion: &[u8],
    ) -> Result<Option<TokenId>, Refusal> {
        let Some(tokens) = &self.tokens else {
            return Ok(None);
        };
        let unix_now_s = self.unix_origin_s + now.as_micros() / 1_000_000;
        match tokens.check(token, occasion, unix_now_s, &mut self.secrets) {
            Ok(token) => Ok(Some(token)),
            Err(_error) => {
                log!(debug, error = %_error, "a host's token is not good");
                Err(Refusal::NoToken)
            }
        }
    }

    pub(super) fn on_join(&mut self, now: Instant, request: &Request, code: RoomCode) {
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
        let ip = request.from.ip();
        let home = self.rooms.get(room as usize).ok_or(Refusal::NoSuchRoom)?;
        if home.is_banned(ip) {
            return Err(Refusal::Banned);
        }
        if !self.has_place(home, request.from) {
            return Err(Refusal::RoomFull);
        }
        let of_network = self.limits.all_guests_per_prefix;
        if !self.guests_from.has_place(ip, u32::MAX, of_network) {
            return Err(Refusal::NoPlace);
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
            meter: self.fairness.guest(now),
        };
        let slot = self.guests.insert(guest).ok_or(Refusal::NoPlace)?;
        self.guests_from.add(ip);
        self.by_request
            .insert((request.from, request.random), slot as u32);
        if let Some(room) = self.rooms.get_mut(room as usize) {
            room.guests.push(slot as u32);
        }
        self.stats.guests_joined += 1;
        log!(debug, room, slot, guest = %request.from, "a guest joined");
        Ok(slot)
    }

    /// True if a room takes another guest, and another one from this address and network.
    fn has_place(&self, room: &Room, from: SocketAddr) -> bool {
        let from = from.ip();
        let (mut housemates, mut neighbours) = (0, 0);
        for slot in &room.guests {
            if let Some(guest) = self.guests.get(*slot as usize) {
                let ip = guest.address.ip();
                housemates += usize::from(customer(ip) == customer(from));
                neighbours += usize::from(neighbourhood(ip) == neighbourhood(from));
            }
        }
        room.guests.len() < self.limits.guests_per_room
            && housemates < self.limits.guests_per_ip
            && neighbours < self.limits.guests_per_prefix
    }

    fn refuse(&mut self, request: &Request, reason: Refusal) {
        self.stats.refused += 1;
        log!(debug, from = %request.from, ?reason, "refused a request");
        let random = request.random;
        self.say(request.from, &Packet::Refused { random, reason });
    }
}

impl Request {
    pub(super) fn new(from: SocketAddr, random: [u8; 8], direct: bool, local: Candidates) -> Self {
        Self {
            from,
            random,
            direct,
            local: local.local_only(),
        }
    }
}
